"""The engine: lets jobs come and go, asks the policy, checks its answer, advances the work."""

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
    from schedgap.heuristics.simulator._kernels import Held

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


def in_slots(work: Workload, cluster: Servers, policy: Policy, slot_s: float, **rules: Any) -> tuple[Trace, Ints]:
    """Simulate a fresh policy in rounds as long as slots; return the history and ``(R,)`` slots of its rounds, from 0.

    `rules` are the other arguments of :func:`simulate`. It raises `NotApplicableError` if a slot is too short or too
    long for a round.
    """
    if not history.LEAST_ROUND_S <= slot_s <= history.MOST_ROUND_S:
        wanted = f"simulated rounds take {history.LEAST_ROUND_S:g} to {history.MOST_ROUND_S:g} s"
        raise NotApplicableError(f"horizon.slot_s = {slot_s:g}: {wanted}")
    trace = simulate(work, cluster, policy, round_s=slot_s, **rules)
    return trace, np.rint(trace.start_s / slot_s).astype(np.int64)


def runnable(work: Workload, cluster: Servers, forks: bool = False) -> Bools:
    """Return ``(n,)`` which jobs could run on an empty cluster.

    A gang needs as many GPUs with a positive rate as it has; a copy of a job that forks does with one.
    """
    gpus = np.bincount(cluster.gpu_type, cluster.gpus, len(work.gpu_types))
    usable = ((work.rates > 0) * gpus).sum(axis=1)
    return np.asarray(usable >= (1 if forks else work.gpus))


_NONE, _NO = np.zeros(0, np.int64), np.zeros(0)


class _Record(NamedTuple):
    """What is recorded of a round for :class:`Trace`; tables as columns, without the number of the round.

    `cpus`, `memory_gb` and `offered` are empty where the rules are not sensitive.
    """

    start_s: float = 0.0
    decision_s: float = 0.0
    stragglers: int = 0
    restarts: int = 0
    waiting: int = 0
    allocation: tuple[Ints, ...] = (_NONE, _NONE, _NONE)
    progress: tuple[Ints, ...] = (_NONE, _NONE)
    iterations: Array = _NO
    busy_s: Array = _NO
    speed: Array = _NO
    cpus: Array = _NO
    memory_gb: Array = _NO
    offered: tuple[Ints, ...] = (_NONE,)


class _Run:
    """State of one simulation; the arrays are indexed by job."""

    def __init__(self, work: Workload, cluster: Servers, rules: Rules, profiles: Profiles | None) -> None:
        from schedgap.heuristics.simulator import _kernels

        if rules.sensitive and profiles is None:
            raise ValueError("rates that depend on CPUs and memory need profiles")
        self.kernels = _kernels
        self.work, self.cluster, self.rules = work, cluster, rules
        self.limits = _kernels.Limits(
            work.gpus, work.rates, cluster.gpu_type, cluster.gpus, cluster.cpus, cluster.memory_gb
        )
        self.ready_s = work.arrival_s + rules.profiling_s
        self.round = 0
        self.present = np.zeros(work.size, bool)
        self.last_ran = np.zeros(work.size, np.int64)
        self.progress = _kernels.Progress(
            work.work.astype(float), np.zeros(work.size), *np.full((2, work.size), math.nan)
        )
        self.previous, self.before = NOTHING, _kernels.Held(_NONE, _NONE, np.zeros(1, np.int64), _NONE)
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
        """Let jobs come and go and skip rounds without any; False when nobody is left to come."""
        while True:
            if self.to_come.size:
                ready_s = self.ready_s[self.to_come]
                if not self.present.any():
                    first_round = math.ceil(float(ready_s[0]) / self.rules.round_s * (1 - ROUNDING))
                    self.round = max(self.round, first_round)
                here = int(np.searchsorted(ready_s, self.time_s * (1 + ROUNDING), "right"))
                arrived, self.to_come = self.to_come[:here], self.to_come[here:]
                self.present[arrived] = True
                self.last_ran[arrived] = self.round
            self.present &= self.work.leave_s > self.time_s
            if self.present.any():
                return True
            if not self.to_come.size:
                return False

    def step(self, policy: Policy) -> bool:
        """Simulate one round; returns whether anything ran."""
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
            found = type(assignment).__name__
            raise InvalidAssignmentError(f"round {self.round}: the policy returned {found}, not an Assignment")
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

    def _checked(self, assignment: Assignment) -> tuple[Held, Array, _Record]:
        """Return who holds what by an assignment, their rates in iterations per second, and what is recorded of it."""
        order = np.argsort(assignment.job * self.cluster.size + assignment.server, kind="stable")
        parts = (assignment.job, assignment.server, assignment.gpus)
        entries = self.kernels.Entries(*(np.asarray(part, np.int64)[order] for part in parts))
        fault, where, first, rate, mixed = self.kernels.examine(
            entries, self.present, self.limits, self.rules.spread_factor, self.rules.forks
        )
        self._refuse(fault, where)
        jobs = entries.job[first[:-1]]
        cpus, memory_gb, offered = _NO, _NO, _NONE
        if self.tables:
            shares = assignment.shares
            if shares is None:
                raise InvalidAssignmentError(f"round {self.round}: the policy gives out no CPUs and memory")
            cpus, memory_gb = (np.asarray(part, float)[order] for part in (shares.cpus, shares.memory_gb))
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
        return self.kernels.Held(entries.server, entries.gpus, first, jobs), rate * speed, record

    def _refuse(self, fault: int, where: int) -> None:
        """Raise what an examination found, if anything, about the job or server `where`."""
        if not fault:
            return
        name = self.work.ids[where] if 0 <= where < self.work.size else ""
        host = self.cluster.names[where] if 0 <= where < self.cluster.size else ""
        told = (
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
        )
        raise InvalidAssignmentError(f"round {self.round}: {told[fault - 1]}")

    def trace(self, stalled: bool) -> Trace:
        """Return the records as arrays; `stalled` says that the simulation was given up."""
        late = history.STALLED if stalled else history.HORIZON
        why = np.where(self.work.leave_s <= self.time_s, history.LEFT, late)
        why = np.where(self.possible, why, history.IMPOSSIBLE)
        why[np.isfinite(self.progress.completion_s)] = ""
        rounds = zip(_Record(), *self.log, strict=True)
        return Trace(
            workload=self.work,
            servers=self.cluster,
            rules=self.rules,
            completion_s=self.progress.completion_s,
            first_start_s=self.progress.first_start_s,
            unfinished=tuple(text or None for text in why.tolist()),
            **{name: _stacked(*parts) for name, parts in zip(_Record._fields, rounds, strict=True)},
        )


def _stacked(nothing: Any, *rounds: Any) -> Any:
    """Return the parts of all rounds as one array like `nothing`; tables begin with the number of the round."""
    if isinstance(nothing, tuple):
        number = np.repeat(np.arange(len(rounds)), [part[0].size for part in rounds])
        return np.column_stack([number, *map(np.concatenate, zip(nothing, *rounds, strict=True))])
    return np.concatenate([nothing, *rounds]) if isinstance(nothing, np.ndarray) else np.array(rounds, type(nothing))
