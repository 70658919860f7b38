"""The restricted master problem inside HiGHS: add columns, solve from the last basis, drop what is useless."""

from __future__ import annotations

from dataclasses import dataclass, replace

import highspy
import numpy as np
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.models.columns.packing import Columns, Packing
from schedgap.models.solve import Session, Size, SolveOptions, StandardForm, Status, Times
from schedgap.models.solve.session import DUAL_SIMPLEX

PENALTY = 10.0
"""What leaving a block uncovered costs at first, in units of the largest value."""

LARGEST_PENALTY = 1e6

BASIC = highspy.HighsBasisStatus.kBasic

PIVOTS_PER_ROW = 50
"""Primal simplex can cycle in column generation (HiGHS issue 1616); beyond so many pivots the dual takes over."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Optimum of the restricted master's LP.

    Attributes
    ----------
    status
        ``"optimal"``, or why there is none.
    value
        Its value, without penalties.
    prices
        ``(m,)`` prices of the capacities.
    block_prices
        ``(blocks,)`` what each block is worth.
    x
        ``(columns,)`` share of each column, in the order in which they were added.
    uncovered
        Total share of blocks without column, where every block needs one.
    """

    status: Status
    value: float
    prices: Array
    block_prices: Array
    x: Array
    uncovered: float


class Master:
    """The LP over the columns so far; see :func:`schedgap.models.columns.statement` for the same in Pyomo.

    Parameters
    ----------
    packing
        Capacities and blocks.
    columns
        First columns, at least one.
    options
        Seed and threads of the solver.
    """

    def __init__(self, packing: Packing, columns: Columns, options: SolveOptions) -> None:
        self.packing = packing
        self.scale = float(np.abs(columns.value).max()) or 1.0
        self.slacks = packing.blocks if packing.cover else 0
        self.penalty = PENALTY
        self.columns = columns
        self.idle = np.zeros(len(columns), np.int64)
        self.times = Times()
        self.iterations = 0
        bare = replace(options, time_limit_s=None, mip_start=None, basis=None, cross_check=False, method="simplex")
        self._session = Session(self._form(columns), bare)

    @property
    def size(self) -> Size:
        """Rows, columns and nonzeros as they are now."""
        rows = len(self.packing.capacity) + self.packing.blocks
        return Size(rows, len(self.columns) + self.slacks, self.columns.use.nnz + len(self.columns) + self.slacks)

    def _form(self, columns: Columns) -> StandardForm:
        m, blocks = len(self.packing.capacity), self.packing.blocks
        slacks = sp.csc_array((m + blocks, self.slacks))
        if self.slacks:
            slacks = sp.csc_array(sp.vstack([sp.csc_array((m, blocks)), sp.eye_array(blocks)], format="csc"))
        cost = np.concatenate([np.full(self.slacks, -self.penalty), columns.value / self.scale])
        ones = np.ones(blocks)
        return StandardForm(
            cost=cost,
            offset=0.0,
            maximise=True,
            matrix=sp.csc_array(sp.hstack([slacks, self._stacked(columns)], format="csc")),
            row_lower=np.concatenate([np.full(m, -np.inf), ones if self.packing.cover else ones - np.inf]),
            row_upper=np.concatenate([self.packing.capacity, ones]),
            lower=np.zeros(len(cost)),
            upper=np.full(len(cost), np.inf),
            integer=np.zeros(len(cost), bool),
            columns=(),
            rows=(),
        )

    def _stacked(self, columns: Columns) -> sp.csc_array:
        """Return what the columns use, above the rows of the blocks."""
        ones = np.ones(len(columns))
        block = sp.csc_array((ones, (columns.block, np.arange(len(columns)))), (self.packing.blocks, len(columns)))
        return sp.csc_array(sp.vstack([columns.use, block], format="csc"))

    def add(self, columns: Columns) -> None:
        """Add a batch of columns."""
        began = clock.now()
        zeros = np.zeros(len(columns))
        self._session.add_columns(columns.value / self.scale, zeros, zeros + np.inf, self._stacked(columns))
        self.columns = Columns.joined([self.columns, columns])
        self.idle = np.concatenate([self.idle, np.zeros(len(columns), np.int64)])
        self.times = replace(self.times, transfer_s=self.times.transfer_s + clock.now() - began)

    def drop(self, which: Ints) -> None:
        """Remove columns by index, except those in the basis, whose removal would invalidate it."""
        status = self._session.highs.getBasis().col_status
        which = np.array([c for c in which.tolist() if status[c + self.slacks] != BASIC], np.int64)
        keep = np.ones(len(self.columns), bool)
        keep[which] = False
        self._session.delete_columns(which + self.slacks)
        self.columns, self.idle = self.columns.take(keep), self.idle[keep]

    def solve(self) -> Relaxation:
        """Solve the LP, raising the penalty while blocks stay uncovered."""
        while True:
            relaxation = self._solve()
            if relaxation.status != "optimal" or relaxation.uncovered < 1e-7 or self.penalty >= LARGEST_PENALTY:
                return relaxation
            self.penalty *= 10
            for slack in range(self.slacks):
                self._session.highs.changeColCost(slack, -self.penalty)

    def _solve(self) -> Relaxation:
        rows = len(self.packing.capacity) + self.packing.blocks
        self._session.set_option("simplex_iteration_limit", PIVOTS_PER_ROW * rows + 10_000)
        solution = self._session.run()
        self.iterations += solution.iterations or 0
        # HiGHS 1.15.1 calls points optimal that are infeasible by more than its tolerance, where scaling hides that.
        if solution.status == "error" or (solution.status == "optimal" and solution.column_values is None):
            self._session.highs.clearSolver()
            self._session.set_option("simplex_strategy", DUAL_SIMPLEX)
            self._session.set_option("simplex_iteration_limit", highspy.kHighsIInf)
            solution = self._session.run()
        self.times = replace(
            self.times,
            transfer_s=self.times.transfer_s + solution.times.transfer_s,
            solve_s=self.times.solve_s + solution.times.solve_s,
        )
        m = len(self.packing.capacity)
        if solution.status != "optimal" or solution.row_duals is None or solution.column_values is None:
            nothing = np.zeros(len(self.columns))
            ended: Status = "error" if solution.status == "optimal" else solution.status
            return Relaxation(ended, np.nan, np.zeros(m), np.zeros(self.packing.blocks), nothing, 0.0)
        duals = solution.row_duals * self.scale
        x = solution.column_values[self.slacks :]
        self.idle = np.where(x > 0, 0, self.idle + 1)
        return Relaxation(
            "optimal",
            float(self.columns.value @ x),
            np.maximum(duals[:m], 0.0),
            duals[m:],
            x,
            float(solution.column_values[: self.slacks].sum()),
        )
