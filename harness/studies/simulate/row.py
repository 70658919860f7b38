"""A simulation as plain data: its rows, its certified bounds, and the progress of each round."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from schedgap.harness.engine.certificates import FOLDER, checked, read
from schedgap.harness.engine.result import CheckedRow, Found, Later, Result, Stored, opened, typed
from schedgap.harness.show.text import plain
from schedgap.heuristics.simulator import Rules, Trace, workload
from schedgap.heuristics.simulator.metrics import ALL, Window
from schedgap.instances.arrays import Array

BOUNDED = {"ttd_s": ("ttd", "TTD"), "jct_mean_s": ("jct", "mean JCT"), "jct_p99_s": ("p99", "p99 of JCT")}
"""Metrics that certified bounds limit, each with the prefix of its bound's fields and its printed name."""

OK = frozenset({"done", "unfinished", "skipped"})
"""Statuses of policies that did not fail."""


@dataclass(frozen=True)
class SimulationRow(CheckedRow):
    """One policy on one instance. Times in seconds; absent numbers are ``None``.

    Attributes
    ----------
    status, unfinished
        ``done``, ``unfinished``, ``skipped`` (the policy cannot run on the instance), or the kind of failure; and the
        number of unfinished jobs by reason.
    ttd_s … changing
        See :class:`schedgap.heuristics.simulator.metrics.Metrics`; present in verified rows only.
    options
        Options of a sweep that it ran under (``round_s=90``), empty if the sweep does not vary any.
    profiling_s, window
        Seconds for which jobs are profiled before this policy may schedule them; the jobs whose completion times count
        (:class:`schedgap.heuristics.simulator.metrics.Window`), ``None`` for all.
    arrivals_per_h
        Mean number of arrivals per hour; ``None`` if all jobs arrive at once.
    reference, ttd_ratio, jct_ratio, ttd_printed
        The policy against which this policy's paper measures it
        (:attr:`schedgap.heuristics.simulator.PolicySpec.reference`), or the first policy; TTD and mean completion time
        divided by those of the reference; and the ratio of TTDs as printed in a paper.
    ttd_bound_s, ttd_bound_from, ttd_bound_ratio, jct_bound_s … p99_bound_ratio
        Certified lower bound on the TTD of any gang schedule, the model that gives it, and TTD divided by the bound,
        which overestimates the policy's distance from the least TTD. The same for the mean and the 99th percentile of
        the completion times of all jobs.
    gru_bound, cru_bound
        Upper bounds on the utilisation of any policy that completes all jobs
        (:func:`schedgap.harness.studies.simulate.bounds.utilisation`).
    lp1_share, lp1_worst, cpu_needed
        For policies that allocate CPUs and memory: mean and minimum over the rounds of progress divided by its LP1
        bound for the picked jobs (:mod:`schedgap.harness.check.sensitive`); and `cpu_given` if each job had the fewest
        CPUs at which it is as fast.
    estimated_throughput, actual_throughput, throughput_deviation
        Total throughput of all tenants, in devices of the slowest type and averaged over the rounds, as promised by the
        fractional shares and as reached (:func:`schedgap.heuristics.oef.dynamics.throughput`), for policies that
        measure it; and the gap between the two relative to the first.
    published, verified
        As in :class:`schedgap.harness.studies.compare.row.Row`, for the history.
    key
        Key of the task (:attr:`schedgap.harness.studies.simulate.task.SimulationTask.key`).
    """

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
    arrivals_per_h: float | None = None
    status: str = "error"
    ttd_s: float | None = None
    reference: str | None = None
    ttd_ratio: float | None = None
    ttd_printed: float | None = None
    ttd_bound_s: float | None = None
    ttd_bound_from: str | None = None
    ttd_bound_ratio: float | None = None
    jct_mean_s: float | None = None
    jct_ratio: float | None = None
    jct_bound_s: float | None = None
    jct_bound_from: str | None = None
    jct_bound_ratio: float | None = None
    jct_median_s: float | None = None
    jct_p99_s: float | None = None
    p99_bound_s: float | None = None
    p99_bound_from: str | None = None
    p99_bound_ratio: float | None = None
    jct_min_s: float | None = None
    jct_max_s: float | None = None
    jct_short_s: float | None = None
    jct_long_s: float | None = None
    jct_short_p99_s: float | None = None
    jct_long_p95_s: float | None = None
    jct_long_p99_s: float | None = None
    window_jobs: int | None = None
    gru: float | None = None
    cru: float | None = None
    gru_bound: float | None = None
    cru_bound: float | None = None
    cpu_given: float | None = None
    cpu_needed: float | None = None
    lp1_share: float | None = None
    lp1_worst: float | None = None
    utility: float | None = None
    estimated_throughput: float | None = None
    actual_throughput: float | None = None
    throughput_deviation: float | None = None
    stragglers: int | None = None
    straggler_share: float | None = None
    decision_mean_s: float | None = None
    decision_max_s: float | None = None
    idle_gpus: float | None = None
    restarts: int | None = None
    rounds: int | None = None
    changing: float | None = None
    jobs: int | None = None
    finished: int | None = None
    unfinished: Mapping[str, int] = field(default_factory=dict)
    published: tuple[Mapping[str, Any], ...] = ()
    verified: bool | None = None
    violations: tuple[str, ...] = ()
    simulate_s: float | None = None
    check_s: float | None = None
    reason: str | None = None
    key: str = ""

    @property
    def method(self) -> str:
        """The policy, under the name that published numbers use."""
        return self.policy

    @property
    def rules(self) -> Rules:
        """Rules of the run, before its policy changes them; raise `UsageError` if they are out of range."""
        until_s = math.inf if self.until_s is None else self.until_s
        return Rules(self.round_s, self.restart_s, self.spread_factor, until_s, profiling_s=self.profiling_s)

    @property
    def case(self) -> tuple[str, ...]:
        """Instance, seed and options; rows with the same case are compared with each other."""
        return self.fingerprint, str(self.seed), self.options

    @property
    def measured(self) -> dict[str, Any]:
        """Values that published numbers are compared with, by quantity; empty if the row is WRONG."""
        values = {name: getattr(self, name) for name in MEASURED} if self.verified is not False else {}
        if (ttd_s := values.get("ttd_s")) is not None:
            values |= {"makespan_s": ttd_s, "ttd_rounds": math.ceil(ttd_s / self.round_s * (1 - 1e-9))}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def bounds(self) -> dict[str, tuple[float, str]]:
        """Certified lower bounds in seconds, and the models that give them, by metric."""
        pairs = {m: (getattr(self, f"{p}_bound_s"), getattr(self, f"{p}_bound_from")) for m, (p, _) in BOUNDED.items()}
        return {metric: (bound_s, model) for metric, (bound_s, model) in pairs.items() if bound_s}

    @property
    def in_order(self) -> bool:
        """True if the policy did not fail: the simulation is done, unfinished or skipped."""
        return self.status in OK


FIELDS = tuple(f.name for f in dataclasses.fields(SimulationRow))
TOGETHER = (*(x for x in FIELDS if re.search("ratio|bound", x)), "reference", "ttd_printed", "published")
"""Fields computed from all rows of a run together, when results are read: ratios, bounds, published numbers."""

STORED = tuple(name for name in FIELDS if name not in (*TOGETHER, "instance"))
"""Fields that the journal of a run stores."""

MEASURED = tuple(
    f.name
    for f in dataclasses.fields(SimulationRow)
    if f.type in ("float | None", "int | None") and not re.search("ratio|bound|printed|until", f.name)
)
"""Fields that are compared with published numbers: measurements of one policy, without ratios and bounds."""

SENSITIVE = frozenset({"cpu_given", "cpu_needed", "lp1_share", "lp1_worst"})
"""Measurements that exist only for policies that allocate CPUs and memory."""

ALIASES = ("makespan_s", "ttd_rounds")
"""Names of published quantities that are computed from the TTD: Synergy's makespan, and the TTD in rounds."""


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
        name = self.model or BOUNDED[self.metric][1]
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
