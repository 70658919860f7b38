"""Primal heuristics: insertion of columns one after another, and ruin and recreate by simulated annealing."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.models.engine.columns.packing import Columns, Packing
from schedgap.models.engine.solve import TracePoint


@dataclass(frozen=True, eq=False)
class Choice:
    """A column of one block: its value, and the rows ``(u,)`` that it uses with the amounts."""

    value: float
    rows: Ints
    amounts: Array

    def cost(self, prices: Array) -> float:
        """Return the cost of the column's use at `prices` ``(m,)``."""
        return float(prices[self.rows] @ self.amounts)


Insert = Callable[[int, Array, Array], Choice | None]
"""``insert(block, room, prices)`` returns the block's best column at `prices` within `room`, both ``(m,)``, if any."""

Start = Mapping[int, Choice]
"""A complete or partial solution: columns by block."""


@dataclass(frozen=True)
class PackingOptions:
    """Options of the search for integer solutions.

    Parameters
    ----------
    ruined
        Largest number of blocks that one move removes.
    hot, cold
        Temperatures at the beginning and at the end of an annealing, as fractions of the bound per block; the first
        annealings use a fraction of them, starting with :data:`FIRST`.
    time_limit_s
        Time limit in seconds of computing (:class:`schedgap.instances.clock.Budget`); ``None`` for none.
    seed
        Random seed.
    """

    ruined: int = 10
    hot: float = 0.005
    cold: float = 0.0003
    time_limit_s: float | None = None
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Packed:
    """An integer solution.

    Attributes
    ----------
    columns
        The chosen columns, at most one per block, by block.
    value
        Their total value.
    missing
        Number of blocks that lack a column although they need one; the solution is feasible if this is 0.
    chosen
        The chosen columns by block, as inserted.
    moves
        Number of ruin-and-recreate moves.
    """

    columns: Columns
    value: float
    missing: int
    chosen: Mapping[int, Choice]
    moves: int


