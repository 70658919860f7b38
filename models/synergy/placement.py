"""LP2 (eq. 15–19) places the configurations of ILP1 on servers: at a vertex, or with the fewest fragmented jobs.

Jobs that hold the same GPUs, CPUs and memory on the same GPU type form one *demand*: ``x[d,i]`` of its jobs are on
server i. Whole jobs are placed first; then the remaining fractions are filled job by job. Of the ``p`` servers on which
a demand has a fraction, each but one fragments at most one job. A vertex has at most ``3s`` more positive variables
than demands, hence at most ``3s`` fragmented jobs: this is Theorem A.2 for merged jobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import SLACK, Array, Ints
from schedgap.instances.views.synergy import PLACEMENT, SynergySchedule, SynergyView
from schedgap.models.engine.solve import Session, Solution, SolveOptions, build, checked, counted, solve
from schedgap.models.engine.solve.form import RowBlocks, StandardForm
from schedgap.models.engine.statements import grouped
from schedgap.models.registry import Outcome, model, total
from schedgap.models.synergy.configurations import SMALLEST, one_round
from schedgap.models.synergy.ideal import FRACTION, ideal_round

LARGEST = 2_500
"""Largest product of jobs and servers for which the fewest fragments are searched for by default."""


@dataclass(frozen=True, eq=False)
class Demands:
    """Input of LP2: ``D`` demands, groups of equal jobs, that are to be placed on servers of their GPU types.

    `jobs` ``(n,)`` are listed demand by demand, `count` ``(D,)`` of each; a whole job has `amount` ``(D, 3)`` GPUs,
    CPUs and gigabytes. `hosts` ``(s,)`` are the servers with GPUs. There is a variable ``(x,)`` for each `demand` and
    each `host` of its type (an index into `hosts`); on this server, a whole job takes the fractions `part` ``(x, 3)``.
    """

    jobs: Ints
    count: Ints
    amount: Array
    hosts: Ints
    demand: Ints
    host: Ints
    part: Array


def demands(view: SynergyView, ideal: SynergySchedule) -> Demands:
    """Return the demands of a round, given the configuration and the GPU type that every job holds in it."""
    rows = np.column_stack((ideal.server.astype(float), ideal.gpus, ideal.cpus, ideal.memory_gb))
    distinct, which, count = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    hosts = np.flatnonzero(view.servers.gpus > 0)
    demand, host = np.nonzero(distinct[:, :1] == view.servers.gpu_type[hosts])
    part = distinct[demand, 1:] / view.servers.amounts[hosts][host]
    return Demands(
        jobs=ideal.job[np.argsort(which.ravel(), kind="stable")],
        count=count,
        amount=np.asarray(distinct[:, 1:]),
        hosts=hosts,
        demand=demand,
        host=host,
        part=np.where(part < SMALLEST, 0.0, part),
    )


def _demands_of(view: SynergyView) -> Demands:
    """Return the demands at the optimum of ILP1."""
    ideal = ideal_round(view, SolveOptions())[1]
    if ideal is None:
        raise ValueError(f"{view.instance.name}: no solution of ILP1 was found to place")
    return demands(view, ideal)


def build_vertex(view: SynergyView, wanted: Demands | None = None) -> pyo.ConcreteModel:
    r"""Build LP2: it places the jobs of ILP1's optimum on servers, and may split them.

    Parameters
    ----------
    view
        Servers.
    wanted
        Demands to place; those at the optimum of ILP1 by default.

    Notes
    -----
    - :math:`c_j^*, m_j^*`: CPUs and memory of job j at the optimum of ILP1.
    - ``x`` :math:`x_{i,j} \ge 0`: fraction of job j on server i.

    .. math:: \min \sum_i \sum_j i \cdot x_{i,j}
    .. math:: \sum_j g_j \cdot x_{i,j} \le G_i, \quad \sum_j c_j^* \cdot x_{i,j} \le C_i, \quad
        \sum_j m_j^* \cdot x_{i,j} \le M_i \quad \forall i \tag{15–17} \label{capacity_15_17}
    .. math:: \sum_i x_{i,j} = 1 \quad \forall j \tag{18} \label{all_of_it_18}

    The paper has no objective; this one fills servers in their order. The paper's :math:`\ge 1` in (18) is no stronger.

    Duals: those of (15)–(17) show which resource of which server is full; they are zero for servers with room.

    *Errata.* Two stray sums over :math:`[c,m]` in (16) and (17) are dropped. With the paper's :math:`x > 0` it is not a
    linear program; with :math:`x \ge 0` (19) it is. “At most 3s fragmented jobs” (Theorem A.2) holds at a vertex: the
    simplex method returns one, an interior-point method without crossover fragments every job.
    """
    m = _servers(view, wanted or _demands_of(view))
    m.x = pyo.Var(m.CELLS, domain=pyo.NonNegativeReals)

    @m.Constraint(m.RESOURCES, m.HOSTS)
    def capacity_15_17(m: Any, r: int, i: int) -> Any:
        return sum(m.held[r, d, i] * m.x[d, i] for d in m.GUESTS[i]) <= m.room[r, i]

    in_servers(m)

    @m.Constraint(m.DEMANDS)
    def all_of_it_18(m: Any, d: int) -> Any:
        return sum(m.x[d, i] for i in m.ON[d]) == m.jobs[d]

    m.order = pyo.Objective(rule=lambda m: sum(i * m.x[d, i] for d, i in m.CELLS), sense=pyo.minimize)
    return m


def build_fewest(view: SynergyView, wanted: Demands | None = None) -> pyo.ConcreteModel:
    r"""Build the MILP of the fewest fragmented jobs: LP2 in which a job is whole on one server or split over several.

    Parameters
    ----------
    view
        Servers.
    wanted
        Demands to place; those at the optimum of ILP1 by default.

    Notes
    -----
    - ``whole`` :math:`h_{i,j} \in \{0, 1\}`: the whole job j is on server i.
    - ``split`` :math:`p_j \in \{0, 1\}`: job j is split over several servers.
    - ``x`` :math:`x_{i,j} \ge 0`: fraction of a split job j on server i.

    .. math:: \min \sum_j p_j
    .. math:: \sum_j g_j \cdot (h_{i,j} + x_{i,j}) \le G_i \quad \forall i, \text{ likewise CPUs and memory}
        \tag{15–17} \label{capacity_15_17}
    .. math:: \sum_i h_{i,j} + p_j = 1 \quad \forall j \tag{18} \label{all_of_it_18}
    .. math:: \sum_i x_{i,j} = p_j \quad \forall j \label{fragments}

    Duals: none, because of the integers.
    """
    wanted = wanted or _demands_of(view)
    m = _servers(view, wanted)
    fit = np.minimum(np.floor((1 + SLACK) / wanted.part.max(axis=1)), wanted.count[wanted.demand])
    holds = (wanted.part <= 1 + SLACK).all(axis=1)  # whether a whole job fits on the empty server
    most = dict(zip(m.CELLS, np.where(holds, fit, 0).astype(int).tolist(), strict=True))
    m.whole = pyo.Var(m.CELLS, domain=pyo.NonNegativeIntegers, bounds=lambda m, d, i: (0, most[d, i]))
    m.split = pyo.Var(m.DEMANDS, domain=pyo.NonNegativeIntegers, bounds=lambda m, d: (0, m.jobs[d]))
    m.x = pyo.Var(m.CELLS, domain=pyo.NonNegativeReals)

    @m.Constraint(m.RESOURCES, m.HOSTS)
    def capacity_15_17(m: Any, r: int, i: int) -> Any:
        return sum(m.held[r, d, i] * (m.whole[d, i] + m.x[d, i]) for d in m.GUESTS[i]) <= m.room[r, i] * (1 + SLACK)

    in_servers(m)

    @m.Constraint(m.DEMANDS)
    def all_of_it_18(m: Any, d: int) -> Any:
        return sum(m.whole[d, i] for i in m.ON[d]) + m.split[d] == m.jobs[d]

    @m.Constraint(m.DEMANDS)
    def fragments(m: Any, d: int) -> Any:
        return sum(m.x[d, i] for i in m.ON[d]) == m.split[d]

    m.fragmented = pyo.Objective(rule=lambda m: sum(m.split[d] for d in m.DEMANDS), sense=pyo.minimize)
    return m


def _servers(view: SynergyView, wanted: Demands) -> pyo.ConcreteModel:
    """Build the sets and parameters that both models share: demands, servers, and what a whole job takes."""
    cells = list(zip(wanted.demand.tolist(), wanted.host.tolist(), strict=True))
    guests = grouped((i, d) for d, i in cells)
    m = pyo.ConcreteModel()
    m.wanted = wanted
    m.DEMANDS = pyo.RangeSet(0, len(wanted.count) - 1)
    m.RESOURCES = pyo.RangeSet(0, 2)
    m.HOSTS = pyo.Set(initialize=sorted(guests))
    m.CELLS = pyo.Set(dimen=2, initialize=cells)
    m.ON = pyo.Set(m.DEMANDS, initialize=grouped(cells))
    m.GUESTS = pyo.Set(m.HOSTS, initialize=guests)
    m.jobs = pyo.Param(m.DEMANDS, initialize=wanted.count.tolist())
    held = np.where(wanted.part > 0, wanted.amount[wanted.demand], 0.0)
    holds = {(r, *cell): float(held[n, r]) for n, cell in enumerate(cells) for r in range(3)}
    m.held = pyo.Param(m.RESOURCES, m.CELLS, initialize=holds)
    room = view.servers.amounts[wanted.hosts].T.tolist()
    m.room = pyo.Param(m.RESOURCES, m.HOSTS, initialize=lambda m, r, i: room[r][i])
    return m


def in_servers(m: pyo.ConcreteModel) -> None:
    """Let the solver count resources in units of a whole server, so that its tolerance means the same for all."""
    counted(m, ((m.capacity_15_17[r, i], m.room[r, i] or 1.0) for r in m.RESOURCES for i in m.HOSTS))


def placed(view: SynergyView, wanted: Demands, x: Array) -> SynergySchedule:
    """Return the schedule of the round in which `x` ``(cells,)`` jobs of each demand are on each server.

    The numbers `x` may be fractional; for each demand they add up to its number of jobs, up to rounding.
    """
    rows: list[tuple[int, int, float]] = []
    first = np.cumsum(wanted.count) - wanted.count
    for d, n in enumerate(wanted.count.tolist()):
        cells = np.flatnonzero(wanted.demand == d)
        jobs = wanted.jobs[first[d] : first[d] + n].tolist()
        rows += _filled(jobs, wanted.hosts[wanted.host[cells]].tolist(), x[cells])
    table = np.array(rows, float).reshape(-1, 3)
    job, server = table[:, :2].astype(np.int64).T
    demand_of = np.empty(view.size, np.int64)
    demand_of[wanted.jobs] = np.repeat(np.arange(len(wanted.count)), wanted.count)
    return one_round(view, job, server, wanted.amount[demand_of[job]] * table[:, 2:])


def _filled(jobs: list[int], hosts: list[int], x: Array) -> list[tuple[int, int, float]]:
    """Assign equal jobs to `hosts`, on which `x` of them are: whole jobs first, then the fractions in turn.

    Return rows of job, host and the fraction of the job that is there.
    """
    whole = np.floor(x + SMALLEST)
    rest = np.where(x - whole > SMALLEST, x - whole, 0.0)
    rows = []
    left = iter(jobs)
    for host, times in zip(hosts, whole.tolist(), strict=True):
        rows += [(next(left), host, 1.0) for _ in range(int(times))]
    remaining = list(left)
    if not remaining:
        return rows
    # Rounding may have removed a little: stretch the fractions to the number of jobs that are left.
    ends = np.cumsum(rest) * (len(remaining) / rest.sum())
    begins = np.r_[0.0, ends[:-1]]
    for i, job in enumerate(remaining):
        shares = np.minimum(ends, i + 1) - np.maximum(begins, i)
        shares[shares <= SMALLEST] = 0.0
        rows += [(job, hosts[h], float(shares[h] / shares.sum())) for h in np.flatnonzero(shares)]
    return rows


def vertex(view: SynergyView, options: SolveOptions) -> Outcome:
    """Solve ILP1, then LP2 by the simplex method; both are built as arrays, and the reported sizes are those of LP2."""
    first, ideal = ideal_round(view, options)
    if ideal is None:
        return Outcome(first, None)
    began = clock.now()
    wanted = demands(view, ideal)
    solution = _fractions(wanted, np.zeros((3, len(wanted.hosts))), wanted.count, options)
    decision = None if solution.column_values is None else placed(view, wanted, solution.column_values)
    build_s = clock.now() - began - solution.times.transfer_s - solution.times.solve_s
    return _after(first, checked(solution, options, build_vertex, view, wanted), build_s, decision, wanted)


def _fractions(wanted: Demands, used: Array, count: Ints, options: SolveOptions) -> Solution:
    """Solve LP2 for `count` ``(D,)`` jobs of each demand, if the fractions `used` ``(3, s)`` of servers are taken.

    Servers may be full to the last CPU, and the checker accepts hardly more: HiGHS's default tolerance of 1e-7 is too
    loose. If there is no solution, the LP is solved again with servers that are larger by
    :data:`~schedgap.instances.arrays.SLACK`.
    """
    for full in (1.0, 1 + SLACK):
        room = np.maximum(full - used, 0.0)
        form = placement_form(wanted.part, wanted.host, wanted.demand, count, room, wanted.host.astype(float))
        session = Session(form, replace(options, method="simplex", mip_start=None, basis=None))
        session.set_option("primal_feasibility_tolerance", 1e-10)
        solution = session.run()
        if solution.column_values is not None:
            break
    return solution


def placement_form(held: Array, server: Ints, demand: Ints, jobs: Ints, room: Array, cost: Array) -> StandardForm:
    """Return LP2 (eq. 15–19) as arrays.

    Each variable belongs to a `server` and a `demand` and has a `cost`, ``(x,)`` each, which is minimised. On this
    server, a whole job takes the fractions `held` ``(x, 3)`` of GPUs, CPUs and memory, of which `room` ``(3, s)`` is
    free. A demand consists of `jobs` ``(d,)`` jobs.
    """
    rows, columns = RowBlocks(), np.arange(len(server))
    for r in range(3):
        rows.add(np.full(room.shape[1], -np.inf), room[r], (held[:, r], server, columns))
    rows.add(jobs, jobs, (1.0, demand, columns))
    return rows.form(cost, integer=np.zeros(len(cost), bool))


def fewest(view: SynergyView, options: SolveOptions) -> Outcome:
    """Solve ILP1, then the MILP of the fewest fragmented jobs, and place the split jobs by LP2."""
    began = clock.now()
    first, ideal = ideal_round(view, options)
    if ideal is None:
        return Outcome(first, None)
    if not ideal.job.size:
        return vertex(view, options)
    second = clock.now()
    wanted = demands(view, ideal)
    model = build(build_fewest, view, wanted)
    build_s = clock.now() - second
    remaining = None if options.time_limit_s is None else max(options.time_limit_s - (second - began), 0.1)
    solution = solve(model, replace(options, time_limit_s=remaining, mip_start=None, basis=None))
    if not solution.has_incumbent:
        return _after(first, solution, build_s, None, wanted)
    whole = np.rint(solution.array(model.whole))
    split = np.rint(solution.array(model.split)).astype(np.int64)
    # The rows of the MILP allow more than the checker does, so the fractions are chosen again by LP2.
    used = np.zeros((3, len(wanted.hosts)))
    np.add.at(used.T, wanted.host, wanted.part * whole[:, None])
    rest = _fractions(wanted, used, split, options).column_values
    x = whole + (solution.array(model.x) if rest is None else rest)
    # The number of split jobs is an integer, so the bound can be rounded up.
    bound = None if solution.bound is None else float(math.ceil(solution.bound - FRACTION))
    decision = placed(view, wanted, x)
    # If the search was stopped early, a job that counts as split may in fact be on one server.
    found = float((np.unique(decision.job, return_counts=True)[1] > 1).sum())
    return _after(first, replace(solution, objective=found, bound=bound), build_s, decision, wanted)


def _after(
    first: Solution, solution: Solution, build_s: float, decision: SynergySchedule | None, wanted: Demands
) -> Outcome:
    """Return the outcome of the second of two solves, with the times of both; it is optimal only if both are."""
    second = replace(solution.times, build_s=build_s)
    solution = replace(solution, times=total(first.times, second))
    if solution.status == "optimal" and first.status != "optimal":
        solution = replace(solution, status=first.status, bound=None)
    return Outcome(solution, decision, evidence=wanted)


def too_many(view: SynergyView) -> str | None:
    """Return the reason why the fewest fragments are searched for only on request, or ``None``."""
    size = view.runnable.size * int((view.servers.gpus > 0).sum())
    return f"{size:,} jobs times servers, more than {LARGEST:,}" if size > LARGEST else None


model(
    "synergy.lp2.vertex",
    problem=PLACEMENT.id,
    kind="baseline",
    source="Synergy A.1.3, eq. (15)–(19) with x ≥ 0, at the optimum of ILP1, by the simplex method",
    method="simplex",
    procedure=vertex,
    claims=("three_per_server",),
    example="paper/synergy-example",
)(build_vertex)
model(
    "synergy.lp2.min_fragments",
    problem=PLACEMENT.id,
    source="Synergy A.1.3, eq. (15)–(18) as a MILP that counts fragmented jobs, at the optimum of ILP1",
    procedure=fewest,
    too_large=too_many,
    example="paper/synergy-example",
)(build_fewest)
