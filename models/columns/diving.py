"""Solutions from a relaxation: columns are fixed one after another, and the rest is priced and solved anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.models.columns.domain import FRACTION, Domain
from schedgap.models.columns.generation import MISPRICED, Oracle
from schedgap.models.columns.master import Master, Relaxation
from schedgap.models.columns.packing import Columns

ROUNDS = 3
"""Pricings after each fixing."""

LIKELY = 0.7
"""Share from which a column is fixed together with a likelier one."""


class Dive:
    """Fixes columns of a relaxation until every block has one or none.

    Blocks that use much of a capacity come first, as long as any of them is divided: what is left of it serves the
    small ones in any case, while a gang finds no room among them. On ``gen/200jobs`` (utility) this ends 0.5 % below
    the bound, and fixing the largest shares first 0.9 %.

    Parameters
    ----------
    oracle
        Prices blocks.
    domain
        Where it begins.
    master
        Master of the same problem; it gets the columns that are found on the way.
    until
        When time is up, infinite for never; see :func:`schedgap.instances.clock.now`.
    """

    def __init__(self, oracle: Oracle, domain: Domain, master: Master, until: float = np.inf) -> None:
        self.oracle, self.domain, self.master, self.until = oracle, domain, master, until
        self.room = domain.packing.capacity.copy()
        self.fixed: dict[int, int] = {}

    def run(self) -> Columns:
        """Return the columns that were fixed."""
        self.master.move(self.domain)
        relaxation = self.solve()
        while relaxation.status == "optimal" and clock.now() <= self.until:
            relaxation = self.improved(relaxation)
            candidates = self.candidates(relaxation)
            if not candidates.size:
                break
            self.fix(candidates, relaxation.x)
            relaxation = self.solve()
        return self.master.columns.take(np.array(sorted(self.fixed.values()), np.int64))

    def improved(self, relaxation: Relaxation) -> Relaxation:
        """Add columns of the blocks that are left, which fit into what is left."""
        for _ in range(ROUNDS):
            domain = replace(self.domain, room=self.room)
            found = domain.packing.lifted(self.oracle(relaxation.prices, domain).columns)
            profit = domain.profit(found, relaxation.prices)
            better = profit > relaxation.block_prices[found.block] + MISPRICED * self.master.scale
            found = found.take(better & self.free(found) & self.fits(found))
            if not len(found):
                break
            self.master.add(found)
            relaxation = self.solve()
            if relaxation.status != "optimal":
                break
        return relaxation

    def solve(self) -> Relaxation:
        """Solve the master in the time that is left."""
        return self.master.solve(self.until - clock.now())

    def free(self, columns: Columns) -> Bools:
        """Return which columns are of blocks that are left."""
        return ~np.isin(columns.block, list(self.fixed))

    def fits(self, columns: Columns) -> Bools:
        """Return which columns fit into what is left."""
        use = columns.use[: len(self.room)].tocoo()
        fit = np.ones(len(columns), bool)
        fit[use.col[use.data > self.room[use.row] + FRACTION]] = False
        return fit

    def candidates(self, relaxation: Relaxation) -> Ints:
        """Return columns that may be fixed, the likeliest first."""
        some = np.flatnonzero(self.free(self.master.columns) & (relaxation.x > FRACTION))
        share = relaxation.x[some]
        most = self.domain.packing.most
        if most is not None:
            size = most[self.master.columns.block[some]]
            kept = size >= size[share < 1 - FRACTION].max(initial=0)
            some, share = some[kept], share[kept]
        return some[np.argsort(-share, kind="stable")]

    def fix(self, candidates: Ints, x: Array) -> None:
        """Fix those that are whole or likely, the first one in any case, and shut out what does not fit any more."""
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
