"""A simulation as plain data: its rows, its certified bounds, and the progress of each round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from schedgap.harness.engine.certificates import FOLDER, checked, read
from schedgap.harness.engine.result import CheckedRow, Found, Later, Observation, Result, Stored, opened, typed
from schedgap.harness.show.measures import SIMULATE, MeasureTable, described
from schedgap.harness.show.text import plain
from schedgap.heuristics.simulator import Rules, Trace, workload
from schedgap.heuristics.simulator.metrics import ALL, Window
from schedgap.instances.arrays import Array

BOUNDED = {"ttd_s": "ttd", "jct_mean_s": "jct", "jct_p99_s": "p99"}
"""Measures that certified bounds limit, each with the prefix of its bound's columns."""

OK = frozenset({"done", "unfinished", "skipped"})
"""Statuses of policies that did not fail."""


@described(SIMULATE)
@dataclass(frozen=True)
class SimulationRow(CheckedRow):
    """One policy on one instance.

    Fields say what was run and how it ended. `numbers` has what is measured, and `models` what gives the bounds, each
    by the name of its column. Every column is also an attribute, ``None`` if it is not known.
    """

    measures: ClassVar[MeasureTable] = SIMULATE

    instance: str
    fingerprint: str
    policy: str
    seed: int = 0
    options: str = ""
    round_s: float = 0.0
    restart_s: float = 0.0
    spread_factor: float = 1.0
    until_s: float | None = None
    profiling_s: float = 0.0
    window: str | None = None
    network: bool = False
    status: str = "error"
    reference: str | None = None
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    unfinished: Mapping[str, int] = field(default_factory=dict)
    lacking: tuple[Mapping[str, Any], ...] = ()
    published: tuple[Mapping[str, Any], ...] = ()
    verified: bool | None = None
    violations: tuple[str, ...] = ()
    reason: str | None = None
    key: str = ""

    def __getattr__(self, name: str) -> Any:
        """Return a column, ``None`` if it is not known; raise `AttributeError` if there is no such column."""
        if name not in SIMULATE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.numbers.get(name, self.models.get(name))

    def knowing(self, **numbers: float | None) -> SimulationRow:
        """Return a copy that knows some more numbers."""
        known = {name: number for name, number in numbers.items() if number is not None}
        return self.replace(numbers={**self.numbers, **known})

    def as_dict(self) -> dict[str, Any]:
        """Return all columns by name, in order."""
        return {name: getattr(self, name) for name in FIELDS}

    @property
    def method(self) -> str:
        """The policy, under the name that published numbers use."""
        return self.policy

    @property
    def rules(self) -> Rules:
        """Rules of the run, before its policy changes them; raise `UsageError` if they are out of range."""
        until_s = math.inf if self.until_s is None else self.until_s
        return Rules(
            self.round_s,
            self.restart_s,
            self.spread_factor,
            until_s,
            profiling_s=self.profiling_s,
            network=self.network,
        )

    @property
    def case(self) -> tuple[str, ...]:
        """Instance, seed and options; rows with the same case are compared with each other."""
        return self.fingerprint, str(self.seed), self.options

    @property
    def measured(self) -> dict[str, Any]:
        """Values that published numbers are compared with, by quantity; empty if the row is WRONG."""
        if self.verified is False:
            return {}
        values: dict[str, Any] = {name: self.numbers[name] for name in MEASURED if name in self.numbers}
        if (ttd_s := values.get("ttd_s")) is not None:
            values |= {"makespan_s": ttd_s, "ttd_rounds": math.ceil(ttd_s / self.round_s * (1 - 1e-9))}
        return values

    @property
    def bounds(self) -> dict[str, tuple[float, str]]:
        """Certified lower bounds in seconds, and the models that give them, by metric."""
        pairs = {m: (getattr(self, f"{p}_bound_s"), getattr(self, f"{p}_bound_from")) for m, p in BOUNDED.items()}
        return {metric: (bound_s, model) for metric, (bound_s, model) in pairs.items() if bound_s}

    @property
    def in_order(self) -> bool:
        """True if the policy did not fail: the simulation is done, unfinished or skipped."""
        return self.status in OK


FIELDS = tuple(SIMULATE)

GIVEN = ("seed", "round_s", "restart_s", "spread_factor", "until_s", "profiling_s")
"""Numbers that are given, not measured."""

MEASURED = tuple(n for n, one in SIMULATE.items() if one.format.numeric and one.origin != "run" and n not in GIVEN)
"""Columns that are compared with published numbers: measurements of one policy, without ratios and bounds."""

STORED = tuple(name for name, measure in SIMULATE.items() if measure.origin != "run" and name != "instance")
"""Columns that the journal of a run stores; those that follow from all rows of a run are computed when it is read."""

SENSITIVE = frozenset({"cpu_given", "cpu_needed", "lp1_share", "lp1_worst"})
"""Measurements that exist only for policies that allocate CPUs and memory."""

ALIASES = {"makespan_s": "ttd_s", "ttd_rounds": "ttd_s"}
"""Names of published quantities that are computed from a measure: Synergy's makespan, and the TTD in rounds."""


