"""The whole run as a fluid: a lower bound on the end of the last job, however CPUs and memory are given out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.views.synergy import MAKESPAN, View
from schedgap.models.simulated import bounds_simulations
from schedgap.models.solve import counted
from schedgap.models.synergy.configurations import capacity, configurations, fitting, units


@bounds_simulations(
    "synergy.makespan_fluid",
    "ttd_s",
    {"sensitive": True, "from_arrival": True},
    problem=MAKESPAN.id,
    kind="relaxation",
    source="after Synergy's LP1, eq. (1)–(3), over the whole run",
    example="paper/synergy-example",
)
def build_makespan(view: View) -> pyo.ConcreteModel:
    r"""Return the fluid makespan LP: how long the jobs of each kind are in which configuration.

    - :math:`k`: kinds of jobs; :math:`q \in Q_k` their configurations, CPUs and memory on a GPU type.
    - :math:`r`: resources, GPUs, CPUs and memory of every GPU type.
    - :math:`E_k`: iterations that all jobs of a kind have to do.
    - :math:`W_q`: iterations per second in configuration q.
    - :math:`n_{q,r}, N_r`: what q holds of resource r, and what there is.
    - :math:`a_j, p_j`: first round in which job j may run, and its duration at its fastest.
    - ``makespan`` :math:`M \ge \max_j (a_j + p_j)`: end of the last job. The model's unit of time is a round.
    - ``x`` :math:`x_q \ge 0`: time that jobs of the kind spend in configuration q, over all of them.

    .. math:: \min M
    .. math:: \sum_{q \in Q_k} W_q \cdot x_q \ge E_k \quad \forall k \label{work_done}
    .. math:: \sum_q n_{q,r} \cdot x_q \le N_r \cdot (M - \min_j a_j) \quad \forall r \label{resource_rounds}

    The last rows are (2) and (3) over the whole run. Any schedule gives such times: gangs hold a configuration at
    least, and advance at no more than its rate (between levels a gang advances as at the levels below, which hold less;
    one over several servers at the pace of its slowest GPU).

    Duals: those of the resources say which one makes the run as long as it is.
    """
    jobs = view.possible
    kind = view.profiles.kind[jobs]
    present = np.zeros((view.profiles.kinds, 1), bool)
    present[kind] = True
    held = configurations(view, fitting(view) & present)
    work = np.bincount(kind, view.workload.work[jobs], view.profiles.kinds)
    part = held.rate * view.slot_s / work[held.kind]
    best = np.zeros(view.profiles.kinds)
    np.maximum.at(best, held.kind, held.rate)
    alone = view.workload.work[jobs] / (best[kind] * view.slot_s)
    limit, amount = capacity(view), held.amount(view)
    uses = [(q, int(held.gpu_type[q]), r) for q, r in np.argwhere(amount > 0).tolist()]
    resources = sorted({(i, r) for _, i, r in uses})
    m = pyo.ConcreteModel()
    m.CONFIGURATIONS = pyo.RangeSet(0, held.size - 1)
    m.KINDS = pyo.Set(initialize=np.unique(kind).tolist())
    m.OF = pyo.Set(m.KINDS, initialize={k: np.flatnonzero(held.kind == k).tolist() for k in m.KINDS})
    m.RESOURCES = pyo.Set(dimen=2, initialize=resources)
    users = {(i, r): [q for q, *resource in uses if resource == [i, r]] for i, r in resources}
    m.USERS = pyo.Set(m.RESOURCES, initialize=users)
    m.part = pyo.Param(m.CONFIGURATIONS, initialize=dict(enumerate(part.tolist())))
    m.holds = pyo.Param([(q, r) for q, _, r in uses], initialize={(q, r): float(amount[q, r]) for q, _, r in uses})
    m.total = pyo.Param(m.RESOURCES, initialize={(i, r): float(limit[i, r]) for i, r in resources})
    m.start = pyo.Param(initialize=int(view.arrival[jobs].min()))
    m.slot_s = pyo.Param(initialize=view.slot_s)
    m.x = pyo.Var(m.CONFIGURATIONS, domain=pyo.NonNegativeReals)
    m.makespan = pyo.Var(bounds=(float((view.arrival[jobs] + alone).max()), None))

    @m.Constraint(m.KINDS)
    def work_done(m: Any, k: int) -> Any:
        return sum(m.part[q] * m.x[q] for q in m.OF[k]) >= 1

    @m.Constraint(m.RESOURCES)
    def resource_rounds(m: Any, i: int, r: int) -> Any:
        return sum(m.holds[q, r] * m.x[q] for q in m.USERS[i, r]) <= m.total[i, r] * (m.makespan - m.start)

    unit = units(view)
    counted(m, ((m.resource_rounds[i, r], float(unit[i, r])) for i, r in m.RESOURCES))
    m.seconds = pyo.Objective(rule=lambda m: m.slot_s * m.makespan, sense=pyo.minimize)
    return m
