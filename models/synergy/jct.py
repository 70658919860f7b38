"""Lower bounds for any schedule of a whole run: on mean and 99th percentile of completion times, and on makespan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.views.synergy import MAKESPAN, P99, RUN, SynergyView
from schedgap.models.engine.fluid import percentile, single_machine
from schedgap.models.engine.fluid.intervals import completing, completion_edges, least_completion, stated
from schedgap.models.engine.fluid.single_machine import INTERVALS, FluidJobs, Ways, closed_form
from schedgap.models.engine.solve import SolveOptions, counted
from schedgap.models.registry import Outcome, model
from schedgap.models.simulated import bounds_simulations
from schedgap.models.synergy.configurations import Configurations, capacity, configurations, fitting, units


@dataclass(frozen=True, eq=False)
class ConfiguredJobs(FluidJobs):
    """The jobs of Synergy for bounds on completion times; times are in seconds.

    A job runs in one *configuration* of CPUs and memory on a GPU type at a time; the resources are the GPUs, CPUs and
    memory of each type. `work` ``(n,)`` is in iterations. The configurations of each kind of job begin at `first`
    ``(K,)``, and `kind` ``(n,)`` is the kind of each job. A configuration has a `rate` ``(q,)``; in it, one iteration
    per second takes the fraction `use` ``(q, d)`` of each resource. `held` are the configurations themselves.
    """

    work: Array
    kind: Ints
    first: Ints
    use: Array
    rate: Array
    held: Configurations

    @property
    def ways(self) -> Ways:
        """The configurations of jobs; the unit of work is an iteration."""
        return Ways(self.first, 1 / self.rate, self.kind, self.work)

    def cost(self, weights: Array) -> Array:
        """Return ``(q,)`` how many seconds of the whole cluster an iteration takes in each configuration."""
        return np.asarray(self.use @ weights)

    def takes(self, weights: Array, which: Ints) -> Array:
        """Return ``(m, d)`` the fractions of the resources that an iteration takes in the configurations `which`."""
        return np.asarray(self.use[which])


def run_of(view: SynergyView) -> ConfiguredJobs:
    """Return the jobs of the whole run and their configurations; work is reduced by a margin for rounding errors."""
    jobs = view.possible
    kinds, kind = np.unique(view.profiles.kind[jobs], return_inverse=True)
    held = configurations(view, fitting(view), kinds)
    first = np.searchsorted(held.kind, kinds)
    total = capacity(view)
    resources = np.argwhere(total > 0)
    part = held.held()[:, resources[:, 1]] / total[resources[:, 0], resources[:, 1]]
    part[held.gpu_type[:, None] != resources[:, 0]] = 0.0
    best = np.maximum.reduceat(held.rate, first)
    fair = view.needs.fair[kinds]
    speed = (fair / fair.max(axis=1, keepdims=True)).mean(axis=0) * view.pools.gpus
    start = view.arrival[jobs].astype(float) * view.slot_s
    work = view.workload.work[jobs] * (1 - ROUNDING)
    alone = work / best[kind.ravel()]
    return ConfiguredJobs(
        start=start,
        alone=alone,
        earliest=start + alone,
        weight=np.ones(len(jobs)),
        group=resources[:, 1],
        speed=speed[resources[:, 0]],
        work=work,
        kind=kind.ravel(),
        first=first,
        use=part / held.rate[:, None],
        rate=held.rate,
        held=held,
    )


def bound(view: SynergyView, options: SolveOptions) -> Outcome:
    """Bound the mean completion time, in seconds, by the best single-machine relaxation, in closed form.

    See Also
    --------
    schedgap.models.engine.fluid.single_machine.best_bound : the relaxations.
    """
    jobs = view.possible
    arrived_s = float(view.workload.arrival_s[jobs].sum())
    return closed_form(lambda: run_of(view), lambda total: (total - arrived_s) / len(jobs))


def build_intervals(
    view: SynergyView, weights: Array | None = None, *, capped: bool = True, intervals: int = INTERVALS
) -> pyo.ConcreteModel:
    r"""Build the LP that bounds the mean completion time by mean busy times on a single machine, the whole cluster.

    With weights :math:`\alpha` on the GPUs, CPUs and memory of each GPU type, all totals counted as 1, a job in
    configuration :math:`[c, m]` on type i uses :math:`\alpha_i \cdot (g_j/G_i, c/C_i, m/M_i)` of the cluster and does
    :math:`W_j[c,m,i]` iterations per second. So its whole work :math:`E_j` takes at least the volume

    .. math:: v_j = E_j \cdot \min_{i,c,m} \alpha_i \cdot (g_j/G_i, c/C_i, m/M_i) / W_j[c,m,i]

    of the cluster. Jobs start no earlier than the first round at or after their arrival. The bound covers gangs over
    several servers: they advance at the pace of the least amount per GPU, and have at most the CPUs and memory of as
    many servers as their GPUs need (:attr:`~schedgap.instances.views.synergy.Needs.limit`), also in simulations. Rounds
    only delay jobs. All jobs have weight 1, completion times count from the arrival, and the objective is their mean.

    See Also
    --------
    schedgap.models.engine.fluid.single_machine.build_intervals : the LP.
    """
    since, over = view.workload.arrival_s[view.possible], len(view.possible)
    return single_machine.build_intervals(
        run_of(view), weights, capped=capped, intervals=intervals, since=since, over=over
    )


def by_intervals(view: SynergyView, options: SolveOptions) -> Outcome:
    """Bound the mean completion time, in seconds, by column generation over intervals of time.

    See Also
    --------
    schedgap.models.engine.fluid.intervals : the proof.
    """
    began, jobs = clock.now(), view.possible
    arrived_s = float(view.workload.arrival_s[jobs].sum())
    tightest = least_completion(run_of(view), 0.0, options)
    return tightest.outcome(began, -1, lambda least: (least - arrived_s) / len(jobs))


def build_by_intervals(view: SynergyView) -> pyo.ConcreteModel:
    r"""Build the fluid relaxation over intervals, restricted to the columns that column generation made.

    - :math:`i`: intervals of :math:`|i|` seconds, the last one without end; :math:`r`: GPUs, CPUs and memory by type.
    - :math:`s \in S_j'`: columns of j: an interval in which j completes, and the fractions of its work that it does in
      each interval, by some choice of configurations.
    - :math:`c_s`: lower bound on the completion time of any schedule that does these fractions and completes there.
    - :math:`f_{s,i,r}`: use of resource r by these fractions in interval i, in seconds of all of it.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max -\sum_j \sum_{s \in S_j'} c_s \cdot x_{j,s}
    .. math:: \sum_j \sum_{s \in S_j'} f_{s,i,r} \cdot x_{j,s} \le |i| \quad \forall i, r \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} = 1 \quad \forall j \label{once}

    The bound is its negative, less the arrivals, per job.

    Duals: prices of every resource in every interval. At any prices, the least costs of the jobs, found by a greedy
    choice of intervals, less the price of all capacity are a bound (:mod:`schedgap.models.engine.fluid.intervals`).
    """
    run = run_of(view)
    return stated(completing(run, 0.0, completion_edges(run, 0.0)))


def bound_p99(view: SynergyView, options: SolveOptions) -> Outcome:
    """Bound the 99th percentile of completion times, in seconds; see :mod:`schedgap.models.engine.fluid.percentile`."""
    since = view.workload.arrival_s[view.possible]
    return closed_form(lambda: run_of(view), float, lambda run: percentile.tail(run, since))


def build_p99(view: SynergyView) -> pyo.ConcreteModel:
    """Build the MILP that bounds the percentile by a single machine, with the volumes of :func:`build_intervals`.

    See Also
    --------
    schedgap.models.engine.fluid.percentile.build_in_time : the MILP.
    """
    return percentile.build_in_time(run_of(view), view.workload.arrival_s[view.possible], 1.0)


bounds_simulations(
    "synergy.jct",
    "jct_mean_s",
    {"sensitive": True},
    problem=RUN.id,
    kind="bound",
    source="Single-machine relaxations (Schrage 1968; Goemans et al. 2002) with weights on Synergy's resources",
    procedure=bound,
    example="paper/synergy-example",
)(build_intervals)

model(
    "synergy.jct_intervals",
    problem=RUN.id,
    kind="bound",
    source="Fluid relaxation over intervals of time, with weights on Synergy's resources, by column generation",
    procedure=by_intervals,
    example="paper/synergy-example",
)(build_by_intervals)

bounds_simulations(
    "synergy.jct_p99",
    "jct_p99_s",
    {"sensitive": True},
    problem=P99.id,
    kind="bound",
    source="Most jobs in time on one machine (Kise, Ibaraki and Mine 1978) with weights on Synergy's resources",
    procedure=bound_p99,
    example="paper/synergy-example",
)(build_p99)


@bounds_simulations(
    "synergy.makespan_fluid",
    "ttd_s",
    {"sensitive": True, "from_arrival": True},
    problem=MAKESPAN.id,
    kind="relaxation",
    source="after Synergy's LP1, eq. (1)–(3), over the whole run",
    example="paper/synergy-example",
)
def build_makespan(view: SynergyView) -> pyo.ConcreteModel:
    r"""Build the fluid makespan LP: the time that the jobs of each kind spend in each configuration.

    - :math:`k`: kinds of jobs; :math:`q \in Q_k` their configurations, CPUs and memory on a GPU type.
    - :math:`r`: resources, GPUs, CPUs and memory of every GPU type.
    - :math:`E_k`: iterations of all jobs of a kind together.
    - :math:`W_q`: iterations per second in configuration q.
    - :math:`n_{q,r}, N_r`: amount of resource r that q holds, and its total.
    - :math:`a_j, p_j`: first round in which job j may run, and its shortest duration.
    - ``makespan`` :math:`M \ge \max_j (a_j + p_j)`: end of the last job. The model's unit of time is a round.
    - ``x`` :math:`x_q \ge 0`: total time that jobs of the kind spend in configuration q.

    .. math:: \min M
    .. math:: \sum_{q \in Q_k} W_q \cdot x_q \ge E_k \quad \forall k \label{work_done}
    .. math:: \sum_q n_{q,r} \cdot x_q \le N_r \cdot (M - \min_j a_j) \quad \forall r \label{resource_rounds}

    The last rows are (2) and (3) over the whole run. Any schedule yields feasible times: a gang holds at least the
    amounts of some configuration and advances at most at its rate (between levels it advances as at the levels below,
    which hold less; on several servers, at the pace of its slowest GPU).

    Duals: those of the resources show which ones determine the length of the run.
    """
    jobs = view.possible
    kind = view.profiles.kind[jobs]
    held = configurations(view, fitting(view), kind)
    work = np.bincount(kind, view.workload.work[jobs], view.profiles.kinds)
    part = held.rate * view.slot_s / work[held.kind]
    best = np.zeros(view.profiles.kinds)
    np.maximum.at(best, held.kind, held.rate)
    pace = best[kind] * view.slot_s
    alone = np.divide(view.workload.work[jobs], pace, out=np.full(len(jobs), np.inf), where=pace > 0)
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
    m.part = pyo.Param(m.CONFIGURATIONS, initialize=part.tolist())
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
