"""Certificates: what proves a bound, by problem, whatever method claims the bound.

A model claims a bound; a *prover* takes multipliers, those of the model where it has some, otherwise those of the
problem's relaxation, rounds them, and evaluates again what follows from them by weak duality. Packing problems
(Hadar, Zhou, admission) have prices of capacity in slots, and every job's best response to them; fluids prices over
intervals, and single machines prices that do not change; linear programs the duals of their rows; placements what whole
jobs are worth on a server.
``examples/check_certificate.py`` does the same from the instance alone.
"""

from __future__ import annotations

from typing import Any

from schedgap.models.certificates import fluid, placement, prices, programs
from schedgap.models.certificates.proof import Proof, Prover
from schedgap.models.registry import Outcome
from schedgap.models.solve import SolveOptions

__all__ = ["PROVERS", "Proof", "prove"]

PROVERS: dict[str, Prover] = {**prices.PROVERS, **fluid.PROVERS, **programs.PROVERS, **placement.PROVERS}
"""Provers by problem."""


def prove(problem: str, view: Any, outcome: Outcome, options: SolveOptions) -> Proof | None:
    """Return what proves a bound on a problem, or ``None`` where nothing but the solver's word stands for it."""
    prover = PROVERS.get(problem)
    return prover(view, outcome, options) if prover else None
