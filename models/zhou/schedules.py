"""Zhou's ILP over all schedules (8), (17) of a tiny instance, its relaxation, and its dual (9), (18) as its own LP."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import ROUNDING, SLACK, Array, Ints
from schedgap.instances.errors import TooManyError
from schedgap.instances.views.zhou import Architecture, ZhouSchedule, ZhouView
from schedgap.models.engine import moldable
from schedgap.models.engine.solve import counted
from schedgap.models.engine.statements import bounding, followed, grouped, largest, matching
from schedgap.models.registry import model, no_decision
from schedgap.models.zhou.common import TINIER, TINY, horizon, skip


def schedules(a: Architecture, earliest: Ints, end: int) -> ZhouSchedule:
    """Return all schedules that start in slots `earliest` ``(n,)`` or later and complete by the beginning of `end`.

    They are the runs of one decision.

    Raises
    ------
    TooManyError
        If there are too many schedules to enumerate.
    """
    return ZhouSchedule(**vars(moldable.schedules(a.machines, a.options, earliest, end)))


def offline_schedules(a: Architecture) -> ZhouSchedule:
    """Return enough schedules of all jobs to contain an optimal solution in which every job completes."""
    return schedules(a, a.arrival, horizon(a))


def weight_schedules(a: Architecture, deadline: int | None = None) -> ZhouSchedule:
    """Return the schedules that start from slot 1 on and complete by slot τ, by default the architecture's deadline."""
    return schedules(a, np.ones_like(a.arrival), a.deadline if deadline is None else deadline)


def taken(a: Architecture, columns: ZhouSchedule) -> Array:
    """Return ``(e, R)`` the amounts of resources that each entry of schedules takes, the paper's ``f``."""
    use = columns.workers[:, None] * a.machines.worker[columns.worker_type[columns.run]]
    if a.id == "ps":
        use = use + columns.ps[:, None] * a.machines.ps[columns.ps_type[columns.run]]
    return np.asarray(use)


def _common(a: Architecture, columns: ZhouSchedule) -> pyo.ConcreteModel:
    """Build the sets and parameters that (8) and (9) share: schedules, resources in slots, weights and uses."""
    m = pyo.ConcreteModel()
    m.runs = columns
    m.JOBS = pyo.Set(initialize=np.unique(columns.job).tolist())
    m.SCHEDULES = pyo.RangeSet(0, len(columns.job) - 1)
    held, capacity = taken(a, columns), a.machines.capacity * (1 + SLACK)
    where = np.argwhere(held > ROUNDING * capacity[columns.server])
    use = {(int(columns.run[e]), int(columns.server[e]), int(r)): float(held[e, r]) for e, r in where}
    m.USES = pyo.Set(dimen=3, initialize=list(use))
    m.f = pyo.Param(m.USES, initialize=use)
    ends = (columns.start + columns.slots).tolist()
    times = [range(t, end) for t, end in zip(columns.start.tolist(), ends, strict=True)]
    m.HELD = pyo.Set(
        m.SCHEDULES,
        dimen=3,
        initialize=dict.fromkeys(m.SCHEDULES, ()) | grouped((k, (h, r, t)) for k, h, r in use for t in times[k]),
    )
    m.CELLS = pyo.Set(dimen=3, initialize=sorted({(h, r, t) for k, h, r in use for t in times[k]}))
    m.C = pyo.Param(m.CELLS, initialize={(h, r, t): float(capacity[h, r]) for h, r, t in m.CELLS})
    weight = a.weight[columns.job]
    m.weight = pyo.Param(m.SCHEDULES, initialize=dict(enumerate(weight.tolist())))
    m.cost = pyo.Param(m.SCHEDULES, initialize=dict(enumerate((weight * ends).tolist())))
    return m


def build_schedules(
    a: Architecture, columns: ZhouSchedule, complete: bool = False, relaxed: bool = False
) -> pyo.ConcreteModel:
    r"""Build (8) or (17): each job follows at most one schedule, for the largest weight completed by slot τ.

    Parameters
    ----------
    a, columns
        Jobs and servers; the schedules to choose from.
    complete
        Whether every job runs, at the least weighted completion time.
    relaxed
        Whether jobs may follow fractions of schedules (:math:`x_l \ge 0`).

    Notes
    -----
    - ``x`` :math:`x_l \in \{0, 1\}`: schedule l is followed.

    .. math:: \max \sum_j \sum_{l \in \Gamma_j} w_j \cdot x_l \tag{8, 17}
    .. math:: \sum_{l \colon t \in T(l)} f_{l,h,r} \cdot x_l \le C_h^r \quad \forall h, r, t
        \tag{8a, 17a} \label{capacity_8a}
    .. math:: \sum_{l \in \Gamma_j} x_l \le 1 \quad \forall j \tag{8b, 17b} \label{one_8b}

    and with `complete`, where :math:`c_l` is the completion time of l,

    .. math:: \min \sum_j \sum_{l \in \Gamma_j} w_j \cdot c_l \cdot x_l \tag{2, 15}
    .. math:: \sum_{l \in \Gamma_j} x_l = 1 \quad \forall j \tag{8b, 17b} \label{one_8b}

    Schedules have all PSs on one server. (2i) allows several, but each of these needs the bandwidth for all workers
    elsewhere, so more servers only cost more (:mod:`schedgap.instances.moldable.search`).

    Duals (of the relaxation): the variables of (9), (18), which are the models ``zhou.ps.dual`` and ``zhou.ra.dual``.
    """
    m = _common(a, columns)
    users = grouped((cell, k) for k in m.SCHEDULES for cell in m.HELD[k])
    m.USERS = pyo.Set(m.CELLS, initialize=users)
    m.OWN = pyo.Set(m.JOBS, initialize=grouped(zip(columns.job.tolist(), m.SCHEDULES, strict=True)))
    m.x = pyo.Var(m.SCHEDULES, domain=pyo.NonNegativeReals if relaxed else pyo.Binary)

    if users:  # Pyomo cannot make a template over an empty set

        @m.Constraint(m.CELLS)
        def capacity_8a(m: Any, h: int, r: int, t: int) -> Any:
            return sum(m.f[k, h, r] * m.x[k] for k in m.USERS[h, r, t]) <= m.C[h, r, t]

        counted(m, ((m.capacity_8a[cell], m.C[cell]) for cell in m.CELLS))

    @m.Constraint(m.JOBS)
    def one_8b(m: Any, j: int) -> Any:
        total = sum(m.x[k] for k in m.OWN[j])
        return total == 1 if complete else total <= 1

    value, sense = (m.cost, pyo.minimize) if complete else (m.weight, pyo.maximize)
    m.total = pyo.Objective(rule=lambda m: sum(value[k] * m.x[k] for k in m.SCHEDULES), sense=sense)
    counted(m, [(m.total, _unit(a, columns))])
    return m


