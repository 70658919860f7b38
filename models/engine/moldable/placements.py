"""Enumeration of all schedules of a tiny instance (every option, start and placement) for the ILPs over schedules.

For larger instances, the number of schedules is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from schedgap.instances.arrays import SLACK, Array, Bools, Ints
from schedgap.instances.errors import TooManyError
from schedgap.instances.moldable import Machines, RunOptions, Runs
from schedgap.models.engine.moldable.jobs import MoldableJobs

MOST_SCHEDULES = 10_000
"""Largest total number of schedules that are enumerated."""

MOST_PLACEMENTS = 20_000
"""Largest number of pairs of option and placement that are examined; this many take one or two seconds."""

MOST_HELD = 150_000
"""Largest total number of servers times slots that enumerated schedules hold; Pyomo takes ten seconds for this many."""

MOST_STARTS = 1_000_000
"""Largest number of possible start slots of an option, since starts are examined one by one."""

MOST_SERVERS = 500
"""Largest number of servers for which schedules are enumerated, since the recursion is one level per server."""

Placement = tuple[tuple[int, int, int], ...]
"""For each server used: its number, workers and parameter servers."""

Wanted = Callable[[int, Placement, Ints], Bools]
"""``wanted(option, placement, starts)`` returns which of these schedules are kept."""


def placements(m: Machines, worker_type: int, ps_type: int, together: bool, workers: int) -> Iterator[Placement]:
    """Yield every minimal placement on empty servers: one host, with just enough PSs to serve the workers elsewhere.

    The PS type is −1 for ring all-reduce.
    """
    free = m.capacity * (1 + SLACK)
    e, z = m.worker[worker_type], m.ps[ps_type] if ps_type >= 0 else np.zeros(len(m.resources))
    room = m.room[worker_type].tolist()
    if together:
        fits = (workers * e + z <= free).all(axis=1) & m.able[worker_type]
        yield from (((h, workers, int(ps_type >= 0)),) for h in np.flatnonzero(fits).tolist())
        return
    if ps_type < 0:
        for split in _splits(workers, room):
            if np.count_nonzero(split) > 1:
                yield tuple((h, n, 0) for h, n in enumerate(split) if n)
        return
    ratio = m.worker_bandwidth[worker_type] / m.ps_bandwidth[ps_type] * (1 - SLACK)
    for host in range(m.size):
        for local in range(min(room[host], workers - 1) + 1):
            servers = max(1, math.ceil((workers - local) * ratio))
            if (local * e + servers * z <= free[host]).all():
                for split in _splits(workers - local, [*room[:host], 0, *room[host + 1 :]]):
                    there = ((h, n, 0) for h, n in enumerate(split) if n)
                    yield ((host, local, servers), *there)


def _splits(number: int, room: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield every way to distribute a number of workers over servers with the given room."""
    if not room:
        if number == 0:
            yield ()
        return
    if number > sum(room):
        return
    for here in range(min(number, room[0]) + 1):
        for rest in _splits(number - here, room[1:]):
            yield (here, *rest)


def starts(options: RunOptions, earliest: Ints, end: Ints | int) -> Ints:
    """Return ``(o,)`` the number of slots in which each option can start.

    Jobs run from their slots `earliest` ``(n,)`` on, and complete by the beginning of slot `end`, ``(n,)`` or one slot
    for all jobs.
    """
    latest = np.broadcast_to(end, earliest.shape)
    return np.asarray(np.maximum((latest - earliest)[options.job] - options.slots + 1, 0))


def schedules(
    machines: Machines,
    options: RunOptions,
    earliest: Ints,
    end: Ints | int,
    wanted: Wanted | None = None,
    times: int = 1,
) -> Runs:
    """Return all schedules of the jobs between `earliest` and `end` (see :func:`starts`), as the runs of one decision.

    A schedule runs on one server, or has all of its parameter servers on one; some optimum consists of such schedules
    only. Those that are not `wanted` are left out.

    Raises
    ------
    TooManyError
        If there are too many schedules: `times` as many as :data:`MOST_SCHEDULES` and the other limits.
    """
    option: list[int] = []
    start: list[int] = []
    entries: list[tuple[int, int, int, int]] = []
    for i, begins, placement in _listed(machines, options, earliest, starts(options, earliest, end), wanted, times):
        for begin in begins.tolist():
            entries += [(len(option), *entry) for entry in placement]
            option.append(i)
            start.append(begin)
    run, server, workers, ps = np.array(entries, np.int64).reshape(-1, 4).T
    return Runs(
        job=options.job[option],
        start=np.array(start, np.int64),
        slots=options.slots[option],
        worker_type=options.worker_type[option],
        ps_type=options.ps_type[option],
        run=run,
        server=server,
        workers=workers,
        ps=ps,
    )


