"""The complete branch-and-price solve within one time limit: root bound, dive, branching, and primal heuristics.

Time limits are in seconds of computing (:class:`schedgap.instances.clock.Budget`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.models.engine.columns.branching import Branch, BranchAndPrice, Close
from schedgap.models.engine.columns.diving import Dive
from schedgap.models.engine.columns.domain import Domain
from schedgap.models.engine.columns.generation import Generated, GenerationOptions, Oracle, generate
from schedgap.models.engine.columns.integer import Packed, Packer, PackingOptions, Start, liked
from schedgap.models.engine.columns.master import Master
from schedgap.models.engine.columns.packing import Columns, Packing, statement
from schedgap.models.engine.solve import Seed, Solution, SolveOptions, Status, TracePoint, build, cross_check


@dataclass(frozen=True, eq=False)
class PackingAnswer:
    """Result of a branch-and-price solve.

    Attributes
    ----------
    solution
        Status, bound and objective.
    generated
        Outcome of column generation at the root.
    packed
        The best solution found; ``None`` if column generation failed or proved infeasibility.
    seed
        The known decision that is the incumbent, if nothing better was found.
    root
        Root of the branch-and-bound tree.
    """

    solution: Solution
    generated: Generated
    packed: Packed | None
    seed: Seed | None = None
    root: Branch | None = None

    def decision(self, decode: Callable[[Packed], Any]) -> Any:
        """Return the incumbent as a decision of the paper; ``None`` without an incumbent."""
        if self.seed:
            return self.seed.decision
        return decode(self.packed) if self.packed and self.solution.objective is not None else None


@dataclass(frozen=True, eq=False)
class PackingProblem:
    """A packing problem and the components that a paper supplies to solve it, such as its pricing.

    Attributes
    ----------
    packing, oracle
        The problem whose relaxation is solved, and its pricing.
    packer
        ``packer(bound, prices, effort)`` builds the primal heuristic from a bound and its prices. Its capacities may be
        finer than those of `packing`: servers instead of classes of servers.
    effort
        Options of the primal heuristic, except time limit and seed, which are those of the solve.
    read
        ``read(decision)`` returns the columns of a known decision.
    share, near
        Fraction of the time limit available for the root bound, and a gap at which the root bound is good enough.
    whole
        Whether integral optima of the relaxation are solutions of the problem, and the pricing respects branching on
        the use of rows; dives then end in solutions.
    close
        Builds the enumeration of all relevant columns of a domain, if the paper has one.
    sense
        1 if values are maximised; −1 if they are the negatives of costs, and the solution is stated in costs.
    scarcer
        Fractions of the capacities for which relaxations guide the list heuristics, too, where servers are coarse: what
        fits on servers that are filled up one run after another is less than all capacity. There, the packer also
        changes the best list (:meth:`.Packer.arrange`).
    otherwise
        ``otherwise(seconds)`` proves a bound without column generation, where that would take too long; there is then
        no branching, and time or the number of nodes must be limited.
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
    scarcer: tuple[float, ...] = ()
    otherwise: Callable[[float | None], Generated] | None = None


def solve_in_phases(
    problem: PackingProblem, options: SolveOptions, built_s: float = 0.0, seeded: bool = True
) -> PackingAnswer:
    """Solve a packing problem by branch and price with primal heuristics.

    Column generation at the root comes first, then list heuristics or a dive, and cuts. Branch and bound follows, best
    bound first. It branches on when blocks end and on how much they use of a capacity, and solves each node by column
    generation, with the columns and cuts of all nodes before. As much work goes into ruin and recreate, which starts
    from known decisions and from the relaxations of the nodes. Both end when the gap is closed or a limit is reached.

    Parameters
    ----------
    problem
        The packing problem.
    options
        Limits, gap, seed, cross-check, known decisions.
    built_s
        Seconds of the wall clock that were spent on building, for the times of the answer.
    seeded
        Whether to start from the known decisions.
    """
    return _Solve(problem, options, built_s, seeded).run()


