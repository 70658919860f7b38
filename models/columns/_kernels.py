"""Compiled loops of :mod:`.covers`."""

from __future__ import annotations

import numpy as np

from schedgap.instances.clock import njit

BROKEN = 0.02
"""How much must be above a row at least."""


@njit(cache=True)
def covers(capacity, most, start, column, amount, block, share):  # type: ignore[no-untyped-def]
    """Return the spare ``(m,)`` of the row that is broken most of each capacity, 0 for none, and its blocks.

    Of all blocks that fit together beside the spare, those are chosen that the columns use most: a knapsack.
    """
    rows, blocks = len(capacity), len(most)
    spare, member = np.zeros(rows, np.int64), np.zeros((rows, blocks), np.bool_)
    used, beyond = np.zeros(blocks), np.zeros(blocks)
    for i in range(rows):
        used[:] = 0.0
        high = 0.0
        for e in range(start[i], start[i + 1]):
            used[block[column[e]]] += amount[e] * share[column[e]]
            high = max(high, amount[e])
        worst = BROKEN
        for s in range(1, min(int(high), capacity[i] + 1)):
            room = capacity[i] - s
            beyond[:] = 0.0
            for e in range(start[i], start[i + 1]):
                beyond[block[column[e]]] += max(amount[e] - s, 0.0) * share[column[e]]
            total = beyond.sum()
            if used.sum() - room <= worst:
                continue
            some = np.flatnonzero(used - beyond > 1e-9)
            best, taken = np.zeros(room + 1), np.zeros((len(some), room + 1), np.bool_)
            for k in range(len(some)):
                weight, gain = most[some[k]], used[some[k]] - beyond[some[k]]
                for r in range(room, weight - 1, -1):
                    if best[r - weight] + gain > best[r]:
                        best[r], taken[k, r] = best[r - weight] + gain, True
            if total + best[room] - room > worst:
                worst = total + best[room] - room
                spare[i], member[i, :] = s, False
                r = room
                for k in range(len(some) - 1, -1, -1):
                    if taken[k, r]:
                        member[i, some[k]] = True
                        r -= most[some[k]]
    return spare, member
