"""Hadar's P2 (eq. 2–2c) over all schedules of a tiny instance, its LP relaxation, and its dual P3 (eq. 3–3a).

Even tiny instances have too many schedules: the three jobs of Fig. 1 have 214,000 in 8 slots. The relaxation needs
only schedules with extreme mixes of types, and its prices exclude most others from an optimum (:func:`enumerated`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.views.hadar import COMPLETE, UTILITY, HadarSchedule, HadarView, placed
from schedgap.models.engine.solve import Solution, SolveOptions, TracePoint, build, checked, compile_model, solvers
from schedgap.models.engine.statements import bounding, grouped
from schedgap.models.hadar.common import nobody_completes, somebody_rejected
from schedgap.models.hadar.schedules import LeastPayoffs, Schedules, schedules
from schedgap.models.registry import Outcome, model, no_decision, solve_built, total

SLACK = 0.01
"""Slack of the first round, as a fraction of the relaxation's optimum; each round at most doubles the slack."""

TIES = 1e-6
"""Error of the relaxation's prices that is allowed for, as a fraction of the relaxation's optimum."""

EXAMPLE = "paper/hadar-fig1?slot_s=2"
"""Fig. 1 with half the slots."""


def _common(view: HadarView, columns: Schedules) -> pyo.ConcreteModel:
    """Build the sets and parameters that P2 and P3 share: jobs, schedules, pairs of slot and type, and GPUs."""
    m = pyo.ConcreteModel()
    cells = list(zip(columns.slot.tolist(), columns.gpu_type.tolist(), strict=True))
    m.JOBS = pyo.Set(initialize=view.possible.tolist())
    m.SCHEDULES = pyo.RangeSet(0, len(columns.job) - 1)
    m.CELLS = pyo.Set(dimen=2, initialize=sorted(set(cells)))
    m.USES = pyo.Set(dimen=3, initialize=[(s, *cell) for s, cell in zip(columns.schedule.tolist(), cells, strict=True)])
    m.gpus = pyo.Param(m.USES, initialize=dict(zip(m.USES, columns.gpus.tolist(), strict=True)))
    m.utility = pyo.Param(m.SCHEDULES, initialize=dict(enumerate(columns.utility.tolist())))
    m.capacity = pyo.Param(range(len(view.capacity)), initialize=dict(enumerate(view.capacity.tolist())))
    return m


def build_p2(view: HadarView, columns: Schedules, complete: bool = False, relaxed: bool = False) -> pyo.ConcreteModel:
    r"""Build P2: each job follows at most one of its schedules.

    Parameters
    ----------
    view, columns
        Jobs, slots, GPUs; the schedules to choose from.
    complete
        Whether every job completes (:math:`o_j = 0`), or jobs may be rejected.
    relaxed
        Whether jobs may follow fractions of schedules, :math:`y_{j,s} \ge 0`; schedules of extreme mixes of types then
        suffice.

    Notes
    -----
    - ``y`` :math:`y_{j,s} \in \{0, 1\}`: job j follows schedule s.
    - ``rejected`` :math:`o_j \in [0, 1]`: job j is rejected.

    .. math:: \max \sum_j \sum_s U_{j,s} \cdot y_{j,s} \tag{2}
    .. math:: \sum_j \sum_s w^{r,s}_{j,t} \cdot y_{j,s} \le C^r \quad \forall t, r \tag{2a} \label{capacity_2a}
    .. math:: \sum_s y_{j,s} + o_j = 1 \quad \forall j \tag{2b} \label{one_2b}

    (2b) is the paper's :math:`\le 1`, with the rejection as a separate column. The paper has a row (2a) for each server
    h, with :math:`w^{r,s}_{j,h}(t)` and :math:`c^r_h`. Here the rows of a type's servers are summed,
    :math:`w^{r,s}_{j,t} = \sum_h w^{r,s}_{j,h}(t)` and :math:`C^r = \sum_h c^r_h`: P2 has no cost per server, so GPUs
    given out by type fit on the servers, gang by gang, and the optimum is the same.

    Duals (of the relaxation): the variables of P3 (``hadar.p3``). The price of (2a) is the value of a GPU of type r in
    slot t; that of (2b) is the payoff of job j, the utility of its best schedule less the cost of its GPUs.
    """
    m = _common(view, columns)
    m.USERS = pyo.Set(m.CELLS, initialize=grouped(((t, r), s) for s, t, r in m.USES))
    own = grouped(zip(columns.job.tolist(), m.SCHEDULES, strict=True))
    m.OWN = pyo.Set(m.JOBS, initialize=dict.fromkeys(m.JOBS, ()) | own)
    # An upper bound of 1 would absorb some of the payoffs; 2 never binds, and keeps an early bound finite.
    m.y = pyo.Var(m.SCHEDULES, domain=pyo.Reals if relaxed else pyo.Binary, bounds=(0, 2 if relaxed else 1))
    # Rejecting a job is a separate column: (2b) is then an equation with at least one variable under both rules.
    m.rejected = pyo.Var(m.JOBS, bounds=(0, int(not complete)))

    @m.Constraint(m.CELLS)
    def capacity_2a(m: Any, t: int, r: int) -> Any:
        return sum(m.gpus[s, t, r] * m.y[s] for s in m.USERS[t, r]) <= m.capacity[r]

    @m.Constraint(m.JOBS)
    def one_2b(m: Any, j: int) -> Any:
        return sum(m.y[s] for s in m.OWN[j]) + m.rejected[j] == 1

    m.total = pyo.Objective(rule=lambda m: sum(m.utility[s] * m.y[s] for s in m.SCHEDULES), sense=pyo.maximize)
    return m


