"""Bounds on packing problems from prices of capacity, and from trees of branch and bound.

Subclasses compute the best response of a job to prices. Prices are integer multiples of a unit, a power of two. Worth
is rounded up to such units and payments are rounded down, so sums are exact and err to the safe side. In a tree, a node
branches on the end of a job or on how much the job takes of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .basics import DEAR, NEVER, Array, Data, require
from .reading.jobs import work_of

Uses = tuple[tuple[int, int, int, int], ...]
"""Branching decisions: job, row, and the least and the most the job takes of the row."""


MOST_CELLS = 10**8
"""Largest number of jobs times slots, which are all kept in memory."""

MOST_LEAVES = 10**7
"""Largest number of jobs times nodes of a tree."""


class PackingRule:
    """A packing problem in which each job takes one schedule or none.

    Subclasses set the ``capacity`` in a slot (one number per row of prices) and the ``worth`` of each job by its end,
    in units (the last entry is for no schedule, or an end after all slots). They compute the best ``answer`` of a job
    to prices. Settings of a problem, such as rings instead of parameter servers, replace attributes of the class.
    """

    sense = 1

    capacity: Any
    worth: list[Array]

    def __init__(self, data: Data, proof: Data, **settings: Any) -> None:
        vars(self).update(settings)
        self.unit, self.slot_s, self.slots = proof.get("unit", 1.0), proof["slot_s"], proof.get("slots", 0)
        horizon = data.get("horizon", {"slot_s": self.slot_s, "slots": self.slots})
        self.jobs, self.groups = data["jobs"], data["cluster"]["servers"]
        self.work = [work_of(job) for job in self.jobs]
        require(math.frexp(self.unit)[0] == 0.5, "the unit is not a power of two")
        cells = (len(self.jobs) + 1) * (self.slots + 2)
        require(isinstance(self.slots, int) and self.slots >= 0, "the number of slots is no whole number")
        require(cells <= MOST_CELLS, f"{self.slots:,} slots are too many for this plain program")
        leaves = len(self.jobs) * len(proof.get("tree", ()))
        require(leaves <= MOST_LEAVES, "the tree is too large for this plain program")
        self.prepare(data, horizon)
        self.answers: dict[Any, int] = {}
        self.take(proof)

    def prepare(self, data: Data, horizon: Data) -> None:
        """Read the instance: set capacity, worth, and what :meth:`answer` needs."""
        raise NotImplementedError

    def answer(self, j: int, worth: Array, which: int, uses: Uses) -> int:
        """Return the largest worth less payment of a job's schedules at one set of prices."""
        raise NotImplementedError

    def take(self, proof: Data) -> None:
        """Read the prices, the cuts, and the jobs that may use fractions of slots (`divisible`)."""
        self.divisible = set(proof.get("divisible", ()))
        cells, numbers = len(self.capacity) * self.slots, [np.array(prices, np.int64) for prices in proof["prices"]]
        self.prices = [prices[:cells].reshape(len(self.capacity), self.slots) for prices in numbers]
        self.whole = [Fraction(float(c)) for c in self.capacity]
        self.extra = [prices[cells:].tolist() for prices in numbers]
        require(all((p >= 0).all() for p in numbers), "prices are negative")
        self.right = self.cuts(proof)
        require(all(len(e) == len(self.right) for e in self.extra), "the number of prices is not that of the rows")
        require(all(self.paid(i) < DEAR // 2 for i in range(len(numbers))), "prices are too large")

    def cuts(self, proof: Data) -> list[Fraction]:
        """Read the cuts, check that they are valid, and return their right-hand sides."""
        raise NotImplementedError

    def paid(self, which: int) -> Fraction:
        """Return the price of all capacity and of the right-hand sides of the cuts, at one set of prices."""
        rows = zip([*self.whole, *self.right], [*self.prices[which].tolist(), *self.extra[which]], strict=True)
        return sum((c * (sum(row) if isinstance(row, list) else row) for c, row in rows), Fraction(0))

    def bound(self, which: int, first: Sequence[int], last: Sequence[int], uses: Uses) -> Fraction:
        """Return the bound at one set of prices if each job ends, or counts as ending, between `first` and `last`."""
        total = self.paid(which)
        for j, worth in enumerate(self.worth):
            key = which, j, first[j], last[j], tuple(use for use in uses if use[0] == j)
            if key not in self.answers:
                end = np.arange(len(worth))
                counted = np.where(end <= last[j], worth[np.maximum(end, first[j])], NEVER)
                self.answers[key] = int(self.answer(j, counted, which, key[4]))
            total += self.answers[key]
        return total

    def tree(self, nodes: Sequence[Data]) -> Fraction:
        """Return the largest bound of the leaves of a tree with root 0."""
        ends = [len(worth) - 1 for worth in self.worth]
        todo: list[tuple[int, list[int], list[int], Uses]] = [(0, [0] * len(ends), ends, ())]
        bounds, seen = list[Fraction](), set[int]()
        while todo:
            at, first, last, uses = todo.pop()
            require(at not in seen, f"node {at} has two parents")
            seen.add(at)
            node = nodes[at]
            if "end" in node:
                j, end = node["job"], node["end"]
                require(first[j] <= end < last[j], f"node {at} branches on an end outside its range")
                todo.append((node["then"][0], first, [*last[:j], end, *last[j + 1 :]], uses))
                todo.append((node["then"][1], [*first[:j], end + 1, *first[j + 1 :]], last, uses))
            elif "row" in node:
                which, most = (node["job"], node["row"]), node["most"]
                low, high = next((use[2:] for use in uses if use[:2] == which), (0, 2**31))
                others = tuple(use for use in uses if use[:2] != which)
                todo.append((node["then"][0], first, last, (*others, (*which, low, min(high, most)))))
                todo.append((node["then"][1], first, last, (*others, (*which, max(low, most + 1), high))))
            else:
                bounds.append(self.bound(node["prices"], first, last, uses))
        return max(bounds)

    def value(self, proof: Data) -> Fraction:
        """Return the bound that the certificate proves."""
        return self.sense * Fraction(self.unit) * self.tree(proof.get("tree") or [{"prices": 0}])


def by_slots(kind: Callable[[Data, Data], PackingRule], data: Data, proof: Data) -> tuple[int, Fraction]:
    """Return the bound on a packing problem of some kind, by prices of capacity in slots."""
    problem = kind(data, proof)
    return problem.sense, problem.value(proof)


SLOTTED = ("slot_s", "slots", "prices", "tree")
"""Fields of certificates with prices of capacity in slots."""
