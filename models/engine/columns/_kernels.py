"""Compiled separation of cover cuts, for :mod:`.covers`."""

from __future__ import annotations

import numpy as np

from schedgap.instances.clock import njit

BROKEN = 0.02
"""Smallest violation for which a cover cut is added."""


@njit(cache=True)
def covers(which, capacity, most, parts, start, column, amount, block, share):  # type: ignore[no-untyped-def]
    """Return the rows among `which` that violate a cover cut, and the spare and reserves of each row's worst cut."""
    row, spare = np.zeros(len(which), np.int64), np.zeros(len(which), np.int64)
    kept = np.zeros((len(which), len(most)), np.int64)
    found = 0
    for i in which:
        mine = slice(start[i], start[i + 1])
        use, owner, part = amount[mine], block[column[mine]], share[column[mine]]
        high = int(use.max()) if len(use) > 0 else 0
        worst = BROKEN
        for s in range(1, min(high, capacity[i] + 1)):
            room = capacity[i] - s
            if (use * part).sum() - room <= worst:
                continue
            gain, keep = knapsack(room, s, use, owner, part, most, parts)
            above = (np.maximum(use - s, 0.0) * part).sum() + gain - room
            if above > worst:
                worst = above
                row[found], spare[found], kept[found] = i, s, keep
        found += worst > BROKEN
    return row[:found], spare[:found], kept[:found]


@njit(cache=True)
def knapsack(room, spare, use, owner, share, most, parts):  # type: ignore[no-untyped-def]
    """Divide `room` into reserves of blocks that maximise the left-hand side of a cover cut; return gain and reserves.

    The reserve of a block is either 0 or its largest use `most`; with `parts`, it is the use of any of its columns.
    """
    some = np.unique(owner)
    best, taken = np.zeros(room + 1), np.zeros((len(some), room + 1), np.int64)
    for k in range(len(some)):
        mine, before = owner == some[k], best.copy()
        own = np.maximum(use[mine] - spare, 0.0)
        for weight in use[mine].astype(np.int64) if parts else most[some[k] : some[k] + 1]:
            gain = ((np.maximum(np.minimum(use[mine], weight), own) - own) * share[mine]).sum()
            for r in range(weight, room + 1):
                if before[r - weight] + gain > best[r]:
                    best[r], taken[k, r] = before[r - weight] + gain, weight
    kept = np.zeros(len(most), np.int64)
    for k in range(len(some) - 1, -1, -1):
        kept[some[k]] = taken[k, room]
        room -= taken[k, room]
    return best[-1], kept
