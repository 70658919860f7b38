"""Small things that models are stated with: sets by key, and units that make the solver's tolerances relative."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.models.registry import Outcome, no_decision, solve_built
from schedgap.models.solve import Solution, SolveOptions
from schedgap.models.solve.scaling import rescaled


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the members of each key, in order, from pairs of key and member."""
    found: dict[Any, list[Any]] = {}
    for key, member in pairs:
        found.setdefault(key, []).append(member)
    return found


def largest(numbers: Array) -> float:
    """Return the largest absolute value, 1 where all are 0: the unit of an objective."""
    return float(np.abs(numbers).max(initial=0.0)) or 1.0


def in_units(
    build: Callable[[Any], Any], decode: Callable[[Any, Any, Solution], Any]
) -> Callable[[Any, SolveOptions], Outcome]:
    """Return the procedure that solves a model whose objective is in units of its ``unit``, in which it answers."""

    def procedure(view: Any, options: SolveOptions) -> Outcome:
        outcome = solve_built(build, decode, view, options)
        found = outcome.solution
        return replace(outcome, solution=rescaled(found, found.model.unit.value)) if found.model else outcome

    return procedure


def bounding(build: Callable[[Any], Any]) -> Callable[[Any, SolveOptions], Outcome]:
    """Return the procedure that solves a dual in its units: the value of any feasible prices and payoffs is a bound."""
    solved = in_units(build, no_decision)

    def procedure(view: Any, options: SolveOptions) -> Outcome:
        outcome = solved(view, options)
        return replace(outcome, solution=replace(outcome.solution, bound=outcome.solution.objective))

    return procedure
