"""Algorithm 2 of Hadar, to be read beside the paper: with payoffs, as it must be meant, and as printed.

:func:`dp_allocation` and :func:`find_alloc` follow the printed lines. They compare payoffs where line 20 compares
costs, and go on to the next job where line 7 returns. What runs is compiled, keeps only the best states if a queue is
long, and lets running jobs keep their GPUs (:mod:`schedgap.heuristics.hadar.planning`); for short queues of waiting
jobs the two are tested to be equal. Servers have GPUs of one type here.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from schedgap.heuristics.hadar.planning import Planner, RoundToPlan
from schedgap.instances.arrays import ROUNDING, Array, Ints

Plan = tuple[float, dict[int, Ints]]
"""A total payoff, and the ``(h,)`` GPUs of each job that is scheduled, by its row in the queue."""


def dp_allocation(planner: Planner, around: RoundToPlan, queue: list[int], used: Ints) -> Plan:
    """Return the plan of largest total payoff for the jobs in `queue`, rows of `around`, with `used` GPUs taken."""
    if not queue or (used >= planner.view.servers.gpus).all():  # lines 1 to 3
        return 0.0, {}
    job, *later = queue  # line 4
    skipped = dp_allocation(planner, around, later, used)  # lines 16 and 17
    payoff, gpus = find_alloc(planner, around, job, used)  # line 6
    if payoff <= 0:  # lines 7 to 9, which drop all later jobs
        return skipped
    total, plan = dp_allocation(planner, around, later, used + gpus)  # lines 10 to 15
    taken = payoff + total, {job: gpus, **plan}
    return max(taken, skipped, key=lambda plan: plan[0])  # lines 18 to 23, which compare costs


def find_alloc(planner: Planner, around: RoundToPlan, row: int, used: Ints) -> tuple[float, Ints]:
    """Return the largest payoff of a job and the ``(h,)`` GPUs of that allocation; ``-inf`` if it fits nowhere."""
    view, how, job = planner.view, planner.how, int(around.jobs[row])
    rate, gang = view.workload.rates[job][view.servers.gpu_type], int(view.workload.gpus[job])
    price = planner.hosts.price[planner.hosts.first + used]
    best: tuple[float, Ints] = -math.inf, np.zeros_like(used)
    for slowest in sorted({x for x in rate.tolist() if x > 0}, reverse=True):  # line 25: descending throughput
        rounds = max(math.ceil(around.remaining[row] / (gang * slowest * view.slot_s) * (1 - ROUNDING)), 1)
        end = around.slot + rounds - int(view.arrival[job])
        worth = float(view.utilities.value(job, end * view.slot_s)) if around.slot + rounds <= view.slots else 0.0
        for packed in (True, False):  # lines 26 and 27
            free = np.where(rate >= slowest, view.servers.gpus - used, 0)
            gpus = _gathered(gang, free, price, rate, packed)
            if gpus.sum() == gang:
                more = np.count_nonzero(gpus) - 1
                cost = float(price @ gpus)  # line 28
                cost += more * (how.beta * cost / gang + how.communication)  # line 29: the communication
                payoff = worth - (rounds if how.payoff == "lifetime" else 1) * cost  # lines 30 and 31
                best = (payoff, gpus) if payoff > best[0] else best
    return best  # lines 32 to 35: the caller takes it if the payoff is positive


def _gathered(gang: int, free: Ints, price: Array, rate: Array, packed: bool) -> Ints:
    """Return `gang` GPUs by server, or all there are: most room first if `packed`, then cheapest, then fastest."""
    gpus = np.zeros_like(free)
    while (need := gang - int(gpus.sum())) and (left := free - gpus).any():
        room = np.minimum(left, need) if packed else np.minimum(left, 1)
        there = np.flatnonzero((gpus == 0) & (left > 0))
        h = min(there, key=lambda h: (-room[h], price[h], -rate[h]))
        gpus[h] = min(need, int(left[h]))
    return gpus


def literal_dp(planner: Planner, around: RoundToPlan) -> Ints:
    """Run lines 1 to 23 of Algorithm 2 as printed; return the ``(q, h)`` GPUs that jobs get, which are none.

    Line 20 keeps job j only if ``cost_Q < cost_{Q/j}``. Both sums run over the jobs
    placed before; the left one also includes the GPUs of j, at prices that j itself has raised. So the left side is
    never the smaller one.
    """
    shape = (around.jobs.size, around.used.size)
    return _branch(planner, around, 0, np.zeros(shape, np.int64), around.used)[0]


def _branch(planner: Planner, around: RoundToPlan, index: int, placed: Ints, used: Ints) -> tuple[Ints, Ints]:
    """Decide on job `index` and all later ones by the printed recursion.

    Returns the ``(q, h)`` GPUs of the jobs, and the GPUs taken on each server.
    """
    gpus = planner.view.servers.gpus
    if index >= len(placed) or np.all(used >= gpus):
        return placed, used
    entries, payoff = planner.find_alloc(replace(around, used=used), index)
    if payoff <= 0:
        return placed, used
    added = np.bincount(entries[:, 1], entries[:, 2], used.size).astype(np.int64)
    with_job = placed.copy()
    with_job[index] = added
    taken, after = _branch(planner, around, index + 1, with_job, used + added)
    skipped, before = _branch(planner, around, index + 1, placed, used)
    cost_taken = _cost(planner, used + added, taken)
    cost_skipped = _cost(planner, used, skipped)
    return (taken, after) if cost_taken < cost_skipped else (skipped, before)


def _cost(planner: Planner, used: Ints, placed: Ints) -> float:
    """Return ``Σ_h Σ_r k(γ) w``, the cost of the placed jobs at current prices (lines 18 and 19)."""
    price: Array = planner.hosts.price[planner.hosts.first + used]
    return float((placed * price).sum())
