r"""The dual solution of Theorem 2's proof for one run, which shows the ratio ``2α`` of that run or does not.

The proof follows Algorithm 1 job by job. A job that is scheduled adds its utility to the objective P of P2, and its
payoff plus the rise of the prices (5) to the objective D of P3. It concludes ``P ≥ (D − D_0)/α``, hence ``OPT ≤ 2αP``.
Three of its steps can fail:

*What is credited is earned.* A job adds its utility when it is scheduled. Algorithm 1 as printed plans all jobs anew in
each round, so that a newcomer can preempt it and it earns nothing; what it added stays in the sum. Without preemption
(``mode="incremental"``), every job that starts completes.

*Steps are small.* Lemma 3 holds for the derivative of the price. The paper goes on to differences, since "the resource
demand of a job is expected to be less than the capacity". A gang that fills a server takes the price from ``U_min`` to
``U_max`` at once, and pays ``U_min``.

*Payoffs are the largest.* (3a) wants the best of all schedules, at the prices of their slots. FIND_ALLOC knows those
that start in this round and keep their GPUs, and charges the price of this round for all of them. A job of n slots is
refused on a server that is free from the next slot on, where one slot costs 1/n of its utility. So steps may be as
small as they like: 60 jobs of two slots keep 60 jobs of 150 slots from as many GPUs, and the ratio is n/2 or so, where
α grows as the logarithm of n (``tests/test_prices.py``).

None of this matters to weak duality: at any prices, P3's objective is at least OPT if each job's payoff is that of its
best schedule. :func:`dual_objective` takes the prices (5) at the loads at the end of the run, and what is at least the
largest payoff of each job. Where that is at most ``2αP``, the run is within the ratio, whatever else happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush, heappushpop

import numpy as np

from schedgap.heuristics.duals import PriceRun, Purchase, follow
from schedgap.heuristics.hadar.prices import ExtremePrices, guarantee, prices
from schedgap.heuristics.registry import Guarantee
from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.views.hadar import HadarSchedule, HadarView


def shown(view: HadarView, schedule: HadarSchedule) -> Guarantee:
    """Return the ratio ``2α`` of Theorem 2 if the proof's dual shows it for this run; else it has no factor."""
    promised, reached = guarantee(view), earned(view, schedule)
    if promised.factor is None:
        return promised
    most = dual_objective(view, loads(view, schedule), prices(view))
    if most <= promised.factor * reached:
        return promised
    return Guarantee(f"none shown: dual {most / reached:.3g} P" if reached else "none shown: no job completes")


def steps(view: HadarView, schedule: HadarSchedule, *, u_min: float = 1.0, u_max: float = 1.0) -> PriceRun:
    """Return the steps of a schedule: jobs by their first slot, then by index, at the prices (5) of the run's jobs.

    A job takes all GPUs that it ever holds in its step. The utility of a job that is preempted and never completes is
    not in it: such a job does not appear in a schedule.
    """
    hosts, extremes = view.servers, prices(view).believed(u_min, u_max)
    slot, gpus = np.arange(view.slots), np.maximum(hosts.gpus, 1)

    def price(cells: Ints, used: Array) -> Array:
        server = cells // view.slots
        return extremes.price(hosts.gpu_type[server], used.astype(np.int64), gpus[server])

    def place(cell: int) -> str:
        server, slot = divmod(cell, view.slots)
        return f"server {hosts.names[server]}, slot {slot}"

    capacity = np.repeat(hosts.gpus.astype(float), view.slots)
    found, start, used = follow(purchases(view, schedule), capacity, price)
    dear = (capacity * price(np.arange(capacity.size), used)).reshape(-1, view.slots)
    rows = np.zeros((len(view.capacity), slot.size))
    np.add.at(rows, hosts.gpu_type, dear)
    rows /= np.maximum(view.capacity, 1)[:, None]
    promised = guarantee(view)
    ratio = extremes.alpha if promised.factor and u_min == u_max == 1.0 else None
    return PriceRun(found, start, extremes.alpha, ratio, "Theorem 2" if ratio else "", rows, place)