class _Solve:
    """State of one solve: its clock, its trace, and the known decisions."""

    def __init__(self, problem: PackingProblem, options: SolveOptions, built_s: float, seeded: bool) -> None:
        self.problem, self.options, self.built_s = problem, options, built_s
        self.budget = clock.Budget(options.time_limit_s)
        best_first = sorted(options.seeds, key=lambda seed: problem.sense * seed.objective, reverse=True)
        self.seeds = best_first if seeded else []
        self.starts = [problem.read(seed.decision) for seed in self.seeds]
        self.trace = [self.point(self.seeds[0].objective * problem.sense, None)] if self.seeds else []
        self.domain = Domain.of(problem.packing)
        # Columns of known decisions do not help the master: on ``gen/hadar-480``, where each has thousands of slots, it
        # is then not solved in a minute, and pricing finds better ones.
        # A bound that may be as far off as the whole gap would leave nothing of it to the schedule.
        near = max(options.rel_gap / 10, min(options.rel_gap, SolveOptions.rel_gap), problem.near)
        first = GenerationOptions(gap=near, time_limit_s=self.left(problem.share))
        spent_s = self.budget.wall_s
        self.generated = (
            problem.otherwise(self.left(problem.share))
            if problem.otherwise
            else generate(self.domain, problem.oracle, first, options)
        )
        self.trace += [self.point(None, p.bound, p.time_s + spent_s) for p in self.generated.trace]

    def run(self) -> PackingAnswer:
        """Separate cuts, dive, then branch and anneal in turns until no node is open or a limit is reached."""
        if self.generated.ended in ("infeasible", "error"):
            return self.answer(self.generated.bound, None, None, "")
        problem = self.problem
        effort = replace(problem.effort, time_limit_s=self.left(), seed=self.options.seed)
        began = self.budget.wall_s
        packer = problem.packer(self.generated.bound, self.generated.prices, effort)
        close = problem.close(packer) if problem.close else None
        tree = BranchAndPrice(problem.oracle, self.generated, self.domain, problem.whole, self.options, close)
        for known in self.starts:
            packer.offer(known)
        if problem.whole:
            packer.offer(self.started(self.generated))
        else:
            packer.follow(self.ends(self.generated))
            self.guide(packer)
            if problem.scarcer and self.apart(packer):
                packer.arrange(self.left(ARRANGING))
        if self.generated.master and not problem.otherwise and not self.closed(tree, packer):
            # Cuts count towards the first node; they are useless while the prices have not converged.
            if self.options.nodes != 0 and self.generated.ended != "time limit":
                tree.strengthen(self.left(COVERING))
                self.note(tree, packer)
            if problem.whole:
                self.dive(packer, tree)
        why = self.search(packer, tree)
        self.trace += [self.point(p.incumbent, None, p.time_s + began) for p in packer.trace]
        bound = max(tree.bound, self.incumbent(packer))
        if tree.listed and self.closed(tree, packer) and np.isfinite(self.incumbent(packer)):
            tree.prove(self.incumbent(packer), self.left())
        return self.answer(bound, packer.packed, tree, why)

    def search(self, packer: Packer, tree: BranchAndPrice) -> str:
        """Anneal and branch in turns, with the same work for both; return the reason why the search ended."""
        rounds = 0
        while not tree.done:
            incumbent = self.incumbent(packer)
            if self.closed(tree, packer):
                return "the bound is reached"
            if packer.late() and not self.extended(packer, tree):
                return LATE
            if self.options.nodes is not None and max(tree.nodes, rounds) >= self.options.nodes:
                return "the node limit is reached"
            if self.problem.otherwise:
                packer.anneal()
                rounds += 1
            elif packer.work <= tree.work:
                packer.anneal()
            elif (outcome := tree.explore(incumbent, self.left(NODE))) is not None:
                self.learn(packer, *outcome)
                self.note(tree, packer)
        return "no node is open"

    def extended(self, packer: Packer, tree: BranchAndPrice) -> bool:
        """Ask ``options.more`` whether the search may go on after its time limit, and extend its budget if so."""
        value, more = self.incumbent(packer), self.options.more
        gap = relative_gap(tree.bound, value)
        if more is None or gap <= self.options.enough or (seconds := more(gap)) <= 0:
            return False
        self.options = replace(self.options, rel_gap=max(self.options.rel_gap, self.options.enough))
        self.budget.extend(seconds)
        packer.extend(seconds)
        return True

    def closed(self, tree: BranchAndPrice, packer: Packer) -> bool:
        """Return whether the incumbent is within the relative gap of the bound."""
        incumbent = self.incumbent(packer)
        return tree.bound <= incumbent + self.options.rel_gap * abs(incumbent)

    def dive(self, packer: Packer, tree: BranchAndPrice) -> None:
        """Dive from the root node, with its cuts, and let the packer improve the solution that is found."""
        budget, master = clock.Budget(self.left(DIVING)), tree.master
        assert master is not None
        columns = Dive(self.problem.oracle, tree.based(self.domain), master, budget).run()
        packer.offer(liked(columns, np.ones(len(columns)), len(packer.packing.capacity)))

    def learn(self, packer: Packer, relaxation: Generated, whole: Columns) -> None:
        """Offer the packer a node's integral solution or, between two annealings, its rounded relaxation."""
        if self.problem.whole and len(whole):
            packer.offer(liked(whole, np.ones(len(whole)), len(packer.packing.capacity)))
        elif self.problem.whole and not packer.cycle > packer.done > 0:
            packer.offer(self.started(relaxation))

    def started(self, relaxation: Generated) -> Start:
        """Return the rounded optimum of a relaxation."""
        return liked(relaxation.columns, relaxation.x, len(self.problem.packing.capacity))

    def guide(self, packer: Packer) -> None:
        """Let the packer follow relaxations with scarcer capacities if it is far from the bound; keep the best prices.

        Prices of all capacity are too low for schedules that cannot use all of it, and vanish while these still wait.
        """
        prices, gap = self.generated.prices, GenerationOptions(gap=max(self.problem.near, ROUGH))
        for share in self.problem.scarcer:
            if not self.apart(packer) or packer.late():
                return
            packing = replace(self.problem.packing, capacity=share * self.problem.packing.capacity)
            limits = replace(gap, time_limit_s=self.left(GUIDING))
            found = generate(Domain.of(packing), self.problem.oracle, limits, self.options)
            if found.ended not in ("gap", "exhausted"):
                return
            best = packer.top
            packer.guided(found.prices)
            packer.follow(self.ends(found))
            if packer.top == best:
                packer.guided(prices)
            else:
                prices = found.prices

    def apart(self, packer: Packer) -> bool:
        """Return whether the incumbent is far from the bound."""
        return relative_gap(self.generated.bound, self.incumbent(packer)) > APART

    def ends(self, relaxation: Generated) -> Array:
        """Return ``(b,)`` the mean end of each block in a relaxation."""
        columns = relaxation.columns
        ends = np.bincount(columns.block, columns.end * relaxation.x, self.problem.packing.blocks)
        return np.asarray(ends, float)

    def incumbent(self, packer: Packer) -> float:
        """Return the value of the incumbent, ``-inf`` without one."""
        return max(self.known, packer.incumbent)

    @property
    def known(self) -> float:
        """Value of the best known decision, ``-inf`` without one."""
        return self.problem.sense * self.seeds[0].objective if self.seeds else -np.inf

    def note(self, tree: BranchAndPrice, packer: Packer) -> None:
        """Append the bound to the trace if it has improved."""
        bound = self.problem.sense * max(tree.bound, self.incumbent(packer))
        bounds = [point.bound for point in self.trace if point.bound is not None]
        if np.isfinite(bound) and (not bounds or self.problem.sense * (bounds[-1] - bound) > 0):
            self.trace.append(self.point(None, self.problem.sense * bound))

    def left(self, share: float = 1.0) -> float | None:
        """Return a share of the remaining seconds of computing, at least 0.1; ``None`` without a limit."""
        return None if self.options.time_limit_s is None else max(share * self.budget.left_s, 0.1)

    def point(self, incumbent: float | None, bound: float | None, time_s: float | None = None) -> TracePoint:
        """Return a point of the trace, in the problem's own sense; its time is the present one by default."""
        seconds = self.budget.wall_s if time_s is None else time_s
        values = (None if value is None else self.problem.sense * value for value in (incumbent, bound))
        return TracePoint(self.built_s + seconds, *values)

    def answer(self, bound: float, packed: Packed | None, tree: BranchAndPrice | None, why: str) -> PackingAnswer:
        """Return the answer with times, trace and cross-check."""
        value = -np.inf if packed is None or packed.missing else packed.value
        seed = self.seeds[0] if self.known > value else None
        message = ""
        if tree and packed:
            message = f"{why} after {tree.nodes} nodes and {packed.moves} moves of ruin and recreate"
            message += f" from {len(self.seeds)} known decisions"
        solution = self.stated(bound, max(value, self.known), tree, why, message)
        times = replace(
            self.generated.times,
            build_s=self.built_s,
            solve_s=self.budget.wall_s - self.generated.times.transfer_s,
        )
        trace = tuple(sorted(self.trace, key=lambda point: point.time_s))
        generated, second = self.generated, None
        if self.options.cross_check and generated.master is not None and generated.ended != "error":
            # Compare the master's LP, with rows of all capacities, with CBC on its statement in Pyomo.
            master = Master(self.domain, generated.columns, self.options)
            master.move(self.domain)
            optimum = Solution(status="optimal", termination="master", objective=master.solve().value)
            model = build(statement, self.domain.packing, generated.columns)
            second = cross_check(model, optimum, self.options)
        solution = replace(solution, times=times, trace=trace, cross_check=second)
        return PackingAnswer(solution, self.generated, packed, seed, None if tree is None else tree.proof)

    def stated(self, bound: float, value: float, tree: BranchAndPrice | None, why: str, message: str) -> Solution:
        """Return the solution with the status that bound and incumbent imply."""
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
            return replace(solution, status=status, solution_status=f"no schedule found for all jobs; {message}")
        closed = relative_gap(bound, value) <= min(self.options.rel_gap, SolveOptions.rel_gap)
        status = "optimal" if closed else "time limit with incumbent" if late else "gap left"
        solution = replace(solution, status=status, solution_status=message)
        return replace(solution, objective=sense * value, column_values=np.ones(1))


def relative_gap(bound: float, value: float) -> float:
    """Return how far a bound is above a value, as a fraction of the value; infinite if the value is infinite."""
    return (bound - value) / max(abs(value), SMALL) if math.isfinite(value) else math.inf


COVERING = 0.1
"""Fraction of the time remaining after the root bound that the separation of cuts at the root may take."""

ROUGH, GUIDING = 1e-3, 0.2
"""Gap of a relaxation with scarcer capacity, and the fraction of the remaining time that it may take."""

APART = 0.05
"""Gap after list heuristics above which relaxations with scarcer capacities are tried, and then changed lists."""

ARRANGING = 0.7
"""Fraction of the remaining time that changes of the best list may take."""

NODE = 0.3
"""Fraction of the remaining time that a node may take before the schedule has a turn; the node goes on after that."""

DIVING = 0.3
"""Fraction of the time remaining after the cuts that the dive may take."""

SMALL = 1e-10
"""Least value by which gaps are divided."""

LATE = "the time limit is reached"
"""The reason that a search gives if it ended at its time limit."""
