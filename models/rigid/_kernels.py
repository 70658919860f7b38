"""The compiled loop of :mod:`schedgap.models.rigid.prices`: the cost of the best start of every job at given prices."""

from __future__ import annotations

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.clock import njit

FAR = 12.0
"""Starts count that cost at most this many times the spread of a job more than its best one."""

RARE = 1e-6
"""Shares of starts that are left out."""


@njit(cache=True)
def best_starts(
    jobs: tuple[Array, Array, Array, Array, Ints],
    edges: Array,
    price: Array,
    spread: float,
    scratch: tuple[Array, Array, Ints, Ints],
    whole: Array,
    part: Array,
) -> float:
    """Return the sum of the costs of the best starts of jobs; if `spread` is positive, of soft minima over starts.

    Parameters
    ----------
    jobs
        Release, duration, earliest completion, weight and kind of each job, ``(n,)`` each.
    edges
        ``(E + 1,)`` edges of intervals; no job is released before the first one, and machines are free after the last.
    price
        ``(K, E)`` price per unit of time of a run of each kind in each interval.
    spread
        The spread of a job's costs is this time multiplied by its weight.
    scratch
        Room for the costs, starts, first and last intervals of a job's starts, ``(2 E + 4,)`` each.
    whole, part
        Filled with the use that kinds make of intervals ``(K, E + 1)``: differences of the numbers of jobs that run
        throughout an interval, and the time of runs that begin or end in one.
    """
    release, duration, due, weight, kind = jobs
    costs, starts, firsts, lasts = scratch
    last, total = edges.size - 1, 0.0
    paid = np.zeros((len(price), edges.size))
    for k in range(len(price)):
        for i in range(last):
            paid[k, i + 1] = paid[k, i] + price[k, i] * (edges[i + 1] - edges[i])
    whole[:], part[:] = 0.0, 0.0
    for j in range(release.size):
        k, begin, lasting, w = kind[j], release[j], duration[j], weight[j]
        soft = spread * w
        count, at = listed(begin, lasting, due[j], w, edges, price[k], paid[k], FAR * soft, scratch)
        best = costs[at]
        total += best
        size = 1.0
        if soft > 0.0:
            size = 0.0
            for q in range(count):
                costs[q] = np.exp((best - costs[q]) / soft)
                size += costs[q]
            total -= soft * np.log(size)
        for q in range(count) if soft > 0.0 else range(at, at + 1):
            share = costs[q] / size if soft > 0.0 else 1.0
            if share >= RARE and firsts[q] < last:
                hold(edges, starts[q], starts[q] + lasting, firsts[q], lasts[q], share, whole[k], part[k])
    return total


@njit(cache=True)
def hold(edges: Array, start: float, end: float, a: int, b: int, share: float, whole: Array, part: Array) -> None:
    """Add a share of a run from interval `a` to interval `b` to the use of intervals."""
    if a == b:
        part[a] += share * (end - start)
        return
    part[a] += share * (edges[a + 1] - start)
    whole[a + 1] += share
    whole[b] -= share
    if b < edges.size - 1:
        part[b] += share * (end - edges[b])


@njit(cache=True)
def listed(
    release: float,
    lasting: float,
    due: float,
    weight: float,
    edges: Array,
    price: Array,
    paid: Array,
    far: float,
    scratch: tuple[Array, Array, Ints, Ints],
) -> tuple[int, int]:
    """List the starts of a job at which its cost bends, in `scratch`; return their number, and which is the best.

    `paid` ``(E + 1,)`` are the prices per unit of time, `price`, summed up to edges. Starts are left out if waiting for
    them costs `far` more than the best start.
    """
    costs, starts, firsts, lasts = scratch
    last, s, e = edges.size - 1, release, due
    a = np.searchsorted(edges, s, side="right") - 1
    b = np.searchsorted(edges, s + lasting, side="right") - 1
    cost = weight * (max(s + lasting, due) - release) + paid[b] - paid[a]
    cost += price[b] * (s + lasting - edges[b]) if b < last else 0.0
    cost -= price[a] * (s - edges[a]) if a < last else 0.0
    costs[0], starts[0], firsts[0], lasts[0] = cost, s, a, b
    count, at = 1, 0
    while a < last:
        step, turn = edges[a + 1] - s, 0
        if b < last and edges[b + 1] - (s + lasting) < step:
            step, turn = edges[b + 1] - (s + lasting), 1
        late = s + lasting >= e
        if not late and e - (s + lasting) < step:
            step, turn = e - (s + lasting), 2
        cost += step * ((weight if late else 0.0) + (price[b] if b < last else 0.0) - price[a])
        s += max(step, 0.0)
        if turn == 0:
            s, a = edges[a + 1], a + 1
        elif turn == 1:
            b += 1
        else:
            s, e = e - lasting, -np.inf
        if weight * (max(s + lasting, due) - release) >= costs[at] + far:
            break
        costs[count], starts[count], firsts[count], lasts[count] = cost, s, a, b
        if cost < costs[at]:
            at = count
        count += 1
    return count, at
