"""Bounds of P2 where there are thousands of slots: prices change from period to period only, and jobs run in slots.

Any prices prove a bound. Where they are equal in all slots of a period, slots of a period are alike to a job, so that
pricing takes a time that hardly grows with slots (:mod:`schedgap.models.hadar._kernels`), and a master has rows for
periods. Periods are short where ends matter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.hadar import View
from schedgap.models.columns import Domain, Generated, GenerationOptions, Oracle, Packing, Price, Priced, generate
from schedgap.models.hadar.common import earliest_finish
from schedgap.models.hadar.pricing import Pricing
from schedgap.models.solve import SolveOptions

NUMBER = 240
"""Periods, at most.

The bound of ``gen/hadar-480`` is 10,185.3 with 160 periods after 17 s, 10,183.2 with 240 after 28 s, at a higher load,
and 10,183.3 with 720 after 31 s, or 10,201.9 where the time is up before jobs are looked at closely.
"""

EVEN = 0.2
"""Part of the periods that are as long as each other; the others have as much of what ends can change."""

CLOSE = 3e-4
"""Part of the bound by which it may differ from its master."""


def periods(view: View, worth: Array, number: int) -> Ints:
    """Return the edges of at most so many periods, by what jobs are worth by last slot ``(n, T)``.

    Utilities of effective throughput halve with each doubling of the time since the arrival, so that periods grow with
    the time where all jobs are there at the start.
    """
    lost = np.zeros(view.slots)
    for job in view.possible.tolist():
        first = earliest_finish(view, job)
        lost[first + 1 :] -= np.diff(worth[job, first:])
    matters, passed = np.cumsum(lost), np.arange(1, view.slots + 1) / view.slots
    share = EVEN * passed + (1 - EVEN) * matters / max(matters[-1], 1e-300)
    edges = np.searchsorted(share, np.linspace(0, share[-1], number + 1)[1:-1])
    return np.unique(np.concatenate([[0], edges, [view.slots]]))


class ByPeriod(Oracle):
    """The oracle: row ``r·K + i`` is type r in period i, all of whose slots have one price for each type."""

    def __init__(self, pricing: Pricing, options: SolveOptions, number: int = NUMBER) -> None:
        self.pricing, self.options = pricing, options
        view, must = pricing.view, pricing.packing.cover
        self.edges = periods(view, pricing.worth, number)
        self.length, types = np.diff(self.edges), len(view.capacity)
        count = len(self.length)
        capacity = (view.capacity[:, None] * self.length).ravel().astype(float)
        self.packing = Packing(capacity, view.size, must, floor=0.0, series=count)
        self.domain = Domain.of(self.packing)
        inside = np.repeat(np.arange(count), self.length)
        row = (np.arange(types)[:, None] * count + inside).ravel()
        self.sums = sp.csr_array((np.ones(len(row)), (row, np.arange(len(row)))))

    def by_slot(self, prices: Array) -> Array:
        """Return prices of a type in a period as those in each of its slots, ``(k, T)``."""
        return np.repeat(prices.reshape(-1, len(self.length)), self.length, axis=1)

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best schedule of every job; see :class:`.Priced`."""
        return self._priced(prices, closely=True)

    @property
    def rough(self) -> Price:
        """The same with the cheapest slots for all jobs that have many states."""
        return lambda prices, domain: self._priced(prices, closely=False)

    def _priced(self, prices: Array, closely: bool) -> Priced:
        found = self.pricing.nearly(self.by_slot(prices), closely)
        use = sp.csc_array(self.sums @ found.columns.use)
        return replace(found, columns=replace(found.columns, use=use))

    def relax(self, time_limit_s: float | None) -> Generated:
        """Return what column generation proves."""
        return generate(self.domain, self, GenerationOptions(CLOSE, time_limit_s=time_limit_s), self.options)
