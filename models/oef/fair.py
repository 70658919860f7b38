"""Total efficiency as a curve: the program of constraints for a row of ε and σ, each with multipliers that prove it.

The program is :func:`.printed.build_fair`. Each of its points starts from the envy rows and the basis of the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from schedgap.instances.views.oef import FAIR, Allocation, OefView, merged, unmerged
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.oef.envy import Envy
from schedgap.models.oef.lazy import Known, lazy_fair
from schedgap.models.oef.printed import Constraints
from schedgap.models.provers.registry import Content
from schedgap.models.provers.rounding import listed, unit_of, whole


class FairPoint(NamedTuple):
    """A point of a curve: what it requires, an allocation, and the content of a certificate of its bound."""

    required: Constraints
    status: str
    allocation: Allocation
    proof: Content


def curve(view: OefView, points: Sequence[Constraints], options: SolveOptions) -> Iterator[FairPoint]:
    """Yield the optimum for each of several constraints, with all tenants of equal speedups merged.

    Neighbours in the sequence should be alike. The time limit is that of each point; where it ends a solve, the
    allocation is free of envy, and the bound that of a less strict program. Equal efficiency is not among them:
    (9) has no envy rows (:func:`.printed.build_noncooperative`).
    """
    small, group = merged(view)
    known: Known | None = None
    for required in points:
        outcome = lazy_fair(small, options, required, known)
        known = Known.of(outcome) or known
        yield FairPoint(
            required,
            outcome.solution.status,
            Allocation(unmerged(view, group, outcome.decision.devices)),
            proof(outcome.evidence, required),
        )


def proof(evidence: Envy | None, required: Constraints) -> Content:
    """Return the content of a certificate: how strict the program is, and the multipliers of its rows.

    Without multipliers, the bound that follows is the one on total efficiency.
    """
    content: Content = {"problem": FAIR.id, "epsilon": required.epsilon, "sigma": required.sigma}
    if evidence is None:
        return content | {"unit": 1.0}
    own = np.zeros(0) if evidence.own is None else evidence.own
    unit = unit_of(max(1.0, evidence.multiplier.max(initial=0.0), own.max(initial=0.0)))
    numbers = listed(whole(evidence.multiplier, unit))
    envy = [[*pair, number] for pair, number in zip(evidence.pairs.tolist(), numbers, strict=True) if number]
    return content | {"unit": unit, "tenants": listed(whole(own, unit)), "envy": envy}