def _listed(
    m: Machines, o: RunOptions, earliest: Ints, count: Ints, wanted: Wanted | None, times: int
) -> list[tuple[int, Ints, Placement]]:
    """Return all schedules, grouped by option and placement: the option, its starts, and the placement."""
    if m.size > MOST_SERVERS:
        raise TooManyError(f"schedules on more than {MOST_SERVERS} servers")
    listed: list[tuple[int, Ints, Placement]] = []
    total = held = examined = 0
    if count.max(initial=0) > MOST_STARTS:
        raise TooManyError(f"a job with more than {MOST_STARTS:,} slots to start in")
    for i, number in enumerate(count.tolist()):
        kind = int(o.worker_type[i]), int(o.ps_type[i]), bool(o.together[i]), int(o.workers[i])
        for placement in placements(m, *kind) if number else ():
            begin = earliest[o.job[i]] + np.arange(number)
            begin = begin[wanted(i, placement, begin)] if wanted else begin
            examined += 1
            total += len(begin)
            held += len(begin) * int(o.slots[i]) * len(placement)
            if total > times * MOST_SCHEDULES:
                raise TooManyError(f"more than {times * MOST_SCHEDULES:,} schedules")
            if wanted and examined > times * MOST_PLACEMENTS:
                raise TooManyError(f"more than {times * MOST_PLACEMENTS:,} pairs of option and placement")
            listed.append((i, begin, placement))
    if held > times * MOST_HELD:
        raise TooManyError(f"schedules that hold more than {times * MOST_HELD:,} servers times slots")
    return listed


def moldable_schedules(jobs: MoldableJobs) -> tuple[float, bool]:
    """Return the base-10 logarithm of the number of schedules (option, start and placement on real servers), exactly.

    Dominated options are left out, as in :func:`schedules`.
    """
    finite = np.isfinite(jobs.late)
    end = np.where(finite.any(axis=1), jobs.late.shape[1] - 1 - finite[:, ::-1].argmax(axis=1), 0)
    times = starts(jobs.options, jobs.earliest, end).astype(float)
    o = jobs.options
    kinds, kind = np.unique(
        np.column_stack((o.worker_type, o.ps_type, o.together, o.workers)), axis=0, return_inverse=True
    )
    total = np.zeros(len(kinds))
    types = kinds[:, :3].astype(np.int64)
    for m, p, together in np.unique(types, axis=0).tolist():
        members = np.flatnonzero((types == (m, p, together)).all(axis=1))
        total[members] = _count(jobs.machines, m, p, bool(together), kinds[members, 3])
    number = float(times @ total[kind.ravel()])
    return (math.log10(number) if number > 0 else -math.inf), False


def _count(m: Machines, worker_type: int, ps_type: int, together: bool, workers: Ints) -> Array:
    """Return the number of placements of each number of workers, as :func:`placements` yields them."""
    if not workers.size:
        return np.zeros(0)
    free, e = m.capacity * (1 + SLACK), m.worker[worker_type]
    z = m.ps[ps_type] if ps_type >= 0 else np.zeros(len(m.resources))
    room = m.room[worker_type]
    if together:
        fits = (workers[:, None, None] * e + z <= free).all(axis=2) & m.able[worker_type]
        return np.asarray(fits.sum(axis=1).astype(float))
    most = int(workers.max())
    if ps_type < 0:
        ways = _ways(room, most)[workers]
        return np.asarray(ways - (room >= workers[:, None]).sum(axis=1))
    ratio = m.worker_bandwidth[worker_type] / m.ps_bandwidth[ps_type] * (1 - SLACK)
    counts = np.zeros(len(workers))
    # Equal hosts have equal numbers of placements.
    hosts, count = np.unique(np.column_stack((m.capacity, room)), axis=0, return_counts=True)
    for host, times in zip(hosts, count.tolist(), strict=True):
        capacity, most_local = host[:-1] * (1 + SLACK), int(host[-1])
        others = np.delete(room, int(np.flatnonzero((np.column_stack((m.capacity, room)) == host).all(axis=1))[0]))
        ways = _ways(others, most)
        for i, number in enumerate(workers.tolist()):
            local = np.arange(min(most_local, number - 1) + 1)
            servers = np.maximum(1, np.ceil((number - local) * ratio))
            fits = (local[:, None] * e + servers[:, None] * z <= capacity).all(axis=1)
            counts[i] += times * ways[number - local[fits]].sum()
    return counts


def _ways(room: Ints, most: int) -> Array:
    """Return ``(most + 1,)`` the numbers of ways to distribute 0, 1, … workers over servers with the given room."""
    ways = np.zeros(most + 1)
    ways[0] = 1.0
    for space in np.minimum(room, most).tolist():
        if space:
            running = np.cumsum(ways)
            ways = running - np.concatenate([np.zeros(space + 1), running[: -space - 1]])[: most + 1]
    return ways
