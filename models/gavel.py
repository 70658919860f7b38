"""Gavel's makespan policy as a fluid LP (Narayanan et al., OSDI 2020, §4.2): a bound on the makespan of gangs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.views.gavel import MAKESPAN
from schedgap.instances.views.hadar import View
from schedgap.models.registry import MODELS, ModelSpec, no_decision
from schedgap.models.solve import counted


def build_makespan(view: View) -> pyo.ConcreteModel:
    r"""Return the fluid makespan LP: which part of every job's work is done on which GPU type.

    - :math:`j, r`: jobs, GPU types.
    - :math:`W_j`: GPUs of the gang.
    - :math:`d_j^r = E_j / (W_j X_j^r)`: seconds that the gang needs for all of its work on type r.
    - :math:`a_j`: start of the slot in which the job arrives.
    - :math:`C^r`: GPUs of type r.
    - ``makespan`` :math:`M \ge 0`: end of the last job, in seconds.
    - ``x`` :math:`x_{j,r} \ge 0`: part of the work of j that is done on type r, in :math:`y_{j,r} = d_j^r x_{j,r}`
      seconds of its gang (Gavel's fractions of time, times M).

    .. math:: \min M
    .. math:: \sum_r x_{j,r} \ge 1 \quad \forall j \label{work_done}
    .. math:: a_j + \sum_r d_j^r x_{j,r} \le M \quad \forall j \label{one_after_another}
    .. math:: \sum_j W_j d_j^r x_{j,r} \le C^r (M - \min_j a_j) \quad \forall r \label{gpu_seconds}

    Duals: those of the last two families say what makes the makespan as long as it is, jobs that are long alone or GPU
    types that have too much to do.

    *It bounds every gang schedule*, also of gangs of mixed types. Let a gang hold :math:`n_r` GPUs of type r,
    :math:`\sum_r n_r = W`, for s seconds; count :math:`s n_r / W` of them to :math:`y_{j,r}`. These add up to s, so
    that :math:`\sum_r y_{j,r}` is the time in which j runs, at most :math:`M - a_j`. The GPU seconds that it holds of
    type r are :math:`W y_{j,r}`, over all jobs at most what there is. The work done is :math:`s W \min X_j^r` over the
    types held, at most :math:`s \sum_r n_r X_j^r`, which :math:`\sum_r W X_j^r y_{j,r}` counts, so that the parts add
    up to at least 1.
    """
    work = view.workload
    able = (work.rates > 0) & (view.capacity > 0)
    slots = np.divide(work.work[:, None], view.progress, out=np.zeros_like(view.progress), where=able)
    pairs = [(int(j), int(r)) for j, r in np.argwhere(able)]
    m = pyo.ConcreteModel()
    m.JOBS = pyo.RangeSet(0, view.size - 1)
    m.TYPES = pyo.Set(initialize=sorted({r for _, r in pairs}))
    m.PAIRS = pyo.Set(dimen=2, initialize=pairs)
    m.ON = pyo.Set(m.JOBS, initialize={j: np.flatnonzero(able[j]).tolist() for j in m.JOBS})
    m.USERS = pyo.Set(m.TYPES, initialize={r: np.flatnonzero(able[:, r]).tolist() for r in m.TYPES})
    m.W = pyo.Param(m.JOBS, initialize=dict(enumerate(work.gpus.tolist())))
    m.a = pyo.Param(m.JOBS, initialize=dict(enumerate((view.arrival * view.slot_s).tolist())))
    m.first = pyo.Param(initialize=float(view.arrival.min() * view.slot_s))
    m.d = pyo.Param(m.PAIRS, initialize={pair: float(slots[pair] * view.slot_s) for pair in pairs})
    m.C = pyo.Param(m.TYPES, initialize={r: int(view.capacity[r]) for r in m.TYPES})
    m.x = pyo.Var(m.PAIRS, domain=pyo.NonNegativeReals)
    m.makespan = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.JOBS)
    def work_done(m: Any, j: int) -> Any:
        return sum(m.x[j, r] for r in m.ON[j]) >= 1

    @m.Constraint(m.JOBS)
    def one_after_another(m: Any, j: int) -> Any:
        return m.a[j] + sum(m.d[j, r] * m.x[j, r] for r in m.ON[j]) <= m.makespan

    @m.Constraint(m.TYPES)
    def gpu_seconds(m: Any, r: int) -> Any:
        return sum(m.W[j] * m.d[j, r] * m.x[j, r] for j in m.USERS[r]) <= m.C[r] * (m.makespan - m.first)

    m.seconds = pyo.Objective(rule=lambda m: m.makespan, sense=pyo.minimize)
    counted(m, ((part, view.slot_s) for part in (m.makespan, m.one_after_another, m.gpu_seconds)))
    return m


MODELS.register(
    ModelSpec(
        id="gavel.makespan_fluid",
        paper="gavel",
        problem=MAKESPAN.id,
        kind="relaxation",
        build=build_makespan,
        decode=no_decision,
        source="Gavel §4.2, makespan policy, as one LP over shares of work",
        example="paper/hadar-fig1",
    )
)
