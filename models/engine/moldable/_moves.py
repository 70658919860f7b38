"""Compiled moves of :mod:`.annealing`: remove the runs of some jobs from servers, and insert them again at least cost.

Shapes: ``n`` jobs with ``o`` options in total, ``h`` servers, ``R`` resources, ``T`` slots; see also
:mod:`schedgap.instances.moldable._kernels`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.clock import lean, njit
from schedgap.instances.moldable._kernels import (
    BestRun,
    JobOptions,
    PlacementTables,
    SearchGoal,
    ServerArrays,
    WorkerWindow,
    holds,
    place,
    recount,
    search,
    start,
    survey,
)

ANYWHERE = 0.5
"""Fraction of the moves that remove runs at some time from all servers instead of from a single one."""

WITHOUT = 0.5
"""Fraction of the moves that begin with a job that has no run, if there is one."""


class AnnealedJobs(NamedTuple):
    """The options of all jobs (job j has ``first[j] … first[j + 1] − 1``), their earliest starts, and costs of ends.

    ``late (n, T + 1)`` is the cost of each end, and ``none (n,)`` the cost of a job without a run. Insertion multiplies
    prices by one of ``F`` factors, which is the same as dividing the costs of ends: ``asked (F, n, T + 1)``. The total
    cost must then stay below ``most (F, n)``. Each of the ``rank (k, n)`` is an order of insertion. There are no
    `extra` ``(0, 0)`` costs of options.
    """

    first: Ints
    slots: Ints
    worker_type: Ints
    ps_type: Ints
    together: Bools
    workers: Ints
    earliest: Ints
    late: Array
    none: Array
    asked: Array
    most: Array
    rank: Array
    extra: Array


class RunArrays(NamedTuple):
    """The run of each job ``(n,)``: types (−1: none), begin, end, host of its ``ps`` parameter servers, and cost.

    ``workers (n, h)`` are its workers by server. A job without run has worker type −1.
    """

    worker_type: Ints
    ps_type: Ints
    begin: Ints
    end: Ints
    host: Ints
    ps: Ints
    cost: Array
    workers: Ints


class SearchServers(NamedTuple):
    """The servers, the tables of the search for a run, and the run that it found.

    ``able (M, h)`` says which servers can run which workers. ``ends (T + 1,)`` counts the runs that end right before
    each slot: other runs may begin or end there. ``changed (2, h)`` is the range of slots whose free capacity has
    changed since workers were last counted. Most slots change twice in a move, so counting is delayed.
    """

    servers: ServerArrays
    able: Bools
    tables: PlacementTables
    window: WorkerWindow
    best: BestRun
    stops: Bools
    ends: Ints
    changed: Ints


@lean
def book(runs: RunArrays, job: int, sign: int, cluster: SearchServers) -> None:
    """Reserve the resources of a job's run, or release them with `sign` −1."""
    servers, m, p = cluster.servers, runs.worker_type[job], runs.ps_type[job]
    begin, end = runs.begin[job], runs.end[job]
    for h in range(servers.copies.size):
        workers, ps = runs.workers[job, h], runs.ps[job] if runs.host[job] == h else 0
        if workers + ps > 0:
            for r in range(servers.capacity.shape[1]):
                use = workers * servers.worker[m, r]
                if ps > 0:
                    use += ps * servers.ps[p, r]
                for t in range(begin, end if use > 0 else begin):
                    cluster.tables.free[t, h, r] -= sign * use
            first, last = cluster.changed[0, h], cluster.changed[1, h]
            cluster.changed[0, h] = min(first, begin) if first < last else begin
            cluster.changed[1, h] = max(last, end)
    cluster.ends[end] += sign
    cluster.stops[end] = cluster.ends[end] > 0


@lean
def settle(cluster: SearchServers) -> None:
    """Count again how many workers fit wherever free capacity has changed."""
    for h in range(cluster.servers.copies.size):
        first, last = cluster.changed[0, h], cluster.changed[1, h]
        if first < last:
            recount(h, first, last, cluster.servers, cluster.able, cluster.tables)
            cluster.changed[:, h] = 0


@lean
def remove(runs: RunArrays, job: int, jobs: AnnealedJobs, cluster: SearchServers) -> None:
    """Remove a job's run, if it has one."""
    if runs.worker_type[job] >= 0:
        book(runs, job, -1, cluster)
        runs.worker_type[job] = -1
        runs.cost[job] = jobs.none[job]


