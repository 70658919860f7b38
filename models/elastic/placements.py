"""All schedules of a tiny instance: every option, start and placement, for the ILPs over schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from schedgap.instances.arrays import Bools, Ints
from schedgap.instances.elastic import Machines, Options, Runs
from schedgap.instances.elastic.options import ROUNDING
from schedgap.instances.errors import NotApplicableError

MOST_SCHEDULES = 10_000
"""Schedules of all jobs together beyond which they are not enumerated."""

MOST_PLACEMENTS = 20_000
"""Options with their placements beyond which they are not enumerated: one or two seconds."""

MOST_HELD = 150_000
"""Servers times slots that all schedules together hold, beyond which they are not enumerated: ten seconds of Pyomo."""

MOST_STARTS = 1_000_000
"""Slots in which a job may start up to which its schedules are enumerated: they are looked at one by one."""

MOST_SERVERS = 500
"""Servers beyond which they are not enumerated: placements are found one server inside the other."""

Placement = tuple[tuple[int, int, int], ...]
"""Server, workers and parameter servers there."""

Wanted = Callable[[int, Placement, Ints], Bools]
"""``wanted(option, placement, starts)`` tells which schedules are listed."""


def placements(m: Machines, worker_type: int, ps_type: int, together: bool, workers: int) -> Iterator[Placement]:
    """Yield every placement on empty servers that takes no more than it needs: one host, as few PSs as cover the rest.

    The PS type is −1 in a ring.
    """
    free = m.capacity * (1 + ROUNDING)
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
    ratio = m.worker_bandwidth[worker_type] / m.ps_bandwidth[ps_type] * (1 - ROUNDING)
    for host in range(m.size):
        for beside in range(min(room[host], workers - 1) + 1):
            servers = max(1, math.ceil((workers - beside) * ratio))
            if (beside * e + servers * z <= free[host]).all():
                for split in _splits(workers - beside, [*room[:host], 0, *room[host + 1 :]]):
                    there = ((h, n, 0) for h, n in enumerate(split) if n)
                    yield ((host, beside, servers), *there)


def _splits(number: int, room: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield every way to put a number of workers onto servers with the given room."""
    if not room:
        if number == 0:
            yield ()
        return
    if number > sum(room):
        return
    for here in range(min(number, room[0]) + 1):
        for rest in _splits(number - here, room[1:]):
            yield (here, *rest)


class TooManyError(NotApplicableError):
    """There are more schedules than are enumerated."""


def starts(options: Options, earliest: Ints, end: Ints | int) -> Ints:
    """Return ``(o,)`` in how many slots each option can start.

    Jobs run from their slots `earliest` ``(n,)`` on, and complete by the beginning of slot `end`, ``(n,)`` or one for
    all.
    """
    latest = np.broadcast_to(end, earliest.shape)
    return np.asarray(np.maximum((latest - earliest)[options.job] - options.slots + 1, 0))


def schedules(
    machines: Machines, options: Options, earliest: Ints, end: Ints | int, wanted: Wanted | None = None
) -> Runs:
    """Return all schedules of the jobs, as runs of one decision, between `earliest` and `end` as in :func:`starts`.

    They are on one server, or have all parameter servers on one: some optimum has no others. Those that are not
    `wanted` are left out.

    Raises
    ------
    TooManyError
        If there are too many.
    """
    option: list[int] = []
    start: list[int] = []
    entries: list[tuple[int, int, int, int]] = []
    for i, times, placement in _listed(machines, options, earliest, starts(options, earliest, end), wanted):
        for begin in times.tolist():
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
    m: Machines, o: Options, earliest: Ints, count: Ints, wanted: Wanted | None
) -> list[tuple[int, Ints, Placement]]:
    """Return option, starts, and placement of all schedules."""
    if m.size > MOST_SERVERS:
        raise TooManyError(f"schedules on more than {MOST_SERVERS} servers")
    found: list[tuple[int, Ints, Placement]] = []
    total = held = looked = 0
    if count.max(initial=0) > MOST_STARTS:
        raise TooManyError(f"a job with more than {MOST_STARTS:,} slots to start in")
    for i, times in enumerate(count.tolist()):
        kind = int(o.worker_type[i]), int(o.ps_type[i]), bool(o.together[i]), int(o.workers[i])
        for placement in placements(m, *kind) if times else ():
            begin = earliest[o.job[i]] + np.arange(times)
            begin = begin[wanted(i, placement, begin)] if wanted else begin
            looked += 1
            total += len(begin)
            held += len(begin) * int(o.slots[i]) * len(placement)
            if total > MOST_SCHEDULES:
                raise TooManyError(f"more than {MOST_SCHEDULES:,} schedules")
            if wanted and looked > MOST_PLACEMENTS:
                raise TooManyError(f"more than {MOST_PLACEMENTS:,} options with their placements")
            found.append((i, begin, placement))
    if held > MOST_HELD:
        raise TooManyError(f"more than {MOST_HELD:,} servers times slots of schedules")
    return found