def build_dual(a: Architecture, columns: ZhouSchedule) -> pyo.ConcreteModel:
    r"""Build (9) or (18): resource prices and job payoffs at which no schedule pays more than its job's payoff.

    - ``delta`` :math:`\delta_h^r(t) \ge 0`: price of resource r on server h in slot t.
    - ``u`` :math:`u_j \ge 0`: payoff of job j.

    .. math:: \min \sum_j u_j + \sum_h \sum_r \sum_t C_h^r \cdot \delta_h^r(t) \tag{9, 18}
    .. math:: u_j \ge w_j - \sum_{t \in T(l)} \sum_h \sum_r f_{l,h,r} \cdot \delta_h^r(t)
        \quad \forall j, l \in \Gamma_j \tag{9a, 18a} \label{payoff_9a}

    At an optimum :math:`u_j` is the largest right-hand side, or 0 (10).

    Duals: that of (9a) is the share of schedule l in the relaxation.
    """
    m = _common(a, columns)
    m.PAIRS = pyo.Set(dimen=2, initialize=list(enumerate(columns.job.tolist())))
    m.delta = pyo.Var(m.CELLS, domain=pyo.NonNegativeReals)
    m.u = pyo.Var(m.JOBS, domain=pyo.NonNegativeReals)

    @m.Constraint(m.PAIRS)
    def payoff_9a(m: Any, k: int, j: int) -> Any:
        return m.u[j] + sum(m.f[k, h, r] * m.delta[h, r, t] for h, r, t in m.HELD[k]) >= m.weight[k]

    @m.Objective(sense=pyo.minimize)
    def total(m: Any) -> Any:
        return sum(m.u[j] for j in m.JOBS) + sum(m.C[h, r, t] * m.delta[h, r, t] for h, r, t in m.CELLS)

    unit = _unit(a, columns)
    counted(m, [(m.u, unit), (m.payoff_9a, unit), (m.total, unit)])
    counted(m, ((m.delta[cell], unit / m.C[cell]) for cell in m.CELLS))
    return m


def _unit(a: Architecture, columns: ZhouSchedule) -> float:
    """Return the unit of the objective: the largest weight of a job that has schedules.

    In units of a heavier job that cannot run, the weights of the others might be too small for the solver.
    """
    return largest(a.weight[columns.job])


def _register(name: str) -> None:
    """Register (8), its variants and (9) for an architecture."""

    def candidates(view: ZhouView, complete: bool) -> ZhouSchedule:
        return (offline_schedules if complete else weight_schedules)(view.architectures[name])

    def too_many(view: ZhouView, complete: bool) -> str | None:
        try:
            candidates(view, complete)
        except TooManyError as error:
            return f"{error}; zhou.{name}.columns makes them as needed"
        return None

    def primal(complete: bool = False, relaxed: bool = False) -> Callable[[ZhouView], pyo.ConcreteModel]:
        return wraps(build_schedules)(
            lambda view: build_schedules(view.architectures[name], candidates(view, complete), complete, relaxed)
        )

    @wraps(build_dual)
    def dual(view: ZhouView) -> pyo.ConcreteModel:
        return build_dual(view.architectures[name], candidates(view, False))

    where, ilp, lp = ("§5.1", "(8)–(8c)", "(9)–(9b)") if name == "ps" else ("§6.2", "(17)–(17c)", "(18)–(18b)")
    every = f"eq. {ilp}, every job completes, at the least weighted completion time (2)"
    for what, build, kind, complete, source in (
        ("schedules", primal(), "exact", False, f"eq. {ilp}"),
        ("schedules.offline", primal(complete=True), "exact", True, every),
        ("schedules.relaxed", primal(relaxed=True), "relaxation", False, f"LP relaxation of {ilp}"),
        ("dual", dual, "bound", False, f"eq. {lp}, the dual of its relaxation"),
    ):
        model(
            f"zhou.{name}.{what}",
            problem=f"zhou.{name}.{'completion' if complete else 'weight'}",
            kind=kind,
            decode=followed if kind == "exact" else no_decision,
            start=matching if kind == "exact" else None,
            source=f"Zhou et al., {where}, {source}",
            procedure=bounding(dual) if kind == "bound" else None,
            skip=skip(name),
            too_large=partial(too_many, complete=complete),
            example=TINIER if complete and name == "ps" else TINY,
        )(build)


for _name in ("ps", "ra"):
    _register(_name)
