"""Scaling of forms, so that a solver's absolute tolerances become relative; some forms no scaling can rescue.

HiGHS applies absolute tolerances (1e-9 to 1e-7) to rows, columns and reduced costs, drops coefficients below 1e-9, and
accepts any point as optimal that it cannot distinguish from an optimum: a largest utility of 1e-9 is 0 to it. So a form
whose rows, columns, right-hand sides or costs are far from 1 is solved in units in which the largest coefficient is
about 1. Units are powers of two, so scaling is exact; ordinary forms are solved as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from schedgap.instances.arrays import Array
from schedgap.instances.errors import NotApplicableError
from schedgap.models.engine.solve.form import StandardForm
from schedgap.models.engine.solve.solution import Solution, SolveOptions

ORDINARY = 2.0**10
"""No scaling if the largest coefficient lies between 1/ORDINARY and ORDINARY."""

CERTIFIABLE = 1e10
"""Largest ratio of coefficients of a row, after equilibration, at which a solver still takes all of them into account.
Models leave out amounts below 1e-9 of a capacity."""

FAR = 1e7
"""Ratio of coefficients of a row above which a form is equilibrated: in units of the largest coefficient, HiGHS drops
those below 1e-9."""


class NotCertifiableError(NotApplicableError):
    """Coefficients of the model are so far apart, so small or so large that no answer could be trusted."""


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a scaled form: how much of the original unit is 1 in each row, column and in the objective.

    Integer columns have the unit 1.
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
            column_unit=1.0,
            row_unit=1.0,
            cost_unit=1.0,
        )

    def start(self, form: StandardForm, options: SolveOptions) -> SolveOptions:
        """Return the options with the MIP start in these units."""
        if not options.mip_start or self.ordinary:
            return options
        unit = {variable.name: float(u) for variable, u in zip(form.columns, self.column, strict=True)}
        return replace(options, mip_start={k: v / unit.get(k, 1.0) for k, v in options.mip_start.items()})

    def undone(self, solution: Solution) -> Solution:
        """Return the solution of the original form that a solution of the scaled form stands for."""
        if self.ordinary:
            return solution

        def times(number: Any, unit: Array | float) -> Any:
            return None if number is None or (np.ndim(number) and len(number) != np.size(unit)) else number * unit

        cost = self.cost
        return replace(
            solution,
            objective=times(solution.objective, cost),
            bound=times(solution.bound, cost),
            scale=solution.scale * cost,
            trace=tuple(
                p._replace(incumbent=times(p.incumbent, cost), bound=times(p.bound, cost)) for p in solution.trace
            ),
            column_values=times(solution.column_values, self.column),
            column_duals=times(solution.column_duals, cost / self.column),
            row_duals=times(solution.row_duals, cost / self.row),
        )


def units(form: StandardForm) -> Units:
    """Return the units that the model declares, multiplied by factors that bring numbers far from 1 to about 1.

    The factors are the largest coefficients of every row, of every column and of the objective and, if all columns are
    continuous, the largest right-hand side or bound. It raises `NotCertifiableError` if a row has coefficients more
    than :data:`CERTIFIABLE` apart.
    """
    declared = Units(
        np.broadcast_to(form.row_unit, form.row_lower.shape),
        np.where(form.integer, 1.0, form.column_unit),
        form.cost_unit,
    )
    form = declared.scaled(form)
    entries = _Entries(form)
    # A solver might ignore some coefficients of a row that are this far apart.
    row, column = entries.together() if entries.apart(entries.size).max(initial=0.0) > FAR else entries.largest()
    if not form.integer.any():
        amount = _power(_largest(form.row_lower / row, form.row_upper / row, form.lower / column, form.upper / column))
        row, column = row * amount, column * amount
    cost = float(_power(_largest(form.cost * column))[0])
    return Units(declared.row * row, declared.column * column, declared.cost * cost)


PASSES = 6
"""Passes of the equilibration."""


class _Entries:
    """The nonzero coefficients of a form, as logarithms to base 2."""

    def __init__(self, form: StandardForm) -> None:
        entries = sp.coo_array(form.matrix)
        entries.eliminate_zeros()
        self.form, (self.rows, self.columns) = form, entries.shape
        self.at, self.of = (np.asarray(places, np.int64) for places in entries.coords)
        self.size = np.log2(np.abs(entries.data))

    def largest(self) -> tuple[Array, Array]:
        """Return units in which the largest coefficient of every row and column is about 1."""
        row = np.log2(_power(np.exp2(_ends(self.at, self.size, self.rows)[1])))
        most = _ends(self.of, self.size - row[self.at], self.columns)[1]
        column = np.where(self.form.integer, 0.0, -np.log2(_power(np.exp2(most))))
        return np.exp2(row), np.exp2(column)

    def together(self) -> tuple[Array, Array]:
        """Return units that equilibrate the form, bringing the coefficients of each row together.

        Each pass divides by the geometric mean of the smallest and the largest coefficient, first of rows, then of
        columns. It raises `NotCertifiableError` if the coefficients of a row stay too far apart.
        """
        row, column = np.zeros(self.rows), np.zeros(self.columns)
        for _ in range(PASSES):
            row += _middle(self.at, self.size - row[self.at] + column[self.of], self.rows)
            middle = _middle(self.of, self.size - row[self.at] + column[self.of], self.columns)
            column -= np.where(self.form.integer, 0.0, middle)
        row, column = np.round(row), np.round(column)
        apart = self.apart(self.size - row[self.at] + column[self.of])
        if apart.max(initial=0.0) > CERTIFIABLE:
            i = int(np.argmax(apart > CERTIFIABLE))
            name, mine = self.form.rows[i].name if len(self.form.rows) else f"row {i}", np.exp2(self.size[self.at == i])
            extent = f"coefficients from {mine.min():.3g} to {mine.max():.3g} in one row"
            raise NotCertifiableError(f"{name}: {extent}, too far apart to certify any answer")
        return np.exp2(row), np.exp2(column)

    def apart(self, size: Array) -> Array:
        """Return the ratio of each row's largest coefficient to its smallest."""
        least, most = _ends(self.at, size, self.rows)
        return np.asarray(np.exp2(most - least))


def _ends(group: NDArray[np.int64], size: Array, count: int) -> tuple[Array, Array]:
    """Return the smallest and the largest size in each group, 0 for empty groups."""
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, group, size)
    np.maximum.at(most, group, size)
    empty = np.isinf(least)
    return np.where(empty, 0.0, least), np.where(empty, 0.0, most)


def _middle(group: NDArray[np.int64], size: Array, count: int) -> Array:
    least, most = _ends(group, size, count)
    return np.asarray((least + most) / 2)


def _largest(*numbers: Array) -> Array:
    """Return ``(1,)`` the largest finite absolute value, or 0."""
    everything = np.abs(np.concatenate(numbers))
    return np.asarray(everything[np.isfinite(everything)].max(initial=0.0, keepdims=True))


def _power(largest: Array) -> Array:
    """Return, for each number, the largest power of two that is no larger; 1 for 0 and for ordinary numbers."""
    ordinary = (largest == 0) | ((largest >= 1 / ORDINARY) & (largest <= ORDINARY))
    return np.asarray(np.where(ordinary, 1.0, np.exp2(np.floor(np.log2(np.where(ordinary, 1.0, largest))))))
