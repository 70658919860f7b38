"""A simulation as plain data: its rows, certified bounds, and what the rounds of histories are worth."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from schedgap.harness.certificates import FOLDER, checked, read
from schedgap.harness.engine.result import CheckedRow, Found, Later, Result, Stored, opened, typed
from schedgap.harness.text import plain
from schedgap.heuristics.simulator import Rules, Trace, workload
from schedgap.instances.arrays import Array

BOUNDED = {"ttd_s": ("ttd", "TTD"), "jct_mean_s": ("jct", "mean JCT"), "jct_p99_s": ("p99", "p99 of JCT")}
"""Metric with a bound → how the fields of the bound begin, and its name."""

OK = frozenset({"done", "unfinished", "skipped"})
"""Statuses of policies that ended in order."""


@dataclass(frozen=True)
class SimulationRow(CheckedRow):
    """One policy on one instance. Times in seconds; absent numbers are ``None``.

    Attributes
    ----------
    status, unfinished
        ``done``, ``unfinished``, ``skipped`` (it cannot take the instance), or how it failed; jobs that did not
        complete, by reason.
    ttd_s … changing
        See :class:`schedgap.heuristics.simulator.metrics.Metrics`; present in verified rows only.
    options
        Which of a sweep's options it ran under (``round_s=90``), empty where there is one kind only.
    profiling_s, window
        Seconds in which jobs are profiled before this policy may schedule them; the jobs whose completion times count
        (:class:`schedgap.heuristics.simulator.metrics.Window`), ``None`` for all.
    arrivals_per_h
        Jobs that arrive in an hour on average; ``None`` where all are there at once.
    reference, ttd_ratio, jct_ratio, ttd_printed
        The policy that this one's paper measures it against
        (:attr:`schedgap.heuristics.simulator.PolicySpec.reference`), or the first one; TTD and mean completion time
        divided by its own; the ratio of TTDs as a paper printed it.
    ttd_bound_s, ttd_bound_from, ttd_bound_ratio, jct_bound_s … p99_bound_ratio
        Certified lower bound on the TTD of any gang schedule, the model it is from, and TTD divided by it: an upper
        estimate of how far from the least TTD the policy is. The same for the mean and the 99th percentile of the
        completion times of all jobs.
    gru_bound, cru_bound
        Upper bounds on the utilisation of any policy that completes all jobs
        (:func:`schedgap.harness.simulate.bounds.utilisation`).
    lp1_share, lp1_worst, cpu_needed
        For policies that give out CPUs and memory: mean and least of the rounds' progress divided by what LP1 allows
        for the jobs that were picked (:mod:`schedgap.harness.verify.sensitive`), and what `cpu_given` would be if
        each job had the fewest CPUs at which it is as fast.
    estimated_throughput, actual_throughput
        Means over the rounds of what fractional shares promise and of what was done, of all tenants together, in
        devices of the slowest type (:func:`schedgap.heuristics.oef.dynamics.throughput`); for policies of that
        comparison. `throughput_deviation` is the gap between them as a part of the first.
    published, verified
        As in :class:`schedgap.harness.compare.row.Row`, of the history.
    key
        What the simulation was of (:attr:`schedgap.harness.simulate.task.SimulationTask.key`).
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
        """The policy, as published numbers call it."""
        return self.policy

    @property
    def rules(self) -> Rules:
        """The rules that it ran under, but for what its policy asks for; raise `UsageError` where nothing runs so."""
        until_s = math.inf if self.until_s is None else self.until_s
        return Rules(self.round_s, self.restart_s, self.spread_factor, until_s, profiling_s=self.profiling_s)

    @property
    def case(self) -> tuple[str, ...]:
        """What rows share that are compared with each other: instance, seed and options."""
        return self.fingerprint, str(self.seed), self.options

    @property
    def measured(self) -> dict[str, Any]:
        """What published numbers can be compared with, by quantity; nothing where the row is WRONG."""
        known = {name: getattr(self, name) for name in MEASURED} if self.verified is not False else {}
        if (ttd_s := known.get("ttd_s")) is not None:
            known |= {"makespan_s": ttd_s, "ttd_rounds": math.ceil(ttd_s / self.round_s * (1 - 1e-9))}
        return {name: value for name, value in known.items() if value is not None}

    @property
    def bounds(self) -> dict[str, tuple[float, str]]:
        """Certified lower bounds by metric, in seconds, and the models that they are from."""
        known = {metric: getattr(self, f"{prefix}_bound_s") for metric, (prefix, _) in BOUNDED.items()}
        return {m: (least_s, getattr(self, f"{BOUNDED[m][0]}_bound_from")) for m, least_s in known.items() if least_s}

    @property
    def in_order(self) -> bool:
        """Whether the policy ended in order."""
        return self.status in OK


