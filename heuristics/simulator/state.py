"""The state that a policy sees and the assignment that it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.workload import Servers, Workload


class InvalidAssignmentError(ValueError):
    """Raised when a policy breaks a rule: it exceeds capacity, splits a gang, names an inactive job, or the like."""


@dataclass(frozen=True, eq=False)
class Shares:
    """The CPUs and memory that jobs get, ``(entries,)`` each, and the jobs that the policy picked for the round.

    The gangs of the `offered` jobs fit the cluster together, whether the jobs then run or not; the throughput of the
    round is compared with a bound for these jobs.
    """

    cpus: Array
    memory_gb: Array
    offered: Ints


@dataclass(frozen=True, eq=False)
class Assignment:
    """A policy's decision for one round: which job gets how many GPUs on which server.

    Attributes
    ----------
    job, server, gpus
        Three arrays of equal length: index of the job in the workload, index of the server, GPUs (at least 1). Each
        pair of job and server occurs at most once, in any order; pairs that are not listed have no GPUs.
    speed
        Factor on the rate of every running job, by ascending job index; ``None`` for 1. The checker of histories
        refuses factors above 1.
    shares
        The CPUs and memory of the jobs, if rates depend on them (:attr:`Rules.sensitive`).
    """

    job: Ints
    server: Ints
    gpus: Ints
    speed: Array | None = None
    shares: Shares | None = None

    @staticmethod
    def of(triples: ArrayLike, speed: Array | None = None) -> Assignment:
        """Return the assignment given by a sequence of ``(job, server, gpus)`` triples."""
        table = np.asarray(triples, np.int64).reshape(-1, 3)
        return Assignment(table[:, 0], table[:, 1], table[:, 2], speed)


NOTHING = Assignment.of(())
"""The assignment in which nothing runs."""


@dataclass(frozen=True, eq=False)
class State:
    """What a policy sees at the start of a round; ``a`` jobs have arrived and are unfinished.

    Attributes
    ----------
    round, time_s, round_s
        Number of the round, and its start and length in seconds.
    workload, servers
        All jobs, including future ones (an online policy must look only at `jobs`), and all servers.
    jobs
        ``(a,)`` indices into the workload, ascending.
    remaining
        ``(a,)`` iterations left.
    starved
        ``(a,)`` rounds since the job last ran, or since it arrived.
    attained_s
        ``(a,)`` GPU-seconds received so far.
    previous
        Assignment of the previous round; it may name jobs that have completed or left.
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
        """``(a,)`` gang sizes in GPUs."""
        return self.workload.gpus[self.jobs]

    @property
    def rates(self) -> Array:
        """``(a, k)`` iterations per second of one GPU of each type."""
        return self.workload.rates[self.jobs]

    @property
    def arrival_s(self) -> Array:
        """``(a,)`` arrival times in seconds."""
        return self.workload.arrival_s[self.jobs]


Policy = Callable[[State], Assignment]
