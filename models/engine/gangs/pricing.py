"""Hadar's pricing problem, solved exactly: the schedule of a job with the largest utility less the cost of its GPUs.

In a slot, a gang whose slowest type has the job's ``k``-th best rate (its *level*) advances by ``p[k]`` iterations. The
cheapest such gang takes the cheapest types at or above that rate, type by type until their GPUs run out. So a slot has
at most one option per rate, and a dynamic program over (slot, work left) finds the cheapest schedule for every last
slot in one sweep.

Work left is a real number, but only one thing matters about it: which slots still complete the job. The
:func:`automaton <models.hadar._kernels.automaton>` of a job merges amounts of work left that are equal in this sense,
which makes the program exact; many jobs have fewer than a hundred states. Where an automaton is too large, a greedy
choice takes the slots with the cheapest work until the work is done; without the excess of the last slot, these slots
cost no more than any schedule. Prices first converge with these :meth:`rough <Pricing.rough>` answers. Then, where the
error of such a job matters, a grid replaces the greedy choice: progress in units ``q[k]``, with a *necessary* number of
units (the bound is valid) and a *sufficient* one (the column is feasible). If a schedule found from the necessary units
really does the work, it is exact as well; any remaining difference is reported as the discretisation error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.columns import Choice, Columns, Covers, Domain, Oracle, Packing, Price, Priced

COARSE, FINE = 1_500, 60_000
"""Largest number of states of an automaton, and of the grid that replaces the greedy choice where its error matters."""

RESIDUALS = 30
"""Most amounts of work left, per state allowed, with which an automaton is tried."""

TOLERANCE = 1e-6
"""Largest error of a job's payoff, as a fraction of the total payoff, at which the greedy choice is good enough."""

NEARLY = 5e-7
"""The same with thousands of slots, as a fraction of the total payoff at the first prices."""


@dataclass(frozen=True, eq=False)
class PricedJobs:
    """Kernel inputs for ``n`` jobs on ``k`` types; jobs that cannot complete have 0 levels.

    Attributes
    ----------
    arrival, gpus, work
        ``(n,)``.
    order
        ``(n, k)`` types by rate, fastest first.
    among
        ``(n, k)`` number of types, in this order, that may serve at each level.
    progress
        ``(n, k)`` iterations of the gang in a slot at each level.
    levels
        ``(n,)`` number of levels.
    """

    arrival: Ints
    gpus: Ints
    work: Array
    order: Ints
    among: Ints
    progress: Array
    levels: Ints

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """The fields that the compiled loops take, in their order."""
        return self.arrival, self.gpus, self.work, self.order, self.among, self.progress


def levels(view: HadarView) -> PricedJobs:
    """Return the levels of all jobs: the rates at which enough GPUs are at least as fast."""
    work = view.workload
    n, k = work.rates.shape
    order = np.argsort(-work.rates, axis=1, kind="stable")
    among, progress, count = np.zeros((n, k), np.int64), np.zeros((n, k)), np.zeros(n, np.int64)
    for j in view.possible.tolist():
        rates = work.rates[j, order[j]]
        enough = np.cumsum(view.capacity[order[j]]) >= work.gpus[j]
        ends = np.append(rates[1:] < rates[:-1], True) & (rates > 0) & enough
        last = np.flatnonzero(ends)
        count[j] = len(last)
        among[j, : len(last)] = last + 1
        progress[j, : len(last)] = work.gpus[j] * rates[last] * view.slot_s
    return PricedJobs(view.arrival, work.gpus, work.work, order, among, progress, count)


