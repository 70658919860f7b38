"""The task of a simulation: run one policy on one instance; return a verified row and the history."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from schedgap.certificates.reading.sensitive import Sensitive
from schedgap.certificates.reading.simulated import simulated_of
from schedgap.harness.check import TOLERANCE, differ, facts_of
from schedgap.harness.check.history import check
from schedgap.harness.check.rules import SHORTFALL
from schedgap.harness.check.sensitive import most_progress
from schedgap.harness.check.served import Served, served
from schedgap.harness.engine.folder import damage_explained
from schedgap.harness.engine.result import Later, RowResult, Stored, from_plain, opened, packed, to_plain, typed
from schedgap.harness.engine.sealed import KeptFile
from schedgap.harness.engine.task import InstanceTask, Limits
from schedgap.harness.show.measures import SIMULATE
from schedgap.harness.show.text import plain
from schedgap.harness.studies.simulate.row import MEASURED, STORED, Rounds, SimulationRow
from schedgap.heuristics.simulator import POLICIES, Program, Rules, Trace, servers, simulate, workload
from schedgap.heuristics.simulator.metrics import ALL, Metrics, Window, measure, part_used
from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.sensitivity import profiles

HISTORY = (
    *("start_s", "decision_s", "stragglers", "restarts", "waiting", "completion_s", "first_start_s"),
    *("allocation", "progress", "iterations", "busy_s", "speed", "cpus", "memory_gb", "offered", "unfinished"),
)
"""Attributes of :class:`~schedgap.heuristics.simulator.Trace` that are saved, in addition to its rules."""


OF_HISTORIES = tuple(name for name in MEASURED if SIMULATE[name].origin == "history")
"""Measurements that follow from a history, unlike computing times and what a paper's policies measure."""


def history_file(row: SimulationRow) -> str:
    """Return the file name of a row's history; paths of programs are cut, and a digest tells the files apart."""
    name = re.sub(r"[^a-z0-9_.?&=-]", "_", row.policy)
    if ":" in row.policy or row.options:
        name = f"{name[-60:]}-{row.key[:8]}"
    return f"schedules/{name}-{row.fingerprint[:12]}-{row.seed}.json.gz"


def read_history(file: KeptFile, row: SimulationRow, instance: Instance) -> tuple[Trace, Rounds | None]:
    """Return a row's history, and its `Rounds` if the policy allocates CPUs and memory.

    Raise ``ValueError`` if the checker refutes the history although its row is verified.
    """
    with damage_explained(file.folder / file.name):
        parts = file.unpacked()
        rules = POLICIES.get(row.policy).rules(row.rules)
        if parts["rules"] != plain(vars(rules)):
            raise ValueError(f"{file.name} was made under other rules than its row")
        arrays = {name: np.asarray(from_plain(parts[name])) for name in HISTORY if name != "unfinished"}
        # The file may come from anyone: convert types whose sums could overflow. The checker checks the shapes.
        arrays = {name: one.astype(np.int64 if one.dtype.kind in "iu" else float) for name, one in arrays.items()}
        trace = Trace(workload(instance), servers(instance), rules, **arrays, unfinished=tuple(parts["unfinished"]))
        if violations := check(instance, trace, rules).violations:
            raise ValueError(f"{file.name} is not the history that was verified: {violations[0]}")
        by_round = rounds(instance, trace) if rules.sensitive else None
        fairness = served(instance, trace)
        metrics = measure(trace, Window.parse(row.window) if row.window else ALL)
        measured = _measured(trace, metrics, by_round, fairness)
        others = [n for n in OF_HISTORIES if not _same(measured.get(n, math.nan), row.numbers.get(n, math.nan))]
        others += ["unfinished"] * (dict(Counter(filter(None, trace.unfinished))) != row.unfinished)
        if row.lacking:  # runs made before tenants were listed say nothing of them
            others += ["lacking"] * (not _alike(fairness.lacking if fairness else (), row.lacking))
        if others:
            raise ValueError(f"{file.name} has another {', '.join(others)} than its row")
        return trace, by_round


