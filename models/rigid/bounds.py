r"""Lower bounds on gangs of fixed duration that hold with and without preemption, each with its proof.

**Shares.** A function :math:`f` on (0, 1] is *dual feasible* if, for any numbers that add up to at most 1, their values
also add up to at most 1. Jobs that run at the same time take fractions :math:`g_j/G` of the pool that add up to at most
1, so :math:`\sum f(g_j/G) \le 1` over them. A job therefore takes at least the volume :math:`v_j = p_j f(g_j/G)` of a
single machine of speed 1 that may preempt jobs and run several at once, each at part of its speed; a fraction of a run
takes that fraction of the volume. Besides :math:`f(x) = x`, the *squashed area*, two families are used (Fekete and
Schepers, New classes of fast lower bounds for bin packing problems, 2001). One maps x to 0 below :math:`\lambda`, to 1
above :math:`1 - \lambda`, and otherwise to x, for :math:`\lambda \le 1/2`: two fractions above 1/2 exclude each other,
and next to one above :math:`1 - \lambda` only fractions below :math:`\lambda` fit. The other is :math:`x \mapsto
\lfloor (k+1) x \rfloor / k` if :math:`(k+1) x` is not a whole number, and otherwise x. Gangs of more than half the pool
then exclude each other, as they really do.

**Completion times.** The relaxations of :mod:`schedgap.models.engine.fluid.single_machine` apply to that machine: (a)
shortest remaining volume first, and (d) mean busy times mixed with every job alone. Whenever the machine is idle
because no job has volume left, the jobs before and after do not interact: all these schedules split there, and a bound
for a set of jobs bounds their part of any schedule. So **the better of (a) and (d) counts in each busy period
separately**. Flow times are completions less releases. Slowdowns, bounded at 10 s, have weights :math:`1/\max(p_j, 10)`
and are at least 1, that is, a job completes no earlier than :math:`e_j = r_j + \max(p_j, 10)`.

**Makespan.** For every release t, all jobs released from t on have to go through the machine: the last completion is no
earlier than :math:`t + \sum_{r_j \ge t} v_j`, nor than any :math:`r_j + p_j`.

**Idle GPU-hours** are at least 0; no better bound is proved here.

**Moves.** If jobs may choose among pools, these are merged into one with all of their GPUs, and :math:`p_j` is the
shortest duration. Any set of concurrent runs fits into that pool, and no run is shorter, so all these bounds hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.parameters import Changes, Parameter
from schedgap.instances.rigid import OBJECTIVES, SHORT_S, RigidView
from schedgap.models.engine.fluid import intervals, single_machine
from schedgap.models.engine.fluid.single_machine import FluidJobs, Ways, blended, mean_busy_times, shortest_first_ends
from schedgap.models.engine.solve import SolveOptions
from schedgap.models.registry import Outcome, model

TINY = 1e-9
"""Least duration of a run, in ticks or hours: runs of no duration would be divided by 0."""

PARTS = 1024
"""Multipliers of mean busy times are multiples of 1/PARTS; certificates store them as whole numbers."""

ROUNDING = 1e-15
"""Several times the relative error of one floating-point operation."""

MARGIN = 1e-9
"""Relative error allowed for floating-point sums in a bound."""

MOST_JOBS = 20_000
"""Most jobs for column generation over intervals; this many take 12 s of computing and 600 MB.

Not more, since that is all the time that `harness certify` gives a bound. Where no job is interrupted,
:mod:`schedgap.models.rigid.starts` is tighter, and cheaper for many jobs.
"""

SUMS = ("flow", "slowdown", "weighted")
"""Objectives that are weighted sums of completion times."""


@dataclass(frozen=True, eq=False)
class MachineGangs(FluidJobs):
    """Gangs on ``d`` machines; the run of each job takes the volumes `uses` ``(n, d)``."""

    uses: Array

    @property
    def ways(self) -> Ways:
        """The only way to run each job."""
        every = np.arange(len(self.start))
        return Ways(every, self.alone, every, np.ones(len(every)))

    def cost(self, weights: Array) -> Array:
        """Return ``(n,)`` the weighted volume of each job's run."""
        return np.asarray(self.uses @ weights)

    def takes(self, weights: Array, which: Ints) -> Array:
        """Return ``(m, d)`` the volumes of runs on the machines."""
        return self.uses[which]


