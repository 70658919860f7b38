"""Provers of Hadar's problems: prices of GPUs, by slot or over intervals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from schedgap.instances.views import hadar
from schedgap.models.engine.columns import Domain
from schedgap.models.engine.gangs.copies import ForkedPricing
from schedgap.models.engine.gangs.periods import ByPeriod
from schedgap.models.engine.gangs.pricing import GangPricing
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.provers.fluid import over_intervals
from schedgap.models.provers.prices import by_prices, grown
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.registry import Outcome


def gangs(view: hadar.HadarView, outcome: Outcome, options: SolveOptions, *, problem: str) -> Content | None:
    """Return prices of GPUs for one of Hadar's problems, from the outcome or from column generation."""
    evidence = outcome.evidence
    content: Content = {"slot_s": view.slot_s, "slots": view.slots}
    pricing: Any
    oracle: Any
    if isinstance(evidence, ByPeriod):  # some jobs may do their work in fractions of slots
        pricing, content["divisible"] = evidence.pricing, np.flatnonzero(evidence.pricing.by_parts).tolist()
        oracle = lambda prices, domain: pricing.nearly(prices.reshape(-1, view.slots), closely=False)  # noqa: E731
    elif evidence is not None:
        return over_intervals(evidence, view.capacity.astype(float)) | {"slot_s": view.slot_s}
    elif problem == hadar.FORKED.id:
        pricing = oracle = ForkedPricing(view)
    else:
        pricing = oracle = GangPricing(view, problem == hadar.COMPLETE.id)
    domain = Domain.of(pricing.packing)
    tree = grown(outcome, domain, oracle, options)
    return by_prices(outcome, domain, oracle, tree, content)


for problem in (hadar.UTILITY.id, hadar.COMPLETE.id, hadar.FORKED.id):
    PROVERS.register(ProverSpec(problem, partial(gangs, problem=problem)))
