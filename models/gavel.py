r"""Gavel's makespan policy as a fluid LP: a bound on the makespan of every gang schedule.

Sets: jobs :math:`j`, GPU types :math:`r`. Data: gangs :math:`W_j`, rates :math:`X_j^r > 0` of one GPU, work
:math:`E_j`, start :math:`a_j` of the arrival slot in seconds, capacity :math:`C^r`. Duration on one type alone:
:math:`d_j^r = E_j / (W_j X_j^r)`. Variables: the makespan ``M`` and the share ``x[j,r]`` of a job's work done on type
r, which takes ``y[j,r] = d[j,r]·x[j,r]`` seconds of its gang (Gavel's time fractions, times ``M``)::

    min M
    Σ_r x[j,r] ≥ 1                                    all work is done
    a[j] + Σ_r d[j,r]·x[j,r] ≤ M                      one after another, from its arrival on
    Σ_j W[j]·d[j,r]·x[j,r] ≤ C[r]·(M − min_j a[j])    GPU seconds of a type

It bounds every gang schedule, also of gangs of mixed types. Let a gang hold ``n_r`` GPUs of type r, ``Σ_r n_r = W``,
for ``s`` seconds; count ``s·n_r/W`` of them to ``y[j,r]``. These add up to ``s``, so that ``Σ_r y[j,r]`` is the time in
which j runs, at most ``M − a_j``. ``W·y[j,r]`` are the GPU seconds it holds of type r, over all jobs at most what there
is. The work done is ``s·W·min X_j^r`` over the types held, at most ``s·Σ_r n_r X_j^r``, which ``Σ_r W·X_j^r·y[j,r]``
counts, so that the shares add up to at least 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.views.gavel import MAKESPAN
from schedgap.instances.views.hadar import View
from schedgap.models.registry import MODELS, ModelSpec, no_decision


def build_makespan(view: View) -> pyo.ConcreteModel:
    """Return the fluid makespan LP; its time unit is a slot, so that coefficients stay near 1."""
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
    )
)