@dataclass(frozen=True, eq=False)
class Machine:
    """The automaton or grid of one job: ``table[s, k]`` is the state after one more slot at level ``k``; 0 is done.

    From state `need`, it accepts every schedule that does the work; from state `enough`, only such schedules. `credit`
    is the work that levels which the grid leaves out may contribute.
    """

    table: NDArray[np.int32]
    need: int
    enough: int
    credit: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the machine accepts exactly the schedules that do the work."""
        return self.need == self.enough


def automaton(progress: Array, work: float, largest: int) -> Machine | None:
    """Return the automaton of a job, or ``None`` if it has more than `largest` states; see :func:`machine`."""
    from schedgap.models.engine.gangs import _kernels as kernels

    amounts = kernels.residuals(progress, work, RESIDUALS * largest)
    if not amounts.size:
        return None
    exact = kernels.automaton(np.sort(amounts), progress, work)
    return Machine(exact, len(exact) - 1, len(exact) - 1) if len(exact) <= largest else None


def machine(progress: Array, work: float, slots: int, largest: int) -> Machine:
    """Return the automaton of a job, or the best grid if it has more than `largest` states.

    Parameters
    ----------
    progress
        ``(levels,)`` iterations in a slot at each level, descending.
    work
        Iterations.
    slots
        Slots that the job may use.
    largest
        Largest number of states.
    """
    from schedgap.models.engine.gangs import _kernels as kernels

    if exact := automaton(progress, work, largest):
        return exact
    fastest = math.ceil(work / progress[0])
    largest = max(largest // 2, 2 * fastest)
    # Levels that alone would need more slots than half the units are dropped; the work they may add is credited.
    kept = np.append(True, progress[1:] * largest >= 2 * work)
    credit = slots * float(progress[~kept].max(initial=0.0))
    units, need, enough = kernels.grid(progress[kept], work, credit, fastest, largest)
    states = np.arange(enough + 1)[:, None]
    return Machine(np.maximum(states - units, 0).astype(np.int32), int(need), int(enough), credit)


@dataclass(frozen=True, eq=False)
class Automata:
    """The automata or grids of several jobs, concatenated; jobs without one have empty tables."""

    tables: NDArray[np.int32]
    offset: Ints
    need: Ints
    enough: Ints
    levels: Ints

    @staticmethod
    def of(machines: dict[int, Machine], n: int) -> Automata:
        """Concatenate the machines of some of `n` jobs, given by job."""
        none = Machine(np.zeros((0, 1), np.int32), 0, 0)
        listed = [machines.get(j, none) for j in range(n)]
        return Automata(
            tables=np.concatenate([m.table.ravel() for m in listed]),
            offset=np.cumsum([0, *(m.table.size for m in listed)]),
            need=np.array([m.need for m in listed]),
            enough=np.array([m.enough for m in listed]),
            levels=np.array([m.table.shape[1] for m in listed]),
        )

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """The fields that the compiled loops take, in their order."""
        return self.tables, self.offset, self.need, self.enough, self.levels


class GangPricing(Oracle):
    """The oracle of Hadar's P2: capacities are (type, slot), row ``r·T + t``; blocks are jobs, ends are last slots.

    Parameters
    ----------
    view
        Jobs, GPUs, slots.
    complete
        Whether every job needs a schedule, whatever its payoff.
    several
        Whether to return also each job's best schedule with another last slot: saves a fifth to a third of the rounds.
    """

    def __init__(self, view: HadarView, complete: bool = False, several: bool = True) -> None:
        self.view, self.several = view, several
        self.jobs = levels(view)
        self.worth = np.array([view.utility(j) for j in range(view.size)]).reshape(view.size, view.slots)
        capacity = np.repeat(view.capacity, view.slots).astype(float)
        self.packing = Packing(
            capacity,
            view.size,
            complete,
            floor=0.0,
            worth=self.worth,
            most=view.workload.gpus,
            series=view.slots,
        )
        self.anything = Domain.of(self.packing)
        self.room = np.repeat(view.capacity[:, None], view.slots, axis=1)
        machines = {j: automaton(*self._task(j), COARSE) for j in view.possible.tolist()}
        self.by_parts = np.array([machines.get(j) is None for j in range(view.size)])  # also jobs that never complete
        self._exact = {j: exact for j, exact in machines.items() if exact}
        self._machines = Automata.of(self._exact, view.size)
        self._tried: set[int] = set()
        self._fine: dict[int, Machine] = {}
        self._total, self._close = math.inf, 0.0

    def _task(self, job: int) -> tuple[Array, float]:
        """Return the iterations of a job in a slot at each level, and its work."""
        return self.jobs.progress[job, : self.jobs.levels[job]], float(self.jobs.work[job])

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best schedule of every job at the prices ``(k·T,)`` in a domain; see :class:`.Priced`."""
        return self._priced(prices, domain, TOLERANCE)

    @property
    def rough(self) -> Price:
        """The same oracle, with a greedy choice of the cheapest slots for jobs whose automaton is too large."""
        return partial(self._priced, tolerance=math.inf)

    def nearly(self, prices: Array, closely: bool) -> Priced:
        """Return nearly optimal schedules of all jobs at prices ``(k, T)``, which is faster if there are many slots.

        If `closely`, jobs whose error matters get automata of up to :data:`FINE` states, and keep these.
        """
        view, inputs = self.view, (prices, self.room, self._anything)
        result = self._price(view.possible, self._machines, *inputs, alone=True, close=self._close)
        self._close = self._close or NEARLY * float(np.abs(result.most).sum())
        most, columns = np.full(view.size, -np.inf), result.columns(self)
        most[result.job] = result.most
        unsure = result.job[self.by_parts[result.job] & (result.most - result.sure > self._close)]
        untried = [j for j in unsure.tolist() if j not in self._tried] if closely else []
        self._tried |= set(untried)
        if finer := {j: exact for j in untried if (exact := automaton(*self._task(j), FINE))}:
            self._exact |= finer
            self._machines, refined = Automata.of(self._exact, view.size), np.array(list(finer), np.int64)
            self.by_parts[refined] = False
            better = self._price(refined, self._machines, *inputs, alone=True)
            most[refined] = np.minimum(most[refined], better.most)
            columns = Columns.joined([columns.take(~np.isin(columns.block, refined)), better.columns(self)])
        return Priced(most, columns)

    def _priced(self, prices: Array, domain: Domain, tolerance: float) -> Priced:
        by_slot = np.ascontiguousarray(prices[: self.room.size].reshape(self.room.shape))
        goal = _Goal.of(domain, prices[self.room.size :])
        room = self.room if domain.room is None else domain.room.astype(np.int64).reshape(self.room.shape)
        result = self._price(self.view.possible, self._machines, by_slot, room, goal)
        most, by_end = np.full(self.view.size, -np.inf), np.full_like(self.worth, -np.inf)
        most[result.job], by_end[result.job] = result.most, result.by_end
        self._total = float(np.abs(result.most).sum())
        refined = result.job[self.by_parts[result.job] & (result.most - result.sure > tolerance * self._total)]
        if not refined.size:
            return Priced(most, result.columns(self), by_end)
        for j in refined.tolist():
            if j not in self._fine:
                self._fine[j] = machine(*self._task(j), int(self.view.slots - self.jobs.arrival[j]), FINE)
        fine = Automata.of({j: self._fine[j] for j in refined.tolist()}, self.view.size)
        better = self._price(refined, fine, by_slot, room, goal)
        most[refined] = np.minimum(most[refined], better.most)
        by_end[refined] = np.minimum(by_end[refined], better.by_end)
        exact = result.columns(self).take(~np.isin(result.owner, refined))
        return Priced(most, Columns.joined([exact, better.columns(self)]), by_end)

    @cached_property
    def _anything(self) -> _Goal:
        return _Goal.of(self.anything, np.zeros(0))

    def insert(self, job: int, room: Array, prices: Array) -> Choice | None:
        """Return the best schedule of `job` on the free GPUs, or ``None``.

        Parameters
        ----------
        job
            The job.
        room, prices
            ``(k·T,)`` free GPUs, and their prices.
        """
        if self.jobs.levels[job] == 0:
            return None
        shape = self.room.shape
        free = room.astype(np.int64).reshape(shape)
        inputs = prices.reshape(shape), free, self._anything
        result = self._price(np.array([job]), self._machines, *inputs, alone=True, close=self._close)
        if not len(result.last):
            return None
        # A view would keep the kernel's whole buffer alive: 6 GB for 20,000 jobs in 1152 slots.
        return Choice(float(self.worth[job, result.last[0]]), result.cell.copy(), result.gpus.astype(float))

    def _price(
        self,
        which: Ints,
        machines: Automata,
        prices: Array,
        room: Ints,
        goal: _Goal,
        alone: bool = False,
        close: float = 0.0,
    ) -> _Result:
        from schedgap.models.engine.gangs import _kernels as kernels

        count = len(which)
        most, sure = np.zeros(count), np.zeros(count)
        by_end = np.zeros((0 if alone else count, self.view.slots))
        owner, last, ends = (np.zeros(2 * count, np.int64) for _ in range(3))
        size = 16 * self.view.slots + 40 * count
        while True:
            cell, gpus = np.empty(size, np.int64), np.empty(size, np.int64)
            out = most, sure, by_end, owner, last, ends, cell, gpus
            fixed = self.jobs.arrays, machines.arrays, goal.worth, goal.floor, goal.uses, goal.covers
            number = kernels.price(prices, room, which, *fixed, self.several and not alone, close, out)
            if number >= 0:
                used = ends[number - 1] if number else 0
                schedules = owner[:number], last[:number], ends[:number], cell[:used], gpus[:used]
                return _Result(which, most, sure, by_end, *schedules)
            size *= 2


