"""From the LP relaxation to an integer solution: greedy packing, ruin and recreate, the restricted master as MILP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from instances import clock
from models.columns.generation import Generated
from models.columns.packing import Array, Columns, Ints, Packing, statement
from models.solve import SolveOptions, TracePoint, build, solve


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


@dataclass(frozen=True)
class PackingOptions:
    """Options of the integer phase.

    Parameters
    ----------
    gap
        Relative distance to the bound at which it ends.
    moves, progress
        It ends where so many ruin-and-recreate moves per block, and at least :data:`FEWEST_MOVES`, have gained less
        than this part of the value.
    ruined
        Most blocks that one move takes out.
    time_limit_s
        Seconds it may take; ``None`` for no limit.
    seed
        Of its random choices.
    milp_columns, nodes
        Columns up to which the restricted master is solved as a MILP, too, and its branch-and-bound nodes. (On the
        1,800 columns of ``gen/200jobs`` it finds nothing better than ruin and recreate within a minute.)
    """

    gap: float = 1e-6
    moves: float = 5.0
    progress: float = 2e-4
    ruined: int = 8
    time_limit_s: float | None = None
    seed: int = 0
    milp_columns: int = 1000
    nodes: int = 1000


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
    trace
        Incumbent over time.
    """

    columns: Columns
    value: float
    missing: int
    chosen: Mapping[int, Choice]
    moves: int
    trace: tuple[TracePoint, ...] = field(default=())


def pack(
    packing: Packing,
    insert: Insert,
    generated: Generated,
    options: PackingOptions | None = None,
    solver: SolveOptions | None = None,
) -> Packed:
    """Return an integer solution near the bound.

    Parameters
    ----------
    packing
        Capacities and blocks.
    insert
        Finds a block's best column in what is left.
    generated
        Outcome of column generation: columns, shares, prices, bound.
    options, solver
        Effort; options of the MILP's solver.
    """
    return _Packer(packing, insert, generated, options or PackingOptions(), solver or SolveOptions()).run()


