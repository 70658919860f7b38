r"""Pricing of jobs that run as copies: the cheapest GPUs that together do a job's work, for every last slot.

Finding the cheapest GPUs that do a job's work by a last slot is a knapsack problem: only the number of GPUs of each
rate matters, since the cheapest cells come first. :mod:`schedgap.models.engine.gangs._copies` solves it exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.views.hadar import HadarView
from schedgap.models.engine.columns import Choice, Columns, Domain, Oracle, Packing, Priced

NOTHING = -1e200
"""A payoff below that of every column."""


class ForkedPricing(Oracle):
    """Pricing of jobs with copies: the oracle finds, for every last slot, the cheapest GPUs that do a job's work.

    Capacities are (class of servers, slot), row ``c·T + t``; blocks are jobs, ends are last slots.

    Parameters
    ----------
    view
        Jobs, GPUs, slots.
    """

    def __init__(self, view: HadarView) -> None:
        self.view = view
        servers = classes(view)
        self.kind, self.limit, self.progress = servers.kind, servers.limit, servers.progress
        self.room = np.repeat(servers.gpus[:, None], view.slots, axis=1)
        self.worth = np.array([view.utility(j) for j in range(view.size)]).reshape(view.size, view.slots)
        # Windows of slots do not help here: bounds are larger and take longer.
        self.packing = Packing(self.room.ravel().astype(float), view.size, floor=0.0, worth=self.worth)
        self.anything = Domain.of(self.packing)
        self.possible = able(view, servers)

    def __call__(self, prices: Array, domain: Domain) -> Priced:
        """Return the best column of every job at the prices ``(c·T,)`` in a domain; see :class:`.Priced`."""
        payoffs, bounds, *columns = self._price(self.possible, prices.reshape(self.room.shape), self.room, domain)
        most, by_end = np.full(self.view.size, -np.inf), np.full_like(self.worth, -np.inf)
        most[self.possible], by_end[self.possible] = payoffs, bounds
        return Priced(most, self._columns(*columns), by_end)

    def insert(self, job: int, room: Array, prices: Array) -> Choice | None:
        """Return the best column of one job at `prices` within `room`, both ``(c·T,)``, or ``None``."""
        if job not in self.possible:
            return None
        shape = self.room.shape
        free = np.rint(room).astype(np.int64).reshape(shape)
        _, _, held, cell, gpus = self._price(np.array([job]), prices.reshape(shape), free, self.anything)
        if not held[0]:
            return None
        return Choice(float(self.worth[job, (cell % self.view.slots).max()]), cell, gpus.astype(float))

    def _price(self, which: Ints, prices: Array, room: Ints, domain: Domain) -> tuple[Array, Array, Ints, Ints, Ints]:
        from schedgap.models.engine.gangs import _copies as kernels

        count, work = len(which), self.view.workload.work
        floor = np.where(domain.must, NOTHING, 0.0)
        uses = np.ascontiguousarray(np.array(domain.uses, np.int64).reshape(-1, 4).T)
        fixed = (self.view.arrival, work, self.progress, self.limit), domain.worth, floor, uses
        size = room.size + 40 * count
        while True:
            most, by_end, held = np.zeros(count), np.zeros((count, self.view.slots)), np.zeros(count, np.int64)
            cell, gpus = np.zeros(size, np.int64), np.zeros(size, np.int64)
            used = kernels.price(np.ascontiguousarray(prices), room, which, *fixed, (most, by_end, held, cell, gpus))
            if used >= 0:
                most[most <= NOTHING] = -np.inf
                return most, by_end, held, cell[:used], gpus[:used]
            size *= 2

    def _columns(self, held: Ints, cell: Ints, gpus: Ints) -> Columns:
        """Return the GPUs that jobs buy as columns; jobs that buy nothing have no column."""
        buyers = np.flatnonzero(np.diff(held, prepend=0))
        starts = np.concatenate([[0], held[buyers]])
        last = np.maximum.reduceat(cell % self.view.slots, starts[:-1]) if buyers.size else buyers
        job = self.possible[buyers]
        use = sp.csc_array((gpus.astype(float), cell, starts), shape=(self.room.size, len(job)))
        return Columns(job, self.worth[job, last], use, last)


class ServerClasses(NamedTuple):
    """``c`` classes of servers with the same GPU type and size.

    Each class has a `gpu_type` and `gpus` in total, ``(c,)``; `kind` ``(h,)`` is the class of each server. All copies
    of a job together hold at most `limit` ``(n, c)`` GPUs of a class, and each GPU does `progress` ``(n, c)`` per slot.
    """

    gpu_type: Ints
    gpus: Ints
    kind: Ints
    limit: Ints
    progress: Array


def classes(view: HadarView) -> ServerClasses:
    """Return the classes of servers, with the most GPUs that the copies of a job can hold and their progress."""
    hosts, work = view.servers, view.workload
    kinds = np.column_stack((hosts.gpu_type, hosts.gpus))
    sizes, kind, count = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
    limit = np.minimum(work.gpus[:, None], sizes[:, 1]) * count
    progress = np.ascontiguousarray(work.rates[:, sizes[:, 0]] * view.slot_s)
    return ServerClasses(sizes[:, 0], sizes[:, 1] * count, kind.ravel(), limit, progress)


def able(view: HadarView, of: ServerClasses) -> Ints:
    """Return the jobs that can complete when they run as copies."""
    alone = (of.limit * of.progress).sum(axis=1) * (view.slots - view.arrival)
    return np.flatnonzero(alone >= view.workload.work * (1 - ROUNDING))
