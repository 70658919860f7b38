"""The packing problem that column generation solves, batches of its columns, and its statement in Pyomo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.models.engine.columns.covers import Covers, broken
from schedgap.models.engine.columns.knapsacks import Knapsacks, separated
from schedgap.models.engine.statements import grouped

CELLS = 5_000_000
"""Largest product of the numbers of capacities and blocks for which cuts are separated: a round of separation of covers
does not check the time limit, and takes more than 8 s at 14 million."""

WEIGHTS = 50_000_000
"""Largest number of weights of knapsack cuts, which take 0.4 GB."""


@dataclass(frozen=True, eq=False)
class Packing:
    """``max Σ v_c x_c`` over columns ``c`` that use ``m`` capacities, at most one (or exactly one) per block.

    ``Σ_c use[i, c]·x_c ≤ capacity[i]``, ``Σ_{c in block b} x_c ≤ 1`` (``= 1`` with `cover`), ``x_c`` in {0, 1}.
    To minimise costs, pass their negatives as values.

    Attributes
    ----------
    capacity
        ``(m,)`` capacities, 0 or more.
    blocks
        Number of blocks (jobs).
    cover
        Whether every block needs a column.
    floor
        A value that every feasible solution reaches: a bound below it proves infeasibility.
    worth
        ``(blocks, ends)`` values of columns by their end, non-increasing, if branching is on ends.
    most
        ``(blocks,)`` largest use of a capacity by a column, 1 or more, if columns use whole numbers and the pricing
        supports prices of cuts; ``None`` for no cuts.
    weighed
        ``(m,)`` capacities that may have :class:`.Knapsacks`; ``None`` if all may have :class:`.Covers`.
    known
        Cuts found so far; they are the last rows of :attr:`limits`.
    series
        Number of consecutive capacities that follow one another in time, which the master may aggregate; 1 for none.
    """

    capacity: Array
    blocks: int
    cover: bool = False
    floor: float = -np.inf
    worth: Array | None = None
    most: Ints | None = None
    weighed: Bools | None = None
    known: Covers | Knapsacks | None = None
    series: int = 1

    @cached_property
    def cuts(self) -> Covers | Knapsacks:
        """The cuts found so far, possibly none."""
        return self.known or Covers.none(self.blocks)

    @cached_property
    def limits(self) -> Array:
        """``(rows,)`` right-hand sides: the capacities, followed by those of the cuts."""
        return np.concatenate([self.capacity, self.cuts.limits(self.capacity)])

    @cached_property
    def worth_by_end(self) -> Array:
        """``(blocks, ends + 1)`` `worth`, followed by the value of a block without column, 0."""
        assert self.worth is not None
        return np.column_stack((self.worth, np.zeros(self.blocks)))

    def stronger(self, columns: Columns, x: Array, budget: clock.Budget | None = None) -> Packing | None:
        """Return the problem with additional cuts that the shares `x` ``(c,)`` of columns violate, or ``None``.

        Cuts are not separated beyond :data:`CELLS`, nor once the time of the budget is used.
        """
        if self.most is None or len(self.capacity) * self.blocks > CELLS:
            return None
        used, known = columns.take(x > 0), self.known
        shares = used.use[: len(self.capacity)], used.block, x[x > 0]
        if self.weighed is None:
            covers = broken(self.capacity, self.most, *shares)
            assert not isinstance(known, Knapsacks)
            return replace(self, known=known.and_(covers) if known else covers) if len(covers) else None
        assert not isinstance(known, Covers)
        if known and known.weights.size > WEIGHTS:
            return None
        rows = np.flatnonzero(self.weighed)
        found = separated(self.capacity, self.most, rows, *shares, budget or clock.Budget())
        return replace(self, known=known.and_(found) if known else found) if found else None

    def lifted(self, columns: Columns) -> Columns:
        """Return columns with their coefficients in all cuts, adding those that are missing."""
        present = columns.use.shape[0] - len(self.capacity)
        if present == len(self.cuts):
            return columns
        missing = self.cuts.use(columns.use[: len(self.capacity)], columns.block, present)
        return replace(columns, use=sp.csc_array(sp.vstack([columns.use, missing], format="csc")))


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
        ``(m, c)`` sparse: use of each capacity by each column, 0 or more.
    end
        ``(c,)`` end of the block in each column, an index into :attr:`Packing.worth`; 0 without branching.
    """

    block: Ints
    value: Array
    use: sp.csc_array
    end: Ints

    def __len__(self) -> int:
        return len(self.block)

    def profit(self, prices: Array) -> Array:
        """Return ``(c,)`` values less the cost of the columns' use at `prices` ``(m,)``."""
        return np.asarray(self.value - self.use.T @ prices)

    def take(self, which: Ints | Bools) -> Columns:
        """Return the columns selected by a mask or by indices."""
        chosen = np.flatnonzero(which) if which.dtype == bool else which
        return Columns(self.block[chosen], self.value[chosen], sp.csc_array(self.use[:, chosen]), self.end[chosen])

    @staticmethod
    def joined(batches: Sequence[Columns]) -> Columns:
        """Concatenate batches (at least one)."""
        return Columns(
            np.concatenate([batch.block for batch in batches]),
            np.concatenate([batch.value for batch in batches]),
            sp.csc_array(sp.hstack([batch.use for batch in batches], format="csc")),
            np.concatenate([batch.end for batch in batches]),
        )

    @staticmethod
    def of(rows: int, columns: Iterable[tuple[int, float, Ints, Array]], ends: Sequence[int] = ()) -> Columns:
        """Return a batch from tuples ``(block, value, rows used, amounts)``.

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


def statement(packing: Packing, columns: Columns) -> pyo.ConcreteModel:
    """Return the LP of the restricted master over `columns` as a Pyomo model, for cross-checks, teaching and tests.

    Raises
    ------
    ValueError
        If a block needs a column and has none.
    """
    m = pyo.ConcreteModel()
    use = columns.use.tocoo()
    pairs = list(zip(use.row.tolist(), use.col.tolist(), strict=True))
    of_row = grouped(pairs)
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
    m.x = pyo.Var(m.COLUMNS, domain=pyo.NonNegativeReals)

    if of_row:  # Pyomo cannot build a template over an empty set

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