class WeightedDelay(NamedTuple):
    """A weighted sum of flow times as an objective: each job's `weight` and `earliest` end, ``(n,)``.

    A job that ends earlier counts as if it ended then.
    """

    weight: Array
    earliest: Array


def goal_of(view: RigidView, objective: str) -> WeightedDelay:
    """Return an objective as a weighted sum of flow times, in the unit of its problem.

    No job ends before its shortest duration.
    """
    view = view.relaxed
    alone = view.release + view.duration
    if objective == "slowdown":
        long = np.maximum(view.duration, round(SHORT_S / view.tick_s))
        return WeightedDelay(1 / long / view.size, (view.release + long).astype(float))
    weight = view.weight if objective == "weighted" else np.ones(view.size)
    total = weight.sum()
    return WeightedDelay(weight / (total or 1.0) / view.ticks_of_hour, alone.astype(float))


class Share(NamedTuple):
    """A dual feasible function: its name, its code in certificates, and its `value` ``(n,)`` for each job.

    The function is evaluated at the fraction of the pool that the job takes.
    """

    name: str
    code: tuple[Any, ...]
    value: Array


def shares(gpus: Ints, capacity: int) -> list[Share]:
    """Return the dual feasible functions, evaluated at the fractions of the pool that gangs take."""
    part = gpus / capacity
    functions = [Share("squashed area", ("area",), part)]
    for least in np.unique(np.minimum(gpus, capacity - gpus)).tolist():
        if 0 < 2 * least <= capacity and len(functions) < 8:
            value = np.where(gpus > capacity - least, 1.0, np.where(gpus < least, 0.0, part))
            functions.append(Share(f"area of gangs of {least:g} GPUs and more", ("from", least), value))
    for k in (1, 2, 3):
        whole = (k + 1) * gpus % capacity == 0
        value = np.where(whole, part, (k + 1) * gpus // capacity / k)
        functions.append(Share(f"gangs above 1/{k + 1} of the pool", ("above", k), value))
    return functions


class Least(NamedTuple):
    """A bound on an objective, and the completion times ``(n,)`` that add up to it.

    Single completion times may be earlier than possible. `pools` holds what the certificate says about each pool with
    jobs: the dual feasible function, and the multipliers of mean busy times.
    """

    name: str
    value: float
    completion: Array
    pools: Sequence[Mapping[str, Any]] = ()


def least_sum(view: RigidView, objective: str) -> Least:
    """Return the best bound on a weighted sum of flow times."""
    goal, names, total, pools = goal_of(view, objective), [], 0.0, []
    completion = np.zeros(view.size)
    for jobs, capacity in view.by_pool():
        release, duration = view.release[jobs].astype(float), view.duration[jobs].astype(float)
        functions = shares(view.gpus[jobs], capacity)
        best = max(functions, key=lambda share: shortest_first_ends(release, duration * share.value).sum())
        volume, alone = duration * best.value, np.maximum(duration, TINY)
        run = gangs(release, alone, goal, jobs, volume[:, None])
        part = np.rint(blended(run, volume)[1] * PARTS)
        how, ends = _by_period(run, volume, part / PARTS)
        completion[jobs] = ends
        names.append(f"{how} ({best.name})")
        pools.append({"share": list(best.code), "parts": part.astype(int).tolist()})
        rounding = TINY + ROUNDING * len(jobs) * float(release[-1] + volume.sum() + alone.max())
        total += float(goal.weight[jobs] @ (ends - release)) - rounding * float(goal.weight[jobs].sum())
    sure = float(goal.weight @ (goal.earliest - view.release)) * (1 - MARGIN)
    return Least("; ".join(dict.fromkeys(names)), max(total, sure), completion, pools)


def gangs(start: Array, alone: Array, goal: WeightedDelay, jobs: Ints, uses: Array) -> MachineGangs:
    """Return the data of jobs with durations `alone`, whose runs take the volumes `uses` ``(n, d)`` of machines."""
    machines = uses.shape[1]
    weight, earliest = goal.weight[jobs], goal.earliest[jobs]
    return MachineGangs(start, alone, earliest, weight, np.zeros(machines, np.int64), np.ones(machines), uses)


def _by_period(run: MachineGangs, volumes: Array, part: Array) -> tuple[str, Array]:
    """Return the completion times by the best bound in each busy period, and the name of the bound of most jobs."""
    busy = mean_busy_times(run.start, volumes, part * run.weight)
    bounds = {
        "every job alone": run.earliest,
        "mean busy times and every job alone": part * (busy + run.alone / 2) + (1 - part) * run.earliest,
    }
    if (run.weight == run.weight[0]).all():
        bounds["shortest remaining volume first"] = shortest_first_ends(run.start, volumes)
    cumulated = np.cumsum(volumes)
    latest = cumulated + np.maximum.accumulate(run.start - cumulated + volumes)
    first = np.flatnonzero(np.append(True, run.start[1:] >= latest[:-1]))
    sums = np.stack([np.add.reduceat(run.weight * ends, first) for ends in bounds.values()])
    chosen = np.repeat(sums.argmax(axis=0), np.diff(first, append=len(run.start)))
    most = int(np.bincount(chosen, minlength=len(bounds)).argmax())
    return list(bounds)[most], np.choose(chosen, list(bounds.values()))


def least_makespan(view: RigidView) -> Least:
    """Return the best bound on the makespan, in hours."""
    name, last, pools = "every job alone", float((view.release + view.duration).max()), []
    for jobs, capacity in view.by_pool():
        bounds = []
        for share in shares(view.gpus[jobs], capacity):
            after = np.cumsum((view.duration[jobs] * share.value)[::-1])[::-1]
            bounds.append((float((view.release[jobs] + after).max()), share.name, share.code))
        best = max(bounds, key=lambda bound: bound[0])
        pools.append({"share": list(best[2])})
        last, name = max((last, name), best[:2], key=lambda bound: bound[0])
    value = (last * (1 - ROUNDING * view.size) - float(view.release.min())) / view.ticks_of_hour
    return Least(name, max(value, 0.0), (view.release + view.duration).astype(float), pools)


def least(view: RigidView, objective: str) -> Least:
    """Return the best closed-form bound on an objective, in the unit of its problem."""
    view = view.relaxed
    if objective == "idle":
        return Least("an amount is 0 or more", 0.0, (view.release + view.duration).astype(float))
    return least_makespan(view) if objective == "makespan" else least_sum(view, objective)


def bound(view: RigidView, options: SolveOptions, objective: str = "flow") -> Outcome:
    """Bound an objective by the best relaxation to one machine per pool, without the LP.

    See Also
    --------
    schedgap.models.rigid.bounds : the relaxations and their proofs.
    """
    outcome = single_machine.closed_form(lambda: view, float, lambda view: least(view, objective))
    return replace(outcome, prices=outcome.evidence.completion)


def build(view: RigidView, objective: str = "flow") -> pyo.ConcreteModel:
    r"""Return the relaxation to one machine per pool as an LP over its busy intervals.

    - :math:`v_j`: volume, the least time that the run of j takes its whole pool (here, its area over the GPUs).
    - :math:`b_{j,t}`: begin of interval t of j's pool, or the job's release if that is later.
    - :math:`u_{j,t}`: largest fraction of its run that a job can do in an interval.
    - :math:`w_j`: weight in the objective; :math:`e_j`: earliest end; :math:`\Delta`: length of an interval.
    - ``x`` :math:`x_{j,t} \in [0, u_{j,t}]`: fraction of the run of j that is done in interval t.
    - ``end`` :math:`C_j \ge e_j`: completion.
    - ``last`` :math:`C \ge 0`: the makespan, where that is minimised.

    .. math:: \min \sum_j w_j \cdot (C_j - r_j)
    .. math:: \sum_t x_{j,t} = 1 \quad \forall j \label{all_done}
    .. math:: \sum_j v_j \cdot x_{j,t} \le \Delta \quad \forall t \label{one_machine}
    .. math:: C_j \ge \sum_t b_{j,t} \cdot x_{j,t} + p_j/2 \quad \forall j \label{mean_busy}
    .. math:: C \ge C_j \quad \forall j \label{latest}
    .. math:: C \ge r_k + \sum_{j \colon r_j \ge r_k} v_j \quad \forall k \label{area}

    A job completes no earlier than half its duration after its mean busy time (Goemans et al., Single machine
    scheduling with release dates, 2002). Work counts as done at the begin of an interval, so the optimum is a lower
    bound. The last two rows exist only if the makespan C is minimised instead; idle GPU-hours have no rows that bound
    them, and 0 is minimised.

    Duals: additional GPUs save at most that of their interval.
    """
    view = view.relaxed
    goal, hour = goal_of(view, objective), view.ticks_of_hour
    m = pyo.ConcreteModel()
    m.JOBS = pyo.RangeSet(0, view.size - 1)
    single_machine.add_machine(m, _cells(view))
    m.half = pyo.Param(m.JOBS, initialize=(view.duration / 2 / hour).tolist())
    m.release = pyo.Param(m.JOBS, initialize=(view.release / hour).tolist())
    weight = goal.weight * hour if objective in SUMS else np.zeros(view.size)
    m.weight = pyo.Param(m.JOBS, initialize=weight.tolist())
    m.end = pyo.Var(m.JOBS, bounds=lambda m, j: (float(goal.earliest[j]) / hour, None))

    @m.Constraint(m.JOBS)
    def mean_busy(m: Any, j: int) -> Any:
        return m.end[j] >= sum(m.begin[j, t] * m.x[j, t] for t in m.WHEN[j]) + m.half[j]

    if objective == "makespan":
        after: dict[int, float] = {}
        for jobs, capacity in view.by_pool():
            area = np.cumsum((view.duration[jobs] * view.gpus[jobs].astype(float))[::-1])[::-1] / capacity
            after |= dict(zip(jobs.tolist(), ((view.release[jobs] + area) / hour).tolist(), strict=True))
        m.least = pyo.Param(m.JOBS, initialize=after)
        m.last = pyo.Var(domain=pyo.NonNegativeReals)
        m.latest = pyo.Constraint(m.JOBS, rule=lambda m, j: m.last >= m.end[j])
        m.area = pyo.Constraint(m.JOBS, rule=lambda m, j: m.last >= m.least[j])
        m.total = pyo.Objective(expr=m.last - float(view.release.min()) / hour)
        return m
    m.total = pyo.Objective(expr=sum(m.weight[j] * (m.end[j] - m.release[j]) for j in m.JOBS))
    return m


def _cells(view: RigidView) -> single_machine.Cells:
    """Return the cells (job, interval) with begins in hours; intervals are numbered pool after pool."""
    found = {}
    for n, (jobs, capacity) in enumerate(view.by_pool()):
        release, duration = view.release[jobs].astype(float), np.maximum(view.duration[jobs].astype(float), TINY)
        _, cells = single_machine.cells_of(release, duration, duration * view.gpus[jobs] / capacity)
        for (i, t), (begin, most, volume) in cells.items():
            found[int(jobs[i]), n * single_machine.INTERVALS + t] = (begin / view.ticks_of_hour, most, volume)
    return found


def by_intervals(view: RigidView, options: SolveOptions, objective: str = "flow") -> Outcome:
    """Bound a weighted sum of flow times by column generation over intervals, with a price per pool and interval.

    See Also
    --------
    schedgap.models.engine.fluid.intervals : the proof.
    """
    view, hour = view.relaxed, view.ticks_of_hour
    began = clock.now()
    weight, earliest = goal_of(view, objective)
    start, alone = view.release / hour, np.maximum(view.duration / hour, TINY)
    goal = WeightedDelay(weight * hour, earliest / hour)
    machines = machines_of(view)
    uses = alone[:, None] * np.stack([machine.value for machine in machines], axis=1)
    run = gangs(start, alone, goal, np.arange(view.size), uses)
    tightest = intervals.least_completion(run, 0.0, options)
    before = arrived(view, weight)
    return tightest.outcome(began, -1, lambda bound: safely(view, objective, bound, before))


def safely(view: RigidView, objective: str, bound: float, before: float = 0.0) -> float:
    """Return `bound` less `before`, rounded down by more than floating-point errors, and at least 0.

    `bound` is on a weighted sum of completion times and `before` the sum of releases. Their difference, the flow times,
    can be much smaller than both, and these are rounded.
    """
    latest = float((view.release + view.duration).max() + view.duration.astype(float).sum())
    rounding = ROUNDING * view.size * latest * float(goal_of(view, objective).weight.sum())
    return max(bound * (1 - MARGIN) - before - rounding, 0.0)


def arrived(view: RigidView, weight: Array) -> float:
    """Return the weighted sum of releases, plus a margin for runs shorter than :data:`TINY` hours.

    Completion times exceed flow times by the releases. In the fluid a run takes at least :data:`TINY` hours, which
    delays a job by at most all runs that are shorter.
    """
    short = int((view.relaxed.duration < TINY * view.ticks_of_hour).sum())
    return float(weight @ view.release + weight.sum() * TINY * view.ticks_of_hour * short)


def machines_of(view: RigidView) -> list[Share]:
    """Return the machines that pools are relaxed to: for each pool, one per dual feasible function.

    The code of a machine names its pool.
    """
    machines: dict[bytes, Share] = {}
    for jobs, capacity in view.by_pool():
        for name, code, value in shares(view.gpus[jobs], capacity):
            if value.any():
                everywhere = np.zeros(view.size)
                everywhere[jobs] = value
                machines.setdefault(everywhere.tobytes(), Share(name, (int(view.pool[jobs[0]]), code), everywhere))
    return list(machines.values())


def too_many(view: RigidView, most: int = MOST_JOBS) -> str | None:
    """Return the reason why column generation over intervals runs only on request, or ``None``."""
    return f"{view.size} jobs in intervals (more than {most})" if view.size > most else None


def minimised(names: tuple[str, ...], wider: str = ".preemptive", *more: Parameter) -> dict[str, Any]:
    """Return the `parameters` and `variants` of a spec whose parameter `objective` selects the problem.

    `names` are the objectives; `more` are further parameters.
    """
    problems: Changes = {name: {"problem": f"rigid.{name}{wider}"} for name in names if name != "flow"}
    objective = Parameter("objective", "what is minimised", choices=names, changes=problems)
    return {"parameters": (objective, *more), "variants": tuple(f"objective={name}" for name in problems)}


model(
    "rigid.bound",
    problem="rigid.flow.preemptive",
    kind="bound",
    source="Single-machine relaxations (Schrage 1968; Goemans et al. 2002), dual feasible functions (Fekete 2001)",
    procedure=bound,
    **minimised(tuple(OBJECTIVES)),
)(build)
model(
    "rigid.intervals",
    problem="rigid.flow.preemptive",
    kind="bound",
    source="Fluid relaxation over intervals of time, by column generation",
    procedure=by_intervals,
    too_large=too_many,
    **minimised(SUMS),
)(build)
