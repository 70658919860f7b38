"""Column generation for elastic jobs: what Zhou's ILP over exponentially many schedules and the admission ILP share.

Blocks are jobs, columns are schedules, capacities are the resources of servers in slots.

**Symmetry.** Servers of one class are interchangeable. Averaging a fractional solution over all permutations of equal
servers shows that the LP over per-server rows has the same optimum as the LP over one row per class (capacity times
count), as long as every column fits on real servers; so bounds are computed over classes, with one price per class, and
only schedules over servers. :func:`bound` takes either, for the test that both agree and for measuring.

**Pricing** is exact (:class:`schedgap.instances.elastic.Ledger`).

**Periods.** The sum of a resource's constraints over neighbouring slots is a constraint that every schedule keeps, so
the LP over periods of several slots is a relaxation, and its bound is valid. Its prices are the same in all slots of a
period. On ``gen/zhou-ps`` (911 slots), periods of 32, 16 and 8 slots give bounds that are 0.24 %, 0.04 % and 0 % below
that of 8, after 12, 11 and 21 s; single slots are not done after 100 s.

**Horizon.** Where every job must complete and no end is given, slots end somewhere all the same. A job may then
complete beyond them by a column that takes nothing and costs what the first end after the last slot costs: no more than
any schedule that really ends there. So the bound holds for schedules of any length.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from schedgap.instances.arrays import Array, Bools
from schedgap.instances.elastic import Ledger, Machines, classes
from schedgap.models.columns import Columns, Covers, Domain, Generated, GenerationOptions, Oracle, Priced, generate
from schedgap.models.elastic.jobs import ElasticJobs, Grid
from schedgap.models.solve import SolveOptions

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
        self._asked = self.domain, jobs.late, np.array([grid.stops(late) for late in jobs.late])

    def asked(self, domain: Domain) -> tuple[Array, Bools]:
        """Return what each end costs in a domain, and between which slots runs are sought."""
        known, late, stops = self._asked
        if domain is not known:
            now = -domain.worth[:, : self.jobs.slots + 1]
            stops = stops.copy()
            for job in np.flatnonzero((now != late).any(axis=1)):
                stops[job] = self.grid.stops(now[job])
            self._asked = domain, now, stops
        return self._asked[1:]

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best schedule of every job in a domain; see :class:`schedgap.models.columns.Priced`."""
        jobs = self.jobs
        self.ledger.post(self.grid.by_slot(prices))
        late, stops = self.asked(domain)
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


ROWS, COARSE = 4000, 1000
"""Rows of the master up to which every slot is a period of its own, and about how many there are otherwise.

On ``gen/200jobs`` the bound of ``admission.columns`` (3456 rows) is 3014.7 with periods of four slots, 2971.3 with two,
and 2921.2 with one, each after 0.4 s and without covers; ``gen/zhou-ra`` with 972 rows takes 13 s, with 2916 over
45 s."""


def coarse(jobs: ElasticJobs, machines: Machines) -> Grid:
    """Return the capacities of `machines` over periods; there are at most about :data:`ROWS` of those of classes."""
    rows = classes(jobs.machines).capacity.size * jobs.slots
    return Grid(machines, jobs.slots, 1 if rows <= ROWS else -(-rows // COARSE))


def bound(
    jobs: ElasticJobs, options: GenerationOptions, solver: SolveOptions, per_server: bool = False
) -> tuple[Generated, Grid]:
    """Return what column generation proves, and the capacities whose prices it has.

    Parameters
    ----------
    jobs
        What is scheduled.
    options, solver
        Of the loop, and of the master's solver.
    per_server
        Whether every server has rows of its own instead of every class; the periods are the same.
    """
    grid = coarse(jobs, jobs.machines if per_server else classes(jobs.machines))
    pricing = Pricing(jobs, grid)
    return generate(pricing.domain, pricing, options, solver), grid
