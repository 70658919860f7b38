r"""Bounds on gangs that nobody interrupts, by column generation over their starts.

A *column* is a job and its start s. It ends at :math:`s + p_j`, and takes each machine that its pool is at the same
time (:mod:`schedgap.models.rigid.bounds`), at the value of its part, for as long as it overlaps an interval of time.
All columns together take at most :math:`t_{i+1} - t_i` of a machine in interval i, and any amount after the last one.
So every schedule is a choice of columns, and at any prices :math:`\pi_{di} \ge 0` per unit of time

.. math:: \sum_j \min_{s \ge r_j} (w_j (\max(s + p_j, e_j) - r_j) + \Pi_j(s + p_j) - \Pi_j(s))
    - \sum_{d,i} (t_{i+1} - t_i) \pi_{di}

is a bound, where :math:`\Pi_j(t)` is what j pays for its machines up to t. As a function of s the bracket is linear
between the moments at which j starts or ends with an interval, or ends at :math:`e_j`, so that the least value is at
one of these or at :math:`r_j`: pricing is exact. A job cannot do the cheap parts of its work at any time, as in the
fluid of :mod:`schedgap.models.intervals`, which bounds schedules with interruptions, too.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.instances.rigid import View
from schedgap.models.columns import Columns, Domain, Generated, Packing, Priced
from schedgap.models.intervals import SLIVER, UNSURE, IntervalOracle, stated, tightest
from schedgap.models.registry import Outcome, model
from schedgap.models.rigid.bounds import MARGIN, SUMS, goal_of, machines_of, minimised, too_many
from schedgap.models.solve import SolveOptions

MOST_JOBS = 3000
"""Most jobs: beyond, the fluid's bound is the tighter one of what is found in 15 s."""

FIRST = 60
"""Intervals at first, about, which end where a job can start at once, or ends then."""

MANY = 400
"""Intervals beyond which none is cut any more."""

FINEST = 1e-5
"""Part of all time that an interval takes at least, so that sums of prices keep ten digits."""


