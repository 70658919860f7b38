"""The engine: lets jobs come and go, asks the policy, checks its answer, advances the work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.heuristics.simulator.state import NOTHING, Assignment, InvalidAssignmentError, Policy, State
from schedgap.heuristics.simulator.trace import HORIZON, IMPOSSIBLE, LEFT, STALLED, Log, Rules, Trace
from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.sensitivity import Profiles, advancing
from schedgap.instances.workload import Servers, Workload

ROUNDING = 1e-12
"""Relative error of times and work that counts as equal."""


def simulate(
    work: Workload, cluster: Servers, policy: Policy, *, profiles: Profiles | None = None, **rules: Any
) -> Trace:
    """Run `policy` until all jobs are done or gone.

    A job that no allocation could run, because its gang is larger than all GPUs with a positive rate together or, where
    rates are sensitive, because it does not advance with its proportional share, is never offered to the policy;
    :attr:`Trace.unfinished` names it, and every other job that did not complete.

    Parameters
    ----------
    work, cluster
        Jobs and servers, as :func:`schedgap.heuristics.simulator.workload` and
        :func:`schedgap.heuristics.simulator.servers` return them.
    policy
        Called once per round in which there is a job.
    profiles
        Rates by CPUs and memory, for rules that are sensitive.
    **rules
        Fields of :class:`Rules` (``round_s=300.0``, …).

    Raises
    ------
    UsageError
        If an option is out of range, see :class:`Rules`.
    InvalidAssignmentError
        If the policy breaks capacity or a gang, or names a job that is not there.
    """
    run = _Run(work, cluster, Rules(**rules), profiles)
    idle = 0
    while idle < run.rules.stall_rounds and run.admit() and run.time_s < run.rules.until_s:
        idle = 0 if run.step(policy) else idle + 1
    return run.trace(stalled=idle >= run.rules.stall_rounds)


def runnable(work: Workload, cluster: Servers, forks: bool = False) -> Bools:
    """Return ``(n,)`` which jobs could run on an empty cluster.

    A gang needs as many GPUs with a positive rate as it has; a copy of a job that forks does with one.
    """
    gpus = np.bincount(cluster.gpu_type, cluster.gpus, len(work.gpu_types))
    usable = ((work.rates > 0) * gpus).sum(axis=1)
    return np.asarray(usable >= (1 if forks else work.gpus))


@dataclass(frozen=True, eq=False)
class _Round:
    """An assignment sorted by job and server, and its ``g`` running jobs.

    `first` ``(g + 1,)`` is where the entries of each begin; `width` ``(g,)`` counts GPUs, `rate` is of the whole
    gang, or of all copies, with the factor `speed` that the policy declares; `mixed` says who uses several types.
    `cpus` and `memory_gb` of the entries and the jobs `offered` are empty where the rules are not sensitive.
    """

    job: Ints
    server: Ints
    gpus: Ints
    first: Ints
    jobs: Ints
    width: Ints
    rate: Array
    speed: Array
    mixed: Bools
    cpus: Array
    memory_gb: Array
    offered: Ints


_NONE, _NO = np.zeros(0, np.int64), np.zeros(0)
_IDLE = _Round(_NONE, _NONE, _NONE, np.zeros(1, np.int64), _NONE, _NONE, _NO, _NO, np.zeros(0, bool), _NO, _NO, _NONE)


class _Run:
    """State of one simulation; the arrays are indexed by job."""

    def __init__(self, work: Workload, cluster: Servers, rules: Rules, profiles: Profiles | None) -> None:
        from schedgap.heuristics.simulator import rounds

        if rules.sensitive and profiles is None:
            raise ValueError("rates that depend on CPUs and memory need profiles")
        self._examine, self._advance, self._speeds = rounds.examine, rounds.advance, rounds.speeds
        self.work, self.cluster, self.rules = work, cluster, rules
        self.tables = _tables(profiles) if rules.sensitive and profiles else None
        self.capacity = (np.ascontiguousarray(cluster.cpus, float), np.ascontiguousarray(cluster.memory_gb, float))
        self.ready_s = work.arrival_s + rules.profiling_s
        self.round = 0
        self.remaining = work.work.astype(float)
        self.present = np.zeros(work.size, bool)
        self.last_ran = np.zeros(work.size, np.int64)
        self.attained_s = np.zeros(work.size)
        self.completion_s = np.full(work.size, math.nan)
        self.first_start_s = np.full(work.size, math.nan)
        self.previous, self.before = NOTHING, _IDLE
        self.possible = runnable(work, cluster, rules.forks)
        if rules.sensitive and profiles:
            self.possible &= advancing(profiles, cluster)
        in_order = np.argsort(self.ready_s, kind="stable")
        self.to_come = in_order[self.possible[in_order]]
        self.somebody_leaves = bool(np.isfinite(work.leave_s).any())
        self.limits = (
            np.ascontiguousarray(work.gpus, np.int64),
            np.ascontiguousarray(work.rates, float),
            np.ascontiguousarray(cluster.gpu_type, np.int64),
            np.ascontiguousarray(cluster.gpus, np.int64),
        )
        self.leave_s = np.ascontiguousarray(work.leave_s, float)
        self.log = Log()

    @property
    def time_s(self) -> float:
        """Start of the current round."""
        return self.round * self.rules.round_s

    def admit(self) -> bool:
        """Let jobs come and go and skip rounds without any; False when nobody is left to come."""
        while True:
            if self.to_come.size:
                self._admit_next()
            if self.somebody_leaves:
                self.present &= self.work.leave_s > self.time_s
            if self.present.any():
                return True
            if not self.to_come.size:
                return False

    def _admit_next(self) -> None:
        ready_s = self.ready_s[self.to_come]
        if not self.present.any():
            first_round = math.ceil(float(ready_s[0]) / self.rules.round_s * (1 - ROUNDING))
            self.round = max(self.round, first_round)
        here = int(np.searchsorted(ready_s, self.time_s * (1 + ROUNDING), "right"))
        arrived, self.to_come = self.to_come[:here], self.to_come[here:]
        self.present[arrived] = True
        self.last_ran[arrived] = self.round

    def step(self, policy: Policy) -> bool:
        """Simulate one round; returns whether anything ran."""
        state = self._state()
        begin = clock.now()
        assignment: Any = policy(state)
        if not isinstance(assignment, Assignment):
            found = type(assignment).__name__
            raise InvalidAssignmentError(f"round {self.round}: the policy returned {found}, not an Assignment")
        self.log.decision_s.append(clock.now() - begin)
        now = self._checked(assignment)
        restarts = self._work(now)
        self._record(now, restarts, state.jobs.size)
        self.previous, self.before = assignment, now
        self.round += 1
        return now.jobs.size > 0

    def _state(self) -> State:
        jobs = np.flatnonzero(self.present)
        return State(
            round=self.round,
            time_s=self.time_s,
            round_s=self.rules.round_s,
            workload=self.work,
            servers=self.cluster,
            jobs=jobs,
            remaining=self.remaining[jobs],
            starved=self.round - self.last_ran[jobs],
            attained_s=self.attained_s[jobs],
            previous=self.previous,
        )

    def _checked(self, assignment: Assignment) -> _Round:
        """Check an assignment and return what runs."""
        order = np.argsort(assignment.job * self.cluster.size + assignment.server, kind="stable")
        job, server, gpus = (
            np.ascontiguousarray(part, np.int64)[order] for part in (assignment.job, assignment.server, assignment.gpus)
        )
        fault, where, first, rate, mixed = self._examine(
            (job, server, gpus), self.present, self.limits, self.rules.spread_factor, self.rules.forks
        )
        if fault:
            raise InvalidAssignmentError(f"round {self.round}: {self._fault(fault, where)}")
        jobs = job[first[:-1]]
        cpus, memory_gb, offered = _NO, _NO, _NONE
        if self.tables:
            if assignment.shares is None:
                raise InvalidAssignmentError(f"round {self.round}: the policy gives out no CPUs and memory")
            cpus, memory_gb = (
                np.ascontiguousarray(part, float)[order]
                for part in (assignment.shares.cpus, assignment.shares.memory_gb)
            )
            offered = np.asarray(assignment.shares.offered, np.int64)
            speed = self._sensitive((job, server, gpus), cpus, memory_gb, first)
        else:
            speed = np.ones(jobs.size) if assignment.speed is None else np.asarray(assignment.speed, float)
        if jobs.size and not speed.min() > 0:
            stuck = self.work.ids[jobs[int(speed.argmin())]]
            raise InvalidAssignmentError(f"round {self.round}: job {stuck} cannot run where it was put")
        width = np.add.reduceat(gpus, first[:-1]) if jobs.size else jobs
        return _Round(job, server, gpus, first, jobs, width, rate * speed, speed, mixed, cpus, memory_gb, offered)

    def _sensitive(self, entries: tuple[Ints, Ints, Ints], cpus: Array, memory_gb: Array, first: Ints) -> Array:
        """Check CPUs and memory; return the factor that they make on the rate of every running job."""
        assert self.tables is not None
        fault, where, speed = self._speeds(entries, (cpus, memory_gb), first, self.limits, self.capacity, self.tables)
        if fault:
            raise InvalidAssignmentError(f"round {self.round}: {self._fault(fault, where)}")
        return np.asarray(speed)

    def _fault(self, fault: int, where: int) -> str:
        """Return what the examination found, about the job or server `where`."""
        name = self.work.ids[where] if 0 <= where < self.work.size else ""
        host = self.cluster.names[where] if 0 <= where < self.cluster.size else ""
        return (
            f"jobs are numbered from 0 to {self.work.size - 1}",
            f"servers are numbered from 0 to {self.cluster.size - 1}",
            "an entry has at least one GPU",
            "a pair of job and server occurs once",
            f"job {name} is not there",
            f"more GPUs than server {host} has",
            f"job {name} runs with all GPUs of its gang or none",
            f"a copy of job {name} has more GPUs than its gang",
            f"job {name} cannot run where it was put",
            f"more CPUs than server {host} has",
            f"more memory than server {host} has",
            f"job {name} holds GPUs of several types",
        )[fault - 1]

    def _work(self, now: _Round) -> int:
        """Do the round's work; returns how many jobs paid for a changed allocation."""
        restarts, finished, iterations, busy_s = self._advance(
            (now.server, now.gpus, now.first, now.jobs),
            (self.before.server, self.before.gpus, self.before.first, self.before.jobs),
            now.width,
            now.rate,
            (self.time_s, float(self.rules.round_s), float(self.rules.restart_s), ROUNDING),
            self.leave_s,
            (self.remaining, self.attained_s, self.completion_s, self.first_start_s),
        )
        self.last_ran[now.jobs] = self.round + 1
        self.present[now.jobs[finished]] = False
        self.log.iterations.append(iterations)
        self.log.busy_s.append(busy_s)
        return int(restarts)

    def _record(self, now: _Round, restarts: int, present: int) -> None:
        log = self.log
        log.start_s.append(self.time_s)
        log.stragglers.append(int(now.width[now.mixed].sum()))
        log.restarts.append(restarts)
        log.speed.append(now.speed)
        log.waiting.append(present - now.jobs.size)
        log.allocation.append((now.job, now.server, now.gpus))
        log.progress.append((now.jobs, now.width))
        log.cpus.append(now.cpus)
        log.memory_gb.append(now.memory_gb)
        log.offered.append((now.offered,))

    def _reason(self, job: int, stalled: bool) -> str:
        """Return why a job did not complete."""
        if not self.possible[job]:
            return IMPOSSIBLE
        if self.work.leave_s[job] <= self.time_s:
            return LEFT
        return STALLED if stalled else HORIZON

    def trace(self, stalled: bool) -> Trace:
        """Return the records as arrays; `stalled` says that the simulation was given up."""
        log = self.log
        done = np.isfinite(self.completion_s).tolist()
        return Trace(
            workload=self.work,
            servers=self.cluster,
            rules=self.rules,
            start_s=np.array(log.start_s, float),
            decision_s=np.array(log.decision_s, float),
            stragglers=np.array(log.stragglers, np.int64),
            restarts=np.array(log.restarts, np.int64),
            waiting=np.array(log.waiting, np.int64),
            completion_s=self.completion_s,
            first_start_s=self.first_start_s,
            allocation=_rows(log.allocation, 3),
            progress=_rows(log.progress, 2),
            iterations=np.concatenate([np.zeros(0), *log.iterations]),
            busy_s=np.concatenate([np.zeros(0), *log.busy_s]),
            speed=np.concatenate([np.zeros(0), *log.speed]),
            cpus=np.concatenate([np.zeros(0), *log.cpus]),
            memory_gb=np.concatenate([np.zeros(0), *log.memory_gb]),
            offered=_rows(log.offered, 1),
            unfinished=tuple(None if ok else self._reason(job, stalled) for job, ok in enumerate(done)),
        )


def _tables(profiles: Profiles) -> tuple[Ints, Array, Array, Array]:
    """Return kinds, levels and rates of jobs for compiled loops."""
    levels = (np.ascontiguousarray(axis, float) for axis in (profiles.cpus, profiles.memory_gb, profiles.rate))
    return (np.ascontiguousarray(profiles.kind, np.int64), *levels)  # type: ignore[return-value]


def _rows(parts: Sequence[tuple[Ints, ...]], columns: int) -> Ints:
    """Return the arrays of all rounds as one table whose first column is the number of the round."""
    row = np.repeat(np.arange(len(parts)), [part[0].size for part in parts])
    tail = (np.concatenate([np.zeros(0, np.int64), *(part[c] for part in parts)]) for c in range(columns))
    return np.column_stack([row, *tail])
