r"""Lower bounds on weighted completion times, from relaxations of a cluster to a single machine.

Weights :math:`\alpha \ge 0` on the resources of a cluster, of each of which there is 1, add up to 1. However job j does
its work, let this take at least its *volume* :math:`v_j(\alpha)` of the cluster, resources added up with these weights,
and a part of the work at least that part of the volume. All jobs together use at most 1 at any time: **any schedule is
one on a single machine of speed 1 that may interrupt jobs and share itself among them**, in which job j has volume
:math:`v_j`, starts no earlier than :math:`r_j`, takes no less than :math:`p_j`, its work at its best rate, and
completes at :math:`e_j` at the earliest: :math:`r_j + p_j`, or later where time has slots. What is minimised is
:math:`\sum_j w_j C_j`.

- (a) On that machine *shortest remaining volume first* minimises :math:`\sum_j C_j` (Schrage; sharing does not help).
  It says nothing where weights differ.
- (b) Let :math:`f_j(t)` be the part of j done per second, :math:`\int f_j = 1`, :math:`f_j \le 1/p_j`, and
  :math:`M_j = \int t f_j(t) dt` its mean busy time. A density below :math:`1/p_j` that ends at :math:`C_j` has its
  mean at least :math:`p_j/2` before: :math:`C_j \ge M_j + p_j/2`. And :math:`\sum_j w_j M_j` is linear: a unit of the
  machine at time t costs :math:`t w_j/v_j`, so that an exchange of any two pieces shows *largest weight per volume
  first* (of the original, not the remaining) to minimise it (Goemans et al., Single machine scheduling with release
  dates, 2002).
- (c) :math:`C_j \ge e_j`.
- (d) For any parts :math:`0 \le \mu_j \le 1`, :math:`C_j \ge \mu_j (M_j + p_j/2) + (1 - \mu_j) e_j`, and the largest
  :math:`w_j \mu_j/v_j` first minimises :math:`\sum_j w_j \mu_j M_j` in the same way: (b) has all parts 1, (c) all 0. As
  the least of functions linear in :math:`\mu` the bound is concave, and every optimal schedule's
  :math:`w_j (M_j + p_j/2 - e_j)` a supergradient of it.

Every :math:`\alpha` gives valid bounds; the best of them for one :math:`\alpha` that a small search finds counts.
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
from schedgap.models.registry import Outcome
from schedgap.models.solve import Solution, Times, peak_mb
from schedgap.models.statements import grouped

EVALUATIONS = 1_000_000
"""Jobs times weights that the search may look at."""

FACTORS = (3.0, 1.7, 1.2)
"""Factors by which the search raises and lowers one weight, sweep by sweep."""

STEPS = 30
"""Steps up the supergradient of (d)."""

INTERVALS = 40
"""Intervals of the statement in Pyomo, of each machine."""


class Ways(NamedTuple):
    """The ``q`` ways in which jobs of ``g`` kinds do their work, those of each kind from `first` ``(g,)`` on.

    By each, all work takes a `time` ``(q,)`` at least; a job has a `kind` ``(n,)`` and is `size` ``(n,)`` times as
    large. Jobs go from one way to another, or go several at once if they are `together`.
    """

    first: Ints
    time: Array
    kind: Ints
    size: Array
    together: bool = False


@dataclass(frozen=True, eq=False)
class Jobs(ABC):
    """What bounds need of ``n`` jobs, at least one, on ``d`` resources.

    Attributes
    ----------
    start, alone, earliest
        ``(n,)`` when each job may start, its work at its best rate, and its earliest completion; in one unit.
    weight
        ``(n,)`` 0 or more.
    group
        ``(d,)`` kind of each resource, from 0 (GPUs, CPUs, …), whatever it is a resource of.
    speed
        ``(d,)`` first guess of what each is worth beside others of its group.
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
        """How jobs can do their work."""

    @abstractmethod
    def cost(self, weights: Array) -> Array:
        """Return ``(q,)`` how long all work of each way takes the whole cluster, for weights ``(d,)``."""

    @abstractmethod
    def takes(self, weights: Array, which: Ints) -> Array:
        """Return ``(m, d)`` what all work takes of the resources by ways `which` ``(m,)``, where that costs least."""

    def volume(self, weights: Array) -> Array:
        """Return ``(n,)`` how long each job's work takes the whole cluster at least, for weights ``(d,)``."""
        ways = self.ways
        return np.asarray(ways.size * np.minimum.reduceat(self.cost(weights), ways.first)[ways.kind])


