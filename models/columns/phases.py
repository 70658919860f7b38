"""All of it as one solve within one time limit: known decisions, a bound, branching, and a search for solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.models.columns.branching import Branch, Close, Tree
from schedgap.models.columns.diving import Dive
from schedgap.models.columns.domain import Domain
from schedgap.models.columns.generation import Generated, GenerationOptions, Oracle, generate
from schedgap.models.columns.integer import Packed, Packer, PackingOptions, Start, liked
from schedgap.models.columns.master import Master
from schedgap.models.columns.packing import Columns, Packing, statement
from schedgap.models.solve import Seed, Solution, SolveOptions, Status, TracePoint, build, cross_check


@dataclass(frozen=True, eq=False)
class Answer:
    """What the phases found.

    Attributes
    ----------
    solution
        What is certified.
    generated
        Outcome of column generation where nothing is decided.
    packed
        The incumbent; ``None`` where column generation ended without a bound to go by.
    seed
        The known decision that the incumbent is, where nothing better was found.
    root
        What became of the whole problem in branch and bound.
    """

    solution: Solution
    generated: Generated
    packed: Packed | None
    seed: Seed | None = None
    root: Branch | None = None

    def decision(self, decode: Callable[[Packed], Any]) -> Any:
        """Return the incumbent as a decision of the paper, ``None`` without one."""
        if self.seed:
            return self.seed.decision
        return decode(self.packed) if self.packed and self.solution.objective is not None else None


@dataclass(frozen=True, eq=False)
class PackingProblem:
    """A packing problem as a paper poses it.

    Attributes
    ----------
    packing, oracle
        The problem whose relaxation is solved, and its pricing.
    packer
        ``packer(bound, prices, effort)`` searches for solutions, whose rows may be finer, from a bound and its prices.
    effort
        Options of the search but for time limit and seed, which are the solver's.
    read
        ``read(decision)`` returns the columns of a known decision.
    share, near
        Share of the time limit that the first bound may take, and the gap at which it is good enough in any case.
    whole
        Whether a solution of the relaxation in whole columns is a solution, and branching on their use of rows is kept;
        then dives end in solutions.
    close
        Lists all columns that matter in a domain, where a paper can.
    sense
        1 where values are maximised; −1 where they are the negatives of costs, in which the solution then is.
    otherwise
        ``otherwise(seconds)`` proves a bound on it in another way than column generation, where that takes too long:
        then nobody branches, and time must be limited.
    """

    packing: Packing
    oracle: Oracle
    packer: Callable[[float, Array, PackingOptions], Packer]
    effort: PackingOptions
    read: Callable[[Any], Start]
    share: float
    near: float = 0.0
    whole: bool = True
    close: Callable[[Packer], Close] | None = None
    sense: int = 1
    otherwise: Callable[[float | None], Generated] | None = None


def solve_in_phases(
    problem: PackingProblem, options: SolveOptions, built_s: float = 0.0, seeded: bool = True
) -> Answer:
    """Bound a packing problem, branch and search, and say what that proves.

    Column generation comes first, and a dive from its prices; then branch and bound by when blocks end and what they
    take, the largest bound first, each node solved by column generation with the columns and covers of the others, and
    with as much work ruin and recreate from the known decisions and from the relaxations of the nodes, until bound or a
    limit is reached.

    Parameters
    ----------
    problem
        What is packed.
    options
        Limits, gap, seed, second opinion, known decisions.
    built_s
        Seconds that building took.
    seeded
        Whether it starts from known decisions.
    """
    return _Solve(problem, options, built_s, seeded).run()


class _Solve:
    """One solve: its clock, its trace, and the best known solution."""

    def __init__(self, problem: PackingProblem, options: SolveOptions, built_s: float, seeded: bool) -> None:
        self.problem, self.options, self.built_s = problem, options, built_s
        self.began = clock.now()
        best_first = sorted(options.seeds, key=lambda seed: problem.sense * seed.objective, reverse=True)
        self.seeds = best_first if seeded else []
        self.starts = [problem.read(seed.decision) for seed in self.seeds]
        self.trace = [self.point(self.seeds[0].objective * problem.sense, None)] if self.seeds else []
        self.domain = Domain.of(problem.packing)
        # Columns of known decisions are no gain for the master: on ``gen/hadar-480``, with thousands of slots each, it
        # is not solved in a minute, and prices find better ones.
        near = max(options.rel_gap, problem.near)
        first = GenerationOptions(gap=near, time_limit_s=self.left(problem.share))
        spent_s = clock.now() - self.began
        self.generated = (
            problem.otherwise(self.left(problem.share))
            if problem.otherwise
            else generate(self.domain, problem.oracle, first, options)
        )
        self.trace += [self.point(None, p.bound, p.time_s + spent_s) for p in self.generated.trace]

    def run(self) -> Answer:
        """Branch and search for solutions in turns, until nothing is open or a limit is reached."""
        if self.generated.ended in ("infeasible", "error"):
            return self.answer(self.generated.bound, None, None, "")
        problem = self.problem
        effort = replace(problem.effort, time_limit_s=self.left(), seed=self.options.seed)
        began = clock.now() - self.began
        packer = problem.packer(self.generated.bound, self.generated.prices, effort)
        close = problem.close(packer) if problem.close else None
        tree = Tree(problem.oracle, self.generated, self.domain, problem.whole, self.options, close)
        for known in self.starts:
            packer.offer(known)
        if problem.whole:
            packer.offer(self.started(self.generated))
        else:
            packer.follow(self.ends())
        if self.generated.master and not problem.otherwise and not self.closed(tree, packer):
            # Covers belong to the first node, and of prices that have not settled they say nothing.
            if self.options.nodes != 0 and self.generated.ended != "time limit":
                tree.strengthen(self.left(COVERING))
                self.note(tree, packer)
            if problem.whole:
                self.dive(packer, tree)
        why = self.search(packer, tree)
        self.trace += [self.point(p.incumbent, None, p.time_s + began) for p in packer.trace]
        bound = max(tree.bound, self.incumbent(packer))
        return self.answer(bound, packer.packed, tree, why)

    def search(self, packer: Packer, tree: Tree) -> str:
        """Improve and branch in turns; say why it ended."""
        while not tree.done:
            incumbent = self.incumbent(packer)
            if self.closed(tree, packer):
                return "the bound is reached"
            if packer.late():
                return LATE
            if self.options.nodes is not None and tree.nodes >= self.options.nodes:
                return "the limit of nodes is reached"
            if packer.work <= tree.work or self.problem.otherwise:
                packer.anneal()
            elif (outcome := tree.explore(incumbent, self.left())) is not None:
                self.learn(packer, *outcome)
                self.note(tree, packer)
        return "no node is open"

    def closed(self, tree: Tree, packer: Packer) -> bool:
        """Whether the bound is reached."""
        incumbent = self.incumbent(packer)
        return tree.bound <= incumbent + self.options.rel_gap * abs(incumbent)

    def dive(self, packer: Packer, tree: Tree) -> None:
        """Take a solution that column generation with covers leads to as the start of the search."""
        until, master = clock.now() + (self.left(DIVING) or np.inf), tree.master
        assert master is not None
        found = Dive(self.problem.oracle, tree.based(self.domain), master, until).run()
        packer.offer(liked(found, np.ones(len(found)), len(packer.packing.capacity)))

    def learn(self, packer: Packer, found: Generated, whole: Columns) -> None:
        """Take a node's solution if that is integral, or what there is of it, as a start."""
        if self.problem.whole and len(whole):
            packer.offer(liked(whole, np.ones(len(whole)), len(packer.packing.capacity)))
        elif self.problem.whole and not packer.cycle > packer.done > 0:
            packer.offer(self.started(found))

    def started(self, found: Generated) -> Start:
        """Return what the optimum of a relaxation says about solutions."""
        return liked(found.columns, found.x, len(self.problem.packing.capacity))

    def ends(self) -> Array:
        """Return ``(b,)`` the mean end of each block in the first relaxation."""
        columns = self.generated.columns
        ends = np.bincount(columns.block, columns.end * self.generated.x, self.problem.packing.blocks)
        return np.asarray(ends, float)

    def incumbent(self, packer: Packer) -> float:
        """Return the value of the best solution known, ``-inf`` without any."""
        return max(self.known, packer.incumbent)

    @property
    def known(self) -> float:
        """Value of the best known decision, ``-inf`` without any."""
        return self.problem.sense * self.seeds[0].objective if self.seeds else -np.inf

    def note(self, tree: Tree, packer: Packer) -> None:
        """Keep the bound in the trace, if it is better."""
        bound = self.problem.sense * max(tree.bound, self.incumbent(packer))
        known = [point.bound for point in self.trace if point.bound is not None]
        if np.isfinite(bound) and (not known or self.problem.sense * (known[-1] - bound) > 0):
            self.trace.append(self.point(None, self.problem.sense * bound))

    def left(self, share: float = 1.0) -> float | None:
        """Return a share of the seconds that are left."""
        limit = self.options.time_limit_s
        return None if limit is None else max(share * (limit - self.built_s - (clock.now() - self.began)), 0.1)

    def point(self, incumbent: float | None, bound: float | None, time_s: float | None = None) -> TracePoint:
        """Return values as a point of the trace, now by default, in the problem's own sense."""
        seconds = clock.now() - self.began if time_s is None else time_s
        values = (None if value is None else self.problem.sense * value for value in (incumbent, bound))
        return TracePoint(self.built_s + seconds, *values)

    def answer(self, bound: float, packed: Packed | None, tree: Tree | None, why: str) -> Answer:
        """Return what was found, with times and trace."""
        value = -np.inf if packed is None or packed.missing else packed.value
        seed = self.seeds[0] if self.known > value else None
        told = (
            f"{why} after {tree.nodes} nodes and {packed.moves} moves of ruin and recreate" if tree and packed else ""
        )
        told += f" from {len(self.seeds)} known decisions" if told else ""
        solution = self.stated(bound, max(value, self.known), tree, why, told)
        times = replace(
            self.generated.times,
            build_s=self.built_s,
            solve_s=clock.now() - self.began - self.generated.times.transfer_s,
        )
        trace = tuple(sorted(self.trace, key=lambda point: point.time_s))
        generated, second = self.generated, None
        if self.options.cross_check and generated.master is not None and generated.ended != "error":
            # The master's LP, with rows of all capacities, beside CBC on its statement in Pyomo.
            master = Master(self.domain, generated.columns, self.options)
            master.move(self.domain)
            known = Solution(status="optimal", termination="master", objective=master.solve().value)
            model = build(statement, self.domain.packing, generated.columns)
            second = cross_check(model, known, self.options)
        solution = replace(solution, times=times, trace=trace, cross_check=second)
        return Answer(solution, self.generated, packed, seed, None if tree is None else tree.proof)

    def stated(self, bound: float, value: float, tree: Tree | None, why: str, told: str) -> Solution:
        """Return what bound and incumbent prove."""
        root, sense = self.generated, self.problem.sense
        infeasible = root.ended == "infeasible" or bound == -np.inf
        solution = replace(
            root.solution(sense),
            bound=sense * bound if np.isfinite(bound) and not infeasible else None,
            nodes=0 if tree is None else tree.nodes,
            iterations=root.pivots if tree is None else tree.pivots,
        )
        if tree is None or infeasible:
            return replace(solution, status="infeasible" if infeasible else "error")
        late = why == LATE
        if value == -np.inf:
            status: Status = "time limit without incumbent" if late else "gap left"
            return replace(solution, status=status, solution_status=f"no schedule found for all jobs; {told}")
        closed = (bound - value) / max(abs(value), 1e-10) <= self.options.rel_gap
        status = "optimal" if closed else "time limit with incumbent" if late else "gap left"
        return replace(solution, status=status, solution_status=told, objective=sense * value, column_values=np.ones(1))


COVERING = 0.1
"""Share of the time that is left after the first bound in which covers are sought before anything is decided.

On ``gen/200jobs`` (utility) 227 of them lower the bound from 3159.1 to 3158.0 in 4 s, and raise the dive from 3149.0 to
3151.2; on ``gen/50jobs`` bounds are 504.9 and 503.8.
"""

DIVING = 0.3
"""Share of the time that is left then that the dive may take."""

LATE = "the time limit is reached"
"""Why a search ended that went on until its time limit."""
