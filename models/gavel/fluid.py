"""Gavel's makespan policy as a fluid LP (§4.2): a bound on the makespan of gangs.

The other models here bound the mean and the 99th percentile of completion times in simulations of gangs, and all three
metrics in simulations of jobs that run as copies.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools
from schedgap.instances.views.gavel import COPIES, COPIES_MEAN, COPIES_P99, MAKESPAN, MEAN, P99
from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.fluid import intervals, percentile
from schedgap.models.engine.fluid.single_machine import best_bound, closed_form
from schedgap.models.engine.solve import SolveOptions, counted
from schedgap.models.engine.statements import grouped
from schedgap.models.hadar.fluid import gangs
from schedgap.models.registry import Outcome
from schedgap.models.simulated import bounds_simulations


@bounds_simulations(
    "gavel.makespan_fluid",
    "ttd_s",
    {"from_arrival": True},
    problem=MAKESPAN.id,
    kind="relaxation",
    source="Gavel §4.2, makespan policy, as one LP over shares of work",
    example="paper/hadar-fig1",
)
def build_makespan(view: HadarView) -> pyo.ConcreteModel:
    r"""Return the fluid makespan LP, which splits the work of every job among the GPU types.

    - :math:`j, r`: jobs, GPU types.
    - :math:`W_j`: GPUs of the gang.
    - :math:`d_j^r = E_j / (W_j X_j^r)`: seconds that the gang needs for all of its work on type r.
    - :math:`a_j`: start of the slot in which the job arrives.
    - :math:`C^r`: GPUs of type r.
    - ``makespan`` :math:`M \ge 0`: completion of the last job, in seconds.
    - ``x`` :math:`x_{j,r} \ge 0`: fraction of the work of j that is done on type r, for which its gang runs
      :math:`y_{j,r} = d_j^r x_{j,r}` seconds (Gavel's fractions of time, times M).

    .. math:: \min M
    .. math:: \sum_r x_{j,r} \ge 1 \quad \forall j \label{work_done}
    .. math:: a_j + \sum_r d_j^r x_{j,r} \le M \quad \forall j \label{one_after_another}
    .. math:: \sum_j W_j d_j^r x_{j,r} \le C^r (M - \min_j a_j) \quad \forall r \label{gpu_seconds}

    Duals: those of the last two families show what determines the makespan, jobs that are long on their own or GPU
    types that are overloaded.

    *It bounds every gang schedule*, including those with gangs of mixed types. Let a gang hold :math:`n_r` GPUs of type
    r, :math:`\sum_r n_r = W`, for s seconds, and attribute :math:`s n_r / W` of these seconds to :math:`y_{j,r}`. They
    add up to s, so :math:`\sum_r y_{j,r}` is the time during which j runs, at most :math:`M - a_j`. The gang holds
    :math:`W y_{j,r}` GPU seconds of type r, and all jobs together hold at most the capacity. The work done is :math:`s
    W \min X_j^r` over the types held, at most :math:`s \sum_r n_r X_j^r`, which is the contribution to :math:`\sum_r W
    X_j^r y_{j,r}`, so the fractions add up to at least 1.
    """
    work = view.workload
    able = (work.rates > 0) & (view.capacity > 0)
    m = _parts_of_work(view, able, np.divide(work.work[:, None], view.progress, where=able, out=np.zeros(able.shape)))
    m.W = pyo.Param(m.JOBS, initialize=work.gpus.tolist())
    m.C = pyo.Param(m.TYPES, initialize={r: int(view.capacity[r]) for r in m.TYPES})

    @m.Constraint(m.JOBS)
    def one_after_another(m: Any, j: int) -> Any:
        return m.a[j] + sum(m.d[j, r] * m.x[j, r] for r in m.ON[j]) <= m.makespan

    @m.Constraint(m.TYPES)
    def gpu_seconds(m: Any, r: int) -> Any:
        return sum(m.W[j] * m.d[j, r] * m.x[j, r] for j in m.USERS[r]) <= m.C[r] * (m.makespan - m.first)

    counted(m, ((part, view.slot_s) for part in (m.makespan, m.one_after_another, m.gpu_seconds)))
    return m


def _parts_of_work(view: HadarView, able: Bools, slots: Array) -> pyo.ConcreteModel:
    """Return the part that both makespan LPs share: all work has to be done, and the makespan is minimised.

    `able` ``(n, k)`` says on which types a gang, or all copies of a job, can run; `slots` ``(n, k)`` is how many slots
    they need there for all of their work.
    """
    m = pyo.ConcreteModel()
    m.JOBS = pyo.RangeSet(0, view.size - 1)
    m.PAIRS = pyo.Set(dimen=2, initialize=list(map(tuple, np.argwhere(able).tolist())))
    m.TYPES = pyo.Set(initialize=np.flatnonzero(able.any(axis=0)).tolist())
    m.ON = pyo.Set(m.JOBS, initialize=grouped(m.PAIRS))
    m.USERS = pyo.Set(m.TYPES, initialize=grouped((r, j) for j, r in m.PAIRS))
    m.a = pyo.Param(m.JOBS, initialize=(view.arrival * view.slot_s).tolist())
    m.first = pyo.Param(initialize=float(view.arrival.min() * view.slot_s))
    m.d = pyo.Param(m.PAIRS, initialize={pair: float(slots[pair] * view.slot_s) for pair in m.PAIRS})
    m.x = pyo.Var(m.PAIRS, domain=pyo.NonNegativeReals)
    m.makespan = pyo.Var(domain=pyo.NonNegativeReals)

    @m.Constraint(m.JOBS)
    def work_done(m: Any, j: int) -> Any:
        return sum(m.x[j, r] for r in m.ON[j]) >= 1

    m.seconds = pyo.Objective(rule=lambda m: m.makespan, sense=pyo.minimize)
    return m


@bounds_simulations(
    "gavel.makespan_copies",
    "ttd_s",
    {"forks": True, "from_arrival": True},
    problem=COPIES.id,
    kind="relaxation",
    source="Gavel §4.2, makespan policy, for HadarE's copies of jobs",
    example="paper/hadar-fig1",
)
def build_copies(view: HadarView) -> pyo.ConcreteModel:
    r"""Return the fluid makespan LP for jobs that run as several copies at once, each at its own rate (HadarE).

    - :math:`j, r`: jobs, GPU types.
    - :math:`d_j^r = E_j / (m_j^r X_j^r)`: seconds that all copies of j on type r together need for all of its work,
      with up to :math:`W_j` GPUs of every server of the type, :math:`m_j^r` in all.
    - :math:`e_j^r = E_j / (C^r X_j^r)`: seconds that all GPUs of the type need for it.
    - :math:`a_j`: start of the slot in which the job arrives.
    - ``makespan`` :math:`M \ge 0`: completion of the last job, in seconds.
    - ``x`` :math:`x_{j,r} \ge 0`: fraction of the work of j that is done on type r.

    .. math:: \min M
    .. math:: \sum_r x_{j,r} \ge 1 \quad \forall j \label{work_done}
    .. math:: a_j + d_j^r x_{j,r} \le M \quad \forall j, r \label{side_by_side}
    .. math:: \sum_j e_j^r x_{j,r} \le M - \min_j a_j \quad \forall r \label{gpu_seconds}

    Copies on different types run concurrently, so every job has a row for each type.

    Duals: those of the last two families show which jobs and GPU types determine the makespan.
    """
    run = gangs(view, forks=True, grain=0.0)
    m = _parts_of_work(view, np.isfinite(run.amount), run.time)
    m.e = pyo.Param(m.PAIRS, initialize={pair: float(run.amount[pair] * view.slot_s) for pair in m.PAIRS})

    @m.Constraint(m.PAIRS)
    def side_by_side(m: Any, j: int, r: int) -> Any:
        return m.a[j] + m.d[j, r] * m.x[j, r] <= m.makespan

    @m.Constraint(m.TYPES)
    def gpu_seconds(m: Any, r: int) -> Any:
        return sum(m.e[j, r] * m.x[j, r] for j in m.USERS[r]) <= m.makespan - m.first

    return m


MANY_JOBS, TEAM = 200, 4
"""With more than MANY_JOBS jobs, blocks of the master are teams of TEAM jobs, and intervals are not cut."""


def build_mean(view: HadarView, forks: bool = False) -> pyo.ConcreteModel:
    r"""Return the fluid relaxation of mean completion time over intervals, with the columns generated for it.

    - :math:`i`: intervals of length :math:`|i|`, the last one without end; :math:`r`: GPU types.
    - :math:`s \in S_j'`: columns of j: an interval in which j completes, and the fractions of its work that it does on
      each type in each interval.
    - :math:`c_s`: a lower bound on the completion time of any schedule that does these fractions of the work and
      completes in this interval.
    - :math:`f_{s,i,r}`: the fraction of the GPUs of type r that it takes in interval i, times the interval's length.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max -\sum_j \sum_{s \in S_j'} c_s \cdot x_{j,s}
    .. math:: \sum_j \sum_{s \in S_j'} f_{s,i,r} \cdot x_{j,s} \le |i| \quad \forall i, r \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} = 1 \quad \forall j \label{once}

    The mean completion time is the negative of this sum, less the arrivals, per job. In continuous time, gangs run on
    one type after another, and copies on all types at once. A gang of mixed types counts as in Gavel's makespan LP.

    Duals: the prices of the GPUs of a type in an interval. The least costs of the jobs at these prices, less the price
    of all GPUs, are a Lagrangian bound (:mod:`schedgap.models.engine.fluid.intervals`).
    """
    run = gangs(view, forks, grain=0.0)
    return intervals.stated(intervals.completing(run, 0.0, intervals.completion_edges(run, 0.0)))


def mean_bound(view: HadarView, options: SolveOptions, forks: bool = False) -> Outcome:
    """Bound the mean completion time, in seconds, by the better of two: a fluid over intervals, or a single machine.

    See Also
    --------
    schedgap.models.engine.fluid.intervals : the proof.
    schedgap.models.engine.fluid.single_machine.best_bound : the other bound.
    """
    began = clock.now()
    run = gangs(view, forks, grain=0.0)
    one_machine = best_bound(run)
    team = 1 if len(run.which) <= MANY_JOBS else TEAM
    evidence: Any = intervals.least_completion(run, 0.0, options, one_machine, team)
    solution = evidence.generated.solution(-1)
    if solution.bound is None or one_machine.value > solution.bound:
        evidence = one_machine
        solution = replace(solution, bound=one_machine.value, termination=f"bound: {one_machine.name}")
    assert solution.bound is not None
    mean = (solution.bound * view.slot_s - float(view.workload.arrival_s[run.which].sum())) / len(run.which)
    # The trace is dropped: it holds bounds on the sum.
    return Outcome(replace(solution, bound=mean, times=solution.times.since(began), trace=()), None, evidence=evidence)


def p99_bound(view: HadarView, options: SolveOptions, forks: bool = False) -> Outcome:
    """Bound the 99th percentile of completion times, in seconds; see :mod:`schedgap.models.engine.fluid.percentile`."""
    return closed_form(
        lambda: gangs(view, forks, grain=0.0),
        lambda slots: slots * view.slot_s,
        lambda run: percentile.tail(run, view.workload.arrival_s[run.which] / view.slot_s),
    )


def build_p99(view: HadarView, forks: bool = False) -> pyo.ConcreteModel:
    r"""Return the MILP that bounds the percentile by a single machine, on which gangs or copies become volumes.

    With weights :math:`\alpha` on the GPU types, which add up to 1, a job takes at least the volume
    :math:`v_j = \min_r \alpha_r e_j^r`, where :math:`e_j^r` is how long all GPUs of type r need for its work.

    See Also
    --------
    schedgap.models.engine.fluid.percentile.build_in_time : the MILP.
    """
    run = gangs(view, forks, grain=0.0)
    return percentile.build_in_time(run, view.workload.arrival_s[run.which] / view.slot_s, view.slot_s)


_ON_INTERVALS = "Fluid relaxation over intervals of time, by column generation"
_IN_TIME = "Most jobs in time on one machine (Kise, Ibaraki and Mine 1978)"

for _id, _metric, _problem, _source, _procedure, _build in (
    ("gavel.jct", "jct_mean_s", (MEAN, COPIES_MEAN), _ON_INTERVALS, mean_bound, build_mean),
    ("gavel.jct_p99", "jct_p99_s", (P99, COPIES_P99), _IN_TIME, p99_bound, build_p99),
):
    for _forks in (False, True):
        bounds_simulations(
            _id + "_copies" * _forks,
            _metric,
            {"forks": _forks},
            problem=_problem[_forks].id,
            kind="bound",
            source=_source,
            procedure=partial(_procedure, forks=_forks),
            example="paper/hadar-fig1",
        )(partial(_build, forks=_forks))
