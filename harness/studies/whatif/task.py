"""The task of a change: run one method on the changed cluster, and measure how long its jobs wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from schedgap.harness.engine.result import Stored, opened, typed
from schedgap.harness.studies.compare.task import MethodResult, MethodTask
from schedgap.harness.studies.whatif.change import UNCHANGED, Change
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.registry import PAPERS, Status
from schedgap.instances.rigid import RigidSchedule, RigidView, completions
from schedgap.instances.schema import Instance

DAY_S = 86_400.0

FEWEST = 4
"""Fewest weeks, or else days, that are resampled: an interval of fewer says little."""


@dataclass(frozen=True)
class Waits:
    """How long jobs wait in a schedule, in hours.

    Attributes
    ----------
    unit, jobs, hours
        What jobs are grouped by, ``week``, ``day`` or nothing; number of jobs and sum of waits of each group.
    pools
        Sum of waits by pool.
    apart
        Mean difference, without sign, to the waits of the same jobs as executed, if these are known.
    """

    unit: str
    jobs: tuple[int, ...]
    hours: tuple[float, ...]
    pools: Mapping[str, float]
    apart: float | None = None

    @property
    def total(self) -> float:
        """Sum of all waits."""
        return float(sum(self.hours))

    @property
    def mean(self) -> float:
        """Mean wait of a job."""
        return self.total / max(sum(self.jobs), 1)


def waits(view: RigidView, schedule: RigidSchedule) -> Waits:
    """Measure the waits in a schedule: from each submission to the end, less the duration."""
    waited, (unit, group) = _waited(view, schedule), grouping(view)
    by_pool = np.bincount(view.pool, waited, len(view.pools)).tolist()
    return Waits(
        unit,
        tuple(np.bincount(group).tolist()),
        tuple(np.bincount(group, waited).tolist()),
        dict(zip(view.pools, by_pool, strict=True)),
        None if view.executed is None else float(np.abs(waited - _waited(view, view.executed)).mean()),
    )


def _waited(view: RigidView, schedule: RigidSchedule) -> Array:
    return np.asarray((completions(view, schedule) - view.release - view.duration) / view.ticks_of_hour)


def grouping(view: RigidView) -> tuple[str, Ints]:
    """Return the unit of time of which the log has enough, and ``(n,)`` the group of each job's submission."""
    for unit, length_s in (("week", 7 * DAY_S), ("day", DAY_S)):
        since = ((view.release - view.release.min()) * view.tick_s // length_s).astype(np.int64)
        times, group = np.unique(since, return_inverse=True)
        if times.size >= FEWEST:
            return unit, group.astype(np.int64)
    return "", np.zeros(view.size, np.int64)


KEPT = 2
"""Changed instances that a process keeps."""

_changed: dict[tuple[str, Change], Instance] = {}


@dataclass(frozen=True)
class ChangedTask(MethodTask):
    """A task that runs one method after a change of the instance that it was sent."""

    change: Change = UNCHANGED

    def identity(self) -> Mapping[str, Any]:
        return {**super().identity(), "change": asdict(self.change)}

    @property
    def instance(self) -> Instance:
        """The changed instance. A process keeps the latest, since the tasks about it follow one another."""
        key = self.fingerprint, self.change
        if key not in _changed:
            made = self.change.applied(super().instance)
            while len(_changed) >= KEPT:
                del _changed[next(iter(_changed))]
            _changed[key] = made
        return _changed[key]

    @property
    def about(self) -> dict[str, Any]:
        """Fields of the task's row that identify the changed instance and the task."""
        return {"instance": self.instance.name, "fingerprint": self.instance.fingerprint, "key": self.key}

    def attempt(self) -> ChangedResult:
        return self._changed(super().attempt())

    def failed(self, status: Status, reason: str) -> ChangedResult:
        return self._changed(super().failed(status, reason))

    def _changed(self, result: MethodResult) -> ChangedResult:
        """Return a result with the change and what is measured of waits; prices of jobs are not needed."""
        if isinstance(result, ChangedResult):
            return result
        found = ChangedResult(**{**vars(result), "prices": None}, change=self.change, base=self.fingerprint)
        return replace(found, **measured(found, self.instance))


def measured(result: ChangedResult, instance: Instance) -> dict[str, Any]:
    """Return the waits in the decision of a result, or the least mean wait by its bound, by name of the field."""
    if result.row.status == "skipped":
        return {}
    view = PAPERS.get("rigid").view(instance)
    decision, bound = opened(result.decision), result.row.own_bound
    found: dict[str, Any] = {}
    if decision is not None and result.row.verified:
        found["waits"] = waits(view, decision)
    if bound is not None:
        found["least_h"] = max(0.0, bound - float((view.duration / view.ticks_of_hour).mean()))
    return found


@dataclass(frozen=True)
class ChangedResult(MethodResult):
    """A finished task: what a comparison keeps of it, its `change`, and the fingerprint of the unchanged instance.

    `waits` are those of its decision; `least_h` is the least mean wait that its bound allows.
    """

    change: Change = UNCHANGED
    base: str = ""
    waits: Waits | None = None
    least_h: float | None = None

    record: ClassVar[str] = "changed"

    def content(self) -> dict[str, Any]:
        measured = {"waits": self.waits and asdict(self.waits), "least_h": self.least_h}
        return super().content() | {"change": asdict(self.change), "base": self.base} | measured

    def holds(self) -> str:
        text = super().holds()
        if self.instance is not None and measured(self, self.instance) != {
            name: value for name in ("waits", "least_h") if (value := getattr(self, name)) is not None
        }:
            raise ValueError("its schedule has other waits, or its bound allows others")
        return text

    @classmethod
    def restored(cls, content: Mapping[str, Any], stored: Stored) -> ChangedResult:
        """Return the result stored in a journal line; the changed instance is made again from the stored one."""
        change = typed(Change, content["change"])
        one = change.applied(stored.instance(content["base"]))
        found = super().restored(content, replace(stored, instances={one.fingerprint: one}))
        fields = {"waits": content["waits"] and typed(Waits, content["waits"]), "least_h": content["least_h"]}
        return cls(**{**vars(found), "change": change, "base": content["base"], **fields})
