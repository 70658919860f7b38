"""The best schedule without preemption: exact for a few jobs, by large-neighbourhood search for many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.rigid import Schedule, View, first_starts, kernels, starts_of
from schedgap.models.registry import SEEDED, Outcome, model
from schedgap.models.rigid.bounds import SUMS, Goal, goal_of, least, minimised
from schedgap.models.solve import Size, Solution, SolveOptions, Times, TracePoint, peak_mb

MOST_EXACT = 9
"""Largest number of jobs for the program over precedences."""

MOST_SERIAL = 2000
"""Most jobs of a pool for which every other list is scheduled by reservations, which takes quadratic time."""

USED = 0.75
"""Fraction of the time limit that the search takes."""

SLICE = 500_000
"""Jobs that are scheduled again in a pool before it is the next pool's turn; that takes about 0.2 s."""

STALE = 50
"""The search of a pool ends after this many rounds per job (counting at least 100 jobs) without improvement."""

REGULAR = (*SUMS, "makespan")
"""Regular objectives: they never improve when a job ends later."""


def build_exact(view: View, objective: str = "flow") -> pyo.ConcreteModel:
    r"""Return the MILP over precedences and flows of GPUs from job to job.

    - :math:`T`: a time by which all jobs can be done.
    - :math:`w_j`: weight in the objective; :math:`e_j`: earliest end that counts.
    - ``start`` :math:`S_j \ge r_j`: start.
    - ``end`` :math:`C_j \ge e_j`: completion.
    - ``last`` :math:`C \ge 0`: the makespan, if that is minimised.
    - ``before`` :math:`y_{i,j} \in \{0, 1\}`: j starts after the end of i.
    - ``flow`` :math:`f_{i,j} \ge 0`: GPUs that pass from i to j.
    - ``fresh`` :math:`f_{0,j} \ge 0`: GPUs that no job held before j.

    .. math:: \min \sum_j w_j \cdot (C_j - r_j)
    .. math:: C_j \ge S_j + p_j \quad \forall j \label{runs}
    .. math:: S_j \ge S_i + p_i - T \cdot (1 - y_{i,j}) \quad \forall i, j \label{after}
    .. math:: f_{i,j} \le \min(g_i, g_j) \cdot y_{i,j} \quad \forall i, j \label{passes}
    .. math:: f_{0,j} + \sum_i f_{i,j} = g_j \quad \forall j \label{gets}
    .. math:: \sum_j f_{i,j} \le g_i \quad \forall i \label{gives}
    .. math:: \sum_j f_{0,j} \le G \quad \forall pool \label{room}
    .. math:: C \ge C_j \quad \forall j \label{latest}

    The last row exists only if C is minimised instead. Jobs of different pools have no rows in common. Jobs that may
    choose among pools cannot be modelled (`NotApplicableError`).

    Duals (of the relaxation) say little: the rows with T are slack at any price.
    """
    if view.moves is not None:
        raise NotApplicableError("jobs may choose among pools, which this model does not support")
    goal, hour = goal_of(view, objective), view.ticks_of_hour
    release, duration = (view.release / hour).tolist(), (view.duration / hour).tolist()
    pool = view.pool.tolist()
    horizon = max(release) + sum(duration)
    m = pyo.ConcreteModel()
    m.JOBS, m.POOLS = pyo.RangeSet(0, view.size - 1), pyo.Set(initialize=sorted(set(pool)))
    m.PAIRS = pyo.Set(initialize=[(i, j) for i in m.JOBS for j in m.JOBS if i != j and pool[i] == pool[j]], dimen=2)
    m.MEMBERS = pyo.Set(m.POOLS, initialize={p: np.flatnonzero(view.pool == p).tolist() for p in m.POOLS})
    m.OTHERS = pyo.Set(m.JOBS, initialize={j: [i for i in m.MEMBERS[pool[j]] if i != j] for j in m.JOBS})
    m.capacity = pyo.Param(m.POOLS, initialize={p: int(view.capacity[p]) for p in m.POOLS})
    m.start = pyo.Var(m.JOBS, bounds=lambda m, j: (release[j], horizon))
    m.end = pyo.Var(m.JOBS, bounds=lambda m, j: (float(goal.earliest[j]) / hour, None))
    m.before = pyo.Var(m.PAIRS, domain=pyo.Binary)
    m.flow = pyo.Var(m.PAIRS, domain=pyo.NonNegativeReals)
    m.fresh = pyo.Var(m.JOBS, domain=pyo.NonNegativeReals)
    m.duration = pyo.Param(m.JOBS, initialize=duration)
    m.gpus = pyo.Param(m.JOBS, initialize=view.gpus.tolist())
    m.runs = pyo.Constraint(m.JOBS, rule=lambda m, j: m.end[j] >= m.start[j] + m.duration[j])

    m.most = pyo.Param(m.PAIRS, initialize={(i, j): int(min(view.gpus[i], view.gpus[j])) for i, j in m.PAIRS})

    @m.Constraint(m.PAIRS)
    def after(m: Any, i: int, j: int) -> Any:
        return m.start[j] >= m.start[i] + m.duration[i] - horizon * (1 - m.before[i, j])

    @m.Constraint(m.PAIRS)
    def passes(m: Any, i: int, j: int) -> Any:
        return m.flow[i, j] <= m.most[i, j] * m.before[i, j]

    @m.Constraint(m.JOBS)
    def gets(m: Any, j: int) -> Any:
        return m.fresh[j] + sum(m.flow[i, j] for i in m.OTHERS[j]) == m.gpus[j]

    @m.Constraint(m.JOBS)
    def gives(m: Any, i: int) -> Any:
        passed = sum(m.flow[i, j] for j in m.OTHERS[i])
        return passed <= m.gpus[i] if len(m.OTHERS[i]) else pyo.Constraint.Skip

    @m.Constraint(m.POOLS)
    def room(m: Any, p: int) -> Any:
        return sum(m.fresh[j] for j in m.MEMBERS[p]) <= m.capacity[p]

    if objective == "makespan":
        m.last = pyo.Var(domain=pyo.NonNegativeReals)
        m.latest = pyo.Constraint(m.JOBS, rule=lambda m, j: m.last >= m.end[j])
        m.total = pyo.Objective(expr=m.last - min(release))
        return m
    weight = (goal.weight * hour).tolist()
    m.total = pyo.Objective(expr=sum(weight[j] * (m.end[j] - release[j]) for j in m.JOBS))
    return m


