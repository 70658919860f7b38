"""A round on its servers: a column is what the jobs of one server hold, which bounds the progress and places the jobs.

LP1 counts all servers of a GPU type as one machine. Here, servers with the same GPUs, CPUs and memory form a *room*,
and the model chooses how many servers of each room are filled in which way. A gang may be split over servers, and each
of its GPUs then has the same part of its CPUs and memory (Synergy, section 4.2). So a server holds *parts*: one GPU of
a gang in one of its configurations, with that GPU's CPUs and memory. The relaxation knows how many GPUs each class of
jobs has, but not that all parts of a gang are in the same configuration; the integer program does.

Pricing is a knapsack of GPUs, CPUs and memory, whose amounts are rounded down to steps of the server's. Steps are
chosen such that no set of parts fits by rounding alone, if there are such (:func:`steps_of`). Any steps give a bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import SLACK, Array, Ints
from schedgap.instances.registry import Problem
from schedgap.instances.views.synergy import FAIR, ROUND, SynergySchedule, SynergyView
from schedgap.models.engine.solve import Session, Solution, SolveOptions, Times
from schedgap.models.engine.solve.form import RowBlocks, StandardForm
from schedgap.models.engine.statements import grouped
from schedgap.models.registry import SEEDED, Outcome, model
from schedgap.models.synergy.configurations import one_round
from schedgap.models.synergy.throughput import FLOORED, QUEUED, RoundRule, choices

FINEST = 512
"""Most steps into which a server's CPUs or memory are divided."""

CELLS = 400_000_000
"""Largest amount of work of one pricing, in cells times choices, with which the model runs by default (seconds)."""

LISTED, DIVERSE = 20, 60
"""Columns that a pricing returns: while prices converge, and for the integer program."""

VARIED = 10
"""Rounds of pricing at changed prices that add columns for one integer program."""

SPREAD = 0.1
"""Standard deviation of these changes, as a fraction of the largest gain of a GPU."""

PROGRAMS = 3
"""Most integer programs that are solved one after another, each over more columns."""

ITERATIONS = 500
"""Most rounds of pricing."""

BONUS = 10.0
"""What each GPU of a job that has to run counts more in the relaxation, as a multiple of the largest gain of a GPU."""

CLOSE = 1e-9
"""Relative difference of bound and master at which prices have converged."""

Column = tuple[int, tuple[int, ...]]
"""A room, and the choices of the parts on one of its servers, ascending; a choice occurs once for each GPU."""


@dataclass(frozen=True, eq=False)
class Rooms:
    """``R`` kinds of equal servers: `gpu_type`, number of `gpus` and `count` of servers ``(R,)``.

    Their `amounts` ``(R, 3)`` are GPUs, CPUs and gigabytes, and `servers` lists the servers of each.
    """

    gpu_type: Ints
    gpus: Ints
    count: Ints
    amounts: Array
    servers: tuple[Ints, ...]


def rooms_of(view: SynergyView) -> Rooms:
    """Return the rooms of a cluster, in the order of GPU types and amounts."""
    hosts = np.flatnonzero(view.servers.gpus > 0)
    table = np.column_stack((view.servers.gpu_type[hosts], view.servers.amounts[hosts]))
    distinct, which, count = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    servers = tuple(hosts[which.ravel() == r] for r in range(len(distinct)))
    kind, gpus = distinct[:, 0].astype(np.int64), distinct[:, 1].astype(np.int64)
    return Rooms(kind, gpus, count, np.asarray(distinct[:, 1:]), servers)


def steps_of(amounts: Array, gpus: int, room: float) -> int:
    """Return the fewest steps in which amounts, rounded down, fit on a server only if they fit indeed.

    `amounts` ``(p,)`` are those of parts, of which up to `gpus` share the `room`. If no number of steps up to
    :data:`FINEST` does, the one that exceeds the room least is returned.
    """
    own, best = np.unique(amounts[amounts <= room * (1 + SLACK)]), (math.inf, 1)
    if not own.size or room <= 0:
        return 1
    for steps in range(1, FINEST + 1):
        taken = stepped(own, steps, room)
        most = np.zeros(steps + 1)  # the largest true sum of so many parts, by steps taken
        most[1:] = -np.inf
        top = 0.0
        for _ in range(gpus):
            after = most.copy()
            for amount, step in zip(own.tolist(), taken.tolist(), strict=True):
                np.maximum(after[step:], most[: steps + 1 - step] + amount, out=after[step:])
            most, top = after, float(after.max())
            if top > best[0]:
                break
        if top <= room * (1 + SLACK):
            return steps
        best = min(best, (top, steps))
    return best[1]


