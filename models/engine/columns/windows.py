"""Time aggregation of the master: one row per window of slots instead of one per slot, refined where necessary.

The row of a window is the sum of the rows of its slots, so a master over windows is a relaxation. Its prices are equal
in all slots of a window, and the Lagrangian bound is valid at any prices. Prices need to change only where demand does,
so few windows suffice.

A window is worth splitting where columns exceed capacity before the split and leave capacity idle after it, or the
other way round. The worth of a split is this excess times the difference between the window's price and those of its
neighbours, towards which the price would move. Without the second factor ties decide, since equal prices say nothing
about when to run. A window at price 0 whose neighbours also have price 0 is assigned the usual price instead, because
its slots might have one if they had rows: even a lightly loaded cluster can be overfull for an hour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array, Ints

FIRST = 48
"""Largest number of windows per series at the start."""

SHARE = 0.9
"""Fraction of the total worth of all splits that is realised in one refinement, best splits first."""


@dataclass(frozen=True, eq=False)
class Windows:
    """A partition of `count` capacities into windows; each series of `series` capacities is consecutive in time.

    Windows begin at ``start (w,)`` and end where the next one begins.
    """

    start: Ints
    count: int
    series: int

    @staticmethod
    def of(count: int, series: int) -> Windows:
        """Return the initial windows."""
        inside = np.arange(0, series, -(-series // FIRST))
        return Windows((np.arange(0, count, series)[:, None] + inside).ravel(), count, series)

    @property
    def end(self) -> Ints:
        """Ends of the windows."""
        return np.append(self.start, self.count)[1:]

    def split(self, over: Array, prices: Array, usual: float, least: float) -> tuple[Windows, Ints, Ints]:
        """Return finer windows, and the begins and ends of the new windows.

        Parameters
        ----------
        over
            ``(count,)`` use by the columns minus capacity.
        prices
            ``(count,)`` prices, equal within windows.
        usual
            A typical price, assigned to windows of price 0.
        least
            Total worth that splitting must exceed; otherwise nothing is split.
        """
        start, end = self.start, self.end
        sizes, price = end - start, prices[start]
        total = np.cumsum(over)
        until = total - np.repeat(total[start] - over[start], sizes)
        moved = np.maximum(np.maximum(until, np.repeat(until[end - 1], sizes) - until), 0.0)
        moved[end - 1] = 0.0
        most = np.maximum.reduceat(moved, start)
        before = np.where(start % self.series == 0, price, np.roll(price, 1))
        after = np.where(end % self.series == 0, price, np.roll(price, -1))
        step = np.maximum(np.abs(before - price), np.abs(after - price))
        worth = most * np.where(price > 0, step, np.maximum(step, usual))
        if worth.sum() <= least:
            return self, start[:0], end[:0]
        order = np.argsort(-worth, kind="stable")
        first = order[: 1 + np.searchsorted(np.cumsum(worth[order]), SHARE * worth.sum())]
        window = np.repeat(np.arange(len(start)), sizes)
        largest = np.flatnonzero(moved == most[window])
        middle = largest[np.searchsorted(window[largest], first)] + 1
        parts = np.concatenate([start[first], middle]), np.concatenate([middle, end[first]])
        return Windows(np.sort(np.append(start, middle)), self.count, self.series), *parts


def sums(start: Ints, end: Ints, total: int) -> sp.csr_array:
    """Return the ``(len(start), total)`` matrix that sums entries from each start up to its end."""
    ends = np.concatenate([[0], np.cumsum(end - start)])
    index = np.arange(ends[-1]) + np.repeat(start - ends[:-1], end - start)
    return sp.csr_array((np.ones(ends[-1]), index, ends), shape=(len(start), total))
