"""Search for the best schedule without preemption: exact for a few jobs, by large neighbourhoods for many.

Jobs of no duration hold no GPUs, so they end at their release, whatever the others do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.rigid import RigidSchedule, RigidView, first_starts, kernels, starts_of
from schedgap.models.engine.solve import Size, Solution, SolveOptions, Status, Times, TracePoint, checked, peak_mb
from schedgap.models.registry import SEEDED, Outcome, model
from schedgap.models.rigid.bounds import SUMS, Least, WeightedDelay, goal_of, least, minimised
from schedgap.models.rigid.stretches import STRETCHES, in_parts, number_of, stretch_of

MOST_EXACT = 9
"""Largest number of jobs whose lists are all enumerated."""

AHEAD = 2
"""Length of the beginning of a list; the clock is looked at after all lists with the same beginning."""

POWERS = (3.0, 2.0, 0.5, 0.0, 1.0, 1.5)
"""First schedules are by duration times these powers of GPUs, the last one first. Large gangs that wait for others to
end leave GPUs idle, so that powers above 1 are often best."""

MOST_QUEUED = 200_000_000
"""Most jobs that backfilling looks at, all events together; this takes about a second."""

USED = 0.75
"""Fraction of the time limit that the search takes."""

SLICE = 500_000
"""Jobs that the search schedules again in one pool before it turns to the next; this takes about 0.2 s."""

STRETCH, TRIES = 60, 20
"""Usual number of jobs in a stretch of time, and how many orders of them are tried."""

LOOKED = 200_000_000
"""Jobs that are looked at before the search in stretches turns to another pool: all of them for each stretch."""

STALE = 50
"""The search of a pool ends after this many rounds per job (counting at least 100 jobs) without improvement."""

REGULAR = (*SUMS, "makespan")
"""Regular objectives: they never improve when a job ends later."""


def build_exact(view: RigidView, objective: str = "flow") -> pyo.ConcreteModel:
    r"""Return the MILP over precedences and flows of GPUs from job to job.

    - :math:`T`: a time by which all jobs of the pool can be done.
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

    The last row exists only if C is minimised instead. Jobs of different pools have no rows in common. Jobs of no
    duration hold no GPUs: they have an ``end``, and no other variables or rows. Jobs that may choose among pools cannot
    be modelled (`NotApplicableError`).

    The program is solved by enumeration, in whole ticks. With times from a microsecond to a week, the rows with T allow
    a solver errors that are longer than some jobs.

    Duals (of the relaxation) say little: the rows with T are slack at any price.
    """
    if view.moves is not None:
        raise NotApplicableError("jobs may choose among pools, which this model does not support")
    goal, hour = goal_of(view, objective), view.ticks_of_hour
    release = (view.release / hour).tolist()
    m = _declared(view, goal.earliest / hour)
    m.runs = pyo.Constraint(m.RUNS, rule=lambda m, j: m.end[j] >= m.start[j] + m.duration[j])

    @m.Constraint(m.PAIRS)
    def after(m: Any, i: int, j: int) -> Any:
        return m.start[j] >= m.start[i] + m.duration[i] - m.T[i] * (1 - m.before[i, j])

    @m.Constraint(m.PAIRS)
    def passes(m: Any, i: int, j: int) -> Any:
        return m.flow[i, j] <= m.most[i, j] * m.before[i, j]

    @m.Constraint(m.RUNS)
    def gets(m: Any, j: int) -> Any:
        return m.fresh[j] + sum(m.flow[i, j] for i in m.OTHERS[j]) == m.gpus[j]

    @m.Constraint(m.RUNS)
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


def _declared(view: RigidView, earliest: Array) -> pyo.ConcreteModel:
    """Return a model with the sets, the data and the variables; `earliest` ``(n,)`` ends that count are in hours."""
    hour = view.ticks_of_hour
    release, duration = (view.release / hour).tolist(), (view.duration / hour).tolist()
    held = [jobs.tolist() for jobs, _ in holding(view)]
    members = {int(view.pool[jobs[0]]): sorted(jobs) for jobs in held}
    pairs = [(i, j) for jobs in members.values() for i in jobs for j in jobs if i != j]
    horizon = {j: max(release) + sum(duration[i] for i in jobs) for jobs in members.values() for j in jobs}
    m = pyo.ConcreteModel()
    m.JOBS, m.POOLS = pyo.RangeSet(0, view.size - 1), pyo.Set(initialize=sorted(members))
    m.RUNS, m.PAIRS = pyo.Set(initialize=sorted(horizon)), pyo.Set(initialize=pairs, dimen=2)
    m.MEMBERS = pyo.Set(m.POOLS, initialize=members)
    m.OTHERS = pyo.Set(m.RUNS, initialize={j: [i for i in members[int(view.pool[j])] if i != j] for j in m.RUNS})
    m.capacity = pyo.Param(m.POOLS, initialize={p: int(view.capacity[p]) for p in m.POOLS})
    m.start = pyo.Var(m.RUNS, bounds=lambda m, j: (release[j], horizon[j]))
    m.end = pyo.Var(m.JOBS, bounds=lambda m, j: (float(earliest[j]), None))
    m.before = pyo.Var(m.PAIRS, domain=pyo.Binary)
    m.flow = pyo.Var(m.PAIRS, domain=pyo.NonNegativeReals)
    m.fresh = pyo.Var(m.RUNS, domain=pyo.NonNegativeReals)
    m.duration = pyo.Param(m.RUNS, initialize={j: duration[j] for j in m.RUNS})
    m.gpus = pyo.Param(m.RUNS, initialize={j: int(view.gpus[j]) for j in m.RUNS})
    m.T = pyo.Param(m.RUNS, initialize=horizon)
    m.most = pyo.Param(m.PAIRS, initialize={(i, j): int(min(view.gpus[i], view.gpus[j])) for i, j in m.PAIRS})
    return m


def holding(view: RigidView) -> list[tuple[Ints, int]]:
    """Return, for each pool, its jobs that hold GPUs for some time, in the order of release, and its number of GPUs."""
    pools = [(jobs[view.duration[jobs] > 0], capacity) for jobs, capacity in view.by_pool()]
    return [(jobs, capacity) for jobs, capacity in pools if jobs.size]


class PoolSearch:
    """The search in one pool, for the jobs that hold GPUs for some time, and its best schedule.

    It searches neighbourhoods, or enumerates all lists.
    """

    def __init__(
        self, view: RigidView, jobs: Ints, capacity: int, goal: WeightedDelay, latest: bool, seed: int
    ) -> None:
        self.jobs, self.latest, self.rng = jobs, latest, np.random.default_rng(seed)
        self.of = view.release[jobs], view.duration[jobs], view.gpus[jobs], capacity
        self.goal = np.ascontiguousarray(goal.weight[jobs]), np.rint(goal.earliest[jobs]).astype(np.int64), latest
        self.best, self.cost = np.zeros(jobs.size, np.int64), np.inf
        self.stale, self.patience = 0, STALE * max(jobs.size, 100)
        self.keys = [self.of[0].astype(float), -(self.of[1] * self.of[2]).astype(float), *self._by_area()]
        self.gains, self.turn, self.at = [np.inf, np.inf], 0, 0
        self.begin()

    def _by_area(self) -> list[Array]:
        """Return duration times a power of GPUs, per weight, for several powers, from the middle one on."""
        (_, duration, gpus, _), weight = self.of, self.goal[0]
        weight = np.maximum(weight / weight.max(), 1e-200) if weight.any() else np.ones(weight.size)
        return [duration * gpus.astype(float) ** power / weight for power in POWERS]

    def begin(self) -> bool:
        """Try the schedules by the next of the first keys; return whether there was one.

        Each job of a schedule then takes its earliest place, in the order of starts, which never delays it.
        """
        if not self.keys:
            return False
        key = self.keys.pop()
        for start in (
            kernels().by_list(*self.of, key, False),
            kernels().by_list(*self.of, key, True),
            kernels().backfilled(*self.of, key, MOST_QUEUED),
        ):
            if start.size:
                self.offer(start)
                self.offer(kernels().in_turn(*self.of, np.argsort(start, kind="stable"), False))
        return True

    def offer(self, start: Ints) -> None:
        """Keep these starts if their schedule is the best so far."""
        cost = kernels().cost(start, *self.of[:2], *self.goal)
        if cost < self.cost:
            self.best, self.cost = start, cost

    def search(self) -> None:
        """Search in one of two ways: the one that gained more when it was last used, or in every fourth turn the other.

        The limits are counts, so that the result does not depend on the speed of the machine.
        """
        self.turn += 1
        way = int((self.gains[1] > self.gains[0]) != (self.turn % 4 == 0)) if not self.latest else 0
        before = self.cost
        (self._among_all, self._in_stretches)[way]()
        self.gains[way] = before - self.cost

    def _among_all(self) -> None:
        """Search for as many rounds as schedule :data:`SLICE` jobs."""
        rounds = max(2, min(SLICE // self.jobs.size, self.patience))
        starts, cost = kernels().improve(*self.of, *self.goal, self.best, rounds, self.rng)
        self.stale = 0 if cost < self.cost else self.stale + rounds
        self.best, self.cost = starts, min(cost, self.cost)

    def _in_stretches(self) -> None:
        """Search in stretches of time, and let each job take its earliest place, in the order of starts."""
        from schedgap.models.rigid import _kernels

        start, width = self.best.copy(), max(2, int(STRETCH * 2.0 ** self.rng.integers(-2, 2)))
        until = min(self.jobs.size, self.at + LOOKED // self.jobs.size * width)
        _kernels.stretches(*self.of, self.goal[:2], start, (self.at, until, width), TRIES, self.rng)
        self.at = until % self.jobs.size
        self.offer(kernels().in_turn(*self.of, np.argsort(start, kind="stable"), False))

    def enumerate(self, first: Ints) -> int:
        """Try all lists that begin with `first`, and return how many schedules were begun."""
        self.cost, nodes = kernels().best_order(*self.of, *self.goal, first, self.best, self.cost)
        return int(nodes)

    @property
    def over(self) -> bool:
        """Whether the search has stalled, or there is nothing to decide."""
        return self.jobs.size < 2 or self.stale >= self.patience


class PoolSearches:
    """The pools of an instance in which each job has its pool, and the best schedule found in each of them."""

    def __init__(
        self, view: RigidView, objective: str, goal: WeightedDelay, bound: Least, budget: clock.Budget, seed: int
    ) -> None:
        self.view, self.objective, self.goal, self.bound = view, objective, goal, bound
        self.budget = budget
        self.pools = [PoolSearch(view, *jobs, goal, objective == "makespan", seed) for jobs in holding(view)]
        self.trace: list[TracePoint] = []

    @property
    def starts(self) -> Ints:
        """The best starts ``(n,)``; jobs that hold no GPUs are over at their release."""
        starts = self.view.release.copy()
        for pool in self.pools:
            starts[pool.jobs] = pool.best
        return starts

    @property
    def value(self) -> float:
        """The objective of the best starts."""
        view, ends = self.view, self.starts + self.view.duration
        if self.objective == "makespan":
            return float(ends.max() - view.release.min()) / view.ticks_of_hour
        return float(self.goal.weight @ (np.maximum(ends, np.rint(self.goal.earliest)) - view.release))

    def begun(self) -> PoolSearches:
        """Try the schedules by all first keys, as long as there is time, and return the searches."""
        while sum(pool.begin() for pool in self.pools) and not self.late(USED / 2):
            self.record()
        return self

    def seeded(self, schedules: Iterable[RigidSchedule]) -> None:
        """Start from those of the known schedules that run every job in the pool that it has here."""
        for schedule in schedules:
            if (schedule.pool == self.view.pool[schedule.job]).all():
                starts = first_starts(self.view, schedule)
                for pool in self.pools:
                    pool.offer(starts[pool.jobs])

    def record(self) -> float:
        """Add the incumbent to the trace if it is better, and return it."""
        value = self.value
        if not self.trace or value < self.trace[-1].incumbent:  # type: ignore[operator]
            self.trace.append(TracePoint(self.budget.wall_s, value, self.bound.value))
        return value

    def follow(self, jobs: Ints, starts: Ints) -> None:
        """Let all jobs take their earliest places in the order of `starts` ``(n,)``, which are those of `jobs`."""
        wanted = np.empty(self.view.size, np.int64)
        wanted[jobs] = starts
        for pool in self.pools:
            pool.offer(kernels().in_turn(*pool.of, np.argsort(wanted[pool.jobs], kind="stable"), False))

    def run(self, options: SolveOptions) -> Status:
        """Search pool by pool until a limit is reached, all searches stall, or the best is proved."""
        rounds = 0
        while True:
            proved = self.record() <= self.bound.value * (1 + options.rel_gap)
            late, enough = self.late(USED), options.nodes is not None and rounds >= options.nodes
            left = [pool for pool in self.pools if not pool.over]
            if late or enough or not left or proved:
                return "optimal" if proved else "time limit with incumbent" if late else "gap left"
            for pool in left:
                pool.search()
                rounds += 1

    def late(self, used: float) -> bool:
        """Return whether this fraction of the time limit is over."""
        return self.budget.spent_s > used * self.budget.limit_s

    def outcome(self, status: Status, termination: str, bound: float, nodes: int | None = None) -> Outcome:
        """Return the outcome of a search that ends now."""
        solution = Solution(
            status=status,
            termination=termination,
            objective=self.value,
            bound=bound,
            nodes=nodes,
            trace=tuple(self.trace),
            times=Times(solve_s=self.budget.wall_s),
            size=Size(),
            peak_mb=peak_mb(),
        )
        return Outcome(solution, starts_of(self.view, self.starts), prices=self.bound.completion, evidence=self.bound)


def exact(view: RigidView, options: SolveOptions, objective: str = "flow") -> Outcome:
    """Enumerate all list schedules, in which each job of a list takes the earliest time; one of them is optimal.

    See Also
    --------
    schedgap.instances.rigid._kernels.best_order : which lists are left out.
    """
    if view.moves is not None:
        raise NotApplicableError("jobs may choose among pools, which this model does not support")
    about, budget = (objective, goal_of(view, objective), least(view, objective)), clock.Budget(options.time_limit_s)
    pools = PoolSearches(view, *about, budget, options.seed).begun()
    firsts = [(p, np.array(f)) for p in pools.pools for f in itertools.permutations(range(p.jobs.size), AHEAD)]
    firsts += [(p, np.arange(p.jobs.size)) for p in pools.pools if p.jobs.size < AHEAD]
    nodes, late = 0, False
    for pool, first in firsts:
        late = pools.late(1.0) or (options.nodes is not None and nodes >= options.nodes)
        if late:
            break
        nodes += pool.enumerate(first)
        pools.record()
    if late:
        return pools.outcome("time limit with incumbent", f"{nodes} schedules begun", pools.bound.value, nodes)
    found = pools.outcome("optimal", f"all lists tried, {nodes} schedules begun", pools.value, nodes)
    return replace(found, solution=checked(found.solution, options, build_exact, view, objective))


def search(
    view: RigidView, options: SolveOptions, objective: str = "flow", seeded: bool = True, stretches: int = 1
) -> Outcome:
    """Search for the best schedule, and bound it by the best closed-form relaxation.

    The first schedules are by release, area, and duration times powers of GPUs per weight: list schedules with and
    without overtaking, and backfilling, each with jobs moved ahead where that delays nobody. The schedule that really
    ran and, if `seeded`, the known decisions of other methods compete. Rounds of large-neighbourhood search follow,
    pool by pool: some consecutive jobs of the list change places, and all jobs are scheduled again, or only these, in
    the GPUs that the others leave free. Jobs that may choose among pools get either the pools in which they ran or
    those in which each would end first at its release, whichever gives the better first schedules, and keep them.

    With `stretches` of time, these are searched apart, unless their schedules are known already. Then all jobs take
    their earliest places in the order of these starts, and the search goes on from there. The makespan, and jobs that
    may choose among pools, are searched as a whole.

    `nodes` limits the rounds of all pools together.
    """
    budget, about = clock.Budget(options.time_limit_s), (objective, goal_of(view, objective), least(view, objective))
    apart = view.moves is None and objective != "makespan"
    known = in_parts(part_of_search, view, options, objective, stretches) if apart else []
    tried = [view] if view.moves is None else [view.settled, view.within(view.pool)]
    pools = min((PoolSearches(one, *about, budget, options.seed).begun() for one in tried), key=lambda p: p.value)
    executed = view.executed if view.executed is not None and view.executed.job.size == view.size else None
    pools.seeded([*(seed.decision for seed in options.seeds if seeded), *([executed] if executed else [])])
    if known:
        pools.follow(np.concatenate([part["job"] for part in known]), np.concatenate([part["start"] for part in known]))
    status = pools.run(options)
    return pools.outcome(status, f"bound: {pools.bound.name}", pools.bound.value)


def part_of_search(
    view: RigidView, options: SolveOptions, at: int, objective: str = "flow", stretches: int = 1
) -> Mapping[str, Any]:
    """Return the best starts found for the jobs of a stretch of time, as arrays: `job` and `start`, ``(m,)``."""
    if view.moves is not None or objective == "makespan":
        raise NotApplicableError("jobs may choose among pools, or the last completion counts: searched as a whole")
    stretch = stretch_of(view, at, number_of(view.size, stretches))
    one, budget = view.among(stretch.jobs), clock.Budget(options.time_limit_s)
    about = objective, goal_of(one, objective), least(one, objective)
    pools = PoolSearches(one, *about, budget, options.seed).begun()
    pools.run(options)
    return {"job": stretch.jobs[stretch.own], "start": pools.starts[stretch.own]}


def _too_many(view: RigidView) -> str | None:
    return f"{view.size} jobs to branch on (more than {MOST_EXACT})" if view.size > MOST_EXACT else None


model(
    "rigid.exact",
    problem="rigid.flow",
    source="Enumeration of active schedules; stated over precedences and flows of resources (Artigues et al. 2003)",
    procedure=exact,
    too_large=_too_many,
    example="gen/20jobs?jobs=4",
    **minimised(REGULAR, ""),
)(build_exact)
model(
    "rigid.search",
    problem="rigid.flow",
    kind="matheuristic",
    source="Priority lists and large-neighbourhood search (Shaw 1998), with a bound",
    procedure=search,
    stretches=number_of,
    part=part_of_search,
    example="gen/20jobs?jobs=4",
    **minimised(REGULAR, "", SEEDED, STRETCHES),
)(build_exact)
