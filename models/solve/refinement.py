"""Iterative refinement of linear programs: optima whose errors are small beside the smallest amounts, too.

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

ERROR = 1e-15
"""Largest error of a row or column, as a fraction of the largest activity, that is left as it is."""

ROUNDS = 3
"""Most refinements; the first one mostly suffices."""

FINEST, DEAREST = 2.0**-40, 2.0**-20
"""Smallest units of differences of amounts and of prices, so that rounding stays below a solver's tolerance."""


def refined(highs: Any, values: Array, duals: Array, time_limit_s: float | None) -> tuple[Array, Array] | None:
    """Return values ``(columns,)`` and row prices ``(rows,)`` of a more exact optimum of the LP that `highs` solved.

    Return ``None`` if the optimum is exact enough, or if none is better.
    """
    lp, x, better = highs.getLp(), values, False
    matrix, sign = matrix_of(lp), -1.0 if lp.sense_ == highspy.ObjSense.kMaximize else 1.0
    cost, y = sign * np.array(lp.col_cost_), sign * duals
    lower = np.concatenate([lp.col_lower_, lp.row_lower_])
    upper = np.concatenate([lp.col_upper_, lp.row_upper_])
    error, enough = _error(matrix, lower, upper, x), ERROR * float(np.abs(matrix @ x).max(initial=0.0))
    if error <= enough:
        return None
    solver = _solver(highs, sp.csc_array(sp.hstack([matrix, -sp.eye_array(lp.num_row_)])), time_limit_s)
    every = np.arange(len(lower), dtype=np.int32)
    for _ in range(ROUNDS):
        if error <= enough:
            break
        unit, price = (2.0 ** np.floor(np.log2(max(error, least))) for least in (FINEST, DEAREST))
        at = np.concatenate([x, matrix @ x])
        solver.changeColsBounds(len(every), every, (lower - at) / unit, (upper - at) / unit)
        solver.changeColsCost(len(every), every, np.concatenate([cost - matrix.T @ y, y]) / price)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            break
        point = solver.getSolution()
        moved = np.clip(x + unit * np.array(point.col_value)[: len(x)], lower[: len(x)], upper[: len(x)])
        left = _error(matrix, lower, upper, moved)
        if left >= error:
            break
        x, y, error, better = moved, y + price * np.array(point.row_dual), left, True
    return (x, sign * y) if better else None


def matrix_of(lp: Any) -> sp.csc_array:
    """Return the matrix of an LP of HiGHS."""
    parts = lp.a_matrix_
    arrays = np.array(parts.value_), np.array(parts.index_), np.array(parts.start_)
    kind = sp.csc_array if parts.format_ == highspy.MatrixFormat.kColwise else sp.csr_array
    return sp.csc_array(kind(arrays, shape=(lp.num_row_, lp.num_col_)))


def _error(matrix: sp.csc_array, lower: Array, upper: Array, x: Array) -> float:
    """Return the largest violation of a row or column at a point."""
    at = np.concatenate([x, matrix @ x])
    return float(max((lower - at).max(initial=0.0), (at - upper).max(initial=0.0)))


def _solver(highs: Any, matrix: sp.csc_array, time_limit_s: float | None) -> Any:
    """Return a solver for columns and activities, whose costs and bounds follow, at the basis that `highs` has."""
    rows, columns = matrix.shape
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows, columns
    lp.col_cost_ = lp.col_lower_ = lp.col_upper_ = np.zeros(columns)
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
