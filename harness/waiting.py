"""Why jobs waited: what no schedule could have spared them, who and when it hit, and which decisions cost most.

A bound counts with completions that add up to less than those of any schedule. What it lets a job wait is the job's
*unavoidable* part; the rest of its waiting is *avoidable*. Single jobs may have waited less than in the bound's
schedule: parts then are negative, and only their sum means that so much could have been spared at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.rigid import Schedule, View, completions, first_starts, steps

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PARTS = ("night", "morning", "afternoon", "evening")
"""Parts of a day, six hours each."""

CANDIDATES = 500
"""Decisions that are priced: the starts of the jobs that held their GPUs longest."""


class Decision(NamedTuple):
    """A start: which job, when (ticks), and how many jobs it made wait for how many hours in sum."""

    job: int
    start: int
    others: int
    cost_h: float


@dataclass(frozen=True, eq=False)
class Why:
    """Waiting of a schedule beside the completions ``(n,)`` that a bound counts with."""

    view: View
    schedule: Schedule
    bound: Array

    @cached_property
    def waited(self) -> Array:
        """``(n,)`` hours that each job waited."""
        ends = completions(self.view, self.schedule)
        return np.asarray((ends - self.view.release - self.view.duration) / self.view.ticks_of_hour)

    @cached_property
    def avoidable(self) -> Array:
        """``(n,)`` hours of waiting that the bound does not ask for: those beyond the waiting in its schedule."""
        return self.waited - (self.bound - self.view.release - self.view.duration) / self.view.ticks_of_hour

    @cached_property
    def hours(self) -> Ints | None:
        """``(n,)`` hour of the week of each release by the clock on the wall, if that is known; 0 is Monday, 0:00."""
        began = self.view.instance.began_s
        if began is None:
            return None
        seconds = began + self.view.release * self.view.tick_s
        return np.asarray((seconds // 3600 + 3 * 24) % 168, np.int64)  # 1970 began on a Thursday

    def labels(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield what jobs are grouped by, and the group of each job."""
        jobs = self.view.instance.jobs
        if any(job.tenant for job in jobs):
            yield "user", [job.tenant or "unknown" for job in jobs]
        if any(job.history and job.history.partition for job in jobs):
            yield "partition", [(job.history and job.history.partition) or "unknown" for job in jobs]
        if len(self.view.pools) > 1:
            yield "pool", [self.view.pools[p] for p in self.view.pool.tolist()]
        powers = [1 << (gpus - 1).bit_length() for gpus in self.view.gpus.tolist()]  # 1, 2, 3–4, 5–8, …
        yield "size", [f"{most // 2 + 1}–{most}" if most > 2 else f"{most}" for most in powers]
        if self.hours is not None:
            yield "submitted", [f"{DAYS[hour // 24]} {PARTS[hour % 24 // 6]}" for hour in self.hours.tolist()]

    def groups(self, most: int = 5) -> list[Any]:
        """Return, for each way to group jobs, those of most avoidable waiting, with their hours."""
        import pandas as pd

        each = pd.DataFrame({"jobs": 1, "waited_h": self.waited, "avoidable_h": self.avoidable})
        sums = {by: each.groupby(np.array(labels, str)).sum() for by, labels in self.labels()}
        found = pd.concat(
            {by: groups.nlargest(most, "avoidable_h") for by, groups in sums.items()}, names=["by", "name"]
        )
        found["share"] = found["avoidable_h"] / max(float(self.avoidable.sum()), 1e-12)
        return list(found.reset_index().itertuples(index=False, name="Group"))

    def fragmentation(self) -> float:
        """Return GPU-hours that were free while a job waited whose gang would have fitted into them."""
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

    def decisions(self, most: int = 10) -> list[Decision]:
        """Return the starts that cost most: hours that shorter jobs of no more GPUs waited while the job ran.

        Jobs count that were there when it started; each waits until it starts itself, or the other one ends.
        """
        view, starts = self.view, first_starts(self.view, self.schedule)
        ends, found = completions(view, self.schedule), []
        for j in np.argsort(-view.duration * view.gpus.astype(float), kind="stable")[:CANDIDATES].tolist():
            there: Bools = (view.release <= starts[j]) & (starts > starts[j]) & (view.pool == view.pool[j])
            there &= (view.duration < view.duration[j]) & (view.gpus <= view.gpus[j])
            waited = np.minimum(starts[there], ends[j]) - starts[j]
            cost = float(waited.sum()) / view.ticks_of_hour
            if cost > 0:
                found.append(Decision(j, int(starts[j]), int(there.sum()), cost))
        return sorted(found, key=lambda decision: -decision.cost_h)[:most]

    def week(self) -> Array | None:
        """Return ``(7, 24)`` avoidable hours of the jobs submitted in each hour of the week, if that is known."""
        if self.hours is None:
            return None
        return np.asarray(np.bincount(self.hours, np.maximum(self.avoidable, 0.0), 168).reshape(7, 24), float)


def occupancy(view: View, schedule: Schedule, edges: Array) -> Array:
    """Return the share of all GPUs that is in use on average between `edges` in ticks."""
    gpus = view.gpus[schedule.job]
    times, used = steps(np.concatenate([schedule.start, schedule.end]), np.concatenate([gpus, -gpus]))
    area = np.concatenate([[0.0], np.cumsum(used[:-1] * np.diff(times).astype(float))])
    return np.asarray(np.diff(np.interp(edges, times, area)) / np.diff(edges) / float(view.capacity.sum()))
