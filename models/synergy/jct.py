"""Proved lower bounds on the mean and the 99th percentile of completion times of any schedule of the whole run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.sensitivity import ROUNDING
from schedgap.instances.views.synergy import P99, RUN, View
from schedgap.models import percentile, single_machine
from schedgap.models.registry import Outcome
from schedgap.models.simulated import bounds_simulations
from schedgap.models.single_machine import INTERVALS, Jobs, Ways, closed_form
from schedgap.models.solve import SolveOptions
from schedgap.models.synergy.configurations import configurations, fitting, totals


@dataclass(frozen=True, eq=False)
class Run(Jobs):
    """Jobs whose work is done in configurations, times in seconds; resources are those of each GPU type.

    `work` ``(n,)`` are iterations, `kind` ``(n,)`` the position of each job's kind in `first` ``(K,)``, where the
    configurations of each kind begin. An iteration per second takes part `use` ``(q, d)`` of each resource in each
    configuration, which has a `rate` ``(q,)``.
    """

    work: Array
    kind: Ints
    first: Ints
    use: Array
    rate: Array

    @property
    def ways(self) -> Ways:
        """Configurations; an iteration is the unit of work."""
        return Ways(self.first, 1 / self.rate, self.kind, self.work)

    def cost(self, weights: Array) -> Array:
        """Return ``(q,)`` seconds of the whole cluster that an iteration takes in each configuration."""
        return np.asarray(self.use @ weights)

    def takes(self, weights: Array, which: Ints) -> Array:
        """Return ``(m, d)`` what an iteration takes in configurations."""
        return np.asarray(self.use[which])


def run_of(view: View) -> Run:
    """Return the jobs of the whole run, with their configurations; levels have a rounding, which work is short of."""
    jobs = view.possible
    kinds, kind = np.unique(view.profiles.kind[jobs], return_inverse=True)
    asked = np.zeros_like(view.needs.able)
    asked[kinds] = fitting(view)[kinds]
    held = configurations(view, asked)
    first = np.searchsorted(held.kind, kinds)
    total = totals(view)
    resources = np.argwhere(total > 0)
    part = held.held()[:, resources[:, 1]] / total[resources[:, 0], resources[:, 1]]
    part[held.gpu_type[:, None] != resources[:, 0]] = 0.0
    best = np.maximum.reduceat(held.rate, first)
    fair = view.needs.fair[kinds]
    speed = (fair / fair.max(axis=1, keepdims=True)).mean(axis=0) * view.pools.gpus
    start = view.arrival[jobs].astype(float) * view.slot_s
    work = view.workload.work[jobs] * (1 - 2 * ROUNDING)
    alone = work / best[kind.ravel()]
    return Run(
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
    )


def bound(view: View, options: SolveOptions) -> Outcome:
    """Bound the mean completion time, in seconds, by the best relaxation to one machine, without the LP.

    See Also
    --------
    schedgap.models.single_machine.best_bound : the relaxations.
    """
    jobs = view.possible
    arrived_s = float(view.workload.arrival_s[jobs].sum())
    return closed_form(lambda: run_of(view), lambda total: (total - arrived_s) / len(jobs))


def build_intervals(
    view: View, weights: Array | None = None, *, capped: bool = True, intervals: int = INTERVALS
) -> pyo.ConcreteModel:
    r"""Return the bound by mean busy times on the mean completion time as an LP: the cluster as a single machine.

    With weights :math:`\alpha` on the GPUs, CPUs and memory of each GPU type, all totals counted as 1, a job in
    configuration :math:`[c, m]` on type i uses :math:`\alpha_i \cdot (g_j/G_i, c/C_i, m/M_i)` of the cluster and does
    :math:`W_j[c,m,i]` iterations per second, so that its whole work :math:`E_j` takes at least the volume

    .. math:: v_j = E_j \cdot \min_{i,c,m} \alpha_i \cdot (g_j/G_i, c/C_i, m/M_i) / W_j[c,m,i]

    of it. Jobs start no earlier than the first round at or after their arrival. Gangs over several servers fit, because
    they advance at the pace of the least per GPU; rounds only delay. All weights of jobs are 1, times count from the
    arrival, and the mean is taken.

    See Also
    --------
    schedgap.models.single_machine.build_intervals : the LP.
    """
    since, over = view.workload.arrival_s[view.possible], len(view.possible)
    return single_machine.build_intervals(
        run_of(view), weights, capped=capped, intervals=intervals, since=since, over=over
    )


def bound_p99(view: View, options: SolveOptions) -> Outcome:
    """Bound the 99th percentile of completion times, in seconds; see :mod:`schedgap.models.percentile`."""
    since = view.workload.arrival_s[view.possible]
    return closed_form(lambda: run_of(view), float, lambda run: percentile.tail(run, since))


def build_p99(view: View) -> pyo.ConcreteModel:
    """Return the MILP of who is in time on a single machine, whose volumes are those of :func:`build_intervals`.

    See Also
    --------
    schedgap.models.percentile.build_in_time : the MILP.
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
