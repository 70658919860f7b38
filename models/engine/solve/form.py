"""From a Pyomo model to arrays: fast building with templates, and the standard form that is passed to HiGHS.

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
"""Name of the Pyomo ``Suffix`` that selects one of several optima of an LP: the one with the largest sum of variables
weighted by the suffix. Without it, the solution is whichever vertex the solver finds first."""

SCALING = "scaling_factor"
"""Name of Pyomo's ``Suffix`` by which a model declares the units in which a solver counts; see :func:`counted`."""


class NotLinearError(ValueError):
    """The model cannot be compiled to arrays: it is nonlinear, or has components that the compiler does not support."""


@contextmanager
def building() -> Iterator[None]:
    """Context for building Pyomo models: rules become templates, and the cyclic garbage collector pauses.

    Rules can become templates if they use ``Param``, ``Set`` and the builtin ``sum``; a condition on an index belongs
    in the set.
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
    """Call a model builder inside :func:`building`.

    It raises `ValueError` if a rule reads a numpy array at an index of the model, which is a symbol in templates.
    """
    try:
        with building():
            return builder(*args, **kwargs)
    except IndexError as error:
        if "valid indices" not in str(error):
            raise
        words = "a rule reads an array at an index of the model, which is a symbol; put the data into a pyo.Param"
        raise ValueError(words).with_traceback(error.__traceback__) from error


def counted(model: pyo.ConcreteModel, units: Iterable[tuple[Any, float]]) -> None:
    """Declare the units in which a solver counts variables, rows or the objective, to make its tolerances relative.

    `units` pairs components of the model, or single members of them, with the size of one solver unit in their own
    units, a positive number. Integer variables are not scaled. The model itself stays in its own units, and so do the
    values, prices, reduced costs, objective and bound of its solutions.
    """
    if model.component(SCALING) is None:
        model.add_component(SCALING, pyo.Suffix(direction=pyo.Suffix.LOCAL))
    getattr(model, SCALING).update((part, 1.0 / unit) for part, unit in units)


@contextmanager
def silent() -> Iterator[None]:
    """Suppress Pyomo's log messages. Pyomo's own tool for this clears the caches of all loggers in the process."""
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
        The Pyomo model of the columns and rows.
    ties
        ``(columns,)`` secondary objective, to be maximised among the optima (:data:`TIES`), if the model has one.
    column_unit, row_unit, cost_unit
        Declared units (:func:`counted`), ``(columns,)`` and ``(rows,)`` if there are any.
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
    """Builds a form from blocks of rows given as arrays, without Pyomo, which takes 15 ms even for small models."""

    def __init__(self) -> None:
        self.lower: list[Array] = []
        self.upper: list[Array] = []
        self.entries: list[tuple[Array, Ints, Ints]] = []
        self.size = 0

    def add(self, lower: NDArray[Any], upper: NDArray[Any], *entries: tuple[Part, Part, Part]) -> None:
        """Append rows ``lower ≤ … ≤ upper`` with entries ``(values, rows of this block, columns)``, which broadcast."""
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
        """Return the form; columns are nonnegative by default."""
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

    It raises `NotLinearError` if the model is not linear, has a component that the compiler does not support, or does
    not have exactly one objective, and `pyomo.common.errors.InfeasibleConstraintException` if a constraint without
    variables is violated.
    """
    from pyomo.common.errors import InfeasibleConstraintException
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    # Pyomo logs an error before it raises; reporting is left to the code that catches NotLinearError.
    try:
        with silent():
            form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except InfeasibleConstraintException:
        raise
    # AttributeError: Pyomo 6.10.1 expands the template of a constant objective as if it were an expression.
    except (ValueError, TypeError, NotImplementedError, AttributeError) as error:
        raise NotLinearError(" ".join(str(error).split())) from error
    if len(form.objectives) != 1:
        raise NotLinearError(f"a model needs exactly one active objective, and this one has {len(form.objectives)}")
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
    """Return the values of a suffix for the given parts of a model; a part without one has that of its component."""
    suffix = model.component(name)
    if suffix is None:
        return np.full(len(parts), default)
    return np.array([suffix.get(part, suffix.get(part.parent_component(), default)) for part in parts], float)
