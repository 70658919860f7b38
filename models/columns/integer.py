"""Integer solutions near a bound: columns inserted one after another, and ruin and recreate by simulated annealing."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.models.columns.packing import Columns, Packing
from schedgap.models.solve import TracePoint


@dataclass(frozen=True, eq=False)
class Choice:
    """One column of a block: its value, and the rows ``(u,)`` that it uses with their amounts."""

    value: float
    rows: Ints
    amounts: Array

    def cost(self, prices: Array) -> float:
        """Return what the column costs at `prices` ``(m,)``."""
        return float(prices[self.rows] @ self.amounts)


Insert = Callable[[int, Array, Array], Choice | None]
"""``insert(block, room, prices)`` returns the block's best column at `prices` within `room`, both ``(m,)``, if any."""

Start = Mapping[int, Choice]
"""A known solution, or a part of one: columns by block."""


@dataclass(frozen=True)
class PackingOptions:
    """Options of the search for integer solutions.

    Parameters
    ----------
    ruined
        Most blocks that one move takes out.
    hot, cold
        Temperatures at the beginning and at the end of an annealing, as parts of the bound per block; the first
        annealings take place at a part of them, from :data:`FIRST` on.
    time_limit_s
        Seconds until it ends; ``None`` for no limit.
    seed
        Of its random choices.
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
        Blocks without column that need one; where it is not 0, this is no feasible solution.
    chosen
        The same as the choices that were inserted, by block.
    moves
        Ruin-and-recreate moves made.
    """

    columns: Columns
    value: float
    missing: int
    chosen: Mapping[int, Choice]
    moves: int