def purchases(view: HadarView, schedule: HadarSchedule) -> Iterator[Purchase]:
    """Yield what each job gets, by first slot, then by index; a cell is a server in a slot."""
    begin = np.full(view.size, view.slots)
    np.minimum.at(begin, schedule.job, schedule.slot)
    order = np.argsort(schedule.job, kind="stable")
    first = np.searchsorted(schedule.job[order], np.arange(view.size + 1))
    for job in np.argsort(begin, kind="stable")[: np.count_nonzero(np.diff(first))].tolist():
        mine = order[first[job] : first[job + 1]]
        slots = int(schedule.slot[mine].max() - view.arrival[job]) + 1
        worth = float(view.utilities.value(job, slots * view.slot_s))
        yield Purchase(
            job, worth, schedule.server[mine] * view.slots + schedule.slot[mine], schedule.gpus[mine].astype(float)
        )


def earned(view: HadarView, schedule: HadarSchedule) -> float:
    """Return the total utility P of the jobs that a schedule completes."""
    last = np.full(view.size, -1)
    np.maximum.at(last, schedule.job, schedule.slot)
    done = np.flatnonzero(last >= 0)
    return float(view.utilities.value(done, (last[done] - view.arrival[done] + 1) * view.slot_s).sum())


def loads(view: HadarView, schedule: HadarSchedule) -> Ints:
    """Return the ``(T, h)`` GPUs of each server that a schedule uses in each slot."""
    used = np.zeros((view.slots, view.servers.size), np.int64)
    np.add.at(used, (schedule.slot, schedule.server), schedule.gpus)
    return used


def dual_objective(view: HadarView, used: Ints, extremes: ExtremePrices) -> float:
    """Return what P3's objective (3) is at most, at the prices (5) of the loads `used` ``(T, h)``; OPT is not above it.

    A job pays at least what its work costs if every slot does all that the fastest GPUs can, at the least price per
    iteration of the slot. This is exact for jobs that run on one type and fit on one server.
    """
    hosts = view.servers
    price = extremes.price(hosts.gpu_type, used, np.maximum(hosts.gpus, 1))
    least = np.full((view.slots, len(view.capacity)), np.inf)
    for kind, there in enumerate(hosts.with_gpus(len(view.capacity))):
        if len(there):
            least[:, kind] = price[:, there].min(axis=1)
    payoffs = sum(_payoff(view, job, least) for job in view.possible)
    return float(payoffs + (price @ hosts.gpus).sum()) * (1 + ROUNDING)


def _payoff(view: HadarView, job: int, least: Array) -> float:
    """Return what the largest payoff of a job is at most, 0 or more, at the `least` ``(T, k)`` prices by type."""
    progress = view.progress[job]
    able = (progress > 0) & (view.capacity > 0)
    most, work = float(progress[able].max()), float(view.workload.work[job])
    needed = work / most * (1 - ROUNDING)
    if able.sum() == 1:
        needed = float(view.rounds(np.array([job]), np.array([work]))[0, able][0])
    whole, begin = int(needed), int(view.arrival[job])
    part = needed - whole
    cost = (view.workload.gpus[job] * least[begin:, able] / progress[able]).min(axis=1) * most
    worth = view.utility(job)[begin:]
    # The cheapest slots so far are in a heap with the dearest one first; only a part of that one may be needed.
    chosen: list[float] = []
    paid, best = 0.0, 0.0
    size = whole + (part > 0)
    for slot, asked in enumerate(cost.tolist()):
        if len(chosen) < size:
            heappush(chosen, -asked)
            paid += asked
        else:
            paid += asked + heappushpop(chosen, -asked)
        if len(chosen) == size:
            dearest = -chosen[0]
            best = max(best, float(worth[slot]) - (paid - (1 - part) * dearest if part else paid))
    return best
