"""Units in which a solver's absolute tolerances are relative ones, and what no units help.

HiGHS compares rows, columns and reduced costs with absolute tolerances (1e-9 to 1e-7), drops coefficients below 1e-9,
and calls points optimal that its tolerances cannot tell from others: a largest utility of 1e-9 is 0 to it. So a form
whose rows, columns, right-hand sides or costs are far from 1 is solved in units in which the largest coefficient is
about 1. They are powers of two, which are exact; ordinary forms are solved as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from instances.errors import NotApplicableError
from models.solve.form import StandardForm
from models.solve.solution import Solution, SolveOptions

Array = NDArray[np.float64]

ORDINARY = 2.0**10
"""Largest coefficients between 1 / this and this stay as they are."""

CERTIFIABLE = 1e10
"""Ratio of the coefficients of a row up to which a solver sees them all: models leave out what is below 1e-9 of a
capacity, and gangs take several times that."""


class NotCertifiableError(NotApplicableError):
    """Numbers of the model are so far apart, so small or so large that no answer could be trusted."""


@dataclass(frozen=True, eq=False)
class Units:
    """What one unit of each row, each column and the objective is in a scaled form, in those of the original.

    Attributes
    ----------
    row, column
        ``(rows,)`` and ``(columns,)``; those of integer columns are 1.
    cost
        Of the objective.
    """

    row: Array
    column: Array
    cost: float

    @property
    def ordinary(self) -> bool:
        """Whether all units are 1."""
        return self.cost == 1.0 and bool((self.row == 1.0).all() and (self.column == 1.0).all())

    def scaled(self, form: StandardForm) -> StandardForm:
        """Return the form in these units."""
        if self.ordinary:
            return form
        matrix = sp.csc_array(sp.diags_array(1 / self.row) @ form.matrix @ sp.diags_array(self.column))
        return replace(
            form,
            cost=form.cost * self.column / self.cost,
            offset=form.offset / self.cost,
            matrix=matrix,
            row_lower=form.row_lower / self.row,
            row_upper=form.row_upper / self.row,
            lower=form.lower / self.column,
            upper=form.upper / self.column,
            ties=None if form.ties is None else form.ties * self.column,
        )

    def start(self, form: StandardForm, options: SolveOptions) -> SolveOptions:
        """Return options whose MIP start is in these units."""
        if not options.mip_start or self.ordinary:
            return options
        unit = {variable.name: float(u) for variable, u in zip(form.columns, self.column, strict=True)}
        return replace(options, mip_start={k: v / unit.get(k, 1.0) for k, v in options.mip_start.items()})

    def undone(self, solution: Solution) -> Solution:
        """Return a solution of the scaled form as one of the original."""
        if self.ordinary:
            return solution

        def times(numbers: Array | None, unit: Array | float) -> Array | None:
            return None if numbers is None or len(numbers) != np.size(unit) > 1 else numbers * unit

        found = rescaled(solution, self.cost)
        return replace(
            found,
            column_values=times(found.column_values, self.column),
            column_duals=times(found.column_duals, 1 / self.column),
            row_duals=times(found.row_duals, 1 / self.row),
        )


def rescaled(solution: Solution, unit: float) -> Solution:
    """Return a solution whose objective was in some unit in units of 1."""

    def times(number: Any) -> Any:
        return None if number is None else number * unit

    return replace(
        solution,
        objective=times(solution.objective),
        bound=times(solution.bound),
        scale=solution.scale * unit,
        trace=tuple(p._replace(incumbent=times(p.incumbent), bound=times(p.bound)) for p in solution.trace),
        column_duals=times(solution.column_duals),
        row_duals=times(solution.row_duals),
    )


def units(form: StandardForm) -> Units:
    """Return the units in which the largest coefficient of every row, column and the objective is about 1.

    Where all columns are continuous, so is the largest right-hand side or bound.

    Raises
    ------
    NotCertifiableError
        If a row has coefficients more than :data:`CERTIFIABLE` apart.
    """
    size = abs(form.matrix)
    _refuse_far_apart(form)
    row = _power(size.max(axis=1).toarray().ravel())
    size = sp.csc_array(sp.diags_array(1 / row) @ size)
    column = np.where(form.integer, 1.0, 1 / _power(size.max(axis=0).toarray().ravel()))
    if not form.integer.any():
        amount = _power(_largest(form.row_lower / row, form.row_upper / row, form.lower / column, form.upper / column))
        row, column = row * amount, column * amount
    return Units(row, column, float(_power(_largest(form.cost * column))[0]))


def _largest(*numbers: Array) -> Array:
    """Return ``(1,)`` the largest finite absolute value, 0 where there is none."""
    everything = np.abs(np.concatenate(numbers))
    return np.asarray(everything[np.isfinite(everything)].max(initial=0.0, keepdims=True))


def _power(largest: Array) -> Array:
    """Return the power of two at or below each number; 1 for 0 and for ordinary ones."""
    ordinary = (largest == 0) | ((largest >= 1 / ORDINARY) & (largest <= ORDINARY))
    return np.asarray(np.where(ordinary, 1.0, np.exp2(np.floor(np.log2(np.where(ordinary, 1.0, largest))))))


def _refuse_far_apart(form: StandardForm) -> None:
    """Raise where a row has coefficients so far apart that a solver does not see the smaller ones."""
    matrix = sp.csr_array(form.matrix)
    matrix.eliminate_zeros()
    some = np.flatnonzero(np.diff(matrix.indptr))
    if not some.size:
        return
    size, first = np.abs(matrix.data), matrix.indptr[some]
    least, most = np.minimum.reduceat(size, first), np.maximum.reduceat(size, first)
    far = np.flatnonzero(most > CERTIFIABLE * least)
    if not far.size:
        return
    i = int(far[0])
    what = form.rows[some[i]].name if len(form.rows) else f"row {some[i]}"
    text = f"{what}: coefficients from {least[i]:.3g} to {most[i]:.3g} in one row, too far apart to certify any answer"
    raise NotCertifiableError(text)
