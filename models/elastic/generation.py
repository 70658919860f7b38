"""Column generation for elastic jobs: what Zhou's ILP over exponentially many schedules and the admission ILP share.

Blocks are jobs, columns are schedules, capacities are the resources of servers in slots.

**Symmetry.** Servers of one class are interchangeable. Averaging a fractional solution over all permutations of equal
servers shows that the LP over per-server rows has the same optimum as the LP over one row per class (capacity times
count), as long as every column fits on real servers; so bounds are computed over classes, with one price per class, and
only schedules over servers. :class:`Pricing` takes either, for the test that both agree.

**Pricing** is exact (:class:`schedgap.instances.elastic.Ledger`).

**Windows.** Where there are many slots, master problems begin with rows for windows of them
(:mod:`schedgap.models.columns.windows`), and prices change at few slots, between which no run need begin or end.

**Horizon.** Where every job must complete and no end is given, slots end somewhere all the same. A job may then
complete beyond them by a column that takes nothing and costs what the first end after the last slot costs: no more than
any schedule that really ends there. So the bound holds for schedules of any length.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from schedgap.instances.arrays import Array, Bools
from schedgap.instances.elastic import Ledger, Machines, classes
from schedgap.models.columns import Columns, Covers, Domain, Oracle, Priced
from schedgap.models.elastic.jobs import ElasticJobs, Grid, bends

CELLS, LARGEST = 2_000_000, 50_000_000
"""Servers times slots, and jobs times slots times classes, up to which a schedule is sought unasked.

Tables of so many cells take about half a gigabyte."""


def too_large(jobs: int, machines: Machines, slots: int) -> str | None:
    """Return why nobody should seek a schedule of so many jobs unasked, if so."""
    if (cells := machines.size * slots) > CELLS:
        return f"servers x slots = {cells:,}, more than {CELLS:,}"
    size = jobs * classes(machines).size * slots
    return f"jobs x classes x slots = {size:,}, more than {LARGEST:,}" if size > LARGEST else None


class Pricing(Oracle):
    """The oracle: the best schedule of every job at prices of resources.

    Parameters
    ----------
    jobs
        What is scheduled.
    grid
        Capacities of classes, or of servers one by one.
    """

    def __init__(self, jobs: ElasticJobs, grid: Grid) -> None:
        self.jobs, self.grid = jobs, grid
        self.ledger = Ledger(grid.machines, jobs.options, jobs.slots, constant=True)
        self.domain = Domain.of(grid.packing(jobs))
        self._asked = self.domain, jobs.late, bends(jobs.late)

    def asked(self, domain: Domain) -> tuple[Array, Bools]:
        """Return what each end costs in a domain, and where that is not concave."""
        known, late, found = self._asked
        if domain is not known:
            now = -domain.worth[:, : self.jobs.slots + 1]
            found = found.copy()
            changed = (now != late).any(axis=1)
            found[changed] = bends(now[changed])
            self._asked = domain, now, found
        return self._asked[1:]

    def steps(self, prices: Array, covers: Covers) -> Bools:
        """Return ``(T + 1,)`` the slots at which a price changes.

        While neither begin nor end of a run crosses one of them, the cost of a placement is linear in the begin; with a
        concave cost of the end, the least total of all placements is concave, and least at an end of the interval.
        """
        found = np.ones(self.jobs.slots + 1, bool)
        found[1:-1] = (np.diff(self.grid.by_slot(prices), axis=2) != 0).any(axis=(0, 1))
        slot = covers.row[prices[self.grid.rows :] > 0] % self.jobs.slots
        found[slot] = found[slot + 1] = True
        return found

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best schedule of every job in a domain; see :class:`schedgap.models.columns.Priced`."""
        jobs = self.jobs
        self.ledger.post(self.grid.by_slot(prices))
        late, stops = self.asked(domain)
        stops = stops | self.steps(prices, domain.packing.covers)
        surcharge = self.surcharges(domain.packing.covers, prices[self.grid.rows :])
        # Ending after all slots takes nothing; so does being rejected.
        other = np.where(domain.must, -np.inf, 0.0) if jobs.beyond is None else domain.worth[:, -1]
        most, listed, ends = other.copy(), [], []
        for job in range(jobs.size):
            asked = {"late": late[job], "stops": stops[job], "limit": -other[job], "extra": surcharge(job)}
            found = self.ledger.find(job, int(jobs.earliest[job]), **asked)
            if found:
                most[job] = -found.total
                ends.append(found.end)
                listed.append((job, -jobs.late[job, found.end], *self.grid.taken(self.ledger.use(found), found)))
            elif jobs.beyond is not None and other[job] > -np.inf:
                ends.append(jobs.slots + 1)
                listed.append((job, -jobs.beyond[job], np.zeros(0, np.int64), np.zeros(0)))
        return Priced(most, Columns.of(self.grid.rows, listed, ends))

    def surcharges(self, covers: Covers, prices: Array) -> Callable[[int], Array | None]:
        """Return what a job's options cost more by the prices of covers, up to each slot.

        They are exact: covers are of what only workers take that fit on one class of servers alone, which is known
        before a run is placed; see :attr:`Grid.whole`.
        """
        from schedgap.models.elastic import _moves as kernels

        paid = np.flatnonzero(prices)
        if not paid.size:
            return lambda job: None
        cell, slot = np.divmod(covers.row[paid], self.jobs.slots)
        host, resource = np.divmod(cell, len(self.grid.machines.resources))
        rows = host, resource, slot, covers.spare[paid].astype(float), prices[paid]
        o, kept, alone = self.jobs.options, covers.kept[paid].T.astype(float), self.grid.alone()

        def of(job: int) -> Array:
            own = o.of(job)
            found = np.zeros((own.stop - own.start, self.jobs.slots + 1))
            kernels.surcharge(
                o.workers[own], o.worker_type[own], alone, self.grid.machines.worker, rows, kept[job].copy(), found
            )
            return found

        return of