def shortest_first_ends(start: Array, volume: Array) -> Array:
    """Return ``(n,)`` completions on one machine that may interrupt jobs: shortest remaining first."""
    from schedgap.models import _kernels  # which takes a while to import

    return np.asarray(_kernels.shortest_first(start, volume, _order(start, volume)))


def _order(start: Array, volume: Array) -> Ints:
    """Return the jobs that take any time, by their starts."""
    order = np.argsort(start, kind="stable")
    return np.asarray(order[volume[order] > 0])


def shortest_first(start: Array, volume: Array) -> float:
    """Return the least sum of completion times on one machine that may interrupt jobs: shortest remaining first."""
    return float(shortest_first_ends(start, volume).sum())


def served(start: Array, volume: Array, part: Array) -> tuple[Ints, Array, Array]:
    """Return jobs, begins and ends ``(p,)`` of a schedule on one machine that minimises ``Σ part·M``, in order.

    It serves the largest ``part / volume`` first; parts of 1 are the smallest volume first. Jobs, whose weights `part`
    are 0 or more, may start at `start`, and take the machine for `volume`, ``(n,)`` each.
    """
    from schedgap.models import _kernels

    urgency = -np.divide(part, volume, out=np.zeros_like(part), where=volume > 0)
    return _kernels.largest_first(start, volume, urgency, _order(start, volume))


def mean_busy_times(start: Array, volume: Array, part: Array) -> Array:
    """Return ``(n,)`` mean busy times of the schedule :func:`served`."""
    job, begin, end = served(start, volume, part)
    moment = np.bincount(job, (end - begin) * (begin + end) / 2, len(start))
    return np.asarray(np.divide(moment, volume, out=start.astype(float), where=volume > 0))


def bound_of(run: Jobs, volume: Array, part: Array | None) -> float:
    """Return the bound (d) at parts ``(n,)``, or without parts (a), which is 0 where weights differ."""
    if part is not None:
        return _blend(run, volume, part)[0]
    weight = float(run.weight[0])
    return weight * shortest_first(run.start, volume) if (run.weight == weight).all() else 0.0


def _blend(run: Jobs, volume: Array, part: Array) -> tuple[float, Array]:
    """Return the bound (d) at parts ``(n,)``, and by how much it grows with each part, per weight."""
    weighted = part * run.weight
    gain = mean_busy_times(run.start, volume, weighted) + run.alone / 2 - run.earliest
    return float(run.weight @ run.earliest + weighted @ gain), gain


def blended(run: Jobs, volume: Array) -> tuple[float, Array]:
    """Return the best bound (d) on the weighted sum of completion times, and its parts.

    It is the best that some steps up its supergradient find. The first step has parts of 1, which is (b).
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
"""``bound(volume, known)`` returns a bound at volumes ``(n,)``, or one that is known if it is no larger."""


def of_sum(run: Jobs) -> list[Bound]:
    """Return the bounds (a) and (b) on the weighted sum of completion times."""

    def of(part: Array | None) -> Bound:
        return lambda volume, known: bound_of(run, volume, part)

    return [of(None), of(np.ones(len(run.start)))]


def weigh(run: Jobs, bounds: Sequence[Bound] = ()) -> Array:
    """Return the weights ``(d,)`` of the best bound that a small search finds.

    It starts from each group of resources alone and from all of them, takes the best of the bounds there, by default of
    :func:`of_sum`, and then raises or lowers one weight after the other while that improves it.
    """
    bounds = bounds or of_sum(run)
    groups = int(run.group.max()) + 1
    # With a little of all others, so that the search can raise them.
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
"""Moments of an interval at which prices are taken."""


class Best(NamedTuple):
    """A bound on the weighted sum of completion times: which one, its value, and what it follows from.

    `weights` ``(d,)`` are those of the resources; `part` ``(n,)`` the parts of (d), ``None`` for (a).
    """

    name: str
    value: float
    weights: Array
    part: Array | None
    run: Jobs


def best_bound(run: Jobs) -> Best:
    """Return the best bound on the weighted sum of completion times in closed form, and which one it is.

    It is the best of shortest remaining volume first (Schrage), of mean busy times by largest weight per volume, of
    every job alone, and of mixtures: (a) to (d) of :mod:`schedgap.models.single_machine`.
    """
    weights = weigh(run)
    volume = run.volume(weights)
    mixed, part = blended(run, volume)
    found = (
        Best("every job alone", float(run.weight @ run.earliest), weights, np.zeros_like(volume), run),
        Best("shortest remaining volume first", bound_of(run, volume, None), weights, None, run),
        Best("mean busy times and every job alone", mixed, weights, part, run),
    )
    return max(found, key=lambda best: best.value)


def prices_over(best: Best, edges: Array) -> Array:
    """Return ``(d·K,)`` prices of resources in intervals at which a fluid has about the bound of the machine.

    While the machine serves a job, its price per time falls by the job's weight per volume: what all who wait lose.
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
    """Return the outcome of a bound in closed form, by default the best on the weighted sum of completion times.

    The `objective` follows from the value that it will `find` for what `jobs` returns.
    """
    began = clock.now()
    run = jobs()
    built = clock.now()
    best = find(run)
    solution = Solution(
        status="optimal",
        termination=f"bound: {best.name}",
        bound=objective(best.value),
        times=Times(build_s=built - began, solve_s=clock.now() - built),
        peak_mb=peak_mb(),
    )
    return Outcome(solution, None, evidence=best)


