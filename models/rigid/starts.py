r"""Bounds on gangs that are never preempted, from prices of machines over time.

A *column* is a job and its start s. It ends at :math:`s + p_j`. In every interval of time it takes each machine of its
pool (:mod:`schedgap.models.rigid.bounds`) for as long as it overlaps the interval, times the value of its fraction. All
columns together take at most :math:`t_{i+1} - t_i` of a machine in interval i, and any amount after the last interval.
So every schedule is a choice of columns, and at any prices :math:`\pi_{di} \ge 0` per unit of time

.. math:: \sum_j \min_{s \ge r_j} (w_j (\max(s + p_j, e_j) - r_j) + \Pi_j(s + p_j) - \Pi_j(s))
    - \sum_{d,i} (t_{i+1} - t_i) \pi_{di}

is a bound, where :math:`\Pi_j(t)` is the price of the machines of j up to t. As a function of s, the term of a job is
piecewise linear; it bends only where j starts or ends at an edge of an interval, or ends at :math:`e_j`. So its minimum
is at one of these or at :math:`r_j`, and pricing is exact. Unlike in the fluid of
:mod:`schedgap.models.engine.fluid.intervals`, which also bounds preemptive schedules, a job cannot do its work whenever
that is cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.rigid import RigidView
from schedgap.models.engine.columns import Columns, Domain, Packing, Priced
from schedgap.models.engine.fluid.intervals import SLIVER, Posed, stated
from schedgap.models.engine.solve import Size, Solution, SolveOptions, Times, peak_mb
from schedgap.models.registry import Outcome, model
from schedgap.models.rigid.bounds import SUMS, goal_of, machines_of, minimised, safely, too_many
from schedgap.models.rigid.prices import dearest, part_of
from schedgap.models.rigid.stretches import STRETCHES, in_parts, number_of, stretch_of

MOST_JOBS = 200_000
"""Most jobs of a stretch of time for this bound, unless it is asked for."""

FIRST = 60
"""Approximate number of the intervals of the statement; their edges are releases and earliest ends of jobs."""

FINEST = 1e-5
"""Smallest length of an interval of the statement, as a fraction of the horizon."""

USED = 0.8
"""Fraction of the time limit available for the ascent."""


class Starts(Posed):
    """Exact pricing: at prices of machines in intervals, the best start of each job; times are in hours."""

    def __init__(self, view: RigidView, objective: str, edges: Array) -> None:
        goal, self.hour, self.edges = goal_of(view, objective), view.ticks_of_hour, edges
        self.release, self.duration = view.release / self.hour, view.duration / self.hour
        self.weight, self.earliest = goal.weight * self.hour, goal.earliest / self.hour
        self.uses = np.stack([machine.value for machine in machines_of(view)], axis=1)
        self.domain = Domain.of(Packing(np.tile(np.diff(edges), self.uses.shape[1]), view.size, cover=True))
        late, due = edges - self.duration[:, None], (self.earliest - self.duration)[:, None]
        self.turns = np.maximum(np.hstack([late, np.tile(edges, (view.size, 1)), due]), self.release[:, None])
        self.ends = self.turns + self.duration[:, None]
        self.delay = self._delay(self.ends)
        self.made = 0

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best start of every job; see :class:`schedgap.models.engine.columns.Priced`."""
        by_interval = prices.reshape(self.uses.shape[1], -1) * np.diff(self.edges)
        paid = self.uses @ np.hstack([np.zeros((len(by_interval), 1)), np.cumsum(by_interval, axis=1)])
        cost = self.delay.copy()
        for j, curve in enumerate(paid):
            cost[j] += np.interp(self.ends[j], self.edges, curve) - np.interp(self.turns[j], self.edges, curve)
        best = cost.argmin(axis=1)[:, None]
        start = np.take_along_axis(self.turns, best, axis=1)
        return Priced(-np.take_along_axis(cost, best, axis=1)[:, 0], self._columns(start))

    def _delay(self, ends: Array) -> Array:
        """Return the costs of ends ``(n, x)`` of jobs."""
        return self.weight[:, None] * (np.maximum(ends, self.earliest[:, None]) - self.release[:, None])

    def _columns(self, start: Array) -> Columns:
        n = len(self.uses)
        ends = start + self.duration[:, None]
        held = (np.minimum(ends, self.edges[1:]) - np.maximum(start, self.edges[:-1])).clip(0.0)
        use = (self.uses[:, :, None] * held[:, None, :]).reshape(n, -1)
        use[use < SLIVER] = 0.0
        self.made += n
        number = np.arange(self.made - n, self.made)
        return Columns(np.arange(n), -self._delay(ends)[:, 0], sp.csc_array(use.T), number)


