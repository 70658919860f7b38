"""Branch and bound over domains: each node is solved by column generation from the columns of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array
from schedgap.models.columns.domain import FRACTION, Domain, children
from schedgap.models.columns.generation import Generated, GenerationOptions, Oracle, generate, lagrangian
from schedgap.models.columns.packing import Columns
from schedgap.models.solve import SolveOptions


@dataclass(eq=False)
class Branch:
    """What became of a domain, for the proof: the best prices there, and the parts that it was split into.

    At the prices `cut`, no solution of interest is in the `domain` and not in the `rest`, of which the parts are.
    """

    domain: Domain
    bound: float
    prices: Array
    cut: Array | None = None
    rest: Domain | None = None
    parts: tuple[Branch, ...] = ()

    def priced(self, found: Generated) -> None:
        """Take the prices of a relaxation of the domain, if they are better."""
        if found.bound < self.bound:
            self.bound, self.prices = found.bound, found.prices


@dataclass(frozen=True, eq=False)
class Node:
    """A domain that has not been looked at, a bound on its solutions, and its number: later ones are deeper."""

    bound: float
    number: int
    domain: Domain
    branch: Branch


Close = Callable[[Domain, Generated, float, bool], tuple[float, bool]]
"""``close(domain, generated, cutoff, last)`` lists all columns that solutions above the cutoff can have, and returns a
bound on these solutions, infinite where that takes too long, and whether one attains it. `last` says that there is no
other way."""


class Tree:
    """The open nodes, of which that with the largest bound is next; the newest one as long as no solution is known.

    Parameters
    ----------
    oracle
        Prices blocks within domains.
    root
        Outcome of column generation where nothing is decided.
    domain
        That domain.
    whole
        See :func:`schedgap.models.columns.domain.children`.
    solver
        Gap, seed and threads.
    close
        What is tried before a node is split.
    """

    def __init__(
        self, oracle: Oracle, root: Generated, domain: Domain, whole: bool, solver: SolveOptions, close: Close | None
    ) -> None:
        self.oracle, self.whole, self.solver, self.close, self.master = oracle, whole, solver, close, root.master
        self.root = Branch(domain, root.bound, root.prices)
        self.open, self.packing = [Node(root.bound, 0, domain, self.root)], domain.packing
        self.floor = max(domain.packing.floor, domain.least)
        self.settled = -np.inf
        self.nodes, self.made, self.pivots = 0, 1, root.pivots
        self.work = MASTER * root.pricings * domain.packing.blocks

    @property
    def bound(self) -> float:
        """No solution is worth more than this and the best known one; ``-inf`` where there is none."""
        return max(self.settled, max((node.bound for node in self.open), default=-np.inf))

    @property
    def done(self) -> bool:
        """Whether no node is open."""
        return not self.open

    @property
    def proof(self) -> Branch:
        """What became of the problem, whose packing has all covers; prices of branches are for the first ones."""
        return replace(self.root, domain=self.based(self.root.domain))

    def strengthen(self, time_limit_s: float | None) -> None:
        """Seek covers where nothing is decided, before anything is known; the first node then begins with them."""
        if self.packing.most is None:
            return
        found = self.relax(self.root.domain, self.root.prices, self.floor, 0.0, time_limit_s)
        self.root.priced(found)
        self.open = [Node(self.root.bound, 0, self.root.domain, self.root)]

    def explore(self, incumbent: float, time_limit_s: float | None) -> tuple[Generated, Columns] | None:
        """Settle or split one node; return its relaxation, and the columns of its solution if that is integral.

        Parameters
        ----------
        incumbent
            Value of the best solution known, ``-inf`` for none.
        time_limit_s
            Seconds it may take; a node that takes longer stays open.
        """
        known = np.isfinite(incumbent)
        node = max(self.open, key=lambda node: (node.bound if known else 0.0, node.number))
        self.open.remove(node)
        cutoff = incumbent + self.solver.rel_gap * abs(incumbent) if known else self.floor
        if known and node.bound <= cutoff:
            self.settle(node.bound)
            return None
        self.nodes += 1
        bound = node.bound
        for early in (EARLY if known else 0.0, 0.0):
            found = self.relax(node.domain, node.branch.prices, cutoff, early, time_limit_s)
            bound = min(bound, found.bound)
            node.branch.priced(found)
            if found.ended in ("infeasible", "cut off") or (known and bound <= cutoff):
                self.settle(bound if known else -np.inf)
                return None
            if found.ended == "time limit":
                self.open.append(Node(bound, node.number, node.domain, node.branch))
                return found, found.columns.take(np.zeros(0, np.int64))
            domain = self.tightened(self.based(node.domain), found, cutoff)
            node.branch.cut, node.branch.rest = found.prices, domain
            out = (found.x > FRACTION) & (domain.values(found.columns) == -np.inf)
            if out.any():
                node.branch.parts = (Branch(domain, bound, node.branch.prices),)
                self.open.append(Node(bound, node.number, domain, node.branch.parts[0]))
                return found, found.columns.take(np.zeros(0, np.int64))
            pair = None if found.ended == "error" else children(domain, found.columns, found.x, self.whole)
            if pair:
                break
        self.branch(node.branch, bound, found, cutoff, pair)
        # What counts as nothing in the domain is left out of it.
        counts = domain.must[found.columns.block] | (domain.values(found.columns) != 0)
        return found, found.columns.take((found.x > 0.5) & counts if pair is None else np.zeros(0, np.int64))

    def relax(
        self, domain: Domain, prices: Array, cutoff: float, early: float, time_limit_s: float | None
    ) -> Generated:
        """Solve the relaxation of a domain, with covers as long as they help.

        It goes on from the columns of all others, and from `prices` that are good somewhere near.
        """
        gap = min(self.solver.rel_gap / 10, CLOSE)
        began, before, left = clock.now(), np.inf, time_limit_s
        while True:
            # Covers that came later cost nothing at first.
            prices = np.pad(prices, (0, len(self.packing.limits) - len(prices)))
            options = GenerationOptions(gap=gap, cutoff=cutoff, early=early, time_limit_s=left, start=prices)
            found = generate(self.based(domain), self.oracle, options, self.solver, self.master)
            self.master, self.pivots = found.master, self.pivots + found.pivots
            self.work += MASTER * (found.pricings + 1) * domain.packing.blocks
            little = LITTLE * min(before - cutoff, FAR * abs(found.bound))
            ended = found.ended not in ("gap", "exhausted") or before - found.bound < little
            stronger = None if ended else self.packing.stronger(found.columns, found.x)
            if found.bound <= before:
                before, prices = found.bound, found.prices
            if stronger is None:
                # The last prices may be worse, where time is up.
                return replace(found, bound=before, prices=prices)
            self.packing = stronger
            left = None if time_limit_s is None else max(time_limit_s - (clock.now() - began), 0.1)

    def based(self, domain: Domain) -> Domain:
        """Return a domain with all covers that are known."""
        return replace(domain, packing=self.packing)

    def branch(
        self, branch: Branch, bound: float, found: Generated, cutoff: float, pair: tuple[Domain, Domain] | None
    ) -> None:
        """Settle a domain where all that matters can be listed, or nothing can be split; or split it."""
        domain, done = branch.rest or branch.domain, False
        if self.close:
            closed, done = self.close(domain, found, cutoff, pair is None)
            bound = min(bound, closed)
        if done or pair is None or bound <= cutoff:
            self.settle(bound)
        else:
            branch.parts = tuple(Branch(part, bound, branch.prices) for part in pair)
            self.open += [Node(bound, self.made - i, b.domain, b) for i, b in enumerate(branch.parts)]
            self.made += 2

    def tightened(self, domain: Domain, found: Generated, cutoff: float) -> Domain:
        """Return the domain without ends that no solution above the cutoff has, by the profits at the best prices."""
        priced = self.oracle(found.prices, domain)
        if priced.by_end is None:
            return domain
        most = np.where(domain.must, priced.most, np.maximum(priced.most, 0.0))
        bound = lagrangian(domain, found.prices, priced.most)
        return domain.within(priced.by_end, most - (bound - cutoff) - CLOSE * abs(bound))

    def settle(self, bound: float) -> None:
        """Close a node: what solutions it has are worth no more than this."""
        self.settled = max(self.settled, bound)


MASTER = 2
"""Work of a pricing with its master, where that of pricing one block is 1: the master takes about as long."""

LITTLE = 0.02
"""Part of a node's distance to the cutoff that covers must close for others to be sought."""

FAR = 0.005
"""Part of the bound that counts as that distance where it is larger, or not known yet."""

EARLY = 0.05
"""Part of a node's distance to the cutoff that its relaxation may be off before it is split."""

CLOSE = 1e-7
"""Part of the bound within which a node's bound and master must agree, and by which profits may be off."""
