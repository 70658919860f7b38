"""The restricted master in HiGHS: add columns, solve from the last basis, drop idle columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import highspy
import numpy as np
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.models.engine.columns.domain import Domain
from schedgap.models.engine.columns.packing import Columns
from schedgap.models.engine.columns.windows import Windows, sums
from schedgap.models.engine.solve import Session, Size, Solution, SolveOptions, StandardForm, Status, Times
from schedgap.models.engine.solve.session import DUAL_SIMPLEX, PRIMAL_SIMPLEX

PENALTY = 10.0
"""Initial penalty for leaving a block uncovered, in units of the largest value."""

LARGEST_PENALTY = 1e6

BROKEN = 1e-6
"""Violation of a capacity from which its row is added; HiGHS's own feasibility tolerance is 1e-7."""

BASIC = highspy.HighsBasisStatus.kBasic

MISPRICED = 1e-9
"""A column improves the master if its reduced cost exceeds this fraction of the largest value."""

SETTLED = 1e-10
"""Dual feasibility tolerance in units of the largest value, below the reduced cost that makes a column worth adding.

At HiGHS's own 1e-7, columns that seemed to gain less than that were added again and again, as copies of existing ones.
"""

PIVOTS_PER_ROW = 50
"""Primal simplex can cycle in column generation (HiGHS issue 1616); after this many pivots, dual simplex takes over."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Optimum of the restricted master's LP.

    Attributes
    ----------
    status
        ``"optimal"``, or why there is no optimum. After a time limit, the other fields are those of the last optimum.
    value
        Its value, without penalties.
    prices
        ``(rows,)`` duals of the capacities, followed by those of the cuts.
    block_prices
        ``(blocks,)`` duals of the blocks' convexity rows.
    x
        ``(columns,)`` share of each column, in the order in which they were added.
    uncovered
        Total share of blocks that lack a column although they need one.
    """

    status: Status
    value: float
    prices: Array
    block_prices: Array
    x: Array
    uncovered: float


def form(domain: Domain, columns: Columns, scale: float, penalty: float, rows: sp.csr_array) -> StandardForm:
    """Return the LP of the master: a slack for each block, and a variable for each column.

    Values are in units of `scale`. Each of `rows` is a sum of capacity rows.
    """
    m, blocks = rows.shape[0], domain.packing.blocks
    slacks = sp.csc_array(sp.vstack([sp.eye_array(blocks), sp.csc_array((m, blocks))], format="csc"))
    cost, upper = _priced(domain, columns, scale)
    ones, must = np.ones(blocks), domain.must
    return StandardForm(
        cost=np.concatenate([np.full(blocks, -penalty), cost]),
        offset=0.0,
        maximise=True,
        matrix=sp.csc_array(sp.hstack([slacks, _stacked(columns, blocks, rows)], format="csc")),
        row_lower=np.concatenate([np.where(must, ones, -np.inf), np.full(m, -np.inf)]),
        row_upper=np.concatenate([ones, rows @ domain.packing.limits]),
        lower=np.zeros(blocks + len(cost)),
        upper=np.concatenate([np.where(must, np.inf, 0.0), upper]),
        integer=np.zeros(blocks + len(cost), bool),
    )


def _priced(domain: Domain, columns: Columns, scale: float) -> tuple[Array, Array]:
    """Return objective coefficients and upper bounds of columns; those outside the domain are fixed at 0."""
    values = domain.values(columns)
    allowed = values > -np.inf
    return np.where(allowed, values / scale, 0.0), np.where(allowed, np.inf, 0.0)


def _stacked(columns: Columns, blocks: int, rows: sp.csr_array) -> sp.csc_array:
    """Return the coefficients of columns in the convexity rows of the blocks, followed by those in `rows`.

    Every column begins with its entry 1 in the row of its block; ``scipy.sparse.vstack`` takes twice as long.
    """
    use = sp.csc_array(rows @ columns.use)
    use.sort_indices()
    begin, first = use.indptr[:-1], np.arange(len(columns) + 1, dtype=use.indptr.dtype)
    entries = np.insert(use.data, begin, 1.0), np.insert(use.indices + blocks, begin, columns.block)
    return sp.csc_array((*entries, use.indptr + first), (blocks + use.shape[0], len(columns)))


