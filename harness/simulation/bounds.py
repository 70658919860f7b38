"""Certified bounds beside simulations: one mechanism for the last completion and for the mean completion time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from schedgap.harness.engine.limits import Limits
from schedgap.harness.engine.result import Stored
from schedgap.harness.engine.task import Task
from schedgap.harness.text import plain
from schedgap.heuristics.simulator import PolicySpec
from schedgap.instances import clock
from schedgap.instances.canonical import validate
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Horizon, Instance

ENDLESS = 2**31
"""Slots of a horizon that ends after everything."""


@dataclass(frozen=True)
class BoundSpec:
    """A model that bounds a time of simulations from below.

    Attributes
    ----------
    metric
        Field of :class:`~schedgap.harness.simulation.rows.SimulationRow` that it bounds, in seconds.
    model
        Id of the model; its slots are as long as the rounds, so that no simulated job could start earlier.
    sensitive
        Whether it bounds policies that give out CPUs and memory, or the others; no model bounds jobs that fork.
    from_arrival
        Whether the time counts from the first arrival, where the model counts it from 0.
    """

    metric: str
    model: str
    sensitive: bool
    from_arrival: bool

    def applies(self, policy: PolicySpec) -> bool:
        """Return whether it bounds a policy."""
        return not policy.forks and policy.sensitive == self.sensitive


TTD = BoundSpec("ttd_s", "gavel.makespan_fluid", sensitive=False, from_arrival=True)
TTD_SENSITIVE = BoundSpec("ttd_s", "synergy.makespan_fluid", sensitive=True, from_arrival=True)
JCT = BoundSpec("jct_mean_s", "synergy.jct", sensitive=True, from_arrival=False)

BOUNDS = {spec.model: spec for spec in (TTD, TTD_SENSITIVE, JCT)}
"""Bounds by model."""


@dataclass(frozen=True)
class Bound:
    """Certified lower bound on a metric of all jobs of an instance, in seconds; absent with a reason.

    `took_s` is how long the model took, `key` the key of its task.
    """

    fingerprint: str
    model: str
    seconds: float | None
    reason: str | None = None
    took_s: float | None = None
    key: str = ""

    record: ClassVar[str] = "bound"

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"{self.model}: {'no bound' if self.seconds is None else 'bound'}"

    @property
    def finished(self) -> bool:
        """Whether it need not be tried again."""
        return self.seconds is not None

    def content(self) -> dict[str, Any]:
        """Return what the journal keeps."""
        return {"bound": plain(vars(self))}

    def files(self) -> Mapping[str, bytes]:
        """Return nothing: all of it is in the line."""
        return {}

    def check(self) -> None:
        """Check nothing: all of it is in the line."""

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> Bound:
        """Return the bound that a journal kept."""
        return cls(**content["bound"])


@dataclass(frozen=True)
class BoundTask(Task[Bound]):
    """A lower bound of a model on a metric of any schedule on an instance, in rounds of some length."""

    instance_json: str
    fingerprint: str
    round_s: float
    model: str

    def identity(self) -> Mapping[str, Any]:
        """Return all that the bound depends on: content, length of a round and model."""
        return {"of": [self.fingerprint, repr(self.round_s), self.model]}

    def failed(self, status: str, reason: str) -> Bound:
        """Return the absent bound of a task that could not be finished."""
        return Bound(self.fingerprint, self.model, None, f"{status}: {reason}", key=self.key)

    def attempt(self) -> Bound:
        """Solve the model."""
        instance = validate(json.loads(self.instance_json), where=self.fingerprint[:12])
        began = clock.now()
        found = lower_bound(BOUNDS[self.model], instance, self.round_s)
        return Bound(self.fingerprint, self.model, found, None, clock.now() - began, self.key)


def wanted(policies: Iterable[PolicySpec], whole: bool) -> list[str]:
    """Return the models that bound some policy; `whole` says that completion times are those of all jobs."""
    chosen = list(policies)
    return [spec.model for spec in BOUNDS.values() if (whole or spec is not JCT) and any(map(spec.applies, chosen))]


def lower_bound(bound: BoundSpec, instance: Instance, round_s: float) -> float | None:
    """Return a certified lower bound on a metric in rounds of that length, in seconds.

    Raises
    ------
    NotApplicableError
        If the model cannot run on the instance.
    """
    from schedgap.models import MODELS

    spec = MODELS.get(bound.model)
    endless = instance.model_copy(update={"horizon": Horizon(slot_s=round_s, slots=ENDLESS)})
    view = PAPERS.get(spec.paper).view(endless)
    if reason := spec.skip(view):
        raise NotApplicableError(reason)
    found = spec.run(view, Limits().options(0)).solution.bound
    if found is None or not bound.from_arrival:
        return found
    return found - float(view.workload.arrival_s.min())
