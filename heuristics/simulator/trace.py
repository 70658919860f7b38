"""The rules of a simulation (round length, overheads), and its history round by round."""

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
    """The rules of a simulation: round length, overheads and what rates depend on.

    Parameters
    ----------
    round_s
        Length of a round in seconds.
    restart_s
        Seconds that a job loses in a round in which its GPUs changed.
    spread_factor
        Factor in (0, 1] on the rate of gangs that span servers.
    network
        Whether such a gang exchanges its gradients after computing each iteration: one of an iteration per 1/r seconds
        and GPU has the factor 1 / (1 + r · :attr:`Workload.exchange_s`).
    until_s
        The simulation ends here: no round starts at or after this time.
    forks
        Whether each entry of an assignment is a copy of the job that advances on its own.
    stall_rounds
        Number of consecutive rounds without a running job after which the simulation is abandoned.
    sensitive
        Whether rates depend on CPUs and memory, which policies then give out
        (:class:`~schedgap.heuristics.simulator.Shares`).
    profiling_s
        Seconds after its arrival during which a job is profiled and cannot be scheduled.

    Raises
    ------
    UsageError
        If an option is out of range. Rounds take from :data:`LEAST_ROUND_S` to :data:`MOST_ROUND_S`; otherwise times
        would lose precision.
    """

    round_s: float = 300.0
    restart_s: float = 0.0
    spread_factor: float = 1.0
    until_s: float = math.inf
    forks: bool = False
    stall_rounds: int = 10_000
    sensitive: bool = False
    profiling_s: float = 0.0
    network: bool = False

    def __post_init__(self) -> None:
        lengths = LEAST_ROUND_S <= self.round_s <= MOST_ROUND_S and 0 <= self.restart_s <= MOST_ROUND_S
        if not (lengths and 0 < self.spread_factor <= 1):
            values = f"round_s = {self.round_s:g}, restart_s = {self.restart_s:g}"
            limits = f"rounds are {LEAST_ROUND_S:g} to {MOST_ROUND_S:g} s, restarts 0 to {MOST_ROUND_S:g} s, the factor"
            raise UsageError(f"{values}, spread_factor = {self.spread_factor:g}: {limits} within (0, 1]")
        if not self.until_s > 0:
            raise UsageError(f"until_s = {self.until_s:g}: it must be positive")
        if not 0 <= self.profiling_s <= MOST_ROUND_S:
            raise UsageError(f"profiling_s = {self.profiling_s:g}: profiling takes 0 to {MOST_ROUND_S:g} s")


