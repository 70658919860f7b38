"""Why jobs waited: what the best schedule found saves, by group of jobs and by time, and the most expensive decisions.

*Waiting* is the time from submission to the end, less the run time, the shortest one if a job may run on several types.
Avoidable waiting is known for all jobs together only, and only from two sides: at least what the best schedule found
saves, at most what the bound allows. A group's part of the former is a fact about that schedule: another one as good
may give it to others, and some groups wait longer in it. A bound comes with completion times whose sum is at most that
of any schedule, but single jobs may end earlier in a schedule: a group's part of these is an indication, and bounds
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.rigid import RigidSchedule, RigidView, completions, first_starts, steps
from schedgap.instances.schema.columns import PARTITION, PlainJobs

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PARTS = ("night", "morning", "afternoon", "evening")
"""Parts of a day, six hours each."""

ROUNDED = 12
"""Decimals to which hours are rounded: finer than a tick of any log, coarser than floating-point errors of sums."""

CANDIDATES = 500
"""Number of decisions whose cost is computed: the starts of the jobs with the most GPU time."""


class StartDecision(NamedTuple):
    """A start of a job: the job's index, the time in ticks, and how many other jobs it delayed by how many hours."""

    job: int
    start: int
    others: int
    cost_h: float


@dataclass(frozen=True, eq=False)
class Why:
    """Waiting of the jobs in a schedule compared with the `best` one and the completion times ``(n,)`` of a bound."""

    view: RigidView
    schedule: RigidSchedule
    bound: Array
    best: RigidSchedule

    @cached_property
    def waited(self) -> Array:
        """``(n,)`` hours that each job waited."""
        return self._hours(completions(self.view, self.schedule))

    @cached_property
    def saved(self) -> Array:
        """``(n,)`` hours of waiting that the best schedule saves; negative for a job that waits longer in it."""
        return np.round(self.waited - self._hours(completions(self.view, self.best)), ROUNDED) + 0.0

    @cached_property
    def indicated(self) -> Array:
        """``(n,)`` hours of waiting beyond those in the bound's completion times."""
        return np.round(self.waited - self._hours(self.bound), ROUNDED) + 0.0

    def _hours(self, ends: Array | Ints) -> Array:
        """Return the waits ``(n,)`` of jobs that end at `ends`."""
        return np.asarray((ends - self.view.release - self.view.relaxed.duration) / self.view.ticks_of_hour)

    @cached_property
    def hours(self) -> Ints | None:
        """``(n,)`` hour of the week (UTC) of each release, if the log has dates; 0 is Monday, 0:00."""
        began = self.view.instance.began_s
        if began is None:
            return None
        seconds = began + self.view.release * self.view.tick_s
        return np.asarray((seconds // 3600 + 3 * 24) % 168, np.int64)  # 1970 began on a Thursday

    def labels(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield each property by which jobs are grouped, and the group of each job."""
        jobs = PlainJobs.of(self.view.instance.plain["jobs"])
        for by, column in (("user", "tenant"), ("partition", PARTITION)):
            if any(names := jobs.texts(column)):
                yield by, [name or "unknown" for name in names]
        if len(self.view.pools) > 1:
            yield "pool", [self.view.pools[p] for p in self.view.pool.tolist()]
        powers = [1 << (gpus - 1).bit_length() for gpus in self.view.gpus.tolist()]  # 1, 2, 3–4, 5–8, …
        yield "size", [f"{most // 2 + 1}–{most}" if most > 2 else f"{most}" for most in powers]
        if self.hours is not None:
            yield "submitted", [f"{DAYS[hour // 24]} {PARTS[hour % 24 // 6]}" for hour in self.hours.tolist()]
            yield "hour", [f"{hour % 24}–{hour % 24 + 1} h" for hour in self.hours.tolist()]

    def groups(self, most: int = 5) -> list[Any]:
        """Return, for each property in :meth:`labels`, the groups of which the best schedule saves the most waiting."""
        import pandas as pd

        hours = {"waited_h": self.waited, "saved_h": self.saved, "indicated_h": self.indicated}
        jobs = pd.DataFrame({"jobs": 1, **hours})
        sums = {by: jobs.groupby(np.array(labels, str)).sum() for by, labels in self.labels()}
        worst = {by: groups.nlargest(most, "saved_h") for by, groups in sums.items()}
        table = pd.concat(worst, names=["by", "name"])
        table["share"] = table["saved_h"] / max(float(self.saved.sum()), 1e-12)
        return list(table.reset_index().itertuples(index=False, name="Group"))

    def fragmentation(self) -> float:
        """Return the GPU-hours that were free while a job waited that needed no more GPUs than were free."""
        view, total, starts = self.view, 0.0, first_starts(self.view, self.schedule)
        for pool in range(len(view.pools)):
            mine, members = view.pool[self.schedule.job] == pool, np.flatnonzero(view.pool == pool)
            job, start, end = self.schedule.job[mine], self.schedule.start[mine], self.schedule.end[mine]
            times = np.unique(np.concatenate([start, end, view.release[members]]))
            used = np.zeros(times.size, np.int64)
            np.add.at(used, np.searchsorted(times, start), view.gpus[job])
            np.add.at(used, np.searchsorted(times, end), -view.gpus[job])
            free, fits = view.capacity[pool] - np.cumsum(used), np.zeros(times.size, bool)
            for size in np.unique(view.gpus[members]):
                waiting = np.zeros(times.size, np.int64)
                these = members[view.gpus[members] == size]
                np.add.at(waiting, np.searchsorted(times, view.release[these]), 1)
                np.add.at(waiting, np.searchsorted(times, starts[these]), -1)
                fits |= (np.cumsum(waiting) > 0) & (free >= size)
            total += float((np.maximum(free, 0)[:-1] * fits[:-1] * np.diff(times).astype(float)).sum())
        return total / view.ticks_of_hour

    def decisions(self, most: int = 10) -> list[StartDecision]:
        """Return the starts with the highest cost: hours that shorter jobs with no more GPUs waited while the job ran.

        The cost counts jobs that waited in the same pool when the job started, each until its own start or the job's
        end, whichever is earlier.
        """
        view, starts = self.view, first_starts(self.view, self.schedule)
        ends, found = completions(view, self.schedule), []
        for j in np.argsort(-view.duration * view.gpus.astype(float), kind="stable")[:CANDIDATES].tolist():
            passed: Bools = (view.release <= starts[j]) & (starts > starts[j]) & (view.pool == view.pool[j])
            passed &= (view.duration < view.duration[j]) & (view.gpus <= view.gpus[j])
            waited = np.minimum(starts[passed], ends[j]) - starts[j]
            cost = float(waited.sum()) / view.ticks_of_hour
            if cost > 0:
                found.append(StartDecision(j, int(starts[j]), int(passed.sum()), cost))
        return sorted(found, key=lambda decision: -decision.cost_h)[:most]

    def week(self) -> Array | None:
        """Return ``(7, 24)`` hours that the best schedule saves, by hour of the week of submission.

        They are negative where jobs wait longer in it; there are none if the log has no dates.
        """
        if self.hours is None:
            return None
        return np.asarray(np.bincount(self.hours, self.saved, 168).reshape(7, 24), float)


def occupancy(view: RigidView, schedule: RigidSchedule, edges: Array) -> Array:
    """Return the mean share of all GPUs in use between consecutive `edges`, which are in ticks."""
    gpus = view.gpus[schedule.job]
    times, used = steps(np.concatenate([schedule.start, schedule.end]), np.concatenate([gpus, -gpus]))
    area = np.concatenate([[0.0], np.cumsum(used[:-1] * np.diff(times).astype(float))])
    return np.asarray(np.diff(np.interp(edges, times, area)) / np.diff(edges) / float(view.capacity.sum()))
