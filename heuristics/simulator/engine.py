"""The simulation loop: in each round it lets jobs arrive, asks the policy, checks its assignment and advances jobs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from schedgap.heuristics.simulator import trace as history
from schedgap.heuristics.simulator.state import NOTHING, Assignment, InvalidAssignmentError, Policy, State
from schedgap.heuristics.simulator.trace import Rules, Trace
from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.sensitivity import Profiles, advancing
from schedgap.instances.workload import Servers, Workload

if TYPE_CHECKING:
    from schedgap.heuristics.simulator._kernels import Holdings

ROUNDING = 1e-12
"""Times, or amounts of work, that differ by at most this fraction count as equal."""


def simulate(
    work: Workload, cluster: Servers, policy: Policy, *, profiles: Profiles | None = None, **rules: Any
) -> Trace:
    """Simulate `policy` until all jobs have completed or left, and return the history.

    Some jobs can never run: the gang is larger than the number of GPUs with a positive rate or, if rates are sensitive,
    the job makes no progress with its proportional share. These are never offered to the policy.
    :attr:`Trace.unfinished` names them, and every other job that did not complete.

    Parameters
    ----------
    work, cluster
        Jobs and servers, as :func:`schedgap.heuristics.simulator.workload` and
        :func:`schedgap.heuristics.simulator.servers` return them.
    policy
        Called once per round with an active job.
    profiles
        Rates by CPUs and memory; required if the rules are sensitive.
    **rules
        Fields of :class:`Rules` (``round_s=300.0``, …).

    Raises
    ------
    UsageError
        If an option is out of range, see :class:`Rules`.
    InvalidAssignmentError
        If the policy exceeds capacity, splits a gang, or names an inactive job.
    """
    run = _SimulationState(work, cluster, Rules(**rules), profiles)
    idle = 0
    while idle < run.rules.stall_rounds and run.admit() and run.time_s < run.rules.until_s:
        idle = 0 if run.step(policy) else idle + 1
    return run.trace(stalled=idle >= run.rules.stall_rounds)


def in_slots(work: Workload, cluster: Servers, policy: Policy, slot_s: float, **rules: Any) -> tuple[Trace, Ints]:
    """Simulate a fresh policy with one round per slot; return the history and the ``(R,)`` slots of its rounds, from 0.

    `rules` are the other arguments of :func:`simulate`. Raises `NotApplicableError` if a slot is too short or too long
    for a round.
    """
    if not history.LEAST_ROUND_S <= slot_s <= history.MOST_ROUND_S:
        limits = f"simulated rounds take {history.LEAST_ROUND_S:g} to {history.MOST_ROUND_S:g} s"
        raise NotApplicableError(f"horizon.slot_s = {slot_s:g}: {limits}")
    trace = simulate(work, cluster, policy, round_s=slot_s, **rules)
    return trace, np.rint(trace.start_s / slot_s).astype(np.int64)


def runnable(work: Workload, cluster: Servers, forks: bool = False) -> Bools:
    """Return the ``(n,)`` mask of jobs that could run on an empty cluster.

    All GPUs of a gang need a positive rate; a copy of a forking job needs only one GPU.
    """
    gpus = np.bincount(cluster.gpu_type, cluster.gpus, len(work.gpu_types))
    usable = ((work.rates > 0) * gpus).sum(axis=1)
    return np.asarray(usable >= (1 if forks else work.gpus))


_NO_INTS, _NO_FLOATS = np.zeros(0, np.int64), np.zeros(0)


class _Record(NamedTuple):
    """What happened in one round; the records of all rounds become the arrays of :class:`Trace`.

    A tuple has the columns of a table, without the round number. `cpus`, `memory_gb` and `offered` are empty unless the
    rules are sensitive.
    """

    start_s: float = 0.0
    decision_s: float = 0.0
    stragglers: int = 0
    restarts: int = 0
    waiting: int = 0
    allocation: tuple[Ints, ...] = (_NO_INTS, _NO_INTS, _NO_INTS)
    progress: tuple[Ints, ...] = (_NO_INTS, _NO_INTS)
    iterations: Array = _NO_FLOATS
    busy_s: Array = _NO_FLOATS
    speed: Array = _NO_FLOATS
    cpus: Array = _NO_FLOATS
    memory_gb: Array = _NO_FLOATS
    offered: tuple[Ints, ...] = (_NO_INTS,)


class _SimulationState:
    """State of one simulation; the arrays are indexed by job."""

    def __init__(self, work: Workload, cluster: Servers, rules: Rules, profiles: Profiles | None) -> None:
        from schedgap.heuristics.simulator import _kernels

        if rules.sensitive and profiles is None:
            raise ValueError("rates that depend on CPUs and memory need profiles")
        self.kernels = _kernels
        self.work, self.cluster, self.rules = work, cluster, rules
        largest = cluster.largest(len(work.gpu_types))
        exchange_s = work.over_network() if rules.network else np.zeros(work.size)
        self.limits = _kernels.AssignmentLimits(
            work.gpus, work.rates, exchange_s, cluster.gpu_type, cluster.gpus, cluster.cpus, cluster.memory_gb, largest
        )
        self.ready_s = work.arrival_s + rules.profiling_s
        self.round = 0
        self.present = np.zeros(work.size, bool)
        self.last_ran = np.zeros(work.size, np.int64)
        self.progress = _kernels.Progress(
            work.work.astype(float), np.zeros(work.size), *np.full((2, work.size), math.nan)
        )
        self.previous, self.before = NOTHING, _kernels.Holdings(_NO_INTS, _NO_INTS, np.zeros(1, np.int64), _NO_INTS)
        self.possible = runnable(work, cluster, rules.forks)
        self.tables = profiles if rules.sensitive else None
        if self.tables:
            self.possible &= advancing(self.tables, cluster)
        in_order = np.argsort(self.ready_s, kind="stable")
        self.to_come = in_order[self.possible[in_order]]
        self.log: list[_Record] = []

    @property
    def time_s(self) -> float:
        """Start of the current round."""
        return self.round * self.rules.round_s

    def admit(self) -> bool:
        """Let jobs arrive and leave, and skip rounds without a job; return whether a job is left to simulate."""
        while True:
            if self.to_come.size:
                ready_s = self.ready_s[self.to_come]
                if not self.present.any():
                    first_round = math.ceil(float(ready_s[0]) / self.rules.round_s * (1 - ROUNDING))
                    self.round = max(self.round, first_round)
                count = int(np.searchsorted(ready_s, self.time_s * (1 + ROUNDING), "right"))
                arrived, self.to_come = self.to_come[:count], self.to_come[count:]
                self.present[arrived] = True
                self.last_ran[arrived] = self.round
            self.present &= self.work.leave_s > self.time_s
            if self.present.any():
                return True
            if not self.to_come.size:
                return False

    def step(self, policy: Policy) -> bool:
        """Simulate one round; return whether any job ran."""
        jobs = np.flatnonzero(self.present)
        state = State(
            round=self.round,
            time_s=self.time_s,
            round_s=self.rules.round_s,
            workload=self.work,
            servers=self.cluster,
            jobs=jobs,
            remaining=self.progress.remaining[jobs],
            starved=self.round - self.last_ran[jobs],
            attained_s=self.progress.attained_s[jobs],
            previous=self.previous,
        )
        begin = clock.now()
        assignment: Any = policy(state)
        decision_s = clock.now() - begin
        if not isinstance(assignment, Assignment):
            kind = type(assignment).__name__
            raise InvalidAssignmentError(f"round {self.round}: the policy returned {kind}, not an Assignment")
        held, rate, record = self._checked(assignment)
        ran, width = record.progress
        times = (self.time_s, float(self.rules.round_s), float(self.rules.restart_s), ROUNDING)
        restarts, finished, iterations, busy_s = self.kernels.advance(
            held, self.before, width, rate, times, self.work.leave_s, self.progress
        )
        self.last_ran[ran] = self.round + 1
        self.present[ran[finished]] = False
        record = record._replace(decision_s=decision_s, restarts=int(restarts), waiting=jobs.size - ran.size)
        self.log.append(record._replace(iterations=iterations, busy_s=busy_s))
        self.previous, self.before = assignment, held
        self.round += 1
        return ran.size > 0

    def _checked(self, assignment: Assignment) -> tuple[Holdings, Array, _Record]:
        """Check an assignment; return the GPUs that jobs hold, their iterations per second, and the record so far."""
        order = np.argsort(assignment.job * self.cluster.size + assignment.server, kind="stable")
        columns = (assignment.job, assignment.server, assignment.gpus)
        entries = self.kernels.Entries(*(np.asarray(column, np.int64)[order] for column in columns))
        fault, where, first, rate, mixed = self.kernels.examine(
            entries, self.present, self.limits, self.rules.spread_factor, self.rules.forks
        )
        self._refuse(fault, where)
        jobs = entries.job[first[:-1]]
        cpus, memory_gb, offered = _NO_FLOATS, _NO_FLOATS, _NO_INTS
        if self.tables:
            shares = assignment.shares
            if shares is None:
                raise InvalidAssignmentError(f"round {self.round}: the policy gives out no CPUs and memory")
            cpus, memory_gb = (np.asarray(column, float)[order] for column in (shares.cpus, shares.memory_gb))
            offered = np.asarray(shares.offered, np.int64)
            fault, where, speed = self.kernels.speeds(entries, cpus, memory_gb, first, self.limits, self.tables)
            self._refuse(fault, where)
        else:
            speed = np.ones(jobs.size) if assignment.speed is None else np.asarray(assignment.speed, float)
        if jobs.size and not speed.min() > 0:
            self._refuse(self.kernels.UNABLE, int(jobs[int(speed.argmin())]))
        width = np.add.reduceat(entries.gpus, first[:-1]) if jobs.size else jobs
        record = _Record(
            start_s=self.time_s,
            stragglers=int(width[mixed].sum()),
            allocation=entries,
            progress=(jobs, width),
            speed=speed,
            cpus=cpus,
            memory_gb=memory_gb,
            offered=(offered,),
        )
        return self.kernels.Holdings(entries.server, entries.gpus, first, jobs), rate * speed, record

    def _refuse(self, fault: int, where: int) -> None:
        """Raise the error of a fault code unless it is 0; `where` is the index of the job or server at fault."""
        if not fault:
            return
        name = self.work.ids[where] if 0 <= where < self.work.size else ""
        host = self.cluster.names[where] if 0 <= where < self.cluster.size else ""
        messages = (
            f"jobs are numbered from 0 to {self.work.size - 1}",
            f"servers are numbered from 0 to {self.cluster.size - 1}",
            "an entry has at least one GPU",
            "a pair of job and server occurs at most once",
            f"job {name} has not arrived or is no longer active",
            f"more GPUs than server {host} has",
            f"job {name} must run with all GPUs of its gang or none",
            f"a copy of job {name} has more GPUs than its gang",
            f"job {name} makes no progress where it was placed",
            f"more CPUs than server {host} has",
            f"more memory than server {host} has",
            f"job {name} holds GPUs of several types",
            f"job {name} holds more CPUs or memory than the servers that its GPUs need can have",
        )
        raise InvalidAssignmentError(f"round {self.round}: {messages[fault - 1]}")

    def trace(self, stalled: bool) -> Trace:
        """Return the history of all rounds; `stalled` says whether the policy let nothing run for too long."""
        late = history.STALLED if stalled else history.HORIZON
        reason = np.where(self.work.leave_s <= self.time_s, history.LEFT, late)
        reason = np.where(self.possible, reason, history.IMPOSSIBLE)
        reason[np.isfinite(self.progress.completion_s)] = ""
        rounds = zip(_Record(), *self.log, strict=True)
        return Trace(
            workload=self.work,
            servers=self.cluster,
            rules=self.rules,
            completion_s=self.progress.completion_s,
            first_start_s=self.progress.first_start_s,
            unfinished=tuple(text or None for text in reason.tolist()),
            **{name: _stacked(*parts) for name, parts in zip(_Record._fields, rounds, strict=True)},
        )


def _stacked(empty: Any, *rounds: Any) -> Any:
    """Concatenate one field of the records of all rounds; in tables, the first column is the round number.

    `empty` is a value of the field for no round, which determines the type of the result.
    """
    if isinstance(empty, tuple):
        number = np.repeat(np.arange(len(rounds)), [columns[0].size for columns in rounds])
        return np.column_stack([number, *map(np.concatenate, zip(empty, *rounds, strict=True))])
    return np.concatenate([empty, *rounds]) if isinstance(empty, np.ndarray) else np.array(rounds, type(empty))