@dataclass(frozen=True)
class Bound(Result):
    """Certified lower bound, in seconds, on a metric of all jobs of an instance, or the reason why there is none.

    The bound holds for policies of one kind (`sensitive`, `forks`), rounds of `round_s`, and the jobs of a `window`, if
    any. Its `certificate` proves the number `proved`, a bound on the `problem` of the `model`. That problem may count
    times from 0, where `seconds` count from the first arrival.
    """

    fingerprint: str
    metric: str
    sensitive: bool = False
    forks: bool = False
    model: str = ""
    seconds: float | None = None
    reason: str | None = None
    took_s: float | None = None
    key: str = ""
    round_s: float | None = None
    window: str | None = None
    problem: str = ""
    proved: float | None = None
    certificate: Any = field(default=None, repr=False)
    instance: Any = field(default=None, repr=False)

    record: ClassVar[str] = "bound"

    @property
    def label(self) -> str:
        name = self.model or SIMULATE[self.metric].called
        return f"{name}: {'no bound' if self.seconds is None else 'bound'}"

    @property
    def finished(self) -> bool:
        return self.seconds is not None

    @property
    def place(self) -> tuple[Any, ...]:
        """Key that rows look this bound up by: instance, metric, kind of policy, window and round length."""
        return self.fingerprint, self.metric, self.sensitive, self.forks, self.window, self.round_s

    @property
    def about(self) -> dict[str, Any]:
        """Fields that the certificate of this bound must state."""
        about = {"instance": self.fingerprint, "method": self.model, "problem": self.problem}
        return about | {"round_s": self.round_s} | ({"window": self.window} if self.window else {})

    @property
    def _file(self) -> str:
        return f"{FOLDER}/{self.model}-{self.fingerprint[:12]}-{self.key[:8]}.json.gz"

    def content(self) -> dict[str, Any]:
        return {"bound": plain({k: v for k, v in vars(self).items() if k not in ("certificate", "instance")})}

    def parts(self) -> Mapping[str, Any]:
        return {} if self.certificate is None else {self._file: self.certificate}

    def holds(self) -> str:
        from schedgap.models import MODELS
        from schedgap.models.simulated import SIMULATED

        if (self.seconds is None) != bool(self.reason) or (self.seconds is None) != (self.proved is None):
            raise ValueError("it needs either a certified bound or a reason why there is none")
        if self.seconds is None or self.proved is None:
            return ""
        model = SIMULATED.get(self.model)
        if model is None or (self.metric, self.sensitive, self.forks) != (model.metric, model.sensitive, model.forks):
            raise ValueError(f"{self.model} does not bound {self.metric} of these policies")
        if self.problem != MODELS.get(self.model).problem:
            raise ValueError(f"{self.model} bounds {MODELS.get(self.model).problem}, not {self.problem}")
        if self.seconds != model.counted(self.proved, self.arrivals_s):
            raise ValueError("its certificate proves another bound")
        return checked(opened(self.certificate), self.instance)

    @property
    def arrivals_s(self) -> Array:
        """Arrivals of the jobs that count, in seconds."""
        at = workload(self.instance).arrival_s
        return at[(Window.parse(self.window) if self.window else ALL).jobs(at)]

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Bound:
        bound = typed(cls, content["bound"])
        if bound.proved is None:
            return bound
        file = stored.file(content["key"], bound._file)
        certificate = Later(partial(read, file, bound.about, bound.proved))
        return replace(bound, certificate=certificate, instance=stored.instance(bound.fingerprint))


@dataclass(frozen=True, eq=False)
class Rounds:
    """For each of the ``R`` rounds of a history: the progress of its jobs, and the most that LP1 allows.

    `progress` sums the progress of the running jobs, each in units of its fair progress on its best GPU type. `most` is
    the LP1 bound on it for the jobs that the policy picked (:mod:`schedgap.harness.check.sensitive`), NaN if it picked
    none. `cpus_needed` is the fraction of the CPU time that jobs need while they compute.
    """

    progress: Array
    most: Array
    cpus_needed: Array

    @property
    def share(self) -> Array:
        """``(R,)`` progress divided by its LP1 bound."""
        return np.asarray(self.progress / self.most)


@dataclass(repr=False)
class Simulation(Found[SimulationRow]):
    """Simulated policies and their certified bounds, from which tables and pages are made.

    Attributes
    ----------
    traces, rounds
        Histories by policy, of the last instance, and their :class:`Rounds` for policies that allocate CPUs.
    bounds
        Certified lower bounds, or reasons why there is none.
    """

    traces: Mapping[str, Trace] = field(default_factory=dict)
    rounds: Mapping[str, Rounds] = field(default_factory=dict)
    bounds: Sequence[Bound] = ()

    kind = "simulate"
    fields = FIELDS

    def observations(self) -> list[Observation]:
        """Return what statistics use of the rows that were not skipped: one for each metric that bounds limit.

        A policy that leaves jobs unfinished failed, since a mean over the others says nothing of them.
        """
        ran = [row for row in self.rows if row.status != "skipped"]
        return [_observed(row, metric) for metric in BOUNDED for row in ran]


def _observed(row: SimulationRow, metric: str) -> Observation:
    """Return what statistics use of a policy's row about one of its metrics.

    The policy that tables compare it with counts as online, and so as the reference.
    """
    complete = bool(row.verified) and not row.unfinished
    value, ratio = getattr(row, metric), getattr(row, f"{BOUNDED[metric]}_bound_ratio")
    return Observation(
        row.policy,
        metric,
        row.options,
        row.instance,
        row.fingerprint,
        kind="online" if row.policy == row.reference else "baseline",
        sense="min",
        gap=None if ratio is None or not complete else ratio - 1.0,
        upper=ratio != 1.0,
        objective=value if complete and value else None,
        failed=row.failed or bool(row.unfinished),
    )
