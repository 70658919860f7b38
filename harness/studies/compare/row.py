"""A comparison as plain data: rows, decisions, traces, prices and bounds."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from schedgap.harness.check import differ
from schedgap.harness.engine.result import CheckedRow, Found, Observation
from schedgap.harness.engine.sealed import digest
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.measures import COMPARE, MeasureTable, described
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import Status

SOLVER_NAMES = {"highs": "HiGHS", "cbc": "CBC", "scip": "SCIP"}
"""Names of solvers as their makers write them."""

LONGEST = 120
"""Longest name of a method in the name of a file, which most file systems limit to 255 characters."""

Name = tuple[str, str, int, str]
"""Fingerprint of the instance, method, seed, limits."""

FAILED = frozenset[Status](("error", "out of memory", "unbounded", "interrupted", "time limit without incumbent"))
"""Statuses of methods that failed to answer; that a problem is infeasible is an answer."""

FINISHED: frozenset[Status] = frozenset({"optimal", "feasible", "gap left", "time limit with incumbent", "skipped"})
"""Statuses of rows that a resumed run keeps; all others are tried again."""

TOO_LARGE = "too large"
"""Prefix of the reason of methods that were skipped because they run at such a size only on request."""


@described(COMPARE)
@dataclass(frozen=True)
class Row(CheckedRow):
    """One method on one instance with one seed. Absent numbers are ``None``.

    Fields of :data:`TOGETHER` follow from all rows of a run, those of :data:`OF_METHODS` from the method. They are
    derived whenever results are read, never stored.
    """

    measures: ClassVar[MeasureTable] = COMPARE

    instance: str
    fingerprint: str
    paper: str
    method: str
    problem: str
    kind: str
    sense: str
    seed: int = 0
    limits: str = ""
    objective: float | None = None
    claimed_bound: float | None = None
    own_bound: float | None = None
    best_bound: float | None = None
    bound_from: str | None = None
    best_objective: float | None = None
    gap: float | None = None
    ratio: float | None = None
    ratio_is_upper: bool | None = None
    aims: str = ""
    loss: float | None = None
    loss_is_upper: bool | None = None
    price_of: str = ""
    price_at_least: float | None = None
    price_at_most: float | None = None
    guarantee: str | None = None
    guarantee_factor: float | None = None
    refuted: str | None = None
    published: tuple[Mapping[str, Any], ...] = ()
    status: Status = "error"
    termination: str | None = None
    verified: bool | None = None
    violations: tuple[str, ...] = ()
    metrics: Mapping[str, float | int | bool | None] = field(default_factory=dict)
    solve_s: float | None = None
    build_s: float | None = None
    transfer_s: float | None = None
    check_s: float | None = None
    certify_s: float | None = None
    compile_s: float | None = None
    read_s: float | None = None
    total_s: float | None = None
    fastest_s: float | None = None
    slowest_s: float | None = None
    nodes: int | None = None
    iterations: int | None = None
    rows: int | None = None
    columns: int | None = None
    nonzeros: int | None = None
    peak_mb: float | None = None
    solver: str | None = None
    integral_s: float | None = None
    core_share: float | None = None
    cross_check: float | None = None
    reason: str | None = None
    key: str = ""

    @property
    def measured(self) -> dict[str, Any]:
        """Values that published numbers are compared with, by quantity; empty if the row is WRONG."""
        if self.wrong:
            return {}
        own = {name: getattr(self, name) for name in (*MEASURED, "sense")}
        return {**self.metrics, **{name: value for name, value in own.items() if value is not None}}

    @property
    def bounds(self) -> dict[str, tuple[float, str]]:
        """Certified bounds and the models that give them, by quantity.

        A mean wait is a mean time from submission to end, less the durations, which no schedule changes.
        """
        if self.best_bound is None:
            return {}
        known, flow_h, wait_h = self.best_bound, self.metrics.get("flow_h"), self.metrics.get("wait_h")
        bounds = {"objective": (known, self.bound_from or "")}
        if self.problem.removesuffix(".preemptive").endswith(".flow") and flow_h is not None and wait_h is not None:
            bounds["wait_h"] = (max(0.0, known - (flow_h - wait_h)), self.bound_from or "")
        return bounds

    @property
    def case(self) -> tuple[str, ...]:
        """Instance, seed and limits; rows with the same case are compared with each other."""
        return self.fingerprint, str(self.seed), self.limits

    @property
    def took_s(self) -> float:
        """The sum of the seconds of all phases."""
        return sum(getattr(self, name) or 0.0 for name in PHASES)

    @property
    def in_order(self) -> bool:
        """True if the method did not fail."""
        return self.status not in FAILED

    @property
    def ok(self) -> bool:
        """True if the method did not fail, the row is not WRONG, and no verified decision refutes its guarantee."""
        return super().ok and self.refuted is None

    @property
    def trouble(self) -> str:
        """What is wrong with the row, or with the guarantee that it states, in words; empty if nothing is."""
        return super().trouble or self.refuted or ""

    @property
    def about(self) -> dict[str, str]:
        """Instance, method and problem that a certificate of its bound must name."""
        return {"instance": self.fingerprint, "method": self.method, "problem": self.problem}

    def file(self, folder: str, ending: str = ".json.gz") -> str:
        """Return the path inside the results folder of a file of this row: a decision, certificate or log."""
        method = re.sub(r"[^a-z0-9_.?&=-]", "_", self.method)
        if len(method) > LONGEST:
            method = f"{method[:LONGEST]}-{digest(self.method.encode())}"
        limits = f"-{self.key[:8]}" if self.limits else ""
        return f"{folder}/{method}-{self.fingerprint[:12]}-{self.seed}{limits}{ending}"

    @property
    def claim(self) -> str | None:
        """What the solver says that no certificate shows, in words, or ``None``.

        "optimal" is shown if a verified decision reaches the certified bound; nothing shows that a problem has no
        solution.
        """
        solver = base_id(self.solver or "the method")
        says = f"{SOLVER_NAMES.get(solver, solver)} calls this"
        if self.status == "infeasible":
            return f"{says} infeasible"
        shown = not self.unproved if self.objective is None else self.ratio_is_upper is False
        return f"{says} optimal" if self.status == "optimal" and not shown else None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, in order, and the `claim`."""
        return super().as_dict() | {"claim": self.claim}

    @property
    def unproved(self) -> bool:
        """True if the method claims a tighter bound than any certificate shows."""
        known = self.own_bound if self.best_bound is None else self.best_bound
        if self.claimed_bound is None or known is None:
            return self.claimed_bound is not None
        return (self.claimed_bound < known) == (self.sense == "max") and differ(known, self.claimed_bound)

    @property
    def ratio_at_least(self) -> float | None:
        """A lower estimate of the ratio of a verified row to the optimum: its ratio to the best verified decision.

        It is infinite if one of the two is 0, and ``None`` if both are, or if a ratio is undefined.
        """
        if not self.verified or self.objective is None or self.best_objective is None:
            return None
        if self.objective == self.best_objective == 0:
            return None
        nothing = min(self.objective, self.best_objective) == 0
        return ratio(self.sense, self.objective, self.best_objective) or (math.inf if nothing else None)

    @property
    def certified(self) -> bool:
        """True if the row has a verified decision and a gap, which may then be shown."""
        return self.verified is True and self.gap is not None

    @property
    def name(self) -> Name:
        """Fingerprint, method, seed and limits, which identify a result within a run."""
        return self.fingerprint, self.method, self.seed, self.limits


