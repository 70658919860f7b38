"""Provers: one per problem, whichever method claims the bound.

A model claims a bound. A *prover* takes multipliers, from the model if it has some and otherwise from a relaxation of
the problem, and rounds them. The rule of the problem (:mod:`schedgap.certificates`) then derives the bound that follows
by weak duality, from the raw instance. The multipliers are, for packing problems (Hadar, Zhou, admission), prices of
capacity in slots, with every job's best response to them; for fluids, prices over intervals; for single machines,
constant prices; for linear programs, the duals of the rows; and for placements, the values of whole jobs on a server.

Each file registers the provers of its problems in :data:`PROVERS`, and so may a plug-in.
"""

from __future__ import annotations

from typing import Any

from schedgap.models.provers import fluid, placement, prices, programs
from schedgap.models.provers.registry import PROVERS, Content, ProverSpec
from schedgap.models.registry import Outcome
from schedgap.models.solve import SolveOptions

__all__ = ["PROVERS", "Content", "ProverSpec", "fluid", "placement", "prices", "programs", "prove"]


def prove(problem: str, view: Any, outcome: Outcome, options: SolveOptions) -> Content | None:
    """Return multipliers that prove a bound on a problem, or ``None`` if only the solver vouches for the bound."""
    prover = next((spec.prove for spec in PROVERS if spec.id == problem), None)
    return prover(view, outcome, options) if prover else None