@dataclass(frozen=True, eq=False)
class _Goal:
    """A domain as inputs of the compiled loops: `worth` ``(n, T)``, the `floor` ``(n,)`` of payoffs, `uses` ``(4, u)``.

    `covers` holds the cells, spares, members (jobs whose reserve is all of their gang) and prices of covers with a
    price.
    """

    worth: Array
    floor: Array
    uses: Ints
    covers: tuple[Any, ...]

    @staticmethod
    def of(domain: Domain, prices: Array) -> _Goal:
        uses = np.array(domain.uses, np.int64).reshape(-1, 4)
        priced, all_covers = np.flatnonzero(prices), domain.packing.cuts
        assert isinstance(all_covers, Covers)
        covers = all_covers.row[priced], all_covers.spare[priced], all_covers.kept[priced] > 0, prices[priced]
        return _Goal(domain.worth, np.where(domain.must, -1e200, 0.0), np.ascontiguousarray(uses.T), covers)


@dataclass(frozen=True, eq=False)
class _Result:
    """Result of pricing: the payoff of each `job`, and the schedules found, concatenated.

    A payoff has an upper bound `most`, an attained value `sure`, and upper bounds `by_end` by last slot. A schedule has
    an `owner`, a `last` slot, and entries (`cell`, `gpus`) that end at `ends`.
    """

    job: Ints
    most: Array
    sure: Array
    by_end: Array
    owner: Ints
    last: Ints
    ends: Ints
    cell: Ints
    gpus: Ints

    def columns(self, pricing: GangPricing) -> Columns:
        """Return the schedules as columns."""
        starts = np.concatenate([[0], self.ends])
        use = sp.csc_array((self.gpus.astype(float), self.cell, starts), shape=(pricing.room.size, len(self.owner)))
        return Columns(self.owner, pricing.worth[self.owner, self.last], use, self.last)
