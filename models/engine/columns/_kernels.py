"""Compiled separation of cuts, for :mod:`.covers` and :mod:`.knapsacks`."""

from __future__ import annotations

import numpy as np

from schedgap.instances.clock import njit

BROKEN = 0.02
"""Smallest violation for which a cover cut is added."""

TIGHT, SMALL = 1e-6, 1e-9
"""By how much a set must exceed 1 to improve the linear program of a separation, and what counts as 0 there."""


@njit(cache=True)
def covers(capacity, most, start, column, amount, block, share):  # type: ignore[no-untyped-def]
    """Return the rows that violate a cover cut, and the spare and reserves of each row's worst cut."""
    rows = len(capacity)
    row, spare = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    kept = np.zeros((rows, len(most)), np.int64)
    found = 0
    for i in range(rows):
        mine = slice(start[i], start[i + 1])
        use, owner, part = amount[mine], block[column[mine]], share[column[mine]]
        high = int(use.max()) if len(use) > 0 else 0
        worst = BROKEN
        for s in range(1, min(high, capacity[i] + 1)):
            room = capacity[i] - s
            if (use * part).sum() - room <= worst:
                continue
            gain, keep = knapsack(room, s, use, owner, part, most)
            above = (np.maximum(use - s, 0.0) * part).sum() + gain - room
            if above > worst:
                worst = above
                row[found], spare[found], kept[found] = i, s, keep
        found += worst > BROKEN
    return row[:found], spare[:found], kept[:found]


@njit(cache=True)
def knapsack(room, spare, use, owner, share, most):  # type: ignore[no-untyped-def]
    """Divide `room` into reserves of blocks that maximise the left-hand side of a cover cut; return gain and reserves.

    The reserve of a block is either 0 or its largest use, `most`.
    """
    some = np.unique(owner)
    best, taken = np.zeros(room + 1), np.zeros((len(some), room + 1), np.int64)
    for k in range(len(some)):
        mine, before = owner == some[k], best.copy()
        own = np.maximum(use[mine] - spare, 0.0)
        weight = most[some[k]]
        gain = ((np.maximum(np.minimum(use[mine], weight), own) - own) * share[mine]).sum()
        for r in range(weight, room + 1):
            if before[r - weight] + gain > best[r]:
                best[r], taken[k, r] = before[r - weight] + gain, weight
    kept = np.zeros(len(most), np.int64)
    for k in range(len(some) - 1, -1, -1):
        kept[some[k]] = taken[k, room]
        room -= taken[k, room]
    return best[-1], kept


@njit(cache=True)
def fullest(room, owner, units, part):  # type: ignore[no-untyped-def]
    """Return the largest total of `part` over sets of uses that fit into `room`, at most one per owner, and that set.

    Uses are sorted by owner.
    """
    count = len(units)
    best, taken = np.zeros(room + 1), np.full((count, room + 1), -1)
    first, owners = np.zeros(count + 1, np.int64), 0
    for k in range(count):
        if k == 0 or owner[k] != owner[k - 1]:
            before = best.copy()
            first[owners] = k
            owners += 1
        for r in range(units[k], room + 1):
            if before[r - units[k]] + part[k] > best[r] + 1e-12:
                best[r], taken[owners - 1, r] = before[r - units[k]] + part[k], k
    chosen, left = np.zeros(owners, np.int64), room
    size = 0
    for i in range(owners - 1, -1, -1):
        k = taken[i, left]
        if k >= 0:
            chosen[size] = k
            size += 1
            left -= units[k]
    return best[room], chosen[:size]


