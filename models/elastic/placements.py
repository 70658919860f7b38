"""Every placement of an option on the servers of a tiny instance, for models over all schedules."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from instances.elastic import Machines
from instances.elastic.options import ROUNDING

Placement = tuple[tuple[int, int, int], ...]
"""Server, workers and parameter servers there."""


def placements(m: Machines, worker_type: int, ps_type: int, together: bool, workers: int) -> Iterator[Placement]:
    """Yield every placement on empty servers that takes no more than it needs: one host, as few PSs as cover the rest.

    Parameters
    ----------
    m
        Servers.
    worker_type, ps_type, together, workers
        An option; the PS type is −1 in a ring.
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
    """Yield every way to put so many workers onto servers with so much room."""
    if not room:
        if number == 0:
            yield ()
        return
    if number > sum(room):
        return
    for here in range(min(number, room[0]) + 1):
        for rest in _splits(number - here, room[1:]):
            yield (here, *rest)