class Packer(ABC):
    """Solutions that are annealed, and the best of them; who inserts columns, and how, subclasses say.

    Parameters
    ----------
    packing
        Capacities and blocks.
    bound
        What column generation proved.
    options
        Effort.
    """

    value: float
    """Total value of what is chosen."""
    covered: int
    """Number of blocks that have a column."""

    def __init__(self, packing: Packing, bound: float, options: PackingOptions | None = None) -> None:
        self.packing, self.options = packing, options or PackingOptions()
        self.degree = abs(bound) / max(packing.blocks, 1)
        self.rng = np.random.default_rng(self.options.seed)
        self.began = clock.now()
        # Covering one more block outweighs all values.
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
        """Replace the chosen columns by these, as far as they fit."""

    @abstractmethod
    def complete(self) -> None:
        """Insert the blocks that have no column, best first."""

    @abstractmethod
    def back(self) -> None:
        """Replace the chosen columns by the best that were found."""

    @abstractmethod
    def run(self, moves: int, temperature: float) -> None:
        """Make so many moves: take some blocks out and insert them anew; keep what is better, or not much worse."""

    @abstractmethod
    def keep(self) -> None:
        """Remember what is chosen as the best."""

    @property
    @abstractmethod
    def best(self) -> Start:
        """The best that was found."""

    @property
    def packed(self) -> Packed:
        """The best solution found."""
        best = self.best
        listed = [(b, (c := best[b]).value, c.rows, c.amounts) for b in sorted(best)]
        missing = self.packing.blocks - len(best) if self.packing.cover else 0
        value = self.top[1] if self.top else 0.0
        return Packed(Columns.of(len(self.packing.capacity), listed), value, missing, best, self.moves)

    @property
    def incumbent(self) -> float:
        """Value of the best solution; ``-inf`` where blocks are uncovered that need a column."""
        if self.top is None:
            return -np.inf if self.packing.cover and self.packing.blocks else 0.0
        return self.top[1] if not self.packing.cover or self.top[0] == self.packing.blocks else -np.inf

    @abstractmethod
    def lists(self, ends: Array) -> Iterator[Callable[[], None]]:
        """Yield ways to insert all blocks, one after another, that end at `ends` ``(b,)`` in a relaxation."""

    def follow(self, ends: Array) -> None:
        """Start anew: insert all blocks best first, then in each way of :meth:`lists` while its time lasts."""
        left = self.left()
        until = math.inf if left is None else clock.now() + LISTS * left
        self.offer({})
        for insert_all in self.lists(ends):
            if clock.now() < until:
                self.load({})
                insert_all()
                self.record()

    def offer(self, known: Start) -> None:
        """Take these columns, as far as they fit, instead of what there is, and insert the other blocks, best first."""
        self.load(known)
        self.record()
        self.complete()
        self.record()

    def record(self) -> None:
        """Remember what is chosen, if it is the best so far."""
        if self.note(self.value, self.covered):
            self.keep()

    def anneal(self) -> None:
        """Go on with the annealing; where one has ended, the next one begins with the best solution.

        Where time is limited, the last one takes all that is left, at full temperatures.
        """
        if self.late():
            return
        if self.done == 0:
            self.back()
            self.last_s = self.last()
        moves = max(1, min(MOVES, self.cycle // MOVES))
        part = self.done / self.cycle
        if self.last_s is not None:
            self.warmth, part = 1.0, 1 - (self.left() or 0.0) / self.last_s
        self.run(moves, self.degree * self.warmth * self.options.hot ** (1 - part) * self.options.cold**part)
        self.done += moves
        if self.done >= self.cycle and self.last_s is None:
            self.cycle, self.done, self.warmth = 2 * self.cycle, 0, min(2 * self.warmth, 1.0)

    def last(self) -> float | None:
        """Return the seconds that are left, if the next annealing is the last one there is time for."""
        left, spent = self.left(), clock.now() - self.began
        return left if left is not None and self.cycle * LAST * spent > self.moves * left > 0 else None

    def note(self, value: float, covered: int) -> bool:
        """Return whether a solution of that value, in which so many blocks have a column, is the best so far."""
        if self.top is not None:
            # Not one sum with the rewards: beside them, costs that differed by 13 of 8 million were the same.
            more = self.reward * (covered - self.top[0])
            if more + value - self.top[1] <= 1e-9 * abs(self.top[1]):
                return False
        self.top = covered, value
        if self.incumbent > -np.inf:
            self.trace.append(TracePoint(clock.now() - self.began, value, None))
        return True

    def left(self) -> float | None:
        """Return the seconds that are left; ``None`` for no limit."""
        limit = self.options.time_limit_s
        return None if limit is None else limit - (clock.now() - self.began)

    def late(self) -> bool:
        """Whether time is up."""
        left = self.left()
        return left is not None and left <= 0


class Inserting(Packer):
    """The chosen columns by block, the capacity that is left, and how both are improved.

    Parameters
    ----------
    packing, bound, options
        See :class:`Packer`.
    insert
        Finds a block's best column in what is left.
    prices
        ``(m,)`` prices of the bound.
    """

    def __init__(
        self, packing: Packing, insert: Insert, bound: float, prices: Array, options: PackingOptions | None = None
    ) -> None:
        super().__init__(packing, bound, options)
        self.insert, self.prices = insert, prices
        self.scaled = [prices if factor == 1.0 else prices * factor for factor in NOISE]
        self.room = packing.capacity.astype(float)
        self.chosen: dict[int, Choice] = {}
        self.kept: dict[int, Choice] = {}
        self.uses = np.zeros((packing.blocks, len(packing.capacity)), bool)
        # What each block would take if it were alone; where time is up, nobody asks.
        alone = packing.capacity.astype(float)
        self.wishes = {b: None if self.late() else self.found(b, alone, prices) for b in range(packing.blocks)}

    @property
    def best(self) -> Start:
        """The best that was found."""
        return self.kept

    def keep(self) -> None:
        """Remember what is chosen as the best."""
        self.kept = dict(self.chosen)

    def back(self) -> None:
        """Replace the chosen columns by the best that were found."""
        self.load(self.kept)

    def complete(self) -> None:
        """Insert the blocks that have no column, best first."""
        left = [b for b in range(self.packing.blocks) if b not in self.chosen]
        self.recreate(sorted(left, key=self.payoff, reverse=True), self.prices)

    def lists(self, ends: Array) -> Iterator[Callable[[], None]]:
        """Yield lists in the order of these ends, at prices times each of :data:`NOISE`."""
        order = np.argsort(ends, kind="stable").tolist()
        return (partial(self.recreate, order, prices) for prices in self.scaled)

    def run(self, moves: int, temperature: float) -> None:
        """Make so many moves."""
        for _ in range(moves):
            if not self.late():
                self.move(temperature)

    def move(self, temperature: float) -> None:
        """Take some blocks out and insert them anew; keep what is better, or not much worse."""
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
        """Choose the blocks of a move: a random one, then some of those in the way of its best column."""
        first = int(self.rng.integers(self.packing.blocks))
        wish = self.wishes[first]
        near = np.flatnonzero(self.uses[:, wish.rows].any(axis=1)) if wish else np.array(sorted(self.chosen), np.int64)
        near = self.rng.permutation(near[near != first])
        return [first, *near[: int(self.rng.integers(1, self.options.ruined))].tolist()]

    def put(self, block: int, choice: Choice) -> None:
        """Choose a column."""
        self.room[choice.rows] -= choice.amounts
        self.uses[block, choice.rows] = True
        self.chosen[block] = choice
        self.value += choice.value
        self.covered = len(self.chosen)

    def take(self, block: int) -> Choice | None:
        """Take a block's column out."""
        choice = self.chosen.pop(block, None)
        if choice is not None:
            self.room[choice.rows] += choice.amounts
            self.uses[block] = False
            self.value -= choice.value
            self.covered = len(self.chosen)
        return choice

    def load(self, known: Start) -> None:
        """Replace the chosen columns by these, as far as they fit."""
        for block in list(self.chosen):
            self.take(block)
        self.room, self.value = self.packing.capacity.astype(float), 0.0  # what rounding has left is gone
        for block, choice in known.items():
            if (self.room[choice.rows] >= choice.amounts).all():
                self.put(block, choice)

    def payoff(self, block: int) -> float:
        """Return the payoff of a block's best column at the prices, on an empty cluster."""
        wish = self.wishes[block]
        return -np.inf if wish is None else wish.value - wish.cost(self.prices)

    def found(self, block: int, room: Array, prices: Array) -> Choice | None:
        """Ask for a column."""
        self.work += 1
        return self.insert(block, room, prices)

    def recreate(self, blocks: list[int], prices: Array) -> None:
        """Insert blocks one after another, as long as there is time."""
        for block in blocks:
            if self.late():
                return
            if choice := self.found(block, self.room, prices):
                self.put(block, choice)


def liked(known: Columns, shares: Array, rows: int) -> dict[int, Choice]:
    """Return the columns that a relaxation takes by at least half, the largest shares first, in the first `rows`."""
    order = [c for c in np.argsort(-shares, kind="stable").tolist() if shares[c] >= LIKED]
    use = sp.csc_array(known.use[:rows])
    parts = {c: slice(use.indptr[c], use.indptr[c + 1]) for c in order}
    return {
        int(known.block[c]): Choice(float(known.value[c]), use.indices[part].astype(np.int64), use.data[part])
        for c, part in parts.items()
    }


FIRST = 0.01
"""Part of the temperatures at which the first annealing takes place; each later one is twice as long and twice as hot.
Few moves per block, all that 200 jobs get in a minute, bring most when cold; many, as 50 jobs get, when hot."""

FEWEST_MOVES, MOVES_OF_BLOCK = 500, 20
"""Moves of the first annealing, at least and by block; each further one has twice as many."""

MOVES = 100
"""Moves at one temperature, and temperatures of an annealing, at most."""

LISTS = 0.1
"""Share of the time for lists of all blocks, before moves improve the best of them; one that has begun is completed."""

LAST = 3
"""An annealing is the last one where fewer than so many as long as it would fit into the time that is left."""

LIKED = 0.5 - 1e-6

NOISE = (0.5, 0.8, 1.0, 1.2)
"""Factors on the prices at which blocks are inserted anew. With 0 and 0.3 among them, ``gen/200jobs`` (utility) has a
gap of 0.67 % after 15 s, and of 0.42 % with the prices alone or factors near 1; on ``gen/50jobs`` small ones help."""
