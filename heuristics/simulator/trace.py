"""The rules of a simulation, and its history."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.heuristics.simulator.state import Assignment
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import UsageError
from schedgap.instances.workload import Servers, Workload

LEAST_ROUND_S, MOST_ROUND_S = 1e-3, 1e9
"""Shortest and longest round, in seconds."""


@dataclass(frozen=True)
class Rules:
    """Assumptions of a simulation.

    Parameters
    ----------
    round_s
        Length of a round in seconds.
    restart_s
        Seconds a job loses in a round in which its GPUs changed.
    spread_factor
        Factor in (0, 1] on the rate of gangs that span servers.
    until_s
        No round starts at or after this time.
    forks
        Whether each entry of an assignment is a copy of the job that advances on its own.
    stall_rounds
        Give up after so many rounds in a row in which nothing ran.
    sensitive
        Whether rates depend on CPUs and memory, which policies then give out
        (:class:`~schedgap.heuristics.simulator.Shares`).
    profiling_s
        Seconds after its arrival in which a job is profiled and cannot be scheduled.

    Raises
    ------
    UsageError
        If an option is out of range: rounds take from :data:`LEAST_ROUND_S` to :data:`MOST_ROUND_S`, so that times keep
        their digits.
    """

    round_s: float = 300.0
    restart_s: float = 0.0
    spread_factor: float = 1.0
    until_s: float = math.inf
    forks: bool = False
    stall_rounds: int = 10_000
    sensitive: bool = False
    profiling_s: float = 0.0

    def __post_init__(self) -> None:
        lengths = LEAST_ROUND_S <= self.round_s <= MOST_ROUND_S and 0 <= self.restart_s <= MOST_ROUND_S
        if not (lengths and 0 < self.spread_factor <= 1):
            given = f"round_s = {self.round_s:g}, restart_s = {self.restart_s:g}"
            wanted = f"rounds are {LEAST_ROUND_S:g} to {MOST_ROUND_S:g} s, restarts 0 to {MOST_ROUND_S:g} s, the factor"
            raise UsageError(f"{given}, spread_factor = {self.spread_factor:g}: {wanted} within (0, 1]")
        if not self.until_s > 0:
            raise UsageError(f"until_s = {self.until_s:g}: a simulation ends after it begins")
        if not 0 <= self.profiling_s <= MOST_ROUND_S:
            raise UsageError(f"profiling_s = {self.profiling_s:g}: profiling takes 0 to {MOST_ROUND_S:g} s")


@dataclass(frozen=True, eq=False)
class Trace:
    """Records of ``R`` simulated rounds (rounds without any job are left out).

    Attributes
    ----------
    rules
        Round length and overheads.
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
        ``(entries, 3)``: round, job, GPUs; with `iterations` done and `busy_s`, the seconds it computed. Rows of a
        round follow one another by job, as do those of `allocation` by job and server.
    speed
        ``(progress entries,)`` factor on the rate: what the policy declared (:attr:`Assignment.speed`), or what its
        CPUs and memory make of it where the rules are sensitive.
    cpus, memory_gb
        ``(entries,)`` what the job of each row of `allocation` holds there beside its GPUs; empty where the rules are
        not sensitive.
    offered
        ``(offers, 2)``: round and job, whom the policy had picked (:attr:`Shares.offered`).
    unfinished
        ``(n,)`` why each job did not complete, ``None`` for those that did: :data:`IMPOSSIBLE`, :data:`LEFT`,
        :data:`HORIZON` or :data:`STALLED`.
    """

    workload: Workload
    servers: Servers
    rules: Rules
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
    speed: Array
    cpus: Array
    memory_gb: Array
    offered: Ints
    unfinished: tuple[str | None, ...]

    @property
    def round_s(self) -> float:
        """Length of a round in seconds."""
        return self.rules.round_s

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

    @property
    def straggler_share(self) -> float:
        """Part of all workers, over all rounds, that ran in gangs over several types."""
        return float(self.stragglers.sum() / max(self.allocation[:, 3].sum(), 1))

    @cached_property
    def utilisation(self) -> Array:
        """``(R,)`` GRU over time: share of the GPU time of each round in which GPUs computed."""
        return self.used(self.progress[:, 2].astype(float), float(self.servers.gpus.sum()))

    @cached_property
    def node_utilisation(self) -> Array:
        """``(R,)`` CRU over time: share of the servers' time of each round in which they computed.

        A server computes as long as any of its GPUs does, here the longest time that a job on it computed.
        """
        row, _, server, _ = self.allocation.T
        if not row.size:
            return np.zeros(self.rounds)
        cell = row * self.servers.machines + self.servers.machine[server]
        order = np.argsort(cell, kind="stable")
        first = np.flatnonzero(np.diff(cell[order], prepend=-1))
        longest = np.maximum.reduceat(self.busy_s[self.entry_of[order]], first)
        busy_s = np.bincount(row[order[first]], longest, self.rounds)
        return np.asarray(busy_s / (self.servers.machines * self.round_s))

    @property
    def idle_gpus(self) -> Ints:
        """``(R,)`` GPUs that no job holds."""
        held = np.bincount(self.allocation[:, 0], self.allocation[:, 3], self.rounds)
        return np.asarray(self.servers.gpus.sum() - held.astype(np.int64))

    @cached_property
    def entry_of(self) -> Ints:
        """``(entries,)`` row of `progress` of each row of `allocation`."""
        jobs = self.workload.size
        row, job, _, _ = self.allocation.T
        return np.asarray(np.searchsorted(self.progress[:, 0] * jobs + self.progress[:, 1], row * jobs + job))

    @cached_property
    def held(self) -> Array:
        """``(progress entries, 2)`` CPUs and gigabytes in total of each job in each round; none without sensitivity."""
        sums = np.zeros((len(self.progress), 2))
        if self.rules.sensitive:
            np.add.at(sums, self.entry_of, np.column_stack((self.cpus, self.memory_gb)))
        return sums

    def used(self, amount: Array, capacity: float) -> Array:
        """Return ``(R,)`` shares of a resource's time in each round that jobs have while they compute.

        Each has an `amount` ``(progress entries,)`` of the cluster's `capacity`.
        """
        total = np.bincount(self.progress[:, 0], amount * self.busy_s, self.rounds)
        return np.asarray(total / (capacity * self.round_s))

    @cached_property
    def cpu_utilisation(self) -> Array:
        """``(R,)`` share of the CPU time of each round that is given to jobs while they compute."""
        return self.used(self.held[:, 0], float(self.servers.cpus.sum()))

    def throughput(self, scale: Array | None = None) -> Array:
        """Return ``(R, tenants)`` iterations per second of every tenant, each job's multiplied by `scale` ``(n,)``.

        With ``1/rate`` on a type it counts in GPUs of that type.
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


IMPOSSIBLE = "impossible: its gang advances on no GPUs that it fits on"
LEFT = "its tenant left"
HORIZON = "horizon: the simulation ended before"
STALLED = "stalled: the policy let nothing run for too many rounds in a row"
