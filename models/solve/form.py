"""From a Pyomo model to arrays: the fast way of building, and the standard form that HiGHS takes.

Pyomo's usual interfaces expand every row as an expression tree. Building with templates (one expression per indexed
constraint) and compiling with :class:`LinearStandardFormCompiler` passes the same model 6–10 times faster; see
``tests/benchmarks/test_solve_path.py`` for the measurement.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from numpy.typing import NDArray

from schedgap.instances.arrays import Array, Ints

T = TypeVar("T")

TIES = "ties"
"""Name of the Pyomo ``Suffix`` with which an LP says which of its optima it wants: the one at which the sum of its
variables, weighted by the suffix, is largest. Without it the vertex is whichever the solver meets first."""

SCALING = "scaling_factor"
"""Name of Pyomo's ``Suffix`` with which a model declares the units in which a solver counts, see :func:`counted`."""


class NotLinearError(ValueError):
    """The model cannot be compiled to arrays (nonlinear, or of components the compiler does not know)."""


@contextmanager
def building() -> Iterator[None]:
    """Build Pyomo models inside: rules become templates, and the cyclic garbage collector pauses.

    Rules that templatize use ``Param``, ``Set`` and the builtin ``sum``; a condition on an index belongs into the set.
    """
    from pyomo.common.gc_manager import PauseGC
    from pyomo.core.base import constraint, objective

    before = constraint.TEMPLATIZE_CONSTRAINTS, objective.TEMPLATIZE_OBJECTIVES
    constraint.TEMPLATIZE_CONSTRAINTS = objective.TEMPLATIZE_OBJECTIVES = True
    try:
        with PauseGC():
            yield
    finally:
        constraint.TEMPLATIZE_CONSTRAINTS, objective.TEMPLATIZE_OBJECTIVES = before