def stepped(amounts: Array, steps: int, room: float) -> Ints:
    """Return amounts in steps of a room, rounded down; one that does not fit takes more than all steps."""
    taken = np.floor(amounts * (steps / room) * (1 + 1e-9)) if room > 0 else np.zeros_like(amounts)
    return np.where(amounts > room * (1 + SLACK), steps + 1, taken).astype(np.int64)


class ServerPricing:
    """The pricing problem of every room: the most valuable parts that fit on one of its servers.

    `part` lists for every room the choices whose parts fit there; `steps` ``(R, 2)`` are those of CPUs and memory.
    `gain` ``(q,)`` is the progress of one GPU in each choice, and `most` ``(e,)`` the number of GPUs of each class.
    """

    def __init__(self, view: SynergyView, rule: RoundRule) -> None:
        self.rule, self.chosen, self.rooms = rule, choices(view, rule), rooms_of(view)
        chosen = self.chosen
        held, at, group = chosen.held, chosen.at, chosen.classes
        self.gang = view.profiles.gpus[group.kind]
        self.most = self.gang * group.count
        self.amount = held.held()[at] / held.gpus[at][:, None]
        self.gain = group.weight[chosen.owner] * held.rate[at] / held.gpus[at]
        self.part: list[Ints] = []
        self.taken: list[Ints] = []
        self.steps = np.ones((len(self.rooms.count), 2), np.int64)
        for r, (kind, gpus) in enumerate(zip(self.rooms.gpu_type.tolist(), self.rooms.gpus.tolist(), strict=True)):
            own = np.flatnonzero(held.gpu_type[at] == kind)
            taken = np.zeros((len(own), 2), np.int64)
            for k, room in enumerate(self.rooms.amounts[r, 1:].tolist()):
                amounts = self.amount[own, 1 + k]
                self.steps[r, k] = steps_of(amounts, gpus, room)
                taken[:, k] = stepped(amounts, int(self.steps[r, k]), room)
            fits = (taken <= self.steps[r]).all(axis=1)
            self.part.append(own[fits])
            self.taken.append(taken[fits])

    @property
    def work(self) -> float:
        """Work of pricing all rooms once, in cells times choices times GPUs."""
        cells = (self.rooms.gpus + 1.0) * (self.steps + 1.0).prod(axis=1)
        return float(sum(c * len(p) * g for c, p, g in zip(cells, self.part, self.rooms.gpus, strict=True)))

    def best(self, r: int, charge: Array, listed: int, together: bool = False) -> tuple[float, list[Column]]:
        """Return the most that parts on a server of a room are worth after paying `charge` ``(e,)`` per GPU of a class.

        `listed` of the most valuable columns are returned, too. With `together`, a gang is whole on the server, or half
        of it is, or as much as the server has GPUs for.
        """
        own, taken, gpus = self.part[r], self.taken[r], int(self.rooms.gpus[r])
        value = self.gain[own] - charge[self.chosen.owner[own]]
        cells = np.full((gpus + 1, *(self.steps[r] + 1)), -np.inf)
        cells[0, 0, 0] = 0.0
        trail: list[tuple[Ints, list[Ints], int]] = []
        for e in np.unique(self.chosen.owner[own]).tolist():
            mine, gang = np.flatnonzero(self.chosen.owner[own] == e), int(self.gang[e])
            block = 1 if not together else next((b for b in (gang, gang // 2) if 0 < b <= gpus), gpus)
            layers, picks = [cells], list[Ints]()
            for _ in range(min(gpus, int(self.most[e])) // block):
                layer, pick = _added(layers[-1], mine, value[mine] * block, taken[mine] * block, block)
                layers.append(layer)
                picks.append(pick)
            number = np.argmax(layers, axis=0)
            cells = np.max(layers, axis=0)
            trail.append((number, picks, block))
        ends = np.argsort(-cells, axis=None, kind="stable")[:listed]
        ends = np.concatenate([ends, cells.reshape(gpus + 1, -1).argmax(axis=1) + np.arange(gpus + 1) * cells[0].size])
        found = []
        for end in np.unique(ends[np.isfinite(cells.ravel()[ends])]).tolist():
            parts = list[int]()
            place = tuple(int(i) for i in np.unravel_index(end, cells.shape))
            for number, picks, block in reversed(trail):
                for pick in reversed(picks[: int(number[place])]):
                    i = int(pick[place])
                    parts += [int(own[i])] * block
                    place = place[0] - block, place[1] - block * int(taken[i, 0]), place[2] - block * int(taken[i, 1])
            if (self.amount[parts, 1:].sum(axis=0) <= self.rooms.amounts[r, 1:] * (1 + SLACK / 2)).all():
                found.append((r, tuple(sorted(parts))))
        return float(cells.max()), found


def _added(cells: Array, mine: Ints, value: Array, taken: Ints, block: int) -> tuple[Array, Ints]:
    """Return the best values of cells after one more block of parts of a class, and which of its choices that is."""
    layer, pick = np.full_like(cells, -np.inf), np.full(cells.shape, -1, np.int64)
    for i, worth, (c, m) in zip(mine.tolist(), value.tolist(), taken.tolist(), strict=True):
        if c >= cells.shape[1] or m >= cells.shape[2] or block >= cells.shape[0]:
            continue
        there = (slice(block, None), slice(c, None), slice(m, None))
        to = cells[: cells.shape[0] - block, : cells.shape[1] - c, : cells.shape[2] - m] + worth
        better = to > layer[there]
        layer[there][better] = to[better]
        pick[there][better] = i
    return layer, pick


@dataclass(frozen=True, eq=False)
class ServerPrices:
    """A bound on the progress of a round, and its proof: the `charge` ``(e,)`` per GPU of each class of jobs."""

    bound: float
    charge: Array
    pricing: ServerPricing


class ServerColumns:
    """The columns of a round that were found so far, its relaxation and its integer program over them."""

    def __init__(self, pricing: ServerPricing) -> None:
        self.pricing = pricing
        self.columns: dict[Column, None] = {(r, ()): None for r in range(len(pricing.rooms.count))}

    def add(self, columns: Sequence[Column]) -> int:
        """Add columns; return how many of them are new."""
        before = len(self.columns)
        self.columns.update(dict.fromkeys(columns))
        return len(self.columns) - before

    def add_shares(self, view: SynergyView) -> None:
        """Add the columns of a round in which jobs have no more than their shares, server after server.

        With these, the integer program has a solution if every job has to run.
        """
        p, columns = self.pricing, list[Column]()
        jobs, types = view.pick(self.pricing.rule.jobs(view).tolist())
        group, held = p.chosen.classes, p.chosen.held
        owner = dict(
            zip(group.jobs.tolist(), np.repeat(np.arange(len(group.count)), group.count).tolist(), strict=True)
        )
        for gpu_type in range(view.types):
            waiting = list[int]()
            for j in jobs[types == gpu_type].tolist():
                kind = view.profiles.kind[j]
                own = np.flatnonzero((p.chosen.owner == owner[j]) & (held.gpu_type[p.chosen.at] == gpu_type))
                share = view.needs.share[kind, gpu_type] / view.workload.gpus[j] * (1 + SLACK / 2)
                able = own[(p.amount[own, 1:] <= share).all(axis=1)]
                waiting += [int(able[p.gain[able].argmax()])] * int(view.workload.gpus[j]) if able.size else []
            for r in np.flatnonzero(p.rooms.gpu_type == gpu_type).tolist():
                for _ in range(int(p.rooms.count[r])):
                    parts, waiting = waiting[: int(p.rooms.gpus[r])], waiting[int(p.rooms.gpus[r]) :]
                    columns.append((r, tuple(sorted(parts))))
        self.add(columns)

    def entries(self) -> tuple[Ints, Ints, Array]:
        """Return the choices in columns as ``(x,)`` columns, choices and numbers of GPUs."""
        listed = [(c, q, n) for c, (_, parts) in enumerate(self.columns) for q, n in Counter(parts).items()]
        table = np.array(listed, np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2].astype(float)

    def relaxation(self) -> StandardForm:
        """Return the restricted master: its first rows are the GPUs of classes, then come the servers of rooms."""
        p = self.pricing
        column, choice, gpus = self.entries()
        scale = p.gain.max(initial=0.0) or 1.0
        each = gpus * (p.gain[choice] / scale + BONUS * p.rule.everybody)
        value = np.bincount(column, each, len(self.columns)).astype(float)
        rows = RowBlocks()
        rows.add(np.full(len(p.most), -np.inf), p.most, (gpus, p.chosen.owner[choice], column))
        rows.add(np.full(len(p.rooms.count), -np.inf), p.rooms.count, self._of_rooms())
        return rows.form(value, integer=np.zeros(len(value), bool), maximise=True)

    def _of_rooms(self) -> tuple[float, Ints, Ints]:
        room = np.array([r for r, _ in self.columns], np.int64)
        return 1.0, room, np.arange(len(room))

    def priced(self, options: SolveOptions) -> ServerPrices:
        """Solve the relaxation by column generation and return the best bound that its prices proved."""
        p, began = self.pricing, clock.now()
        classes, scale = len(p.most), p.gain.max(initial=0.0) or 1.0
        best = ServerPrices(math.inf, np.zeros(classes), p)
        basis = None
        for _ in range(ITERATIONS):
            session = Session(self.relaxation(), replace(options.since(began), method="simplex", seeds=(), basis=basis))
            solution = session.run()
            if solution.row_duals is None or solution.objective is None:
                break
            charge = scale * (np.maximum(solution.row_duals[:classes], 0.0) - BONUS * p.rule.everybody)
            bound, new = float(charge @ p.most), 0
            for r, count in enumerate(p.rooms.count.tolist()):
                value, columns = p.best(r, charge, LISTED)
                bound += count * value
                new += self.add(columns)
            if bound < best.bound:
                best = ServerPrices(bound, charge, p)
            master = scale * (solution.objective - BONUS * p.rule.everybody * float(p.most.sum()))
            late = options.time_limit_s is not None and clock.now() - began > options.time_limit_s
            if not new or bound - master <= CLOSE * abs(bound) or late:
                break
        return best

    def varied(self, prices: ServerPrices, rng: np.random.Generator) -> None:
        """Add columns of gangs that are together, and of changed prices, which the integer program needs."""
        p = self.pricing
        spread = SPREAD * float(p.gain.max(initial=0.0))
        for k in range(VARIED):
            charge = prices.charge + (rng.normal(0.0, spread, len(p.most)) if k else 0.0)
            for r in range(len(p.rooms.count)):
                for together in (True, False):
                    self.add(p.best(r, charge, DIVERSE, together)[1])

    def program(self) -> tuple[StandardForm, Ints]:
        """Return the integer program, and the choices of gangs whose number of jobs its last columns count."""
        p = self.pricing
        column, choice, gpus = self.entries()
        owner, single = p.chosen.owner, p.gang == 1
        gangs = np.unique(choice[~single[owner[choice]]])
        count = p.chosen.classes.count
        least = count if p.rule.everybody else np.full(len(count), -np.inf)
        rows, y = RowBlocks(), len(self.columns) + np.arange(len(gangs))
        alone = single[owner[choice]]
        rows.add(least, count, (gpus[alone], owner[choice[alone]], column[alone]), (1.0, owner[gangs], y))
        rows.add(np.full(len(p.rooms.count), -np.inf), p.rooms.count, self._of_rooms())
        zero = np.zeros(len(gangs))
        whole = np.searchsorted(gangs, choice[~alone])
        rows.add(zero, zero, (gpus[~alone], whole, column[~alone]), (-p.gang[owner[gangs]], np.arange(len(gangs)), y))
        value = np.bincount(column, gpus * p.gain[choice], len(self.columns))
        cost = np.concatenate([value, zero])
        return rows.form(cost, integer=np.ones(len(cost), bool), maximise=True), gangs


def decode(view: SynergyView, pricing: ServerPricing, columns: Sequence[Column], times: Ints) -> SynergySchedule:
    """Return the schedule of the round in which `times` ``(c,)`` servers are filled as in each column."""
    free = [iter(servers.tolist()) for servers in pricing.rooms.servers]
    held = Counter[tuple[int, int]]()
    for (r, parts), n in zip(columns, times.tolist(), strict=True):
        for _ in range(n):
            server = next(free[r])
            held.update((q, server) for q in parts)
    group, turn = pricing.chosen.classes, Counter[int]()
    first = np.cumsum(group.count) - group.count
    rows: list[tuple[int, int, int, int]] = []
    for q, places in sorted(grouped((q, (server, n)) for (q, server), n in held.items()).items()):
        e = int(pricing.chosen.owner[q])
        for gang in gathered(places, int(pricing.gang[e])):
            job = int(group.jobs[first[e] + turn[e]])
            turn[e] += 1
            rows += [(job, server, n, q) for server, n in gang]
    table = np.array(rows, np.int64).reshape(-1, 4)
    amount = pricing.amount[table[:, 3]] * table[:, 2:3]
    return one_round(view, table[:, 0], table[:, 1], amount)


def gathered(places: Sequence[tuple[int, int]], gang: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the servers and GPUs of gangs that together hold the GPUs at `places`: whole gangs first, then split ones.

    Places are pairs of a server and a number of GPUs, which add up to a multiple of `gang`.
    """
    rest = list[tuple[int, int]]()
    for server, n in places:
        yield from ([(server, gang)] for _ in range(n // gang))
        rest += [(server, n % gang)] if n % gang else []
    own, missing = list[tuple[int, int]](), gang
    for server, n in sorted(rest, key=lambda place: -place[1]):
        left = n
        while left:
            part = min(left, missing)
            own.append((server, part))
            left, missing = left - part, missing - part
            if not missing:
                yield own
                own, missing = [], gang


def by_columns(view: SynergyView, options: SolveOptions, rule: RoundRule, *, seeded: bool = True) -> Outcome:
    """Bound the progress of a round by its servers' columns, and solve integer programs over columns that were found.

    The time limit applies to all together. Columns at changed prices are added until an integer program reaches the gap
    or finds nothing better, at most :data:`PROGRAMS` times. The best known decision is the answer if no program finds a
    better one.
    """
    began = clock.now()
    found = ServerColumns(pricing := ServerPricing(view, rule))
    found.add_shares(view)
    prices = found.priced(options.since(began))
    rng = np.random.default_rng(options.seed)
    seeds = sorted(options.seeds if seeded else (), key=lambda seed: -seed.objective)
    value, decision = (seeds[0].objective, seeds[0].decision) if seeds else (-math.inf, None)
    last = Solution(status="feasible", termination="columns of servers")
    for _ in range(PROGRAMS):
        late = options.time_limit_s is not None and clock.now() - began >= options.time_limit_s
        if late or closed(prices.bound, value, options):
            break
        found.varied(prices, rng)
        form, _ = found.program()
        columns = list(found.columns)
        last = Session(form, replace(options.since(began), method="choose", seeds=())).run()
        if last.column_values is None or last.objective is None or last.objective <= value:
            break
        times = np.rint(last.column_values[: len(columns)]).astype(np.int64)
        value, decision = last.objective, decode(view, pricing, columns, times)
    solution = replace(
        last,
        status="optimal" if closed(prices.bound, value, options) else "gap left",
        termination=f"{len(found.columns)} columns of servers",
        objective=None if decision is None else value,
        bound=prices.bound if math.isfinite(prices.bound) else None,
        times=Times().since(began),
        column_values=None,
        row_duals=None,
        column_duals=None,
    )
    return Outcome(solution, decision, evidence=prices)


def closed(bound: float, value: float, options: SolveOptions) -> bool:
    """Return whether there is a value, and the bound is within the relative gap of it."""
    return math.isfinite(value) and bound - value <= options.rel_gap * abs(value)


def build_servers(view: SynergyView, rule: RoundRule) -> pyo.ConcreteModel:
    r"""Build the integer program of a round on servers, over the columns that column generation makes.

    - :math:`r`: rooms, each with :math:`n_r` equal servers.
    - :math:`s \in S_r'`: columns of a room: GPUs :math:`a_{s,q}` of gangs in configuration q, which fit on a server.
    - :math:`q \in Q_j`: configurations of jobs of class j, of :math:`N_j` jobs with :math:`g_j` GPUs each.
    - ``x`` :math:`x_s \in \mathbb{Z}_{\ge 0}`: servers that are filled like that.
    - ``y`` :math:`y_q \in \mathbb{Z}_{\ge 0}`: jobs in configuration q.

    .. math:: \max \sum_j \sum_{q \in Q_j} u_j \cdot W_q \cdot y_q
    .. math:: \sum_{s \in S_r'} x_s \le n_r \quad \forall r \label{servers}
    .. math:: \sum_s a_{s,q} \cdot x_s = g_j \cdot y_q \quad \forall j, q \in Q_j \label{whole_gangs}
    .. math:: \sum_{q \in Q_j} y_q \le N_j \quad \forall j \label{jobs_of_class}

    If every job has to run, the last row is an equation. Its relaxation has at least the optimum of any schedule if
    all columns are there, and prices of classes prove this: a bound is what all GPUs of the jobs pay, plus for each
    server the most that parts can be worth on it after paying.

    Duals: none, because of the integers. Those of the relaxation are the prices.
    """
    found = ServerColumns(pricing := ServerPricing(view, rule))
    found.add_shares(view)
    found.priced(SolveOptions())
    column, choice, gpus = found.entries()
    used = np.unique(choice).tolist()
    owner, held = pricing.chosen.owner, pricing.chosen.held
    m = pyo.ConcreteModel()
    m.COLUMNS = pyo.RangeSet(0, len(found.columns) - 1)
    m.CHOICES = pyo.Set(initialize=used)
    m.ROOMS = pyo.RangeSet(0, len(pricing.rooms.count) - 1)
    m.CLASSES = pyo.Set(initialize=sorted(set(owner[used].tolist())))
    of_room = grouped((r, s) for s, (r, _) in enumerate(found.columns))
    m.OF_ROOM = pyo.Set(m.ROOMS, initialize=of_room)
    m.WITH = pyo.Set(m.CHOICES, initialize=grouped(zip(choice.tolist(), column.tolist(), strict=True)))
    m.OF = pyo.Set(m.CLASSES, initialize=grouped((int(owner[q]), q) for q in used))
    entries = zip(choice.tolist(), column.tolist(), strict=True)
    m.gpus = pyo.Param(m.CHOICES, m.COLUMNS, initialize=dict(zip(entries, gpus.tolist(), strict=True)))
    m.gang = pyo.Param(m.CHOICES, initialize={q: int(held.gpus[pricing.chosen.at[q]]) for q in used})
    m.gain = pyo.Param(m.CHOICES, initialize={q: float(pricing.gain[q]) * int(m.gang[q]) for q in used})
    m.count = pyo.Param(m.ROOMS, initialize=dict(enumerate(pricing.rooms.count.tolist())))
    m.jobs = pyo.Param(m.CLASSES, initialize={e: int(pricing.chosen.classes.count[e]) for e in m.CLASSES})
    m.x = pyo.Var(m.COLUMNS, domain=pyo.NonNegativeIntegers)
    m.y = pyo.Var(m.CHOICES, domain=pyo.NonNegativeIntegers)

    @m.Constraint(m.ROOMS)
    def servers(m: Any, r: int) -> Any:
        return sum(m.x[s] for s in m.OF_ROOM[r]) <= m.count[r]

    @m.Constraint(m.CHOICES)
    def whole_gangs(m: Any, q: int) -> Any:
        return sum(m.gpus[q, s] * m.x[s] for s in m.WITH[q]) == m.gang[q] * m.y[q]

    @m.Constraint(m.CLASSES)
    def jobs_of_class(m: Any, e: int) -> Any:
        total = sum(m.y[q] for q in m.OF[e])
        return total == m.jobs[e] if rule.everybody else total <= m.jobs[e]

    m.progress = pyo.Objective(rule=lambda m: sum(m.gain[q] * m.y[q] for q in m.CHOICES), sense=pyo.maximize)
    return m


def too_large(view: SynergyView, rule: RoundRule) -> str | None:
    """Return the reason why a round is solved by columns of servers only on request, or ``None``."""
    work = ServerPricing(view, rule).work
    return f"pricing takes {work:,.0f} steps, more than {CELLS:,}" if work > CELLS else None


def _register(name: str, rule: RoundRule, problem: Problem, what: str) -> None:
    model(
        f"synergy.{name}",
        problem=problem.id,
        kind="matheuristic",
        source=f"Synergy section 4.2 on servers, by columns of servers: {what}",
        procedure=partial(by_columns, rule=rule),
        too_large=partial(too_large, rule=rule),
        parameters=(SEEDED,),
        example="paper/synergy-example",
    )(partial(build_servers, rule=rule))


_register("servers", FLOORED, FAIR, "eq. (1), (4) and (5) with every job of the round")
_register("servers.queue", QUEUED, ROUND, "eq. (1) with any jobs of the queue")