@dataclass(frozen=True, eq=False)
class Trace:
    """The history of ``R`` simulated rounds; rounds without a job are left out.

    Attributes
    ----------
    rules
        The rules of the simulation.
    start_s, decision_s
        ``(R,)`` start of each round, and wall-clock seconds that the policy took to decide.
    stragglers
        ``(R,)`` number of GPUs in gangs that ran on several types.
    restarts
        ``(R,)`` number of jobs that lost time to a restart because their GPUs changed.
    waiting
        ``(R,)`` number of active jobs that did not run.
    completion_s, first_start_s
        ``(n,)`` times at which jobs completed and first started; NaN for jobs that never did.
    allocation
        ``(entries, 4)``: round (row of `start_s`), job, server, GPUs; sorted by round, job and server.
    progress
        ``(progress entries, 3)``: round, job, GPUs; sorted by round and job.
    iterations, busy_s
        ``(progress entries,)`` iterations done, and seconds of computing.
    speed
        ``(progress entries,)`` factor on the rate: declared by the policy (:attr:`Assignment.speed`) or, if the rules
        are sensitive, caused by the CPUs and memory.
    cpus, memory_gb
        ``(entries,)`` CPUs and gigabytes of each row of `allocation`; empty unless the rules are sensitive.
    offered
        ``(offers, 2)``: round and job, for the jobs that the policy picked (:attr:`Shares.offered`).
    unfinished
        ``(n,)`` reason why each job did not complete: :data:`IMPOSSIBLE`, :data:`LEFT`, :data:`HORIZON` or
        :data:`STALLED`; ``None`` for jobs that completed.
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
        """Fraction of all GPUs in use, summed over all rounds, that belong to gangs on several types."""
        return float(self.stragglers.sum() / max(self.allocation[:, 3].sum(), 1))

    @property
    def straggler_events(self) -> int:
        """Number of times that a gang was placed on several types for a round."""
        if self.rules.forks or not len(self.allocation):
            return 0
        kind, first = self.servers.gpu_type[self.allocation[:, 2]], np.flatnonzero(np.diff(self.entry_of, prepend=-1))
        return int((np.minimum.reduceat(kind, first) != np.maximum.reduceat(kind, first)).sum())

    @cached_property
    def utilisation(self) -> Array:
        """``(R,)`` fraction of each round's GPU time in which GPUs computed (GRU over time)."""
        return self.used(self.progress[:, 2].astype(float), float(self.servers.gpus.sum()))

    @cached_property
    def node_utilisation(self) -> Array:
        """``(R,)`` fraction of each round's server time in which servers computed (CRU over time).

        A server computes as long as any of its GPUs does: for the longest time that a job on it computed.
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
        """``(R,)`` number of unallocated GPUs."""
        held = np.bincount(self.allocation[:, 0], self.allocation[:, 3], self.rounds)
        return np.asarray(self.servers.gpus.sum() - held.astype(np.int64))

    @cached_property
    def entry_of(self) -> Ints:
        """``(entries,)`` row of `progress` to which each row of `allocation` belongs (same round and job)."""
        jobs = self.workload.size
        row, job, _, _ = self.allocation.T
        return np.asarray(np.searchsorted(self.progress[:, 0] * jobs + self.progress[:, 1], row * jobs + job))

    @cached_property
    def held(self) -> Array:
        """``(progress entries, 2)`` CPUs and gigabytes of a job in a round; 0 unless the rules are sensitive."""
        sums = np.zeros((len(self.progress), 2))
        if self.rules.sensitive:
            np.add.at(sums, self.entry_of, np.column_stack((self.cpus, self.memory_gb)))
        return sums

    def used(self, amount: Array, capacity: float) -> Array:
        """Return the ``(R,)`` fraction of a resource, averaged over each round, that computing jobs hold.

        `amount` ``(progress entries,)`` is what each job holds of the cluster's `capacity`.
        """
        total = np.bincount(self.progress[:, 0], amount * self.busy_s, self.rounds)
        return np.asarray(total / (capacity * self.round_s))

    @cached_property
    def cpu_utilisation(self) -> Array:
        """``(R,)`` fraction of each round's CPU time that computing jobs hold."""
        return self.used(self.held[:, 0], float(self.servers.cpus.sum()))

    def throughput(self, scale: Array | None = None, group: Ints | None = None) -> Array:
        """Return the ``(R, groups)`` throughput of every group of jobs in each round, in iterations per second.

        The groups `group` ``(n,)`` are by default the tenants. The iterations of each job are multiplied by `scale`
        ``(n,)``. With ``1/rate`` on a type, throughput is in GPUs of that type.
        """
        of, groups = self.workload.tenant, len(self.workload.tenants)
        if group is not None:
            of, groups = group, int(group.max()) + 1
        job = self.progress[:, 1]
        work = self.iterations if scale is None else self.iterations * scale[job]
        total = np.bincount(self.progress[:, 0] * groups + of[job], work, self.rounds * groups)
        return np.asarray(total.reshape(-1, groups) / self.round_s)

    def assignment(self, row: int) -> Assignment:
        """Return the assignment of the round in row `row` of `start_s`."""
        return Assignment.of(self.allocation[self.allocation[:, 0] == row][:, 1:])


IMPOSSIBLE = "impossible: its gang advances on no GPUs that it fits on"
LEFT = "its tenant left"
HORIZON = "horizon: the simulation ended before"
STALLED = "stalled: the policy let nothing run for too many rounds in a row"
