"""Hadar's P1 (eq. 1–1e) as a MILP without big-M, with capacity by GPU type or by server.

A *place* is where GPUs are: a type (P1 has no cost of spreading, so capacity adds up) or a server. See the package's
docstring for sets, variables and constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import Ints
from schedgap.instances.views.hadar import COMPLETE, ROUNDING, UTILITY, Schedule, View, placed
from schedgap.models.hadar.common import add_finish, maximise_utility, nobody_completes, somebody_rejected, usable
from schedgap.models.registry import MODELS, ModelSpec
from schedgap.models.solve import Solution

LARGEST = 6_000
"""Binaries and integers up to which P1 runs unasked: 20 jobs in 72 slots have 6,600, and take HiGHS a minute."""

WORK = 1e3
"""Units that a job's whole work counts in (1a): a solver's absolute tolerance of 1e-6 is then 1e-9 of the work."""


@dataclass(frozen=True, eq=False)
class Places:
    """``p`` places: GPU type and GPUs of each, ``(p,)``."""

    gpu_type: Ints
    gpus: Ints

    @staticmethod
    def by_type(view: View) -> Places:
        """Return one place per GPU type."""
        return Places(np.arange(len(view.capacity)), view.capacity)

    @staticmethod
    def by_server(view: View) -> Places:
        """Return one place per server."""
        return Places(view.servers.gpu_type, view.servers.gpus)


@dataclass(frozen=True, eq=False)
class _Index:
    """Index sets of P1, as plain lists: who may do what where and when."""

    view: View
    places: Places

    @cached_property
    def jobs(self) -> list[int]:
        return [int(j) for j in self.view.possible]

    @cached_property
    def levels(self) -> dict[int, list[int]]:
        """Slowest types ``k`` a job's gang may have: one of each rate, where enough GPUs are as fast."""
        found = {}
        for j in self.jobs:
            rates, gpus = self.view.workload.rates[j], self.view.workload.gpus[j]
            types = {float(rates[r]): int(r) for r in usable(self.view, j)}
            fits = [k for x, k in sorted(types.items()) if self.view.capacity[rates >= x].sum() >= gpus]
            # A type on which all slots together do less than is rounded away is as good as none.
            found[j] = [k for k in fits if self.part(j, k) * self.view.slots > ROUNDING]
        return found

    def part(self, job: int, level: int) -> float:
        """Part of a job's work that a slot does, at most all of it."""
        return min(1.0, float(self.view.progress[job, level] / self.view.workload.work[job]))

    @cached_property
    def hosts(self) -> dict[int, list[int]]:
        """Places ``r`` whose GPUs a job can use."""
        able = {j: np.isin(self.places.gpu_type, usable(self.view, j)) & (self.places.gpus > 0) for j in self.jobs}
        return {j: np.flatnonzero(mask).tolist() for j, mask in able.items()}

    @cached_property
    def below(self) -> dict[tuple[int, int], list[int]]:
        """Slowest types at which a job may use a place: those at or below the place's own rate."""
        rates = self.view.workload.rates
        return {
            (j, p): [k for k in self.levels[j] if rates[j, k] <= rates[j, self.places.gpu_type[p]]]
            for j in self.jobs
            for p in self.hosts[j]
        }

    @cached_property
    def window(self) -> list[tuple[int, int]]:
        return [(j, t) for j in self.jobs for t in range(int(self.view.arrival[j]), self.view.slots)]

    @cached_property
    def users(self) -> dict[tuple[int, int], list[int]]:
        """Jobs that may use a place in a slot; places that can never be overfull are left out."""
        found: dict[tuple[int, int], list[int]] = {}
        for j, t in self.window:
            for p in self.hosts[j]:
                found.setdefault((t, p), []).append(j)
        gpus = self.view.workload.gpus
        return {(t, p): jobs for (t, p), jobs in found.items() if gpus[jobs].sum() > self.places.gpus[p]}


def build_p1(view: View, places: Places, complete: bool = False) -> pyo.ConcreteModel:
    """Return P1.

    Parameters
    ----------
    view
        Jobs, slots, GPUs.
    places
        Where GPUs are counted.
    complete
        Whether every job completes, as the paper prints (1a), or may be rejected.
    """
    index, work = _Index(view, places), view.workload
    m = pyo.ConcreteModel()
    add_finish(m, view, complete)
    m.arrival = pyo.Param(m.JOBS, initialize={j: int(view.arrival[j]) for j in index.jobs})
    m.WINDOW = pyo.Set(dimen=2, initialize=index.window)
    m.LEVELS = pyo.Set(m.JOBS, initialize=index.levels)
    m.HOSTS = pyo.Set(m.JOBS, initialize=index.hosts)
    m.RUN = pyo.Set(dimen=3, initialize=[(j, t, k) for j, t in index.window for k in index.levels[j]])
    m.HOLD = pyo.Set(dimen=3, initialize=[(j, t, p) for j, t in index.window for p in index.hosts[j]])
    m.BELOW = pyo.Set(list(index.below), initialize=index.below)
    m.USERS = pyo.Set(list(index.users), initialize=index.users)
    m.gang = pyo.Param(m.JOBS, initialize={j: int(work.gpus[j]) for j in index.jobs})
    most = {(j, p): int(min(work.gpus[j], places.gpus[p])) for j, p in index.below}
    m.most = pyo.Param(list(most), initialize=most)
    part = {(j, k): WORK * index.part(j, k) for j in index.jobs for k in index.levels[j]}
    m.part = pyo.Param(list(part), initialize=part)
    m.gpus = pyo.Param(range(len(places.gpus)), initialize=dict(enumerate(places.gpus.tolist())))
    m.z = pyo.Var(m.RUN, domain=pyo.Binary)
    m.w = pyo.Var(m.HOLD, domain=pyo.NonNegativeIntegers, bounds=lambda m, j, t, p: (0, m.most[j, p]))

    @m.Constraint(m.WINDOW)
    def gang_1e(m: Any, j: int, t: int) -> Any:
        held = sum(m.w[j, t, p] for p in m.HOSTS[j])
        return held == m.gang[j] * sum(m.z[j, t, k] for k in m.LEVELS[j])

    @m.Constraint(m.HOLD)
    def slowest_1b(m: Any, j: int, t: int, p: int) -> Any:
        return m.w[j, t, p] <= m.most[j, p] * sum(m.z[j, t, k] for k in m.BELOW[j, p])

    _add_work(m)
    _add_times(m)

    if index.users:

        @m.Constraint(list(index.users))
        def capacity_1d(m: Any, t: int, p: int) -> Any:
            return sum(m.w[j, t, p] for j in m.USERS[t, p]) <= m.gpus[p]

    return maximise_utility(m)


