"""Integer solutions near a bound: columns inserted one after another, and ruin and recreate by simulated annealing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
    moves
        Ruin-and-recreate moves per block of the first annealing, at least :data:`FEWEST_MOVES`; each further one has
        twice as many.
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

    moves: float = 20.0
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


class Packer:
    """The chosen columns by block, the capacity that is left, how both are improved, and the best that was found.

    Parameters
    ----------
    packing
        Capacities and blocks.
    insert
        Finds a block's best column in what is left.
    bound, prices
        What column generation proved, and its prices ``(m,)``.
    options
        Effort.
    """

    def __init__(
        self, packing: Packing, insert: Insert, bound: float, prices: Array, options: PackingOptions | None = None
    ) -> None:
        self.packing, self.insert, self.prices = packing, insert, prices
        self.options = options or PackingOptions()
        self.degree = abs(bound) / max(packing.blocks, 1)
        # The same arrays again and again: who inserts may keep what it derives from them.
        self.scaled = [prices if factor == 1.0 else prices * factor for factor in NOISE]
        self.rng = np.random.default_rng(self.options.seed)
        self.began = clock.now()
        self.room = packing.capacity.astype(float)
        self.chosen: dict[int, Choice] = {}
        self.uses = np.zeros((packing.blocks, len(packing.capacity)), bool)
        self.work = 0
        # What each block would take if it were alone; where time is up, nobody asks.
        alone = packing.capacity.astype(float)
        self.wishes = {b: None if self.late() else self.found(b, alone, prices) for b in range(packing.blocks)}
        # Covering one more block outweighs all values.
        values = [abs(wish.value) for wish in self.wishes.values() if wish]
        self.reward = 2 * sum(values) + 1.0 if packing.cover else 0.0
        self.value = 0.0
        self.best: tuple[float, float, dict[int, Choice]] = (0.0, 0.0, {})
        self.moves = 0
        self.cycle, self.done = max(FEWEST_MOVES, int(self.options.moves * packing.blocks)), 0
        self.warmth = FIRST
        self.trace: list[TracePoint] = []

    @property
    def packed(self) -> Packed:
        """The best solution found."""
        value, chosen = self.best[1:]
        listed = [(b, (c := chosen[b]).value, c.rows, c.amounts) for b in sorted(chosen)]
        missing = self.packing.blocks - len(chosen) if self.packing.cover else 0
        return Packed(Columns.of(len(self.packing.capacity), listed), value, missing, chosen, self.moves)

    @property
    def incumbent(self) -> float:
        """Value of the best solution; ``-inf`` where blocks are uncovered that need a column."""
        return self.best[1] if not self.packing.cover or len(self.best[2]) == self.packing.blocks else -np.inf

    @property
    def score(self) -> float:
        """Total value, with the reward of covered blocks."""
        return self.value + self.reward * len(self.chosen)

    def offer(self, known: Start) -> None:
        """Take these columns, as far as they fit, instead of what there is, and insert the other blocks, best first."""
        self.load(known)
        self.note()
        left = [b for b in range(self.packing.blocks) if b not in self.chosen]
        self.recreate(sorted(left, key=self.payoff, reverse=True), self.prices)
        self.note()

    def anneal(self, moves: int = 100) -> None:
        """Go on with the annealing; where one has ended, the next one begins with the best solution."""
        for _ in range(moves):
            if self.late():
                return
            if self.done == 0:
                self.load(self.best[2])
            part = self.done / self.cycle
            self.move(self.degree * self.warmth * self.options.hot ** (1 - part) * self.options.cold**part)
            self.done += 1
            if self.done == self.cycle:
                self.cycle, self.done, self.warmth = 2 * self.cycle, 0, min(2 * self.warmth, 1.0)

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
        elif gained != lost:
            self.note()

    def ruin(self) -> list[int]:
        """Choose the blocks of a move: a random one, then some of those in the way of its best column."""
        first = int(self.rng.integers(self.packing.blocks))
        wish = self.wishes[first]
        near = np.flatnonzero(self.uses[:, wish.rows].any(axis=1)) if wish else np.array(sorted(self.chosen), np.int64)
        near = self.rng.permutation(near[near != first])
        return [first, *near[: int(self.rng.integers(1, self.options.ruined))].tolist()]

    def note(self) -> None:
        """Keep the solution if it is the best so far."""
        if not self.best[2] or self.score > self.best[0] + 1e-9 * abs(self.best[0]):
            self.best = self.score, self.value, dict(self.chosen)
            if self.incumbent > -np.inf:
                self.trace.append(TracePoint(clock.now() - self.began, self.value, None))

    def put(self, block: int, choice: Choice) -> None:
        """Choose a column."""
        self.room[choice.rows] -= choice.amounts
        self.uses[block, choice.rows] = True
        self.chosen[block] = choice
        self.value += choice.value

    def take(self, block: int) -> Choice | None:
        """Take a block's column out."""
        choice = self.chosen.pop(block, None)
        if choice is not None:
            self.room[choice.rows] += choice.amounts
            self.uses[block] = False
            self.value -= choice.value
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

    def left(self) -> float | None:
        """Return the seconds that are left; ``None`` for no limit."""
        limit = self.options.time_limit_s
        return None if limit is None else limit - (clock.now() - self.began)

    def late(self) -> bool:
        """Whether time is up."""
        left = self.left()
        return left is not None and left <= 0


def liked(known: Columns, shares: Array, rows: int) -> dict[int, Choice]:
    """Return the columns that a relaxation takes by at least half, the largest shares first, in the first `rows`."""
    order = [c for c in np.argsort(-shares, kind="stable").tolist() if shares[c] >= LIKED]
    own = Columns(known.block, known.value, sp.csc_array(known.use[:rows]), known.end)
    return {int(own.block[c]): _choice(own, c) for c in order}


FIRST = 0.01
"""Part of the temperatures at which the first annealing takes place; each later one is twice as long and twice as hot.
Few moves per block, all that 200 jobs get in a minute, bring most when cold; many, as 50 jobs get, when hot."""

FEWEST_MOVES = 500

LIKED = 0.5 - 1e-6

NOISE = (0.5, 0.8, 1.0, 1.2)
"""Factors on the prices at which blocks are inserted anew. With 0 and 0.3 among them, ``gen/200jobs`` (utility) has a
gap of 0.67 % after 15 s, and of 0.42 % with the prices alone or factors near 1; on ``gen/50jobs`` small ones help."""


def _choice(columns: Columns, index: int) -> Choice:
    a, b = columns.use.indptr[index], columns.use.indptr[index + 1]
    return Choice(float(columns.value[index]), columns.use.indices[a:b].astype(np.int64), columns.use.data[a:b])
