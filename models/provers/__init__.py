"""Certificates: proofs of bounds, one prover per problem, whichever method claims the bound.

A model claims a bound. A *prover* takes multipliers, from the model if it has some and otherwise from a relaxation of
the problem, rounds them, and evaluates the bound that follows by weak duality again. The multipliers are, for packing
problems (Hadar, Zhou, admission), prices of capacity in slots, with every job's best response to them; for fluids,
prices over intervals; for single machines, constant prices; for linear programs, the duals of the rows; and for
placements, the values of whole jobs on a server.
``examples/check_certificate.py`` does the same from the instance alone.
"""

from __future__ import annotations

from typing import Any

from schedgap.models.provers import fluid, placement, prices, programs
from schedgap.models.provers.proof import Proof, Prover
from schedgap.models.registry import Outcome
from schedgap.models.solve import SolveOptions

__all__ = ["PROVERS", "Proof", "prove"]

PROVERS: dict[str, Prover] = {**prices.PROVERS, **fluid.PROVERS, **programs.PROVERS, **placement.PROVERS}
"""Provers by problem."""


def prove(problem: str, view: Any, outcome: Outcome, options: SolveOptions) -> Proof | None:
    """Return the proof of a model's bound on a problem, or ``None`` if only the solver vouches for the bound."""
    prover = PROVERS.get(problem)
    return prover(view, outcome, options) if prover else None
