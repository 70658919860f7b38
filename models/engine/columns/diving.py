"""Diving heuristic: fix columns of a relaxation one after another, pricing and solving again after each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.models.engine.columns.domain import FRACTION, Domain
from schedgap.models.engine.columns.generation import Oracle
from schedgap.models.engine.columns.master import Master, Relaxation
from schedgap.models.engine.columns.packing import Columns

ROUNDS = 3
"""Rounds of pricing after each fixing."""

LIKELY = 0.7
"""Smallest share of a column that is fixed in the same step as the column of largest share."""


class Dive:
    """A dive: fixes columns of a relaxation until every block is fixed to a column or to none.

    Large blocks come first, as long as one of them is fractional: small blocks can use whatever capacity is left, while
    a gang finds no room between small blocks.

    Parameters
    ----------
    oracle
        Prices blocks.
    domain
        Domain in which the dive begins.
    master
        Master of the same problem; columns generated during the dive are added to it.
    budget
        Time limit; none by default.
    """

    def __init__(self, oracle: Oracle, domain: Domain, master: Master, budget: clock.Budget | None = None) -> None:
        self.oracle, self.domain, self.master, self.budget = oracle, domain, master, budget or clock.Budget()
        self.room = domain.packing.capacity.copy()
        self.fixed: dict[int, int] = {}

    def run(self) -> Columns:
        """Dive; return the fixed columns."""
        self.master.move(self.domain)
        relaxation = self.solve()
        while relaxation.status == "optimal" and self.budget.left_s >= 0:
            relaxation = self.improved(relaxation)
            candidates = self.candidates(relaxation)
            if not candidates.size:
                break
            self.fix(candidates, relaxation.x)
            relaxation = self.solve()
        return self.master.columns.take(np.array(sorted(self.fixed.values()), np.int64))

    def improved(self, relaxation: Relaxation) -> Relaxation:
        """Generate columns for the remaining blocks that fit into the remaining capacity; return the new relaxation."""
        for _ in range(ROUNDS):
            domain = replace(self.domain, room=self.room)
            columns = domain.packing.lifted(self.oracle(relaxation.prices, domain).columns)
            columns = columns.take(self.master.improves(columns, relaxation) & self.free(columns) & self.fits(columns))
            if not len(columns):
                break
            self.master.add(columns)
            relaxation = self.solve()
            if relaxation.status != "optimal":
                break
        return relaxation

    def solve(self) -> Relaxation:
        """Solve the master within the remaining time."""
        return self.master.solve(self.budget)

    def free(self, columns: Columns) -> Bools:
        """Return which columns belong to blocks that are not fixed yet."""
        return ~np.isin(columns.block, list(self.fixed))

    def fits(self, columns: Columns) -> Bools:
        """Return which columns fit into the remaining capacity."""
        use = columns.use[: len(self.room)].tocoo()
        fit = np.ones(len(columns), bool)
        fit[use.col[use.data > self.room[use.row] + FRACTION]] = False
        return fit

    def candidates(self, relaxation: Relaxation) -> Ints:
        """Return the columns that may be fixed next, by decreasing share."""
        columns = np.flatnonzero(self.free(self.master.columns) & (relaxation.x > FRACTION))
        share = relaxation.x[columns]
        most = self.domain.packing.most
        if most is not None:
            size = most[self.master.columns.block[columns]]
            large = size >= size[share < 1 - FRACTION].max(initial=0)
            columns, share = columns[large], share[large]
        return columns[np.argsort(-share, kind="stable")]

    def fix(self, candidates: Ints, x: Array) -> None:
        """Fix the first candidate and others with shares of at least :data:`LIKELY`; exclude what no longer fits."""
        columns, rows = self.master.columns, len(self.room)
        for i, c in enumerate(candidates.tolist()):
            if i > 0 and x[c] < LIKELY:
                break
            use = columns.use[:rows, [c]].toarray()[:, 0]
            if (use <= self.room + FRACTION).all():
                self.room -= use
                self.fixed[int(columns.block[c])] = c
                self.master.restrict(np.array([c]), 1.0)
        self.master.restrict(np.flatnonzero(self.free(columns) & ~self.fits(columns)), 0.0)