def build(builder: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a model builder inside :func:`building`."""
    with building():
        return builder(*args, **kwargs)


def counted(model: pyo.ConcreteModel, units: Iterable[tuple[Any, float]]) -> None:
    """Declare in which units a solver counts variables, rows or the objective, so that its tolerances are relative.

    `units` are parts of the model, or containers of them, each with what one unit of the solver's is in theirs,
    positive; integer variables stay as they are. The model stays in its own units, and so do values, prices, reduced
    costs, objective and bound of its solutions.
    """
    if model.component(SCALING) is None:
        model.add_component(SCALING, pyo.Suffix(direction=pyo.Suffix.LOCAL))
    getattr(model, SCALING).update((part, 1.0 / unit) for part, unit in units)


@contextmanager
def silent() -> Iterator[None]:
    """Keep back what Pyomo logs. Its own means to do so forgets what all loggers of the process have found out."""
    logger = logging.getLogger("pyomo")
    before = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [logging.NullHandler()], False
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before


@dataclass(frozen=True, eq=False)
class StandardForm:
    """``sense cost·x + offset`` subject to ``row_lower ≤ matrix x ≤ row_upper``, ``lower ≤ x ≤ upper``.

    Attributes
    ----------
    matrix
        ``(rows, columns)``, compressed by columns.
    integer
        ``(columns,)`` whether a column is integer.
    columns, rows
        The Pyomo variable of each column, and the Pyomo constraint of each row.
    maximise
        Sense of the objective.
    model
        The Pyomo model that the columns and rows are parts of.
    ties
        ``(columns,)`` second objective, to be maximised among the optima (:data:`TIES`), where the model has one.
    column_unit, row_unit, cost_unit
        Declared units (:func:`counted`), ``(columns,)`` and ``(rows,)`` where there are any.
    """

    cost: Array
    offset: float
    maximise: bool
    matrix: sp.csc_array
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    integer: NDArray[np.bool_]
    columns: Sequence[Any] = ()
    rows: Sequence[Any] = ()
    model: Any = None
    ties: Array | None = None
    column_unit: Array | float = 1.0
    row_unit: Array | float = 1.0
    cost_unit: float = 1.0


Part = NDArray[Any] | float


class RowBlocks:
    """Rows of a form that is stated in arrays, block by block: Pyomo takes 15 ms for a model of any size."""

    def __init__(self) -> None:
        self.lower: list[Array] = []
        self.upper: list[Array] = []
        self.entries: list[tuple[Array, Ints, Ints]] = []
        self.size = 0

    def add(self, lower: NDArray[Any], upper: NDArray[Any], *entries: tuple[Part, Part, Part]) -> None:
        """Append ``lower ≤ … ≤ upper``, with entries (values, rows of this block, columns), which are broadcast."""
        for entry in entries:
            value, row, column = np.broadcast_arrays(*map(np.atleast_1d, entry))
            self.entries.append((value.astype(float), row + self.size, column))
        self.lower.append(lower)
        self.upper.append(upper)
        self.size += len(lower)

    def form(
        self,
        cost: Array,
        integer: NDArray[np.bool_],
        lower: Array | None = None,
        upper: Array | None = None,
        maximise: bool = False,
    ) -> StandardForm:
        """Return the form with these columns, by default of 0 or more."""
        value, row, column = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return StandardForm(
            cost=cost,
            offset=0.0,
            maximise=maximise,
            matrix=sp.csc_array((value, (row, column)), shape=(self.size, len(cost))),
            row_lower=np.concatenate(self.lower).astype(float),
            row_upper=np.concatenate(self.upper).astype(float),
            lower=np.zeros(len(cost)) if lower is None else lower,
            upper=np.full(len(cost), np.inf) if upper is None else upper,
            integer=integer,
        )


def compile_model(model: pyo.ConcreteModel) -> StandardForm:
    """Compile a linear Pyomo model (LP or MILP with one objective) to arrays.

    It raises `NotLinearError` if the model is not linear, has a component the compiler does not know, or has not
    exactly one objective, and `pyomo.common.errors.InfeasibleConstraintException` if a constraint without variables is
    violated.
    """
    from pyomo.common.errors import InfeasibleConstraintException
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    # Pyomo logs an error before it raises; whoever catches NotLinearError decides what is said.
    try:
        with silent():
            form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except InfeasibleConstraintException:
        raise
    # AttributeError: Pyomo 6.10.1 expands the template of a constant objective as if it were an expression.
    except (ValueError, TypeError, NotImplementedError, AttributeError) as error:
        raise NotLinearError(" ".join(str(error).split())) from error
    if len(form.objectives) != 1:
        raise NotLinearError(f"a model has one active objective, not {len(form.objectives)}")
    kinds = np.fromiter((row.bound_type for row in form.rows), np.int8, len(form.rows))
    rhs = np.asarray(form.rhs, float)
    n, rows = len(form.columns), [row.constraint for row in form.rows]
    return StandardForm(
        cost=form.c.toarray().ravel(),
        offset=float(form.c_offset[0]),
        maximise=form.objectives[0].sense == pyo.maximize,
        matrix=form.A,
        row_lower=np.where(kinds == 1, -np.inf, rhs),
        row_upper=np.where(kinds == -1, np.inf, rhs),
        lower=np.fromiter((-np.inf if (b := v.lb) is None else b for v in form.columns), float, n),
        upper=np.fromiter((np.inf if (b := v.ub) is None else b for v in form.columns), float, n),
        integer=np.fromiter((not v.is_continuous() for v in form.columns), np.bool_, n),
        columns=form.columns,
        rows=rows,
        model=model,
        ties=None if model.component(TIES) is None else _of(model, TIES, form.columns, 0.0),
        column_unit=1 / _of(model, SCALING, form.columns, 1.0),
        row_unit=1 / _of(model, SCALING, rows, 1.0),
        cost_unit=1 / float(_of(model, SCALING, form.objectives, 1.0)[0]),
    )


def _of(model: pyo.ConcreteModel, name: str, parts: Sequence[Any], default: float) -> Array:
    """Return what a suffix says of parts of the model, or of the containers that they are in."""
    suffix = model.component(name)
    if suffix is None:
        return np.full(len(parts), default)
    return np.array([suffix.get(part, suffix.get(part.parent_component(), default)) for part in parts], float)
