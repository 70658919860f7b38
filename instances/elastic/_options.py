"""Compiled loops of :mod:`.options`: Pareto pairs of workers and slots, and what dominates what."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit

ROUNDING = 1e-9
LONGEST = 1e15

Table = NDArray[np.int64]


@njit(cache=True)
def pareto(work: Array, most: Ints, largest: Ints, rates: tuple[Array, Array, Array], ring: bool) -> Table:
    """Return ``(6, o)``: job, slots, worker type, PS type, together, workers: the fewest workers for each duration."""
    out = np.zeros((6, 1024), np.int64)
    used = 0
    for job in range(work.size):
        for m in range(largest.shape[0]):
            if not np.isfinite(rates[0][job, m]):
                continue
            for p in range(largest.shape[1]):
                for one in range(2):
                    number = min(most[job], largest[m, p, one])
                    while used + number > out.shape[1]:
                        out = twice(out)
                    used = pairs(out, used, (job, m, p, one), number, work[job], rates, ring)
    return out[:, :used].copy()


@njit(cache=True)
def twice(out: Table) -> Table:
    """Return a table with twice as many columns."""
    larger = np.zeros((out.shape[0], 2 * out.shape[1]), np.int64)
    larger[:, : out.shape[1]] = out
    return larger


@njit(cache=True)
def pairs(
    out: Table,
    used: int,
    which: tuple[int, int, int, int],
    most: int,
    work: float,
    rates: tuple[Array, Array, Array],
    ring: bool,
) -> int:
    """Append the options of one job and its types, on one server or several; return how many there are now."""
    compute, update, transfer = rates
    job, m, p, one = which
    others = update[job, p] + (0.0 if one else transfer[job, m])
    fastest = 2**62
    for number in range(2 if ring and not one else 1, most + 1):
        part = (number - 1) / number if ring else 1.0
        slots = min(work * (compute[job, m] + part * others) / number, LONGEST)
        whole = max(int(np.ceil(slots * (1 - ROUNDING))), 1)
        if whole < fastest:
            fastest = whole
            out[0, used], out[1, used], out[2, used] = job, whole, m
            out[3, used], out[4, used], out[5, used] = -1 if ring else p, one, number
            used += 1
    return used


@njit(cache=True)
def undominated(group: Ints, costs: Array) -> Ints:
    """Return the rows of ``(o, c)`` costs than which no other row of the same group is as low everywhere.

    Groups are contiguous, and within one nothing comes before what dominates it: then comparing with what is kept is
    enough. Of equal rows the first is kept.
    """
    kept = np.zeros(group.size, np.int64)
    count, first = 0, 0
    for i in range(group.size):
        if i > 0 and group[i] != group[i - 1]:
            first = count
        beaten = False
        for k in range(first, count):
            lower = True
            for c in range(costs.shape[1]):
                if costs[kept[k], c] > costs[i, c]:
                    lower = False
                    break
            if lower:
                beaten = True
                break
        if not beaten:
            kept[count] = i
            count += 1
    return kept[:count]
