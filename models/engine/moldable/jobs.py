"""Moldable jobs as blocks, server capacities as rows, and runs as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.moldable import FoundRun, Machines, RunOptions, Runs, runs_of
from schedgap.models.engine.columns import Choice, Packed, Packing

COVERED = 500
"""Largest capacity for which knapsack cuts are separated, by a dynamic program whose time grows with the capacity."""

ROWS = 4000
"""Largest number of capacities that a master contains from the beginning; with more, it starts with windows."""


@dataclass(frozen=True, eq=False)
class MoldableJobs:
    """``n`` moldable jobs to be scheduled in ``T`` slots numbered from 0, with the cost of each possible end.

    Attributes
    ----------
    machines, options
        Servers, and the options of the jobs.
    slots
        ``T``.
    earliest
        ``(n,)`` first slot of each job.
    late
        ``(n, T + 1)`` cost of ending before each slot, the negative of its value. Non-decreasing; infinite where a job
        must not end.
    beyond
        ``(n,)`` lower bound on the cost of ending after the last slot, if every job must complete; ``None`` if jobs may
        be rejected at no cost.
    """

    machines: Machines
    options: RunOptions
    slots: int
    earliest: Ints
    late: Array
    beyond: Array | None

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.earliest)

    @cached_property
    def worth(self) -> Array:
        """``(n, ends)`` value of ending before each slot and, in a last column, after all slots if that is allowed."""
        return -self.late if self.beyond is None else -np.column_stack((self.late, self.beyond))


@dataclass(frozen=True, eq=False)
class CapacityGrid:
    """The capacities: row ``(h·R + r)·T + t`` is resource r of the server, or class of servers, h in slot t.

    A capacity counts only what whole workers and parameter servers can use, since they cannot be split. Rows after
    these are :attr:`pools`: row ``(h·R + p)·T + t`` is the p-th pool in slot t.

    Attributes
    ----------
    machines
        Servers, or classes of servers.
    slots
        Number of slots, ``T``.
    """

    machines: Machines
    slots: int

    @property
    def rows(self) -> int:
        """Number of capacities."""
        return (self.machines.capacity.size + len(self.pools)) * self.slots

    @cached_property
    def pools(self) -> Ints:
        """Resources of all servers together, which have rows of their own so that they may have knapsack cuts.

        Only workers use them, in whole units, and not on a single class: a job's use of a class is known only once it
        is placed, but its use of all classes together before.
        """
        m, whole = self.machines, self._whole
        number = (m.usable * m.count[:, None]).sum(axis=0)
        known = (m.worker % 1 == 0).all(axis=0) & m.worker.any(axis=0) & ~m.ps.any(axis=0)
        return np.flatnonzero(known & (number <= COVERED) & ~whole.any(axis=0))

    def packing(self, jobs: MoldableJobs) -> Packing:
        """Return the packing problem of some jobs."""
        allowed = self.machines.allowed
        capacity = np.concatenate([allowed.ravel(), allowed.sum(axis=0)[self.pools]])
        most, weighed = None, np.repeat(self.whole, self.slots)
        if weighed.any():
            most = np.ones(jobs.size, np.int64)
            o, m = jobs.options, self.machines
            own = np.asarray(self._whole.any(axis=0))
            own[self.pools] = True
            need = m.worker[:, own].max(axis=1)
            np.maximum.at(most, o.job, np.ceil(o.workers * need[o.worker_type]).astype(np.int64))
        return Packing(
            np.repeat(capacity, self.slots),
            jobs.size,
            jobs.beyond is not None,
            worth=jobs.worth,
            most=most,
            weighed=weighed,
            series=self.slots if self.rows > ROWS else 1,
        )

    @property
    def whole(self) -> Bools:
        """``(h·R + pools,)`` whether knapsack cuts can be written for a resource of a class of servers, or a pool.

        For a class they can if only workers use the resource, in whole units, at most :data:`COVERED` of them, and if
        these workers fit on no other class of servers: then a job's use is known before the job is placed.
        """
        return np.concatenate([self._whole.ravel(), np.ones(len(self.pools), bool)])

    @cached_property
    def _whole(self) -> Bools:
        m = self.machines
        total = m.usable * m.count[:, None]
        numbers = (m.worker % 1 == 0).all(axis=0) & (total % 1 == 0) & ~m.ps.any(axis=0)
        elsewhere = ((m.room > 0) & (self.alone() < 0)[:, None]).T @ (m.worker > 0)
        return np.asarray(numbers & (total > 0) & (total <= COVERED) & ~elsewhere)

    def cell(self, row: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the class, the resource and the slot of rows; the class of a pool is −1."""
        m = self.machines
        cell, slot = np.divmod(row, self.slots)
        host, resource = np.divmod(cell, len(m.resources))
        pool = cell >= m.capacity.size
        resource[pool] = self.pools[cell[pool] - m.capacity.size]
        return np.where(pool, -1, host), resource, slot

    def alone(self) -> Ints:
        """Return ``(M,)`` the only server or class that workers of a type fit on, −1 if there are several or none."""
        fits = self.machines.room > 0
        return np.where(fits.sum(axis=1) == 1, fits.argmax(axis=1), -1)

    def by_slot(self, prices: Array) -> Array:
        """Return prices as ``(h, R, T)``, with those of pools on all servers, and without those of cuts."""
        shape, size = self.machines.capacity.shape, self.machines.capacity.size
        of_rows = prices[: self.rows].reshape(-1, self.slots)
        by_slot = of_rows[:size].reshape(*shape, self.slots)
        if len(self.pools):
            by_slot = by_slot.copy()
            by_slot[:, self.pools] += of_rows[size:]
        return np.asarray(by_slot)

    def expand(self, jobs: MoldableJobs, prices: Array) -> Array:
        """Return the prices of the rows of all servers, given the prices of the rows of this grid."""
        by_slot = self.by_slot(prices)
        return (by_slot if self.machines is jobs.machines else by_slot[jobs.machines.kind]).ravel()

    def taken(self, use: Array, run: FoundRun) -> tuple[Ints, Array]:
        """Return the rows that a run uses, and the amounts; `use` ``(h, R)`` is its use per slot."""
        every = np.concatenate([use.ravel(), use.sum(axis=0)[self.pools]])
        used = np.flatnonzero(every)
        rows = used[:, None] * self.slots + np.arange(run.start, run.end)
        return rows.ravel(), np.repeat(every[used], run.slots)


