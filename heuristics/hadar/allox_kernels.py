"""The matching of AlloX, compiled: successive shortest paths over (type, position) instead of single devices.

Jobs are added one after another, each along a shortest alternating path (Dijkstra on reduced costs). Columns, pairs
of a type and a position, hold several jobs, so that the equal devices of a type are one node and not many. Paths stay
short if long jobs come first.
"""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit

MATCHING = "Tuple((i8[::1], i8[:, ::1], i8[::1], f8[::1], i8[::1]))"


@njit("i8(f8[::1], b1[::1])", cache=True)
def nearest(distance: Array, done: np.ndarray) -> int:
    """Return the column of least distance among those not done; the first one where all are."""
    best = -1
    for c in range(distance.size):
        if not done[c] and (best < 0 or distance[c] < distance[best]):
            best = c
    return max(best, 0)


@njit(f"i8(f8[:, ::1], i8, UniTuple(i8[::1], 3), {MATCHING})", cache=True)
def search(
    times: Array, j: int, columns: tuple[Ints, Ints, Ints], matching: tuple[Ints, Ints, Ints, Array, Ints]
) -> int:
    """Find a shortest path from job `j` to a column with room, and change the prices accordingly.

    Parameters
    ----------
    times, columns
        See :func:`assign`.
    matching
        ``(a,)`` column of each job; ``(m, devices)`` members and ``(m,)`` their number; ``(m,)`` prices; ``(m,)`` job
        through which the path comes to a column, written here.

    Returns
    -------
    int
        The column, −1 if there is none.
    """
    kind, position, room = columns
    _, member, count, price, via = matching
    distance = times[j][kind] * position + price
    done = np.zeros(kind.size, np.bool_)
    via[:] = j
    while True:
        best = nearest(distance, done)
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


@njit(f"void(i8, i8, {MATCHING})", cache=True)
def augment(j: int, end: int, matching: tuple[Ints, Ints, Ints, Array, Ints]) -> None:
    """Move the jobs on the path to column `end` one column on, and job `j` into its first one."""
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


@njit("i8[::1](f8[:, ::1], UniTuple(i8[::1], 3))", cache=True)
def assign(times: Array, columns: tuple[Ints, Ints, Ints]) -> Ints:
    """Return the column of every job in an assignment of least total ``times[j, kind]·position``.

    Parameters
    ----------
    times
        ``(a, k)`` seconds of each job on one device of each type; ``inf`` where it cannot run.
    columns
        ``(m,)`` each: type, position from the end, devices of the type.

    Returns
    -------
    array
        ``(a,)`` columns; −1 from the first job on that has none.
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
