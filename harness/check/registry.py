"""Registry of checkers, what they return, and the facts of an instance that they read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from schedgap.certificates.basics import Data
from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance

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
    read
        ``read(data)`` reads the raw instance, plain data as in its canonical JSON, into the facts that the checker
        needs. They are kept for the next decisions on the instance.
    check
        ``check(facts, decision, problem, claims)`` checks a decision against the facts, the rules of its problem and
        the claims of its method; it returns a :class:`Verdict`.
    quantities
        ``quantities(problem)`` lists the metrics and quantities that verdicts for a problem may contain, so that a
        published number that nothing measures is detected without running anything.
    """

    id: str
    read: Callable[[Data], Any]
    check: Callable[[Any, Any, str, tuple[str, ...]], Verdict]
    quantities: Callable[[str], tuple[str, ...]] = lambda problem: ()


def judge(
    instance: Instance | Data, decision: Any, problem: str, claims: tuple[str, ...] = (), **asked: Any
) -> Verdict:
    """Check a decision about an instance, by the checker of the problem's paper.

    Parameters
    ----------
    instance
        The instance, or its canonical JSON as a mapping. What is read of an :class:`Instance` is kept.
    decision
        The paper's dataclass of arrays.
    problem, claims
        The problem whose rules hold, and the claims of the method.
    **asked
        Facts that a policy asks for instead of the instance's own, by their names: the jobs of Synergy's `round`.

    Raises
    ------
    UnknownNameError
        If no paper has the problem.
    """
    spec = VERIFIERS.get(problem.partition(".")[0])
    facts = facts_of(instance, spec.read)
    return spec.check(replace(facts, **asked) if asked else facts, decision, problem, claims)


def judge_asked(view: Any, decision: Any, problem: str, claims: tuple[str, ...] = ()) -> Verdict:
    """Check a decision about the instance of a view, with the facts that `view.asked` replaces, if any.

    A policy of Synergy, for example, asks for a round of the jobs that it picked instead of the instance's round.
    """
    return judge(view.instance, decision, problem, claims, **getattr(view, "asked", {}))


KEPT = 8
"""Maximum number of instances whose facts a process keeps."""

_kept: dict[tuple[Callable[[Data], Any], str], Any] = {}


def facts_of(instance: Instance | Data, read: Callable[[Data], Any]) -> Any:
    """Return the facts that `read` takes from the raw instance; those of the last few instances are kept."""
    if not isinstance(instance, Instance):
        return read(instance)
    key = read, instance.fingerprint
    if key not in _kept:
        if len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = read(instance.plain)
    return _kept[key]


VERIFIERS: Registry[VerifierSpec] = Registry("verifier")
