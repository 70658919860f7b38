"""Compiled loops of :mod:`.gangs`; imported when a policy is built, because numba takes a while.

Signatures are given, so that they are compiled, or loaded from the cache, then and not in the first measured round.
"""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit


@njit("b1(i8[::1], i8[::1])", cache=True)
def fits(usage: Ints, free: Ints) -> bool:
    """Return whether there are as many GPUs of each type ``(k,)`` free as are used."""
    enough = True
    for r in range(free.size):
        enough &= usage[r] <= free[r]
    return enough


@njit("i8[::1](i8[::1], i8[::1], i8[:, :, ::1], i8[::1], b1)", cache=True)
def take(rows: Ints, options: Ints, usage: Ints, free: Ints, in_turn: bool) -> Ints:
    """Go through pairs of gang and option; a gang that has nothing yet and fits takes what the option uses.

    Parameters
    ----------
    rows, options
        ``(p,)`` pairs in the order of their priority; option −1 is none.
    usage
        ``(a, k + 1, k)`` GPUs of each type that each option of each gang uses.
    free
        ``(k,)`` GPUs of each type; what is taken is subtracted.
    in_turn
        Stop at the first gang for which none of its (adjacent) pairs fits, instead of passing it over.

    Returns
    -------
    array
        ``(a,)`` chosen options, −1 for none.
    """
    chosen = np.full(usage.shape[0], -1, np.int64)
    left = free.sum()
    for p in range(rows.size):
        row, option = rows[p], options[p]
        if left == 0 or (in_turn and p > 0 and row != rows[p - 1] and chosen[rows[p - 1]] < 0):
            break
        if option >= 0 and chosen[row] < 0 and fits(usage[row, option], free):
            chosen[row] = option
            free -= usage[row, option]
            left -= usage[row, option].sum()
    return chosen


@njit("i8[::1](i8[::1], i8[::1], i8[:, ::1], i8[:, :, ::1], i8[::1], f8[:, ::1], f8[:, ::1])", cache=True)
def take_anywhere(rows: Ints, held: Ints, allowed: Ints, usage: Ints, free: Ints, wanted: Array, ties: Array) -> Ints:
    """Go through gangs in order; each keeps its option if that fits, or takes the one that it wants most.

    Parameters
    ----------
    rows
        ``(a',)`` gangs in the order of their priority.
    held
        ``(a,)`` option of each gang in the previous round, −1 for none.
    allowed
        ``(a, k + 1)`` 1 for options in which a gang can run.
    usage, free
        As in :func:`take`.
    wanted, ties
        ``(a, k + 1)`` what counts most, and what decides among equal ones; where `wanted` is empty, free GPUs count.
    """
    chosen = np.full(usage.shape[0], -1, np.int64)
    for row in rows:
        best, most = -1, 0.0
        for option in range(usage.shape[1]):
            if not allowed[row, option] or not fits(usage[row, option], free):
                continue
            if option == held[row]:
                best = option
                break
            value = wanted[row, option] if wanted.size else float(free[usage[row, option] > 0].sum())
            if best < 0 or value > most or (value == most and ties[row, option] > ties[row, best]):
                best, most = option, value
        if best >= 0:
            chosen[row] = best
            free -= usage[row, best]
    return chosen


@njit("b1[::1](i8[::1], i8[:, ::1], UniTuple(i8[::1], 3), i8[::1])", cache=True)
def stayers(position: Ints, need: Ints, held: tuple[Ints, Ints, Ints], server_type: Ints) -> np.ndarray:
    """Return ``(g,)`` which gangs need exactly the GPUs of each type that they held; see :func:`place`."""
    missing = need.copy()
    for e in range(held[0].size):
        g = position[held[0][e]]
        if g >= 0:
            missing[g, server_type[held[1][e]]] -= held[2][e]
    stays = np.ones(need.shape[0], np.bool_)
    for g in range(need.shape[0]):
        stays[g] = not missing[g].any()
    return stays


@njit("i8(i8, i8, i8[::1], i8[::1])", cache=True)
def tightest(kind: int, wanted: int, free: Ints, server_type: Ints) -> int:
    """Return the fullest server of a type with enough free GPUs; where none has, the one with the most."""
    best = -1
    for h in range(free.size):
        if server_type[h] != kind or free[h] == 0:
            continue
        enough = best >= 0 and free[best] >= wanted
        if best < 0 or (enough and wanted <= free[h] < free[best]) or (not enough and free[h] > free[best]):
            best = h
    return best


@njit("i8[:, ::1](i8[::1], i8[:, ::1], i8, UniTuple(i8[::1], 3), i8[::1], i8[::1])", cache=True)
def place(
    jobs: Ints, need: Ints, size: int, held: tuple[Ints, Ints, Ints], server_type: Ints, server_gpus: Ints
) -> Ints:
    """Find servers: gangs that need what they held stay, then the largest first, each on the tightest server.

    Parameters
    ----------
    jobs
        ``(g,)`` the jobs that run, each once.
    need
        ``(g, k)`` GPUs of each type; they fit.
    size
        Number of all jobs.
    held
        Job, server and GPUs of the previous assignment.
    server_type, server_gpus
        ``(h,)``.

    Returns
    -------
    array
        ``(entries, 3)``: job, server, GPUs.
    """
    free = server_gpus.copy()
    position = np.full(size, -1, np.int64)
    for g in range(jobs.size):
        position[jobs[g]] = g
    stays = stayers(position, need, held, server_type)
    entries = np.empty((need.sum(), 3), np.int64)
    count = 0
    for e in range(held[0].size):
        g = position[held[0][e]]
        if g >= 0 and stays[g]:
            entries[count] = held[0][e], held[1][e], held[2][e]
            free[held[1][e]] -= held[2][e]
            count += 1
    for g in np.argsort(-need.sum(axis=1), kind="mergesort"):
        for r in range(0 if stays[g] else need.shape[1]):
            wanted = need[g, r]
            while wanted > 0:
                best = tightest(r, wanted, free, server_type)
                entries[count] = jobs[g], best, min(free[best], wanted)
                free[best] -= entries[count, 2]
                wanted -= entries[count, 2]
                count += 1
    return entries[:count]
