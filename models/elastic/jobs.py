"""Elastic jobs as blocks, capacities of servers as rows, and runs as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.elastic import Found, Machines, Options, Runs, runs_of
from schedgap.instances.elastic.machines import ROOM
from schedgap.models.columns import Choice, Packed, Packing

COVERED = 500
"""Largest capacities that covers are sought for, by a dynamic program over what is left of them."""

ROWS = 4000
"""Capacities up to which master problems have all of them from the beginning; of more, windows.

On ``gen/200jobs`` the bound of ``admission.columns``, 3456 rows, takes 0.4 s of computing with all, 1.7 s with windows.
"""


@dataclass(frozen=True, eq=False)
class ElasticJobs:
    """Jobs to be scheduled, and what each end costs; ``n`` jobs, ``T`` slots numbered from 0.

    Attributes
    ----------
    machines, options
        Servers, and choices of the jobs.
    slots
        ``T``.
    earliest
        ``(n,)`` first slot of each job.
    late
        ``(n, T + 1)`` what ending before each slot costs: the negative of its value. Non-decreasing, infinite where a
        job must not end.
    beyond
        ``(n,)`` what ending after the last slot costs at least, where every job completes; ``None`` where jobs may be
        rejected, at no cost.
    """

    machines: Machines
    options: Options
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
        """``(n, ends)`` what ending before each slot is worth, and last ending after all slots, where jobs may."""
        return -self.late if self.beyond is None else -np.column_stack((self.late, self.beyond))


@dataclass(frozen=True, eq=False)
class Grid:
    """The capacities: row ``(h·R + r)·T + t`` is resource r of entry h in slot t.

    They are what whole workers and parameter servers can take of it: no server holds parts of them.

    Attributes
    ----------
    machines
        Servers, or classes of them.
    slots
        Number of slots, ``T``.
    """

    machines: Machines
    slots: int

    @property
    def rows(self) -> int:
        """Number of capacities."""
        return self.machines.capacity.size * self.slots

    def packing(self, jobs: ElasticJobs) -> Packing:
        """Return the packing problem of some jobs."""
        capacity = self.machines.usable * self.machines.count[:, None] * (1 + ROOM)
        most, parts = None, np.repeat(self.whole, self.slots)
        if parts.any():
            most = np.ones(jobs.size, np.int64)
            o, m = jobs.options, self.machines
            np.maximum.at(most, o.job, np.ceil(o.workers * m.worker[o.worker_type].max(axis=1)).astype(np.int64))
        return Packing(
            np.repeat(capacity, self.slots),
            jobs.size,
            jobs.beyond is not None,
            worth=jobs.worth,
            most=most,
            parts=parts,
            series=self.slots if self.rows > ROWS else 1,
        )

    @property
    def whole(self) -> Bools:
        """``(h·R,)`` resources of which workers alone take some, in whole numbers, up to :data:`COVERED` in all.

        All these workers fit on that entry only, so that what they take is known before they are placed.
        """
        m = self.machines
        total = m.usable * m.count[:, None]
        numbers = (m.worker % 1 == 0).all(axis=0) & (total % 1 == 0) & ~m.ps.any(axis=0)
        elsewhere = ((m.room > 0) & (self.alone() < 0)[:, None]).T @ (m.worker > 0)
        return np.asarray(numbers & (total > 0) & (total <= COVERED) & ~elsewhere).ravel()

    def alone(self) -> Ints:
        """Return ``(M,)`` the only entry that workers of a type fit on, −1 where there are several or none."""
        fits = self.machines.room > 0
        return np.where(fits.sum(axis=1) == 1, fits.argmax(axis=1), -1)

    def by_slot(self, prices: Array) -> Array:
        """Return prices of rows as ``(h, R, T)``, without those of covers."""
        return prices[: self.rows].reshape(*self.machines.capacity.shape, self.slots)

    def expand(self, jobs: ElasticJobs, prices: Array) -> Array:
        """Return prices of rows as those of the rows of real servers."""
        found = self.by_slot(prices)
        return (found if self.machines is jobs.machines else found[jobs.machines.kind]).ravel()

    def taken(self, use: Array, found: Found) -> tuple[Ints, Array]:
        """Return the rows that a schedule takes, and how much of each; `use` ``(h, R)`` is what it takes per slot."""
        some = np.flatnonzero(use)
        rows = some[:, None] * self.slots + np.arange(found.start, found.end)
        return rows.ravel(), np.repeat(use.ravel()[some], found.slots)


def bends(late: Array) -> Bools:
    """Return ``(…, T + 1)`` the slots where the cost of an end is not concave, and the last one."""
    found = np.ones(late.shape, bool)
    with np.errstate(invalid="ignore"):
        steps = np.diff(late)
        found[..., 1:-1] = ~(np.diff(steps) <= 1e-12 * np.abs(late[..., 1:-1]))
    return found


@dataclass(frozen=True, eq=False)
class Scheduled(Choice):
    """A column with the run that it stands for."""

    found: Found


def columns_of(jobs: ElasticJobs, first_slot: int, decision: Runs) -> Iterator[tuple[int, Choice]]:
    """Yield the columns of runs whose first slot has the number `first_slot`; not of those that end after the last."""
    real = Grid(jobs.machines, jobs.slots)
    order = np.argsort(decision.run, kind="stable")
    entries = np.split(order, np.searchsorted(decision.run[order], np.arange(1, max(len(decision.job), 1))))
    for i, job in enumerate(decision.job.tolist()):
        workers, ps = np.zeros(jobs.machines.size, np.int64), np.zeros(jobs.machines.size, np.int64)
        server = decision.server[entries[i]]
        workers[server], ps[server] = decision.workers[entries[i]], decision.ps[entries[i]]
        types = int(decision.worker_type[i]), int(decision.ps_type[i])
        run = Found(0.0, 0.0, -1, int(decision.start[i]) - first_slot, int(decision.slots[i]), *types, workers, ps)
        if run.end <= jobs.slots:
            taken = real.taken(jobs.machines.use(*types, workers, ps), run)
            yield job, Scheduled(-float(jobs.late[job, run.end]), *taken, run)


def runs(packed: Packed, first_slot: int) -> Runs:
    """Return the chosen schedules as a decision whose first slot has the number `first_slot`."""
    chosen = [(job, c.found) for job, c in sorted(packed.chosen.items()) if isinstance(c, Scheduled)]
    return runs_of(chosen, first_slot)
