"""Branch and bound over domains: each node is solved by column generation, from the columns of all nodes before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.models.engine.columns.domain import FRACTION, Domain, children
from schedgap.models.engine.columns.generation import Generated, GenerationOptions, Oracle, generate, lagrangian
from schedgap.models.engine.columns.packing import Columns
from schedgap.models.engine.solve import SolveOptions


@dataclass(eq=False)
class Branch:
    """A node of the tree, open or closed: its domain, the best bound and prices there, and its children `parts`.

    Nodes with a larger `number` are newer and, in the same subtree, deeper. At the prices `cut`, no solution above the
    cutoff lies in `domain` but outside `rest`, which the children partition.
    """

    domain: Domain
    bound: float
    prices: Array
    number: int = 0
    cut: Array | None = None
    rest: Domain | None = None
    parts: tuple[Branch, ...] = ()

    def priced(self, relaxation: Generated) -> None:
        """Keep the bound and prices of a relaxation of the domain if they are better."""
        if relaxation.bound < self.bound:
            self.bound, self.prices = relaxation.bound, relaxation.prices


Close = Callable[[Domain, Generated, float, bool], tuple[float, bool]]
"""``close(domain, generated, cutoff, last)`` enumerates all columns that solutions above the cutoff can contain. It
returns a bound on these solutions, infinite if there are too many columns, and whether a solution attains the bound.
`last` says that the node cannot be branched on."""


class BranchAndPrice:
    """Branch and price: explores the open node with the best bound, or the newest one while there is no incumbent.

    Parameters
    ----------
    oracle
        Prices blocks within domains.
    root
        Outcome of column generation at the root.
    domain
        The root's domain, without any decision.
    whole
        See :func:`schedgap.models.engine.columns.domain.children`.
    solver
        Gap, seed and threads.
    close
        Enumeration to try before a node is split.
    """

    def __init__(
        self, oracle: Oracle, root: Generated, domain: Domain, whole: bool, solver: SolveOptions, close: Close | None
    ) -> None:
        self.oracle, self.whole, self.solver, self.close, self.master = oracle, whole, solver, close, root.master
        self.root = Branch(domain, root.bound, root.prices)
        self.open, self.packing = [self.root], domain.packing
        self.floor = max(domain.packing.floor, domain.least)
        self.settled = -np.inf
        self.nodes, self.made, self.pivots = 0, 1, root.pivots
        self.work = MASTER * root.pricings * domain.packing.blocks
        self.vain, self.again = 0, 0
        self.listed: list[tuple[Branch, tuple[Domain, Domain]]] = []

    @property
    def bound(self) -> float:
        """Global bound: every solution is worth at most this or the incumbent; ``-inf`` if no node can have one."""
        return max(self.settled, max((node.bound for node in self.open), default=-np.inf))

    @property
    def done(self) -> bool:
        """Whether no open node is left."""
        return not self.open

    @property
    def proof(self) -> Branch:
        """The root of the tree with all cuts found; a node's prices may lack those of cuts found after it."""
        return replace(self.root, domain=self.based(self.root.domain))

    def strengthen(self, time_limit_s: float | None) -> None:
        """Separate cuts at the root, before the search for incumbents; the root node then starts with them."""
        if self.packing.most is None:
            return
        self.root.priced(self.relax(self.root.domain, self.root.prices, self.floor, 0.0, time_limit_s))

    def explore(self, incumbent: float, time_limit_s: float | None) -> tuple[Generated, Columns] | None:
        """Settle or branch on one node; return its relaxation, and the columns of its optimum if that is integral.

        Parameters
        ----------
        incumbent
            Value of the incumbent, ``-inf`` without one.
        time_limit_s
            Time limit in seconds of computing; a node that reaches it stays open.
        """
        has_incumbent = np.isfinite(incumbent)
        node = max(self.open, key=lambda node: (node.bound if has_incumbent else 0.0, node.number))
        self.open.remove(node)
        cutoff = incumbent + self.solver.rel_gap * abs(incumbent) if has_incumbent else self.floor
        if has_incumbent and node.bound <= cutoff:
            self.settle(node.bound)
            return None
        self.nodes += 1
        for early in (EARLY if has_incumbent else 0.0, 0.0):
            relaxation = self.relax(node.domain, node.prices, cutoff, early, time_limit_s)
            node.priced(relaxation)
            if relaxation.ended in ("infeasible", "cut off") or (has_incumbent and node.bound <= cutoff):
                self.settle(node.bound if has_incumbent else -np.inf)
                return None
            columns, x = relaxation.columns, relaxation.x
            nothing = columns.take(np.zeros(0, np.int64))
            if relaxation.ended == "time limit":
                self.open.append(node)
                return relaxation, nothing
            domain = self.tightened(self.based(node.domain), relaxation, cutoff)
            node.cut, node.rest = relaxation.prices, domain
            if ((x > FRACTION) & (domain.values(columns) == -np.inf)).any():
                node.parts = (Branch(domain, node.bound, node.prices, node.number),)
                self.open += node.parts
                return relaxation, nothing
            pair = None if relaxation.ended == "error" else children(domain, columns, x, self.whole)
            if pair:
                break
        self.branch(node, relaxation, cutoff, pair)
        # Columns that are worth 0 in the domain are left out.
        counts = domain.must[columns.block] | (domain.values(columns) != 0)
        return relaxation, nothing if pair else columns.take((x > 0.5) & counts)

    def relax(
        self, domain: Domain, prices: Array, cutoff: float, early: float, time_limit_s: float | None
    ) -> Generated:
        """Solve the relaxation of a domain, adding cuts as long as these lower the bound enough.

        Column generation starts from the columns of all nodes so far, and from the `prices` of a nearby domain.
        """
        gap = min(self.solver.rel_gap / 10, CLOSE)
        budget, before, left = clock.Budget(time_limit_s), np.inf, time_limit_s
        while True:
            # Cuts added since then have price 0 at first.
            prices = np.pad(prices, (0, len(self.packing.limits) - len(prices)))
            options = GenerationOptions(gap=gap, cutoff=cutoff, early=early, time_limit_s=left, start=prices)
            relaxation = generate(self.based(domain), self.oracle, options, self.solver, self.master)
            self.master, self.pivots = relaxation.master, self.pivots + relaxation.pivots
            self.work += MASTER * (relaxation.pricings + 1) * domain.packing.blocks
            gained, little = before - relaxation.bound, LITTLE * min(before - cutoff, FAR * abs(relaxation.bound))
            ended = relaxation.ended not in ("gap", "exhausted") or gained < little or self.nodes < self.again
            stronger = None if ended else self.packing.stronger(relaxation.columns, relaxation.x, budget)
            # Where cuts have gained little, they are not tried at the next nodes: at 1, 2, 4, … of them.
            if gained < little or (stronger is None and not ended):
                self.vain += 1
                self.again = self.nodes + 2**self.vain
            elif np.isfinite(gained):
                self.vain = 0
            if relaxation.bound <= before:
                before, prices = relaxation.bound, relaxation.prices
            if stronger is None:
                # If time ran out, the last prices may be worse than earlier ones.
                return replace(relaxation, bound=before, prices=prices)
            self.work += CUT * (len(stronger.cuts) - len(self.packing.cuts))
            self.packing = stronger
            left = None if time_limit_s is None else max(budget.left_s, 0.1)

    def based(self, domain: Domain) -> Domain:
        """Return the same domain with all cuts found so far."""
        return replace(domain, packing=self.packing)

    def branch(self, node: Branch, relaxation: Generated, cutoff: float, pair: tuple[Domain, Domain] | None) -> None:
        """Close a node if enumeration settles it or it cannot be split; otherwise open its children."""
        bound, done = node.bound, False
        if self.close:
            closed, done = self.close(node.rest or node.domain, relaxation, cutoff, pair is None)
            bound = min(bound, closed)
        if done or pair is None or bound <= cutoff:
            self.settle(bound)
            self.listed += [(node, pair)] if pair else []
        else:
            self.split(node, pair, bound)

    def split(self, node: Branch, pair: tuple[Domain, Domain], bound: float) -> None:
        """Open the children of a node, in which solutions are worth at most `bound`."""
        node.parts = tuple(Branch(part, bound, node.prices, self.made - i) for i, part in enumerate(pair))
        self.open += node.parts
        self.made += 2

    def prove(self, incumbent: float, time_limit_s: float | None) -> None:
        """Branch on nodes that only enumeration has closed, so that prices of :attr:`proof` prove what it found.

        At most :data:`PROVING` nodes are solved, which do not count as nodes of the search; what remains open then is
        proved by prices of the nodes above. The search is over after this, and its bound has to be read before.
        """
        self.close, budget = None, clock.Budget(time_limit_s)
        for node, pair in self.listed:
            self.split(node, pair, node.bound)
        searched = self.nodes
        while self.open and self.nodes < searched + PROVING and budget.left_s > 0:
            self.explore(incumbent, None if time_limit_s is None else max(budget.left_s, 0.1))
        self.nodes = searched

    def tightened(self, domain: Domain, relaxation: Generated, cutoff: float) -> Domain:
        """Return the domain without the ends that reduced-cost fixing excludes for all solutions above the cutoff."""
        priced = self.oracle(relaxation.prices, domain)
        if priced.by_end is None:
            return domain
        most = np.where(domain.must, priced.most, np.maximum(priced.most, 0.0))
        bound = lagrangian(domain, relaxation.prices, priced.most)
        return domain.within(priced.by_end, most - (bound - cutoff) - CLOSE * abs(bound))

    def settle(self, bound: float) -> None:
        """Close a node whose solutions are worth at most `bound`."""
        self.settled = max(self.settled, bound)


PROVING = 400
"""Most nodes that are solved to prove by prices what enumeration has closed."""

MASTER = 2
"""Work of a round of column generation per block. Pricing a block counts 1, and solving the master takes as long."""

CUT = 3
"""Work of finding a cut: as long as pricing so many blocks takes to separate a knapsack cut."""

LITTLE = 0.02
"""Part of the distance between a node's bound and the cutoff that a round of cuts must close, or it is the last."""

FAR = 0.005
"""The distance between bound and cutoff counts as at most this fraction of the bound, also if there is no cutoff."""

EARLY = 0.05
"""Branching may begin once a node's bound and master differ by this fraction of the bound's distance to the cutoff."""

CLOSE = 1e-7
"""Relative gap between bound and master at which a node's relaxation is solved; also the tolerance on profits."""
