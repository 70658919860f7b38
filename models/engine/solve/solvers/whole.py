"""Forms in whole numbers, for CP-SAT: continuous columns are substituted where possible, and rows are scaled.

A continuous column can be substituted if equations determine it from integer columns. In P1, this is true of rates and
of work done, so CP-SAT can solve P1. It cannot solve a model in which a continuous column is free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.models.engine.solve.form import StandardForm

EXACT = tuple(10.0**k for k in range(7))
"""Factors that are tried to turn the coefficients of a row into whole numbers without rounding."""

LARGEST = 2.0**40
"""Largest activity of a rounded row, of which each term is then off by at most 1e-12. At 2^45, the presolve of CP-SAT
9.15 called a feasible instance of P1 infeasible."""

LARGEST_EXACT = 2.0**60


@dataclass(frozen=True, eq=False)
class Whole:
    """A form over only the integer columns of an original form, and how to recover the original's other columns.

    ``columns`` are the original's columns that this form has. With their `values`, the ``others`` have the values
    ``matrix @ values + constant``.
    """

    form: StandardForm
    columns: Ints
    others: Ints
    matrix: sp.csr_array
    constant: Array

    def back(self, values: Array) -> Array:
        """Return the values of all columns of the original form."""
        full = np.zeros(len(self.columns) + len(self.others))
        full[self.columns] = values
        full[self.others] = self.matrix @ values + self.constant
        return full


def whole(form: StandardForm) -> Whole:
    """Return the form over its integer columns only; the other columns are substituted.

    It raises `NotApplicableError` if a continuous column is not determined by integer ones through equations, or if an
    integer column is unbounded.
    """
    form = _bounded(form)
    endless = np.flatnonzero(form.integer & (np.isinf(form.lower) | np.isinf(form.upper)))
    if endless.size:
        raise NotApplicableError(f"cp-sat takes bounded columns only, and {_named(form, endless)} without bounds")
    rows, columns, free, integral = _following(form)
    if free.size:
        raise NotApplicableError(f"cp-sat takes whole numbers only, and {_named(form, free)} continuous")
    form = replace(form, integer=integral)
    integer = np.flatnonzero(integral)
    fixed = np.flatnonzero(~form.integer & (form.lower == form.upper))
    matrix = form.matrix.tocsr()
    # L x = b − A_I x_I, where L is lower triangular in the order of substitution: L = D (I − N) with N nilpotent.
    own = matrix[rows]
    scale = 1 / np.asarray(own[np.arange(rows.size), columns]).ravel() if rows.size else np.zeros(0)
    towards = sp.csr_array(sp.diags_array(scale) @ own)
    inside = sp.csr_array(sp.eye_array(rows.size) - towards[:, columns])
    right = scale * form.row_lower[rows] - towards[:, fixed] @ form.lower[fixed]
    affine = sp.csr_array(sp.hstack([-towards[:, integer], sp.csr_array(right[:, None])]))
    while inside.nnz:
        affine, inside = sp.csr_array(affine + inside @ affine), sp.csr_array(inside @ inside)
        inside.eliminate_zeros()
    empty = sp.csr_array((fixed.size, integer.size))
    depends = sp.csr_array(sp.vstack([affine[:, : integer.size], empty]))
    constant = np.concatenate([affine[:, [integer.size]].toarray().ravel(), form.lower[fixed]])
    others = np.concatenate([columns, fixed])
    # Eliminate the other columns: substitute them in the remaining rows, and turn their binding bounds into rows.
    kept = np.setdiff1d(np.arange(len(form.row_lower)), rows)
    matrix = matrix[kept]
    shift = matrix[:, others] @ constant
    left = sp.csr_array(matrix[:, integer] + matrix[:, others] @ depends)
    lower, upper = form.lower[others] - constant, form.upper[others] - constant
    least, most = activities(depends, form.lower[integer], form.upper[integer])
    binding = np.flatnonzero((least < lower - SLACK * abs(lower)) | (most > upper + SLACK * abs(upper)))
    substituted = StandardForm(
        cost=form.cost[integer] + depends.T @ form.cost[others],
        offset=form.offset + float(form.cost[others] @ constant),
        maximise=form.maximise,
        matrix=sp.csc_array(sp.vstack([left, depends[binding]])),
        row_lower=np.concatenate([form.row_lower[kept] - shift, lower[binding]]),
        row_upper=np.concatenate([form.row_upper[kept] - shift, upper[binding]]),
        lower=form.lower[integer],
        upper=form.upper[integer],
        integer=np.ones(integer.size, bool),
        model=form.model,
    )
    return Whole(substituted, integer, others, depends, constant)


def _bounded(form: StandardForm) -> StandardForm:
    """Return the form with finite upper bounds on integer columns, where rows with nonnegative terms imply them."""
    endless = form.integer & np.isinf(form.upper)
    if not endless.any():
        return form
    entries = sp.coo_array(form.matrix)
    row, column = entries.coords
    negative = (entries.data < 0) | (form.lower[column] < 0)
    positive = np.isfinite(form.row_upper)
    positive[row[negative]] = False
    useful = positive[row] & endless[column] & (entries.data > 0)
    upper = form.upper.copy()
    np.minimum.at(upper, column[useful], np.floor(form.row_upper[row[useful]] / entries.data[useful] + SLACK))
    return replace(form, upper=upper)


def _following(form: StandardForm) -> tuple[Ints, Ints, Ints, Bools]:
    """Return the rows that determine continuous columns, these columns in the order of substitution, and the free ones.

    Also return which columns are whole: integer columns, and columns that follow from whole columns by equations with
    whole coefficients. Whole columns are kept, since substituting them would fill the matrix.
    """
    open_ = ~form.integer & (form.lower < form.upper)
    integer = form.integer | (~open_ & _is_whole(form.lower))
    matrix, by_column = form.matrix.tocsr(), form.matrix
    equal = form.row_lower == form.row_upper
    unknown = np.rint(abs(matrix.sign()) @ open_.astype(float))
    ready = np.flatnonzero(equal & (unknown == 1)).tolist()
    rows, columns = [], []
    while ready:
        row = ready.pop()
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        mine, amounts = matrix.indices[part], matrix.data[part]
        left = open_[mine]
        if left.sum() != 1:
            continue  # another row has determined the column meanwhile; this one stays a row
        column, own = mine[left][0], amounts[left][0]
        bounded = np.isfinite(form.lower[column]) and np.isfinite(form.upper[column])
        numbers = np.append(amounts, form.row_lower[row]) / own
        if bounded and integer[mine[~left]].all() and _is_whole(numbers).all():
            integer[column] = True
        else:
            rows.append(row)
            columns.append(column)
        open_[column] = False
        above = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        unknown[above] -= 1
        ready += above[equal[above] & (unknown[above] == 1)].tolist()
    integer &= form.integer | (form.lower < form.upper)  # columns fixed at a value are substituted
    return np.array(rows, np.int64), np.array(columns, np.int64), np.flatnonzero(open_), integer


SLACK = 1e-12
"""Fraction of a bound by which rounding alone may exceed it."""


def activities(matrix: sp.csr_array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest activity of each row."""
    up, down = matrix.maximum(0), matrix.minimum(0)
    return up @ lower + down @ upper, up @ upper + down @ lower