@lean
def insert(runs: RunArrays, job: int, way: int, jobs: AnnealedJobs, cluster: SearchServers) -> None:
    """Give a job the run of least total cost within free capacity, if there is one."""
    a, z = jobs.first[job], jobs.first[job + 1]
    if a == z:
        return
    kinds = jobs.slots[a:z], jobs.worker_type[a:z], jobs.ps_type[a:z]
    choices = JobOptions(kinds[0], kinds[1], kinds[2], jobs.together[a:z], jobs.workers[a:z])
    late = jobs.asked[way, job]
    goal = SearchGoal(jobs.earliest[job], late.size - 1, late, cluster.stops, jobs.most[way, job], 0, jobs.extra)
    found = cluster.best.where
    settle(cluster)
    search(choices, goal, cluster.servers, cluster.tables, cluster.window, cluster.best)
    if found[0] >= 0:
        place(choices, cluster.servers, cluster.tables, cluster.window, cluster.best, runs.workers[job])
        runs.worker_type[job], runs.ps_type[job] = choices.worker_type[found[0]], choices.ps_type[found[0]]
        runs.begin[job], runs.end[job] = found[1], found[2]
        runs.host[job], runs.ps[job] = found[3], found[5]
        runs.cost[job] = jobs.late[job, found[2]]
        book(runs, job, 1, cluster)


@lean
def put(runs: RunArrays, job: int, known: RunArrays, cluster: SearchServers) -> None:
    """Give a job its run in `known`, if there is one and it fits."""
    m, p = known.worker_type[job], known.ps_type[job]
    if m < 0:
        return
    settle(cluster)
    start(cluster.window, cluster.tables, known.begin[job], known.end[job])
    survey(cluster.window, cluster.tables)
    for h in range(cluster.servers.copies.size):
        workers, ps = known.workers[job, h], known.ps[job] if known.host[job] == h else 0
        if workers + ps > 0 and not holds(cluster.window, cluster.servers, m, p, h, workers, ps):
            return
    copy(known, job, runs, job)
    book(runs, job, 1, cluster)


@lean
def load(runs: RunArrays, known: RunArrays, order: Ints, jobs: AnnealedJobs, cluster: SearchServers) -> None:
    """Replace all runs by the runs in `known`, in the given order, without those that do not fit."""
    for job in range(runs.begin.size):
        remove(runs, job, jobs, cluster)
    for r in range(cluster.servers.capacity.shape[1]):
        for h in range(cluster.servers.copies.size):
            cluster.tables.free[:, h, r] = cluster.servers.capacity[h, r]  # removes accumulated rounding errors
    cluster.changed[0], cluster.changed[1] = 0, len(cluster.tables.free)
    for job in order:
        put(runs, job, known, cluster)


@lean
def complete(runs: RunArrays, order: Ints, ways: Ints, jobs: AnnealedJobs, cluster: SearchServers) -> None:
    """Insert the jobs that have no run, in the given order, at prices times their factors number `ways` ``(n,)``."""
    for job in order:
        if runs.worker_type[job] < 0:
            insert(runs, job, ways[job], jobs, cluster)


@lean
def copy(source: RunArrays, i: int, target: RunArrays, j: int) -> None:
    """Copy a run."""
    target.worker_type[j], target.ps_type[j] = source.worker_type[i], source.ps_type[i]
    target.begin[j], target.end[j] = source.begin[i], source.end[i]
    target.host[j], target.ps[j], target.cost[j] = source.host[i], source.ps[i], source.cost[i]
    for h in range(source.workers.shape[1]):
        target.workers[j, h] = source.workers[i, h]


@njit(cache=True)
def blank(runs: RunArrays) -> RunArrays:
    """Return arrays for as many runs."""
    n, h = runs.workers.shape
    whole = np.empty((6, n), np.int64)
    return RunArrays(
        whole[0], whole[1], whole[2], whole[3], whole[4], whole[5], np.empty(n), np.empty((n, h), np.int64)
    )


@njit(cache=True)
def ruin(rng: Generator, runs: RunArrays, jobs: AnnealedJobs, chosen: Ints, near: Ints) -> int:
    """Choose the jobs that a move removes, and return their number: a random job, and some that run when it may start.

    The random job is often one without a run.
    """
    n, end = runs.begin.size, jobs.late.shape[1] - 1
    without = np.flatnonzero(runs.worker_type < 0)
    some = without.size > 0 and rng.random() < WITHOUT
    job = int(without[rng.integers(0, without.size)]) if some else int(rng.integers(0, n))
    chosen[0] = job
    wanted = rng.integers(1, chosen.size + 1)
    first = jobs.earliest[job]
    length = jobs.slots[jobs.first[job]] if jobs.first[job] < jobs.first[job + 1] else 1
    last = runs.begin[job]
    if runs.worker_type[job] < 0:
        last = first
        while last + length < end and jobs.late[job, last + length + 1] < np.inf:
            last += 1
    begin = rng.integers(first, max(last, first) + 1)
    server = -1 if rng.random() < ANYWHERE else int(rng.integers(0, runs.workers.shape[1]))
    count = 0
    for i in range(n):
        there = runs.worker_type[i] >= 0 and runs.begin[i] <= begin + length and runs.end[i] >= begin
        on = server < 0 or runs.workers[i, server] > 0 or (runs.ps[i] > 0 and runs.host[i] == server)
        if there and on and i != job:
            near[count] = i
            count += 1
    found = 1
    while found < wanted and count > 0:
        at = int(rng.integers(0, count))
        chosen[found] = near[at]
        found += 1
        count -= 1
        near[at] = near[count]
    return found


