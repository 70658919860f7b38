"""The admission ILP over all schedules of a tiny instance, and the dual (18a) of its relaxation as an LP."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.errors import TooManyError
from schedgap.instances.moldable import Runs
from schedgap.instances.views.admission import FROM_ARRIVAL, UTILITY, AdmissionView
from schedgap.models.engine import moldable
from schedgap.models.engine.solve import counted
from schedgap.models.engine.statements import bounding, followed, grouped, largest, matching
from schedgap.models.registry import model


def schedules(view: AdmissionView, problem: str) -> Runs:
    """Return all schedules with which jobs meet their deadlines, as the runs of one decision.

    Raises
    ------
    TooManyError
        If there are too many schedules.
    """
    return moldable.schedules(view.machines, view.options, view.first_start(problem), view.deadline)


def _common(view: AdmissionView, runs: Runs) -> pyo.ConcreteModel:
    """Return the part shared by the ILP and its dual: schedules, their utilities, and their use of servers by slot."""
    m = pyo.ConcreteModel()
    m.runs = runs
    m.JOBS = pyo.Set(initialize=np.unique(runs.job).tolist())
    m.SCHEDULES = pyo.RangeSet(0, len(runs.job) - 1)
    ends = runs.start + runs.slots
    worth = [float(view.utility(j)[end]) for j, end in zip(runs.job.tolist(), ends.tolist(), strict=True)]
    m.f = pyo.Param(m.SCHEDULES, initialize=dict(enumerate(worth)))
    m.C = pyo.Param(
        range(view.machines.size),
        range(len(view.machines.resources)),
        initialize={at: float(room) for at, room in np.ndenumerate(view.machines.capacity)},
    )
    kinds = (runs.worker_type[runs.run], len(view.machines.worker_types) + runs.ps_type[runs.run])
    for held, cells, at, kind, number in (
        ("y", "WORKERS", "RUNNING", kinds[0], runs.workers),
        ("z", "SERVERS", "SERVING", kinds[1], runs.ps),
    ):
        nonzero = np.flatnonzero(number)
        keys = zip(runs.run[nonzero].tolist(), runs.server[nonzero].tolist(), kind[nonzero].tolist(), strict=True)
        use = dict(zip(keys, number[nonzero].tolist(), strict=True))
        times = {k: range(int(runs.start[k]), int(ends[k])) for k, _, _ in use}
        holds = [(k, (s, r, t)) for k, s, r in use for t in times[k]]
        setattr(m, f"{held}_USES", pyo.Set(dimen=3, initialize=list(use)))
        setattr(m, held, pyo.Param(getattr(m, f"{held}_USES"), initialize=use))
        setattr(m, cells, pyo.Set(dimen=3, initialize=sorted({cell for _, cell in holds})))
        setattr(m, at, pyo.Set(m.SCHEDULES, dimen=3, initialize=grouped(holds)))
    return m


def build_offline(view: AdmissionView, problem: str = UTILITY.id, relaxed: bool = False) -> pyo.ConcreteModel:
    r"""Return the ILP over schedules, which decides which jobs are admitted, and which schedule each of them follows.

    Parameters
    ----------
    view, problem
        Jobs and servers; whether the arrival slot may be used.
    relaxed
        Whether to relax integrality.

    Notes
    -----
    - ``x`` :math:`x_l \in \{0, 1\}`: schedule l is followed.

    .. math:: \max \sum_j \sum_{l \in L_j} f_j(\hat{t}_l - r_j) \cdot x_l
    .. math:: \sum_{l \colon t \in T(l)} y_{l,s,w} \cdot x_l \le C_{sw} \quad \forall s, w, t \label{workers}
    .. math:: \sum_{l \colon t \in T(l)} z_{l,s,p} \cdot x_l \le C_{sp} \quad \forall s, p, t \label{servers}
    .. math:: \sum_{l \in L_j} x_l \le 1 \quad \forall j \label{one}

    Duals (of the relaxation): the variables of (18a), ``admission.dual``: the value of a worker or PS on a server in a
    slot.
    """
    runs = schedules(view, problem)
    m = _common(view, runs)
    m.RUN = pyo.Set(m.WORKERS, initialize=_turned(m.RUNNING, m.SCHEDULES))
    m.SERVE = pyo.Set(m.SERVERS, initialize=_turned(m.SERVING, m.SCHEDULES))
    m.OWN = pyo.Set(m.JOBS, initialize=grouped(zip(runs.job.tolist(), m.SCHEDULES, strict=True)))
    m.x = pyo.Var(m.SCHEDULES, domain=pyo.NonNegativeReals if relaxed else pyo.Binary)

    @m.Constraint(m.WORKERS)
    def workers(m: Any, s: int, w: int, t: int) -> Any:
        return sum(m.y[k, s, w] * m.x[k] for k in m.RUN[s, w, t]) <= m.C[s, w]

    @m.Constraint(m.SERVERS)
    def servers(m: Any, s: int, p: int, t: int) -> Any:
        return sum(m.z[k, s, p] * m.x[k] for k in m.SERVE[s, p, t]) <= m.C[s, p]

    @m.Constraint(m.JOBS)
    def one(m: Any, j: int) -> Any:
        return sum(m.x[k] for k in m.OWN[j]) <= 1

    m.total = pyo.Objective(rule=lambda m: sum(m.f[k] * m.x[k] for k in m.SCHEDULES), sense=pyo.maximize)
    counted(m, ((rows[s, r, t], m.C[s, r]) for rows in (m.workers, m.servers) for s, r, t in rows))
    counted(m, [(m.total, largest(np.array(list(m.f.values()))))])
    return m


def _turned(held: Any, schedules: Any) -> dict[Any, list[int]]:
    return grouped((cell, k) for k in schedules for cell in held[k])


def build_dual(view: AdmissionView, problem: str = UTILITY.id) -> pyo.ConcreteModel:
    r"""Return (18a), the LP over prices and payoffs at which no schedule is worth more than its cost and payoff.

    - ``alpha`` :math:`\alpha_{s,w,t} \ge 0`: price of a worker of type w on server s in slot t.
    - ``beta`` :math:`\beta_{s,p,t} \ge 0`: price of a PS there.
    - ``mu`` :math:`\mu_j \ge 0`: payoff of job j.

    .. math:: \min \sum_j \mu_j + \sum_{s,w,t} C_{sw} \cdot \alpha_{s,w,t} + \sum_{s,p,t} C_{sp} \cdot \beta_{s,p,t}
    .. math:: \mu_j \ge f_j(\hat{t}_l - r_j) - \sum_{t \in T(l)} \sum_s \left( \sum_w \alpha_{s,w,t} \cdot y_{l,s,w}
        + \beta_{s,p,t} \cdot z_{l,s,p} \right) \quad \forall j, l \in L_j \tag{18a} \label{payoff_18a}

    Duals: that of (18a) is the share of schedule l in the ILP's relaxation.
    """
    runs = schedules(view, problem)
    m = _common(view, runs)
    m.PAIRS = pyo.Set(dimen=2, initialize=list(enumerate(runs.job.tolist())))
    m.alpha = pyo.Var(m.WORKERS, domain=pyo.NonNegativeReals)
    m.beta = pyo.Var(m.SERVERS, domain=pyo.NonNegativeReals)
    m.mu = pyo.Var(m.JOBS, domain=pyo.NonNegativeReals)

    @m.Constraint(m.PAIRS)
    def payoff_18a(m: Any, k: int, j: int) -> Any:
        workers = sum(m.y[k, s, w] * m.alpha[s, w, t] for s, w, t in m.RUNNING[k])
        return m.mu[j] + workers + sum(m.z[k, s, p] * m.beta[s, p, t] for s, p, t in m.SERVING[k]) >= m.f[k]

    @m.Objective(sense=pyo.minimize)
    def total(m: Any) -> Any:
        workers = sum(m.C[s, w] * m.alpha[s, w, t] for s, w, t in m.WORKERS)
        return sum(m.mu[j] for j in m.JOBS) + workers + sum(m.C[s, p] * m.beta[s, p, t] for s, p, t in m.SERVERS)

    unit = largest(np.array(list(m.f.values())))
    counted(m, [(m.mu, unit), (m.payoff_18a, unit), (m.total, unit)])
    counted(m, ((prices[s, r, t], unit / m.C[s, r]) for prices in (m.alpha, m.beta) for s, r, t in prices))
    return m


def _none_in_time(view: AdmissionView, problem: str) -> str | None:
    times = moldable.starts(view.options, view.first_start(problem), view.deadline)
    return None if times.any() else "no job can meet its deadline"


def _too_many(view: AdmissionView, problem: str) -> str | None:
    try:
        schedules(view, problem)
    except TooManyError as error:
        return str(error)
    return None


for _name, _problem, _start in (
    ("", UTILITY.id, "starts after the arrival slot"),
    (".from_arrival", FROM_ARRIVAL.id, "starts from the arrival slot on"),
):
    model(
        f"admission.offline{_name}",
        problem=_problem,
        decode=followed,
        start=matching,
        source=f"walk-through, the ILP over schedules, {_start}",
        skip=partial(_none_in_time, problem=_problem),
        too_large=partial(_too_many, problem=_problem),
        example="paper/walkthrough",
    )(partial(build_offline, problem=_problem))
model(
    "admission.dual",
    problem=UTILITY.id,
    kind="bound",
    source="walk-through, (18a), the dual of the ILP's relaxation",
    procedure=bounding(build_dual),
    skip=partial(_none_in_time, problem=UTILITY.id),
    too_large=partial(_too_many, problem=UTILITY.id),
    example="paper/walkthrough",
)(build_dual)
