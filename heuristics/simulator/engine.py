"""The engine: lets jobs come and go, asks the policy, checks its answer, advances the work."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heuristics.simulator.state import NOTHING, Assignment, InvalidAssignmentError, Policy, State
from heuristics.simulator.trace import Log, Trace
from instances.errors import UsageError
from instances.workload import Array, Ints, Servers, Workload

Bools = NDArray[np.bool_]

ROUNDING = 1e-12
"""Relative error of times and work that counts as equal."""


@dataclass(frozen=True)
class _Costs:
    """Options of a simulation; see :func:`simulate`."""

    round_s: float
    restart_s: float
    spread_factor: float

    def __post_init__(self) -> None:
        if not (0 < self.round_s < math.inf and 0 <= self.restart_s < math.inf and 0 < self.spread_factor <= 1):
            given = f"round_s = {self.round_s:g}, restart_s = {self.restart_s:g}"
            wanted = "rounds are positive, restarts 0 or more, the factor within (0, 1]"
            raise UsageError(f"{given}, spread_factor = {self.spread_factor:g}: {wanted}")


def simulate(
    work: Workload,
    cluster: Servers,
    policy: Policy,
    *,
    round_s: float = 300.0,
    restart_s: float = 0.0,
    spread_factor: float = 1.0,
    until_s: float = math.inf,
    stall_rounds: int = 10_000,
    forks: bool = False,
) -> Trace:
    """Run `policy` until all jobs are done or gone.

    Parameters
    ----------
    work, cluster
        Jobs and servers, as :func:`heuristics.simulator.workload` and
        :func:`heuristics.simulator.servers` return them.
    policy
        Called once per round in which there is a job.
    round_s
        Length of a round in seconds.
    restart_s
        Seconds a job loses in a round in which its allocation changed.
    spread_factor
        Factor in (0, 1] on the rate of gangs that span servers.
    until_s
        No round starts at or after this time.
    stall_rounds
        Give up after so many rounds in a row in which nothing ran.
    forks
        Whether each entry of an assignment is a copy of the job that advances on its own.

    Raises
    ------
    UsageError
        If an option is out of range.
    InvalidAssignmentError
        If the policy breaks capacity or a gang, or names a job that is not there.
    """
    run = _Run(work, cluster, _Costs(round_s, restart_s, spread_factor), forks)
    idle = 0
    while idle < stall_rounds and run.admit() and run.time_s < until_s:
        idle = 0 if run.step(policy) else idle + 1
    return run.trace()


@dataclass(frozen=True, eq=False)
class _Gangs:
    """An assignment sorted by job and server, and its ``g`` running jobs.

    `key` ``(entries,)`` is unique to job, server and GPUs; `width` ``(g,)`` counts GPUs, `mixed` says who uses several
    types.
    """

    job: Ints
    server: Ints
    gpus: Ints
    key: Ints
    jobs: Ints
    width: Ints
    rate: Array
    mixed: Bools


class _Run:
    """State of one simulation; the arrays are indexed by job."""

    def __init__(self, work: Workload, cluster: Servers, costs: _Costs, forks: bool) -> None:
        self.work, self.cluster, self.costs, self.forks = work, cluster, costs, forks
        self.round = 0
        self.remaining = work.work.copy()
        self.present = np.zeros(work.size, bool)
        self.last_ran = np.zeros(work.size, np.int64)
        self.attained_s = np.zeros(work.size)
        self.completion_s = np.full(work.size, math.nan)
        self.first_start_s = np.full(work.size, math.nan)
        self.previous, self.previous_key = NOTHING, np.zeros(0, np.int64)
        self.to_come = np.argsort(work.arrival_s, kind="stable")
        self.somebody_leaves = bool(np.isfinite(work.leave_s).any())
        self.key_base = int(cluster.gpus.max()) + 1
        self.log = Log()

    @property
    def time_s(self) -> float:
        """Start of the current round."""
        return self.round * self.costs.round_s

    def admit(self) -> bool:
        """Let jobs come and go and skip rounds without any; False when nobody is left to come."""
        while True:
            arrival_s = self.work.arrival_s[self.to_come]
            if not self.present.any():
                if not arrival_s.size:
                    return False
                first_round = math.ceil(float(arrival_s[0]) / self.costs.round_s * (1 - ROUNDING))
                self.round = max(self.round, first_round)
            here = int(np.searchsorted(arrival_s, self.time_s * (1 + ROUNDING), "right"))
            arrived, self.to_come = self.to_come[:here], self.to_come[here:]
            self.present[arrived] = True
            self.last_ran[arrived] = self.round
            if self.somebody_leaves:
                self.present &= self.work.leave_s > self.time_s
            if self.present.any():
                return True

    def step(self, policy: Policy) -> bool:
        """Simulate one round; returns whether anything ran."""
        state = self._state()
        begin = time.perf_counter()
        assignment = policy(state)
        self.log.decision_s.append(time.perf_counter() - begin)
        gangs = self._gangs(assignment)
        restarted = self._restarted(gangs)
        self._record(gangs, restarted, state.jobs.size)
        self._advance(gangs, restarted)
        self.previous, self.previous_key = assignment, gangs.key
        self.round += 1
        return gangs.jobs.size > 0

    def _state(self) -> State:
        jobs = np.flatnonzero(self.present)
        return State(
            round=self.round,
            time_s=self.time_s,
            round_s=self.costs.round_s,
            workload=self.work,
            servers=self.cluster,
            jobs=jobs,
            remaining=self.remaining[jobs],
            starved=self.round - self.last_ran[jobs],
            attained_s=self.attained_s[jobs],
            previous=self.previous,
        )

    def _gangs(self, assignment: Assignment) -> _Gangs:
        """Check an assignment and return the gangs it runs."""
        order = np.lexsort((assignment.server, assignment.job))
        job, server, gpus = assignment.job[order], assignment.server[order], assignment.gpus[order]
        self._check_entries(job, server, gpus)
        key = (job * self.cluster.size + server) * self.key_base + gpus
        first = np.flatnonzero(np.diff(job, prepend=-1))
        if not first.size:
            return _Gangs(job, server, gpus, key, job, job, np.zeros(0), np.zeros(0, bool))
        jobs, width = job[first], np.add.reduceat(gpus, first)
        rate = self._copies(job, server, gpus, first) if self.forks else self._gang_rates(job, server, width, first)
        if assignment.speed is not None:
            rate = rate * assignment.speed
        if rate.min() <= 0:
            raise self._invalid(f"job {self._name(jobs[rate <= 0])} cannot run where it was put")
        types = self.cluster.gpu_type[server]
        mixed = np.minimum.reduceat(types, first) != np.maximum.reduceat(types, first)
        return _Gangs(job, server, gpus, key, jobs, width, rate, mixed & (not self.forks))

    def _gang_rates(self, job: Ints, server: Ints, width: Ints, first: Ints) -> Array:
        """Return the rates of whole gangs: all GPUs at the rate of the slowest."""
        jobs = job[first]
        wrong = jobs[width != self.work.gpus[jobs]]
        if wrong.size:
            raise self._invalid(f"job {self._name(wrong)} runs with all GPUs of its gang or none")
        slowest: Array = np.minimum.reduceat(self.work.rates[job, self.cluster.gpu_type[server]], first)
        rate = slowest * width
        return np.where(np.diff(first, append=job.size) > 1, rate * self.costs.spread_factor, rate)

    def _copies(self, job: Ints, server: Ints, gpus: Ints, first: Ints) -> Array:
        """Return the rates of jobs whose copies, one per server, advance on their own."""
        wrong = job[gpus > self.work.gpus[job]]
        if wrong.size:
            raise self._invalid(f"a copy of job {self._name(wrong)} has more GPUs than its gang")
        return np.asarray(np.add.reduceat(gpus * self.work.rates[job, self.cluster.gpu_type[server]], first))

    def _check_entries(self, job: Ints, server: Ints, gpus: Ints) -> None:
        for index, size, what in ((job, self.work.size, "jobs"), (server, self.cluster.size, "servers")):
            if index.size and not 0 <= index.min() <= index.max() < size:
                raise self._invalid(f"{what} are numbered from 0 to {size - 1}")
        if gpus.size and gpus.min() < 1:
            raise self._invalid("an entry has at least one GPU")
        if np.any((np.diff(job) == 0) & (np.diff(server) == 0)):
            raise self._invalid("a pair of job and server occurs once")
        if not self.present[job].all():
            raise self._invalid(f"job {self._name(job[~self.present[job]])} is not there")
        over = np.bincount(server, gpus, self.cluster.size) > self.cluster.gpus
        if over.any():
            raise self._invalid(f"more GPUs than server {self.cluster.names[int(np.argmax(over))]} has")

    def _invalid(self, what: str) -> InvalidAssignmentError:
        return InvalidAssignmentError(f"round {self.round}: {what}")

    def _name(self, jobs: Ints) -> str:
        return self.work.ids[int(jobs[0])]

    def _restarted(self, gangs: _Gangs) -> Bools:
        """Which gangs have run before and hold other GPUs than in the previous round."""
        if np.array_equal(gangs.key, self.previous_key):
            return np.zeros(gangs.jobs.size, bool)
        different = np.setxor1d(gangs.key, self.previous_key, assume_unique=True)
        changed = np.zeros(self.work.size, bool)
        changed[different // (self.cluster.size * self.key_base)] = True
        return np.asarray(changed[gangs.jobs] & (self.attained_s[gangs.jobs] > 0))

    def _record(self, gangs: _Gangs, restarted: Bools, present: int) -> None:
        log, row = self.log, len(self.log.start_s)
        entries = (np.full(gangs.job.size, row), gangs.job, gangs.server, gangs.gpus)
        log.start_s.append(self.time_s)
        log.stragglers.append(int(gangs.width[gangs.mixed].sum()))
        log.restarts.append(int(restarted.sum()))
        log.waiting.append(present - gangs.jobs.size)
        log.allocation.append(np.column_stack(entries))
        log.progress.append(np.column_stack((np.full(gangs.jobs.size, row), gangs.jobs, gangs.width)))

    def _advance(self, gangs: _Gangs, restarted: Bools) -> None:
        """Do the round's work."""
        jobs, start = gangs.jobs, self.time_s
        overhead = self.costs.restart_s * restarted
        end = np.minimum(start + self.costs.round_s, self.work.leave_s[jobs])
        useful = np.maximum(end - start - overhead, 0.0)
        needed = self.remaining[jobs] / gangs.rate
        done = needed <= useful * (1 + ROUNDING)
        busy_s = np.where(done, needed, useful)
        iterations = np.where(done, self.remaining[jobs], gangs.rate * useful)
        new = jobs[np.isnan(self.first_start_s[jobs])]
        finished = jobs[done]
        self.first_start_s[new] = start
        self.remaining[jobs] -= iterations
        self.attained_s[jobs] += gangs.width * busy_s
        self.last_ran[jobs] = self.round + 1
        self.completion_s[finished] = start + overhead[done] + needed[done]
        self.present[finished] = False
        self.log.iterations.append(iterations)
        self.log.busy_s.append(busy_s)

    def trace(self) -> Trace:
        """Return the records as arrays."""
        log = self.log
        return Trace(
            workload=self.work,
            servers=self.cluster,
            round_s=self.costs.round_s,
            start_s=np.array(log.start_s, float),
            decision_s=np.array(log.decision_s, float),
            stragglers=np.array(log.stragglers, np.int64),
            restarts=np.array(log.restarts, np.int64),
            waiting=np.array(log.waiting, np.int64),
            completion_s=self.completion_s,
            first_start_s=self.first_start_s,
            allocation=np.concatenate([np.zeros((0, 4), np.int64), *log.allocation]),
            progress=np.concatenate([np.zeros((0, 3), np.int64), *log.progress]),
            iterations=np.concatenate([np.zeros(0), *log.iterations]),
            busy_s=np.concatenate([np.zeros(0), *log.busy_s]),
        )