class _Packer:
    """The chosen columns by block, the capacity that is left, and how both are improved."""

    def __init__(
        self,
        packing: Packing,
        insert: Insert,
        generated: Generated,
        options: PackingOptions,
        solver: SolveOptions,
    ) -> None:
        self.packing, self.insert, self.generated = packing, insert, generated
        self.options, self.solver = options, solver
        self.prices = generated.prices
        # The same arrays again and again: who inserts may keep what it derives from them.
        self.scaled = [generated.prices if factor == 1.0 else generated.prices * factor for factor in NOISE]
        self.rng = np.random.default_rng(options.seed)
        self.began = clock.now()
        self.room = packing.capacity.astype(float)
        self.chosen: dict[int, Choice] = {}
        self.uses = np.zeros((packing.blocks, len(packing.capacity)), bool)
        self.wishes = {b: insert(b, packing.capacity.astype(float), generated.prices) for b in range(packing.blocks)}
        # Covering one more block outweighs all values.
        values = [abs(wish.value) for wish in self.wishes.values() if wish]
        self.reward = 2 * sum(values) + 1.0 if packing.cover else 0.0
        self.value = 0.0
        self.moves = 0
        self.trace: list[TracePoint] = []

    def run(self) -> Packed:
        """Start from the LP, ruin and recreate, then ask the MILP."""
        self.start()
        self.improve()
        if len(self.generated.columns) <= self.options.milp_columns and not self.reached():
            self.recombine()
        blocks = sorted(self.chosen)
        listed = [(b, (c := self.chosen[b]).value, c.rows, c.amounts) for b in blocks]
        columns = Columns.of(len(self.packing.capacity), listed)
        missing = self.packing.blocks - len(blocks) if self.packing.cover else 0
        return Packed(columns, float(columns.value.sum()), missing, self.chosen, self.moves, tuple(self.trace))

    def note(self) -> None:
        """Record the incumbent, if it is a solution."""
        if self.feasible():
            self.trace.append(TracePoint(clock.now() - self.began, self.value, None))

    @property
    def score(self) -> float:
        """Total value, with the reward of covered blocks."""
        return self.value + self.reward * len(self.chosen)

    def put(self, block: int, choice: Choice) -> None:
        self.room[choice.rows] -= choice.amounts
        self.uses[block, choice.rows] = True
        self.chosen[block] = choice
        self.value += choice.value

    def take(self, block: int) -> Choice | None:
        choice = self.chosen.pop(block, None)
        if choice is not None:
            self.room[choice.rows] += choice.amounts
            self.uses[block] = False
            self.value -= choice.value
        return choice

    def start(self) -> None:
        """Take the columns that the LP likes best as far as they fit, then insert what is left, best first."""
        shares, known = self.generated.x, self.generated.columns
        for column in np.argsort(-shares, kind="stable").tolist():
            if shares[column] < 0.5:
                break
            block, choice = int(known.block[column]), _choice(known, column)
            if block not in self.chosen and (self.room[choice.rows] >= choice.amounts).all():
                self.put(block, choice)
        left = [b for b in range(self.packing.blocks) if b not in self.chosen]
        self.recreate(sorted(left, key=self.payoff, reverse=True), self.prices)
        self.note()

    def payoff(self, block: int) -> float:
        """Return the payoff of a block's best column at the prices, whatever room there is."""
        wish = self.wishes[block]
        return -np.inf if wish is None else wish.value - wish.cost(self.prices)

    def recreate(self, blocks: list[int], prices: Array) -> None:
        """Insert blocks one after another."""
        for block in blocks:
            if choice := self.insert(block, self.room, prices):
                self.put(block, choice)

    def improve(self) -> None:
        """Ruin and recreate as long as it is worth the while."""
        window = max(FEWEST_MOVES, int(self.options.moves * self.packing.blocks))
        before, score = -np.inf, self.score
        while score > before + self.options.progress * abs(self.value):
            before = score
            for _ in range(window):
                if self.reached() or self.late():
                    return
                self.moves += 1
                if self.move():
                    self.note()
            score = self.score

    def move(self) -> bool:
        """Take some blocks out and insert them anew; keep what is not worse. Return whether it is better."""
        removed = self.ruin()
        before = {b: choice for b in removed if (choice := self.take(b))}
        lost = sum(choice.value + self.reward for choice in before.values())
        self.recreate(removed, self.scaled[self.rng.integers(len(NOISE))])
        gained = sum(self.chosen[b].value + self.reward for b in removed if b in self.chosen)
        if gained < lost:
            for b in removed:
                self.take(b)
            for b, choice in before.items():
                self.put(b, choice)
        return gained > lost + 1e-9 * abs(lost)

    def ruin(self) -> list[int]:
        """Choose the blocks of a move: any one, then some of those in the way of what it wishes."""
        first = int(self.rng.integers(self.packing.blocks))
        wish = self.wishes[first]
        near = np.flatnonzero(self.uses[:, wish.rows].any(axis=1)) if wish else np.array(sorted(self.chosen), np.int64)
        near = self.rng.permutation(near[near != first])
        return [first, *near[: int(self.rng.integers(1, self.options.ruined))].tolist()]

    def feasible(self) -> bool:
        """Whether every block has a column that needs one."""
        return not self.packing.cover or len(self.chosen) == self.packing.blocks

    def reached(self) -> bool:
        """Whether the bound is reached."""
        bound = self.generated.bound
        return self.feasible() and self.value >= bound - self.options.gap * abs(bound)

    def late(self) -> bool:
        """Whether time is up."""
        limit = self.options.time_limit_s
        return limit is not None and clock.now() - self.began > limit

    def recombine(self) -> None:
        """Solve the restricted master as a MILP over the LP's columns and the chosen ones, from the incumbent."""
        blocks = list(self.chosen)
        chosen = [self.chosen[b] for b in blocks]
        rows = len(self.packing.capacity)
        own = Columns.of(rows, [(b, c.value, c.rows, c.amounts) for b, c in zip(blocks, chosen, strict=True)])
        columns = Columns.joined([own, self.generated.columns])
        left = None
        if self.options.time_limit_s is not None:
            left = max(self.options.time_limit_s - (clock.now() - self.began), 0.1)
        options = replace(
            self.solver,
            time_limit_s=left,
            nodes=self.options.nodes,
            cross_check=False,
            mip_start={f"x[{i}]": 1.0 for i in range(len(own))},
        )
        solution = solve(build(statement, self.packing, columns, integer=True), options)
        if solution.objective is None or solution.column_values is None:
            return
        values = solution.values
        picked = [i for i in range(len(columns)) if values.get(f"x[{i}]", 0.0) > 0.5]
        if sum(columns.value[i] + self.reward for i in picked) <= self.score:
            return
        for block in blocks:
            self.take(block)
        for i in picked:
            self.put(int(columns.block[i]), _choice(columns, i))
        self.note()


FEWEST_MOVES = 500

NOISE = (0.0, 0.3, 0.7, 1.0, 1.3)
"""Factors on the prices at which blocks are inserted anew: from greedy (0) to thrifty."""


def _choice(columns: Columns, index: int) -> Choice:
    a, b = columns.use.indptr[index], columns.use.indptr[index + 1]
    return Choice(float(columns.value[index]), columns.use.indices[a:b].astype(np.int64), columns.use.data[a:b])