class Packer(ABC):
    """Simulated annealing over integer solutions, which keeps the best one; subclasses implement insertion of columns.

    Parameters
    ----------
    packing
        Capacities and blocks.
    bound
        Bound proved by column generation.
    options
        Options of the search.
    """

    value: float
    """Total value of the current solution."""
    covered: int
    """Number of blocks that have a column."""

    def __init__(self, packing: Packing, bound: float, options: PackingOptions | None = None) -> None:
        self.packing, self.options = packing, options or PackingOptions()
        self.degree = abs(bound) / max(packing.blocks, 1)
        self.rng = np.random.default_rng(self.options.seed)
        self.budget = clock.Budget(self.options.time_limit_s)
        # Covering one more block outweighs any difference of values.
        self.reward = 0.0
        if packing.cover and packing.worth is not None:
            values = np.where(np.isfinite(packing.worth), np.abs(packing.worth), 0.0)
            self.reward = 2 * float(values.max(axis=1, initial=0.0).sum()) + 1.0
        self.value, self.covered = 0.0, 0
        self.top: tuple[int, float] | None = None
        self.work, self.moves = 0.0, 0
        self.cycle, self.done = max(FEWEST_MOVES, MOVES_OF_BLOCK * packing.blocks), 0
        self.warmth = FIRST
        self.last_s: float | None = None
        self.trace: list[TracePoint] = []

    @abstractmethod
    def load(self, known: Start) -> None:
        """Replace the current solution by the columns in `known`, without those that do not fit."""

    @abstractmethod
    def complete(self) -> None:
        """Insert a column for every block that has none, most profitable blocks first."""

    @abstractmethod
    def back(self) -> None:
        """Go back to the best solution found so far."""

    @abstractmethod
    def run(self, moves: int, temperature: float) -> None:
        """Make ruin-and-recreate moves: remove some blocks and insert them again; accept by the Metropolis rule."""

    @abstractmethod
    def keep(self) -> None:
        """Store the current solution as the best."""

    @property
    @abstractmethod
    def best(self) -> Start:
        """The columns of the best solution, by block."""

    @property
    def packed(self) -> Packed:
        """The best solution."""
        best = self.best
        listed = [(b, (c := best[b]).value, c.rows, c.amounts) for b in sorted(best)]
        missing = self.packing.blocks - len(best) if self.packing.cover else 0
        value = self.top[1] if self.top else 0.0
        return Packed(Columns.of(len(self.packing.capacity), listed), value, missing, best, self.moves)

    @property
    def incumbent(self) -> float:
        """Value of the best solution; ``-inf`` if it is infeasible because a block lacks a column."""
        if self.top is None:
            return -np.inf if self.packing.cover and self.packing.blocks else 0.0
        return self.top[1] if not self.packing.cover or self.top[0] == self.packing.blocks else -np.inf

    @abstractmethod
    def guided(self, prices: Array) -> None:
        """Insert columns at other prices ``(m,)`` from now on, those of another relaxation."""

    @abstractmethod
    def lists(self, ends: Array) -> Iterator[Callable[[], None]]:
        """Yield list heuristics that insert all blocks one after another, guided by the LP's mean ends ``(b,)``."""

    def arrange(self, seconds: float | None) -> None:  # noqa: B027
        """Improve the best list of all blocks for some seconds of computing, if the subclass can."""

    def follow(self, ends: Array) -> None:
        """Try solutions built from scratch: all blocks best first, then each of :meth:`lists` while time lasts."""
        left = (1 - LISTS) * self.budget.left_s
        self.offer({})
        for insert_all in self.lists(ends):
            if self.budget.left_s > left or left == math.inf:
                self.load({})
                insert_all()
                self.record()

    def offer(self, known: Start) -> None:
        """Start again from the columns in `known`, as far as these fit, and insert the other blocks, best first."""
        self.load(known)
        self.record()
        self.complete()
        self.record()

    def record(self) -> None:
        """Store the current solution if it is the best so far."""
        if self.note(self.value, self.covered):
            self.keep()

    def anneal(self) -> None:
        """Continue the current annealing for some moves; if it has ended, begin the next one, from the best solution.

        If time is limited, the last annealing takes all remaining time, at full temperatures.
        """
        if self.late():
            return
        if self.done == 0:
            self.back()
            self.last_s = self.last()
        moves = max(1, min(MOVES, self.cycle // MOVES))
        part = self.done / self.cycle
        if self.last_s is not None:
            self.warmth, part = 1.0, 1 - self.budget.left_s / self.last_s
        self.run(moves, self.degree * self.warmth * self.options.hot ** (1 - part) * self.options.cold**part)
        self.done += moves
        if self.done >= self.cycle and self.last_s is None:
            self.cycle, self.done, self.warmth = 2 * self.cycle, 0, min(2 * self.warmth, 1.0)

    def last(self) -> float | None:
        """Return the remaining seconds if the next annealing is the last one that time allows, else ``None``."""
        left, spent = self.budget.left_s, self.budget.spent_s
        return left if left < math.inf and self.cycle * LAST * spent > self.moves * left > 0 else None

    def note(self, value: float, covered: int) -> bool:
        """Return whether a solution of this value, with `covered` blocks, is the best so far; record it if so."""
        if self.top is not None:
            # Rewards are compared separately: next to them, costs that differed by 13 in 8 million looked equal.
            more = self.reward * (covered - self.top[0])
            if more + value - self.top[1] <= 1e-9 * abs(self.top[1]):
                return False
        self.top = covered, value
        if self.incumbent > -np.inf:
            self.trace.append(TracePoint(self.budget.wall_s, value, None))
        return True

    def extend(self, seconds: float) -> None:
        """Add seconds to the time limit; the next annealing starts from the best solution."""
        self.budget.extend(seconds)
        self.options = replace(self.options, time_limit_s=self.budget.limit_s)
        self.done, self.last_s = 0, None

    def late(self) -> bool:
        """Whether time is up."""
        return self.budget.left_s <= 0


class Inserting(Packer):
    """A packer that inserts columns by calling the paper's `insert` function.

    Parameters
    ----------
    packing, bound, options
        See :class:`Packer`.
    insert
        Finds a block's best column within the remaining capacity.
    prices
        ``(m,)`` prices of the bound.
    """

    def __init__(
        self, packing: Packing, insert: Insert, bound: float, prices: Array, options: PackingOptions | None = None
    ) -> None:
        super().__init__(packing, bound, options)
        self.insert = insert
        self.guided(prices)
        self.room = packing.capacity.astype(float)
        self.chosen: dict[int, Choice] = {}
        self.kept: dict[int, Choice] = {}
        self.uses = np.zeros((packing.blocks, len(packing.capacity)), bool)
        # The column that each block would take on an empty cluster; not computed once time is up.
        empty = packing.capacity.astype(float)
        self.wishes = {b: None if self.late() else self.found(b, empty, prices) for b in range(packing.blocks)}

    @property
    def best(self) -> Start:
        """The columns of the best solution, by block."""
        return self.kept

    def keep(self) -> None:
        """Store the current solution as the best."""
        self.kept = dict(self.chosen)

    def back(self) -> None:
        """Return to the best solution."""
        self.load(self.kept)

    def complete(self) -> None:
        """Insert a column for every block that has none, most profitable blocks first."""
        left = [b for b in range(self.packing.blocks) if b not in self.chosen]
        self.recreate(sorted(left, key=self.payoff, reverse=True), self.prices)

    def guided(self, prices: Array) -> None:
        """Insert columns at other prices ``(m,)`` from now on."""
        self.prices = prices
        self.scaled = [prices if factor == 1.0 else prices * factor for factor in NOISE]

    def lists(self, ends: Array) -> Iterator[Callable[[], None]]:
        """Yield list heuristics that insert blocks in order of ends, at prices times each factor of :data:`NOISE`."""
        order = np.argsort(ends, kind="stable").tolist()
        return (partial(self.recreate, order, prices) for prices in self.scaled)

    def run(self, moves: int, temperature: float) -> None:
        """Make ruin-and-recreate moves while time lasts."""
        for _ in range(moves):
            if not self.late():
                self.move(temperature)

    def move(self, temperature: float) -> None:
        """Remove some blocks and insert them again; accept the result by the Metropolis rule."""
        self.moves += 1
        removed = self.ruin()
        before = {b: choice for b in removed if (choice := self.take(b))}
        lost = sum(choice.value + self.reward for choice in before.values())
        self.recreate(removed, self.scaled[self.rng.integers(len(self.scaled))])
        gained = sum(self.chosen[b].value + self.reward for b in removed if b in self.chosen)
        if gained < lost + temperature * math.log(1 - self.rng.random()):
            for b in removed:
                self.take(b)
            for b, choice in before.items():
                self.put(b, choice)
        elif gained != lost and self.note(self.value, self.covered):
            self.keep()

    def ruin(self) -> list[int]:
        """Choose the blocks to remove: a random one, and some of those whose columns conflict with its best column."""
        first = int(self.rng.integers(self.packing.blocks))
        wish = self.wishes[first]
        near = np.flatnonzero(self.uses[:, wish.rows].any(axis=1)) if wish else np.array(sorted(self.chosen), np.int64)
        near = self.rng.permutation(near[near != first])
        return [first, *near[: int(self.rng.integers(1, self.options.ruined))].tolist()]

    def put(self, block: int, choice: Choice) -> None:
        """Add a column to the current solution."""
        self.room[choice.rows] -= choice.amounts
        self.uses[block, choice.rows] = True
        self.chosen[block] = choice
        self.value += choice.value
        self.covered = len(self.chosen)

    def take(self, block: int) -> Choice | None:
        """Remove the column of a block, and return it."""
        choice = self.chosen.pop(block, None)
        if choice is not None:
            self.room[choice.rows] += choice.amounts
            self.uses[block] = False
            self.value -= choice.value
            self.covered = len(self.chosen)
        return choice

    def load(self, known: Start) -> None:
        """Replace the current solution by the columns in `known`, without those that do not fit."""
        for block in list(self.chosen):
            self.take(block)
        self.room, self.value = self.packing.capacity.astype(float), 0.0  # removes accumulated rounding errors
        for block, choice in known.items():
            if (self.room[choice.rows] >= choice.amounts).all():
                self.put(block, choice)

    def payoff(self, block: int) -> float:
        """Return the profit of a block's best column on an empty cluster."""
        wish = self.wishes[block]
        return -np.inf if wish is None else wish.value - wish.cost(self.prices)

    def found(self, block: int, room: Array, prices: Array) -> Choice | None:
        """Price one block, and count it as work."""
        self.work += 1
        return self.insert(block, room, prices)

    def recreate(self, blocks: list[int], prices: Array) -> None:
        """Insert blocks one after another while time lasts."""
        for block in blocks:
            if self.late():
                return
            if choice := self.found(block, self.room, prices):
                self.put(block, choice)


def liked(columns: Columns, shares: Array, rows: int) -> dict[int, Choice]:
    """Round a relaxation: return the columns with a share of at least 1/2, largest first, by block.

    Only their use of the first `rows` capacities is kept.
    """
    order = [c for c in np.argsort(-shares, kind="stable").tolist() if shares[c] >= LIKED]
    use = sp.csc_array(columns.use[:rows])
    parts = {c: slice(use.indptr[c], use.indptr[c + 1]) for c in order}
    return {
        int(columns.block[c]): Choice(float(columns.value[c]), use.indices[part].astype(np.int64), use.data[part])
        for c, part in parts.items()
    }


FIRST = 0.01
"""Temperatures of the first annealing, as a fraction of the full ones. Each later annealing is twice as long and twice
as hot, up to the full temperatures: few moves per block gain most when cold, many moves when hot."""

FEWEST_MOVES, MOVES_OF_BLOCK = 500, 20
"""Moves of the first annealing: at least in all, and per block. Each further annealing has twice as many."""

MOVES = 100
"""Most moves at one temperature, and most temperatures of one annealing."""

LISTS = 0.1
"""Fraction of the remaining time for list heuristics before annealing begins; one that has begun is completed."""

LAST = 3
"""An annealing is the last one if the remaining time does not suffice for this many of its length."""

LIKED = 0.5 - 1e-6

NOISE = (0.5, 0.8, 1.0, 1.2)
"""Factors on the prices at which removed blocks are inserted again; much smaller factors help only if jobs are few."""