class Starts(IntervalOracle):
    """The oracle: when each job should start, at prices of machines in intervals, in hours; they end with ticks."""

    must = True

    def __init__(self, view: View, objective: str, edges: Array) -> None:
        goal, self.hour, self.edges = goal_of(view, objective), view.ticks_of_hour, edges
        self.release, self.duration = view.release / self.hour, view.duration / self.hour
        self.weight, self.earliest = goal.weight * self.hour, goal.earliest / self.hour
        self.uses = np.stack([machine.value for machine in machines_of(view)], axis=1)
        self.domain = Domain.of(Packing(np.tile(np.diff(edges), self.uses.shape[1]), view.size, cover=True))
        late, due = edges - self.duration[:, None], (self.earliest - self.duration)[:, None]
        self.turns = np.maximum(np.hstack([late, np.tile(edges, (view.size, 1)), due]), self.release[:, None])
        self.ends = self.turns + self.duration[:, None]
        self.delay = self._delay(self.ends)
        self.made: list[Array] = []

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best start of every job; see :class:`schedgap.models.columns.Priced`."""
        each = prices.reshape(self.uses.shape[1], -1) * np.diff(self.edges)
        paid = self.uses @ np.hstack([np.zeros((len(each), 1)), np.cumsum(each, axis=1)])
        cost = self.delay.copy()
        for j, curve in enumerate(paid):
            cost[j] += np.interp(self.ends[j], self.edges, curve) - np.interp(self.turns[j], self.edges, curve)
        best = cost.argmin(axis=1)[:, None]
        start = np.take_along_axis(self.turns, best, axis=1)
        return Priced(-np.take_along_axis(cost, best, axis=1)[:, 0], self._columns(start))

    def _delay(self, ends: Array) -> Array:
        """Return what ``(n, x)`` ends of jobs cost."""
        return self.weight[:, None] * (np.maximum(ends, self.earliest[:, None]) - self.release[:, None])

    def _columns(self, start: Array) -> Columns:
        n = len(self.uses)
        ends = start + self.duration[:, None]
        held = (np.minimum(ends, self.edges[1:]) - np.maximum(start, self.edges[:-1])).clip(0.0)
        use = (self.uses[:, :, None] * held[:, None, :]).reshape(n, -1)
        use[use < SLIVER] = 0.0
        self.made.append(start[:, 0])
        number = np.arange(n) + (len(self.made) - 1) * n
        return Columns(np.arange(n), -self._delay(ends)[:, 0], sp.csc_array(use.T), number)

    def cuts(self, found: Generated, whole: bool) -> Array:
        """Return the starts and ends of columns in use that lie inside of dear intervals, the dearest ones."""
        some = found.x > 0
        job, start = found.columns.block[some], np.concatenate(self.made)[found.columns.end[some]]
        at = np.rint(np.concatenate([start, start + self.duration[job]]) * self.hour) / self.hour
        job, share = np.tile(job, 2), np.tile(found.x[some], 2)
        inside = np.searchsorted(self.edges, at, side="right") - 1
        kept = (inside >= 0) & (inside < len(self.edges) - 1)
        at, job, share, inside = at[kept], job[kept], share[kept], inside[kept]
        near = np.minimum(at - self.edges[inside], self.edges[inside + 1] - at)
        prices = found.prices.reshape(self.uses.shape[1], -1)
        unsure = share * near * (self.uses[job] * prices[:, inside].T).sum(axis=1)
        kept = (unsure > UNSURE * abs(found.bound)) & (near > FINEST * (self.edges[-1] - self.edges[0]))
        dearest = np.flatnonzero(kept)[np.argsort(-unsure[kept], kind="stable")]
        _, once = np.unique(inside[dearest], return_index=True)  # another cut of an interval waits for the next round
        return np.asarray(np.sort(at[dearest[once]]))


def first_edges(view: View) -> Array:
    """Return the first ends of intervals, in hours, up to a time by which all can be done."""
    alone = np.unique(np.concatenate([view.release, view.release + view.duration])).astype(float)
    some = alone[np.unique(np.linspace(0, len(alone) - 1, FIRST).round().astype(int))]
    area = max(float((view.duration[jobs] * view.gpus[jobs]).sum() / room) for jobs, room in view.by_pool())
    horizon = float(view.release.max() + view.duration.max()) + 2 * area
    later = np.linspace(alone[-1], np.ceil(horizon), FIRST // 2)
    edges = np.unique(np.rint(np.concatenate([[float(view.release.min())], some, later])))
    least = FINEST * (edges[-1] - edges[0])
    return np.asarray(edges[np.append(True, np.diff(edges) > least)] / view.ticks_of_hour)


def build_starts(view: View, objective: str = "flow") -> pyo.ConcreteModel:
    r"""Return the relaxation over starts and intervals, and the columns that generation made for it.

    - :math:`i`: intervals of :math:`|i|` hours; :math:`d`: machines that a pool is, by dual feasible functions.
    - :math:`s \in S_j'`: columns of j, starts; :math:`a_{j,s,i}` hours that a run from there overlaps with i.
    - :math:`u_{j,d}`: value of the part of machine d that j takes.
    - :math:`w_j`: weight in the objective; :math:`e_j`: earliest end that counts.
    - ``x`` :math:`x_{j,s} \ge 0`: share of column s.

    .. math:: \max -\sum_j \sum_{s \in S_j'} w_j \cdot (\max(s + p_j, e_j) - r_j) \cdot x_{j,s}
    .. math:: \sum_j \sum_{s \in S_j'} u_{j,d} \cdot a_{j,s,i} \cdot x_{j,s} \le |i| \quad \forall i, d
        \label{within}
    .. math:: \sum_{s \in S_j'} x_{j,s} = 1 \quad \forall j \label{once}

    Relaxed are that a job has one start, and when within an interval jobs run.

    Duals: the prices of machines in intervals.
    """
    view = view.relaxed
    return stated(Starts(view, objective, first_edges(view)))


def by_starts(view: View, options: SolveOptions, objective: str = "flow") -> Outcome:
    """Bound a weighted sum of flow times without interruptions, by columns over starts and ever shorter intervals.

    See Also
    --------
    schedgap.models.rigid.starts : the proof.
    """
    view, began = view.relaxed, clock.now()
    found = tightest(partial(Starts, view, objective), first_edges(view), True, options, many=MANY)
    return found.outcome(began, -1, lambda least: least * (1 - MARGIN))


model(
    "rigid.starts",
    problem="rigid.flow",
    kind="bound",
    source="Relaxation over starts (Dyer and Wolsey 1990), on intervals of time, by column generation",
    procedure=by_starts,
    too_large=partial(too_many, most=MOST_JOBS),
    **minimised(SUMS, ""),
)(build_starts)
