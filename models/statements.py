"""Helpers of builders: sets by key, the unit of an objective, and the procedure that solves a dual for its bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.models.registry import Outcome, no_decision, solve_built
from schedgap.models.solve import SolveOptions


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the members of each key, in order, from pairs of key and member."""
    found: dict[Any, list[Any]] = {}
    for key, member in pairs:
        found.setdefault(key, []).append(member)
    return found


def largest(numbers: Array) -> float:
    """Return the largest absolute value, 1 where all are 0: the unit of an objective."""
    return float(np.abs(numbers).max(initial=0.0)) or 1.0


def bounding(build: Callable[[Any], Any]) -> Callable[[Any, SolveOptions], Outcome]:
    """Return the procedure that solves a dual: the value of any feasible prices and payoffs is a bound."""

    def procedure(view: Any, options: SolveOptions) -> Outcome:
        outcome = solve_built(build, no_decision, view, options)
        return replace(outcome, solution=replace(outcome.solution, bound=outcome.solution.objective))

    return procedure
