"""Metrics of a simulated history: completion times, utilisation, restarts (Hadar, sections IV, VI; Synergy, 5)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from schedgap.heuristics.simulator.trace import Trace
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import UsageError

LONG_S = 4 * 3600.0
"""Jobs that take at least this many seconds from arrival to completion count as long (Synergy, section 5.3)."""


@dataclass(frozen=True)
class Window:
    """The jobs whose completion times count: `count` jobs in order of arrival, after the `first` ones.

    Synergy measures 1000 jobs in steady state, after those that fill the cluster. A `count` of 0 means all later jobs.
    """

    first: int = 0
    count: int = 0

    @staticmethod
    def parse(text: str) -> Window:
        """Return the window written as ``FIRST:COUNT``; raise `UsageError` for any other text."""
        match = re.fullmatch(r"([0-9]{1,9}):([1-9][0-9]{0,8})", text)
        if not match:
            raise UsageError(f"window = {text!r}: write FIRST:COUNT, as 500:1000 for 1000 jobs after the first 500")
        return Window(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.first}:{self.count or ''}"

    @property
    def told(self) -> str | None:
        """The window as tables print it; ``None`` if it contains all jobs."""
        return None if self == ALL else str(self)

    def jobs(self, arrival_s: Array) -> Ints:
        """Return the jobs of the window in order of arrival."""
        order = np.argsort(arrival_s, kind="stable")
        return order[self.first : self.first + self.count if self.count else None]


ALL = Window()
"""The window of all jobs."""


@dataclass(frozen=True)
class Metrics:
    """Metrics of one simulation; NaN if there is nothing to measure. Times in seconds.

    Attributes
    ----------
    jobs, finished
        Number of jobs, and of those that completed.
    ttd_s
        Total time duration (makespan): from the first arrival to the last completion; NaN if a job did not complete.
    jct_mean_s, jct_median_s, jct_p99_s, jct_min_s, jct_max_s
        Job completion times, from arrival to completion, over the jobs of the window that completed; the percentile is
        interpolated linearly.
    jct_short_s, jct_long_s
        Means over the jobs with a completion time below :data:`LONG_S`, and over the others.
    jct_short_p99_s, jct_long_p95_s, jct_long_p99_s
        Percentiles over the same two groups.
    window_jobs
        Jobs of the window that completed.
    gru
        GPU resource utilisation: seconds in which GPUs computed, summed over all GPUs, divided by GPUs times the
        seconds from the start of the first round to the last completion (to the end of the last round if jobs are
        left). Waiting for a restart is not computing.
    cru
        Cluster resource utilisation, "the total busy times of all cluster nodes over the allocated time slots of all
        nodes": seconds in which servers computed divided by servers times the full length of rounds with a job. A
        server computes while any of its GPUs does, and idle servers count in the denominator, as in the paper's
        example of one job left on five nodes.
    cpu_given
        Fraction of CPU time that computing jobs held, over the same span as `gru`; NaN if rates do not depend on CPUs.
    utility
        ΣU: utilities of the completed jobs at their completion times.
    decision_mean_s, decision_max_s
        Wall-clock seconds that the policy took per round.
    idle_gpus
        Mean number of unallocated GPUs over the rounds in which a job waits; NaN if no job ever waits.
    restarts, rounds
        Number of changed allocations that cost a restart, and number of rounds with a job.
    stragglers, straggler_share, straggler_events
        Number of GPUs in gangs that span several GPU types, summed over all rounds, their fraction of all GPUs in use,
        and the number of such placements.
    changing
        Fraction of rounds in which at least one job that has run before gets other GPUs than in the previous round
        ("30% of scheduling rounds require changes to job resource allocations", Hadar, section IV).
    """

    jobs: int
    finished: int
    ttd_s: float
    jct_mean_s: float
    jct_median_s: float
    jct_p99_s: float
    jct_min_s: float
    jct_max_s: float
    jct_short_s: float
    jct_long_s: float
    jct_short_p99_s: float
    jct_long_p95_s: float
    jct_long_p99_s: float
    window_jobs: int
    gru: float
    cru: float
    cpu_given: float
    utility: float
    decision_mean_s: float
    decision_max_s: float
    idle_gpus: float
    restarts: int
    rounds: int
    stragglers: int
    straggler_share: float
    straggler_events: int
    changing: float


def measure(trace: Trace, window: Window = ALL) -> Metrics:
    """Measure a history; completion times count only the jobs in `window`."""
    jct_s = trace.jct_s
    done = np.flatnonzero(np.isfinite(jct_s))
    counted_s = jct_s[window.jobs(trace.workload.arrival_s)]
    counted_s = counted_s[np.isfinite(counted_s)]
    short_s, long_s = counted_s[counted_s < LONG_S], counted_s[counted_s >= LONG_S]
    return Metrics(
        jobs=jct_s.size,
        finished=done.size,
        ttd_s=trace.makespan_s,
        jct_mean_s=_mean(counted_s),
        jct_median_s=float(np.median(counted_s)) if counted_s.size else math.nan,
        jct_p99_s=_percentile(counted_s, 99),
        jct_min_s=_percentile(counted_s, 0),
        jct_max_s=_percentile(counted_s, 100),
        jct_short_s=_mean(short_s),
        jct_long_s=_mean(long_s),
        jct_short_p99_s=_percentile(short_s, 99),
        jct_long_p95_s=_percentile(long_s, 95),
        jct_long_p99_s=_percentile(long_s, 99),
        window_jobs=counted_s.size,
        gru=part_used(trace, trace.utilisation),
        cru=_mean(trace.node_utilisation),
        cpu_given=part_used(trace, trace.cpu_utilisation) if trace.rules.sensitive else math.nan,
        utility=float(trace.workload.utilities.value(done, jct_s[done]).sum()),
        decision_mean_s=_mean(trace.decision_s),
        decision_max_s=float(trace.decision_s.max(initial=0.0)) if trace.rounds else math.nan,
        idle_gpus=_mean(trace.idle_gpus[trace.waiting > 0].astype(float)),
        restarts=int(trace.restarts.sum()),
        rounds=trace.rounds,
        stragglers=int(trace.stragglers.sum()),
        straggler_share=trace.straggler_share,
        straggler_events=trace.straggler_events,
        changing=_mean((trace.restarts > 0).astype(float)),
    )


def part_used(trace: Trace, shares: Array) -> float:
    """Return the fraction of a resource that is in use from the first round to the last completion.

    `shares` ``(R,)`` are the used fractions of each round. If jobs are left, the time ends with the last round.
    """
    if not trace.rounds:
        return math.nan
    end_s = trace.start_s[-1] + trace.round_s if any(trace.unfinished) else trace.completion_s.max()
    span_s = float(end_s - trace.start_s[0])
    return float(shares.sum()) * trace.round_s / span_s if span_s > 0 else math.nan


def _percentile(values: Array, percent: float) -> float:
    return float(np.percentile(values, percent)) if values.size else math.nan


def _mean(values: Array) -> float:
    return float(values.mean()) if values.size else math.nan