def _same(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or not differ(one, other)


def _alike(some: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether two lists say the same of the same tenants, up to the tolerance of numbers."""

    def same(a: Any, b: Any) -> bool:
        return not differ(a, b, TOLERANCE) if isinstance(a, float) and isinstance(b, int | float) else a == b

    return len(some) == len(others) and all(
        one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
        for one, other in zip(some, others, strict=True)
    )


def rounds(instance: Instance, trace: Trace) -> Rounds:
    """Return the progress of each round of a history, its LP1 bound, and the CPUs that its jobs needed."""
    work, cluster = trace.workload, trace.servers
    read = facts_of(instance, simulated_of).read
    row, job, _ = trace.progress.T
    gpu_type = np.zeros(len(trace.progress), np.int64)
    gpu_type[trace.entry_of] = cluster.gpu_type[trace.allocation[:, 2]]  # a gang uses one GPU type
    rate = trace.speed * work.gpus[job] * work.rates[job, gpu_type]
    picked, jobs = trace.offered.T
    most = most_progress(read, picked, jobs, trace.rounds, read.pooled.weight) if trace.rounds else np.zeros(0)
    needed = _fewest_cpus(read, job, gpu_type, trace.held, rate)
    return Rounds(
        progress=np.bincount(row, read.pooled.weight[job] * rate, trace.rounds).astype(float),
        most=np.where(np.isin(np.arange(trace.rounds), picked), most, np.nan),
        cpus_needed=trace.used(needed, float(cluster.cpus.sum())),
    )


def _fewest_cpus(read: Sensitive, job: Ints, gpu_type: Ints, held: Array, rate: Array) -> Array:
    """Return the ``(x,)`` fewest CPUs with which each gang, holding the memory that it has, reaches its rate."""
    table = np.column_stack((read.classes.of[job], gpu_type, held, rate))
    distinct, which = np.unique(table, axis=0, return_inverse=True)
    fewest = distinct[:, 2].copy()
    classes = distinct[:, 0].astype(np.int64)
    for k in np.unique(classes).tolist():
        here = np.flatnonzero(classes == k)
        first = int(read.classes.first[k])
        levels = read.grid(first, 0)[0]
        x = here.size * levels.size
        rates = read.rate(
            np.full(x, first),
            np.repeat(distinct[here, 1].astype(np.int64), levels.size),
            np.tile(levels, here.size),
            np.repeat(distinct[here, 3], levels.size),
        ).reshape(here.size, -1)
        # Servers give CPUs in proportion to GPUs; a rate that is lower only by rounding is fast enough.
        enough = rates >= distinct[here, 4][:, None] * (1 - SHORTFALL)
        fewest[here] = np.where(enough.any(axis=1), levels[enough.argmax(axis=1)], fewest[here])
    return np.asarray(np.minimum(fewest, distinct[:, 2])[which.ravel()])


@dataclass(frozen=True)
class SimulationResult(RowResult):
    """A finished simulation: its row, and its history and `Rounds`, which are read and checked on access."""

    row: SimulationRow
    kept: tuple[Trace, Rounds | None] | Later[tuple[Trace, Rounds | None]] | None = None

    record: ClassVar[str] = "simulation"

    @property
    def trace(self) -> Trace | None:
        """The history; ``None`` if the row is WRONG, so that nothing unverified is drawn."""
        return opened(self.kept)[0] if self.kept and self.row.verified else None

    @property
    def rounds(self) -> Rounds | None:
        """Progress and LP1 bounds of the rounds; ``None`` if the policy allocates no CPUs, or the row is WRONG."""
        return opened(self.kept)[1] if self.kept and self.row.verified else None

    @property
    def finished(self) -> bool:
        return self.row.ok and self.row.status != "skipped"

    def content(self) -> dict[str, Any]:
        return {"row": plain({name: value for name, value in self.row.as_dict().items() if name in STORED})}

    def names(self) -> list[str]:
        return [history_file(self.row)] if self.row.verified is not None else []

    def files(self) -> Mapping[str, bytes]:
        if not self.kept:
            return {}
        trace = opened(self.kept)[0]
        about = {"rules": vars(trace.rules), "jobs": trace.workload.ids, "servers": trace.servers.names}
        history = {name: to_plain(getattr(trace, name)) for name in HISTORY}
        return {history_file(self.row): packed(plain(about) | history)}

    def check(self) -> None:
        if self.row.ok and self.trace is None:
            raise ValueError(f"{history_file(self.row)} is missing")

    def holds(self) -> str:
        row, ran = self.row, self.row.status in ("done", "unfinished")
        if row.trouble:
            raise ValueError(f"WRONG: {row.trouble}")
        if ran != (row.verified is not None) or bool(row.unfinished) != (row.status == "unfinished"):
            raise ValueError(f"it is {row.status}, but says otherwise of its history")
        if ran == bool(row.reason) or row.violations:
            raise ValueError(f"it is {row.status}, but says otherwise in words")
        if POLICIES.get(row.policy).rules(row.rules).profiling_s != row.profiling_s:
            raise ValueError(f"{row.policy} does not profile for {row.profiling_s:g} s")
        if not ran and not row.numbers.keys().isdisjoint(OF_HISTORIES):
            raise ValueError(f"it is {row.status}, but has properties of a history")
        estimated, actual = row.estimated_throughput or 0.0, row.actual_throughput or 0.0
        apart = abs(estimated - actual) if estimated else 0.0
        if differ((row.throughput_deviation or 0.0) * estimated, apart, TOLERANCE * estimated):
            raise ValueError("its throughput_deviation does not follow from its throughputs")
        self.check()
        return "history re-checked" if row.verified else ""

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> SimulationResult:
        told = {name: value for name, value in content["row"].items() if name in STORED}
        instance = stored.instance(told["fingerprint"])
        numbers = {name: told[name] for name in MEASURED if told.get(name) is not None}
        row = typed(SimulationRow, {**told, "instance": instance.name, "numbers": numbers})
        file = stored.file(content["key"], history_file(row))
        return cls(row, Later(partial(read_history, file, row, instance)) if row.verified else None)


@dataclass(frozen=True)
class SimulationTask(InstanceTask[SimulationResult]):
    """A task that simulates one policy on one instance.

    `program` is the user's program, if the policy is one. In a sweep, `options` is the label of its options in rows.
    """

    policy: str
    seed: int
    rules: Rules
    window: Window = ALL
    program: Program | None = None
    options: str = ""

    def identity(self) -> Mapping[str, Any]:
        rules = {name: str(value) for name, value in asdict(self.rules).items()}
        program = self.program.digest if self.program else ""
        return {"of": [self.fingerprint, self.policy, program, self.seed, rules, str(self.window), self.options]}

    def blank_row(self, **fields: Any) -> SimulationRow:
        """Return the row of this task without results, but with the given `fields` set."""
        rules = POLICIES.get(self.policy).rules(self.rules)
        same = {name: getattr(self.rules, name) for name in ("round_s", "restart_s", "spread_factor", "network")}
        return SimulationRow(
            **self.about,
            policy=self.policy,
            seed=self.seed,
            options=self.options,
            **same,
            until_s=self.rules.until_s if math.isfinite(self.rules.until_s) else None,
            profiling_s=rules.profiling_s,
            window=self.window.told,
            **fields,
        )

    def failed(self, status: str, reason: str) -> SimulationResult:
        return SimulationResult(self.blank_row(status=status.replace(" without incumbent", ""), reason=reason))

    def attempt(self) -> SimulationResult:
        instance = self.instance
        spec = POLICIES.get(self.policy)
        began = clock.now()
        rules = spec.rules(self.rules)
        if spec.paper in PAPERS:
            PAPERS.get(spec.paper).accepted(instance)
        work, cluster = workload(instance), servers(instance)
        tables = profiles(instance, work, cluster) if rules.sensitive else None

        def optimum(model: str, view: Any) -> Any:
            from schedgap.harness.studies.compare.methods import (
                verified_oracle,
            )  # policies that need no optimum do not import solvers

            return verified_oracle(Limits().options(self.seed))(model, view)

        built = self.program.start() if self.program else nullcontext(spec.build(instance, optimum))
        with built as policy:
            trace = simulate(work, cluster, policy, profiles=tables, **vars(rules))
        simulated = clock.now()
        verdict, metrics = check(instance, trace, rules), measure(trace, self.window)
        violations = list(verdict.violations)
        if verdict.objective is not None and differ(verdict.objective, metrics.utility):
            violations.append(f"total utility {metrics.utility:.9g}, the checker finds {verdict.objective:.9g}")
        numbers: dict[str, float] = {}
        by_round: Rounds | None = None
        fairness: Served | None = None
        if not violations:
            fairness = served(instance, trace)
            by_round = rounds(instance, trace) if rules.sensitive else None
            numbers = _measured(trace, metrics, by_round, fairness) | dict(spec.measures(instance, policy, trace))
        reasons = Counter(reason for reason in trace.unfinished if reason)
        row = self.blank_row(
            status="unfinished" if reasons else "done",
            unfinished=dict(reasons),
            lacking=fairness.lacking if fairness else (),
            verified=not violations,
            violations=tuple(violations),
        )
        known = {name: value for name, value in numbers.items() if not math.isnan(value)}
        times = {"simulate_s": simulated - began, "check_s": clock.now() - simulated}
        return SimulationResult(row.knowing(**known, **times), (trace, by_round))


def _measured(trace: Trace, metrics: Metrics, by_round: Rounds | None, fairness: Served | None) -> dict[str, float]:
    """Return the fields of a row that follow from its history; means leave out rounds in which no job was picked."""
    arrival_s = trace.workload.arrival_s
    span_s = float(np.ptp(arrival_s))  # 0 if all jobs arrive at once
    numbers = {**vars(metrics), "arrivals_per_h": (arrival_s.size - 1) * 3600.0 / span_s if span_s else math.nan}
    if fairness:
        numbers |= fairness.numbers
    if by_round is None:
        return numbers
    share = by_round.share[np.isfinite(by_round.share)]
    return numbers | {
        "lp1_share": float(share.mean()) if share.size else math.nan,
        "lp1_worst": float(share.min()) if share.size else math.nan,
        "cpu_needed": part_used(trace, by_round.cpus_needed),
    }
