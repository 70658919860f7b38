"""What a simulated history is judged by (Hadar, sections IV and VI)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from heuristics.simulator.trace import Trace
from instances.workload import Array


@dataclass(frozen=True)
class Metrics:
    """Numbers of one simulation; NaN where there is nothing to measure. Times in seconds.

    Attributes
    ----------
    jobs, finished
        Jobs in all, and those that completed.
    ttd_s
        Total time duration (makespan): from the first arrival to the last completion; NaN if a job did not complete.
    jct_mean_s, jct_median_s, jct_p99_s
        Job completion times, from arrival to completion, over the jobs that completed; the percentile is interpolated
        linearly.
    gru
        GPU resource utilisation: seconds in which GPUs computed, over all GPUs, divided by GPUs times the seconds
        from the start of the first round to the last completion (to the end of the last round if jobs are left).
        Waiting for a restart is not computing.
    cru
        Cluster resource utilisation, "the total busy times of all cluster nodes over the allocated time slots of all
        nodes": seconds in which servers computed (as long as any job on one does) divided by servers times the full
        rounds in which there was a job. A server counts as a whole even if one of its GPUs computes, and idle servers
        count in the denominator, as in the paper's example of one job left on five nodes.
    utility
        ΣU: utilities of the completed jobs at their completion times.
    decision_mean_s, decision_max_s
        Wall-clock seconds that the policy took per round.
    restarts, rounds
        Changed allocations that cost a restart, and rounds with a job.
    """

    jobs: int
    finished: int
    ttd_s: float
    jct_mean_s: float
    jct_median_s: float
    jct_p99_s: float
    gru: float
    cru: float
    utility: float
    decision_mean_s: float
    decision_max_s: float
    restarts: int
    rounds: int


def measure(trace: Trace) -> Metrics:
    """Return the metrics of a history."""
    jct_s = trace.jct_s
    done = np.flatnonzero(np.isfinite(jct_s))
    busy_s = float((trace.busy_s * trace.progress[:, 2]).sum())
    lasts_s = _lasts_s(trace)
    return Metrics(
        jobs=jct_s.size,
        finished=done.size,
        ttd_s=trace.makespan_s,
        jct_mean_s=float(jct_s[done].mean()) if done.size else math.nan,
        jct_median_s=float(np.median(jct_s[done])) if done.size else math.nan,
        jct_p99_s=float(np.percentile(jct_s[done], 99)) if done.size else math.nan,
        gru=busy_s / (float(trace.servers.gpus.sum()) * lasts_s) if lasts_s > 0 else math.nan,
        cru=_mean(trace.node_utilisation),
        utility=float(trace.workload.utilities.value(done, jct_s[done]).sum()),
        decision_mean_s=_mean(trace.decision_s),
        decision_max_s=float(trace.decision_s.max(initial=0.0)) if trace.rounds else math.nan,
        restarts=int(trace.restarts.sum()),
        rounds=trace.rounds,
    )


def _mean(values: Array) -> float:
    return float(values.mean()) if values.size else math.nan


def _lasts_s(trace: Trace) -> float:
    """Return the seconds from the start of the first round to the last completion, or to the end of the last round."""
    if not trace.rounds:
        return 0.0
    left = any(trace.unfinished)
    end_s = trace.start_s[-1] + trace.round_s if left else trace.completion_s.max()
    return float(end_s - trace.start_s[0])
