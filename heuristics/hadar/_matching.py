"""Compiled matching of AlloX: it assigns jobs to pairs of GPU type and position by successive shortest paths.

Jobs are added one after another, each along a shortest alternating path (Dijkstra on reduced costs). A *column* is a
pair of a type and a position from the end. It holds as many jobs as the type has devices, so equal devices form one
node. Paths stay short if long jobs come first.
"""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit

compiled = njit(cache=True)


@compiled
def search(
    times: Array, j: int, columns: tuple[Ints, Ints, Ints], matching: tuple[Ints, Ints, Ints, Array, Ints]
) -> int:
    """Find a shortest alternating path from job `j` to a column with room; return that column, −1 if there is none.

    `matching` holds the ``(a,)`` columns of jobs; the ``(m, devices)`` jobs in columns and their ``(m,)`` numbers; the
    ``(m,)`` prices (dual values) of columns; and the ``(m,)`` jobs through which the path reaches each column. This
    function updates the last two.
    """
    kind, position, room = columns
    _, member, count, price, via = matching
    distance = times[j][kind] * position + price
    done = np.zeros(kind.size, np.bool_)
    via[:] = j
    while True:
        best = int(np.where(done, np.inf, distance).argmin())
        if done[best] or not np.isfinite(distance[best]):
            return -1
        done[best] = True
        if count[best] < room[best]:
            break
        for i in member[best, : count[best]]:
            cost = times[i, kind[best]] * position[best] + price[best]
            for c in range(kind.size):
                through = distance[best] - cost + times[i, kind[c]] * position[c] + price[c]
                if not done[c] and through < distance[c]:
                    distance[c], via[c] = through, i
    for c in range(kind.size):
        if done[c]:
            price[c] += distance[best] - distance[c]
    return best


@compiled
def augment(j: int, end: int, matching: tuple[Ints, Ints, Ints, Array, Ints]) -> None:
    """Shift the jobs on the path that :func:`search` found: each moves to the next column, and `j` enters the first.

    Column `end`, the last one of the path, then has one job more.
    """
    where, member, count, _, via = matching
    while True:
        i = via[end]
        before = where[i]
        member[end, count[end]] = i
        count[end] += 1
        where[i] = end
        if i == j:
            break
        count[before] -= 1
        for s in range(count[before]):
            if member[before, s] == i:
                member[before, s] = member[before, count[before]]
        end = before


@compiled
def assign(times: Array, columns: tuple[Ints, Ints, Ints]) -> Ints:
    """Assign each job to a column at the least total ``times[j, kind]·position``; return the columns ``(a,)``.

    If a job fits in no column, it and all later jobs get −1. `times` ``(a, k)`` are seconds on one device of each type,
    ``inf`` where a job cannot run; `columns` ``(m,)`` each are type, position from the end, and devices of the type.
    """
    size, room = columns[2].size, columns[2].max()
    where = np.full(times.shape[0], -1, np.int64)
    member = np.full((size, room), -1, np.int64)
    matching = (where, member, np.zeros(size, np.int64), np.zeros(size), np.zeros(size, np.int64))
    for j in range(times.shape[0]):
        end = search(times, j, columns, matching)
        if end < 0:
            break
        augment(j, end, matching)
    return where
