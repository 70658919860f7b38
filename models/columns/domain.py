"""What branching has left of a packing problem: decisions that every paper's pricing keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.models.columns.packing import Columns, Packing


class Use(NamedTuple):
    """How much a block takes of a row: between `low` and `high`."""

    block: int
    row: int
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Domain:
    """A node of branch and bound: by when each block ends, and what it takes.

    A column that ends before `first` stays, but counts as one that ends in `first`: no more than it is worth. So "ends
    by t" and "counts as ending after t" have all solutions between them, and pricing needs no more than another table
    of worths, which is non-increasing as before. A block without column ends after all ends.

    Attributes
    ----------
    packing
        The whole problem.
    first, last
        ``(blocks,)`` ends as which columns count at least, and by which they end; `last` is the number of ends where a
        block may do without a column, and `first` where it has to.
    uses
        Bounds on what blocks take of rows, at most one for each pair.
    room
        ``(m,)`` what is left of the capacities for columns that are still sought; all by default. Pricing may return
        others all the same.
    """

    packing: Packing
    first: Ints
    last: Ints
    uses: tuple[Use, ...] = ()
    room: Array | None = None

    @staticmethod
    def of(packing: Packing) -> Domain:
        """Return the domain in which nothing is decided."""
        ends = 0 if packing.worth is None else packing.worth.shape[1]
        never = np.full(packing.blocks, ends - packing.cover, np.int64)
        return Domain(packing, np.zeros(packing.blocks, np.int64), never)

    @property
    def ends(self) -> int:
        """Number of ends, which is the end of a block without column."""
        return 0 if self.packing.worth is None else self.packing.worth.shape[1]

    @cached_property
    def must(self) -> Bools:
        """``(blocks,)`` whether a block needs a column."""
        return np.asarray(self.last < self.ends)

    @property
    def least(self) -> float:
        """A value below that of every solution."""
        if self.packing.worth is None or not self.packing.worth.size:
            return -np.inf
        finite = np.where(np.isfinite(self.packing.worth), self.packing.worth, np.inf).min(axis=1)
        worst = np.minimum(finite, np.where(self.must, np.inf, 0.0))
        return float(np.where(np.isfinite(worst), worst - ROUNDING * np.abs(worst), 0.0).sum()) - ROUNDING

    @cached_property
    def worth(self) -> Array:
        """``(blocks, ends)`` what columns count as, by their ends; ``-inf`` after the last one."""
        assert self.packing.worth is not None
        known = np.column_stack((self.packing.worth, np.zeros(self.packing.blocks)))
        ends = np.arange(self.ends)
        counted = np.take_along_axis(known, np.maximum(ends, self.first[:, None]), axis=1)
        return np.where(ends <= self.last[:, None], counted, -np.inf)

    def values(self, columns: Columns) -> Array:
        """Return what columns count as here; ``-inf`` for those that are out of the domain."""
        if self.packing.worth is None:
            return columns.value
        values = self.worth[columns.block, columns.end]
        for use in self.uses:
            own = np.flatnonzero(columns.block == use.block)
            taken = columns.use[[use.row]][:, own].toarray()[0]
            values[own[(taken < use.low - 0.5) | (taken > use.high + 0.5)]] = -np.inf
        return np.asarray(values)

    def profit(self, columns: Columns, prices: Array) -> Array:
        """Return what columns count as here, less the cost of what they use at `prices` ``(m,)``."""
        return np.asarray(self.values(columns) - columns.use.T @ prices)

    def ending(self, block: int, first: int, last: int) -> Domain:
        """Return the domain with the ends of a block narrowed to ``first … last``."""
        firsts, lasts = self.first.copy(), self.last.copy()
        firsts[block], lasts[block] = max(first, firsts[block]), min(last, lasts[block])
        return replace(self, first=firsts, last=lasts)

    def using(self, block: int, row: int, low: float, high: float) -> Domain:
        """Return the domain in which a block takes at least `low` and at most `high` of a row."""
        most = int(self.packing.capacity[row])
        known = {(use.block, use.row): use for use in self.uses}
        old = known.get((block, row), Use(block, row, 0, most))
        known[block, row] = Use(block, row, max(old.low, int(low)), min(old.high, int(min(high, most))))
        return replace(self, uses=tuple(sorted(known.values())))

    def within(self, profit: Array, least: Array) -> Domain:
        """Return the domain without the ends whose profit ``(blocks, ends)`` is below `least` ``(blocks,)``."""
        kept = np.column_stack((profit, np.where(self.must, -np.inf, 0.0))) >= least[:, None]
        some = kept.any(axis=1)
        first = np.where(some, np.maximum(self.first, kept.argmax(axis=1)), self.first)
        last = np.where(some, np.minimum(self.last, self.ends - kept[:, ::-1].argmax(axis=1)), self.last)
        return replace(self, first=first, last=last)


def children(domain: Domain, columns: Columns, x: Array, whole: bool) -> tuple[Domain, Domain] | None:
    """Return two domains that a fractional solution is in neither of, the likelier one first; ``None`` without any.

    Ends are decided first, since they alone are worth something; then what blocks take of rows.

    Parameters
    ----------
    domain, columns, x
        The domain, and the optimum of its relaxation.
    whole
        Whether columns take whole numbers of rows, bounds on which the pricing keeps.
    """
    return _by_end(domain, columns, x) or (_by_use if whole else _by_window)(domain, columns, x)


def _by_end(domain: Domain, columns: Columns, x: Array) -> tuple[Domain, Domain] | None:
    """Split the ends of the block, and where, so that the part in which its worth changes least changes most."""
    some = np.flatnonzero(x > FRACTION)
    block, share, worth = columns.block[some], x[some], domain.values(columns)[some]
    blocks = domain.packing.blocks
    mean = np.bincount(block, share * worth, blocks)
    none = np.where(domain.must, 0.0, np.maximum(1 - np.bincount(block, share, blocks), 0.0))
    spread = np.bincount(block, share * np.abs(worth - mean[block]), blocks) + none * np.abs(mean)
    best, found = 0.0, None
    for chosen in np.flatnonzero(spread > FRACTION * max(np.abs(worth).max(initial=0.0), 1e-300)).tolist():
        own = some[block == chosen]
        ends = np.append(np.maximum(columns.end[own], domain.first[chosen]), domain.ends)
        change, last, likelier = _split(np.append(domain.worth[chosen], 0.0), ends, np.append(x[own], none[chosen]))
        if change > best:
            best, found = change, (chosen, last, likelier)
    if found is None:
        return None
    chosen, last, likelier = found
    early, late = domain.ending(chosen, 0, last), domain.ending(chosen, last + 1, domain.ends)
    return (early, late) if likelier else (late, early)


def _split(worth: Array, ends: Ints, share: Array) -> tuple[float, int, bool]:
    """Return how much a block's worth changes on either side of its best split, the split, and the likelier side.

    What ends late would be worth no less than the split, and what ends early no more than the end after it. Right after
    the last of several close ends, the part with all later ones would hardly change: 36 of 42 nodes of ``gen/50jobs``
    split off one end after another, and 60 s ended at 503.62 and not at 503.52. Ends that are worth as much belong to
    the same side.
    """
    ends, share = ends[share > 0], share[share > 0]
    steps = np.flatnonzero(worth[:-1] > worth[1:])[:, None]
    late = ends > steps
    less = np.where(late, share * np.maximum(worth[steps] - worth[ends], 0.0), 0.0).sum(axis=1)
    more = np.where(late, 0.0, share * np.maximum(worth[ends] - worth[steps + 1], 0.0)).sum(axis=1)
    change = np.minimum(less, more)
    if not change.size:
        return 0.0, 0, True
    at = int(change.argmax())
    return float(change[at]), int(steps[at, 0]), bool(share[~late[at]].sum() >= 0.5)


def _by_use(domain: Domain, columns: Columns, x: Array) -> tuple[Domain, Domain] | None:
    """Split what a block with several columns takes of the row in which they differ most."""
    worth = domain.values(columns)
    some = np.flatnonzero((x > FRACTION) & (x < 1 - FRACTION) & (domain.must[columns.block] | (worth != 0)))
    block = columns.block[some]
    several = [b for b in np.unique(block).tolist() if np.count_nonzero(block == b) > 1]
    for chosen in sorted(several, key=lambda b: float(x[some[block == b]].max())):  # the most divided ones first
        own = some[block == chosen]
        use = columns.use[: len(domain.packing.capacity), own].toarray()
        share = x[own] / x[own].sum()
        mean = use @ share
        differ = np.abs(use - mean[:, None]) @ share
        row = int(differ.argmax())
        if differ[row] > FRACTION:
            split = int(np.clip(np.floor(mean[row]), use[row].min(), use[row].max() - 1))
            many, few = domain.using(chosen, row, split + 1, np.inf), domain.using(chosen, row, 0, split)
            return (many, few) if mean[row] - split >= 0.5 else (few, many)
    return None


def _by_window(domain: Domain, columns: Columns, x: Array) -> tuple[Domain, Domain] | None:
    """Split the ends of any block that may still end at several times, at the end that it has.

    For solutions in whole columns that are none of the real problem: the ends are decided one by one.
    """
    assert domain.packing.worth is not None
    known = np.column_stack((domain.packing.worth, np.zeros(domain.packing.blocks)))
    every = np.arange(domain.packing.blocks)
    open_ = known[every, domain.first] - known[every, domain.last]
    chosen = int(open_.argmax()) if len(open_) else 0
    if not len(open_) or not open_[chosen] > 0:
        return None
    share = np.where(columns.block == chosen, x, 0.0)
    first, last, worth = int(domain.first[chosen]), int(domain.last[chosen]), known[chosen]
    end = int(np.clip(columns.end[share.argmax()], first, last)) if share.max(initial=0.0) > FRACTION else last
    alike = np.flatnonzero(worth[first : last + 1] == worth[end]) + first
    if alike[-1] < last:
        return domain.ending(chosen, 0, alike[-1]), domain.ending(chosen, alike[-1] + 1, domain.ends)
    return domain.ending(chosen, alike[0], domain.ends), domain.ending(chosen, 0, alike[0] - 1)


ROUNDING = 1e-6

FRACTION = 1e-6
"""Shares of columns, and parts of worths, up to which they count as none."""
