r"""Lower bounds on weighted completion times, from relaxations of a cluster to a single machine.

Normalise a cluster to 1 unit of each resource, and let the weights :math:`\alpha \ge 0` of the resources add up to 1.
Let job j, however it does its work, take at least the *volume* :math:`v_j(\alpha)`, the weighted sum of the resources
over time, and a fraction of the work at least that fraction of the volume. All jobs together use at most 1 at any time.
**Any schedule is therefore one on a single machine of speed 1 that may preempt jobs and share itself among them**, in
which job j has volume :math:`v_j`, starts no earlier than :math:`r_j`, takes no less than :math:`p_j`, the duration at
its best rate, and completes no earlier than :math:`e_j`: :math:`r_j + p_j`, or later if time is slotted. The objective
is to minimise :math:`\sum_j w_j C_j`.

- (a) On that machine *shortest remaining volume first* minimises :math:`\sum_j C_j` (Schrage; sharing does not help).
  This gives no bound if the weights differ.
- (b) Let :math:`f_j(t)` be the fraction of j done per second, :math:`\int f_j = 1`, :math:`f_j \le 1/p_j`, and
  :math:`M_j = \int t f_j(t) dt` its mean busy time. A density of at most :math:`1/p_j` that ends at :math:`C_j` has its
  mean at least :math:`p_j/2` earlier: :math:`C_j \ge M_j + p_j/2`. And :math:`\sum_j w_j M_j` is linear: a unit of the
  machine at time t costs :math:`t w_j/v_j`, so exchanging any two pieces shows that *largest weight per volume first*
  (the original volume, not the remaining one) minimises it (Goemans et al., Single machine scheduling with release
  dates, 2002).
- (c) :math:`C_j \ge e_j`.
- (d) For any multipliers :math:`0 \le \mu_j \le 1`, :math:`C_j \ge \mu_j (M_j + p_j/2) + (1 - \mu_j) e_j`, and largest
  :math:`w_j \mu_j/v_j` first minimises :math:`\sum_j w_j \mu_j M_j` in the same way; (b) has all multipliers 1, (c) all
  0. As the minimum of functions linear in :math:`\mu`, the bound is concave, and
  :math:`w_j (M_j + p_j/2 - e_j)` of any optimal schedule is a supergradient.

Every :math:`\alpha` gives valid bounds. A small search finds one :math:`\alpha`, and the best bound for it counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.models.engine.solve import Solution, Times, peak_mb
from schedgap.models.engine.statements import grouped
from schedgap.models.registry import Outcome

EVALUATIONS = 1_000_000
"""Most evaluations in the search for weights: the number of jobs times the number of weight vectors tried."""

FACTORS = (3.0, 1.7, 1.2)
"""Factors by which the search raises and lowers one weight, sweep by sweep."""

STEPS = 30
"""Supergradient steps for (d)."""

INTERVALS = 40
"""Intervals per machine of the statement in Pyomo."""


class Ways(NamedTuple):
    """The ``q`` ways in which jobs of ``g`` kinds do their work; those of each kind begin at `first` ``(g,)``.

    By each way, the whole work takes at least the `time` ``(q,)``. A job has a `kind` ``(n,)`` and is `size` ``(n,)``
    times as large. Jobs switch between ways, or use several at once if `together`.
    """

    first: Ints
    time: Array
    kind: Ints
    size: Array
    together: bool = False


@dataclass(frozen=True, eq=False)
class FluidJobs(ABC):
    """What the bounds need to know about ``n`` jobs, at least one, on ``d`` resources.

    Attributes
    ----------
    start, alone, earliest
        ``(n,)`` earliest start, duration at the best rate, and earliest completion; all in the same unit of time.
    weight
        ``(n,)`` weights in the objective, 0 or more.
    group
        ``(d,)`` kind of each resource, numbered from 0 (GPUs, CPUs, …).
    speed
        ``(d,)`` first guess of the relative value of each resource within its group.
    """

    start: Array
    alone: Array
    earliest: Array
    weight: Array
    group: Ints
    speed: Array

    @property
    @abstractmethod
    def ways(self) -> Ways:
        """The ways in which jobs can do their work, for example GPU types or configurations."""

    @abstractmethod
    def cost(self, weights: Array) -> Array:
        """Return ``(q,)`` the volume that the whole work of a job takes in each way, for weights ``(d,)``."""

    @abstractmethod
    def takes(self, weights: Array, which: Ints) -> Array:
        """Return ``(m, d)`` the resources that the whole work takes in the ways `which` ``(m,)``, at least cost."""

    def volume(self, weights: Array) -> Array:
        """Return ``(n,)`` the volume of each job, for weights ``(d,)``: the least time that the whole cluster needs."""
        ways = self.ways
        return np.asarray(ways.size * np.minimum.reduceat(self.cost(weights), ways.first)[ways.kind])


def shortest_first_ends(start: Array, volume: Array) -> Array:
    """Return ``(n,)`` the completion times of shortest remaining volume first on one preemptive machine."""
    from schedgap.models.engine.fluid import _kernels  # slow to import

    return np.asarray(_kernels.shortest_first(start, volume, _order(start, volume)))


def _order(start: Array, volume: Array) -> Ints:
    """Return the jobs of positive volume in order of their starts."""
    order = np.argsort(start, kind="stable")
    return np.asarray(order[volume[order] > 0])


def shortest_first(start: Array, volume: Array) -> float:
    """Return the least sum of completion times on one preemptive machine: shortest remaining volume first."""
    return float(shortest_first_ends(start, volume).sum())


def served(start: Array, volume: Array, part: Array) -> tuple[Ints, Array, Array]:
    """Return the one-machine schedule that minimises ``Σ part·M``: job, begin and end ``(p,)`` of its pieces, in order.

    M are mean busy times. The schedule serves the largest ``part / volume`` first; with equal weights this is smallest
    volume first. Jobs have weights `part` of 0 or more, may begin at `start`, and occupy the machine for `volume`,
    ``(n,)`` each.
    """
    from schedgap.models.engine.fluid import _kernels

    urgency = -np.divide(part, volume, out=np.zeros_like(part), where=volume > 0)
    return _kernels.largest_first(start, volume, urgency, _order(start, volume))


def mean_busy_times(start: Array, volume: Array, part: Array) -> Array:
    """Return ``(n,)`` the mean busy times of jobs in the schedule that :func:`served` returns."""
    job, begin, end = served(start, volume, part)
    length = end - begin
    # Moments are taken relative to starts: with Unix times, rounding made the moments of the times themselves useless.
    moment = np.bincount(job, length * ((begin + end) / 2 - start[job]), len(start))
    total = np.bincount(job, length, len(start))
    return start + np.divide(moment, total, out=np.zeros(len(start)), where=total > 0)


def bound_of(run: FluidJobs, volume: Array, part: Array | None) -> float:
    """Return the bound (d) at multipliers `part` ``(n,)``, or bound (a) for ``None``, which is 0 if weights differ."""
    if part is not None:
        return _blend(run, volume, part)[0]
    weight = float(run.weight[0])
    return weight * shortest_first(run.start, volume) if (run.weight == weight).all() else 0.0


def _blend(run: FluidJobs, volume: Array, part: Array) -> tuple[float, Array]:
    """Return the bound (d) at multipliers ``(n,)``, and its supergradient divided by the weights."""
    weighted = part * run.weight
    gain = mean_busy_times(run.start, volume, weighted) + run.alone / 2 - run.earliest
    return float(run.weight @ run.earliest + weighted @ gain), gain


def blended(run: FluidJobs, volume: Array) -> tuple[float, Array]:
    """Return the best bound (d) that :data:`STEPS` supergradient steps find, and its multipliers ``(n,)``.

    The first step has all multipliers 1, which is (b).
    """
    part = np.ones_like(volume)
    best, best_part = float(run.weight @ run.earliest), np.zeros_like(volume)
    for step in range(STEPS):
        value, gain = _blend(run, volume, part)
        if value > best:
            best, best_part = value, part
        part = np.clip(part + 2 / (1 + step) * np.clip(gain / run.alone, -1, 1), 0, 1)
    return best, best_part


Bound = Callable[[Array, float], float]
"""``bound(volume, known)`` returns a bound at volumes ``(n,)``; it may return `known` if the bound is no larger."""


def of_sum(run: FluidJobs) -> list[Bound]:
    """Return the bounds (a) and (b) on the weighted sum of completion times."""

    def of(part: Array | None) -> Bound:
        return lambda volume, known: bound_of(run, volume, part)

    return [of(None), of(np.ones(len(run.start)))]


def weigh(run: FluidJobs, bounds: Sequence[Bound] = ()) -> Array:
    """Return the weights ``(d,)`` of the best bound that a small search finds.

    The search tries each group of resources alone and all of them together, picks the best of the bounds there (by
    default those of :func:`of_sum`), and then raises or lowers one weight after the other while that improves it.
    """
    bounds = bounds or of_sum(run)
    groups = int(run.group.max()) + 1
    # All other weights are small but positive, so that the search can raise them.
    guesses = [np.where(main[run.group] > 0, 1.0, 0.03) * run.speed for main in [*np.eye(groups), np.ones(groups)]]
    starts: list[Array] = [guess / guess.sum() for guess in guesses]
    values = np.array([[bound(run.volume(weights), 0.0) for bound in bounds] for weights in starts])
    which, kind = divmod(int(values.argmax()), len(bounds))
    weights, best = starts[which], float(values.max())
    left = EVALUATIONS // len(run.start)
    changes = [(d, f) for factor in FACTORS for d in range(len(weights)) for f in (factor, 1 / factor)]
    for d, factor in changes:
        while left > 0:
            left -= 1
            tried = weights.copy()
            tried[d] *= factor
            tried /= tried.sum()
            value = bounds[kind](run.volume(tried), best)
            if value <= best * (1 + 1e-6):
                break
            weights, best = tried, value
    return weights


SAMPLES = 20
"""Points in each interval at which :func:`prices_over` samples the price curve."""


class MachineBound(NamedTuple):
    """A bound on the weighted sum of completion times: its name, its value, and the multipliers that prove it.

    `weights` ``(d,)`` are those of the resources; `part` ``(n,)`` are the multipliers of (d), ``None`` for (a).
    """

    name: str
    value: float
    weights: Array
    part: Array | None
    run: FluidJobs


def best_bound(run: FluidJobs) -> MachineBound:
    """Return the best closed-form bound on the weighted sum of completion times.

    It is the best of shortest remaining volume first (Schrage), mean busy times by largest weight per volume, every
    job alone, and mixtures of these: (a) to (d) of :mod:`schedgap.models.engine.fluid.single_machine`.
    """
    weights = weigh(run)
    volume = run.volume(weights)
    mixed, part = blended(run, volume)
    bounds = (
        MachineBound("every job alone", float(run.weight @ run.earliest), weights, np.zeros_like(volume), run),
        MachineBound("shortest remaining volume first", bound_of(run, volume, None), weights, None, run),
        MachineBound("mean busy times and every job alone", mixed, weights, part, run),
    )
    return max(bounds, key=lambda best: best.value)


def prices_over(best: MachineBound, edges: Array) -> Array:
    """Return ``(d·K,)`` prices of resources in intervals at which the fluid's bound is about as good as the machine's.

    While the machine serves a job, its price per unit of time falls by the job's weight per volume. The price is the
    cost of delaying all waiting jobs.
    """
    run, volume = best.run, best.run.volume(best.weights)
    weight = run.weight if best.part is None else run.weight * best.part
    job, begin, end = served(run.start, volume, weight)
    if not len(job):
        return np.zeros(len(best.weights) * (len(edges) - 1))
    falls = weight[job] / volume[job]
    after = np.append(np.cumsum((falls * (end - begin))[::-1])[::-1], 0.0)
    finite = np.where(np.isfinite(edges[1:]), edges[1:], edges[:-1])
    at = edges[:-1, None] + (finite - edges[:-1])[:, None] * (np.arange(SAMPLES) + 0.5) / SAMPLES
    which = np.minimum(np.searchsorted(end, at, side="right"), len(job) - 1)
    price = np.maximum(after[which] - falls[which] * np.maximum(at - begin[which], 0.0), 0.0).mean(axis=1)
    return np.outer(best.weights, np.where(np.isfinite(edges[1:]), price, 0.0)).ravel()


def closed_form(
    jobs: Callable[[], Any], objective: Callable[[float], float], find: Callable[[Any], Any] = best_bound
) -> Outcome:
    """Return the outcome of a closed-form bound, by default the best one on the weighted sum of completion times.

    `find` computes the bound for the data that `jobs` returns, and `objective` maps its value to the model's objective.
    """
    began = clock.now()
    data = jobs()
    built = clock.now()
    best = find(data)
    solution = Solution(
        status="optimal",
        termination=f"bound: {best.name}",
        bound=objective(best.value),
        times=Times(build_s=built - began, solve_s=clock.now() - built),
        peak_mb=peak_mb(),
    )
    return Outcome(solution, None, evidence=best)


def build_intervals(
    run: FluidJobs,
    weights: Array | None = None,
    *,
    capped: bool = True,
    intervals: int = INTERVALS,
    since: Array | float = 0.0,
    over: float = 1.0,
) -> pyo.ConcreteModel:
    r"""Return the bound by mean busy times as an LP over intervals, for a machine that can preempt and share itself.

    - :math:`\alpha \ge 0`: weights of the resources, normalised to a total of 1 each; a small search picks them.
    - :math:`v_j`: volume, the least time that the whole machine needs for job j.
    - :math:`p_j, w_j`: duration of j at its best rate, and its weight.
    - :math:`b_{j,t}`: begin of interval t, or the job's start if that is later.
    - :math:`u_{j,t}`: largest fraction of its work that a job can do in an interval.
    - :math:`\Delta`: length of an interval.
    - ``x`` :math:`x_{j,t} \in [0, u_{j,t}]`: fraction of the work of j that is done in interval t.

    .. math:: \min \sum_j w_j \cdot \left( \sum_t b_{j,t} \cdot x_{j,t} + p_j/2 \right)
    .. math:: \sum_t x_{j,t} = 1 \quad \forall j \label{all_done}
    .. math:: \sum_j v_j \cdot x_{j,t} \le \Delta \quad \forall t \label{one_machine}

    A job completes no earlier than half its shortest duration after its mean busy time (Goemans et al.). Work counts as
    done at the begin of an interval, so the optimum is a lower bound. Without caps it is below (b) by at most two
    intervals per unit of weight: one interval later, all work fits. The LP is there for teaching and for a test.

    Duals: additional machine time saves at most that of its interval, per unit of time.

    Parameters
    ----------
    run
        Jobs.
    weights
        ``(d,)`` weights on the resources; those of :func:`weigh` by default.
    capped
        True if a job can do no more in an interval than at its best rate; (b) ignores this.
    intervals
        Number of equal intervals until everything can be done.
    since, over
        Moment from which each job's completion time counts, and divisor of the objective (number of jobs for a mean).
    """
    volume = run.volume(weigh(run) if weights is None else weights)
    length, cells = cells_of(run.start, run.alone, volume, intervals)
    m = pyo.ConcreteModel()
    m.JOBS = pyo.RangeSet(0, len(volume) - 1)
    add_machine(m, {at: (begin / length, most if capped else 1.0, v) for at, (begin, most, v) in cells.items()})
    m.weight = pyo.Param(m.JOBS, initialize=run.weight.tolist())
    m.mean_length = pyo.Param(initialize=length / over)
    # A job ends half its duration after its mean busy time.
    m.others = pyo.Param(initialize=float(run.weight @ (run.alone / 2 - since)) / over)

    @m.Objective(sense=pyo.minimize)
    def total(m: Any) -> Any:
        return m.mean_length * sum(m.weight[j] * m.begin[j, t] * m.x[j, t] for j, t in m.CELLS) + m.others

    return m


Cells = Mapping[tuple[int, int], tuple[float, float, float]]
"""For each job and interval: when the job can begin there, the largest fraction of its work that it can do there, and
its volume as a multiple of the length of an interval."""


def cells_of(start: Array, alone: Array, volume: Array, intervals: int = INTERVALS) -> tuple[float, Cells]:
    """Return the length of equal intervals that leave time for all jobs, and the :data:`Cells` of jobs."""
    length = float(start.max() + volume.sum() + alone.max()) / intervals
    begin = np.maximum(np.arange(intervals) * length, start[:, None])
    room = (np.arange(intervals) + 1) * length - begin
    most, part = np.minimum(1.0, room / alone[:, None]), volume / length
    cells = np.argwhere(room > 0).tolist()
    return length, {(j, t): (float(begin[j, t]), float(most[j, t]), float(part[j])) for j, t in cells}


def add_machine(m: pyo.ConcreteModel, cells: Cells) -> None:
    """Add the variables ``x`` for fractions of work by interval, and the rows that all work is done within capacity."""
    m.CELLS = pyo.Set(dimen=2, initialize=list(cells))
    m.INTERVALS = pyo.Set(initialize=sorted({t for _, t in cells}))
    m.WHEN = pyo.Set(m.JOBS, initialize=grouped(cells))
    m.WHO = pyo.Set(m.INTERVALS, initialize=grouped((t, j) for j, t in cells))
    m.begin = pyo.Param(m.CELLS, initialize={cell: begin for cell, (begin, _, _) in cells.items()})
    m.volume = pyo.Param(m.CELLS, initialize={cell: volume for cell, (_, _, volume) in cells.items()})
    m.x = pyo.Var(m.CELLS, bounds=lambda m, j, t: (0, cells[j, t][1]))

    @m.Constraint(m.JOBS)
    def all_done(m: Any, j: int) -> Any:
        return sum(m.x[j, t] for t in m.WHEN[j]) == 1

    @m.Constraint(m.INTERVALS)
    def one_machine(m: Any, t: int) -> Any:
        return sum(m.volume[j, t] * m.x[j, t] for j in m.WHO[t]) <= 1
