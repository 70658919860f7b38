"""Compiled loops of :mod:`.online`: they search all starts and options of one job and choose its servers.

Shapes: ``h`` servers, ``R`` resources (worker types, then the PS type), ``T`` slots, ``o`` options of the job.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import SLACK, Array, Bools, Ints
from schedgap.instances.clock import njit

TIE = 1e-9
"""Payoffs that differ by at most this fraction of the largest utility count as equal."""

NONE = -1
SPREAD, COLOCATED = 0, 1


class AdmissionOptions(NamedTuple):
    """Options of a job: slots (ascending), worker type, number of workers, and whether on one server, ``(o,)`` each."""

    slots: Ints
    worker_type: Ints
    workers: Ints
    together: Bools


class AdmissionGoal(NamedTuple):
    """Limits and utilities of one job: its `first` start, its `last` end, and the utility of each end, `worth`.

    `worth` has shape ``(T + 1,)``. `share` ``(M,)`` is the number b_w/b_p of PSs that one worker on another server
    needs, by worker type.
    """

    first: int
    last: int
    worth: Array
    share: Array


class BestSchedules(NamedTuple):
    """The best schedule found so far: entry 0 of each array is over several servers, entry 1 on one server.

    The option is :data:`NONE` where no schedule was found.
    """

    payoff: Array
    cost: Array
    option: Ints
    start: Ints
    host: Ints
    ps: Ints


def nothing() -> BestSchedules:
    """Return a :class:`BestSchedules` without a schedule of either layout."""
    return BestSchedules(np.zeros(2), np.zeros(2), *(np.full(2, NONE) for _ in range(4)))


@njit(cache=True)
def search(choices: AdmissionOptions, goal: AdmissionGoal, free: Ints, paid: Array, best: BestSchedules) -> None:
    """Find a job's schedules of highest payoff in the `free` resources ``(h, R, T)``; write them to an empty `best`.

    `paid` ``(R, T + 1)`` sums the prices of one unit up to each slot. Of schedules with equal payoffs, the one with the
    earliest end wins, then the one with the fewest worker slots, then the fewest PS slots, then the first one tried.
    """
    tie = TIE * goal.worth.max()
    least: Ints = np.zeros((free.shape[0], free.shape[1]), np.int64)
    for start in range(goal.first, goal.last):
        end = start
        for option in range(choices.slots.size):
            if start + choices.slots[option] > goal.last:
                break
            while end < start + choices.slots[option]:
                for h in range(least.shape[0]):
                    for r in range(least.shape[1]):
                        here = free[h, r, end]
                        least[h, r] = here if end == start else min(least[h, r], here)
                end += 1
            consider(choices, option, start, goal, least, paid, tie, best)


@njit(cache=True)
def consider(
    choices: AdmissionOptions,
    option: int,
    start: int,
    goal: AdmissionGoal,
    least: Ints,
    paid: Array,
    tie: float,
    best: BestSchedules,
) -> None:
    """Place an option at a start, and write it to `best` if no schedule of the same layout found so far beats it.

    `least` ``(h, R)`` counts the resources that are free during the whole schedule.
    """
    m, number, end = choices.worker_type[option], choices.workers[option], start + choices.slots[option]
    layout = COLOCATED if choices.together[option] else SPREAD
    servers = least.shape[1] - 1
    worker_cost = number * (paid[m, end] - paid[m, start])
    ps_cost = paid[servers, end] - paid[servers, start]
    if not better(goal.worth[end] - worker_cost - ps_cost, choices, option, start, 1, tie, best, layout):
        return
    if layout == COLOCATED:
        host, ps = one_server(least, m, number), 1
    else:
        host, ps = several_servers(least, m, number, goal.share[m])
    if host == NONE:
        return
    cost = worker_cost + ps * ps_cost
    if better(goal.worth[end] - cost, choices, option, start, ps, tie, best, layout):
        best.payoff[layout], best.cost[layout] = goal.worth[end] - cost, cost
        best.option[layout], best.start[layout] = option, start
        best.host[layout], best.ps[layout] = host, ps


@njit(cache=True)
def better(
    payoff: float,
    choices: AdmissionOptions,
    option: int,
    start: int,
    ps: int,
    tie: float,
    best: BestSchedules,
    layout: int,
) -> bool:
    """Return whether a schedule beats the best one found so far for its layout."""
    other = best.option[layout]
    if other == NONE or payoff > best.payoff[layout] + tie:
        return True
    if payoff < best.payoff[layout] - tie:
        return False
    slots, others = choices.slots[option], choices.slots[other]
    mine = (start + slots, slots * choices.workers[option], slots * ps)
    return mine < (best.start[layout] + others, others * choices.workers[other], others * best.ps[layout])


@njit(cache=True)
def one_server(least: Ints, m: int, number: int) -> int:
    """Return the first server with room for all workers and a PS (COST_C), :data:`NONE` if there is none."""
    for h in range(least.shape[0]):
        if least[h, m] >= number and least[h, -1] >= 1:
            return h
    return NONE


@njit(cache=True)
def several_servers(least: Ints, m: int, number: int, share: float) -> tuple[int, int]:
    """Choose the server of a spread job's PSs so that it needs the fewest (COST_D); return it and the number of PSs.

    Only workers on other servers need PSs. Ties go to the emptiest server (most room for workers, then for PSs), then
    to the first. The server is :data:`NONE` if there is none.
    """
    total = 0
    for h in range(least.shape[0]):
        total += min(number - 1, least[h, m])
    host, fewest = NONE, 0
    if total < number:
        return host, fewest
    for h in range(least.shape[0]):
        ps = int(np.ceil((number - min(number - 1, least[h, m])) * share * (1 - SLACK)))
        if least[h, -1] < ps:
            continue
        emptier = host != NONE and (least[h, m], least[h, -1]) > (least[host, m], least[host, -1])
        if host == NONE or ps < fewest or (ps == fewest and emptier):
            host, fewest = h, ps
    return host, fewest
