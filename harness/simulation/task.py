"""One policy on one instance: what a worker process does, from records to verified row. And the bound beside it."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from harness.environment import code_digest
from harness.render.text import clean
from harness.simulation.rows import SimulationRow
from harness.tasks import Limits, verified_oracle
from harness.verify import TOLERANCE, Verdict
from harness.verify.history import check
from heuristics.simulator import POLICIES, Rules, Trace, servers, simulate, workload
from heuristics.simulator.metrics import Metrics, measure
from instances.canonical import validate
from instances.errors import NotApplicableError, UsageError
from instances.registry import PAPERS
from instances.schema import Horizon, Instance
from instances.sensitivity import profiles
from models import MODELS

TTD_BOUND = "gavel.makespan_fluid"
"""Model that bounds the time of the last completion, in seconds."""

ENDLESS = 2**31
"""Slots of a horizon that ends after everything."""


@dataclass(frozen=True)
class Caps:
    """What one simulation may take; see :class:`harness.pool.Caps`.

    Raises
    ------
    UsageError
        If the time limit is not a positive number.
    """

    time_limit_s: float = 3600.0
    memory_mb: int = 4096
    threads: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.time_limit_s < math.inf:
            raise UsageError(f"time_limit_s = {self.time_limit_s:g}: a positive number of seconds")

    @property
    def hard_limit_s(self) -> float:
        """Wall-clock seconds after which a worker is killed."""
        return self.time_limit_s


@dataclass(frozen=True)
class SimulationResult:
    """A finished simulation: its row, and the history if there is one."""

    row: SimulationRow
    trace: Trace | None = None


@dataclass(frozen=True)
class SimulationTask:
    """A policy to simulate on an instance, which travels as JSON text."""

    instance_json: str
    instance_name: str
    fingerprint: str
    policy: str
    seed: int
    rules: Rules
    limits: Caps = field(default_factory=Caps)
    code: str = field(default_factory=code_digest)

    def blank_row(self, **known: Any) -> SimulationRow:
        """Return the row of this task before anything is known about its result."""
        until_s = self.rules.until_s
        return SimulationRow(
            instance=self.instance_name,
            fingerprint=self.fingerprint,
            policy=self.policy,
            seed=self.seed,
            round_s=self.rules.round_s,
            restart_s=self.rules.restart_s,
            spread_factor=self.rules.spread_factor,
            until_s=until_s if math.isfinite(until_s) else None,
            **known,
        )

    def failed(self, status: str, reason: str) -> SimulationResult:
        """Return the result of a simulation that could not be finished."""
        return SimulationResult(self.blank_row(status=status.replace(" without incumbent", ""), reason=reason))

    def run(self) -> SimulationResult:
        """Simulate, check, measure; whatever the policy does becomes a row."""
        try:
            return self._run()
        except NotApplicableError as reason:
            return self.failed("skipped", str(reason))
        except MemoryError:
            raise  # a row needs memory as well; the pool writes it
        except Exception as error:  # any failure of a policy is a row, so that one policy cannot end a run
            return self.failed("error", clean(f"{type(error).__name__}: {error}", 300))

    def _run(self) -> SimulationResult:
        instance = validate(json.loads(self.instance_json), where=self.fingerprint[:12])
        spec = POLICIES.get(self.policy)
        began = time.perf_counter()
        rules = spec.rules(self.rules)
        policy = spec.build(instance, verified_oracle(Limits().options(self.seed)))
        work, cluster = workload(instance), servers(instance)
        tables = profiles(instance, work, cluster) if rules.sensitive else None
        trace = simulate(work, cluster, policy, profiles=tables, **vars(rules))
        simulated = time.perf_counter()
        verdict, metrics = check(instance, trace, rules), measure(trace)
        violations = (*verdict.violations, *_disagreement(verdict, metrics))
        reasons = Counter(reason for reason in trace.unfinished if reason)
        row = self.blank_row(
            status="unfinished" if reasons else "done",
            unfinished=dict(reasons),
            verified=not violations,
            violations=violations,
            simulate_s=simulated - began,
            check_s=time.perf_counter() - simulated,
            **({} if violations else _numbers(metrics)),
        )
        return SimulationResult(row, trace)


def _disagreement(verdict: Verdict, metrics: Metrics) -> list[str]:
    """Return a line where the total utility is not the checker's."""
    found = verdict.objective
    if found is None or abs(found - metrics.utility) <= TOLERANCE * max(1.0, abs(found)):
        return []
    return [f"total utility {metrics.utility:.9g}, the checker finds {found:.9g}"]


def _numbers(metrics: Metrics) -> dict[str, Any]:
    """Return the metrics as fields of a row."""
    return {name: None if math.isnan(value) else value for name, value in vars(metrics).items()}


@dataclass(frozen=True)
class TtdBound:
    """Certified lower bound on the seconds from the first arrival to the last completion; absent with a reason."""

    fingerprint: str
    seconds: float | None
    reason: str | None = None


@dataclass(frozen=True)
class BoundTask:
    """A lower bound on the TTD of any schedule of gangs on an instance, in rounds of some length."""

    instance_json: str
    fingerprint: str
    round_s: float
    limits: Caps = field(default_factory=Caps)

    def failed(self, status: str, reason: str) -> TtdBound:
        """Return the absent bound of a task that could not be finished."""
        return TtdBound(self.fingerprint, None, f"{status}: {reason}")

    def run(self) -> TtdBound:
        """Solve the model; a failure is an absent bound."""
        try:
            instance = validate(json.loads(self.instance_json), where=self.fingerprint[:12])
            return TtdBound(self.fingerprint, ttd_bound(instance, self.round_s))
        except MemoryError:
            raise
        except Exception as error:  # without a bound, the simulations are still worth their table
            return self.failed(type(error).__name__, clean(error, 300))


def ttd_bound(instance: Instance, round_s: float) -> float | None:
    """Return a certified lower bound on the TTD of gangs in rounds of that length, in seconds.

    The model counts time from 0 and lets jobs start in the slot after their arrival; slots are as long as the rounds
    here, so that no simulated job could start earlier.
    """
    spec = MODELS.get(TTD_BOUND)
    endless = instance.model_copy(update={"horizon": Horizon(slot_s=round_s, slots=ENDLESS)})
    view = PAPERS.get(spec.paper).view(endless)
    bound = spec.run(view, Limits().options(0)).solution.bound
    return None if bound is None else bound - float(view.workload.arrival_s.min())