FIELDS = tuple(f.name for f in dataclasses.fields(SimulationRow))
MEASURED = tuple(
    f.name
    for f in dataclasses.fields(SimulationRow)
    if f.type in ("float | None", "int | None") and not re.search("ratio|bound|printed|until", f.name)
)
"""Fields that a published number can be about: what is measured of one policy alone."""

SENSITIVE = frozenset({"cpu_given", "cpu_needed", "lp1_share", "lp1_worst"})
"""Those that only policies have that give out CPUs and memory."""

ALIASES = ("makespan_s", "ttd_rounds")
"""Other names of the TTD: Synergy's, and in rounds."""


@dataclass(frozen=True)
class Bound(Result):
    """Certified lower bound on a metric of all schedules of an instance, in seconds; absent with a reason.

    It holds for policies of one kind (`sensitive`, `forks`), rounds of `round_s`, and the jobs of a `window`, if any.
    A `certificate` proves that the `problem` of the `model` has the bound `proved`, which may count from time 0.
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
        """Which rows it is for: those of this instance, metric, kind of policy, window and length of a round."""
        return self.fingerprint, self.metric, self.sensitive, self.forks, self.window, self.round_s

    @property
    def about(self) -> dict[str, Any]:
        """What its certificate is about."""
        about = {"instance": self.fingerprint, "method": self.model, "problem": self.problem}
        return about | {"round_s": self.round_s} | ({"window": self.window} if self.window else {})

    @property
    def _file(self) -> str:
        return f"{FOLDER}/{self.model}-{self.fingerprint[:12]}-{self.key[:8]}.json.gz"

    def content(self) -> dict[str, Any]:
        return {"bound": plain({k: v for k, v in vars(self).items() if k not in ("certificate", "instance")})}

    def parts(self) -> Mapping[str, Any]:
        """Return the certificate."""
        return {} if self.certificate is None else {self._file: self.certificate}

    def holds(self) -> str:
        """Check the certificate again, and say what holds."""
        if self.certificate is None:
            return "" if self.seconds is None else f"bound {self.seconds:.10g} s is the solver's word"
        first = float(workload(self.instance).arrival_s.min())
        if self.proved is None or self.seconds not in (self.proved, self.proved - first):
            raise ValueError("its certificate is about another bound")
        return checked(opened(self.certificate), self.instance, {"slot_s": self.round_s})

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Bound:
        fields = content["bound"]
        if "metric" not in fields:  # written by a version whose bounds named their model alone
            from schedgap.models.simulated import SIMULATED

            fields = vars(SIMULATED[fields["model"]]) | fields
        found = typed(cls, fields)
        if found.proved is None:
            return found
        file = stored.file(content["key"], found._file)
        later = Later(partial(read, file, found.about, found.proved))
        return replace(found, certificate=later, instance=stored.instance(found.fingerprint))


@dataclass(frozen=True, eq=False)
class Rounds:
    """What each of the rounds of a history is worth.

    `progress` is that of the running jobs, each in units of its fair progress on its best GPU type, and `most` what LP1
    allows for the jobs that the policy picked (:mod:`schedgap.harness.verify.sensitive`), NaN where it picked none.
    `cpus_needed` is the share of the CPU time that jobs need while they compute.
    """

    progress: Array
    most: Array
    cpus_needed: Array

    @property
    def share(self) -> Array:
        """``(R,)`` progress divided by the most."""
        return np.asarray(self.progress / self.most)


@dataclass(repr=False)
class Simulation(Found[SimulationRow]):
    """Simulated schedulers side by side: what tables and pages are made of.

    Attributes
    ----------
    traces, rounds
        By policy, of the last instance: histories, and what the rounds of those that give out CPUs are worth.
    bounds
        Certified lower bounds, and reasons where there is none.
    """

    traces: Mapping[str, Trace] = field(default_factory=dict)
    rounds: Mapping[str, Rounds] = field(default_factory=dict)
    bounds: Sequence[Bound] = ()

    kind = "simulate"
    fields = FIELDS
