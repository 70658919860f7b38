"""Independent checkers: from a view and a decision, re-check every constraint and claim, recompute the objective.

They use numpy only, never Pyomo or a solver (but to find prices of rounds, which prove a bound whatever they are), and
share nothing with the models. One file per paper registers its checker in :data:`VERIFIERS`; it lists the paper's
constraints as rules (:mod:`schedgap.harness.verify.rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedgap.instances.discovery import import_submodules
from schedgap.instances.registry import Registry

TOLERANCE = 1e-6
"""Relative tolerance of all re-checks."""


def differ(a: float, b: float, least: float = 0.0) -> bool:
    """Whether two numbers differ by more than :data:`TOLERANCE` of the larger one, and by more than `least`."""
    return abs(a - b) > max(TOLERANCE * max(abs(a), abs(b)), least)


@dataclass(frozen=True)
class Verdict:
    """What a checker found.

    Attributes
    ----------
    objective, violations
        Recomputed from the decision (``None`` where it is malformed); one line per broken constraint or claim.
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
        ``check(view, decision, problem, claims)`` re-checks a decision against a view, by the rules of a problem, and
        what its method claims; it returns a :class:`Verdict`.
    quantities
        ``quantities(problem)`` names what verdicts on decisions of a problem may have as metrics or quantities, so that
        a published number that nothing measures is found without running anything.
    posed
        ``posed(view, problem)`` says how fields of certificates have to be that the instance does not fix.
    """

    id: str
    check: Callable[[Any, Any, str, tuple[str, ...]], Verdict]
    quantities: Callable[[str], tuple[str, ...]] = lambda problem: ()
    posed: Callable[[Any, str], Mapping[str, Any]] = lambda view, problem: {}


def slotted(view: Any, problem: str) -> dict[str, Any]:
    """Return what certificates of problems in slots have: the length of slots, as it is in the view."""
    return {"slot_s": view.slot_s}


VERIFIERS: Registry[VerifierSpec] = Registry("verifier")

import_submodules(__name__)