def decode(view: View, built: pyo.ConcreteModel, solution: Solution) -> Schedule:
    """Return the schedule in which jobs, in order of the solution's starts, reserve the earliest time possible.

    No job starts later than in the solution, since the jobs before it do not either.
    """
    # Of jobs that start together, one of no duration may be over before another takes its GPUs.
    order, starts = np.lexsort((view.duration, solution.array(built.start))), np.zeros(view.size, np.int64)
    for jobs, capacity in view.by_pool():
        places = np.empty(view.size, np.int64)
        places[jobs] = np.arange(jobs.size)
        turn = places[order[np.isin(order, jobs)]]
        data = view.release[jobs], view.duration[jobs], view.gpus[jobs], capacity
        starts[jobs] = kernels().in_turn(*data, turn, False)
    return starts_of(view, starts)


class Pool:
    """Large-neighbourhood search in one pool."""

    def __init__(self, view: View, jobs: Ints, capacity: int, goal: Goal, latest: bool, seed: int) -> None:
        self.jobs, self.latest, self.rng = jobs, latest, np.random.default_rng(seed)
        self.of = view.release[jobs], view.duration[jobs], view.gpus[jobs], capacity
        self.weight = np.ascontiguousarray(goal.weight[jobs])
        self.floor = np.rint(goal.earliest[jobs]).astype(np.int64)
        self.best, self.cost = np.zeros(jobs.size, np.int64), np.inf
        self.stale, self.patience = 0, STALE * max(jobs.size, 100)
        release, duration, gpus, _ = self.of
        weight = np.maximum(self.weight / self.weight.max(), 1e-300) if self.weight.any() else np.ones(release.size)
        area = (duration * gpus).astype(float)
        by_weight = (duration * gpus.astype(float) ** power / weight for power in (0.0, 0.5, 1.0))
        for key in (duration.astype(float), area, *by_weight, -area, np.arange(release.size, dtype=float)):
            self.offer(kernels().by_list(*self.of, key, False))

    def offer(self, start: Ints) -> None:
        """Keep starts if they are the best so far."""
        cost = kernels().cost(start, self.of[1], self.weight, self.floor, self.latest)
        if cost < self.cost:
            self.best, self.cost = start, cost

    def search(self) -> None:
        """Search for as many rounds as schedule :data:`SLICE` jobs; a count, so that every machine does the same."""
        rounds, serial = max(2, min(SLICE // self.jobs.size, self.patience)), self.jobs.size <= MOST_SERIAL
        goal = self.weight, self.floor, self.latest
        starts, cost = kernels().improve(*self.of, *goal, self.best, rounds, self.rng, serial)
        self.stale = 0 if cost < self.cost else self.stale + rounds
        self.best, self.cost = starts, min(cost, self.cost)

    @property
    def over(self) -> bool:
        """Whether the search has stalled, or there is nothing to decide."""
        return self.jobs.size < 2 or self.stale >= self.patience


def search(view: View, options: SolveOptions, objective: str = "flow", seeded: bool = True) -> Outcome:
    """Search for the best schedule, and bound it by the best closed-form relaxation.

    The first schedules are list schedules by duration, area, weight and release, what really ran and, if `seeded`, the
    known decisions of other methods. Rounds of large-neighbourhood search follow, pool by pool: some consecutive jobs
    of the list change places, and all jobs are scheduled again. Jobs that may choose among pools are assigned either to
    where they ran or to where each would end first at its release, whichever has the better list schedules; there they
    stay.
    """
    budget = clock.Budget(options.time_limit_s)
    bound, goal, latest = least(view, objective), goal_of(view, objective), objective == "makespan"
    tried = [view] if view.moves is None else [view.settled, view.within(view.pool)]
    candidates = [(v, [Pool(v, *jobs, goal, latest, options.seed) for jobs in v.by_pool()]) for v in tried]
    view, pools = min(candidates, key=lambda candidate: _value(view, objective, goal, candidate[1]))
    schedules = [seed.decision for seed in options.seeds] if seeded else []
    if view.executed is not None and view.executed.job.size == view.size:
        schedules.append(view.executed)
    for schedule in schedules:
        if (schedule.pool != view.pool[schedule.job]).any():
            continue
        starts = first_starts(view, schedule)
        for pool in pools:
            pool.offer(starts[pool.jobs])
    trace: list[TracePoint] = []
    incumbent = np.inf
    while True:
        value = _value(view, objective, goal, pools)
        if value < incumbent:
            incumbent = value
            trace.append(TracePoint(budget.wall_s, value, bound.value))
        late = budget.spent_s > USED * budget.limit_s
        left = [pool for pool in pools if not pool.over]
        proved = value <= bound.value * (1 + options.rel_gap)
        if late or not left or proved:
            break
        for pool in left:
            pool.search()
    starts = np.zeros(view.size, np.int64)
    for pool in pools:
        starts[pool.jobs] = pool.best
    solution = Solution(
        status="optimal" if proved else "time limit with incumbent" if late else "gap left",
        termination=f"bound: {bound.name}",
        objective=value,
        bound=bound.value,
        trace=tuple(trace),
        times=Times(solve_s=budget.wall_s),
        size=Size(),
        peak_mb=peak_mb(),
    )
    return Outcome(solution, starts_of(view, starts), prices=bound.completion, evidence=bound)


def _value(view: View, objective: str, goal: Goal, pools: list[Pool]) -> float:
    """Return the objective of the best starts of all pools."""
    if objective == "makespan":
        return (max(pool.cost for pool in pools) - float(view.release.min())) / view.ticks_of_hour
    flows = [np.maximum(p.best + p.of[1], p.floor) - p.of[0] for p in pools]
    return float(sum((goal.weight[p.jobs] * flow).sum() for p, flow in zip(pools, flows, strict=True)))


def _too_many(view: View) -> str | None:
    return f"{view.size} jobs to branch on (more than {MOST_EXACT})" if view.size > MOST_EXACT else None


model(
    "rigid.exact",
    problem="rigid.flow",
    decode=decode,
    source="Program over precedences and flows of resources (Artigues et al., EJOR 2003)",
    too_large=_too_many,
    example="gen/20jobs?jobs=4",
    **minimised(REGULAR, ""),
)(build_exact)
model(
    "rigid.search",
    problem="rigid.flow",
    kind="matheuristic",
    decode=decode,
    source="Priority lists and large-neighbourhood search (Shaw 1998), with a bound",
    procedure=search,
    example="gen/20jobs?jobs=4",
    **minimised(REGULAR, "", SEEDED),
)(build_exact)
