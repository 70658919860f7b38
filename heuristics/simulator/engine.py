"""The engine: lets jobs come and go, asks the policy, checks its answer, advances the work."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heuristics.simulator.state import NOTHING, Assignment, InvalidAssignmentError, Policy, State
from heuristics.simulator.trace import HORIZON, IMPOSSIBLE, LEFT, STALLED, Log, Rules, Trace
from instances.workload import Array, Ints, Servers, Workload

Bools = NDArray[np.bool_]

ROUNDING = 1e-12
"""Relative error of times and work that counts as equal."""


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

    A job that no allocation could run, because its gang is larger than all GPUs with a positive rate together, is never
    offered to the policy; :attr:`Trace.unfinished` names it, and every other job that did not complete.

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
        If an option is out of range, see :class:`Rules`.
    InvalidAssignmentError
        If the policy breaks capacity or a gang, or names a job that is not there.
    """
    run = _Run(work, cluster, Rules(round_s, restart_s, spread_factor, until_s, forks, stall_rounds))
    idle = 0
    while idle < stall_rounds and run.admit() and run.time_s < until_s:
        idle = 0 if run.step(policy) else idle + 1
    return run.trace(stalled=idle >= stall_rounds)


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


def _nothing() -> _Round:
    none = np.zeros(0, np.int64)
    return _Round(none, none, none, np.zeros(1, np.int64), none, none, np.zeros(0), np.zeros(0), np.zeros(0, bool))


class _Run:
    """State of one simulation; the arrays are indexed by job."""

    def __init__(self, work: Workload, cluster: Servers, rules: Rules) -> None:
        from heuristics.simulator import rounds

        self._examine, self._advance = rounds.examine, rounds.advance
        self.work, self.cluster, self.rules = work, cluster, rules
        self.round = 0
        self.remaining = work.work.astype(float)
        self.present = np.zeros(work.size, bool)
        self.last_ran = np.zeros(work.size, np.int64)
        self.attained_s = np.zeros(work.size)
        self.completion_s = np.full(work.size, math.nan)
        self.first_start_s = np.full(work.size, math.nan)
        self.previous, self.before = NOTHING, _nothing()
        self.possible = runnable(work, cluster, rules.forks)
        in_order = np.argsort(work.arrival_s, kind="stable")
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
        arrival_s = self.work.arrival_s[self.to_come]
        if not self.present.any():
            first_round = math.ceil(float(arrival_s[0]) / self.rules.round_s * (1 - ROUNDING))
            self.round = max(self.round, first_round)
        here = int(np.searchsorted(arrival_s, self.time_s * (1 + ROUNDING), "right"))
        arrived, self.to_come = self.to_come[:here], self.to_come[here:]
        self.present[arrived] = True
        self.last_ran[arrived] = self.round

    def step(self, policy: Policy) -> bool:
        """Simulate one round; returns whether anything ran."""
        state = self._state()
        begin = time.perf_counter()
        assignment = policy(state)
        self.log.decision_s.append(time.perf_counter() - begin)
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
        speed = np.ones(jobs.size) if assignment.speed is None else np.asarray(assignment.speed, float)
        if jobs.size and not speed.min() > 0:
            stuck = self.work.ids[jobs[int(speed.argmin())]]
            raise InvalidAssignmentError(f"round {self.round}: job {stuck} cannot run where it was put")
        width = np.add.reduceat(gpus, first[:-1]) if jobs.size else jobs
        return _Round(job, server, gpus, first, jobs, width, rate * speed, speed, mixed)

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
            unfinished=tuple(None if ok else self._reason(job, stalled) for job, ok in enumerate(done)),
        )


def _rows(parts: Sequence[tuple[Ints, ...]], columns: int) -> Ints:
    """Return the arrays of all rounds as one table whose first column is the number of the round."""
    row = np.repeat(np.arange(len(parts)), [part[0].size for part in parts])
    tail = (np.concatenate([np.zeros(0, np.int64), *(part[c] for part in parts)]) for c in range(columns))
    return np.column_stack([row, *tail])
