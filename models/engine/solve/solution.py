"""Options (:class:`SolveOptions`) and result (:class:`Solution`) of a solve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import Value, base_id
from schedgap.instances.ranges import LARGEST_SEED, MOST_THREADS
from schedgap.instances.registry import Status
from schedgap.models.engine.solve.options import Algorithm, solver


class Seed(NamedTuple):
    """A known feasible decision to start from, with the method that found it and its objective.

    It is not `exact` if it violates a rule by an amount that the checker tolerates.
    """

    method: str
    decision: Any
    objective: float
    exact: bool = True


@dataclass(frozen=True)
class SolveOptions:
    """Options of one solve.

    Parameters
    ----------
    time_limit_s
        Time limit of the solver in seconds; ``None`` for none. Searches and column generation count seconds of
        computing (:class:`schedgap.instances.clock.Budget`), other solves those of the wall clock.
    rel_gap
        Relative gap at which a MIP counts as solved.
    nodes
        Limit by count: of nodes of branch and bound or, where a search does not branch, of rounds of annealing;
        ``None`` for none.
    threads, seed
        Passed to the solver.
    method
        ``"simplex"`` where a vertex matters, ``"ipm"`` (with crossover), ``"choose"``, or HiGHS's other algorithms.
    solver
        One of :data:`schedgap.models.engine.solve.options.SOLVERS`, for models solved as one program, possibly with
        options of its own (``highs?presolve=off``). MIP start, basis and cross-check are for HiGHS only.
    mip_start
        Values by variable name; HiGHS completes a partial start.
    basis
        Starting basis, from :attr:`Solution.basis` of a model of the same shape.
    cross_check
        Whether to also solve the Pyomo model with PuLP/CBC, and report the relative difference of the objectives.
    seeds
        Known decisions, for models that can start from them.
    parts
        What is known of stretches of time, by number, for models that are solved in stretches.
    more
        A search that has used its time limit and has this gap may go on for ``more(gap)`` seconds.
    enough
        Relative gap at which a search that has used its time limit stops, even if `more` allows it to go on.
    logs
        Folder in which HiGHS writes the log of each solve to a file of its own; ``None`` for no logs.
    """

    time_limit_s: float | None = None
    rel_gap: float = 1e-6
    nodes: int | None = None
    threads: int = 1
    seed: int = 0
    method: Algorithm = "choose"
    solver: str = "highs"
    mip_start: Mapping[str, float] | None = None
    basis: Any = None
    cross_check: bool = False
    seeds: Sequence[Seed] = ()
    parts: Mapping[int, Any] = field(default_factory=dict)
    more: Callable[[float], float] | None = None
    enough: float = 0.0
    logs: Path | None = None

    def __post_init__(self) -> None:
        """Raise `UsageError` for invalid options."""
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise UsageError(f"time limit = {self.time_limit_s:g} s: a solve needs a positive number of seconds")
        if not self.rel_gap >= 0:
            raise UsageError(f"relative gap = {self.rel_gap:g}: a gap is 0 or more")
        if not 1 <= self.threads <= MOST_THREADS:
            raise UsageError(f"threads = {self.threads}: a solve takes from one thread to {MOST_THREADS}")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise UsageError(f"seed = {self.seed}: a seed lies between 0 and {LARGEST_SEED}")
        object.__setattr__(self, "solver", solver(self.solver).id)

    @property
    def program(self) -> str:
        """The solver without options of its own."""
        return base_id(self.solver)

    @property
    def own(self) -> Mapping[str, Value]:
        """The solver's own options that differ from its defaults."""
        return solver(self.solver).settings

    def since(self, began: float) -> SolveOptions:
        """Return the options with the time that a solve started at `began` has left, at least 1 ms."""
        return self.limited(None if self.time_limit_s is None else self.time_limit_s - (clock.now() - began))

    def limited(self, left_s: float | None) -> SolveOptions:
        """Return the options with another time limit, at least 1 ms; ``None`` or infinity for none."""
        return replace(self, time_limit_s=None if left_s in (None, math.inf) else max(left_s, 1e-3))


class TracePoint(NamedTuple):
    """Progress of a MIP or of an iterative method: seconds since its start, incumbent and bound."""

    time_s: float
    incumbent: float | None
    bound: float | None


@dataclass(frozen=True)
class Times:
    """Seconds spent on one solve, by phase.

    `build_s`: building the Pyomo model. `transfer_s`: compiling it, passing it to HiGHS and reading the answer back.
    `solve_s`: HiGHS itself, and pricing or separation in iterative methods.
    """

    build_s: float = 0.0
    transfer_s: float = 0.0
    solve_s: float = 0.0

    def since(self, began_s: float) -> Times:
        """Return the times of a method that began then: what is neither building nor transfer counts as solving."""
        return replace(self, solve_s=clock.now() - began_s - self.build_s - self.transfer_s)