def choose(domain: Domain, columns: Columns, options: SolveOptions) -> Solution:
    """Solve the restricted master of a domain as a MILP; the solution has one value for each of `columns`."""
    blocks, scale = domain.packing.blocks, float(np.abs(columns.value).max(initial=0.0)) or 1.0
    relaxed = form(domain, columns, scale, 0.0, sp.eye_array(len(domain.packing.limits), format="csr"))
    upper = np.where(relaxed.upper > 0, 1.0, 0.0)
    upper[:blocks] = 0.0
    whole = np.arange(len(upper)) >= blocks
    solution = Session(replace(relaxed, upper=upper, integer=whole), options).run()
    values = None if solution.column_values is None else solution.column_values[blocks:]
    bound = None if solution.bound is None else solution.bound * scale
    return replace(solution, column_values=values, bound=bound)


class Master:
    """The LP over the columns found so far; :func:`.packing.statement` states the same LP in Pyomo.

    Every block has a slack, which has a penalty cost if the block needs a column, and is fixed at 0 otherwise.

    If capacities form series in time, the rows are those of windows (:mod:`schedgap.models.engine.columns.windows`).
    These are the only rows as long as the master is `loose`, that is, until its first move to another domain. From then
    on, rows of single capacities are added as soon as an optimum violates them, so that optima satisfy all capacities.
    Rows of capacities and cuts that are slack leave with every move, and return in the same way: most of them stay
    slack, and a pivot takes longer among many rows.

    Parameters
    ----------
    domain
        Capacities, blocks, and branching decisions.
    columns
        First columns, at least one.
    options
        Seed and threads of the solver.
    """

    def __init__(self, domain: Domain, columns: Columns, options: SolveOptions) -> None:
        self.domain, self.packing = domain, domain.packing
        count, rows = len(self.packing.capacity), len(self.packing.limits)
        self.windows = Windows.of(count, self.packing.series)
        sizes = self.windows.end - self.windows.start
        self.kept = np.concatenate([np.repeat(sizes == 1, sizes), np.ones(rows - count, bool)])
        self.loose = not self.kept.all()
        windows = sums(self.windows.start, self.windows.end, count)
        self.rows = sp.csr_array(sp.block_diag([windows, sp.eye_array(rows - count)], format="csr"))
        self.scale = float(np.abs(columns.value).max()) or 1.0
        self.slacks = self.packing.blocks
        self.penalty = PENALTY
        self.columns = columns
        self.latest = self._nothing("time limit without incumbent")
        self.idle = np.zeros(len(columns), np.int64)
        self.times = Times()
        self.iterations = 0
        bare = replace(options, time_limit_s=None, mip_start=None, basis=None, cross_check=False, method="simplex")
        self.solver = bare.solver
        self._session = Session(form(domain, columns, self.scale, self.penalty, self.rows), bare)
        self._session.set_option("dual_feasibility_tolerance", SETTLED)

    @property
    def size(self) -> Size:
        """Current numbers of rows, columns and nonzeros."""
        rows = self.rows.shape[0] + self.packing.blocks
        slacks = int(self.domain.must.sum())
        return Size(rows, len(self.columns) + slacks, self.columns.use.nnz + len(self.columns) + slacks)

    def move(self, domain: Domain) -> None:
        """Move to another domain of the same problem; columns outside it are fixed at 0.

        The domain may have more cuts. From now on, optima satisfy all capacities.
        """
        self.loose = False
        self._drop_slack_rows()
        first, last = len(self.packing.limits), len(domain.packing.limits)
        self.domain, self.packing, blocks = domain, domain.packing, domain.packing.blocks
        self.columns = self.packing.lifted(self.columns)
        empty = sp.csr_array((self.rows.shape[0], last - first))
        self.rows = sp.csr_array(sp.hstack([self.rows, empty], format="csr"))
        self.kept = np.concatenate([self.kept, np.ones(last - first, bool)])
        self._add_rows(np.arange(first, last), np.arange(first, last) + 1)
        cost, upper = _priced(domain, self.columns, self.scale)
        must, highs = domain.must, self._session.highs
        every = np.arange(blocks + len(cost), dtype=np.int32)
        highs.changeColsBounds(
            len(every), every, np.zeros(len(every)), np.concatenate([np.where(must, np.inf, 0.0), upper])
        )
        highs.changeColsCost(len(cost), every[blocks:], cost)
        highs.changeRowsBounds(blocks, every[:blocks], np.where(must, 1.0, -np.inf), np.ones(blocks))
        self._penalise(PENALTY)
        self._session.set_option("simplex_strategy", DUAL_SIMPLEX)
        self.latest = self._nothing("time limit without incumbent")

    def _nothing(self, status: Status) -> Relaxation:
        """Return a `Relaxation` without an optimum, with the given status."""
        rows, blocks, x = len(self.packing.limits), self.packing.blocks, np.zeros(len(self.columns))
        return Relaxation(status, -np.inf, np.zeros(rows), np.zeros(blocks), x, float(self.domain.must.sum()))

    def _add_rows(self, start: Ints, end: Ints) -> None:
        """Add a row for the sum of the capacities from each start up to its end."""
        if not len(start):
            return
        rows = sums(start, end, len(self.packing.limits))
        self.rows = sp.csr_array(sp.vstack([self.rows, rows], format="csr"))
        use = sp.hstack([sp.csr_array((len(start), self.slacks)), rows @ self.columns.use], format="csr")
        self._session.add_rows(np.full(len(start), -np.inf), rows @ self.packing.limits, sp.csr_array(use))

    def _drop_slack_rows(self) -> None:
        """Remove the rows of single capacities and cuts that are slack in the last optimum.

        They return once an optimum violates them. Their slacks are basic, so that the rest of the basis stays one.
        """
        blocks, basis = self.packing.blocks, self._session.highs.getBasis()
        if not basis.valid:
            return
        basic = np.array([status == BASIC for status in basis.row_status[blocks:]], bool)
        dropped = basic & (np.diff(self.rows.indptr) == 1)
        if dropped.any():
            self.kept[self.rows[dropped].indices] = False
            self.rows = sp.csr_array(self.rows[~dropped])
            self._session.delete_rows(np.flatnonzero(dropped) + blocks, basis)

    def _over(self) -> Array:
        """Return by how much the last optimum exceeds each capacity and cut; negative where some is left."""
        used = np.flatnonzero(self.latest.x)
        return np.asarray(self.columns.use[:, used] @ self.latest.x[used] - self.packing.limits)

    def refine(self, least: float) -> bool:
        """Split windows if that is worth more than `least` at the last optimum; return whether any was split."""
        if not self.loose:
            return False
        capacity = self.packing.capacity
        over = self._over()[: len(capacity)]
        usual = abs(self.latest.value) / max(float((over + capacity).sum()), 1e-9)
        self.windows, start, end = self.windows.split(over, self.latest.prices[: len(capacity)], usual, least)
        self._add_rows(start, end)
        return len(start) > 0

    def _penalise(self, penalty: float) -> None:
        self.penalty = penalty
        slacks = np.arange(self.slacks, dtype=np.int32)
        self._session.highs.changeColsCost(self.slacks, slacks, np.full(self.slacks, -penalty))

    def restrict(self, which: Ints, share: float) -> None:
        """Fix the shares of some columns until the next move."""
        shares = np.full(len(which), share)
        self._session.highs.changeColsBounds(len(which), (which + self.slacks).astype(np.int32), shares, shares)
        self._session.set_option("simplex_strategy", DUAL_SIMPLEX)

    def improves(self, columns: Columns, relaxation: Relaxation) -> Bools:
        """Return which columns have a positive reduced cost at the duals of a relaxation, and so improve the master."""
        profit = self.domain.profit(columns, relaxation.prices)
        return np.asarray(profit > relaxation.block_prices[columns.block] + MISPRICED * self.scale)

    def add(self, columns: Columns) -> None:
        """Add a batch of columns."""
        began = clock.now()
        cost, upper = _priced(self.domain, columns, self.scale)
        self._session.add_columns(
            cost, np.zeros(len(columns)), upper, _stacked(columns, self.packing.blocks, self.rows)
        )
        self.columns = Columns.joined([self.columns, columns])
        self.idle = np.concatenate([self.idle, np.zeros(len(columns), np.int64)])
        self.latest = replace(self.latest, x=np.concatenate([self.latest.x, np.zeros(len(columns))]))
        self.times = replace(self.times, transfer_s=self.times.transfer_s + clock.now() - began)

    def drop(self, which: Ints) -> None:
        """Remove columns by index, except basic ones, whose removal would invalidate the basis."""
        status = self._session.highs.getBasis().col_status
        which = np.array([c for c in which.tolist() if status[c + self.slacks] != BASIC], np.int64)
        keep = np.ones(len(self.columns), bool)
        keep[which] = False
        self._session.delete_columns(which + self.slacks)
        self.columns, self.idle = self.columns.take(keep), self.idle[keep]
        self.latest = replace(self.latest, x=self.latest.x[keep])

    def solve(self, budget: clock.Budget | None = None) -> Relaxation:
        """Solve the LP within a time limit, adding violated rows and raising the penalty of uncovered blocks."""
        budget = budget or clock.Budget()
        while True:
            relaxation = self._solve(budget)
            if relaxation.status == "optimal" and not (self.loose or self.kept.all()):
                broken = np.flatnonzero((self._over() > BROKEN * np.maximum(self.packing.limits, 1.0)) & ~self.kept)
                if broken.size:
                    self.kept[broken] = True
                    self._add_rows(broken, broken + 1)
                    continue
            if relaxation.status != "optimal" or relaxation.uncovered < 1e-7 or self.penalty >= LARGEST_PENALTY:
                return relaxation
            self._penalise(10 * self.penalty)

    def _solve(self, budget: clock.Budget) -> Relaxation:
        blocks = self.packing.blocks
        rows = self.rows.shape[0] + blocks
        self._session.set_option("simplex_iteration_limit", PIVOTS_PER_ROW * rows + 10_000)
        solution = self._session.run(max(budget.left_wall_s, 0.0))
        self.iterations += solution.iterations or 0
        # HiGHS 1.15.1 may call a point optimal although it violates the tolerance, if its scaling hides that. With
        # large penalties, its dual simplex may end without an answer.
        for strategy in (DUAL_SIMPLEX, PRIMAL_SIMPLEX):
            if solution.status != "error" and (solution.status != "optimal" or solution.column_values is not None):
                break
            self._session.highs.clearSolver()
            self._session.set_option("simplex_strategy", strategy)
            self._session.set_option("simplex_iteration_limit", highspy.kHighsIInf)
            solution = self._session.run(max(budget.left_wall_s, 0.0))
        self.times = replace(
            self.times,
            transfer_s=self.times.transfer_s + solution.times.transfer_s,
            solve_s=self.times.solve_s + solution.times.solve_s,
        )
        if solution.status.startswith("time limit"):
            return replace(self.latest, status=solution.status)
        if solution.status != "optimal" or solution.row_duals is None or solution.column_values is None:
            return self._nothing("error" if solution.status == "optimal" else solution.status)
        duals = solution.row_duals * self.scale
        x = solution.column_values[self.slacks :]
        self.idle = np.where(x > 0, 0, self.idle + 1)
        self.latest = Relaxation(
            "optimal",
            float(np.where(x > 0, self.domain.values(self.columns), 0.0) @ x),
            self.rows.T @ np.maximum(duals[blocks:], 0.0),
            duals[:blocks],
            x,
            float(solution.column_values[: self.slacks].sum()),
        )
        return self.latest
