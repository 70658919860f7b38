r"""A proved lower bound on the mean completion time of any schedule of the whole run.

Weights :math:`\alpha \ge 0` on the GPUs, CPUs and memory of each GPU type, all totals counted as 1, add up to 1. In
configuration :math:`[c, m]` on type i a job uses :math:`\alpha_i \cdot (g_j/G_i, c/C_i, m/M_i)` of the cluster and does
:math:`W_j[i,c,m]` iterations per second, so that its whole work takes at least the *volume*

.. math:: v_j = work_j \cdot \min_{i,c,m} \alpha_i \cdot (g_j/G_i, c/C_i, m/M_i) \,/\, W_j[i,c,m]

of it. All jobs together use at most 1 at any time: **any schedule is one on a single machine of speed 1 that may
interrupt jobs and share itself among them**, in which job j has volume :math:`v_j`, starts no earlier than
:math:`r_j` (the first round at or after its arrival) and takes no less than :math:`p_j`, its work at its best rate.
Gangs over several servers fit, because they advance at the pace of the least per GPU; rounds only delay.

- (a) On that machine *shortest remaining volume first* minimises :math:`\sum_j C_j` (Schrage; sharing does not help).
- (b) Let :math:`f_j(t)` be the part of j done per second, :math:`\int f_j = 1`, :math:`f_j \le 1/p_j`, and
  :math:`M_j = \int t f_j(t) dt` its mean busy time. A density below :math:`1/p_j` that ends at :math:`C_j` has its mean
  at least :math:`p_j/2` before: :math:`C_j \ge M_j + p_j/2`. And :math:`\sum_j M_j` is linear: a unit of the machine at
  time t costs :math:`t/v_j`, so that an exchange of any two pieces shows *smallest volume first* (of the original, not
  the remaining) to minimise it (Goemans et al., Single machine scheduling with release dates, 2002).
- (c) :math:`C_j \ge r_j + p_j`.
- (d) For any parts :math:`0 \le \mu_j \le 1`,
  :math:`C_j \ge \mu_j (M_j + p_j/2) + (1 - \mu_j)(r_j + p_j)`, and the largest :math:`\mu_j/v_j` first minimises
  :math:`\sum_j \mu_j M_j` in the same way: (b) has all parts 1, (c) all 0. As the least of functions linear in
  :math:`\mu` the bound is concave, and every optimal schedule's :math:`M_j - r_j - p_j/2` a supergradient of it.

Every :math:`\alpha` gives valid bounds; the best of them for one :math:`\alpha` that a small search finds counts.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from instances.sensitivity import ROUNDING
from instances.views.synergy import RUN, View
from models.registry import MODELS, ModelSpec, Outcome
from models.solve import Solution, SolveOptions, Times, peak_mb
from models.synergy.configurations import Array, Ints, configurations, fitting

EVALUATIONS = 1_000_000
"""Jobs times weights that the search may look at: about three seconds."""

FACTORS = (3.0, 1.7, 1.2)
"""Factors by which the search raises and lowers one weight, sweep by sweep."""

STEPS = 30
"""Steps up the supergradient of (d)."""

INTERVALS = 40
"""Intervals of the statement in Pyomo."""


@dataclass(frozen=True, eq=False)
class Run:
    """What bounds need of ``n`` jobs that run on ``d`` resources (types times GPUs, CPUs and memory).

    Attributes
    ----------
    start, alone
        ``(n,)`` seconds: start of the first round at or after the arrival, and work at the best rate.
    work, kind
        ``(n,)`` iterations, and position of each job's kind below.
    first
        ``(K,)`` where the configurations of each kind begin.
    use
        ``(q, d)`` part of each resource that an iteration per second takes in each configuration.
    resources
        ``(d, 2)`` GPU type, and 0, 1 or 2 for GPUs, CPUs or memory.
    speed
        ``(d,)`` first guess of what a resource's type is worth.
    """

    start: Array
    alone: Array
    work: Array
    kind: Ints
    first: Ints
    use: Array
    resources: Ints
    speed: Array

    def volume(self, weights: Array) -> Array:
        """Return ``(n,)`` seconds of the whole cluster that each job takes at least, for weights ``(d,)``."""
        return np.asarray(self.work * np.minimum.reduceat(self.use @ weights, self.first)[self.kind])


def run_of(view: View) -> Run:
    """Return the jobs of the whole run, with their configurations."""
    jobs = view.possible
    kinds, kind = np.unique(view.profiles.kind[jobs], return_inverse=True)
    asked = np.zeros_like(view.needs.able)
    asked[kinds] = fitting(view)[kinds]
    held = configurations(view, asked)
    first = np.searchsorted(held.kind, kinds)
    pools = view.pools
    total = np.column_stack((pools.gpus.astype(float), pools.cpus, pools.memory_gb))
    resources = np.argwhere(total > 0)
    part = held.held()[:, resources[:, 1]] / total[resources[:, 0], resources[:, 1]]
    part[held.gpu_type[:, None] != resources[:, 0]] = 0.0
    best = np.maximum.reduceat(held.rate, first)
    fair = view.needs.fair[kinds]
    speed = (fair / fair.max(axis=1, keepdims=True)).mean(axis=0) * pools.gpus
    return Run(
        start=view.arrival[jobs].astype(float) * view.slot_s,
        alone=view.workload.work[jobs] / best[kind.ravel()],
        work=view.workload.work[jobs],
        kind=kind.ravel(),
        first=first,
        use=part / held.rate[:, None],
        resources=resources,
        speed=speed[resources[:, 0]],
    )


def shortest_first(start: Array, volume: Array) -> float:
    """Return the least sum of completion times on one machine that may interrupt jobs: shortest remaining first."""
    total = float(start[volume <= 0].sum())
    queue: list[float] = []
    now = 0.0
    for begin, size in _released(start, volume):
        while queue and now < begin:
            if now + queue[0] <= begin:
                now += heapq.heappop(queue)
                total += now
            else:
                heapq.heapreplace(queue, queue[0] - (begin - now))
                now = begin
        now = max(now, begin)
        heapq.heappush(queue, size)
    return total + float((now + np.cumsum(np.sort(queue))).sum())


def mean_busy_times(start: Array, volume: Array, part: Array) -> Array:
    """Return ``(n,)`` mean busy times of a schedule on one machine that minimises ``Σ part·M``.

    It serves the largest ``part / volume`` first; parts of 1 are the smallest volume first.

    Parameters
    ----------
    start, volume
        ``(n,)`` when jobs may start, and how long the machine takes for them.
    part
        ``(n,)`` weights, 0 or more.
    """
    order = np.argsort(start, kind="stable")
    order = order[volume[order] > 0]
    urgency = -np.divide(part, volume, out=np.zeros_like(part), where=volume > 0)
    begins, keys = start.tolist(), urgency.tolist()
    left, moment = volume.tolist(), [0.0] * len(start)
    queue: list[tuple[float, int]] = []
    now = 0.0
    for j in [*order.tolist(), -1]:
        until = begins[j] if j >= 0 else np.inf
        while queue and now < until:
            served = queue[0][1]
            step = min(left[served], until - now)
            moment[served] += step * (now + step / 2)
            now += step
            if step == left[served]:
                heapq.heappop(queue)
            else:
                left[served] -= step
        if j >= 0:
            now = max(now, until)
            heapq.heappush(queue, (keys[j], j))
    found = start.copy()
    found[order] = np.array(moment)[order] / volume[order]
    return found


def _released(start: Array, volume: Array) -> list[tuple[float, float]]:
    """Return the jobs with a volume by their start."""
    order = np.argsort(start, kind="stable")
    order = order[volume[order] > 0]
    return list(zip(start[order].tolist(), volume[order].tolist(), strict=True))


def completion(run: Run, weights: Array) -> tuple[float, float]:
    """Return the bounds (a) and (b) on the sum of completion times, in seconds, at weights ``(d,)``."""
    volume = run.volume(weights)
    return shortest_first(run.start, volume), float(_blend(run, volume, np.ones_like(volume))[0])


def _blend(run: Run, volume: Array, part: Array) -> tuple[float, Array]:
    """Return the bound (d) on the sum at parts ``(n,)``, and by how much it grows with each part."""
    gain = mean_busy_times(run.start, volume, part) - run.start - run.alone / 2
    return float((run.start + run.alone).sum() + part @ gain), gain


def blended(run: Run, volume: Array) -> float:
    """Return the best bound (d) on the sum of completion times that some steps up its supergradient find.

    The first step has parts of 1, which is (b).
    """
    part = np.ones_like(volume)
    best = float((run.start + run.alone).sum())
    for step in range(STEPS):
        value, gain = _blend(run, volume, part)
        best = max(best, value)
        part = np.clip(part + 2 / (1 + step) * np.clip(gain / run.alone, -1, 1), 0, 1)
    return best


def weigh(run: Run) -> Array:
    """Return the weights ``(d,)`` of the best bound that a small search finds.

    It starts from GPUs, CPUs or memory alone and from all of them, takes the better of (a) and (b) there, and then
    raises or lowers one weight after the other while that improves it.
    """
    starts = [_start(run, np.array(main)) for main in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1))]
    values = np.array([completion(run, weights) for weights in starts])
    which, better = divmod(int(values.argmax()), 2)
    weights, best = starts[which], float(values.max())
    left = EVALUATIONS // len(run.work)
    changes = [(d, f) for factor in FACTORS for d in range(len(weights)) for f in (factor, 1 / factor)]
    for d, factor in changes:
        while left > 0:
            left -= 1
            tried = weights.copy()
            tried[d] *= factor
            tried /= tried.sum()
            value = _one(run, run.volume(tried), better)
            if value <= best * (1 + 1e-6):
                break
            weights, best = tried, value
    return weights


def _one(run: Run, volume: Array, which: int) -> float:
    """Return the bound (a) or (b)."""
    return _blend(run, volume, np.ones_like(volume))[0] if which else shortest_first(run.start, volume)


def _start(run: Run, main: NDArray[np.int64]) -> Array:
    """Return weights of these resources, with a little of all others, so that the search can raise them."""
    weights = np.where(main[run.resources[:, 1]] > 0, 1.0, 0.03) * run.speed
    return np.asarray(weights / weights.sum())


def bound(view: View, options: SolveOptions) -> Outcome:
    """Return the bound on the mean completion time, in seconds."""
    began = time.perf_counter()
    run = run_of(view)
    built = time.perf_counter()
    volume = run.volume(weigh(run))
    named = {
        "every job alone": float((run.start + run.alone).sum()),
        "shortest remaining volume first": shortest_first(run.start, volume),
        "mean busy times and every job alone": blended(run, volume),
    }
    winner = max(named, key=lambda name: named[name])
    # Levels have a rounding; nothing else here is inexact by more than floating point.
    total = named[winner] * (1 - 2 * ROUNDING)
    jobs = view.possible
    solution = Solution(
        status="optimal",
        termination=f"bound: {winner}",
        bound=(total - float(view.workload.arrival_s[jobs].sum())) / len(jobs),
        times=Times(build_s=built - began, solve_s=time.perf_counter() - built),
        peak_mb=peak_mb(),
    )
    return Outcome(solution, None)


def build_intervals(
    view: View, weights: Array | None = None, *, capped: bool = True, intervals: int = INTERVALS
) -> pyo.ConcreteModel:
    """Return (b) as an LP over intervals: ``x[j,t]`` of job j is done in interval t.

    Work counts as done at the interval's start (or the job's own, if that is later), so that its optimum is a bound,
    below (b) by at most an interval where jobs are not capped, and otherwise between the two.

    Parameters
    ----------
    view
        Jobs of the run.
    weights
        ``(d,)`` weights on the resources; those of :func:`weigh` by default.
    capped
        Whether a job does no more in an interval than at its best rate, which (b) forgets.
    intervals
        Number of equal intervals until everything can be done.
    """
    run = run_of(view)
    volume = run.volume(weigh(run) if weights is None else weights)
    end = float(run.start.max() + volume.sum() + run.alone.max())
    length = end / intervals
    begin = np.maximum(np.arange(intervals) * length, run.start[:, None])
    room = np.maximum(0.0, (np.arange(intervals) + 1) * length - begin)
    most = np.minimum(1.0, room / run.alone[:, None]) if capped else np.ones_like(room)
    cells = [(int(j), int(t)) for j, t in np.argwhere(room > 0)]
    m = pyo.ConcreteModel()
    m.JOBS = pyo.RangeSet(0, len(volume) - 1)
    m.INTERVALS = pyo.Set(initialize=sorted({t for _, t in cells}))
    m.CELLS = pyo.Set(dimen=2, initialize=cells)
    m.WHEN = pyo.Set(m.JOBS, initialize={j: np.flatnonzero(room[j] > 0).tolist() for j in m.JOBS})
    m.WHO = pyo.Set(m.INTERVALS, initialize={t: np.flatnonzero(room[:, t] > 0).tolist() for t in m.INTERVALS})
    m.begin = pyo.Param(m.CELLS, initialize={cell: float(begin[cell] / length) for cell in cells})
    m.volume = pyo.Param(m.JOBS, initialize=dict(enumerate((volume / length).tolist())))
    m.mean_length = pyo.Param(initialize=length / len(volume))
    # A job ends half its duration after its mean busy time, and has waited since its arrival.
    m.others = pyo.Param(initialize=float((run.alone / 2 - view.workload.arrival_s[view.possible]).mean()))
    m.x = pyo.Var(m.CELLS, bounds=lambda m, j, t: (0, float(most[j, t])))

    @m.Constraint(m.JOBS)
    def all_done(m: Any, j: int) -> Any:
        return sum(m.x[j, t] for t in m.WHEN[j]) == 1

    @m.Constraint(m.INTERVALS)
    def one_machine(m: Any, t: int) -> Any:
        return sum(m.volume[j] * m.x[j, t] for j in m.WHO[t]) <= 1

    m.mean = pyo.Objective(
        rule=lambda m: m.mean_length * sum(m.begin[j, t] * m.x[j, t] for j, t in m.CELLS) + m.others,
        sense=pyo.minimize,
    )
    return m


def _no_decision(view: View, model: pyo.ConcreteModel, solution: Solution) -> None:
    """Decide nothing: a fluid on one machine is no schedule."""


MODELS.register(
    ModelSpec(
        id="synergy.jct",
        paper="synergy",
        problem=RUN.id,
        kind="bound",
        build=build_intervals,
        decode=_no_decision,
        source="Single-machine relaxations (Schrage 1968; Goemans et al. 2002) with weights on Synergy's resources",
        procedure=bound,
    )
)
