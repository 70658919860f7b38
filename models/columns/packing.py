"""The problem that column generation solves, batches of its columns, and its statement in Pyomo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.models.columns.covers import Covers, broken
from schedgap.models.statements import grouped

CELLS = 5_000_000
"""Capacities times blocks up to which covers are sought: in ``gen/2000jobs`` with 8,000 jobs and 576 slots, which have
14 million, looking once took over 8 s of computing and 0.6 GB, and nobody looks at the clock meanwhile."""


@dataclass(frozen=True, eq=False)
class Packing:
    """``max Σ v_c x_c`` over columns ``c`` that use ``m`` capacities, at most one (or exactly one) per block.

    ``Σ_c use[i, c]·x_c ≤ capacity[i]``, ``Σ_{c in block b} x_c ≤ 1`` (``= 1`` with `cover`), ``x_c`` in {0, 1}.
    To minimise costs, give their negatives as values.

    Attributes
    ----------
    capacity
        ``(m,)`` capacities, 0 or more.
    blocks
        Number of blocks (jobs).
    cover
        Whether every block needs a column.
    floor
        A value that every feasible solution reaches: a bound below it proves that there is none.
    worth
        ``(blocks, ends)`` what a column is worth by its end, non-increasing, where branching is on ends.
    most
        ``(blocks,)`` what a column uses of a capacity at most, 1 or more, where the pricing takes prices of
        :class:`covers <schedgap.models.columns.covers.Covers>`, and columns use whole numbers.
    parts
        ``(m,)`` capacities of which blocks may keep any part in a cover, and which alone have some; ``None`` for all of
        them, but blocks keep nothing or all that they can use.
    known
        Covers that count as further capacities, the last ones of :attr:`limits`.
    series
        How many capacities each follow one another in time, of which master problems take sums where that is enough.
    """

    capacity: Array
    blocks: int
    cover: bool = False
    floor: float = -np.inf
    worth: Array | None = None
    most: Ints | None = None
    parts: Bools | None = None
    known: Covers | None = None
    series: int = 1

    @cached_property
    def covers(self) -> Covers:
        """The covers."""
        return self.known or Covers.none(self.blocks)

    @cached_property
    def limits(self) -> Array:
        """``(rows,)`` the capacities, and behind them what covers leave of theirs."""
        covers = self.covers
        return np.concatenate([self.capacity, self.capacity[covers.row] - covers.spare])

    def stronger(self, columns: Columns, x: Array) -> Packing | None:
        """Return the problem with the covers that `x` ``(c,)`` of columns break; ``None`` where there are none.

        Nobody seeks them beyond :data:`CELLS`.
        """
        if self.most is None or len(self.capacity) * self.blocks > CELLS:
            return None
        some = columns.take(x > 0)
        found = broken(self.capacity, self.most, self.parts, some.use[: len(self.capacity)], some.block, x[x > 0])
        return replace(self, known=self.covers.and_(found)) if len(found) else None

    def lifted(self, columns: Columns) -> Columns:
        """Return columns with what they use of covers, where that is not there yet."""
        there = columns.use.shape[0] - len(self.capacity)
        if there == len(self.covers):
            return columns
        own = columns.use[: len(self.capacity)]
        more = self.covers.use(own, columns.block, there)
        return replace(columns, use=sp.csc_array(sp.vstack([columns.use, more], format="csc")))


@dataclass(frozen=True, eq=False)
class Columns:
    """A batch of ``c`` columns.

    Attributes
    ----------
    block
        ``(c,)`` block of each column.
    value
        ``(c,)`` value of each column.
    use
        ``(m, c)`` sparse: what each column takes of each capacity, 0 or more.
    end
        ``(c,)`` where its block ends with it, index into :attr:`Packing.worth`; 0 where nobody branches.
    """

    block: Ints
    value: Array
    use: sp.csc_array
    end: Ints

    def __len__(self) -> int:
        return len(self.block)

    def profit(self, prices: Array) -> Array:
        """Return ``(c,)`` values less the cost of what the columns use at `prices` ``(m,)``."""
        return np.asarray(self.value - self.use.T @ prices)

    def take(self, which: Ints | Bools) -> Columns:
        """Return the columns of that mask or those indices."""
        chosen = np.flatnonzero(which) if which.dtype == bool else which
        return Columns(self.block[chosen], self.value[chosen], sp.csc_array(self.use[:, chosen]), self.end[chosen])

    @staticmethod
    def joined(batches: Sequence[Columns]) -> Columns:
        """Return several batches (at least one) as one."""
        return Columns(
            np.concatenate([batch.block for batch in batches]),
            np.concatenate([batch.value for batch in batches]),
            sp.csc_array(sp.hstack([batch.use for batch in batches], format="csc")),
            np.concatenate([batch.end for batch in batches]),
        )

    @staticmethod
    def of(rows: int, columns: Iterable[tuple[int, float, Ints, Array]], ends: Sequence[int] = ()) -> Columns:
        """Return the batch of ``(block, value, rows used, amounts)``.

        Parameters
        ----------
        rows
            Number of capacities, ``m``.
        columns
            The columns.
        ends
            Their ends.
        """
        listed = list(columns)
        sizes = [len(column[2]) for column in listed]
        return Columns(
            block=np.array([column[0] for column in listed], np.int64),
            value=np.array([column[1] for column in listed], float),
            use=sp.csc_array(
                (
                    np.concatenate([np.zeros(0), *(column[3] for column in listed)]),
                    np.concatenate([np.zeros(0, np.int64), *(column[2] for column in listed)]),
                    np.cumsum([0, *sizes]),
                ),
                shape=(rows, len(listed)),
            ),
            end=np.array(ends, np.int64) if len(ends) else np.zeros(len(listed), np.int64),
        )


def statement(packing: Packing, columns: Columns, integer: bool = False) -> pyo.ConcreteModel:
    """Return the master problem over `columns` as a Pyomo model: for the integer phase, for teaching and for tests.

    Parameters
    ----------
    packing
        Capacities and blocks.
    columns
        The columns that are known.
    integer
        Whether columns are chosen or not; the LP relaxation by default.

    Raises
    ------
    ValueError
        If a block needs a column and has none.
    """
    m = pyo.ConcreteModel()
    use = columns.use.tocoo()
    pairs = list(zip(use.row.tolist(), use.col.tolist(), strict=True))
    of_row = grouped(zip(use.row.tolist(), use.col.tolist(), strict=True))
    of_block = grouped(zip(columns.block.tolist(), range(len(columns)), strict=True))
    if packing.cover and len(of_block) < packing.blocks:
        raise ValueError(f"{packing.blocks - len(of_block)} blocks need a column and have none")
    m.COLUMNS = pyo.RangeSet(0, len(columns) - 1)
    m.ROWS = pyo.Set(initialize=sorted(of_row))
    m.BLOCKS = pyo.Set(initialize=sorted(of_block))
    m.OF_ROW = pyo.Set(m.ROWS, initialize=of_row)
    m.OF_BLOCK = pyo.Set(m.BLOCKS, initialize=of_block)
    m.value = pyo.Param(m.COLUMNS, initialize=dict(enumerate(columns.value.tolist())))
    m.use = pyo.Param(pyo.Set(initialize=pairs), initialize=dict(zip(pairs, use.data.tolist(), strict=True)))
    m.capacity = pyo.Param(m.ROWS, initialize={i: float(packing.capacity[i]) for i in of_row})
    m.x = pyo.Var(m.COLUMNS, domain=pyo.Binary if integer else pyo.NonNegativeReals)

    if of_row:  # Pyomo cannot make a template over an empty set

        @m.Constraint(m.ROWS)
        def within(m: Any, i: int) -> Any:
            return sum(m.use[i, c] * m.x[c] for c in m.OF_ROW[i]) <= m.capacity[i]

    @m.Constraint(m.BLOCKS)
    def once(m: Any, b: int) -> Any:
        total = sum(m.x[c] for c in m.OF_BLOCK[b])
        return total == 1 if packing.cover else total <= 1

    @m.Objective(sense=pyo.maximize)
    def total(m: Any) -> Any:
        return sum(m.value[c] * m.x[c] for c in m.COLUMNS)

    return m
