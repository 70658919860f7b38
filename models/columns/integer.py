"""From the LP relaxation to an integer solution: greedy packing, ruin and recreate, the restricted master as MILP.

The search never ends by itself before a time limit: where ruin and recreate stalls, the restricted master over all
columns seen so far is solved as a MILP, and then the search goes on from a shaken solution.

**Proofs.** Let B be the Lagrangian bound at some prices, and V the value of the best solution known. A solution with
column c of block b is worth at most B less what c's profit is below b's largest one, so that only columns within B − V
of it can be part of a better one. Where a paper can list these (:data:`Within`) and they are few, the MILP over them
alone proves the optimum, or that there is no solution (Baldacci et al. 2008 call it column enumeration).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.models.columns.generation import Generated
from schedgap.models.columns.packing import Columns, Packing, statement
from schedgap.models.solve import Solution, SolveOptions, TracePoint, build, solve


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

Within = Callable[[float], list[tuple[int, Choice]] | None]
"""``within(slack)`` returns all columns whose profit is at most `slack` below the largest of their block, which is 0
where blocks may do without a column; ``None`` where they are too many to list."""


@dataclass(frozen=True)
class PackingOptions:
    """Options of the integer phase.

    Parameters
    ----------
    gap
        Relative distance to the bound at which it ends.
    moves, progress
        The search has stalled where so many ruin-and-recreate moves per block, and at least :data:`FEWEST_MOVES`, have
        gained less than this part of the value.
    patience
        Without a time limit it ends where it has stalled so often in a row.
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
    patience: int = 2
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
    bound
        What column generation proved, or better where the columns that matter were few enough to be listed; ``-inf``
        where that proved that there is no solution.
    moves
        Ruin-and-recreate moves made.
    why
        Why it ended.
    trace
        Incumbent over time.
    """

    columns: Columns
    value: float
    missing: int
    chosen: Mapping[int, Choice]
    bound: float
    moves: int
    why: str
    trace: tuple[TracePoint, ...] = field(default=())


def pack(
    packing: Packing,
    insert: Insert,
    generated: Generated,
    options: PackingOptions | None = None,
    solver: SolveOptions | None = None,
    starts: Sequence[Start] = (),
    within: Within | None = None,
) -> Packed:
    """Return an integer solution near the bound, at least as good as those it starts from.

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
    starts
        Known solutions.
    within
        Lists the columns that can be part of a better solution, where a paper can.
    """
    return _Packer(packing, insert, generated, options or PackingOptions(), solver or SolveOptions(), within).run(
        starts
    )


class _Packer:
    """The chosen columns by block, the capacity that is left, how both are improved, and the best that was found."""

    def __init__(
        self,
        packing: Packing,
        insert: Insert,
        generated: Generated,
        options: PackingOptions,
        solver: SolveOptions,
        within: Within | None,
    ) -> None:
        self.packing, self.insert, self.generated = packing, insert, generated
        self.options, self.solver, self.within = options, solver, within
        self.bound, self.prices = generated.bound, generated.prices
        # The same arrays again and again: who inserts may keep what it derives from them.
        self.scaled = [generated.prices if factor == 1.0 else generated.prices * factor for factor in NOISE]
        self.rng = np.random.default_rng(options.seed)
        self.began = clock.now()
        self.room = packing.capacity.astype(float)
        self.chosen: dict[int, Choice] = {}
        self.uses = np.zeros((packing.blocks, len(packing.capacity)), bool)
        # What each block would take if it were alone; where time is up, nobody asks.
        alone = packing.capacity.astype(float), generated.prices
        self.wishes = {b: None if self.late() else insert(b, *alone) for b in range(packing.blocks)}
        self.pool: dict[tuple[int, bytes, bytes], Choice] = {}
        self.asked, self.refused = 0, np.inf
        # Covering one more block outweighs all values.
        values = [abs(wish.value) for wish in self.wishes.values() if wish]
        self.reward = 2 * sum(values) + 1.0 if packing.cover else 0.0
        self.value = 0.0
        self.best: tuple[float, float, dict[int, Choice]] = (0.0, 0.0, {})
        self.moves = 0
        self.trace: list[TracePoint] = []

    def run(self, starts: Sequence[Start]) -> Packed:
        """Start from known solutions and from the LP, then search until the bound or a limit is reached."""
        for known in starts:
            self.load(known)
            self.note()
        self.start()
        for known in starts:
            self.load(known)
            self.fill()
        why = self.search()
        self.load(self.best[2])
        blocks = sorted(self.chosen)
        listed = [(b, (c := self.chosen[b]).value, c.rows, c.amounts) for b in blocks]
        columns = Columns.of(len(self.packing.capacity), listed)
        missing = self.packing.blocks - len(blocks) if self.packing.cover else 0
        value = float(columns.value.sum())
        return Packed(columns, value, missing, self.chosen, self.bound, self.moves, why, tuple(self.trace))

    def search(self) -> str:
        """Ruin and recreate; where that stalls, ask the MILP, and go on from a shaken solution. Say why it ended."""
        stalled = 0
        while not (self.reached() or self.late()):
            before = self.best[0]
            self.improve()
            if self.best[0] > before + self.options.progress * abs(self.best[1]):
                stalled = 0
                continue
            if not stalled:
                self.recombine()
                self.prove()
            stalled += 1
            if self.options.time_limit_s is None and stalled > self.options.patience:
                return "the search has stalled"
            self.load(self.best[2])
            if stalled % 2:
                self.shake()
        return "the bound is reached" if self.reached() else LATE

    def note(self) -> None:
        """Keep the solution if it is the best so far."""
        if not self.best[2] or self.score > self.best[0] + 1e-9 * abs(self.best[0]):
            self.best = self.score, self.value, dict(self.chosen)
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

    def load(self, known: Start) -> None:
        """Replace the chosen columns by these, as far as they fit."""
        for block in list(self.chosen):
            self.take(block)
        self.room, self.value = self.packing.capacity.astype(float), 0.0  # what rounding has left is gone
        for block, choice in known.items():
            if (self.room[choice.rows] >= choice.amounts).all():
                self.put(block, choice)
                self.remember(block, choice)

    def fill(self) -> None:
        """Insert the blocks that have no column, best first."""
        left = [b for b in range(self.packing.blocks) if b not in self.chosen]
        self.recreate(sorted(left, key=self.payoff, reverse=True), self.prices)
        self.note()

    def start(self) -> None:
        """Take the columns that the LP likes best as far as they fit, then insert what is left, best first."""
        shares, known = self.generated.x, self.generated.columns
        for column in range(len(known)):
            self.remember(int(known.block[column]), _choice(known, column))
        liked = [c for c in np.argsort(-shares, kind="stable").tolist() if shares[c] >= 0.5]
        self.load({int(known.block[c]): _choice(known, c) for c in reversed(liked)})
        self.fill()

    def remember(self, block: int, choice: Choice) -> None:
        """Keep a column for the MILP, unless there are too many for it anyway."""
        if len(self.pool) <= self.options.milp_columns:
            self.pool.setdefault((block, choice.rows.tobytes(), choice.amounts.tobytes()), choice)

    def payoff(self, block: int) -> float:
        """Return the payoff of a block's best column at the prices, on an empty cluster."""
        wish = self.wishes[block]
        return -np.inf if wish is None else wish.value - wish.cost(self.prices)

    def recreate(self, blocks: list[int], prices: Array) -> None:
        """Insert blocks one after another, as long as there is time."""
        for block in blocks:
            if self.late():
                return
            if choice := self.insert(block, self.room, prices):
                self.put(block, choice)
                self.remember(block, choice)

    def improve(self) -> None:
        """Ruin and recreate for a while."""
        for _ in range(max(FEWEST_MOVES, int(self.options.moves * self.packing.blocks))):
            if self.reached() or self.late():
                return
            self.moves += 1
            self.move()

    def move(self) -> None:
        """Take some blocks out and insert them anew; keep what is not worse."""
        removed = self.ruin()
        before = {b: choice for b in removed if (choice := self.take(b))}
        lost = sum(choice.value + self.reward for choice in before.values())
        self.recreate(removed, self.scaled[self.rng.integers(len(self.scaled))])
        gained = sum(self.chosen[b].value + self.reward for b in removed if b in self.chosen)
        if gained < lost:
            for b in removed:
                self.take(b)
            for b, choice in before.items():
                self.put(b, choice)
        elif gained > lost:
            self.note()

    def ruin(self) -> list[int]:
        """Choose the blocks of a move: a random one, then some of those in the way of its best column."""
        first = int(self.rng.integers(self.packing.blocks))
        wish = self.wishes[first]
        near = np.flatnonzero(self.uses[:, wish.rows].any(axis=1)) if wish else np.array(sorted(self.chosen), np.int64)
        near = self.rng.permutation(near[near != first])
        return [first, *near[: int(self.rng.integers(1, self.options.ruined))].tolist()]

    def shake(self) -> None:
        """Take out some or all blocks, and insert them in random order at randomly changed prices."""
        worth = abs(self.bound) / max(float(self.packing.capacity.sum()), 1e-10)
        random = self.rng.random((2, len(self.prices)))
        prices = self.prices * 2 * random[0] + worth * self.rng.random() * random[1]
        self.scaled = [*self.scaled[: len(NOISE)], prices]
        removed = self.rng.permutation(self.packing.blocks)
        removed = removed[: math.ceil(self.packing.blocks * self.rng.choice(SHAKEN))]
        for block in removed.tolist():
            self.take(block)
        self.recreate(removed.tolist(), prices)
        self.note()

    def feasible(self) -> bool:
        """Whether every block has a column that needs one."""
        return not self.packing.cover or len(self.chosen) == self.packing.blocks

    def solved(self) -> bool:
        """Whether the best solution covers every block that needs a column."""
        return not self.packing.cover or len(self.best[2]) == self.packing.blocks

    def reached(self) -> bool:
        """Whether the bound is reached, or proves that there is no solution."""
        met = self.solved() and self.best[1] >= self.bound - self.options.gap * abs(self.bound)
        return met or self.bound == -np.inf

    def late(self) -> bool:
        """Whether time is up."""
        return self.left(0.0) == 0.0

    def left(self, least: float) -> float | None:
        """Return the seconds that are left, at least so many; ``None`` for no limit."""
        limit = self.options.time_limit_s
        return None if limit is None else max(limit - (clock.now() - self.began), least)

    def recombine(self) -> None:
        """Choose among the columns seen so far, where they are few and have become more."""
        if self.asked < len(self.pool) <= self.options.milp_columns and not self.reached():
            self.asked = len(self.pool)
            self.choose([(block, choice) for (block, *_), choice in self.pool.items()], self.options.nodes)

    def prove(self) -> None:
        """Choose among all columns that can be part of a better solution, where they can be listed; tighten the bound.

        No solution but the best is worth more than the optimum over these. Where they were too many, it is tried again
        when the slack is half as large.
        """
        if self.within is None or self.reached() or self.late():
            return
        slack = self.bound - self.best[1] if self.solved() else np.inf
        if slack > self.refused / 2:
            return
        listed = self.within(slack)
        self.refused = slack
        if listed is None or sum(len(choice.rows) for _, choice in listed) > MOST_HELD:
            return
        solution = self.choose(listed, PROVING * self.options.nodes)
        most = -np.inf if solution is None or solution.status == "infeasible" else solution.bound
        if most is not None:
            self.bound = min(self.bound, max(most, self.best[1]) if self.solved() else most)

    def choose(self, listed: list[tuple[int, Choice]], nodes: int) -> Solution | None:
        """Solve the master over these columns and the best ones as a MILP; ``None`` if they leave blocks uncovered."""
        own = list(self.best[2].items())
        everything = [*own, *listed]
        if self.packing.cover and len({block for block, _ in everything}) < self.packing.blocks:
            return None
        columns = Columns.of(len(self.packing.capacity), [(b, c.value, c.rows, c.amounts) for b, c in everything])
        options = replace(
            self.solver,
            time_limit_s=self.left(0.1),
            nodes=nodes,
            cross_check=False,
            mip_start={f"x[{i}]": 1.0 for i in range(len(own))} if self.solved() else None,
        )
        solution = solve(build(statement, self.packing, columns, integer=True), options)
        if solution.objective is not None and solution.column_values is not None:
            values = solution.values
            picked = [i for i in range(len(columns)) if values.get(f"x[{i}]", 0.0) > 0.5]
            self.load({everything[i][0]: everything[i][1] for i in picked})
            self.note()
        return solution


FEWEST_MOVES = 500

MOST_HELD = 100_000
"""Nonzeros of columns up to which the MILP over them is tried as a proof: Pyomo takes seconds to build so many."""

PROVING = 10
"""Times as many nodes as the restricted master's that this MILP may take."""

LATE = "the time limit is reached"
"""Why a search ended that went on until its time limit."""

NOISE = (0.0, 0.3, 0.7, 1.0, 1.3)
"""Factors on the prices at which blocks are inserted anew: from greedy (0) to thrifty."""

SHAKEN = (0.05, 0.2, 0.5, 1.0)
"""Parts of the blocks that a shake takes out."""


def _choice(columns: Columns, index: int) -> Choice:
    a, b = columns.use.indptr[index], columns.use.indptr[index + 1]
    return Choice(float(columns.value[index]), columns.use.indices[a:b].astype(np.int64), columns.use.data[a:b])
