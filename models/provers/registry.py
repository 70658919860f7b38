"""The registry of provers, one per problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schedgap.instances.registry import Registry
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.registry import Outcome

Content = dict[str, Any]
"""Multipliers from which a bound follows by weak duality, as plain data: the content of a certificate."""

Prover = Callable[[Any, Outcome, SolveOptions], Content | None]
"""``prover(view, outcome, options)`` returns the multipliers that prove a problem's bound, or ``None``.

A prover states no bound: :func:`schedgap.certificates.certified` derives it from the multipliers.
"""


@dataclass(frozen=True)
class ProverSpec:
    """The prover of a problem.

    Parameters
    ----------
    id
        Id of the problem.
    prove
        The prover.
    """

    id: str
    prove: Prover


PROVERS: Registry[ProverSpec] = Registry("prover")


def prove(problem: str, view: Any, outcome: Outcome, options: SolveOptions) -> Content | None:
    """Return multipliers that prove a bound on a problem, or ``None`` if the bound is only claimed by a solver."""
    prover = next((spec.prove for spec in PROVERS if spec.id == problem), None)
    return prover(view, outcome, options) if prover else None