def build_p3(view: HadarView, columns: Schedules) -> pyo.ConcreteModel:
    r"""Build P3, the dual of P2: GPU prices and job payoffs at which no schedule pays more than its job's payoff.

    - ``price`` :math:`k^r_t \ge 0`: price of a GPU of type r in slot t.
    - ``payoff`` :math:`\mu_j \ge 0`: payoff of job j.

    .. math:: \min \sum_j \mu_j + \sum_t \sum_r C^r \cdot k^r_t \tag{3}
    .. math:: \mu_j \ge U_{j,s} - \sum_t \sum_r w^{r,s}_{j,t} \cdot k^r_t \quad \forall j, s \tag{3a} \label{payoff_3a}

    The paper's price :math:`k^r_h(t)` has a server h, too. Servers of a type are summed, as in P2, and have one price.

    At an optimum :math:`\mu_j = \max(0, \max_s \varphi_j(s))`, with :math:`\varphi_j(s)` the right-hand side of (3a).

    Duals: that of (3a) is the share of schedule s in the relaxation of P2. The value at any feasible prices bounds P2
    and P1 (weak duality).

    *Erratum.* Definition 1 lets a price rise by at most the fraction :math:`\alpha \Delta\gamma/c` of itself when
    :math:`\Delta\gamma` of c GPUs are taken. With :math:`\alpha = \ln(U_{\max}/U_{\min})` and steps of whole GPUs, no
    price function gets from :math:`U_{\min}` to :math:`U_{\max}`, since :math:`(1 + \alpha/c)^c < e^\alpha`.
    """
    m = _common(view, columns)
    m.HELD = pyo.Set(m.SCHEDULES, dimen=2, initialize=grouped((u[0], u[1:]) for u in m.USES))
    m.PAIRS = pyo.Set(dimen=2, initialize=list(enumerate(columns.job.tolist())))
    m.price = pyo.Var(m.CELLS, domain=pyo.NonNegativeReals)
    m.payoff = pyo.Var(m.JOBS, domain=pyo.NonNegativeReals)

    @m.Constraint(m.PAIRS)
    def payoff_3a(m: Any, s: int, j: int) -> Any:
        return m.payoff[j] + sum(m.gpus[s, t, r] * m.price[t, r] for t, r in m.HELD[s]) >= m.utility[s]

    @m.Objective(sense=pyo.minimize)
    def total(m: Any) -> Any:
        return sum(m.payoff[j] for j in m.JOBS) + sum(m.capacity[r] * m.price[t, r] for t, r in m.CELLS)

    return m


def decode(view: HadarView, model: pyo.ConcreteModel, solution: Solution) -> HadarSchedule:
    """Return the schedule of an incumbent of P2."""
    chosen = solution.array(model.y) > 0.5
    owner = {s: j for j in model.JOBS for s in model.OWN[j] if chosen[s]}
    held = [(owner[s], t, r, model.gpus[s, t, r]) for s, t, r in model.USES if s in owner]
    return placed(view, *np.array(held, np.int64).reshape(-1, 4).T)


def relax(view: HadarView, options: SolveOptions, complete: bool = False) -> Solution:
    """Solve the LP relaxation of P2 over the schedules of extreme mixes; its optimum equals that over all schedules."""
    builder = _builder(complete, relaxed=True)
    return solve_built(builder, no_decision, view, options).solution


def _builder(complete: bool, relaxed: bool = False) -> Callable[[HadarView], pyo.ConcreteModel]:
    return wraps(build_p2)(lambda view: build_p2(view, schedules(view, extreme=relaxed), complete, relaxed))