def bends(late: Array) -> Bools:
    """Return a mask ``(…, T + 1)`` of the ends at which the cost is not concave; true at the first and last slot."""
    nonconcave = np.ones(late.shape, bool)
    with np.errstate(invalid="ignore"):
        steps = np.diff(late)
        nonconcave[..., 1:-1] = ~(np.diff(steps) <= 1e-12 * np.abs(late[..., 1:-1]))
    return nonconcave


@dataclass(frozen=True, eq=False)
class Scheduled(Choice):
    """A column with the run that it represents."""

    found: FoundRun


def columns_of(jobs: MoldableJobs, first_slot: int, decision: Runs) -> Iterator[tuple[int, Choice]]:
    """Yield the columns of a decision's runs that end in time; the decision numbers its slots from `first_slot`."""
    real = CapacityGrid(jobs.machines, jobs.slots)
    order = np.argsort(decision.run, kind="stable")
    entries = np.split(order, np.searchsorted(decision.run[order], np.arange(1, max(len(decision.job), 1))))
    for i, job in enumerate(decision.job.tolist()):
        workers, ps = np.zeros(jobs.machines.size, np.int64), np.zeros(jobs.machines.size, np.int64)
        server = decision.server[entries[i]]
        workers[server], ps[server] = decision.workers[entries[i]], decision.ps[entries[i]]
        types = int(decision.worker_type[i]), int(decision.ps_type[i])
        run = FoundRun(0.0, 0.0, -1, int(decision.start[i]) - first_slot, int(decision.slots[i]), *types, workers, ps)
        if run.end <= jobs.slots:
            taken = real.taken(jobs.machines.use(*types, workers, ps), run)
            yield job, Scheduled(-float(jobs.late[job, run.end]), *taken, run)


def runs(packed: Packed, first_slot: int) -> Runs:
    """Return the chosen schedules as a decision whose slots are numbered from `first_slot`."""
    chosen = [(job, c.found) for job, c in sorted(packed.chosen.items()) if isinstance(c, Scheduled)]
    return runs_of(chosen, first_slot)
