r"""The whole run as a fluid: a lower bound on the end of the last job, however CPUs and memory are given out.

Jobs are counted by kind. Data: work :math:`E_k` of all jobs of a kind in iterations, rates :math:`W_q` of its
configurations q (CPUs and memory on one GPU type), what they hold :math:`u_{q,r}` of each resource r (GPUs, CPUs,
memory of a type) and its total :math:`U_r`; start :math:`a_j` of the first round in which a job may run, and its
duration :math:`p_j` in its fastest configuration. Variables: the makespan ``M``, and the time ``x[q]`` that jobs of the
kind spend in a configuration, over all of them::

    min M
    Σ_q W[q]·x[q] ≥ E[k]                       all work of a kind is done
    Σ_q u[q,r]·x[q] ≤ U[r]·(M − min_j a[j])    resource seconds
    M ≥ max_j (a[j] + p[j])

Any schedule gives such times: gangs hold a configuration at least, and advance at no more than its rate (between levels
a gang advances as at the levels below, which hold less; one over several servers at the pace of its slowest GPU).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.views.synergy import MAKESPAN, View
from schedgap.models.registry import MODELS, ModelSpec, no_decision
from schedgap.models.synergy.configurations import capacity, configurations, fitting


def build_makespan(view: View) -> pyo.ConcreteModel:
    """Return the fluid makespan LP; its time unit is a round, its unit of work what a kind has to do."""
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

    m.seconds = pyo.Objective(rule=lambda m: m.slot_s * m.makespan, sense=pyo.minimize)
    return m


MODELS.register(
    ModelSpec(
        id="synergy.makespan_fluid",
        paper="synergy",
        problem=MAKESPAN.id,
        kind="relaxation",
        build=build_makespan,
        decode=no_decision,
        source="after Synergy's LP1, eq. (1)–(3), over the whole run",
    )
)
