"""Iterative refinement of linear programs, for optima with errors that are small even beside the smallest amounts.

A solver allows each row and column an error of about 1e-7. Beside capacities of 1e5, scaled to 1, that is 1 % of a
share of 1. So the program is solved again for the difference to the optimum found, in units of its largest error: an
error that is allowed then is 1e-7 of the one before (Gleixner, Steffy and Wolter, Iterative refinement for linear
programming, INFORMS Journal on Computing, 2016). Programs without such errors are left as they are.

With the activities of rows as further columns :math:`s = A x`, a program has the costs :math:`d = c - A^T y` of columns
and :math:`y` of activities, for any row prices y: :math:`c x = d x + y A x`. At an optimum none of these has the wrong
sign, and differences of prices can be enlarged as well.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array

NOISE = 2.0**-46
"""Errors of rows and reduced costs up to this fraction of the sum of their absolute terms count as rounding."""

ROUNDS = 4
"""Most refinements; the first one mostly suffices."""

FINEST, DEAREST = 2.0**-60, 2.0**-26
"""Smallest units in which differences of amounts, and of prices, are solved for."""


def refined(highs: Any, values: Array, duals: Array, time_limit_s: float | None) -> tuple[Array, Array, bool]:
    """Return a more exact optimum of the LP that `highs` solved, and whether it satisfies all rows up to rounding.

    Parameters
    ----------
    highs
        The solver, at its optimal basis.
    values, duals
        Values ``(columns,)`` and row prices ``(rows,)`` of its optimum; what is returned may be these.
    time_limit_s
        Limit of each refinement.
    """
    program = _Refined(highs.getLp())
    x, y = np.clip(values, *program.bounds), program.sign * duals
    errors = program.errors(x, y)
    if not any(errors):
        return values, duals, True
    solver = program.solver(highs, time_limit_s)
    for _ in range(ROUNDS):
        unit, price = (2.0 ** np.floor(np.log2(max(e, f))) for e, f in zip(errors, (FINEST, DEAREST), strict=True))
        found = program.difference(solver, x, y, unit, price)
        if found is None:
            break
        left = program.errors(*found)
        if 2 * left[0] > errors[0] and (left[0] > errors[0] or 2 * left[1] > errors[1]):
            break
        (x, y), errors = found, left
        if not any(errors):
            break
    return x, program.sign * y, not errors[0]


class _Refined:
    """An LP from HiGHS in the form that is refined: minimised, over its columns and the activities of its rows."""

    def __init__(self, lp: Any) -> None:
        self.matrix, self.sign = matrix_of(lp), -1.0 if lp.sense_ == highspy.ObjSense.kMaximize else 1.0
        self.cost, self.bounds = self.sign * np.array(lp.col_cost_), (np.array(lp.col_lower_), np.array(lp.col_upper_))
        self.lower = np.concatenate([lp.col_lower_, lp.row_lower_])
        self.upper = np.concatenate([lp.col_upper_, lp.row_upper_])
        self.size = abs(self.matrix)

    def errors(self, x: Array, y: Array) -> tuple[float, float]:
        """Return the largest error of a row, and of a reduced cost or price, beyond rounding.

        Prices have the right sign if they are positive only for columns and rows at their lower bounds, and negative
        only for those at their upper bounds.
        """
        at, noise = np.concatenate([x, self.matrix @ x]), self.noise(x)
        over = np.maximum(self.lower - at, at - self.upper) - noise
        worth = np.concatenate([self.cost - self.matrix.T @ y, y])
        least = NOISE * np.concatenate([np.abs(self.cost) + self.size.T @ np.abs(y), 0.0 * y])
        wrong = np.maximum(
            np.where(at > self.lower + noise, worth, 0.0), np.where(at < self.upper - noise, -worth, 0.0)
        )
        return max(float(over.max(initial=0.0)), 0.0), max(float((wrong - least).max(initial=0.0)), 0.0)

    def noise(self, x: Array) -> Array:
        """Return the errors that count as rounding: 0 for columns, then those of rows."""
        return np.concatenate([0.0 * x, NOISE * (self.size @ np.abs(x))])

    def difference(self, solver: Any, x: Array, y: Array, unit: float, price: float) -> tuple[Array, Array] | None:
        """Solve for the difference between an optimum and the point `x` with prices `y`, in the given units.

        Return the improved point and prices, or ``None`` if HiGHS finds no optimum.
        """
        at, noise, every = np.concatenate([x, self.matrix @ x]), self.noise(x) / 2, np.arange(len(self.lower))
        worth = np.concatenate([self.cost - self.matrix.T @ y, y]) / price
        sides = (self.lower - at - noise) / unit, (self.upper - at + noise) / unit
        solver.changeColsBounds(len(every), every.astype(np.int32), *sides)
        solver.changeColsCost(len(every), every.astype(np.int32), worth)
        run(solver)
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        point = solver.getSolution()
        moved = np.clip(x + unit * np.array(point.col_value)[: len(x)], *self.bounds)
        return moved, y + price * np.array(point.row_dual)

    def solver(self, highs: Any, time_limit_s: float | None) -> Any:
        """Return a solver for the differences that starts at the basis of `highs`; it has no costs and bounds yet."""
        rows, columns = self.matrix.shape
        matrix, lp = sp.csc_array(sp.hstack([self.matrix, -sp.eye_array(rows)])), highspy.HighsLp()
        lp.num_row_, lp.num_col_ = rows, rows + columns
        lp.col_cost_ = lp.col_lower_ = lp.col_upper_ = np.zeros(rows + columns)
        lp.row_lower_ = lp.row_upper_ = np.zeros(rows)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = matrix.shape
        lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        lp.a_matrix_.value_ = matrix.data
        solver, before, basis = highspy.Highs(), highs.getBasis(), highspy.HighsBasis()
        options = {"output_flag": False, "solver": "simplex", "presolve": "off"}
        options |= {"threads": highs.getOptionValue("threads")[1]}
        options |= {} if time_limit_s is None else {"time_limit": time_limit_s}
        for name, value in options.items():
            solver.setOptionValue(name, value)
        solver.passModel(lp)
        basis.col_status = [*before.col_status, *before.row_status]
        basis.row_status = [highspy.HighsBasisStatus.kLower] * rows
        basis.valid = True
        solver.setBasis(basis)
        return solver


def run(highs: Any) -> None:
    """Run HiGHS; if its simplex gives up, which happens at some bases, run it again without its basis."""
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kNotset:
        highs.clearSolver()
        highs.run()


def matrix_of(lp: Any) -> sp.csc_array:
    """Return the matrix of an LP of HiGHS."""
    parts = lp.a_matrix_
    arrays = np.array(parts.value_), np.array(parts.index_), np.array(parts.start_)
    kind = sp.csc_array if parts.format_ == highspy.MatrixFormat.kColwise else sp.csr_array
    return sp.csc_array(kind(arrays, shape=(lp.num_row_, lp.num_col_)))
