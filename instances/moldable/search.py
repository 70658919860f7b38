"""Free resources and prices by server and slot, and the exact cheapest run of a job.

For every choice of types, number of workers and start, the cheapest placement is found exactly:

- everything on one server: the cheapest one that has room;
- parameter servers: all ``s = max(1, ⌈(N − g)·b/B⌉)`` of them are on one host, together with ``g < N`` workers; the
  other workers go where they are cheapest. Several hosts would only add cost, since by (2i) each must serve all workers
  on other servers;
- a ring on several servers: workers where they are cheapest, at least one on a second server.

Sums of prices over time give the cost of a window of slots in O(1) per server; the number of workers that fit in all of
its slots is a minimum over blocks of slots, computed for many servers at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.moldable.machines import Machines
from schedgap.instances.moldable.options import RunOptions, Runs


@dataclass(frozen=True, eq=False)
class FoundRun:
    """A run of one job; its PS type is −1 in a ring.

    `total` is the minimised objective, `cost` the cost of resources in it; `workers` and `ps` are ``(h,)`` by server.
    """

    total: float
    cost: float
    option: int
    start: int
    slots: int
    worker_type: int
    ps_type: int
    workers: Ints
    ps: Ints

    @property
    def end(self) -> int:
        """First slot after the run."""
        return self.start + self.slots


def runs_of(chosen: Sequence[tuple[int, FoundRun]], first_slot: int) -> Runs:
    """Return the decision in which these runs of jobs take place; slot 0 of the ledger is the slot `first_slot`."""
    rows = [(job, f.start + first_slot, f.slots, f.worker_type, f.ps_type) for job, f in chosen]
    job, start, slots, worker_type, ps_type = np.array(rows, np.int64).reshape(-1, 5).T.copy()
    places = [(run, f, h) for run, (_, f) in enumerate(chosen) for h in np.flatnonzero(f.workers + f.ps).tolist()]
    entries = [(run, h, f.workers[h], f.ps[h]) for run, f, h in places]
    run, server, workers, ps = np.array(entries, np.int64).reshape(-1, 4).T.copy()
    return Runs(job, start, slots, worker_type, ps_type, run, server, workers, ps)


class Ledger:
    """Free resources and prices of servers over ``T`` slots, numbered from 0.

    Nothing may be booked if the machines are classes of servers, or if everything is always free (`constant`, for
    pricing).
    """

    def __init__(self, machines: Machines, options: RunOptions, slots: int, constant: bool = False) -> None:
        from schedgap.instances.moldable import _kernels as kernels

        self._kernels: Any = kernels
        self.machines, self.options, self.slots = machines, options, slots
        h, resources = machines.capacity.shape
        length = 1 if constant else slots
        types, servers = len(machines.worker), len(machines.ps)
        free = np.repeat(machines.capacity[None], length, axis=0)
        self.free = free.transpose(1, 2, 0)
        self.price = np.zeros((h, resources, slots))
        m = machines
        self._servers = kernels.ServerArrays(
            m.count, m.capacity, m.worker, m.ps, m.worker_bandwidth, m.ps_bandwidth, m.total
        )
        sums = (np.zeros((*shape, slots + 1)) for shape in [(types, h), (servers, h), (types,), (servers,)])
        room: Any = np.zeros((types, length, h), np.int32)  # half the memory traffic of 64 bits
        blocks = -(-length // kernels.BLOCK)
        least = free[:blocks].copy(), room[:, :blocks].copy()
        self._tables = kernels.PlacementTables(free, room, *least, np.zeros((types, length), np.int64), *sums)
        order, rank, filled = (np.zeros(h, np.int64) for _ in range(3))
        scratch = order, rank, filled, np.zeros(h), np.zeros((h, resources)), np.zeros(6, np.int64)
        self._window = kernels.WorkerWindow(np.zeros(h), room[0, 0].copy(), *scratch)
        self._best = kernels.BestRun(np.zeros(4), np.zeros(6, np.int64))
        self._everywhere = np.arange(h)
        self._all_stops = np.ones(slots + 1, bool)
        self._changed(self._everywhere, 0, length)

    def _changed(self, servers: Ints, first: int, last: int) -> None:
        for h in servers:
            self._kernels.recount(h, first, last, self._servers, self.machines.able, self._tables)

    def post(self, price: Array, servers: Ints | None = None) -> None:
        """Set non-negative prices ``(len(servers), R, T)`` per unit and slot on these servers (by default all)."""
        where = self._everywhere if servers is None else servers
        self.price[where] = price
        self._kernels.totals(where, self.price, self.machines.worker, self._tables.worker_sum)
        self._kernels.totals(where, self.price, self.machines.ps, self._tables.ps_sum)
        self._kernels.floors(self._tables.worker_sum, self._tables.worker_floor)
        self._kernels.floors(self._tables.ps_sum, self._tables.ps_floor)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Arguments of compiled loops that book and search by themselves: servers, `able`, tables, scratch space."""
        return self._servers, self.machines.able, self._tables, self._window, self._best

    def find(
        self,
        job: int,
        earliest: int,
        latest: int | None = None,
        *,
        late: Array | None = None,
        stops: Bools | None = None,
        limit: float = np.inf,
        printed: bool = False,
        first: bool = False,
        among: slice | None = None,
        extra: Array | None = None,
    ) -> FoundRun | None:
        """Return the run of least ``late[end] + cost`` on free resources, or ``None`` if none is below `limit`.

        Ties are broken by the earliest end, then the least share of the cluster, then the order of options, starts and
        servers.

        Parameters
        ----------
        job
            The job that runs.
        earliest, latest
            First slot, and the slot before which the run ends (by default all slots).
        late
            ``(T + 1,)`` cost of each end: non-decreasing, infinite for ends that are too late; by default 0.
        stops
            ``(T + 1,)`` whether a run may begin or end at a slot (by default all); a run at `earliest` always may. If
            the total is concave between stops for every placement, the optimum is not missed.
        limit
            Strict upper limit on the total.
        printed
            Whether to place jobs on several servers by Zhou's Algorithms 4 and 7 as printed; rings then need the
            options of :func:`~schedgap.instances.moldable.options.printed_rings`.
        first
            Whether to break ties only by the order of options, starts and servers.
        among
            Options to choose from, instead of all options of the job.
        extra
            ``(options, T + 1)`` non-decreasing cost of each option apart from its placement up to each slot; by default
            none.
        """
        kernels = self._kernels
        chosen = self.options.of(job) if among is None else among
        if chosen.start == chosen.stop:
            return None
        o = self.options
        fields = (o.slots, o.worker_type, o.ps_type, o.together, o.workers)
        choices = kernels.JobOptions(*(field[chosen] for field in fields))
        last = self.slots if latest is None else min(latest, self.slots)
        ends = np.zeros(self.slots + 1) if late is None else late
        halts = self._all_stops if stops is None else stops
        more = np.zeros((0, 0)) if extra is None else extra
        how = printed * kernels.PRINTED | first * kernels.FIRST
        goal = kernels.SearchGoal(earliest, last, ends, halts, float(limit), how, more)
        kernels.search(choices, goal, self._servers, self._tables, self._window, self._best)
        return self._read(choices, chosen.start) if self._best.where[0] >= 0 else None

    def _read(self, choices: Any, first: int) -> FoundRun:
        workers, ps = np.zeros(self.machines.size, np.int64), np.zeros(self.machines.size, np.int64)
        self._kernels.place(choices, self._servers, self._tables, self._window, self._best, workers)
        option, start, end, host, _, servers = self._best.where.tolist()
        if servers:
            ps[host] = servers
        return FoundRun(
            total=float(self._best.value[0]),
            cost=float(self._best.value[1]),
            option=first + option,
            start=start,
            slots=end - start,
            worker_type=int(choices.worker_type[option]),
            ps_type=int(choices.ps_type[option]),
            workers=workers,
            ps=ps,
        )

    def use(self, found: FoundRun) -> Array:
        """Return ``(h, R)`` resources that a run takes on each server in each of its slots."""
        return self.machines.use(found.worker_type, found.ps_type, found.workers, found.ps)

    def set_free(self, free: Array) -> None:
        """Set the free resources of all servers ``(h, R, T)``."""
        changed = (free != self.free).any(axis=1)
        servers = np.flatnonzero(changed.any(axis=1))
        if servers.size:
            slots = np.flatnonzero(changed.any(axis=0))
            self.free[servers] = free[servers]
            self._changed(servers, int(slots[0]), int(slots[-1]) + 1)

    def book(self, found: FoundRun, sign: int = 1) -> Ints:
        """Book the resources of a run (release them with `sign` −1); return its servers."""
        touched = np.flatnonzero(found.workers + found.ps)
        self.free[touched, :, found.start : found.end] -= sign * self.use(found)[touched][:, :, None]
        self._changed(touched, found.start, found.end)
        return touched
