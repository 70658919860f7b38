"""Trees of branch and price: which decisions split a problem, and the prices that bound each part."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.models.columns import Branch, Domain

LARGEST = 400
"""Leaves of trees that are kept; of larger ones, the parts with the largest bounds are split, and others are leaves."""


class Leaf(NamedTuple):
    """A part of the problem, which set of prices bounds it, and the ends that were cut off there, ``(job, ends)``."""

    domain: Domain
    prices: int
    cut: tuple[tuple[int, slice], ...]


@dataclass
class Tree:
    """A tree as a certificate has it: nodes, sets of prices, and what must be bounded.

    A node splits where a job ends (by ``end``, or counted as after it), or by how much it takes of a row (up to
    ``most``, or more); ``then`` has the numbers of its two parts. A node with ``prices`` is a leaf. Where ends are cut
    off since nothing of interest ends there, a node splits, too, and that part is a leaf.
    """

    nodes: list[dict[str, Any]] = field(default_factory=list)
    prices: list[Array] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    @staticmethod
    def of(root: Branch) -> Tree:
        """Return the tree of what became of a problem."""
        tree, numbers = Tree(), {}
        todo = [(-root.bound, tree.new(), root)]
        while todo:
            _, at, branch = heapq.heappop(todo)

            def known(prices: Array) -> int:
                if id(prices) not in numbers:
                    numbers[id(prices)] = len(tree.prices)
                    tree.prices.append(prices)
                return numbers[id(prices)]

            rest = branch.rest or branch.domain
            if not branch.parts or len(tree.leaves) + len(todo) >= LARGEST:
                tree.nodes[at] = {"prices": known(branch.prices)}
                tree.leaves.append(Leaf(branch.domain, known(branch.prices), ()))
                continue
            if branch.cut is not None:
                at = tree.cut(at, branch.domain, rest, known(branch.cut))
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
        """Return the number of a new node."""
        self.nodes.append({})
        return len(self.nodes) - 1

    def cut(self, at: int, domain: Domain, rest: Domain, prices: int) -> int:
        """Split off the ends of a domain that are not in the rest; return the node of that rest."""
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


def split(domain: Domain, one: Domain, other: Domain) -> tuple[dict[str, Any], int]:
    """Return the decision that tells two parts apart, and which of them has the earlier ends, or takes less."""
    ends = np.flatnonzero(one.last != other.last)
    ends = ends if ends.size else np.flatnonzero(one.first != other.first)
    if ends.size:
        job = int(ends[0])
        lower = int(one.last[job] > other.last[job])
        return {"job": job, "end": int((one, other)[lower].last[job])}, lower
    ((job, row),) = {(use.block, use.row) for use in set(one.uses) ^ set(other.uses)}
    highs = [next(use.high for use in part.uses if (use.block, use.row) == (job, row)) for part in (one, other)]
    lower = int(highs[0] > highs[1])
    return {"job": job, "row": row, "most": int(highs[lower])}, lower
