"""The exact cost of rows of a model: drop them, solve again, and compare the two optima.

The dual of a row is *marginal*: it says how the optimum changes with the first bit of the right-hand side. It need not
be unique, and it is not what the row costs. In OEF's expression (1), the row by which u2 does not envy u3 has optimal
duals from 0 to 3, while the optimum without it is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from schedgap.harness.check import differ
from schedgap.harness.show.text import number
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.registry import Status, unknown
from schedgap.instances.text import counted
from schedgap.models import ModelSpec
from schedgap.models.engine.solve import Solution, SolveOptions, build, solve

TIME_LIMIT_S = 60.0
"""Limit of each of the two solves, in seconds."""


@dataclass(frozen=True)
class Cost:
    """What a row, or a family of rows, costs on an instance.

    Attributes
    ----------
    row, rows
        Name of the row (``no_envy[1,2]``) or of the family (``no_envy``), and the number of rows dropped.
    optimum, without
        Objective with and without the rows; ``None`` if there is none.
    sense
        ``max`` or ``min``.
    status, status_without
        How the two solves ended; the cost is exact if both are optimal.
    dual
        Shadow price of the row in the first solve, if it is a single row of a linear program.
    """

    row: str
    rows: int
    sense: str
    optimum: float | None
    without: float | None
    status: Status
    status_without: Status
    dual: float | None = None

    @property
    def cost(self) -> float | None:
        """By how much the optimum is better without the rows, at least 0; ``None`` if one of the two is not known."""
        if (self.status, self.status_without) != ("optimal", "optimal") or None in (self.optimum, self.without):
            return None
        before, after = self.optimum or 0.0, self.without or 0.0
        return abs(after - before) if (after > before) == (self.sense == "max") and differ(after, before) else 0.0

    @property
    def sentence(self) -> str:
        """The cost in words, with the dual beside it."""
        what = self.row if self.rows == 1 else f"{self.row} ({counted(self.rows, 'row')})"
        if self.cost is None:
            return f"{what}: not known; solved with it: {self.status}, without it: {self.status_without}"
        found = f"HiGHS finds {number(self.optimum)}, without it {number(self.without)}"
        text = f"{what}: {found}; it costs {number(self.cost)}"
        if self.dual is None:
            return text
        return f"{text}. One more unit on its right-hand side gains {number(self.dual)} here at the margin: its dual"


def cost(spec: ModelSpec, view: Any, row: str) -> Cost:
    """Solve a model with and without a row (``no_envy[1,2]``) or all rows of a family (``no_envy``).

    Raises
    ------
    UnknownNameError
        If the model has no such row; the message suggests similar names.
    UsageError
        If the model generates its columns, because only a part of it is built then.
    """
    if spec.implied:
        raise UsageError(f"{spec.id} generates its columns; --drop needs a model that is solved as it is built")
    model = build(spec.build, view)
    first = _solved(spec, model)
    dropped = _rows(model, row, spec.id)
    for part in dropped:
        part.deactivate()
    second = _solved(spec, model)
    dual = first.duals.get(row) if len(dropped) == 1 else None
    return Cost(row, len(dropped), spec.sense, first.objective, second.objective, first.status, second.status, dual)


def _solved(spec: ModelSpec, model: Any) -> Solution:
    return solve(model, SolveOptions(time_limit_s=TIME_LIMIT_S, method=spec.method))


def _rows(model: Any, row: str, id: str) -> list[Any]:
    """Return the rows of a Pyomo model with this name, or those of the family with this name."""
    import pyomo.environ as pyo

    rows = {part.name: part for part in model.component_data_objects(pyo.Constraint, active=True)}
    found = [part for name, part in rows.items() if row in (name, part.parent_component().local_name)]
    if not found:
        families = dict.fromkeys(part.parent_component().local_name for part in rows.values())
        raise UnknownNameError(unknown(f"row of {id}", row, [*families, *rows]))
    return found
