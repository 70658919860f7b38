"""Hadar's P1 (eq. 1–1e) as a MILP without big-M, with capacity by GPU type or by server.

A *place* is where GPUs are counted: a GPU type (spreading costs nothing in P1, so capacity adds up) or a server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import ROUNDING, Ints
from schedgap.instances.parameters import Parameter
from schedgap.instances.views.hadar import BETA, COMPLETE, UTILITY, HadarSchedule, HadarView, placed
from schedgap.models.engine.gangs.progress import usable
from schedgap.models.engine.solve import Solution, counted
from schedgap.models.engine.statements import grouped
from schedgap.models.hadar.common import add_finish, nobody_completes, somebody_rejected
from schedgap.models.registry import Start, model

LARGEST = 6_000
"""Most binaries and integers with which P1 runs by default: HiGHS takes a minute for 6,600 (20 jobs in 72 slots)."""

WORK = 1e6
"""Units into which the work of a job is divided for the solver, so that its tolerances are a tiny part of the work."""


@dataclass(frozen=True, eq=False)
class Places:
    """``p`` places: GPU type, number of GPUs and index of the server of each, ``(p,)``."""

    gpu_type: Ints
    gpus: Ints
    server: Ints

    @staticmethod
    def by_type(view: HadarView) -> Places:
        """Return one place per GPU type."""
        types = np.arange(len(view.capacity))
        return Places(types, view.capacity, types)

    @staticmethod
    def by_server(view: HadarView) -> Places:
        """Return one place per server and GPU type on it."""
        return Places(view.servers.gpu_type, view.servers.gpus, view.servers.machine)


@dataclass(frozen=True, eq=False)
class _Index:
    """Index sets of P1 as plain lists: the slots, levels (paces) and places in which each job may run."""

    view: HadarView
    places: Places

    @cached_property
    def jobs(self) -> list[int]:
        return [int(j) for j in self.view.possible]

    @cached_property
    def levels(self) -> dict[int, list[int]]:
        """By job: the GPU types that may be the slowest of its gang, one for each rate that enough GPUs reach."""
        levels = {}
        for j in self.jobs:
            rates, gpus = self.view.workload.rates[j], self.view.workload.gpus[j]
            types = {float(rates[r]): int(r) for r in usable(self.view, j)}
            fits = [k for x, k in sorted(types.items()) if self.view.capacity[rates >= x].sum() >= gpus]
            # Drop types so slow that the work of all slots together vanishes in rounding.
            levels[j] = [
                k for k in fits if self.view.progress[j, k] * self.view.slots > ROUNDING * self.view.workload.work[j]
            ]
        return levels

    def rate(self, job: int, level: int) -> float:
        """Return the iterations per second of one GPU of type `level`, at most what does all work in a single slot."""
        enough = float(self.view.workload.work[job]) / (int(self.view.workload.gpus[job]) * self.view.slot_s)
        return min(enough, float(self.view.workload.rates[job, level]))

    @cached_property
    def hosts(self) -> dict[int, list[int]]:
        """By job: the places whose GPUs it can use."""
        able = {j: np.isin(self.places.gpu_type, usable(self.view, j)) & (self.places.gpus > 0) for j in self.jobs}
        return {j: np.flatnonzero(mask).tolist() for j, mask in able.items()}

    @cached_property
    def below(self) -> dict[tuple[int, int], list[int]]:
        """By job and place: the slowest types with which the job may use the place, those no faster than its GPUs."""
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
        """By slot and place: the jobs that may use the place; left out if all of them together fit there."""
        users = grouped(((t, p), j) for j, t in self.window for p in self.hosts[j])
        gpus = self.view.workload.gpus
        return {(t, p): jobs for (t, p), jobs in users.items() if gpus[jobs].sum() > self.places.gpus[p]}


def build_p1(view: HadarView, places: Places, complete: bool = False, beta: float = 0.0) -> pyo.ConcreteModel:
    r"""Build P1: the GPUs of each type that every gang holds in every slot, and the slot in which each job completes.

    Parameters
    ----------
    view
        Jobs, slots, GPUs.
    places
        Where GPUs are counted. By server, h and :math:`c_h` replace r and :math:`C^r`; the optimum is the same, because
        a gang loses nothing by spreading.
    complete
        Whether every job completes, as (1a) is printed, or jobs may be rejected.
    beta
        Cost of communication: utility that a gang loses per slot for every server beyond its first. In the paper it
        appears in Algorithm 2 only (line 29), without a formula, so 0 is the paper's P1. Needs places by server.

    Notes
    -----
    - ``z`` :math:`z_{j,t,k} \in \{0, 1\}`: job j runs in slot t, and its slowest type is k.
    - ``w`` :math:`w_{j,t,r} \in \{0, \ldots, \min(W_j, C^r)\}`: GPUs of type r that it holds in slot t.
    - ``x`` :math:`x_{j,t} \ge 0`: iterations per second of each of its GPUs in slot t, 0 where it does not run.
    - ``v`` :math:`v_{j,f} \in \{0, 1\}`: its last slot is f.
    - ``pending`` :math:`P_{j,t} \in [0, 1]`: whether its last slot is t or later.
    - ``done`` :math:`D_{j,t} \ge 0`: work done by the end of slot t.

    .. math:: \max \sum_j \sum_f U_j(f) \cdot v_{j,f} \tag{1}
    .. math:: D_{j,f} \ge E_j N_j \cdot \sum_{g \le f} v_{j,g} \quad \forall j, f \tag{1a} \label{work_1a}
    .. math:: D_{j,t} = D_{j,t-1} + x_{j,t} \cdot W_j \cdot L \quad \forall j, t \label{done_by}
    .. math:: x_{j,t} = \sum_k X_j^k \cdot z_{j,t,k} \quad \forall j, t \tag{1b} \label{rate_1b}
    .. math:: w_{j,t,r} \le \min(W_j, C^r) \cdot \sum_{k \colon X_j^k \le X_j^r} z_{j,t,k} \quad \forall j, t, r
        \tag{1b} \label{slowest_1b}
    .. math:: \sum_k z_{j,t,k} \le P_{j,t} \quad \forall j, t \tag{1c} \label{until_last_1c}
    .. math:: P_{j,t} = P_{j,t+1} + v_{j,t}, \quad P_{j,T+1} = 0 \quad \forall j, t \label{pending_from}
    .. math:: v_{j,f} \le \sum_k z_{j,f,k} \quad \forall j, f \label{runs_last}
    .. math:: \sum_j w_{j,t,r} \le C^r \quad \forall t, r \tag{1d} \label{capacity_1d}
    .. math:: \sum_r w_{j,t,r} = W_j \cdot \sum_k z_{j,t,k} \quad \forall j, t \tag{1e} \label{gang_1e}

    and with `complete`

    .. math:: P_{j,a_j} = 1 \quad \forall j \tag{1a} \label{everybody}

    With `beta`, h stands for the GPUs of one type in a server i(h), and ``on`` :math:`o_{j,t,i} \in \{0, 1\}` is 1 if
    job j holds GPUs of server i in slot t:

    .. math:: \max \sum_j \sum_f U_j(f) \cdot v_{j,f}
        - \beta \cdot \sum_j \sum_t (\sum_i o_{j,t,i} - \sum_k z_{j,t,k}) \tag{1}
    .. math:: w_{j,t,h} \le \min(W_j, c_h) \cdot o_{j,t,i(h)} \quad \forall j, t, h \label{on_server}
    .. math:: o_{j,t,i} \le \sum_{h \colon i(h) = i} w_{j,t,h} \quad \forall j, t, i \label{uses_server}

    ``uses_server`` keeps an incumbent from paying for a server that it does not use.

    (1a) is printed for the last slot only; the other rows keep a relaxation from finishing a fraction of a job before
    its work begins. (1b) expresses the minimum over types linearly, without big-M: a gang uses a type only if the
    gang's pace is at most the type's own. Naming a type slower than the slowest in use only loses progress, so the rows
    are exact at an optimum. ``runs_last`` is not in the paper: it makes a job run in its last slot, so that no
    incumbent counts the job as later than it is. (1d) is left out where all gangs fit at once.

    Duals (of the relaxation): one more GPU of type r in slot t adds at most the price of (1d) to the utility. Hadar's
    online prices (5) play this role.

    *Erratum.* Fig. 1: under (1e) no schedule of the three jobs finishes in 5 rounds; the minimum is 6. Gangs of 3, 2
    and 2 never fill 6 GPUs, so the 100 % utilisation shown for round 1 is impossible.
    """
    index = _Index(view, places)
    m = _declared(index, complete)
    cost = _add_communication(m, index, beta) if beta else 0
    m.total = pyo.Objective(expr=sum(m.utility[j, f] * m.v[j, f] for j, f in m.FINISH) - cost, sense=pyo.maximize)
    _add_work(m)

    @m.Constraint(m.WINDOW)
    def rate_1b(m: Any, j: int, t: int) -> Any:
        return m.x[j, t] == sum(m.X[j, k] * m.z[j, t, k] for k in m.LEVELS[j])

    @m.Constraint(m.HOLD)
    def slowest_1b(m: Any, j: int, t: int, p: int) -> Any:
        return m.w[j, t, p] <= m.most[j, p] * sum(m.z[j, t, k] for k in m.BELOW[j, p])

    parts = ((part[j, t], m.EN[j] / (WORK * m.W[j] * m.L)) for part in (m.x, m.rate_1b) for j, t in part)
    counted(m, parts)
    until = {(j, t): max(t, m.first[j]) for j, t in m.WINDOW}
    m.until = pyo.Param(m.WINDOW, initialize=until, within=pyo.Integers)

    @m.Constraint(m.WINDOW)
    def until_last_1c(m: Any, j: int, t: int) -> Any:
        return sum(m.z[j, t, k] for k in m.LEVELS[j]) <= m.pending[j, m.until[j, t]]

    # Not in the paper: without it an incumbent may count a job as later than it is, and a checker would disagree.
    @m.Constraint(m.FINISH)
    def runs_last(m: Any, j: int, t: int) -> Any:
        return m.v[j, t] <= sum(m.z[j, t, k] for k in m.LEVELS[j])

    if index.users:
        m.USERS = pyo.Set(list(index.users), initialize=index.users)

        @m.Constraint(list(index.users))
        def capacity_1d(m: Any, t: int, p: int) -> Any:
            return sum(m.w[j, t, p] for j in m.USERS[t, p]) <= m.c[p]

    @m.Constraint(m.WINDOW)
    def gang_1e(m: Any, j: int, t: int) -> Any:
        return sum(m.w[j, t, p] for p in m.HOSTS[j]) == m.W[j] * sum(m.z[j, t, k] for k in m.LEVELS[j])

    return m


def _declared(index: _Index, complete: bool) -> pyo.ConcreteModel:
    """Return a model with the sets, the data and the variables of P1, and the rows that say when jobs complete."""
    view, gpus, work = index.view, index.places.gpus, index.view.workload
    m = pyo.ConcreteModel()
    add_finish(m, view, complete)
    m.WINDOW = pyo.Set(dimen=2, initialize=index.window)
    m.LEVELS = pyo.Set(m.JOBS, initialize=index.levels)
    m.HOSTS = pyo.Set(m.JOBS, initialize=index.hosts)
    m.RUN = pyo.Set(dimen=3, initialize=[(j, t, k) for j, t in index.window for k in index.levels[j]])
    m.HOLD = pyo.Set(dimen=3, initialize=[(j, t, p) for j, t in index.window for p in index.hosts[j]])
    m.BELOW = pyo.Set(list(index.below), initialize=index.below)
    m.a = pyo.Param(m.JOBS, initialize={j: int(view.arrival[j]) for j in index.jobs})
    m.W = pyo.Param(m.JOBS, initialize={j: int(work.gpus[j]) for j in index.jobs})
    m.L = pyo.Param(initialize=view.slot_s)
    m.EN = pyo.Param(m.JOBS, initialize={j: float(work.work[j]) for j in index.jobs})
    rates = {(j, k): index.rate(j, k) for j in index.jobs for k in index.levels[j]}
    m.X = pyo.Param(list(rates), initialize=rates)
    m.c = pyo.Param(range(len(gpus)), initialize=dict(enumerate(gpus.tolist())))
    most = {(j, p): int(min(work.gpus[j], gpus[p])) for j, p in index.below}
    m.most = pyo.Param(list(most), initialize=most)
    m.w = pyo.Var(m.HOLD, domain=pyo.NonNegativeIntegers, bounds=lambda m, j, t, p: (0, m.most[j, p]))
    m.x = pyo.Var(m.WINDOW, domain=pyo.NonNegativeReals)
    m.z = pyo.Var(m.RUN, domain=pyo.Binary)
    return m


def _add_communication(m: pyo.ConcreteModel, index: _Index, beta: float) -> Any:
    """Add variables for the servers of a gang in every slot; return the cost of the servers beyond its first."""
    server = dict(enumerate(index.places.server.tolist()))
    own = grouped(((j, server[p]), p) for j in index.jobs for p in index.hosts[j])
    m.OF = pyo.Set(list(own), initialize=own)
    m.PARTS = pyo.Set(dimen=3, initialize=[(j, t, s) for j, t in index.window for i, s in own if i == j])
    m.server = pyo.Param(list(server), initialize=server, within=pyo.Integers)
    m.beta = pyo.Param(initialize=beta)
    m.on = pyo.Var(m.PARTS, domain=pyo.Binary)

    @m.Constraint(m.HOLD)
    def on_server(m: Any, j: int, t: int, p: int) -> Any:
        return m.w[j, t, p] <= m.most[j, p] * m.on[j, t, m.server[p]]

    @m.Constraint(m.PARTS)
    def uses_server(m: Any, j: int, t: int, s: int) -> Any:
        return m.on[j, t, s] <= sum(m.w[j, t, p] for p in m.OF[j, s])

    return m.beta * (sum(m.on[j, t, s] for j, t, s in m.PARTS) - sum(m.z[j, t, k] for j, t, k in m.RUN))


def _add_work(m: pyo.ConcreteModel) -> None:
    """Add (1a) for every slot: a job that has finished by a slot has done its work by then.

    With the last row alone, the relaxation is much weaker.
    """
    before = {(j, m.a[j] - 1) for j in m.JOBS}
    m.done = pyo.Var(before | set(m.WINDOW), bounds=lambda m, j, t: (0, 0 if t < m.a[j] else None))

    @m.Constraint(m.WINDOW)
    def done_by(m: Any, j: int, t: int) -> Any:
        return m.done[j, t] == m.done[j, t - 1] + m.x[j, t] * m.W[j] * m.L

    @m.Constraint(m.FINISH)
    def work_1a(m: Any, j: int, t: int) -> Any:
        return m.done[j, t] >= (1 - ROUNDING) * m.EN[j] * (m.pending[j, m.first[j]] - m.pending[j, t + 1])

    counted(m, ((part[j, t], m.EN[j] / WORK) for part in (m.done, m.done_by, m.work_1a) for j, t in part))


def decode(view: HadarView, model: pyo.ConcreteModel, solution: Solution, by_server: bool) -> HadarSchedule:
    """Return the schedule of an incumbent."""
    gpus = np.rint(solution.array(model.w)).astype(np.int64)
    job, slot, place = np.array(list(model.w.keys()), np.int64).reshape(-1, 3)[gpus > 0].T
    gpus = gpus[gpus > 0]
    return HadarSchedule(job, slot, place, gpus) if by_server else placed(view, job, slot, place, gpus)


def start(view: HadarView, model: pyo.ConcreteModel, decision: HadarSchedule, by_server: bool) -> Start | None:
    """Return the values of a schedule, or ``None`` if a gang is slower than every level of its job."""
    place = decision.server if by_server else view.servers.gpu_type[decision.server]
    rate = view.workload.rates[decision.job, view.servers.gpu_type[decision.server]]
    held: Counter[tuple[int, int, int]] = Counter()
    slowest: dict[tuple[int, int], float] = {}
    columns = (decision.job, decision.slot, place, decision.gpus, rate)
    for j, t, p, gpus, x in zip(*(column.tolist() for column in columns), strict=True):
        held[j, t, p] += gpus
        slowest[j, t] = min(x, slowest.get((j, t), x))
    levels = {(j, float(view.workload.rates[j, k])): k for j in model.JOBS for k in model.LEVELS[j]}
    if any((j, x) not in levels for (j, _), x in slowest.items()):
        return None
    last = dict(sorted(slowest))
    runs = {(j, t, levels[j, x]): 1.0 for (j, t), x in slowest.items()}
    return {"w": held, "z": runs, "v": dict.fromkeys(last.items(), 1.0)}


def _too_large(view: HadarView, places: Callable[[HadarView], Places]) -> str | None:
    index = _Index(view, places(view))
    runs = sum(len(index.levels[j]) for j, _ in index.window)
    holds = sum(len(index.hosts[j]) for j, _ in index.window)
    if runs + holds <= LARGEST:
        return None
    return f"{runs:,} binaries and {holds:,} integers, more than {LARGEST:,}; hadar.p2.columns bounds the same optimum"


def _register(
    name: str,
    places: Callable[[HadarView], Places],
    complete: bool,
    source: str,
    parameters: tuple[Parameter, ...] = (),
) -> None:
    model(
        f"hadar.{name}",
        problem=COMPLETE.id if complete else UTILITY.id,
        decode=partial(decode, by_server=places is Places.by_server),
        start=partial(start, by_server=places is Places.by_server),
        source=source,
        skip=somebody_rejected if complete else nobody_completes,
        too_large=partial(_too_large, places=places),
        example="paper/hadar-fig1",
        parameters=parameters,
    )(wraps(build_p1)(lambda view, beta=0.0: build_p1(view, places(view), complete, beta)))


_register("p1", Places.by_type, False, "Hadar §III-A, eq. (1)–(1e), jobs may be rejected; capacity by type")
_register("p1.complete", Places.by_type, True, "Hadar §III-A, eq. (1)–(1e), every job completes; capacity by type")
_register(
    "p1.per_server", Places.by_server, False, "Hadar §III-A, eq. (1)–(1e), jobs may be rejected; by server", (BETA,)
)