@njit(cache=True)
def ordered(rng: Generator, chosen: Ints, rank: Array) -> Ints:
    """Return the chosen jobs in random order, or approximately in the order of a random row of `rank`."""
    way = int(rng.integers(0, 2 * len(rank)))
    key = rng.random(chosen.size)
    if way < len(rank):
        key = rank[way][chosen] * (0.7 + 0.6 * key)
    return chosen[np.argsort(key)]


@njit(cache=True)
def anneal(
    rng: Generator,
    moves: int,
    temperature: float,
    ruined: int,
    runs: RunArrays,
    best: RunArrays,
    jobs: AnnealedJobs,
    cluster: SearchServers,
) -> int:
    """Ruin and recreate for a number of moves, accepting by the Metropolis rule; return the number of insertions.

    `best` holds the cheapest runs so far and is updated.
    """
    n, h = runs.workers.shape
    some, near = np.empty(min(ruined, n), np.int64), np.empty(n, np.int64)
    k = some.size
    whole = np.empty((6, k), np.int64)
    before = RunArrays(
        whole[0], whole[1], whole[2], whole[3], whole[4], whole[5], np.empty(k), np.empty((k, h), np.int64)
    )
    total, least, inserted = runs.cost.sum(), best.cost.sum(), 0
    for _ in range(moves):
        chosen = some[: ruin(rng, runs, jobs, some, near)]
        old = runs.cost[chosen].sum()
        for i in range(chosen.size):
            copy(runs, chosen[i], before, i)
            remove(runs, chosen[i], jobs, cluster)
        way = int(rng.integers(0, len(jobs.asked)))
        for job in ordered(rng, chosen, jobs.rank):
            insert(runs, job, way, jobs, cluster)
        inserted += chosen.size
        change = runs.cost[chosen].sum() - old
        if change <= -temperature * np.log(1 - rng.random()):
            total += change
            if total < least - 1e-9 * abs(least):
                least = total
                for i in range(n):
                    copy(runs, i, best, i)
            continue
        for job in chosen:
            remove(runs, job, jobs, cluster)
        for i in range(chosen.size):
            copy(before, i, runs, chosen[i])
            if runs.worker_type[chosen[i]] >= 0:
                book(runs, chosen[i], 1, cluster)
    return inserted


@njit(cache=True)
def arrange(
    rng: Generator,
    change: tuple[int, float, float],
    order: Ints,
    ways: Ints,
    runs: RunArrays,
    best: RunArrays,
    jobs: AnnealedJobs,
    cluster: SearchServers,
) -> int:
    """Change a list `order` ``(n,)`` of all jobs, and their factors on prices, numbers `ways` ``(n,)``.

    The most jobs that change, next to each other in the list, the largest standard deviation of the noise on their
    positions, and the largest share of them whose factor changes are given by `change`. All jobs from there on are
    inserted again; their number is returned. The change is kept if the total cost is not larger. `runs` are those of
    the list, and `best` holds the cheapest runs so far; all of these are updated.
    """
    span, noise, share = change
    before, total, first = blank(runs), runs.cost.sum(), int(rng.integers(0, order.size))
    earlier, former = order[first : first + span].copy(), ways.copy()
    far, often = noise * rng.random(), share * rng.random()
    order[first : first + span] = earlier[np.argsort(np.arange(earlier.size) + far * rng.standard_normal(earlier.size))]
    for job in earlier:
        if rng.random() < often:
            ways[job] = rng.integers(0, len(jobs.asked))
    again = order[first:].copy()
    for job in again:
        copy(runs, job, before, job)
        remove(runs, job, jobs, cluster)
    complete(runs, again, ways, jobs, cluster)
    if runs.cost.sum() <= total:
        if runs.cost.sum() < best.cost.sum():
            for job in range(order.size):
                copy(runs, job, best, job)
        return again.size
    order[first : first + span], ways[:] = earlier, former
    for job in again:
        remove(runs, job, jobs, cluster)
    for job in again:
        copy(before, job, runs, job)
        if runs.worker_type[job] >= 0:
            book(runs, job, 1, cluster)
    return again.size
