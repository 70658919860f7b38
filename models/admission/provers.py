"""Provers of the admission problems: prices of classes of servers by slot."""

from __future__ import annotations

from functools import partial

from schedgap.instances.views import admission
from schedgap.models.admission.columns import admitting
from schedgap.models.provers.prices import moldable
from schedgap.models.provers.registry import PROVERS, ProverSpec

for problem in (admission.UTILITY.id, admission.FROM_ARRIVAL.id):
    PROVERS.register(ProverSpec(problem, partial(moldable, jobs_of=partial(admitting, problem=problem))))
