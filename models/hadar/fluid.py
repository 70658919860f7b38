"""Bounds whose size does not grow with the number of slots: gangs, or their copies, as a fluid over time intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.views.hadar import COMPLETE, FORKED, UTILITY, HadarView
from schedgap.models.engine.fluid.intervals import (
    NOBODY,
    Fluid,
    IntervalPricing,
    IntervalValues,
    Tightest,
    first_edges,
    stated,
    tightest,
)
from schedgap.models.engine.fluid.single_machine import FluidJobs, Ways
from schedgap.models.engine.gangs.copies import able, classes
from schedgap.models.engine.gangs.progress import best_progress
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.hadar.common import somebody_rejected, too_large
from schedgap.models.registry import Outcome, model, no_reason


@dataclass(frozen=True, eq=False)
class FluidGangs(FluidJobs):
    """Hadar's jobs for bounds by a fluid: gangs, or copies of jobs, on GPU types as resources; times are in slots.

    `which` ``(n,)`` are the numbers of the jobs. All work of a job, done on type r, takes `amount` ``(n, k)`` slots of
    all GPUs of the type (infinite where it cannot run), and `time` ``(n, k)`` slots of its gang, or of all its copies
    on that type. Copies on several types run `together`.
    """

    which: Ints
    amount: Array
    time: Array
    together: bool

    @property
    def ways(self) -> Ways:
        """GPU types; the unit of work is the whole job."""
        n, k = self.amount.shape
        return Ways(np.arange(n) * k, self.time.ravel(), np.arange(n), np.ones(n), self.together)

    def cost(self, weights: Array) -> Array:
        """Return ``(n·k,)`` the slots of the whole cluster that the work of each job takes on each type.

        `weights` ``(k,)`` are the shares of the types in the cluster.
        """
        able = np.isfinite(self.amount)
        return np.multiply(self.amount, weights, out=np.full_like(self.amount, np.inf), where=able).ravel()

    def takes(self, weights: Array, which: Ints) -> Array:
        """Return ``(m, k)`` the resources that the whole work takes in the ways `which`; each way uses one type."""
        k = self.amount.shape[1]
        return np.where(np.arange(k) == which[:, None] % k, self.amount.ravel()[which, None], 0.0)


def gangs(view: HadarView, forks: bool = False, grain: float = 1.0) -> FluidGangs:
    """Return the jobs that can complete, with their resource use and shortest times.

    Parameters
    ----------
    view
        GPUs, slots, jobs.
    forks
        Whether jobs run as copies, which lets them use more GPUs at once.
    grain
        Least number of slots that a job takes; 0 if it can end within a slot.
    """
    work = view.workload
    if forks:
        copies = classes(view)
        of_type = copies.gpu_type[:, None] == np.arange(len(view.capacity))
        jobs, speed = able(view, copies), (copies.limit * copies.progress) @ of_type
        fastest = speed.sum(axis=1)[jobs]
    else:
        jobs, speed = view.possible, view.progress * (view.capacity > 0)
        fastest = np.array([best_progress(view, j) for j in jobs.tolist()])
    needed = (work.work[jobs] * (1 - ROUNDING))[:, None]
    per_slot = work.rates[jobs] * view.slot_s * view.capacity
    amount = np.divide(needed, per_slot, out=np.full(per_slot.shape, np.inf), where=per_slot > 0)
    time = np.divide(needed, speed[jobs], out=np.full(per_slot.shape, np.inf), where=per_slot > 0)
    if not forks:  # a gang holds its GPUs for whole slots, even if it needs less than one
        amount *= np.maximum(grain / time, 1.0)
    start, alone = view.arrival[jobs].astype(float), np.maximum(needed[:, 0] / fastest, grain)
    return FluidGangs(
        start=start,
        alone=alone,
        earliest=start + (np.ceil(alone) if grain else alone),
        weight=np.ones(len(jobs)),
        group=np.zeros(len(view.capacity), np.int64),
        speed=np.maximum(view.capacity, 1).astype(float),
        which=jobs,
        amount=amount,
        time=np.maximum(time, grain),
        together=forks,
    )


def utilities(view: HadarView, run: FluidGangs, edges: Array) -> IntervalValues:
    """Return what ending in each interval is worth to each job; the edges of intervals are whole slots.

    Within an interval, utility is bounded by a line: the flattest one from the utility of the first end to that of a
    later end is above all of them.
    """
    cuts = edges.astype(np.int64)
    begin, slot = cuts[:-1], np.arange(cuts[0], cuts[-1])
    inside = np.repeat(np.arange(len(begin)), np.diff(cuts))
    shape = len(run.which), len(begin)
    value, slope, free = np.full(shape, -np.inf), np.zeros(shape), np.zeros(shape)
    for i, job in enumerate(run.which.tolist()):
        worth = view.utility(job)
        first = np.maximum(begin, int(run.earliest[i]) - 1)
        within = first < cuts[1:]
        value[i, within] = worth[first[within]]
        free[i] = np.maximum(first + 1 - np.maximum(begin, int(run.start[i])), 0) / run.alone[i]
        later = slot - first[inside]
        lost = worth[np.minimum(first[inside], slot)] - worth[slot]
        slopes = np.divide(lost, later, out=np.full(len(slot), np.inf), where=later > 0)
        flattest = np.minimum.reduceat(slopes, begin - cuts[0])
        slope[i] = np.where(np.isfinite(flattest), flattest, 0.0) * run.alone[i]
    return IntervalValues(value, slope, free)


def posed(view: HadarView, run: FluidGangs, must: bool, edges: Array) -> IntervalPricing:
    """Return the pricing oracle of the fluid relaxation over intervals with the given edges, in whole slots."""
    return IntervalPricing(Fluid(run, edges, utilities(view, run, edges), must))


def build_fluid(view: HadarView, complete: bool = False, forks: bool = False) -> pyo.ConcreteModel:
    r"""Build the fluid relaxation over intervals, restricted to the columns that column generation made.

    - :math:`i`: intervals of :math:`|i|` slots.
    - :math:`s \in S_j'`: columns of j: an interval in which j ends, and the fractions :math:`f_{s,i}` of its work that
      it does in interval i, on type :math:`r` the fraction :math:`f_{s,i,r}`.
    - :math:`d_j^r = E_j N_j / (X_j^r L)`: GPU slots that j needs on type r.
    - :math:`v_s`: upper bound on the utility of any schedule that ends in this interval and does these fractions.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max \sum_j \sum_{s \in S_j'} v_s \cdot x_{j,s}
    .. math:: \sum_j \sum_{s \in S_j'} f_{s,i,r} \cdot d_j^r / C^r \cdot x_{j,s} \le |i| \quad \forall i, r
        \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} \le 1 \quad \forall j \label{once}

    (an equation where every job completes). A gang that holds several types advances at the rate of the slowest, so
    counting each GPU at its own rate gives no less. The model relaxes that work is done in whole slots, and the order
    of events within an interval; the number of its rows is that of intervals times types, whatever the number of slots.

    Duals: the prices of the GPUs of a type in an interval. At any prices, the cost of all GPUs plus the largest payoffs
    of the jobs is a bound; a greedy choice of intervals finds the payoffs
    (:mod:`schedgap.models.engine.fluid.intervals`).
    """
    run = gangs(view, forks)
    return stated(posed(view, run, complete, first_edges(run, float(view.slots), whole=True)))


def relaxed(view: HadarView, run: FluidGangs, must: bool, options: SolveOptions) -> Tightest:
    """Run column generation over intervals, and halve the intervals where that can tighten the bound."""
    edges = first_edges(run, float(view.slots), whole=True)
    return tightest(partial(posed, view, run, must), edges, True, options)


def bound(view: HadarView, options: SolveOptions, complete: bool = False, forks: bool = False) -> Outcome:
    """Bound the optimum by column generation over intervals, which are halved where that can tighten the bound.

    See Also
    --------
    schedgap.models.engine.fluid.intervals : the proof.
    """
    began = clock.now()
    run = gangs(view, forks)
    if not len(run.which):
        return Outcome(NOBODY, None)
    return relaxed(view, run, complete, options).outcome(began)


for _name, _problem, _complete, _forks in (
    ("hadar.fluid", UTILITY, False, False),
    ("hadar.fluid.complete", COMPLETE, True, False),
    ("hadar.fluid.forked", FORKED, False, True),
):
    model(
        _name,
        problem=_problem.id,
        kind="bound",
        source="Fluid relaxation over intervals of time, by column generation",
        procedure=partial(bound, complete=_complete, forks=_forks),
        skip=somebody_rejected if _complete else no_reason,
        too_large=too_large,
        example="paper/hadar-fig1",
    )(partial(build_fluid, complete=_complete, forks=_forks))
