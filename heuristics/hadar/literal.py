"""Algorithm 2 as printed, for the audit: it never schedules anything.

Line 20 keeps job j only if ``cost_Q < cost_{Q/j}``. Both sums run over what was placed before; the left one has the
GPUs of j besides, at prices that j itself has raised. So the left side is never the smaller one.

Two more lines as printed: FIND_ALLOC returns the cheapest allocation whatever its rate, and its payoff subtracts one
round's cost from the utility of a lifetime (28 to 31, :data:`AS_PRINTED`); a job without allocation ends the recursion,
so that later jobs are not considered (7 and 8).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedgap.heuristics.hadar.planning import Planner, Planning, Round
from schedgap.instances.arrays import Array, Ints

AS_PRINTED = Planning(payoff="round", alloc="cost", keep=False, order="arrival", stop=True)
"""FIND_ALLOC as printed."""


def literal_dp(planner: Planner, around: Round) -> Ints:
    """Return the ``(q, h)`` GPUs that lines 1 to 23 give to every job of the queue: none."""
    shape = (around.jobs.size, around.used.size)
    return _branch(planner, around, 0, np.zeros(shape, np.int64), around.used)[0]


def _branch(planner: Planner, around: Round, index: int, placed: Ints, used: Ints) -> tuple[Ints, Ints]:
    """Return allocations and server state, as the recursion does."""
    gpus = planner.view.servers.gpus
    if index >= len(placed) or np.all(used >= gpus):
        return placed, used
    found, payoff = planner.find_alloc(replace(around, used=used), index)
    if payoff <= 0:
        return placed, used
    own = np.bincount(found[:, 1], found[:, 2], used.size).astype(np.int64)
    with_job = placed.copy()
    with_job[index] = own
    taken, after = _branch(planner, around, index + 1, with_job, used + own)
    skipped, before = _branch(planner, around, index + 1, placed, used)
    cost_taken = _cost(planner, used + own, taken)
    cost_skipped = _cost(planner, used, skipped)
    return (taken, after) if cost_taken < cost_skipped else (skipped, before)


def _cost(planner: Planner, used: Ints, placed: Ints) -> float:
    """``Σ_h Σ_r k(γ) w``, lines 18 and 19."""
    price: Array = planner.hosts.price[planner.hosts.first + used]
    return float((placed * price).sum())