def prices(view: HadarView, relaxed: Solution, slack: float) -> LeastPayoffs:
    """Return the GPU prices of a solved relaxation, and each job's payoff less `slack` as its least payoff."""
    gpu = np.zeros((view.slots, len(view.capacity)))
    payoff = np.zeros(view.size)
    assert relaxed.row_duals is not None
    for row, dual in zip(relaxed.rows, relaxed.row_duals.tolist(), strict=True):
        if row.parent_component() is relaxed.model.capacity_2a:
            gpu[row.index()] = max(dual, 0.0)
        else:
            payoff[row.index()] = dual
    return LeastPayoffs(gpu, payoff - slack)


def enumerated(complete: bool) -> Callable[[HadarView, SolveOptions], Outcome]:
    """Return the procedure that solves P2 under one rule: every job completes, or jobs may be rejected."""

    def procedure(view: HadarView, options: SolveOptions) -> Outcome:
        """Solve the relaxation, then P2 over the schedules that an optimum can contain at its prices.

        The relaxation needs schedules of extreme mixes only. At its prices, if a solution contains a schedule whose
        payoff is more than a slack below that of its job, its value is below the relaxation's optimum less the slack.
        If the best solution without such schedules reaches that value, it is optimal; otherwise the slack grows, at
        most to the relaxation's optimum, since no solution has a value below 0. Of the 214,000 schedules of Fig. 1 in 8
        slots this keeps 266.
        """
        began = clock.now()
        relaxed = relax(view, options, complete)
        if relaxed.status != "optimal" or relaxed.objective is None:
            if relaxed.status == "time limit with incumbent":
                relaxed = replace(relaxed, status="time limit without incumbent", objective=None, column_values=None)
            return Outcome(relaxed, None)
        optimum, times, slack = relaxed.objective, [relaxed.times], SLACK * relaxed.objective
        while True:
            columns = schedules(view, prices(view, relaxed, slack + TIES * optimum))
            model = build(build_p2, view, columns, complete)
            remaining = options.since(began)
            # Without presolve: with it, HiGHS finds no schedule in many times the time that it needs without.
            solution = solvers.highs(compile_model(model), remaining, presolve="off")
            solution = checked(solution, remaining, build_p2, view, columns, complete)
            times.append(solution.times)
            # Every solution with a schedule that was left out has a value below this.
            excluded = optimum * (1 - TIES) - slack
            done = slack >= optimum or (solution.objective is not None and solution.objective >= excluded)
            if done or solution.status not in {"optimal", "infeasible"}:
                break
            # The incumbent solves P2: a slack that reaches down to its value keeps every better solution.
            value = 0.0 if solution.objective is None else solution.objective
            slack = min(2 * slack, optimum - value)
        bound = solution.bound if done else min(optimum, max(solution.bound or optimum, excluded))
        last = TracePoint(clock.now() - began, solution.objective, bound)
        spent = total(*times)
        # Everything but the solves (enumeration, building) counts as building.
        spent = replace(spent, build_s=clock.now() - began - spent.transfer_s - spent.solve_s)
        solution = replace(solution, times=spent, bound=bound, trace=(last,))
        return Outcome(solution, decode(view, solution.model, solution) if solution.has_incumbent else None)

    return procedure


@wraps(build_p3)
def _build_p3(view: HadarView) -> pyo.ConcreteModel:
    return build_p3(view, schedules(view, extreme=True))


for _complete, _name, _problem in ((False, "", UTILITY), (True, ".complete", COMPLETE)):
    model(
        f"hadar.p2.enumerated{_name}",
        problem=_problem.id,
        decode=decode,
        source=f"Hadar §III-B, eq. (2)–(2c), {'every job completes' if _complete else 'jobs may be rejected'}",
        procedure=enumerated(_complete),
        skip=somebody_rejected if _complete else nobody_completes,
        example=EXAMPLE,
    )(_builder(_complete))
model(
    "hadar.p2.relaxed",
    problem=UTILITY.id,
    kind="relaxation",
    source="Hadar §III-B, LP relaxation of (2)–(2c) over all schedules",
    skip=nobody_completes,
    example=EXAMPLE,
)(_builder(False, relaxed=True))
model(
    "hadar.p3",
    problem=UTILITY.id,
    kind="bound",
    source="Hadar §III-B, eq. (3)–(3a), the dual of (2)'s relaxation",
    procedure=bounding(_build_p3),
    skip=nobody_completes,
    example=EXAMPLE,
)(_build_p3)
