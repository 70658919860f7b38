"""The state that a policy sees, and the assignment that it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.workload import Servers, Workload


class InvalidAssignmentError(ValueError):
    """A policy broke a rule: over capacity, half a gang, a job that is not there. The message says which."""


@dataclass(frozen=True, eq=False)
class Shares:
    """CPUs and memory ``(entries,)`` beside the GPUs of an assignment, and the jobs that the policy had picked.

    The GPU demands of the jobs `offered` fit together, whether they run or not: the round's throughput is measured
    against them.
    """

    cpus: Array
    memory_gb: Array
    offered: Ints


@dataclass(frozen=True, eq=False)
class Assignment:
    """GPUs by (job, server), as three arrays of equal length; what is not listed is 0.

    Attributes
    ----------
    job, server, gpus
        Index of the job in the workload, index of the server, GPUs (at least 1). Each pair at most once, in
        any order.
    speed
        Factor on the rate of every running job, by ascending job index; ``None`` for 1. The checker of histories
        refuses factors above 1.
    shares
        CPUs and memory, where the rules let rates depend on them (:attr:`Rules.sensitive`).
    """

    job: Ints
    server: Ints
    gpus: Ints
    speed: Array | None = None
    shares: Shares | None = None

    @staticmethod
    def of(triples: ArrayLike, speed: Array | None = None) -> Assignment:
        """Return the assignment of a sequence of ``(job, server, gpus)``."""
        table = np.asarray(triples, np.int64).reshape(-1, 3)
        return Assignment(table[:, 0], table[:, 1], table[:, 2], speed)


NOTHING = Assignment.of(())
"""The assignment in which nothing runs."""


@dataclass(frozen=True, eq=False)
class State:
    """State at the start of a round, as a policy sees it; ``a`` jobs have arrived and are unfinished.

    Attributes
    ----------
    round, time_s, round_s
        Number of the round, its start and its length in seconds.
    workload, servers
        Everything about jobs (also future ones: an online policy looks only at `jobs`) and servers.
    jobs
        ``(a,)`` indices into the workload, ascending.
    remaining
        ``(a,)`` iterations left.
    starved
        ``(a,)`` rounds since the job last ran, or since it arrived.
    attained_s
        ``(a,)`` GPU-seconds received so far.
    previous
        Assignment of the previous round; it may name jobs that are done or gone.
    """

    round: int
    time_s: float
    round_s: float
    workload: Workload
    servers: Servers
    jobs: Ints
    remaining: Array
    starved: Ints
    attained_s: Array
    previous: Assignment

    @property
    def gpus(self) -> Ints:
        """``(a,)`` GPUs of the gangs."""
        return self.workload.gpus[self.jobs]

    @property
    def rates(self) -> Array:
        """``(a, k)`` iterations per second of one GPU of each type."""
        return self.workload.rates[self.jobs]

    @property
    def arrival_s(self) -> Array:
        """``(a,)`` arrivals in seconds."""
        return self.workload.arrival_s[self.jobs]


Policy = Callable[[State], Assignment]
