"""The cheapest run of one job at given prices, (12) and (20), by a sequence of ILPs (13), (21).

Each choice has a lower bound on its cost: its workers where workers are cheapest, plus the fewest possible parameter
servers where these are cheapest. The ILPs are solved in the order of these bounds, until the next bound is no lower
than the best cost found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, wraps

import numpy as np
import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.arrays import SLACK, Array, Ints
from schedgap.instances.moldable import Machines, Rates, options_of
from schedgap.instances.views.zhou import Architecture, ZhouSchedule, ZhouView
from schedgap.models.engine.moldable.arrays import Placed, PlacementChoice, placement, unit_costs
from schedgap.models.engine.solve import Solution, SolveOptions, Status, Times, TracePoint, checked, counted, peak_mb
from schedgap.models.engine.statements import largest
from schedgap.models.registry import Outcome, model
from schedgap.models.zhou.common import TINIER, TINY, StartChoices, choices, refuse_huge, skip
from schedgap.models.zhou.placement import decode, statement

TIES = 1e-9
"""Relative difference up to which costs count as equal."""


@dataclass(frozen=True, eq=False)
class PricedRoom:
    """The problem of one job: `free` resources ``(h, R, T)`` in slots 1 to T, and the `price` of a unit, 0 or more."""

    architecture: Architecture
    job: int
    free: Array
    price: Array

    def choices(self) -> StartChoices:
        """Return all choices of the job in these slots, including dominated ones, as the paper states the problem."""
        a, own_row = self.architecture, slice(self.job, self.job + 1)
        rates = Rates(a.rates.compute[own_row], a.rates.update[own_row], a.rates.transfer[own_row], a.rates.ring)
        options = options_of(a.machines, a.work[own_row], a.most[own_row], rates, prune=False)
        chosen = choices(options, np.ones(1, np.int64), self.free.shape[2] + 1)
        return replace(chosen, job=np.full_like(chosen.job, self.job))

    def window(self, start: int, slots: int) -> tuple[Array, Array]:
        """Return ``(h, R)`` what is free in all slots of a window, and what a unit costs for all of them."""
        within = slice(start - 1, start - 1 + slots)
        return self.free[:, :, within].min(axis=2), self.price[:, :, within].sum(axis=2)


def offer(view: ZhouView, name: str) -> PricedRoom:
    """Return the problem of the heaviest job, on the capacity and at the prices that the loads of a view leave.

    Raises
    ------
    NotApplicableError
        If there are too many servers times slots.
    """
    a = view.architectures[name]
    refuse_huge(a, end=a.deadline)
    return PricedRoom(a, a.priced_job, a.machines.capacity[:, :, None] - a.loads, a.prices(a.loads))


def kind(offered: PricedRoom, chosen: StartChoices, k: int) -> PlacementChoice:
    """Return the data of (13) for choice `k`."""
    types = int(chosen.worker_type[k]), int(chosen.ps_type[k])
    most = int(offered.architecture.most[offered.job])
    return PlacementChoice(*types, bool(chosen.together[k]), int(chosen.workers[k]), most)


def build_mincost(offered: PricedRoom, chosen: StartChoices | None = None) -> pyo.ConcreteModel:
    r"""Build (12) or (20): the cheapest schedule of one job at given prices, on the resources that other jobs leave.

    Parameters
    ----------
    offered
        The job, free resources and prices.
    chosen
        Choices to choose from, all by default; (13) or (21) is the case of one choice.

    Raises
    ------
    NotApplicableError
        If there are too many choices.

    Notes
    -----
    - :math:`\delta_h^r(t)`: price of a unit of resource r on server h in slot t.

    .. math:: \min \sum_k \sum_{t = t^-}^{t^- + d - 1} \sum_h \sum_r \delta_h^r(t) \cdot
        (e_m^r \cdot y_{k,h} + z_p^r \cdot s_{k,h}) \tag{12, 20}

    The rows are those of one job that takes one choice; in (2h), the free amounts replace :math:`C_h^r`.

    Duals: none, because of the integers.

    *Erratum.* Theorem 1, that the printed A_mincost is optimal, is false: line 10 of Algorithm 4 resets y for every
    host but not :math:`\hat{N}`, so workers go missing; and with all N workers next to the PSs (line 15) none is
    elsewhere, and line 19 asks for no PS. The repaired form is exact.

    See Also
    --------
    statement : the rows.
    """
    a = offered.architecture
    chosen = offered.choices() if chosen is None else chosen
    refuse_huge(a, choices=chosen.size)
    m = statement(a, chosen, offered.free)
    costs = []
    for k in m.CHOICES:
        _, price = offered.window(int(chosen.start[k]), int(chosen.slots[k]))
        costs.append(unit_costs(a.machines, kind(offered, chosen, k), price))
    cost = np.stack(costs)
    m.worker_cost = pyo.Param(m.PLACES, initialize={(k, h): float(cost[k, 0, h]) for k, h in m.PLACES})
    m.ps_cost = pyo.Param(m.HOSTS, initialize={(k, h): float(cost[k, 1, h]) for k, h in m.HOSTS})

    @m.Objective(sense=pyo.minimize)
    def cost_12(m: pyo.ConcreteModel) -> object:
        workers = sum(m.worker_cost[k, h] * m.y[k, h] for k, h in m.PLACES)
        return workers + sum(m.ps_cost[k, h] * m.s[k, h] for k, h in m.HOSTS)

    counted(m, [(m.cost_12, largest(cost))])
    return m


@wraps(build_mincost)
def _build(view: ZhouView, name: str) -> pyo.ConcreteModel:
    return build_mincost(offer(view, name))


def lower_bounds(offered: PricedRoom, chosen: StartChoices) -> Array:
    """Return lower bounds ``(c,)`` on the costs of choices; the bound of a choice that does not fit is infinite."""
    machines, most = offered.architecture.machines, int(offered.architecture.most[offered.job])
    bound = np.full(chosen.size, np.inf)
    for slots, least, paid in _windows(offered, np.unique(chosen.slots)):
        free = least + SLACK * machines.capacity[:, :, None]
        of_slots = np.flatnonzero(chosen.slots == slots)
        for m in np.unique(chosen.worker_type[of_slots]).tolist():
            workers = _Workers(machines, m, free, paid, most)
            rows = of_slots[chosen.worker_type[of_slots] == m]
            kinds = np.column_stack((chosen.ps_type, chosen.together, chosen.workers))[rows]
            for p, together, number in np.unique(kinds, axis=0).tolist():
                same = rows[(kinds == (p, together, number)).all(axis=1)]
                costs = workers.together(p, number) if together else workers.apart(p, number)
                bound[same] = costs[chosen.start[same] - 1]
    return bound


def _windows(offered: PricedRoom, durations: Ints) -> Iterator[tuple[int, Array, Array]]:
    """Yield each duration, ascending, with ``(h, R, S)`` what is free and what a unit costs, by start of the window."""
    summed = np.concatenate([np.zeros((*offered.price.shape[:2], 1)), np.cumsum(offered.price, axis=2)], axis=2)
    least, width = offered.free, 1
    for slots in durations.tolist():
        while width < slots:
            step = min(width, slots - width)
            least, width = np.minimum(least[:, :, :-step], least[:, :, step:]), width + step
        yield slots, least, np.maximum(summed[:, :, slots:] - summed[:, :, :-slots], 0.0)


class _Workers:
    """Workers of one type in all windows of one duration: where they fit, and what the cheapest of them cost.

    By start of the window, `free` ``(h, R, S)`` is what is free and `paid` ``(h, R, S)`` what a unit costs; `most` is
    the largest number of workers.
    """

    def __init__(self, machines: Machines, worker_type: int, free: Array, paid: Array, most: int) -> None:
        self.machines, self.free, self.paid, self.worker_type = machines, free, paid, worker_type
        self.need = machines.worker[worker_type]
        self.able = machines.able[worker_type][:, None]
        self.cost = self.need @ paid
        self.room = np.where(self.able, np.minimum(times(free, self.need), most), 0)
        order = np.argsort(np.where(self.room > 0, self.cost, np.inf), axis=0, kind="stable")
        self.dear = np.take_along_axis(self.cost, order, axis=0)
        room = np.take_along_axis(self.room, order, axis=0)
        none = np.zeros((1, free.shape[2]))
        self.filled = np.concatenate([none, np.cumsum(room, axis=0)])
        self.spent = np.concatenate([none, np.cumsum(np.where(room > 0, room * self.dear, 0.0), axis=0)])

    def together(self, ps_type: int, number: int) -> Array:
        """Return ``(S,)`` the least cost of `number` workers and a PS, all on one server."""
        need, cost = number * self.need, number * self.cost
        if ps_type >= 0:
            need, cost = need + self.machines.ps[ps_type], cost + self.machines.ps[ps_type] @ self.paid
        fits = self.able & (need[:, None] <= self.free).all(axis=1)
        return np.asarray(np.where(fits, cost, np.inf).min(axis=0))

    def apart(self, ps_type: int, number: int) -> Array:
        """Return ``(S,)`` a lower bound on the cost of `number` workers and their PSs, on several servers."""
        full = (self.filled < number).sum(axis=0) - 1
        fits = full < len(self.cost)
        full, column = np.minimum(full, len(self.cost) - 1), np.arange(len(full))
        rest = number - self.filled[full, column]
        workers = np.where(fits, self.spent[full, column] + rest * self.dear[full, column], np.inf)
        if ps_type < 0:
            return np.asarray(workers)
        m, z = self.machines, self.machines.ps[ps_type]
        price = np.where(times(self.free, z) > 0, z @ self.paid, np.inf).min(axis=0)
        beside = np.minimum(self.room.max(axis=0), number - 1)
        ratio = m.worker_bandwidth[self.worker_type] / m.ps_bandwidth[ps_type] * (1 - SLACK)
        return np.asarray(workers + np.maximum(np.ceil((number - beside) * ratio), 1) * price)


def times(free: Array, need: Array) -> Array:
    """Return how many times ``(h, S)`` a need ``(R,)`` fits into `free` ``(h, R, S)``; infinite for a need of 0."""
    positive = need > 0
    return np.asarray(np.floor(free[:, positive] / need[positive][:, None]).min(axis=1, initial=np.inf))


@dataclass(frozen=True, eq=False)
class Cheapest:
    """The cheapest placement found and its choice, or ``None`` and −1.

    Every run costs at least `bound`, which is infinite if there is no run; `solved` is the number of ILPs solved.
    """

    placed: Placed | None
    choice: int
    bound: float
    solved: int


def cheapest(offered: PricedRoom, chosen: StartChoices, bounds: Array, options: SolveOptions) -> Cheapest:
    """Find the cheapest run, given lower bounds ``(c,)`` on the costs of choices; limits are for the whole search."""
    began, machines = clock.now(), offered.architecture.machines
    best = Cheapest(None, -1, np.inf, 0)
    for k in np.argsort(bounds, kind="stable").tolist():
        least = float(bounds[k])
        if least == np.inf or (best.placed and least >= best.placed.cost * (1 - TIES)):
            break
        left = None if options.time_limit_s is None else options.time_limit_s - (clock.now() - began)
        if left is not None and left <= 0:
            return replace(best, bound=min(best.bound, least))
        window = offered.window(int(chosen.start[k]), int(chosen.slots[k]))
        limit = best.placed.cost if best.placed else np.inf
        remaining = replace(options, time_limit_s=left)
        placed, bound = placement(machines, kind(offered, chosen, k), *window, remaining, limit)
        best = replace(best, solved=best.solved + 1, bound=min(best.bound, max(bound, least)))
        if placed and (best.placed is None or placed.cost < best.placed.cost):
            best = replace(best, placed=placed, choice=k)
    return best


def mincost(view: ZhouView, options: SolveOptions, name: str) -> Outcome:
    """Solve (12) or (20) by one ILP per choice, in the order of lower bounds, until the next bound is no better."""
    began = clock.now()
    offered = offer(view, name)
    chosen = offered.choices()
    bounds = lower_bounds(offered, chosen)
    built = clock.now()
    best = cheapest(offered, chosen, bounds, replace(options, cross_check=False))
    ended = clock.now()
    solution = _solution(best, chosen, options)
    times_spent = Times(build_s=built - began, solve_s=ended - built)
    trace = (TracePoint(ended - began, solution.objective, solution.bound),)
    solution = replace(solution, times=times_spent, trace=trace, peak_mb=peak_mb())
    if best.placed is None:
        return Outcome(solution, None)
    choice = chosen.take(np.array([best.choice]))
    server = np.flatnonzero(best.placed.workers + best.placed.ps)
    decision = ZhouSchedule(
        job=choice.job, start=choice.start, slots=choice.slots, worker_type=choice.worker_type, ps_type=choice.ps_type,
        run=np.zeros_like(server), server=server, workers=best.placed.workers[server], ps=best.placed.ps[server],
    )  # fmt: skip
    return Outcome(checked(solution, options, build_mincost, offered, choice), decision)


def _solution(best: Cheapest, chosen: StartChoices, options: SolveOptions) -> Solution:
    message = f"{best.solved} of {chosen.size:,} choices placed, the others cost more"
    if best.placed is None:
        late = np.isfinite(best.bound)
        status: Status = "time limit without incumbent" if late else "infeasible"
        return Solution(status=status, termination=message, bound=best.bound if late else None)
    cost, bound = best.placed.cost, min(best.bound, best.placed.cost)
    closed = cost - bound <= options.rel_gap * max(abs(cost), 1e-10) + TIES * cost
    return Solution(
        status="optimal" if closed else "time limit with incumbent",
        termination=message,
        objective=cost,
        bound=bound,
        column_values=np.concatenate([best.placed.workers, best.placed.ps]).astype(float),
        solver=options.solver if best.solved else SolveOptions.solver,
    )


for _name, _source in (("ps", "§5.2, eq. (12)–(13g)"), ("ra", "§6.3, eq. (20)–(21e)")):
    model(
        f"zhou.{_name}.mincost",
        problem=f"zhou.{_name}.cost",
        decode=decode,
        source=f"Zhou et al., {_source}",
        procedure=partial(mincost, name=_name),
        skip=skip(_name),
        example=TINIER if _name == "ps" else TINY,
    )(partial(_build, name=_name))
