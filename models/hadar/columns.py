"""P2 by column generation: a certified bound and a schedule near it, at sizes where P1 has millions of binaries.

Capacities are the GPUs of a type in a slot, blocks are jobs, columns are schedules; :mod:`models.columns` does the
work, :mod:`models.hadar.pricing` finds the schedules. The bound holds for P1 as well, which is the same problem.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pyomo.environ as pyo

from instances.views.hadar import COMPLETE, UTILITY, Schedule, View, placed
from models.columns import Columns, Generated, GenerationOptions, Packed, Packing, PackingOptions, generate, pack
from models.columns import statement as master
from models.hadar.common import somebody_rejected
from models.hadar.pricing import Pricing
from models.registry import MODELS, ModelSpec, Outcome, no_reason
from models.solve import Solution, SolveOptions, Status, TracePoint, build, cross_check

LARGEST = 40_000_000
"""Jobs times slots up to which it runs unasked: utilities and prices of all of them are kept in memory."""

BOUND_SHARE = 0.6
"""Share of the time limit that the bound may take; the rest is for the schedule."""


def packing(view: View, complete: bool = False) -> Packing:
    """Return the packing problem of a view: row ``r·T + t`` is type ``r`` in slot ``t``.

    Parameters
    ----------
    view
        GPUs, slots, jobs.
    complete
        Whether every job completes.
    """
    capacity = np.repeat(view.capacity, view.slots).astype(float)
    return Packing(capacity, view.size, complete, floor=0.0)


def build_master(view: View, complete: bool = False) -> pyo.ConcreteModel:
    """Return the LP of P2 over the schedules that column generation found."""
    problem = packing(view, complete)
    return master(problem, generate(problem, Pricing(view, complete)).columns)


def columns(view: View, options: SolveOptions, complete: bool = False) -> Outcome:
    """Solve P2: bound by column generation, schedule by ruin and recreate.

    Parameters
    ----------
    view
        What is to be scheduled.
    options
        Limits, gap, seed.
    complete
        Whether every job completes.

    Returns
    -------
    Outcome
        Its prices are ``(k, T)``: what one more GPU of a type in a slot would add to the bound at most.
    """
    began = time.perf_counter()
    problem = packing(view, complete)
    limit = options.time_limit_s
    pricing = Pricing(view, complete)
    built = time.perf_counter()
    bounding = GenerationOptions(time_limit_s=None if limit is None else BOUND_SHARE * limit)
    generated = generate(problem, pricing, bounding, options)
    bounded = time.perf_counter()
    packed = None
    if generated.ended not in ("infeasible", "error"):
        left = None if limit is None else max(limit - (bounded - built), 0.1)
        effort = PackingOptions(gap=options.rel_gap, time_limit_s=left, seed=options.seed)
        packed = pack(problem, pricing.insert, generated, effort, options)
    solution = _solution(generated, packed, options)
    trace = [TracePoint(t + built - began, None, bound) for t, _, bound in generated.trace]
    if packed:
        trace += [TracePoint(t + bounded - began, found, generated.bound) for t, found, _ in packed.trace]
    times = replace(generated.times, build_s=built - began)
    times = replace(times, solve_s=time.perf_counter() - built - times.transfer_s)
    solution = replace(solution, times=times, trace=tuple(trace))
    if options.cross_check:
        solution = replace(solution, cross_check=_second_opinion(problem, generated, options))
    decision = decode(view, packed.columns) if packed and solution.objective is not None else None
    return Outcome(solution, decision, generated.prices.reshape(-1, view.slots))


def decode(view: View, chosen: Columns) -> Schedule:
    """Return the schedule of chosen columns, with GPUs put onto servers."""
    use = chosen.use.tocoo()
    gpus = np.rint(use.data).astype(np.int64)
    cell = use.row.astype(np.int64)
    return placed(view, chosen.block[use.col], cell % view.slots, cell // view.slots, gpus)


def _solution(generated: Generated, packed: Packed | None, options: SolveOptions) -> Solution:
    """Return what both phases answer, but for times and trace."""
    error = generated.unpriced / max(abs(generated.bound), 1e-10)
    told = f"bound: {generated.ended} after {generated.pricings} pricings, {generated.gap:.2g} above the master"
    solution = Solution(
        status="infeasible" if generated.ended == "infeasible" else "error",
        termination=f"{told}, discretisation error {error:.2g}",
        bound=generated.bound if np.isfinite(generated.bound) else None,
        size=generated.size,
        iterations=generated.pivots,
    )
    if packed is None:
        return solution
    if packed.missing:
        told = f"no schedule found for {packed.missing} jobs"
        return replace(solution, status="time limit without incumbent", solution_status=told)
    gap = (generated.bound - packed.value) / max(abs(packed.value), 1e-10)
    late = generated.ended == "time limit"
    status: Status = "time limit with incumbent" if late else "feasible"
    return replace(
        solution,
        status="optimal" if gap <= options.rel_gap else status,
        solution_status=f"{packed.moves} moves of ruin and recreate",
        objective=packed.value,
        column_values=np.ones(len(packed.columns)),
    )


def _second_opinion(problem: Packing, generated: Generated, options: SolveOptions) -> float | None:
    """Compare the master's LP with CBC on its statement in Pyomo."""
    if not len(generated.columns) or generated.ended == "error":
        return None
    known = Solution(status="optimal", termination="master", objective=generated.value)
    return cross_check(build(master, problem, generated.columns), known, options)


def too_large(view: View) -> str | None:
    """Return why column generation runs only on request, or ``None``."""
    size = view.size * view.slots
    return f"{view.size:,} jobs in {view.slots:,} slots, more than {LARGEST:,} together" if size > LARGEST else None


for _complete, _problem in ((False, UTILITY), (True, COMPLETE)):
    MODELS.register(
        ModelSpec(
            id="hadar.p2.columns.complete" if _complete else "hadar.p2.columns",
            paper="hadar",
            problem=_problem.id,
            kind="exact",
            build=partial(build_master, complete=_complete),
            decode=lambda view, model, solution: None,
            source="Hadar §III-B, eq. (2), by column generation" + (", every job completes" if _complete else ""),
            procedure=partial(columns, complete=_complete),
            skip=somebody_rejected if _complete else no_reason,
            too_large=too_large,
        )
    )
