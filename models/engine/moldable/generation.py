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

from collections.abc import Callable

import numpy as np

from schedgap.instances.arrays import Array, Bools
from schedgap.instances.moldable import Ledger, Machines, classes
from schedgap.models.engine.columns import Columns, Covers, Domain, Knapsacks, Oracle, Priced
from schedgap.models.engine.moldable.jobs import CapacityGrid, MoldableJobs, bends

CELLS, LARGEST = 2_000_000, 50_000_000
"""Largest numbers of servers times slots, and of jobs times slots times classes, for which the models run by default.

Tables of that many cells take about half a gigabyte."""


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
        self.jobs, self.grid = jobs, grid
        self.ledger = Ledger(grid.machines, jobs.options, jobs.slots, constant=True)
        self.domain = Domain.of(grid.packing(jobs))
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
        jobs = self.jobs
        self.ledger.post(self.grid.by_slot(prices))
        late, stops = self.costs(domain)
        stops = stops | self.steps(prices, domain.packing.cuts)
        surcharge = self.surcharges(domain.packing.cuts, prices[self.grid.rows :])
        # A job that is rejected, or that ends after the last slot, uses no capacity.
        other = np.where(domain.must, -np.inf, 0.0) if jobs.beyond is None else domain.worth[:, -1]
        most, listed, ends = other.copy(), [], []
        for job in range(jobs.size):
            costs = {"late": late[job], "stops": stops[job], "limit": -other[job], "extra": surcharge(job)}
            run = self.ledger.find(job, int(jobs.earliest[job]), **costs)
            if run:
                most[job] = -run.total
                ends.append(run.end)
                listed.append((job, -jobs.late[job, run.end], *self.grid.taken(self.ledger.use(run), run)))
            elif jobs.beyond is not None and other[job] > -np.inf:
                ends.append(jobs.slots + 1)
                listed.append((job, -jobs.beyond[job], np.zeros(0, np.int64), np.zeros(0)))
        return Priced(most, Columns.of(self.grid.rows, listed, ends))

    def surcharges(self, cuts: Covers | Knapsacks, prices: Array) -> Callable[[int], Array | None]:
        """Return a function that maps a job to what its options pay for cuts, cumulated by slot.

        The costs are exact: a run's use is known before it is placed, see :attr:`.CapacityGrid.whole`.
        """
        from schedgap.models.engine.moldable import _moves as kernels

        paid = np.flatnonzero(prices)
        if not paid.size:
            return lambda job: None
        assert isinstance(cuts, Knapsacks)
        host, resource, slot = self.grid.cell(cuts.row[paid])
        o, alone, which = self.jobs.options, self.grid.alone(), cuts.which[paid]

        def of(job: int) -> Array:
            own = o.of(job)
            out = np.zeros((own.stop - own.start, self.jobs.slots + 1))
            rows = host, resource, slot, prices[paid], cuts.weights[which, job]
            kernels.surcharge(o.workers[own], o.worker_type[own], alone, self.grid.machines.worker, rows, out)
            return out

        return of
