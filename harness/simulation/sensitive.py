"""What the rounds of a history with CPUs and memory are worth: progress beside LP1's, and CPUs that matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.harness.verify.rounds_bound import most_progress
from schedgap.harness.verify.sensitive import SLACK, Pooled, Speeds
from schedgap.heuristics.simulator import Trace
from schedgap.instances.schema import Instance

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rounds:
    """Records of the ``R`` rounds of a history.

    Attributes
    ----------
    progress
        ``(R,)`` progress of the running jobs, each in units of its fair progress on its best GPU type, as if all ran to
        the end of the round.
    most
        ``(R,)`` the most that LP1 allows for the jobs that the policy picked
        (:mod:`schedgap.harness.verify.rounds_bound`); NaN where it picked none.
    cpus_needed
        ``(R,)`` share of the CPU time that jobs need while they compute: each the fewest CPUs at which it is as fast.
    """

    progress: Array
    most: Array
    cpus_needed: Array

    @property
    def share(self) -> Array:
        """``(R,)`` progress divided by the most."""
        return np.asarray(self.progress / self.most)


def rounds(instance: Instance, trace: Trace) -> Rounds:
    """Return what the rounds of a history are worth."""
    work, cluster = trace.workload, trace.servers
    speeds = Speeds(instance, work, cluster)
    pooled = Pooled(speeds)
    row, job, _ = trace.progress.T
    gpu_type = _types(trace)
    rate = trace.speed * work.gpus[job] * work.rates[job, gpu_type]
    picked, who = trace.offered.T
    most = most_progress(speeds, pooled, picked, who, trace.rounds, pooled.weight) if trace.rounds else np.zeros(0)
    needed = _fewest_cpus(speeds, job, gpu_type, trace.held, rate)
    return Rounds(
        progress=np.bincount(row, pooled.weight[job] * rate, trace.rounds).astype(float),
        most=np.where(np.isin(np.arange(trace.rounds), picked), most, np.nan),
        cpus_needed=trace.used(needed, float(cluster.cpus.sum())),
    )


def _types(trace: Trace) -> Ints:
    """Return the GPU type of each row of `progress`; gangs keep to one."""
    found = np.zeros(len(trace.progress), np.int64)
    found[trace.entry_of] = trace.servers.gpu_type[trace.allocation[:, 2]]
    return found


def _fewest_cpus(speeds: Speeds, job: Ints, gpu_type: Ints, held: Array, rate: Array) -> Array:
    """Return ``(x,)`` the fewest CPUs at which gangs with this memory have these rates."""
    different, which = np.unique(
        np.column_stack((speeds.classes.of[job], gpu_type, held, rate)), axis=0, return_inverse=True
    )
    fewest = different[:, 2].copy()
    of = different[:, 0].astype(np.int64)
    for k in np.unique(of).tolist():
        here = np.flatnonzero(of == k)
        first = int(speeds.classes.first[k])
        levels = speeds.levels(first)[0]
        x = here.size * levels.size
        found = speeds.rate(
            np.full(x, first),
            np.repeat(different[here, 1].astype(np.int64), levels.size),
            np.tile(levels, here.size),
            np.repeat(different[here, 3], levels.size),
        ).reshape(here.size, -1)
        # Servers give CPUs in proportion to GPUs; what rounding takes from a level is no slower job.
        enough = found >= different[here, 4][:, None] * (1 - SLACK)
        fewest[here] = np.where(enough.any(axis=1), levels[enough.argmax(axis=1)], fewest[here])
    return np.asarray(np.minimum(fewest, different[:, 2])[which.ravel()])
