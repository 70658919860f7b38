"""Column generation for moldable jobs, shared by Zhou's ILP over exponentially many schedules and the admission ILP.

Blocks are jobs, columns are schedules, capacities are the resources of servers in slots.

**Symmetry.** Servers of one class are interchangeable. Averaging a fractional solution over all permutations of equal
servers shows that the LP over per-server rows has the same optimum as the LP over one row per class (capacity times
count), as long as every column fits on real servers. Bounds are therefore computed over classes, with one price per
class, and only schedules over servers. :class:`MoldablePricing` supports both, for the test that they agree.

**Pricing** is exact (:class:`schedgap.instances.moldable.Ledger`).

**Windows.** With many slots, the master starts with rows for windows of slots
(:mod:`schedgap.models.engine.columns.windows`). Prices then change at few slots, and no run needs to begin or end in
between.

**Horizon.** If every job must complete and there is no deadline, the slots still have to end somewhere. A job may
complete after them by a column that uses no capacity and costs as much as an end right after the last slot. No schedule
that really ends later costs less, so the bound holds for schedules of any length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.moldable import Ledger, Machines, classes
from schedgap.models.engine.columns import Columns, Covers, Domain, Knapsacks, Oracle, Priced
from schedgap.models.engine.moldable.jobs import CapacityGrid, MoldableJobs, bends

CELLS, LARGEST = 2_000_000, 50_000_000
"""Largest numbers of servers times slots, and of jobs times slots times classes, for which the models run by default.

Tables of that many cells take about half a gigabyte."""

WHERE = ("option", "begin", "end", "host", "beside", "ps")
"""What compiled pricing says about a run; its option is counted from the job's first one."""


def too_large(jobs: int, machines: Machines, slots: int) -> str | None:
    """Return the reason why an instance is too large for the models to run by default, or ``None``."""
    if (cells := machines.size * slots) > CELLS:
        return f"servers x slots = {cells:,}, more than {CELLS:,}"
    size = jobs * classes(machines).size * slots
    return f"jobs x classes x slots = {size:,}, more than {LARGEST:,}" if size > LARGEST else None


