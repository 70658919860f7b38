"""Compiled loops of the search for a run: jobs are taken out of a schedule, and inserted again one after another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit

FULL = 1e-10
"""Fraction of a server's CPUs or memory by which sums of parts may exceed it."""

DONE = 1e-12
"""Fraction of a job's work that may be left because sums are rounded."""

VALUES = (1.0, 1.3, 2.0, 4.0)
"""What a round of work is worth to a job at most, as multiples of the time that it takes at the fastest rate."""

MOST_WEIGHT, PRICED = 1.2, 0.7
"""Largest weight of prices in a move, and how often they have one."""

BULKY, TAXED = 3.0, 0.3
"""Powers of ten over which the weight of bulk varies in a move, up to 1, and how often it has one."""

NEAR = 1
"""Rounds between the runs of two jobs that a move may take out together."""


class InsertedJobs(NamedTuple):
    """Jobs, and the ways in which they may run; times are in rounds.

    `start`, `work`, `kind`, `gang` and `fastest` ``(n,)`` are the first round, the work, the kind, the GPUs and the
    fastest rate of each job. The ways of each kind begin at `first` ``(K + 1,)``. A way has a GPU type `pool`, CPUs and
    memory of one GPU in `part` ``(q, 2)`` and work per round in `rate` ``(q,)``; its `cost` ``(T, q)`` is what a round
    of it costs at the prices of the bound. `bulk` ``(q,)`` is its part of all CPUs and memory of its type.
    """

    start: Ints
    work: Array
    kind: Ints
    gang: Ints
    fastest: Array
    first: Ints
    pool: Ints
    part: Array
    rate: Array
    bulk: Array
    cost: Array


class ServerRooms(NamedTuple):
    """What is free on servers: GPUs, CPUs and gigabytes ``(T, h, 3)``; the servers of GPU type i begin at ``first[i]``.

    `slack` ``(h, 2)`` is by how much sums of CPUs and memory may exceed a server.
    """

    first: Ints
    free: Array
    slack: Array


class RunPlans(NamedTuple):
    """Where and when jobs run. The entries of job j begin at ``base[j]``; the first ``used[j]`` are in use.

    An entry is a `round`, a `way`, and up to W servers, `host` ``(e, W)``, each with a number of GPUs, `gpus`
    ``(e, W)``. `end` ``(n,)`` are completion times in rounds; a job that is not inserted has an infinite one.
    """

    base: Ints
    used: Ints
    round: Ints
    way: Ints
    host: Ints
    gpus: Ints
    end: Array


@njit(cache=True)
def fits(rooms: ServerRooms, t: int, pool: int, part: Array, gang: int, host: Ints, gpus: Ints) -> bool:
    """Return whether a gang fits in round `t`, and write its servers and its GPUs there to `host` and `gpus`.

    It takes the server with the fewest free GPUs on which all of it fits; otherwise, it is split, and takes as many
    GPUs as it can on the servers with the most for it.
    """
    first, last = rooms.first[pool], rooms.first[pool + 1]
    host[:], gpus[:] = -1, 0
    room = np.zeros(last - first, np.int64)
    total, best, least = 0, -1, np.inf
    for h in range(first, last):
        free = rooms.free[t, h]
        most = int(free[0])
        for r in range(2):
            if part[r] > 0 and most > 0:
                most = min(most, int(max(free[1 + r] + rooms.slack[h, r], 0.0) / part[r]))
        room[h - first] = most
        total += most
        if most >= gang and free[0] < least:
            best, least = h, free[0]
    if best >= 0:
        host[0], gpus[0] = best, gang
        return True
    if total < gang:
        return False
    left, k = gang, 0
    while left > 0:
        h = int(np.argmax(room))
        if k == len(host):
            return False
        host[k], gpus[k] = first + h, min(left, room[h])
        left -= gpus[k]
        room[h] = 0
        k += 1
    return True


@njit(cache=True)
def hold(rooms: ServerRooms, t: int, part: Array, host: Ints, gpus: Ints, sign: int) -> None:
    """Take what a gang holds in a round from its servers (`sign` −1), or give it back (1)."""
    for k in range(len(host)):
        if host[k] < 0:
            break
        rooms.free[t, host[k], 0] += sign * gpus[k]
        for r in range(2):
            rooms.free[t, host[k], 1 + r] += sign * gpus[k] * part[r]


@njit(cache=True)
def move(jobs: InsertedJobs, rooms: ServerRooms, plans: RunPlans, j: int, sign: int) -> None:
    """Take a job with its plan out of the schedule (`sign` 1), or put it back (−1)."""
    for e in range(plans.base[j], plans.base[j] + plans.used[j]):
        hold(rooms, plans.round[e], jobs.part[plans.way[e]], plans.host[e], plans.gpus[e], sign)


