"""One policy on one instance: what a worker process does, from records to verified row."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from schedgap.harness.engine.codec import packed
from schedgap.harness.engine.limits import Limits
from schedgap.harness.engine.result import Later, Result, Stored
from schedgap.harness.engine.task import Task
from schedgap.harness.simulate.history import history_content, history_file, read_history, rounds
from schedgap.harness.simulate.row import Rounds, SimulationRow
from schedgap.harness.text import plain
from schedgap.harness.verify import Verdict, differ
from schedgap.harness.verify.history import check
from schedgap.heuristics.simulator import POLICIES, Rules, Trace, servers, simulate, workload
from schedgap.heuristics.simulator.metrics import ALL, Metrics, Window, measure, part_used
from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.canonical import validate
from schedgap.instances.sensitivity import profiles


@dataclass(frozen=True)
class SimulationResult(Result):
    """A finished simulation: its row, the history if there is one, and what its rounds are worth if that is known.

    History and worth are read from their file, and checked, when they are asked for.
    """

    row: SimulationRow
    kept: Later[tuple[Trace, Rounds | None]] | None = None

    record: ClassVar[str] = "simulation"

    @property
    def trace(self) -> Trace | None:
        """The history; ``None`` where the row is WRONG, so that nothing unverified is drawn."""
        return self.kept.get()[0] if self.kept and self.row.verified else None

    @property
    def rounds(self) -> Rounds | None:
        """What the rounds are worth."""
        return self.kept.get()[1] if self.kept and self.row.verified else None

    @property
    def key(self) -> str:
        """Key of its task."""
        return self.row.key

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"{self.row.policy}: {self.row.status}"

    @property
    def finished(self) -> bool:
        """Whether it need not be tried again."""
        return self.row.ok and self.row.status != "skipped"

    def content(self) -> dict[str, Any]:
        """Return what the journal keeps."""
        return {"row": plain(self.row.as_dict())}

    def files(self) -> Mapping[str, bytes]:
        """Return the history as a file."""
        return {history_file(self.row): packed(history_content(self.kept.get()[0]))} if self.kept else {}

    def check(self) -> None:
        """Raise ``ValueError`` if the history in its file is not the one that was confirmed."""
        if self.row.ok and self.trace is None:
            raise ValueError(f"{history_file(self.row)} is missing")

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> SimulationResult:
        """Return the result that a journal kept."""
        row = SimulationRow.of(content["row"])
        instance, path = stored.instances[row.fingerprint], stored.path / history_file(row)
        return cls(row, Later(partial(read_history, path, row, instance)) if row.verified else None)


@dataclass(frozen=True)
class SimulationTask(Task[SimulationResult]):
    """A policy to simulate on an instance, which travels as JSON text."""

    instance_json: str
    instance_name: str
    fingerprint: str
    policy: str
    seed: int
    rules: Rules
    window: Window = ALL

    def identity(self) -> Mapping[str, Any]:
        """Return all that the result depends on: content, policy, rules, window and seed."""
        rules = {name: str(value) for name, value in asdict(self.rules).items()}
        return {"of": [self.fingerprint, self.policy, self.seed, rules, str(self.window)]}

    def blank_row(self, **known: Any) -> SimulationRow:
        """Return the row of this task before anything is known about its result."""
        until_s, rules = self.rules.until_s, POLICIES.get(self.policy).rules(self.rules)
        return SimulationRow(
            instance=self.instance_name,
            fingerprint=self.fingerprint,
            policy=self.policy,
            seed=self.seed,
            round_s=self.rules.round_s,
            restart_s=self.rules.restart_s,
            spread_factor=self.rules.spread_factor,
            until_s=until_s if math.isfinite(until_s) else None,
            profiling_s=rules.profiling_s,
            window=None if self.window == ALL else str(self.window),
            key=self.key,
            **known,
        )

    def failed(self, status: str, reason: str) -> SimulationResult:
        """Return the result of a simulation that could not be finished."""
        return SimulationResult(self.blank_row(status=status.replace(" without incumbent", ""), reason=reason))

    def attempt(self) -> SimulationResult:
        """Simulate, check, measure."""
        instance = validate(json.loads(self.instance_json), where=self.fingerprint[:12])
        spec = POLICIES.get(self.policy)
        began = clock.now()
        rules = spec.rules(self.rules)
        policy = spec.build(instance, partial(_optimum, self.seed))
        work, cluster = workload(instance), servers(instance)
        tables = profiles(instance, work, cluster) if rules.sensitive else None
        trace = simulate(work, cluster, policy, profiles=tables, **vars(rules))
        simulated = clock.now()
        verdict, metrics = check(instance, trace, rules), measure(trace, self.window)
        violations = (*verdict.violations, *_disagreement(verdict, metrics))
        worth = rounds(instance, trace) if rules.sensitive and not violations else None
        reasons = Counter(reason for reason in trace.unfinished if reason)
        row = self.blank_row(
            status="unfinished" if reasons else "done",
            unfinished=dict(reasons),
            verified=not violations,
            violations=violations,
            simulate_s=simulated - began,
            check_s=clock.now() - simulated,
            **({} if violations else _numbers({**vars(metrics), "arrivals_per_h": _arrivals_per_h(work.arrival_s)})),
            **(_numbers(_worth(trace, worth)) if worth else {}),
            **({} if violations else _numbers(spec.measures(instance, policy, trace))),
        )
        return SimulationResult(row, Later.known((trace, worth)))


def _optimum(seed: int, model: str, view: Any) -> Any:
    """Return the optimal decision of a model, for policies that ask for it; only these pay for importing solvers."""
    from schedgap.harness.compare.methods import verified_oracle

    return verified_oracle(Limits().options(seed))(model, view)


def _disagreement(verdict: Verdict, metrics: Metrics) -> list[str]:
    """Return a line where the total utility is not the checker's."""
    found = verdict.objective
    if found is None or not differ(found, metrics.utility):
        return []
    return [f"total utility {metrics.utility:.9g}, the checker finds {found:.9g}"]


def _numbers(values: Mapping[str, float]) -> dict[str, Any]:
    """Return numbers as fields of a row, absent where they are NaN."""
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _worth(trace: Trace, worth: Rounds) -> dict[str, float]:
    """Return what the rounds are worth in a few numbers; rounds in which nobody was picked do not count."""
    share = worth.share[np.isfinite(worth.share)]
    return {
        "lp1_share": float(share.mean()) if share.size else math.nan,
        "lp1_worst": float(share.min()) if share.size else math.nan,
        "cpu_needed": part_used(trace, worth.cpus_needed),
    }


def _arrivals_per_h(arrival_s: Array) -> float:
    """Return the mean number of jobs that arrive in an hour; NaN where all are there at once."""
    span_s = float(arrival_s.max() - arrival_s.min())
    return (arrival_s.size - 1) * 3600.0 / span_s if span_s > 0 else math.nan
