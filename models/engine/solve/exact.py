"""Small linear programs in exact arithmetic: the optimum, and what is least and most over all optima.

A solver in double precision answers within tolerances, and picks one of several optima. To refute a property of a
mechanism, neither is enough: here numbers are fractions, and a second objective is optimised over the whole optimal
face. The simplex method keeps a tableau of integers (Edmonds 1967, Bareiss 1968: every division is exact) and picks by
the smallest index (Bland 1977), so that it always ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.models.engine.solve.form import StandardForm

Exact = NDArray[np.object_]
"""Array of fractions or integers."""

DENOMINATOR = 1_000_000
"""Largest denominator of a number that a form states in double precision."""

CLOSE = 1e-14
"""Largest relative difference between such a number and its fraction."""


def fraction(number: float) -> Fraction:
    """Return the fraction of small denominator that a number in double precision stands for.

    Raises
    ------
    ValueError
        If there is none with a denominator of at most :data:`DENOMINATOR`.
    """
    near = Fraction(number).limit_denominator(DENOMINATOR)
    if abs(float(near) - number) > CLOSE * abs(number):
        raise ValueError(f"{number!r} is not a fraction of denominator at most {DENOMINATOR:,}")
    return near


def fractions(numbers: Any) -> Exact:
    """Return an array of :func:`fraction`, of the same shape."""
    given = np.asarray(numbers)
    exact = np.empty(given.shape, object)
    for at, number in np.ndenumerate(given):
        exact[at] = number if isinstance(number, Fraction) else fraction(float(number))
    return exact


Limits = tuple[Exact, Fraction | None, Fraction | None]
"""A row ``lower ≤ Σ coefficients·x ≤ upper``: coefficients, lower and upper; ``None`` is no limit."""


class OptimalFace:
    """All optima of ``max cost·x`` over rows and ``x ≥ 0``, in exact arithmetic.

    It raises `ValueError` if no point meets all rows, or if the objective has no largest value.

    Attributes
    ----------
    value
        The optimum.
    point
        ``(columns,)`` one of the optimal vertices.
    """

    def __init__(self, cost: Exact, rows: Sequence[Limits]) -> None:
        columns, sides = len(cost), list[tuple[list[Fraction], Fraction, int]]()
        for coefficients, lower, upper in rows:
            entries = [Fraction(c) for c in coefficients]
            if lower is not None and lower == upper:
                sides.append((entries, lower, 0))
                continue
            sides += [(entries, upper, 1)] if upper is not None else []
            sides += [([-c for c in entries], -lower, 1)] if lower is not None else []
        slacks = sum(slack for *_, slack in sides)
        width, height = columns + slacks, len(sides)
        # Columns: variables, slacks, one artificial variable for each row, right-hand side.
        tableau = np.zeros((height, width + height + 1), object)
        slack = columns
        for i, (entries, right, kind) in enumerate(sides):
            scale = math.lcm(*(c.denominator for c in entries), right.denominator) * (-1 if right < 0 else 1)
            tableau[i, :columns] = [int(c * scale) for c in entries]
            tableau[i, -1] = int(right * scale)
            if kind:
                # A slack may be counted in any unit, as nothing is asked about it.
                tableau[i, slack] = 1 if scale > 0 else -1
                slack += 1
            tableau[i, width + i] = 1
        self._tableau, self._unit, self._columns = tableau, 1, columns
        self._basis = list(range(width, width + height))
        self._open = np.r_[np.ones(width, bool), np.zeros(height, bool)]
        artificial = np.zeros(width + height, object)
        artificial[width:] = -1
        if self._largest(artificial) < 0:
            raise ValueError("no point meets all rows")
        self.value = self._maximise(cost)
        self.point = self._vertex()

    def span(self, worth: Exact) -> tuple[Fraction, Fraction]:
        """Return the least and the largest ``Σ worth·x`` over all optima."""
        return self.least(worth), -self.least(-worth)

    def least(self, worth: Exact) -> Fraction:
        """Return the least ``Σ worth·x`` over all optima."""
        return -self._copy()._maximise(-worth)

    def then(self, cost: Exact) -> OptimalFace:
        """Return those of these optima at which ``Σ cost·x`` is largest, as programs one after another find them."""
        other = self._copy()
        other.value, other.point = other._maximise(cost), other._vertex()
        return other

    def _copy(self) -> OptimalFace:
        other = object.__new__(OptimalFace)
        other.__dict__.update(self.__dict__)
        other._tableau, other._basis, other._open = self._tableau.copy(), list(self._basis), self._open.copy()
        return other

    def _maximise(self, cost: Exact) -> Fraction:
        """Maximise over the current face, and keep only its optima: columns that would make them worse are closed."""
        scale = math.lcm(*(Fraction(c).denominator for c in cost))
        whole = np.zeros(self._tableau.shape[1] - 1, object)
        whole[: self._columns] = [int(c * scale) for c in cost]
        value = self._largest(whole) / scale
        self._open &= self._reduced(whole) == 0
        return value

    def _reduced(self, cost: Exact) -> Exact:
        """Return the reduced costs of all columns, times the unit of the tableau."""
        return np.asarray(self._unit * cost - cost[self._basis] @ self._tableau[:, :-1], object)

    def _largest(self, cost: Exact) -> Fraction:
        while True:
            entering = np.flatnonzero(self._open & (self._reduced(cost) > 0))
            if not entering.size:
                return Fraction(int(cost[self._basis] @ self._tableau[:, -1]), int(self._unit))
            self._pivot(int(entering[0]))

    def _pivot(self, column: int) -> None:
        """Let a column enter the basis; the row that is full first leaves it, that of the smallest index among ties."""
        entry, right = self._tableau[:, column], self._tableau[:, -1]
        leaving: tuple[Fraction, int, int] | None = None
        for i, basic in enumerate(self._basis):
            # An artificial variable that is still basic is 0, and stays so: its row leaves, whatever the sign.
            stuck = right[i] == 0 and not self._open[basic] and entry[i] != 0 and basic >= len(self._open) - len(right)
            if entry[i] > 0 or stuck:
                candidate = Fraction(int(right[i]), int(abs(entry[i]))), basic, i
                leaving = min(leaving, candidate) if leaving else candidate
        if leaving is None:
            raise ValueError("the objective has no largest value")
        row = leaving[2]
        pivot = self._tableau[row, column]
        rest = (self._tableau * pivot - np.outer(entry, self._tableau[row])) // self._unit
        rest[row] = self._tableau[row]
        self._tableau, self._unit = (rest, pivot) if pivot > 0 else (-rest, -pivot)
        self._basis[row] = column

    def _vertex(self) -> Exact:
        point = np.full(self._tableau.shape[1] - 1, Fraction(0), object)
        for basic, right in zip(self._basis, self._tableau[:, -1], strict=True):
            point[basic] = Fraction(int(right), int(self._unit))
        return point[: self._columns]


def face(form: StandardForm) -> OptimalFace:
    """Return the optimal face of a compiled linear program whose columns are at least 0, in exact arithmetic.

    Its columns are those of the form. The numbers of the form stand for fractions of small denominators.

    Raises
    ------
    ValueError
        If it has integer columns, a column whose lower bound is not 0, or a number that is no such fraction.
    """
    if form.integer.any() or (form.lower != 0).any():
        raise ValueError("only linear programs whose columns are at least 0")

    def limit(number: float) -> Fraction | None:
        return fraction(number) if np.isfinite(number) else None

    bounds = zip(form.row_lower.tolist(), form.row_upper.tolist(), strict=True)
    table = fractions(form.matrix.toarray())
    rows: list[Limits] = [
        (entries, limit(low), limit(high)) for entries, (low, high) in zip(table, bounds, strict=True)
    ]
    unit = fractions(np.eye(len(form.upper)))
    rows += [(unit[j], None, limit(form.upper[j])) for j in np.flatnonzero(np.isfinite(form.upper)).tolist()]
    return OptimalFace(fractions(form.cost) if form.maximise else -fractions(form.cost), rows)