PHASES = ("read_s", "compile_s", "build_s", "transfer_s", "solve_s", "check_s", "certify_s")
"""Fields with the seconds of each phase of a row, which add up to its total."""

MEASURED = ("objective", "own_bound", "best_bound", "gap", "ratio", "solve_s", "build_s", "total_s")
"""Fields that are compared with published numbers, in addition to the metrics of the checker."""

FIELDS = tuple(f.name for f in dataclasses.fields(Row))

TOGETHER = (
    *("best_bound", "bound_from", "best_objective", "gap", "ratio", "ratio_is_upper", "refuted", "published"),
    *("loss", "loss_is_upper", "price_of", "price_at_least", "price_at_most"),
)
"""Fields that are computed from all rows of a run together."""

OF_METHODS = ("paper", "problem", "aims", "kind", "sense")
"""Fields that follow from the registration of the method."""

STORED = tuple(name for name in FIELDS if name not in (*TOGETHER, *OF_METHODS, "instance"))
"""Fields that the journal of a run stores."""


def gap(objective: float, bound: float) -> float:
    """Return ``|bound − objective| / |bound|`` (0 if both are 0, infinite if only the bound is)."""
    if objective == bound:
        return 0.0
    return abs(bound - objective) / abs(bound) if bound != 0 else math.inf


def ratio(sense: str, objective: float, bound: float) -> float | None:
    """Return the factor by which the bound is better, at least 1, or ``None`` if a ratio is undefined.

    It is ``bound/objective`` to maximise, ``objective/bound`` to minimise; both must be positive, or equal (ratio 1).
    """
    if objective == bound:
        return 1.0
    better, worse = (bound, objective) if sense == "max" else (objective, bound)
    if worse <= 0 or better <= 0:
        return None
    return max(1.0, better / worse)


