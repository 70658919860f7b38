"""Helpers for functions that build and decode models: groups of indices, dual programs, and schedules as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.instances.moldable import Runs
from schedgap.models.engine.solve import Solution, SolveOptions
from schedgap.models.registry import Outcome, Start, no_decision, solve_built


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Group ``(key, member)`` pairs: return the members of each key, in order."""
    groups: dict[Any, list[Any]] = {}
    for key, member in pairs:
        groups.setdefault(key, []).append(member)
    return groups


def largest(numbers: Array) -> float:
    """Return the largest absolute value, or 1 if all are 0: the unit of an objective."""
    return float(np.abs(numbers).max(initial=0.0)) or 1.0


def bounding(build: Callable[[Any], Any]) -> Callable[[Any, SolveOptions], Outcome]:
    """Return a procedure that solves a dual program; the value of any dual feasible point is a bound."""

    def procedure(view: Any, options: SolveOptions) -> Outcome:
        outcome = solve_built(build, no_decision, view, options)
        return replace(outcome, solution=replace(outcome.solution, bound=outcome.solution.objective))

    return procedure


def matching(view: object, model: Any, decision: Runs) -> Start | None:
    """Return the start that sets ``x`` to 1 for the runs of a decision; ``None`` if the model lacks one of its runs."""
    index = {key: k for k, key in enumerate(_keys(model.runs))}
    chosen = [index.get(key, -1) for key in _keys(decision)]
    return None if -1 in chosen else {"x": dict.fromkeys(chosen, 1.0)}


def _keys(runs: Runs) -> list[tuple[Any, ...]]:
    """Return a key of each run that only equal runs share: job, start, duration, types, workers and PSs by server."""
    table = np.column_stack((runs.server, runs.workers, runs.ps))
    where = grouped(zip(runs.run.tolist(), map(tuple, table.tolist()), strict=True))
    fields = zip(*(a.tolist() for a in (runs.job, runs.start, runs.slots, runs.worker_type, runs.ps_type)), strict=True)
    return [(*own, *sorted(where.get(k, ()))) for k, own in enumerate(fields)]


def followed(view: object, model: Any, solution: Solution) -> Any:
    """Return the decision that consists of the runs in ``model.runs`` whose ``x`` is 1 in an incumbent."""
    runs, chosen = model.runs, solution.array(model.x) > 0.5
    held = chosen[runs.run]
    return replace(
        runs,
        **{name: getattr(runs, name)[chosen] for name in ("job", "start", "slots", "worker_type", "ps_type")},
        run=(np.cumsum(chosen) - 1)[runs.run[held]],
        **{name: getattr(runs, name)[held] for name in ("server", "workers", "ps")},
    )
