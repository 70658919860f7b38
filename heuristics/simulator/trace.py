"""What happened in a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from heuristics.simulator.state import Assignment
from instances.workload import Array, Ints, Servers, Workload


@dataclass(frozen=True, eq=False)
class Trace:
    """Records of ``R`` simulated rounds (rounds without any job are left out).

    Attributes
    ----------
    round_s
        Length of a round in seconds.
    start_s, decision_s
        ``(R,)`` start of each round, and wall-clock seconds the policy took.
    stragglers
        ``(R,)`` GPUs of gangs that ran on several types.
    restarts
        ``(R,)`` jobs that paid for a changed allocation.
    waiting
        ``(R,)`` jobs that were there and did not run.
    completion_s, first_start_s
        ``(n,)`` seconds; NaN for jobs that never finished or started.
    allocation
        ``(entries, 4)``: round (row of `start_s`), job, server, GPUs.
    progress
        ``(entries, 3)``: round, job, GPUs; with `iterations` done and `busy_s`, the seconds it computed.
    """

    workload: Workload
    servers: Servers
    round_s: float
    start_s: Array
    decision_s: Array
    stragglers: Ints
    restarts: Ints
    waiting: Ints
    completion_s: Array
    first_start_s: Array
    allocation: Ints
    progress: Ints
    iterations: Array
    busy_s: Array

    @property
    def rounds(self) -> int:
        """Number of simulated rounds."""
        return self.start_s.size

    @property
    def jct_s(self) -> Array:
        """``(n,)`` seconds from arrival to completion; NaN for unfinished jobs."""
        return self.completion_s - self.workload.arrival_s

    @property
    def makespan_s(self) -> float:
        """Seconds from the first arrival to the last completion; NaN if a job never finished."""
        return float(self.completion_s.max() - self.workload.arrival_s.min())

    @cached_property
    def utilisation(self) -> Array:
        """``(R,)`` share of the GPU time of each round in which GPUs computed."""
        seconds = self.busy_s * self.progress[:, 2]
        used = np.bincount(self.progress[:, 0], seconds, self.rounds)
        return np.asarray(used / (self.servers.gpus.sum() * self.round_s))

    def throughput(self, scale: Array | None = None) -> Array:
        """Return ``(R, tenants)`` iterations per second of every tenant.

        Parameters
        ----------
        scale
            ``(n,)`` factor on each job's iterations (``1/rate`` on a type counts in GPUs of that type).
        """
        tenants = len(self.workload.tenants)
        job = self.progress[:, 1]
        made = self.iterations if scale is None else self.iterations * scale[job]
        cell = self.progress[:, 0] * tenants + self.workload.tenant[job]
        total = np.bincount(cell, made, self.rounds * tenants)
        return np.asarray(total.reshape(-1, tenants) / self.round_s)

    def assignment(self, row: int) -> Assignment:
        """Return what ran in the round of that row."""
        return Assignment.of(self.allocation[self.allocation[:, 0] == row][:, 1:])


@dataclass
class Log:
    """Records while they are made: a list, with an item per round, for each attribute of :class:`Trace`."""

    start_s: list[float] = field(default_factory=list)
    decision_s: list[float] = field(default_factory=list)
    stragglers: list[int] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    allocation: list[Ints] = field(default_factory=list)
    progress: list[Ints] = field(default_factory=list)
    iterations: list[Array] = field(default_factory=list)
    busy_s: list[Array] = field(default_factory=list)
