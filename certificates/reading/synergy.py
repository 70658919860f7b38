"""Reads Synergy's rounds: their length, the jobs of a single round, and the rounds in which jobs arrive.

An instance without horizon has rounds of the first of :data:`LENGTHS_S` with which its run takes at most
:data:`ROUNDS` rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..basics import Array, Data
from .jobs import Jobs, first_slots
from .sensitive import Sensitive, sensitive_of

LENGTHS_S = (300.0, 900.0, 1800.0, 3600.0, 4 * 3600.0, 24 * 3600.0)

ROUNDS = 5000


@dataclass(frozen=True, eq=False)
class RawRounds:
    """Jobs, servers and rounds of `slot_s` seconds.

    Attributes
    ----------
    arrival
        ``(n,)`` first round in which each job may run.
    queue
        Jobs that can ever run, in the order of arrival.
    runnable
        Jobs that run in a single round, in the order in which they are picked.
    """

    read: Sensitive
    slot_s: float
    arrival: Array
    queue: Array
    runnable: Array

    @property
    def jobs(self) -> Jobs:
        """The jobs."""
        return self.read.jobs


def rounds_of(data: Data) -> RawRounds:
    """Return the rounds of an instance."""
    read = sensitive_of(data)
    slot_s = data["horizon"]["slot_s"] if "horizon" in data else _length_s(read)
    order = np.argsort(read.jobs.arrival_s, kind="stable")
    queue = order[np.isin(order, np.flatnonzero(read.pooled.able.any(axis=1)))]
    return RawRounds(read, slot_s, first_slots(read.jobs.arrival_s, slot_s), queue, picked(read, queue.tolist()))


def picked(read: Sensitive, queue: Sequence[int]) -> Array:
    """Return the jobs that run if they get GPUs in the order of the queue until all GPUs are taken.

    Among the GPU types with enough free GPUs, a job takes the one on which it is fastest with its share; it is skipped
    if there is none.
    """
    free, order = read.pooled.gpus.tolist(), np.argsort(-read.pooled.fair, axis=1, kind="stable").tolist()
    able, gangs = read.pooled.able.tolist(), read.jobs.gpus.tolist()
    jobs: list[int] = []
    for j in queue:
        if not any(free):
            break
        where = next((i for i in order[j] if able[j][i] and free[i] >= gangs[j]), None)
        if where is not None:
            free[where] -= gangs[j]
            jobs.append(j)
    return np.array(jobs, np.int64)


def _length_s(read: Sensitive) -> float:
    """Return the length of a round, from an estimate of how long the run takes.

    The estimate is the time for which all GPUs are busy with jobs at their fair rates, or until the last job would end
    if it ran alone, whichever is longer.
    """
    jobs, fair = read.jobs, read.pooled.fair.max(axis=1)
    able = fair > 0
    alone_s, arrival_s = jobs.work[able] / fair[able], jobs.arrival_s[able]
    last_s = float((arrival_s + alone_s).max() - arrival_s.min())
    used_s = float((alone_s * jobs.gpus[able]).sum()) / read.pooled.gpus.sum()
    run_s = min(max(used_s, last_s), float(alone_s.sum()))
    return next((length for length in LENGTHS_S if run_s <= ROUNDS * length), LENGTHS_S[-1])
