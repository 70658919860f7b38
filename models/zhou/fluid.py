"""Lower bounds on Σ w·c for any schedule, even one that interrupts jobs and changes their types, workers and servers.

One bound is the best relaxation to a single machine. The other is a fluid over intervals, whose prices change over
time; it is tighter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import ROUNDING, SLACK, Array, Bools, Ints
from schedgap.instances.moldable import Machines
from schedgap.instances.moldable.machines import fitting
from schedgap.instances.moldable.options import largest
from schedgap.instances.views.zhou import ARCHITECTURES, Architecture, ZhouView
from schedgap.models.engine.fluid import intervals
from schedgap.models.engine.fluid.single_machine import FluidJobs, Ways, build_intervals, closed_form
from schedgap.models.engine.solve import Solution, SolveOptions
from schedgap.models.registry import Outcome, model
from schedgap.models.zhou.common import skip


class Types(NamedTuple):
    """The types of workers (or PSs), as fractions of classes of servers.

    One of type k takes the fraction ``part[k, i, r]`` of all resource r of class i; `fits` ``(k, i)`` says whether one
    of its type fits on a server of the class.
    """

    part: Array
    fits: Bools

    def cost(self, weights: Array) -> Array:
        """Return ``(k, i)`` the fraction of the cluster that one of each type takes on each class, or infinity.

        `weights` ``(i, R)`` are the weights of the resources.
        """
        return np.where(self.fits, (self.part * weights).sum(axis=2), np.inf)

    def least(self, weights: Array) -> Array:
        """Return ``(k,)`` the least fraction of the cluster that one of each type takes, at weights ``(i, R)``."""
        return np.asarray(self.cost(weights).min(axis=1))

    def takes(self, weights: Array) -> Array:
        """Return ``(k, i, R)`` the fractions of resources that one of each type takes on its cheapest class."""
        at = self.cost(weights).argmin(axis=1)
        return np.where((np.arange(weights.shape[0]) == at[:, None])[:, :, None], self.part, 0.0)


@dataclass(frozen=True, eq=False)
class MoldableFluid(FluidJobs):
    """Zhou's jobs for bounds on completion times; times are in slots, and resources are those of each class of servers.

    The ``(q,)`` choices of each job begin at `first` ``(n,)``. A choice has a type of workers and of PSs (0 in a ring).
    The whole work takes `worker_slots` slots of workers, `ps_slots` slots of PSs and the `time`; `worker` and `ps` are
    the needs of one worker and one PS of each type.
    """

    first: Ints
    worker_type: Ints
    ps_type: Ints
    worker_slots: Array
    ps_slots: Array
    time: Array
    worker: Types
    ps: Types

    @property
    def ways(self) -> Ways:
        """The choices of jobs; the unit of work is the whole job."""
        n = len(self.first)
        return Ways(self.first, self.time, np.arange(n), np.ones(n))

    def cost(self, weights: Array) -> Array:
        """Return ``(q,)`` the least slots of the whole cluster that each choice takes, at weights ``(d,)``."""
        each = weights.reshape(self.worker.part.shape[1:])
        cost = self.worker_slots * self.worker.least(each)[self.worker_type]
        if len(self.ps.part):
            cost += self.ps_slots * self.ps.least(each)[self.ps_type]
        return np.asarray(cost)

    def takes(self, weights: Array, which: Ints) -> Array:
        """Return ``(m, d)`` the resources that the choices `which` take on the cheapest classes."""
        each = weights.reshape(self.worker.part.shape[1:])
        taken = self.worker_slots[which, None, None] * self.worker.takes(each)[self.worker_type[which]]
        if len(self.ps.part):
            taken += self.ps_slots[which, None, None] * self.ps.takes(each)[self.ps_type[which]]
        return np.asarray(taken.reshape(len(which), len(weights)))


def run_of(a: Architecture) -> MoldableFluid:
    """Return the jobs with a positive weight, at least one, and those of their choices that can cost least."""
    jobs, m = np.flatnonzero(a.weight > 0), a.classes
    alone, rows = _ring(a, jobs) if a.id == "ra" else _with_servers(a, jobs)
    job, worker_type, ps_type, worker_slots, ps_slots, time = rows
    total = m.allowed
    start = a.arrival[jobs].astype(float)
    hosts = np.array([fitting(m.capacity, z) > 0 for z in m.ps], bool).reshape(len(m.ps), m.size)
    return MoldableFluid(
        start=start,
        alone=alone,
        earliest=start + np.ceil(alone),
        weight=a.weight[jobs],
        group=np.tile(np.arange(len(m.resources)), m.size),
        speed=np.divide(total, m.total, out=np.zeros_like(total), where=m.total > 0).ravel(),
        first=np.searchsorted(job, np.arange(len(jobs))),
        worker_type=worker_type,
        ps_type=ps_type,
        worker_slots=worker_slots,
        ps_slots=ps_slots,
        time=time,
        worker=Types(_parts(m.worker, total), m.room > 0),
        ps=Types(_parts(m.ps, total), hosts),
    )


def _parts(need: Array, total: Array) -> Array:
    out = np.zeros((len(need), *total.shape))
    return np.divide(need[:, None], total, out=out, where=total > 0)


Rows = tuple[Ints, Ints, Ints, Array, Array, Array]
"""Choices by job: job, worker type, PS type, worker slots, PS slots, least number of slots, ``(q,)`` each."""


def _ring(a: Architecture, jobs: Ints) -> tuple[Array, Rows]:
    r"""Return ``(n,)`` the shortest durations of jobs with rings, and their choices: up to four numbers of workers.

    The choices are made for each type of workers and layout. One worker costs least. The rate of :math:`\Phi \ge 2`
    workers is convex in :math:`\Phi`, so the cost of a rate is concave: it lies above the line from 2 workers to the
    largest number that needs more than a slot. With one worker more, a slot is enough.
    """
    most = np.minimum(a.most[jobs, None, None], largest(a.classes, True, int(a.most.max()))[:, 0])
    work, update, transfer = (x[jobs] for x in (a.work[:, None] * (1 - ROUNDING), a.rates.update, a.rates.transfer))
    single = work * a.rates.compute[jobs]
    number, slots = np.ones((4, *most.shape)), np.full((4, *most.shape), np.inf)
    slots[0, :, :, 1] = np.where((most[:, :, 1] > 0) & np.isfinite(single), single, np.inf)
    for one, others in ((0, update + transfer), (1, update)):
        more = work * others
        # Φ workers need more than a slot below the larger root of Φ² − (single + more)·Φ + more.
        half = (single + more) / 2
        root = half + np.sqrt(np.maximum(half**2 - more, 0.0))
        several = np.clip(np.ceil(root) - 1, 2, np.maximum(most[:, :, one], 2))
        for i, count in enumerate((np.full_like(several, 2), several, several + 1), start=1):
            number[i, :, :, one] = count
            able = (count <= most[:, :, one]) & np.isfinite(single)
            slots[i, :, :, one] = np.where(able, (single + more * (count - 1) / count) / count, np.inf)
    which = np.nonzero(np.isfinite(slots.transpose(1, 2, 3, 0)))
    time = np.maximum(slots.transpose(1, 2, 3, 0)[which], 1.0)
    workers = number.transpose(1, 2, 3, 0)[which] * time
    job, worker_type = which[:2]
    rows = job, worker_type, np.zeros_like(job), workers, np.zeros(len(job)), time
    return np.maximum(slots.min(axis=(0, 2, 3)), 1.0), rows


def _with_servers(a: Architecture, jobs: Ints) -> tuple[Array, Rows]:
    """Return ``(n,)`` the shortest durations of jobs with PSs, and their choices: up to two per types and layout."""
    machines, rates = a.classes, a.rates
    fit = largest(machines, False, int(a.most.max()))
    shape = (len(jobs), *fit.shape, 2)
    workers, servers, time = np.full(shape, np.inf), np.zeros(shape), np.ones(shape)
    alone = np.full(len(jobs), np.inf)
    for m, p, one in np.ndindex(*fit.shape):
        slots = rates.compute[jobs, m] + rates.update[jobs, p] + (0.0 if one else rates.transfer[jobs, m])
        needed = a.work[jobs] * slots * (1 - ROUNDING)
        most = np.minimum(a.most[jobs], fit[m, p, one])
        able = np.flatnonzero((most > 0) & np.isfinite(needed))
        if not able.size:
            continue
        alone[able] = np.minimum(alone[able], needed[able] / most[able])
        serving = Serving(np.array([most.max()])) if one else serving_of(machines, m, p, int(most.max()))
        few, enough = np.minimum(most, np.floor(needed)), np.ceil(needed)
        rows = able[few[able] > 0]
        workers[rows, m, p, one, 0] = needed[rows]
        servers[rows, m, p, one, 0] = needed[rows] * serving.share(few[rows])
        time[rows, m, p, one, 0] = needed[rows] / few[rows]
        rows = able[enough[able] <= most[able]]
        workers[rows, m, p, one, 1] = enough[rows]
        servers[rows, m, p, one, 1] = serving.fewest(enough[rows])
    where = np.nonzero(np.isfinite(workers))
    choices = where[0], where[1], where[2], workers[where], servers[where], time[where]
    return np.maximum(alone, 1.0), choices


class Serving:
    """How many workers 1, 2, …, S parameter servers can serve at most, ``(S,)``; 0 if they can serve none."""

    def __init__(self, most: Ints) -> None:
        self.most = np.maximum.accumulate(most)
        share = np.divide(np.arange(1, len(most) + 1), most, out=np.full(len(most), np.inf), where=most > 0)
        self.least = np.concatenate([[np.inf], np.minimum.accumulate(share)])

    def fewest(self, workers: Array) -> Ints:
        """Return the fewest PSs that serve each number of workers."""
        return np.minimum(np.searchsorted(self.most, workers), len(self.most) - 1) + 1

    def share(self, workers: Array) -> Array:
        """Return, for each number of workers, the least number of PSs per worker that this many or fewer need."""
        fewest = self.fewest(workers)
        return np.asarray(np.minimum(fewest / workers, self.least[fewest - 1]))


def serving_of(m: Machines, worker_type: int, ps_type: int, most: int) -> Serving:
    """Return how many workers, on their host and elsewhere, PSs on one host can serve; at most `most` matter."""
    e, z = m.worker[worker_type], m.ps[ps_type]
    room = fitting(m.capacity, z)
    covers = m.ps_bandwidth[ps_type] / m.worker_bandwidth[worker_type] * (1 + 2 * SLACK)
    servers = np.arange(1, max(1, min(int(room.max()), math.ceil(most / covers))) + 1)
    beside = np.full(len(servers), -1, np.int64)
    for i in range(m.size):
        fits = fitting(m.capacity[i], e, servers[:, None] * z) if m.able[worker_type, i] else np.zeros_like(servers)
        beside = np.maximum(beside, np.where(servers <= room[i], fits, -1))
    elsewhere = np.floor(servers * covers)
    return Serving(np.where((beside >= 0) & (elsewhere >= 1), beside + elsewhere, 0).astype(np.int64))


def bound(view: ZhouView, options: SolveOptions, name: str) -> Outcome:
    """Bound the weighted sum of completion times, in slots, by the best single-machine relaxation, in closed form.

    See Also
    --------
    schedgap.models.engine.fluid.single_machine.best_bound : the relaxations.
    """
    a = view.architectures[name]
    if not (a.weight > 0).any():
        return Outcome(Solution(status="optimal", termination="bound: no job has a weight", bound=0.0), None)
    # Work is rounded; everything else here is exact up to floating point.
    return closed_form(lambda: run_of(a), lambda total: total * (1 - ROUNDING))


def _build(view: ZhouView, name: str) -> pyo.ConcreteModel:
    r"""Build the LP that bounds Σ w·c by mean busy times on a single machine, the cluster, that may interrupt jobs.

    Put weights :math:`\alpha` on the resources r of every class i of servers, and count each class's total
    :math:`n_i C_i^r` as 1. A worker of type m then costs at least
    :math:`x_m = \min_i \sum_r \alpha_i^r e_m^r/(n_i C_i^r)` per slot, over the classes on which it fits; a PS of type p
    likewise costs at least :math:`y_p`. With N workers and s PSs, and :math:`\rho` of (1) or (14), a job of W
    mini-batches pays at least :math:`N x_m + s y_p` in a slot and does at most :math:`\min(N \rho, W)` of them: slots
    are whole, so it pays for all of a slot even if it needs less. So its work takes at least the volume

    .. math:: v_j = \min_{m,p,q,N,s} (N x_m + s y_p) \cdot \max(1, W/(N\rho))

    of the cluster (in a ring without PSs), and a slot in which it does a fraction :math:`f = \min(N \rho, W)/W` of its
    work takes at least :math:`f v_j`, whatever it does in others. Any schedule is then one on a single machine: all
    workers and PSs that run in a slot take at most all of each resource of each class, and a completion :math:`c_j`,
    the slot after the last, is the end of that slot if slot t lasts from t to t + 1. Jobs start no earlier than their
    arrival, do no more per slot than with their fastest choice (nor more than all their work), and complete no earlier
    than with that choice in whole slots. Jobs of weight 0 are left out.

    *Which choices.* On one server s = 1. On several, the PSs' host needs :math:`(N - g) b \le s B` with g < N workers
    next to s PSs, so s PSs serve up to :math:`G(s) + \lfloor s B/b \rfloor` workers, where :math:`G(s)` is the most
    workers that fit next to s PSs on any server (other hosts only add to the cost). Up to :math:`W/\rho` workers, a
    mini-batch costs :math:`(x + y s/N)/\rho`, so the smallest s/N suffices. Beyond, one slot is enough, and the
    smallest N suffices. In a ring, one worker alone is the cheapest; choices with more workers are faster.

    See Also
    --------
    build_intervals : the LP.
    """
    return build_intervals(run_of(view.architectures[name]))


def by_intervals(view: ZhouView, options: SolveOptions, name: str) -> Outcome:
    """Bound the weighted sum of completion times, in slots, by column generation over intervals.

    See Also
    --------
    schedgap.models.engine.fluid.intervals : the proof.
    """
    a, began = view.architectures[name], clock.now()
    if not (a.weight > 0).any():
        return Outcome(intervals.NOBODY, None)
    tightest = intervals.least_completion(run_of(a), 1.0, options)
    return tightest.outcome(began, -1, lambda least: least * (1 - ROUNDING))  # work is rounded


def build_by_intervals(view: ZhouView, name: str) -> pyo.ConcreteModel:
    r"""Build the fluid relaxation over intervals, restricted to the columns that column generation made.

    - :math:`i`: intervals of :math:`|i|` slots, the last one without end; :math:`k, r`: classes, resources.
    - :math:`s \in S_j'`: columns of j: an interval in which j completes, and the fractions of its work that it does in
      each interval, by some choice of types.
    - :math:`c_s`: lower bound on the completion time of any schedule that does these fractions and completes there.
    - :math:`f_{s,i,k,r}`: use of resource r of class k by these fractions in interval i, in slots of all its capacity.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max -\sum_j \sum_{s \in S_j'} w_j \cdot c_s \cdot x_{j,s}
    .. math:: \sum_j \sum_{s \in S_j'} f_{s,i,k,r} \cdot x_{j,s} \le |i| \quad \forall i, k, r \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} = 1 \quad \forall j \label{once}

    The bound is its negative. The least use of a fraction of the work is that of the single-machine relaxation, whose
    weights are here the prices of every resource of every class in every interval.

    Duals: these prices. At any prices, the least costs of the jobs, found by a greedy choice of intervals, less the
    price of all capacity are a bound (:mod:`schedgap.models.engine.fluid.intervals`).
    """
    run = run_of(view.architectures[name])
    return intervals.stated(intervals.completing(run, 1.0, intervals.completion_edges(run, 1.0)))


for _name in ARCHITECTURES:
    model(
        f"zhou.{_name}.fluid",
        problem=f"zhou.{_name}.preemptive",
        kind="bound",
        source="Single-machine relaxations (Schrage 1968; Goemans et al. 2002) with weights on Zhou's resources",
        procedure=partial(bound, name=_name),
        skip=skip(_name),
    )(partial(_build, name=_name))

for _name in ARCHITECTURES:
    model(
        f"zhou.{_name}.intervals",
        problem=f"zhou.{_name}.preemptive",
        kind="bound",
        source="Fluid relaxation over intervals of time, by column generation",
        procedure=partial(by_intervals, name=_name),
        skip=skip(_name),
    )(partial(build_by_intervals, name=_name))
