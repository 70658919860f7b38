"""Both phases as one solve: a bound by column generation, then a packing near it, within one time limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from instances import clock
from models.columns.generation import Generated, GenerationOptions, Oracle, generate
from models.columns.integer import Packed, PackingOptions
from models.columns.packing import Packing, statement
from models.solve import Solution, SolveOptions, Status, TracePoint, build, cross_check

Packer = Callable[[Generated, PackingOptions], Packed]
"""``packer(generated, effort)`` returns an integer solution near what column generation found."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What both phases found; `packed` is ``None`` where the first one ended without a bound to go by."""

    solution: Solution
    generated: Generated
    packed: Packed | None


def solve_in_phases(
    packing: Packing,
    oracle: Oracle,
    packer: Packer,
    effort: PackingOptions,
    options: SolveOptions,
    *,
    share: float,
    sense: int = 1,
    built_s: float = 0.0,
) -> Answer:
    """Bound a packing problem, pack it, and say what that proves.

    Parameters
    ----------
    packing, oracle
        The problem, and its pricing.
    packer, effort
        The second phase, and its options but for gap, time limit and seed, which are those of `options`.
    options
        Limits, gap, seed, second opinion.
    share
        Share of the time limit that the bound may take.
    sense
        1 where values are maximised; −1 where they are the negatives of costs, in which the solution then is.
    built_s
        Seconds that building took.
    """
    began = clock.now()
    limit = options.time_limit_s
    bounding = GenerationOptions(time_limit_s=None if limit is None else share * limit)
    generated = generate(packing, oracle, bounding, options)
    bound_s = clock.now() - began
    packed = None
    if generated.ended not in ("infeasible", "error"):
        left = None if limit is None else max(limit - bound_s, 0.1)
        packed = packer(generated, replace(effort, gap=options.rel_gap, time_limit_s=left, seed=options.seed))
    solution = _solution(generated, packed, options, sense)
    trace = [_point(built_s + point.time_s, None, point.bound, sense) for point in generated.trace]
    if packed:
        trace += [_point(built_s + bound_s + p.time_s, p.incumbent, generated.bound, sense) for p in packed.trace]
    solve_s = clock.now() - began - generated.times.transfer_s
    times = replace(generated.times, build_s=built_s, solve_s=solve_s)
    solution = replace(solution, times=times, trace=tuple(trace))
    if options.cross_check:
        solution = replace(solution, cross_check=_second_opinion(packing, generated, options))
    return Answer(solution, generated, packed)


def _point(time_s: float, incumbent: float | None, bound: float | None, sense: int) -> TracePoint:
    values = (None if value is None else sense * value for value in (incumbent, bound))
    return TracePoint(time_s, *values)


def _solution(generated: Generated, packed: Packed | None, options: SolveOptions, sense: int) -> Solution:
    """Return what both phases answer, but for times and trace."""
    error = generated.unpriced / max(abs(generated.bound), 1e-10)
    told = f"bound: {generated.ended} after {generated.pricings} pricings, {generated.gap:.2g} above the master"
    solution = Solution(
        status="infeasible" if generated.ended == "infeasible" else "error",
        termination=f"{told}, discretisation error {error:.2g}",
        bound=sense * generated.bound if np.isfinite(generated.bound) else None,
        size=generated.size,
        iterations=generated.pivots,
    )
    if packed is None:
        return solution
    if packed.missing:
        told = f"no schedule found for {packed.missing} jobs"
        return replace(solution, status="time limit without incumbent", solution_status=told)
    gap = (generated.bound - packed.value) / max(abs(packed.value), 1e-10)
    late: Status = "time limit with incumbent" if generated.ended == "time limit" else "feasible"
    return replace(
        solution,
        status="optimal" if gap <= options.rel_gap else late,
        solution_status=f"{packed.moves} moves of ruin and recreate",
        objective=sense * packed.value,
        column_values=np.ones(len(packed.columns)),
    )


def _second_opinion(packing: Packing, generated: Generated, options: SolveOptions) -> float | None:
    """Compare the master's LP with CBC on its statement in Pyomo."""
    if not len(generated.columns) or generated.ended == "error":
        return None
    known = Solution(status="optimal", termination="master", objective=generated.value)
    return cross_check(build(statement, packing, generated.columns), known, options)