def build_intervals(
    run: Jobs,
    weights: Array | None = None,
    *,
    capped: bool = True,
    intervals: int = INTERVALS,
    since: Array | float = 0.0,
    over: float = 1.0,
) -> pyo.ConcreteModel:
    r"""Return the bound by mean busy times as an LP over intervals: a machine that may interrupt jobs and share itself.

    - :math:`\alpha \ge 0`: weights of the resources, all totals counted as 1; a small search picks them.
    - :math:`v_j`: volume, how long all of the machine takes for job j at least.
    - :math:`p_j, w_j`: time of j at its fastest, and its weight.
    - :math:`b_{j,t}`: begin of interval t, or the job's start if that is later.
    - :math:`u_{j,t}`: most of its work that a job can do in an interval.
    - :math:`\Delta`: length of an interval.
    - ``x`` :math:`x_{j,t} \in [0, u_{j,t}]`: part of the work of j that is done in interval t.

    .. math:: \min \sum_j w_j \cdot \left( \sum_t b_{j,t} \cdot x_{j,t} + p_j/2 \right)
    .. math:: \sum_t x_{j,t} = 1 \quad \forall j \label{all_done}
    .. math:: \sum_j v_j \cdot x_{j,t} \le \Delta \quad \forall t \label{one_machine}

    A job completes no earlier than half its shortest duration after its mean busy time (Goemans et al.). Work counts as
    done at the begin of an interval, so that the optimum is a bound. Without caps it is below (b) by at most two
    intervals per unit of weight: one interval later, all work fits. The LP is there for teaching and for a test.

    Duals: that of an interval is what more of the machine would save there.

    Parameters
    ----------
    run
        Jobs.
    weights
        ``(d,)`` weights on the resources; those of :func:`weigh` by default.
    capped
        Whether a job does no more in an interval than at its best rate, which (b) forgets.
    intervals
        Number of equal intervals until everything can be done.
    since, over
        When each job's time begins to count, and what the objective is divided by (the number of jobs for a mean).
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
"""By job and interval its begin, the most of its work that the job can do there, and the job's volume in intervals."""


def cells_of(start: Array, alone: Array, volume: Array, intervals: int = INTERVALS) -> tuple[float, Cells]:
    """Return the length of so many equal intervals, in which everything can be done, and jobs in them from `start`."""
    length = float(start.max() + volume.sum() + alone.max()) / intervals
    begin = np.maximum(np.arange(intervals) * length, start[:, None])
    room = (np.arange(intervals) + 1) * length - begin
    most, part = np.minimum(1.0, room / alone[:, None]), volume / length
    found = np.argwhere(room > 0).tolist()
    return length, {(j, t): (float(begin[j, t]), float(most[j, t]), float(part[j])) for j, t in found}


def add_machine(m: pyo.ConcreteModel, cells: Cells) -> None:
    """Add to a model of jobs what parts of their work are done in which interval: all of it, within what there is."""
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
