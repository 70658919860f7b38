"""All phases as one solve within one time limit: known decisions, a bound by column generation, a packing near it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schedgap.instances import clock
from schedgap.models.columns.generation import Generated, GenerationOptions, Oracle, generate
from schedgap.models.columns.integer import LATE, Packed, PackingOptions, Start
from schedgap.models.columns.packing import Packing, statement
from schedgap.models.solve import Seed, Solution, SolveOptions, Status, TracePoint, build, cross_check

Packer = Callable[[Generated, PackingOptions, Sequence[Start]], Packed]
"""``packer(generated, effort, starts)`` returns an integer solution near what column generation found."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What the phases found.

    Attributes
    ----------
    solution
        What is certified.
    generated, packed
        Outcome of column generation, and of packing; ``None`` where the first ended without a bound to go by.
    seed
        The known decision that the incumbent is, where no packing is as good.
    """

    solution: Solution
    generated: Generated
    packed: Packed | None
    seed: Seed | None = None

    def decision(self, decode: Callable[[Packed], Any]) -> Any:
        """Return the incumbent as a decision of the paper, ``None`` without one."""
        if self.seed:
            return self.seed.decision
        return decode(self.packed) if self.packed and self.solution.objective is not None else None


@dataclass(frozen=True, eq=False)
class PackingProblem:
    """A packing problem as a paper poses it.

    Attributes
    ----------
    packing, oracle, packer
        The problem, its pricing, and the phase that finds an integer solution.
    effort
        Options of that phase but for gap, time limit and seed, which are the solver's.
    read
        ``read(decision)`` returns the columns of a known decision.
    share
        Share of the time limit that the bound may take.
    sense
        1 where values are maximised; −1 where they are the negatives of costs, in which the solution then is.
    """

    packing: Packing
    oracle: Oracle
    packer: Packer
    effort: PackingOptions
    read: Callable[[Any], Start]
    share: float
    sense: int = 1


def solve_in_phases(
    problem: PackingProblem, options: SolveOptions, built_s: float = 0.0, seeded: bool = True
) -> Answer:
    """Bound a packing problem, pack it, and say what that proves.

    Column generation comes first; then, from the known decisions, ruin and recreate, and the master as an integer
    program, until bound or time limit is reached. Where all columns that can be part of a better decision are few, the
    master over these proves the optimum. There is no branching: what cannot be closed is a *gap left*.

    Parameters
    ----------
    problem
        What is packed.
    options
        Limits, gap, seed, second opinion, known decisions.
    built_s
        Seconds that building took.
    seeded
        Whether it starts from known decisions.
    """
    began = clock.now()
    best_first = sorted(options.seeds, key=lambda seed: problem.sense * seed.objective, reverse=True)
    seeds = best_first if seeded else []
    starts = [problem.read(seed.decision) for seed in seeds]
    seeded_s = clock.now() - began
    bounding = GenerationOptions(gap=options.rel_gap, time_limit_s=_left(options, seeded_s, problem.share))
    # Their columns are no gain for the master: on ``gen/hadar-480``, with thousands of slots each, it is not solved in
    # a minute, and prices find better ones.
    generated = generate(problem.packing, problem.oracle, bounding, options)
    bound_s = clock.now() - began
    packed = None
    if generated.ended not in ("infeasible", "error"):
        effort = replace(problem.effort, gap=options.rel_gap, time_limit_s=_left(options, bound_s), seed=options.seed)
        packed = problem.packer(generated, effort, starts)
    seed = _better(seeds, packed, problem.sense)
    solution = _solution(generated, packed, seed, len(seeds), options, problem.sense)
    trace = [TracePoint(built_s + seeded_s, seeds[0].objective, None)] if seeds else []
    trace += [_point(built_s + seeded_s + point.time_s, None, point.bound, problem.sense) for point in generated.trace]
    if packed:
        trace += [
            _point(built_s + bound_s + p.time_s, p.incumbent, generated.bound, problem.sense) for p in packed.trace
        ]
    solve_s = clock.now() - began - generated.times.transfer_s
    solution = replace(solution, times=replace(generated.times, build_s=built_s, solve_s=solve_s), trace=tuple(trace))
    if options.cross_check:
        solution = replace(solution, cross_check=_second_opinion(problem.packing, generated, options))
    return Answer(solution, generated, packed, seed)


def _left(options: SolveOptions, spent_s: float, share: float = 1.0) -> float | None:
    """Return a share of the seconds that are left."""
    return None if options.time_limit_s is None else max(share * (options.time_limit_s - spent_s), 0.1)


def _better(seeds: Sequence[Seed], packed: Packed | None, sense: int) -> Seed | None:
    """Return the best known decision, where it is better than what was packed."""
    if not seeds or packed is None:
        return None
    return seeds[0] if packed.missing or sense * seeds[0].objective > packed.value else None


def _point(time_s: float, incumbent: float | None, bound: float | None, sense: int) -> TracePoint:
    values = (None if value is None else sense * value for value in (incumbent, bound))
    return TracePoint(time_s, *values)


def _solution(
    generated: Generated, packed: Packed | None, seed: Seed | None, seeds: int, options: SolveOptions, sense: int
) -> Solution:
    """Return what the phases answer, but for times and trace."""
    bound = generated.bound if packed is None else packed.bound
    error = generated.unpriced / max(abs(generated.bound), 1e-10)
    told = f"bound: {generated.ended} after {generated.pricings} pricings, {generated.gap:.2g} above the master"
    infeasible = generated.ended == "infeasible" or bound == -np.inf
    solution = Solution(
        status="infeasible" if infeasible else "error",
        termination=f"{told}, discretisation error {error:.2g}",
        bound=sense * bound if np.isfinite(bound) and not infeasible else None,
        size=generated.size,
        iterations=generated.pivots,
    )
    if packed is None or infeasible:
        return solution
    told = f"{packed.why} after {packed.moves} moves of ruin and recreate from {seeds} known decisions"
    cut = packed.why == LATE
    if packed.missing and not seed:
        status: Status = "time limit without incumbent" if cut else "gap left"
        return replace(solution, status=status, solution_status=f"no schedule found for {packed.missing} jobs; {told}")
    value = sense * seed.objective if seed else packed.value
    gap = (bound - value) / max(abs(value), 1e-10)
    closed = gap <= options.rel_gap
    late: Status = "time limit with incumbent" if generated.ended == "time limit" else "gap left"
    return replace(
        solution,
        status="optimal" if closed else late,
        solution_status=told if closed else f"{told}; gap left: no branching",
        objective=sense * value,
        column_values=np.ones(len(packed.columns)),
    )


def _second_opinion(packing: Packing, generated: Generated, options: SolveOptions) -> float | None:
    """Compare the master's LP with CBC on its statement in Pyomo."""
    if not len(generated.columns) or generated.ended == "error":
        return None
    known = Solution(status="optimal", termination="master", objective=generated.value)
    return cross_check(build(statement, packing, generated.columns), known, options)