def first_edges(view: RigidView) -> Array:
    """Return the edges of the first intervals, in hours; they reach to a time by which all jobs can be done."""
    alone = np.unique(np.concatenate([view.release, view.release + view.duration])).astype(float)
    spaced = alone[np.unique(np.linspace(0, len(alone) - 1, FIRST).round().astype(int))]
    area = max(float((view.duration[jobs] * view.gpus[jobs]).sum() / room) for jobs, room in view.by_pool())
    horizon = float(view.release.max() + view.duration.max()) + 2 * area
    later = np.linspace(alone[-1], np.ceil(horizon), FIRST // 2)
    edges = np.unique(np.rint(np.concatenate([[float(view.release.min())], spaced, later])))
    least = FINEST * (edges[-1] - edges[0])
    return np.asarray(edges[np.append(True, np.diff(edges) > least)] / view.ticks_of_hour)


def build_starts(view: RigidView, objective: str = "flow") -> pyo.ConcreteModel:
    r"""Return the relaxation over starts and intervals, with the columns generated for it.

    - :math:`i`: intervals of :math:`|i|` hours; :math:`d`: machines of the pools, one per dual feasible function.
    - :math:`s \in S_j'`: columns of j, starts; :math:`a_{j,s,i}` hours that a run from there overlaps with i.
    - :math:`u_{j,d}`: fraction of machine d that j takes.
    - :math:`w_j`: weight in the objective; :math:`e_j`: earliest end that counts.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max -\sum_j \sum_{s \in S_j'} w_j \cdot (\max(s + p_j, e_j) - r_j) \cdot x_{j,s}
    .. math:: \sum_j \sum_{s \in S_j'} u_{j,d} \cdot a_{j,s,i} \cdot x_{j,s} \le |i| \quad \forall i, d
        \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} = 1 \quad \forall j \label{once}

    Two things are relaxed: that a job has a single start, and when jobs run within an interval.

    Duals: the prices of machines in intervals.
    """
    view = view.relaxed
    return stated(Starts(view, objective, first_edges(view)))


def by_starts(view: RigidView, options: SolveOptions, objective: str = "flow", stretches: int = 1) -> Outcome:
    """Bound a weighted sum of flow times without preemption, by the best prices of machines over time.

    With `stretches`, these are priced apart, unless their prices are known already. Then all are improved together.

    See Also
    --------
    schedgap.models.rigid.starts : the proof.
    schedgap.models.rigid.prices : how the prices are found.
    """
    view, began = view.relaxed, clock.now()
    limit = None if options.time_limit_s is None else USED * options.time_limit_s
    budget, known = clock.Budget(limit), in_parts(part_of_starts, view, options, objective, stretches)
    found = dearest(view, goal_of(view, objective), None if limit is None else budget.left_s, known=known)
    solution = Solution(
        status="gap left" if found.late else "optimal",
        termination=f"bound: {found.prices.shape[1]} intervals, {found.rounds} rounds of pricing",
        bound=safely(view, objective, found.bound),
        iterations=found.rounds,
        times=Times(solve_s=clock.now() - began),
        size=Size(),
        peak_mb=peak_mb(),
    )
    return Outcome(solution, None, evidence=found)


def part_of_starts(
    view: RigidView, options: SolveOptions, at: int, objective: str = "flow", stretches: int = 1
) -> Mapping[str, Any]:
    """Return the best prices found for a stretch of time, as arrays."""
    view = view.relaxed
    stretch = stretch_of(view, at, number_of(view.size, stretches))
    limit = None if options.time_limit_s is None else USED * options.time_limit_s
    return part_of(stretch, dearest(view, goal_of(view, objective), limit, stretch.jobs))


model(
    "rigid.starts",
    problem="rigid.flow",
    kind="bound",
    source="Relaxation over starts (Dyer and Wolsey 1990), by smoothed ascent of prices over time",
    procedure=by_starts,
    stretches=number_of,
    part=part_of_starts,
    too_large=lambda view, stretches=1: too_many(view, MOST_JOBS * stretches),
    **minimised(SUMS, "", STRETCHES),
)(build_starts)