@dataclass(frozen=True)
class Size:
    """Rows, columns, nonzeros and integer columns of the model that was solved."""

    rows: int = 0
    columns: int = 0
    nonzeros: int = 0
    integers: int = 0


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of one solve. Missing numbers are ``None``, never NaN or a sentinel.

    Attributes
    ----------
    status
        Status for the user. ``"feasible"``: the method ended by itself, with a solution but without a bound.
        ``"gap left"``: it did all that it can, or reached a limit such as that of nodes, with a gap between bound and
        incumbent.
    termination, solution_status
        HiGHS's own messages for why it stopped and what solution it has.
    objective
        Value of the incumbent, in the model's own sense.
    bound
        Certified bound on the optimum: the optimum itself for an LP solved to optimality, the dual bound of a MIP,
        or the value of a feasible dual for an LP stopped early.
    gap
        ``|bound − objective| / max(|objective|, 1e-10)``.
    nodes, iterations
        Branch-and-bound nodes and simplex/interior-point iterations.
    trace
        Incumbent and bound over time (MIPs and iterative methods).
    peak_mb
        Peak resident memory of the process so far, in megabytes.
    cross_check
        Relative difference to the objective of PuLP/CBC, if requested.
    basis
        Final basis of a simplex solve, for a warm start.
    path, solver
        ``"highspy"`` or ``"pyomo"`` (the fallback interface), and the solver (:attr:`SolveOptions.solver`).
    scale
        Largest absolute cost of a column: rounding of the objective is relative to it.
    model
        The Pyomo model; its components lose their names if it is garbage collected.
    """

    status: Status
    termination: str
    solution_status: str = "none"
    objective: float | None = None
    bound: float | None = None
    times: Times = field(default_factory=Times)
    size: Size = field(default_factory=Size)
    nodes: int | None = None
    iterations: int | None = None
    trace: tuple[TracePoint, ...] = ()
    peak_mb: float | None = None
    cross_check: float | None = None
    basis: Any = None
    path: Literal["highspy", "pyomo"] = "highspy"
    solver: str = "highs"
    scale: float = 0.0
    model: Any = field(default=None, repr=False)
    columns: Sequence[Any] = ()
    rows: Sequence[Any] = ()
    column_values: Array | None = None
    column_duals: Array | None = None
    row_duals: Array | None = None

    @property
    def has_incumbent(self) -> bool:
        """Whether the solution has a feasible point, from which a decision can be decoded."""
        return self.objective is not None and self.column_values is not None

    @property
    def gap(self) -> float | None:
        """Relative gap of incumbent and bound, or ``None`` if one of them is missing."""
        if self.objective is None or self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(abs(self.objective), 1e-10)

    def as_shown(self) -> Solution:
        """Return the solution; an ``"optimal"`` one has a ``"gap left"`` if objective and bound do not :func:`agree`.

        Solvers and searches call optimal what is within the gap that they are asked for, such as 1 %.
        """
        claimed = self.status == "optimal" and not agree(self.objective, self.bound)
        return replace(self, status="gap left") if claimed else self

    @cached_property
    def values(self) -> Mapping[str, float]:
        """Value of each variable in the incumbent, by name (empty without incumbent)."""
        return self._by_name(self.columns, self.column_values)

    @cached_property
    def reduced_costs(self) -> Mapping[str, float]:
        """Reduced cost of each variable of an LP, by name: change of the objective per unit of the variable."""
        return self._by_name(self.columns, self.column_duals)

    @cached_property
    def duals(self) -> Mapping[str, float]:
        """Shadow price of each constraint of an LP, by name: change of the objective per unit of right-hand side.

        A range constraint has two rows; its price is their sum.
        """
        prices: dict[str, float] = {}
        for row, price in zip(self.rows, [] if self.row_duals is None else self.row_duals.tolist(), strict=False):
            prices[row.name] = prices.get(row.name, 0.0) + price
        return prices

    def array(self, variable: Any, shape: tuple[int, ...] | None = None) -> Array:
        """Return the values of an indexed Pyomo variable in the order of its index set.

        They are one-dimensional without a `shape`. Members that occur in no row take the feasible value nearest to 0.
        """
        values, where = self.column_values, self._column_of
        if values is None:
            raise ValueError(f"no incumbent to read {variable.name} from ({self.status})")
        flat = np.array([values[where[id(v)]] if id(v) in where else _idle(v) for v in variable.values()])
        return flat if shape is None else flat.reshape(shape)

    @cached_property
    def _column_of(self) -> dict[int, int]:
        return {id(v): i for i, v in enumerate(self.columns)}

    @staticmethod
    def _by_name(parts: Sequence[Any], numbers: Array | None) -> dict[str, float]:
        return {} if numbers is None else dict(zip((p.name for p in parts), numbers.tolist(), strict=False))


def _idle(variable: Any) -> float:
    """Return the value of a variable that occurs in no row or objective: fixed, or as near to 0 as bounds allow."""
    if variable.fixed:
        return float(variable.value)
    lower, upper = variable.bounds
    return float(np.clip(0.0, -np.inf if lower is None else lower, np.inf if upper is None else upper))


ROUNDING = 1e-6
"""Difference up to which an objective near 0 equals its bound, and relative excess of a gap that is rounding."""


def agree(objective: float | None, bound: float | None) -> bool:
    """Return whether an objective and its bound differ by at most the usual gap, or one of them is missing."""
    if objective is None or bound is None:
        return True
    usual = SolveOptions.rel_gap * (1 + ROUNDING) * min(abs(objective), abs(bound))
    return abs(bound - objective) <= max(usual, ROUNDING)