@njit(cache=True)
def violated(room, owner, units, share, enough, pivots):  # type: ignore[no-untyped-def]
    """Return the weights of uses whose total over shares is largest while no set of uses that fits exceeds 1.

    Uses are sorted by owner and units; weights do not fall with the use of an owner. They are the prices at which sets,
    one unit of cost each, cover all shares: a basis begins with sets of one use, and the dynamic program finds the set
    that improves it most. All weights are 0 once the cost of a cover is at most `enough`, since no total exceeds it.
    """
    n = len(units)
    inverse, cost, column = np.eye(n), np.ones(n), np.zeros(n)
    part = np.ones(n)
    # Slightly different shares, so that no ratio of the simplex method is a tie.
    value = share * (1 + 1e-7 * (np.arange(1, n + 1) * 0.6180339887 % 1))
    for _ in range(pivots):
        if (part * share).sum() <= enough:
            return np.zeros(n)
        column[:], price = 0.0, 0.0
        low, high = fallen(owner, part)
        if low < n:  # less than all of the share may be covered, or by a larger use
            column[low] = -1.0
            if high >= 0:
                column[high] = 1.0
        else:
            largest, chosen = fullest(room, owner, units, part)
            if largest <= 1 + TIGHT:
                break
            column[chosen], price = 1.0, 1.0
        step = inverse @ column
        leaving, least = -1, np.inf
        for i in range(n):
            if step[i] > SMALL and value[i] < least * step[i]:
                leaving, least = i, value[i] / step[i]
        if leaving < 0:
            break
        value -= least * step
        value[leaving] = least
        cost[leaving] = price
        inverse[leaving] /= step[leaving]
        for i in range(n):
            if i != leaving and step[i] != 0:
                inverse[i] -= step[i] * inverse[leaving]
        part = cost @ inverse
    return np.minimum(np.maximum(part, 0.0), 1.0)


@njit(cache=True)
def fallen(owner, part):  # type: ignore[no-untyped-def]
    """Return the use whose weight is most below 0 (and −1), or below that of a smaller use of its owner (and that use).

    The first number is that of all uses if there is none.
    """
    n = len(part)
    low, high, worst = n, -1, SMALL
    for k in range(n):
        if -part[k] > worst:
            low, high, worst = k, -1, -part[k]
        if k > 0 and owner[k] == owner[k - 1] and part[k - 1] - part[k] > worst:
            low, high, worst = k, k - 1, part[k - 1] - part[k]
    return low, high


@njit(cache=True)
def joined(best, own, most):  # type: ignore[no-untyped-def]
    """Add a block with weights `own` by use to the table of the largest total weight for each room."""
    before = best.copy()
    for v in range(1, min(most, len(own) - 1, len(best) - 1) + 1):
        if own[v] > own[v - 1]:
            for r in range(v, len(best)):
                best[r] = max(best[r], before[r - v] + own[v])


@njit(cache=True)
def lifted(room, most, owner, units, scaled, order, levels):  # type: ignore[no-untyped-def]
    """Return weights of all uses by all blocks ``(blocks, levels)``, and the largest total that fits into `room`.

    The uses `units` of some owners have given weights. The weights of their other uses, and then those of all other
    blocks in the given order, are as large as the limit allows.
    """
    weights = np.zeros((len(most), levels), np.int64)
    known = np.zeros(len(most), np.bool_)
    for k in range(len(units)):
        known[owner[k]] = True
        weights[owner[k], units[k]] = max(weights[owner[k], units[k]], scaled[k])
    some = np.flatnonzero(known)
    for b in some:
        for v in range(1, levels):
            weights[b, v] = max(weights[b, v], weights[b, v - 1])
    best = np.zeros(room + 1, np.int64)
    for b in some:
        joined(best, weights[b], levels)
    limit = best[room]
    for b in some:
        others = np.zeros(room + 1, np.int64)
        for other in some:
            if other != b:
                joined(others, weights[other], levels)
        for v in range(1, levels):
            weights[b, v] = max(weights[b, v], weights[b, v - 1], limit - others[max(room - v, 0)])
    best[:] = 0
    for b in some:
        joined(best, weights[b], levels)
    for b in order:
        if not known[b]:
            for v in range(1, levels):
                weights[b, v] = max(weights[b, v - 1], limit - best[max(room - v, 0)])
            joined(best, weights[b], levels)
    return weights, limit
