"""Branch-and-price trees in certificates: the branching decisions, and the prices that bound each leaf."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.models.engine.columns import Branch, Domain

LARGEST = 400
"""Largest number of leaves; larger trees are expanded by decreasing bound, and the remaining nodes become leaves."""


class Leaf(NamedTuple):
    """A leaf: its domain, the number of its price vector, and pairs ``(job, ends)`` of the ends excluded there."""

    domain: Domain
    prices: int
    cut: tuple[tuple[int, slice], ...]


@dataclass
class Tree:
    """A tree as a certificate stores it: nodes, price vectors, and the leaves to be bounded.

    A node branches on the end of a job (at most ``end``, or counted as later), or on how much of a row the job uses (at
    most ``most``, or more); ``then`` has the numbers of its two children. A node with ``prices`` is a leaf. Ends that
    reduced-cost fixing excludes are split off as a leaf, too.
    """

    nodes: list[dict[str, Any]] = field(default_factory=list)
    prices: list[Array] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    @staticmethod
    def of(root: Branch) -> Tree:
        """Return the tree below a root node of branch and price."""
        tree, numbers = Tree(), {}
        todo = [(-root.bound, tree.new(), root)]
        while todo:
            _, at, branch = heapq.heappop(todo)

            def number(prices: Array) -> int:
                if id(prices) not in numbers:
                    numbers[id(prices)] = len(tree.prices)
                    tree.prices.append(prices)
                return numbers[id(prices)]

            rest = branch.rest or branch.domain
            if not branch.parts or len(tree.leaves) + len(todo) >= LARGEST:
                tree.nodes[at] = {"prices": number(branch.prices)}
                tree.leaves.append(Leaf(branch.domain, number(branch.prices), ()))
                continue
            if branch.cut is not None:
                at = tree.cut(at, branch.domain, rest, number(branch.cut))
            if len(branch.parts) == 1:
                heapq.heappush(todo, (-branch.parts[0].bound, at, branch.parts[0]))
                continue
            tree.nodes[at], lower = split(rest, *(part.domain for part in branch.parts))
            first, second = branch.parts if lower == 0 else branch.parts[::-1]
            tree.nodes[at]["then"] = [tree.new(), tree.new()]
            for part, place in zip((first, second), tree.nodes[at]["then"], strict=True):
                heapq.heappush(todo, (-part.bound, place, part))
        return tree

    def new(self) -> int:
        """Add a node; return its number."""
        self.nodes.append({})
        return len(self.nodes) - 1

    def cut(self, at: int, domain: Domain, rest: Domain, prices: int) -> int:
        """Split off the ends of a domain that are not in `rest` as a leaf; return the node of `rest`."""
        ends = []
        for job in np.flatnonzero((domain.first != rest.first) | (domain.last != rest.last)).tolist():
            cuts = [(int(rest.first[job]) - 1, True)] if rest.first[job] > domain.first[job] else []
            cuts += [(int(rest.last[job]), False)] if rest.last[job] < domain.last[job] else []
            for end, keeps_late in cuts:
                off, kept = self.new(), self.new()
                self.nodes[at] = {"job": job, "end": end, "then": [off, kept] if keeps_late else [kept, off]}
                self.nodes[off] = {"prices": prices}
                ends.append((job, slice(0, end + 1) if keeps_late else slice(end + 1, None)))
                at = kept
        if ends:
            self.leaves.append(Leaf(domain, prices, tuple(ends)))
        return at


def split(domain: Domain, left: Domain, right: Domain) -> tuple[dict[str, Any], int]:
    """Return the decision that separates two children, and which child (0 or 1) has the earlier ends or uses less."""
    ends = np.flatnonzero(left.last != right.last)
    ends = ends if ends.size else np.flatnonzero(left.first != right.first)
    if ends.size:
        job = int(ends[0])
        lower = int(left.last[job] > right.last[job])
        return {"job": job, "end": int((left, right)[lower].last[job])}, lower
    ((job, row),) = {(use.block, use.row) for use in set(left.uses) ^ set(right.uses)}
    highs = [next(use.high for use in part.uses if (use.block, use.row) == (job, row)) for part in (left, right)]
    lower = int(highs[0] > highs[1])
    return {"job": job, "row": row, "most": int(highs[lower])}, lower