def _named(form: StandardForm, which: Ints) -> str:
    name = form.columns[which[0]].name if len(form.columns) else f"column {which[0]}"
    return f"{name} is" if which.size == 1 else f"{which.size} columns ({name}, …) are"


@dataclass(frozen=True, eq=False)
class WholeRows:
    """Rows in whole numbers: matrix and sides, the `factor` of each row, and its largest rounding error `moved`.

    The sides of a rounded row are moved outwards by this error, so that every feasible point of the original row stays
    feasible.
    """

    matrix: sp.csr_array
    lower: Ints
    upper: Ints
    factor: Array
    moved: Array


def scaled(matrix: sp.csr_array, lower: Array, upper: Array, most: Array) -> WholeRows:
    """Return rows in whole numbers: multiplied by a factor of :data:`EXACT` if that needs no rounding, else rounded.

    `most` is the largest absolute value of every column.
    """
    reach = np.maximum(abs(matrix) @ most, 1e-300)
    factor, rounded = np.exp2(np.floor(np.log2(LARGEST / reach))), np.ones(len(lower), bool)
    at = np.repeat(np.arange(len(lower)), np.diff(matrix.indptr))
    for f in reversed(EXACT):
        fits = (reach * f <= LARGEST_EXACT) & _is_whole(lower * f) & _is_whole(upper * f)
        np.logical_and.at(fits, at, _is_whole(matrix.data * f))
        factor[fits], rounded[fits] = f, False
    numbers = matrix.data * factor[at]
    nearest = np.rint(numbers)
    moved = np.zeros(len(lower))
    np.add.at(moved, at, abs(numbers - nearest) * most[matrix.indices])
    moved = np.where(rounded, moved * (1 + SLACK), 0.0)
    low, high = (np.where(rounded, side * factor, np.rint(side * factor)) for side in (lower, upper))
    whole_matrix = sp.csr_array((nearest.astype(np.int64), matrix.indices, matrix.indptr), shape=matrix.shape)
    return WholeRows(whole_matrix, _side(np.floor(low - moved), -1), _side(np.ceil(high + moved), 1), factor, moved)


def _is_whole(numbers: Array) -> Bools:
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    return np.asarray(abs(finite - np.rint(finite)) <= 4e-16 * abs(finite))


def _side(numbers: Array, sign: int) -> Ints:
    """Return the sides of rows as integers; infinite sides become the smallest or the largest 64-bit integer."""
    endless = np.iinfo(np.int64)
    wide = np.isinf(numbers) | (abs(numbers) > 2.0**62)
    return np.where(wide, endless.max if sign > 0 else endless.min, np.where(wide, 0, numbers).astype(np.int64))
