"""Independent checkers: they re-check every constraint and claim of a decision and recompute its objective.

They share no code with the models and use numpy only, never Pyomo or a solver. (The one exception finds prices for
rounds, and any prices prove a bound.) Each paper's file registers its checker in :data:`VERIFIERS` and lists the
paper's constraints as rules (:mod:`schedgap.harness.verify.rules`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedgap.instances.discovery import import_submodules
from schedgap.instances.registry import Registry

TOLERANCE = 1e-6
"""Relative tolerance of all re-checks."""


def differ(a: float, b: float, least: float = 0.0) -> bool:
    """Return whether two numbers differ by more than `least` and by more than :data:`TOLERANCE` of the larger one.

    A number that is not finite differs from all others.
    """
    return not (a == b or abs(a - b) <= max(TOLERANCE * max(abs(a), abs(b)), least) < math.inf)


@dataclass(frozen=True)
class Verdict:
    """The result of a check.

    Attributes
    ----------
    objective, violations
        The recomputed objective (``None`` if the decision is malformed), and one line per broken constraint or claim.
    metrics, quantities
        Scalars for the table (``envy_free``, ``support_size``), and further scalars and arrays that published numbers
        may refer to (``efficiency``, ``devices``).
    """

    objective: float | None
    violations: tuple[str, ...] = ()
    metrics: Mapping[str, float | int | bool] = field(default_factory=dict)
    quantities: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VerifierSpec:
    """The checker of a paper.

    Parameters
    ----------
    id
        Id of the paper.
    check
        ``check(view, decision, problem, claims)`` checks a decision against a view, the rules of its problem and the
        claims of its method; it returns a :class:`Verdict`.
    quantities
        ``quantities(problem)`` lists the metrics and quantities that verdicts for a problem may contain, so that a
        published number that nothing measures is detected without running anything.
    posed
        ``posed(view, problem)`` returns the certificate fields that the instance does not determine, with their values.
    """

    id: str
    check: Callable[[Any, Any, str, tuple[str, ...]], Verdict]
    quantities: Callable[[str], tuple[str, ...]] = lambda problem: ()
    posed: Callable[[Any, str], Mapping[str, Any]] = lambda view, problem: {}


def slotted(view: Any, problem: str) -> dict[str, Any]:
    """Return the slot length of the view, which certificates of slotted problems must state."""
    return {"slot_s": view.slot_s}


VERIFIERS: Registry[VerifierSpec] = Registry("verifier")

import_submodules(__name__)