@njit(cache=True)
def planned(
    jobs: InsertedJobs, rooms: ServerRooms, plans: RunPlans, j: int, value: float, weight: tuple[float, float]
) -> tuple[float, float]:
    """Plan a job in what is free; return its completion time, infinite if it has none, and what it pays.

    In each round, the job runs in the way whose work is worth most after paying, if that is positive. It pays the
    prices and for its bulk, each times its `weight`. A round of work at the fastest rate is worth `value`, and time
    that is left in the last round 1.
    """
    left, paid, e, worth = jobs.work[j], 0.0, plans.base[j], value / jobs.fastest[j]
    k, width = jobs.kind[j], plans.host.shape[1]
    host, gpus = np.empty(width, np.int64), np.empty(width, np.int64)
    plans.used[j] = 0
    for t in range(jobs.start[j], len(rooms.free)):
        if e == plans.base[j + 1]:
            return np.inf, paid
        best, way = 0.0, -1
        for q in range(jobs.first[k], jobs.first[k + 1]):
            dear = weight[0] * jobs.cost[t, q] + weight[1] * jobs.bulk[q]
            gain = worth * min(left, jobs.rate[q]) + max(0.0, 1.0 - left / jobs.rate[q]) - dear
            if gain > best and fits(rooms, t, jobs.pool[q], jobs.part[q], jobs.gang[j], host, gpus):
                best, way = gain, q
                plans.host[e], plans.gpus[e] = host, gpus
        if way < 0:
            continue
        plans.round[e], plans.way[e] = t, way
        paid += weight[0] * jobs.cost[t, way] + weight[1] * jobs.bulk[way]
        e += 1
        plans.used[j] += 1
        if left <= jobs.rate[way] + DONE * jobs.work[j]:
            return t + left / jobs.rate[way], paid
        left -= jobs.rate[way]
    return np.inf, paid


@njit(cache=True)
def copied(plans: RunPlans, j: int, to: RunPlans) -> None:
    """Copy the plan of a job."""
    a, b = plans.base[j], plans.base[j] + plans.used[j]
    to.used[j], to.end[j] = plans.used[j], plans.end[j]
    to.round[a:b], to.way[a:b] = plans.round[a:b], plans.way[a:b]
    to.host[a:b], to.gpus[a:b] = plans.host[a:b], plans.gpus[a:b]


@njit(cache=True)
def insert(
    jobs: InsertedJobs, rooms: ServerRooms, plans: RunPlans, spare: RunPlans, j: int, weight: tuple[float, float]
) -> float:
    """Insert a job by the best of several plans, after paying; return its completion time."""
    best = np.inf
    plans.used[j], plans.end[j] = 0, np.inf
    for value in VALUES:
        spare.end[j], paid = planned(jobs, rooms, spare, j, value, weight)
        if spare.end[j] + paid < best:
            best = spare.end[j] + paid
            copied(spare, j, plans)
        if weight[0] + weight[1] == 0.0:
            break
    move(jobs, rooms, plans, j, -1)
    return float(plans.end[j])


@njit(cache=True)
def together(plans: RunPlans, start: Ints, rng: np.random.Generator, most: int) -> Ints:
    """Return jobs for a move: one at random, and others that run at about the same time, in random order."""
    seed = rng.integers(0, len(start))
    near = np.flatnonzero((start <= plans.end[seed] + NEAR) & (plans.end >= start[seed] - NEAR))
    near = near[near != seed]
    count = min(len(near), int(rng.integers(1, most + 1)))
    for i in range(count):
        at = rng.integers(i, len(near))
        near[i], near[at] = near[at], near[i]
    chosen = np.append(near[:count], seed)
    for i in range(len(chosen)):
        at = rng.integers(i, len(chosen))
        chosen[i], chosen[at] = chosen[at], chosen[i]
    return chosen


@njit(cache=True)
def drawn(rng: np.random.Generator) -> tuple[float, float]:
    """Return how much prices and bulk weigh in a move: often nothing, so that jobs take what is fastest for them."""
    prices = MOST_WEIGHT * rng.random() if rng.random() < PRICED else 0.0
    bulk = 10.0 ** (BULKY * rng.random() - BULKY) if rng.random() < TAXED else 0.0
    return prices, bulk


@njit(cache=True)
def improve(
    jobs: InsertedJobs,
    rooms: ServerRooms,
    state: tuple[RunPlans, RunPlans, RunPlans, RunPlans],
    moves: int,
    most: int,
    heat: tuple[float, float],
    rng: np.random.Generator,
) -> None:
    """Take up to `most` jobs out and insert them again, `moves` times; worse schedules are accepted by annealing.

    `state` holds the plans of the current and of the best schedule, and room for plans. `heat` is the temperature of
    the first and of the last move, in rounds.
    """
    plans, best, before, spare = state
    n = len(jobs.start)
    value, least = plans.end.sum(), best.end.sum()
    for turn in range(moves):
        chosen = together(plans, jobs.start, rng, most)
        was = 0.0
        for j in chosen:
            was += plans.end[j]
            copied(plans, j, before)
            move(jobs, rooms, plans, j, 1)
        if rng.random() < 0.5:
            chosen = chosen[np.argsort(jobs.start[chosen] + jobs.work[chosen] / jobs.fastest[chosen])]
        weight, now = drawn(rng), 0.0
        for j in chosen:
            now += insert(jobs, rooms, plans, spare, j, weight)
        temperature = heat[0] + (heat[1] - heat[0]) * turn / moves
        if now <= was - temperature * np.log(max(rng.random(), 1e-300)):
            value += now - was
            if value < least - 1e-9:
                least = value
                for j in range(n):
                    copied(plans, j, best)
        else:
            for j in chosen:
                move(jobs, rooms, plans, j, 1)
                copied(before, j, plans)
                move(jobs, rooms, plans, j, -1)