def _add_work(m: pyo.ConcreteModel) -> None:
    """Add (1a) for every slot: what is finished by then is done by then; the last slot's row is the paper's.

    With the last row alone a fraction of a job may finish before its work is begun: 20 jobs in 72 slots are then not
    solved after 120 s (902 nodes), with all rows they are after 56 s (15 nodes).
    """
    before = {(j, m.arrival[j] - 1) for j in m.JOBS}
    m.done = pyo.Var(before | set(m.WINDOW), bounds=lambda m, j, t: (0, 0 if t < m.arrival[j] else None))

    @m.Constraint(m.WINDOW)
    def done_by(m: Any, j: int, t: int) -> Any:
        return m.done[j, t] == m.done[j, t - 1] + sum(m.part[j, k] * m.z[j, t, k] for k in m.LEVELS[j])

    @m.Constraint(m.FINISH)
    def work_1a(m: Any, j: int, t: int) -> Any:
        finished = m.pending[j, m.first[j]] - m.pending[j, t + 1]
        return m.done[j, t] >= WORK * (1 - ROUNDING) * finished


def _add_times(m: pyo.ConcreteModel) -> None:
    """Add (1c): a job runs no later than its last slot, and in its last slot."""
    until = {(j, t): max(t, m.first[j]) for j, t in m.WINDOW}
    m.until = pyo.Param(m.WINDOW, initialize=until, within=pyo.Integers)

    @m.Constraint(m.WINDOW)
    def until_last_1c(m: Any, j: int, t: int) -> Any:
        return sum(m.z[j, t, k] for k in m.LEVELS[j]) <= m.pending[j, m.until[j, t]]

    # Not in the paper: without it an incumbent may count a job as later than it is, and no checker would agree.
    @m.Constraint(m.FINISH)
    def runs_last(m: Any, j: int, t: int) -> Any:
        return m.v[j, t] <= sum(m.z[j, t, k] for k in m.LEVELS[j])


def decode(by_server: bool) -> Callable[[View, pyo.ConcreteModel, Solution], Schedule]:
    """Return the function that reads the schedule of an incumbent."""

    def read(view: View, model: pyo.ConcreteModel, solution: Solution) -> Schedule:
        gpus = np.rint(solution.array(model.w)).astype(np.int64)
        job, slot, place = np.array(list(model.w.keys()), np.int64).reshape(-1, 3)[gpus > 0].T
        gpus = gpus[gpus > 0]
        return Schedule(job, slot, place, gpus) if by_server else placed(view, job, slot, place, gpus)

    return read


def _too_large(places: Callable[[View], Places]) -> Callable[[View], str | None]:
    def reason(view: View) -> str | None:
        index = _Index(view, places(view))
        runs = sum(len(index.levels[j]) for j, _ in index.window)
        holds = sum(len(index.hosts[j]) for j, _ in index.window)
        if runs + holds <= LARGEST:
            return None
        return (
            f"{runs:,} binaries and {holds:,} integers, more than {LARGEST:,}; hadar.p2.columns bounds the same optimum"
        )

    return reason


def _register(name: str, places: Callable[[View], Places], complete: bool, source: str) -> None:
    MODELS.register(
        ModelSpec(
            id=f"hadar.{name}",
            paper="hadar",
            problem=COMPLETE.id if complete else UTILITY.id,
            kind="exact",
            build=lambda view: build_p1(view, places(view), complete),
            decode=decode(places is Places.by_server),
            source=source,
            skip=somebody_rejected if complete else nobody_completes,
            too_large=_too_large(places),
        )
    )


_register("p1", Places.by_type, False, "Hadar §III-A, eq. (1)–(1e), jobs may be rejected; capacity by type")
_register("p1.complete", Places.by_type, True, "Hadar §III-A, eq. (1)–(1e), every job completes; capacity by type")
_register("p1.per_server", Places.by_server, False, "Hadar §III-A, eq. (1)–(1e), jobs may be rejected; by server")
