"""Branching decisions on a packing problem, which the pricing of every paper respects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.models.engine.columns.packing import Columns, Packing


class Use(NamedTuple):
    """A branching decision: a block uses between `low` and `high` units of the capacity `row`."""

    block: int
    row: int
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Domain:
    """The feasible region of a branch-and-bound node: when each block may end, and how much it may use of capacities.

    A column that ends before `first` stays feasible, but counts as if it ended at `first`, which never overstates its
    value. So "ends by t" and "counts as ending after t" together contain all solutions, and pricing only needs another
    table of values, non-increasing as before. A block without column ends after all ends.

    Attributes
    ----------
    packing
        The whole problem.
    first, last
        ``(blocks,)`` earliest end that columns count as, and latest end that is feasible. `last` equal to the number of
        ends allows a block to have no column, and `first` equal to it forbids a column.
    uses
        Bounds on how much a block uses of a capacity; at most one for each pair of block and capacity.
    room
        ``(m,)`` capacity left for further columns; all of it by default. Pricing may ignore this and return larger
        columns.
    """

    packing: Packing
    first: Ints
    last: Ints
    uses: tuple[Use, ...] = ()
    room: Array | None = None

    @staticmethod
    def of(packing: Packing) -> Domain:
        """Return the domain of the root node, without any decision."""
        ends = 0 if packing.worth is None else packing.worth.shape[1]
        never = np.full(packing.blocks, ends - packing.cover, np.int64)
        return Domain(packing, np.zeros(packing.blocks, np.int64), never)

    @property
    def ends(self) -> int:
        """Number of ends, which is also the index that stands for the end of a block without column."""
        return 0 if self.packing.worth is None else self.packing.worth.shape[1]

    @cached_property
    def must(self) -> Bools:
        """``(blocks,)`` whether a block needs a column."""
        return np.asarray(self.last < self.ends)

    @property
    def least(self) -> float:
        """A lower bound on the value of every solution."""
        if self.packing.worth is None or not self.packing.worth.size:
            return -np.inf
        finite = np.where(np.isfinite(self.packing.worth), self.packing.worth, np.inf).min(axis=1)
        worst = np.minimum(finite, np.where(self.must, np.inf, 0.0))
        return float(np.where(np.isfinite(worst), worst - ROUNDING * np.abs(worst), 0.0).sum()) - ROUNDING

    @cached_property
    def worth(self) -> Array:
        """``(blocks, ends)`` values of columns in this domain, by their ends; ``-inf`` after `last`."""
        ends = np.arange(self.ends)
        if self.packing.worth is not None and not self.first.any() and (self.last >= self.ends - 1).all():
            return self.packing.worth  # no decision: a copy for each job and end would take gigabytes
        counted = np.take_along_axis(self.packing.worth_by_end, np.maximum(ends, self.first[:, None]), axis=1)
        return np.where(ends <= self.last[:, None], counted, -np.inf)

    def values(self, columns: Columns) -> Array:
        """Return the values of columns in this domain; ``-inf`` for those outside."""
        if self.packing.worth is None:
            return columns.value
        values = self.worth[columns.block, columns.end]
        for use in self.uses:
            own = np.flatnonzero(columns.block == use.block)
            taken = columns.use[[use.row]][:, own].toarray()[0]
            values[own[(taken < use.low - 0.5) | (taken > use.high + 0.5)]] = -np.inf
        return np.asarray(values)

    def profit(self, columns: Columns, prices: Array) -> Array:
        """Return the values of columns in this domain, less the cost of their use at `prices` ``(m,)``."""
        return np.asarray(self.values(columns) - columns.use.T @ prices)

    def ending(self, block: int, first: int, last: int) -> Domain:
        """Return the domain with the ends of a block restricted to ``first … last``."""
        firsts, lasts = self.first.copy(), self.last.copy()
        firsts[block], lasts[block] = max(first, firsts[block]), min(last, lasts[block])
        return replace(self, first=firsts, last=lasts)

    def using(self, block: int, row: int, low: float, high: float) -> Domain:
        """Return the domain in which a block uses at least `low` and at most `high` units of the capacity `row`."""
        most = int(self.packing.capacity[row])
        bounds = {(use.block, use.row): use for use in self.uses}
        old = bounds.get((block, row), Use(block, row, 0, most))
        bounds[block, row] = Use(block, row, max(old.low, int(low)), min(old.high, int(min(high, most))))
        return replace(self, uses=tuple(sorted(bounds.values())))

    def within(self, profit: Array, least: Array) -> Domain:
        """Return the domain without the ends whose profit ``(blocks, ends)`` is below `least` ``(blocks,)``."""
        kept = np.column_stack((profit, np.where(self.must, -np.inf, 0.0))) >= least[:, None]
        nonempty = kept.any(axis=1)
        first = np.where(nonempty, np.maximum(self.first, kept.argmax(axis=1)), self.first)
        last = np.where(nonempty, np.minimum(self.last, self.ends - kept[:, ::-1].argmax(axis=1)), self.last)
        return replace(self, first=first, last=last)


def children(domain: Domain, columns: Columns, x: Array, whole: bool) -> tuple[Domain, Domain] | None:
    """Return two domains that exclude a fractional solution, the likelier one first; ``None`` if none can be found.

    It branches on the end of a block if possible, since values depend on ends alone, and otherwise on how much a block
    uses of a capacity.

    Parameters
    ----------
    domain, columns, x
        The domain, and the optimum of its relaxation.
    whole
        True if columns use whole units of capacities, and the pricing respects bounds on these units.
    """
    return _by_end(domain, columns, x) or (_by_use if whole else _by_window)(domain, columns, x)


def _by_end(domain: Domain, columns: Columns, x: Array) -> tuple[Domain, Domain] | None:
    """Branch on the end of a block: of the changes of its value in the two children, the smaller one is largest."""
    active = np.flatnonzero(x > FRACTION)
    block, share, worth = columns.block[active], x[active], domain.values(columns)[active]
    blocks = domain.packing.blocks
    mean = np.bincount(block, share * worth, blocks)
    none = np.where(domain.must, 0.0, np.maximum(1 - np.bincount(block, share, blocks), 0.0))
    spread = np.bincount(block, share * np.abs(worth - mean[block]), blocks) + none * np.abs(mean)
    best, split = 0.0, None
    for b in np.flatnonzero(spread > FRACTION * max(np.abs(worth).max(initial=0.0), 1e-300)).tolist():
        own = active[block == b]
        ends = np.append(np.maximum(columns.end[own], domain.first[b]), domain.ends)
        change, last, early_first = _split(np.append(domain.worth[b], 0.0), ends, np.append(x[own], none[b]))
        if change > best:
            best, split = change, (b, last, early_first)
    if split is None:
        return None
    b, last, early_first = split
    early, late = domain.ending(b, 0, last), domain.ending(b, last + 1, domain.ends)
    return (early, late) if early_first else (late, early)


def _split(worth: Array, ends: Ints, share: Array) -> tuple[float, int, bool]:
    """Return the best split of a block's ends: the smaller change of value, its place, and if early ends are likelier.

    In the early child, columns that end late are replaced by columns worth at least the value at the split. In the late
    child, columns that end early count at most the value right after it. The smaller of these two changes is maximised,
    since a split right after the last of several close ends hardly changes the late child. Ends of equal value stay
    together.
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
    """Split the search in two by how much of one capacity a job may use.

    In one half the job uses more than the mean of its fractional columns, in the other at most that. The capacity is
    the one in which these columns differ most.
    """
    worth = domain.values(columns)
    fractional = np.flatnonzero((x > FRACTION) & (x < 1 - FRACTION) & (domain.must[columns.block] | (worth != 0)))
    block = columns.block[fractional]
    several = [b for b in np.unique(block).tolist() if np.count_nonzero(block == b) > 1]
    for chosen in sorted(several, key=lambda b: float(x[fractional[block == b]].max())):  # most fractional first
        own = fractional[block == chosen]
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
    """Branch on the end of the block whose possible values differ most, at the end that it has in the relaxation.

    This is for relaxations whose integral optimum is infeasible in the real problem: ends are then fixed one by one.
    """
    values = domain.packing.worth_by_end
    every = np.arange(domain.packing.blocks)
    spread = values[every, domain.first] - values[every, domain.last]
    chosen = int(spread.argmax()) if len(spread) else 0
    if not len(spread) or not spread[chosen] > 0:
        return None
    share = np.where(columns.block == chosen, x, 0.0)
    first, last, worth = int(domain.first[chosen]), int(domain.last[chosen]), values[chosen]
    end = int(np.clip(columns.end[share.argmax()], first, last)) if share.max(initial=0.0) > FRACTION else last
    alike = np.flatnonzero(worth[first : last + 1] == worth[end]) + first
    if alike[-1] < last:
        return domain.ending(chosen, 0, alike[-1]), domain.ending(chosen, alike[-1] + 1, domain.ends)
    return domain.ending(chosen, alike[0], domain.ends), domain.ending(chosen, 0, alike[0] - 1)


ROUNDING = 1e-6

FRACTION = 1e-6
"""Shares of columns, and relative differences of values, up to this count as 0."""
