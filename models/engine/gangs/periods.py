"""Bounds of P2 for thousands of slots: prices change only from period to period, while jobs still run in slots.

Any prices prove a bound. If prices are equal in all slots of a period, these slots are alike to a job: the time that
pricing takes hardly grows with the number of slots (:mod:`schedgap.models.engine.gangs._kernels`), and the master has
one row per period and type. Periods are short at times when the end of a job matters.

With tens of thousands of jobs, the master is too slow even so. A sample of one job in m, on 1/m of the GPUs of each
type, has about the same prices as all jobs, and column generation soon finds them;
:func:`schedgap.models.engine.columns.descend` then improves them for all jobs, without a master. The bound is that of
all jobs: the sample only chooses where the descent begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from schedgap.instances import clock
from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.columns import (
    DescentOptions,
    Domain,
    Generated,
    GenerationOptions,
    Oracle,
    Packing,
    Price,
    Priced,
    descend,
    generate,
)
from schedgap.models.engine.gangs.pricing import GangPricing
from schedgap.models.engine.gangs.progress import earliest_finish
from schedgap.models.engine.solve import SolveOptions

NUMBER = 240
"""Largest number of periods; more of them hardly improve the bound."""

EVEN = 0.2
"""Share of the periods whose edges divide time evenly; the edges of the others divide the loss of utility evenly."""

CLOSE = 3e-4
"""Relative difference between bound and master at which column generation stops."""

SAMPLE = 2_000
"""Number of jobs in a sample: column generation prices them in seconds."""

FIRST = 0.3
"""Largest share of the time for the sample."""


def periods(view: HadarView, worth: Array, number: int) -> Ints:
    """Return the edges of at most `number` periods, given the `worth` ``(n, T)`` of jobs by last slot.

    Utilities of effective throughput halve each time that the time since arrival doubles, so periods grow with time if
    all jobs arrive at the start.
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
    """The pricing oracle with one price per type and period: row ``r·K + i`` is type r in period i.

    Parameters
    ----------
    pricing
        The oracle with prices by slot.
    options
        Seed and threads of the master's solver.
    number, edges
        Largest number of periods, or their edges.
    """

    def __init__(
        self, pricing: GangPricing, options: SolveOptions, number: int = NUMBER, edges: Ints | None = None
    ) -> None:
        self.pricing, self.options = pricing, options
        view, must = pricing.view, pricing.packing.cover
        self.edges = periods(view, pricing.worth, number) if edges is None else edges
        self.length, types = np.diff(self.edges), len(view.capacity)
        count = len(self.length)
        capacity = (view.capacity[:, None] * self.length).ravel().astype(float)
        self.packing = Packing(capacity, view.size, must, floor=0.0, series=count)
        self.domain = Domain.of(self.packing)
        inside = np.repeat(np.arange(count), self.length)
        row = (np.arange(types)[:, None] * count + inside).ravel()
        self.sums = sp.csr_array((np.ones(len(row)), (row, np.arange(len(row)))))

    def by_slot(self, prices: Array) -> Array:
        """Convert prices by period to prices by slot, ``(k, T)``."""
        return np.repeat(prices.reshape(-1, len(self.length)), self.length, axis=1)

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best schedule of every job; see :class:`.Priced`."""
        return self._priced(prices, closely=True)

    @property
    def rough(self) -> Price:
        """The same oracle, with a greedy choice of the cheapest slots for jobs whose automaton is too large."""
        return lambda prices, domain: self._priced(prices, closely=False)

    def _priced(self, prices: Array, closely: bool) -> Priced:
        result = self.pricing.nearly(self.by_slot(prices), closely)
        use = sp.csc_array(self.sums @ result.columns.use)
        return replace(result, columns=replace(result.columns, use=use))

    def relax(self, time_limit_s: float | None) -> Generated:
        """Run column generation over periods."""
        return generate(self.domain, self, GenerationOptions(CLOSE, time_limit_s=time_limit_s), self.options)


class Sampled(ByPeriod):
    """Prices by period for very many jobs: those of a sample, improved by descent for all jobs."""

    def relax(self, time_limit_s: float | None) -> Generated:
        """Return the bound, its prices, and the best column of each job at these prices."""
        budget, must = clock.Budget(time_limit_s), self.packing.cover
        few = ByPeriod(GangPricing(sample(self.pricing.view, self.options.seed), must), self.options, edges=self.edges)
        first = few.relax(None if time_limit_s is None else FIRST * time_limit_s)
        left = None if time_limit_s is None else max(budget.left_s, 0.1)
        return descend(self.domain, self.rough, first.prices, DescentOptions(time_limit_s=left))


def sample(view: HadarView, seed: int) -> HadarView:
    """Return about :data:`SAMPLE` random jobs on as large a part of the GPUs of each type.

    Every gang still fits on the GPUs of any one type. The view is for prices only: its servers are those of all jobs.
    At least one job must be able to complete.
    """
    there, possible = view.capacity[view.capacity > 0], view.possible
    largest = int(view.workload.gpus[possible].max())
    parts = max(min(possible.size // SAMPLE, int(there.min()) // largest), 1)
    jobs = np.sort(np.random.default_rng(seed).permutation(possible)[: -(-possible.size // parts)])
    return replace(
        view,
        workload=view.workload.of(jobs),
        arrival=view.arrival[jobs],
        utilities=view.utilities.of(jobs),
        capacity=view.capacity // parts,
        hopeless=(None,) * len(jobs),
    )