class MoldablePricing(Oracle):
    """Exact pricing: the best schedule of every job at prices of resources.

    Parameters
    ----------
    jobs
        Jobs and servers.
    grid
        Capacities of server classes, or of individual servers.
    """

    def __init__(self, jobs: MoldableJobs, grid: CapacityGrid) -> None:
        from schedgap.models.engine.moldable import _pricing as kernels

        self.kernels: Any = kernels
        self.jobs, self.grid = jobs, grid
        self.ledger = Ledger(grid.machines, jobs.options, jobs.slots, constant=True)
        self.domain = Domain.of(grid.packing(jobs))
        self._extra = np.zeros((int(np.diff(jobs.options.first).max(initial=0)), jobs.slots + 1))
        self._costs = self.domain, jobs.late, bends(jobs.late)

    def costs(self, domain: Domain) -> tuple[Array, Bools]:
        """Return the cost of each end in a domain, and at which ends it is not concave; cached for one domain."""
        last, before, nonconcave = self._costs
        if domain is not last:
            late = -domain.worth[:, : self.jobs.slots + 1]
            nonconcave = nonconcave.copy()
            changed = (late != before).any(axis=1)
            nonconcave[changed] = bends(late[changed])
            self._costs = domain, late, nonconcave
        return self._costs[1:]

    def steps(self, prices: Array, cuts: Covers | Knapsacks) -> Bools:
        """Return a mask ``(T + 1,)`` of the slots at which a price changes.

        As long as neither begin nor end of a run crosses one of them, the cost of a placement is linear in the begin.
        If the cost of the end is concave, the least total cost over all placements is concave too, and hence smallest
        at an end of the interval.
        """
        changes = np.ones(self.jobs.slots + 1, bool)
        changes[1:-1] = (np.diff(self.grid.by_slot(prices), axis=2) != 0).any(axis=(0, 1))
        slot = cuts.row[prices[self.grid.rows :] > 0] % self.jobs.slots
        changes[slot] = changes[slot + 1] = True
        return changes

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best schedule of every job in a domain; see :class:`schedgap.models.engine.columns.Priced`."""
        jobs, o, kernels = self.jobs, self.jobs.options, self.kernels
        self.ledger.post(self.grid.by_slot(prices))
        late, stops = self.costs(domain)
        stops = stops | self.steps(prices, domain.packing.cuts)
        # A job that is rejected, or that ends after the last slot, uses no capacity.
        other = np.where(domain.must, -np.inf, 0.0) if jobs.beyond is None else domain.worth[:, -1]
        kinds = o.slots, o.worker_type, o.ps_type, o.together, o.workers
        asked = kernels.OptionArrays(o.first, *kinds, jobs.earliest, late, stops, -other)
        paid = self.paid(domain.packing.cuts, prices[self.grid.rows :])
        extra = self._extra if paid.price.size else self._extra[:0]
        servers, _, *space = self.ledger.parts
        where, workers = (np.zeros((jobs.size, size), np.int64) for size in (len(WHERE), servers.copies.size))
        runs = kernels.PricedRuns(np.zeros(jobs.size), where, workers)
        kernels.cheapest(asked, paid, extra, servers, *space, runs)
        found = where[:, 0] >= 0
        return Priced(np.where(found, -runs.total, other), self.columns(found, where, workers, other))

    def columns(self, found: Bools, where: Ints, workers: Ints, other: Array) -> Columns:
        """Return the columns of the runs found, and of jobs that may end after the last slot and have no better run."""
        jobs, o, m, slots = self.jobs, self.jobs.options, self.grid.machines, self.jobs.slots
        job = np.flatnonzero(found if jobs.beyond is None else found | (other > -np.inf))
        run = np.flatnonzero(found[job])
        own = job[run]
        begin, end, host, ps = (where[own, WHERE.index(name)] for name in ("begin", "end", "host", "ps"))
        option, served = o.first[own] + where[own, 0], np.flatnonzero(ps)
        use = workers[own][:, :, None] * m.worker[o.worker_type[option]][:, None]
        use[served, host[served]] += ps[served, None] * m.ps[o.ps_type[option[served]]]
        every = np.column_stack((use.reshape(len(own), m.capacity.size), use.sum(axis=1)[:, self.grid.pools]))
        at, cell = np.nonzero(every)
        length = (end - begin)[at]
        ends = np.concatenate([[0], np.cumsum(length)])
        rows = np.repeat(cell * slots + begin[at] - ends[:-1], length) + np.arange(ends[-1])
        sizes = np.zeros(len(job), np.int64)
        sizes[run] = np.bincount(at, minlength=len(own)) * (end - begin)
        data, first = np.repeat(every[at, cell], length), np.concatenate([[0], np.cumsum(sizes)])
        value = np.zeros(len(job)) if jobs.beyond is None else -jobs.beyond[job]
        value[run] = -jobs.late[own, end]
        last = np.full(len(job), slots + 1)
        last[run] = end
        return Columns(job, value, sp.csc_array((data, rows, first), (self.grid.rows, len(job))), last)

    def paid(self, cuts: Covers | Knapsacks, prices: Array) -> Any:
        """Return the cuts that have a price.

        What jobs pay for them is exact: a run's use is known before it is placed, see :attr:`.CapacityGrid.whole`.
        """
        paid = np.flatnonzero(prices)
        if not paid.size:
            none = np.zeros(0, np.int64)
            return self.kernels.PaidCuts(none, none, none, np.zeros(0), none, np.zeros((0, 0, 0), np.int64), none)
        assert isinstance(cuts, Knapsacks)
        kinds = *self.grid.cell(cuts.row[paid]), prices[paid], cuts.which[paid]
        return self.kernels.PaidCuts(*kinds, cuts.weights, self.grid.alone())
