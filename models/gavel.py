"""Gavel's makespan policy as a fluid LP (Narayanan et al., OSDI 2020, §4.2): a bound on the makespan of gangs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.views.gavel import MAKESPAN
from schedgap.instances.views.hadar import View
from schedgap.models.registry import MODELS, ModelSpec, no_decision


def build_makespan(view: View) -> pyo.ConcreteModel:
    r"""Return the fluid makespan LP: which part of every job's work is done on which GPU type.

    - :math:`j, r`: jobs, GPU types.
    - :math:`W_j`: GPUs of the gang.
    - :math:`d_j^r = E_j / (W_j X_j^r)`: time that the gang needs for all of its work on type r.
    - :math:`a_j`: start of the slot in which the job arrives.
    - :math:`C^r`: GPUs of type r.
    - ``makespan`` :math:`M \ge 0`: end of the last job. The model's unit of time is a slot.
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
    m.gang = pyo.Param(m.JOBS, initialize=dict(enumerate(work.gpus.tolist())))
    m.arrival = pyo.Param(m.JOBS, initialize=dict(enumerate(view.arrival.tolist())))
    m.start = pyo.Param(initialize=int(view.arrival.min()))
    m.duration = pyo.Param(m.PAIRS, initialize={pair: float(slots[pair]) for pair in pairs})
    m.gpus = pyo.Param(m.TYPES, initialize={r: int(view.capacity[r]) for r in m.TYPES})
    m.slot_s = pyo.Param(initialize=view.slot_s)
    m.x = pyo.Var(m.PAIRS, domain=pyo.NonNegativeReals)
    m.makespan = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.JOBS)
    def work_done(m: Any, j: int) -> Any:
        return sum(m.x[j, r] for r in m.ON[j]) >= 1

    @m.Constraint(m.JOBS)
    def one_after_another(m: Any, j: int) -> Any:
        return m.arrival[j] + sum(m.duration[j, r] * m.x[j, r] for r in m.ON[j]) <= m.makespan

    @m.Constraint(m.TYPES)
    def gpu_seconds(m: Any, r: int) -> Any:
        held = sum(m.gang[j] * m.duration[j, r] * m.x[j, r] for j in m.USERS[r])
        return held <= m.gpus[r] * (m.makespan - m.start)

    m.seconds = pyo.Objective(rule=lambda m: m.slot_s * m.makespan, sense=pyo.minimize)
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