BROKEN = "a checker or a rule, of the package or of a plug-in, is wrong; please report this"


def better(row: Row, objective: float, bound: float) -> bool:
    """Return whether an objective is better than a bound on it by more than rounding."""
    return (objective > bound) == (row.sense == "max") and differ(objective, bound)


EXACT = 1e-12
"""Relative amount by which an exact decision may miss a rule, for the rounding of floating-point numbers."""


def log_file(row: Row) -> str:
    """Return the path of a row's log inside the results folder."""
    return row.file("logs", ".log")


def exact(metrics: Mapping[str, Any]) -> bool:
    """Return whether a verified decision meets all rules exactly, and not only within the tolerance of the checker.

    What a decision misses, its metric ``missed``, may count many times in the objective. Certified bounds allow for
    this, and bounds that a solver claims do not. Decisions of papers without this metric count as exact.
    """
    return float(metrics.get("missed", 0.0)) <= EXACT


def refuted_by(row: Row, method: str, objective: float, exactly: bool = True) -> list[str]:
    """Return a line for each statement of a row that a verified decision of its problem refutes.

    Such statements are bounds, and that there is no solution. `method` made the decision, which has this `objective`.
    It refutes a bound that a solver claims only if it is :func:`exact`.
    """
    lines = []
    if row.own_bound is not None and better(row, objective, row.own_bound):
        text = f"is beaten by the objective {objective:.9g} of {method}: {BROKEN}"
        lines.append(f"certified bound {row.own_bound:.9g} {text}")
    if exactly and row.claimed_bound is not None and better(row, objective, row.claimed_bound):
        lines.append(f"claimed bound {row.claimed_bound:.9g} is beaten by the objective {objective:.9g} of {method}")
    if row.status == "infeasible":
        lines.append(f"infeasible, but {method} has a decision of {row.problem}")
    return lines


def allowed_under(limits: str, allowed_s: float | Mapping[str, float]) -> float:
    """Return the time limit, in seconds, of the limit set with this name."""
    return allowed_s.get(limits, 60.0) if isinstance(allowed_s, Mapping) else allowed_s


def allowed_s(meta: Mapping[str, Any]) -> float | dict[str, float]:
    """Return the time limit of a method from ``run.json``, in seconds; by name if there are several limit sets."""
    limits = meta.get("limits") or {}
    if "time_limit_s" in limits or not limits:
        return Limits(limits.get("time_limit_s")).seconds
    return {name: Limits(kind.get("time_limit_s")).seconds for name, kind in limits.items()}


@dataclass(repr=False)
class Comparison(Found[Row]):
    """Certified results of a run, from which tables, figures and the report are made.

    Attributes
    ----------
    rows
        Sorted by instance, paper and order of registration.
    decisions
        Decisions by :attr:`Row.name`; methods without one are absent.
    traces
        Bound and incumbent over time: ``{instance, fingerprint, method, seed, limits, time_s, incumbent, bound}``.
    prices
        Prices that prove bounds, by :attr:`Row.name`, from the models that provide them.
    bounds
        Rows of models that were not selected, but ran for their bounds.
    logs
        What HiGHS wrote, by :attr:`Row.name`, if the run kept its logs.
    """

    decisions: Mapping[Name, Any] = field(default_factory=dict)
    traces: list[Mapping[str, Any]] = field(default_factory=list)
    prices: Mapping[Name, Any] = field(default_factory=dict)
    bounds: list[Row] = field(default_factory=list)
    logs: Mapping[Name, str] = field(default_factory=dict)

    kind = "compare"
    fields = tuple(COMPARE)

    def observations(self) -> list[Observation]:
        """Return what statistics use of the rows that were not skipped."""
        limits = allowed_s(self.meta)
        return [_observed(row, allowed_under(row.limits, limits)) for row in self.rows if row.status != "skipped"]

    def decision(self, method: str, seed: int = 0) -> Any:
        """Return the decision of a method on the first instance for which it has one."""
        return next(d for (_, name, s, _), d in self.decisions.items() if (name, s) == (method, seed))


def _observed(row: Row, allowed_s: float) -> Observation:
    """Return what statistics use of a row."""
    positive = row.verified and not row.failed and (row.objective or 0.0) > 0
    return Observation(
        **{name: getattr(row, name) for name in ("method", "problem", "limits", "instance", "fingerprint", "kind")},
        sense=row.sense,
        gap=row.gap if row.certified else None,
        upper=row.ratio_is_upper is not False,
        objective=row.objective if positive else None,
        failed=row.failed,
        solve_s=max(allowed_s, row.solve_s or 0.0) if row.failed else row.solve_s,
        allowed_s=allowed_s,
    )
