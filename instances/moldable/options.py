"""Options of moldable jobs (types, number of workers and duration) that are worth considering, and the decision.

With ``N`` workers of type m that together do ``N·ρ`` mini-batches per slot, a job of W mini-batches takes
``d = ⌈W/(N·ρ)⌉`` slots (Zhou, (2f)). Only Pareto-minimal pairs ``(N, d)`` and undominated types matter: at non-negative
prices, an option that takes no more of any resource for no longer costs no more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.instances.arrays import MBIT_PER_GBIT, MBIT_PER_MB, ROUNDING, SLACK, Array, Bools, Decision, Ints
from schedgap.instances.errors import InstanceError
from schedgap.instances.moldable.machines import Machines, classes, fitting
from schedgap.instances.schema import DistributedProfile, Job, PSType, WorkerType

LONGEST = 1e15
"""Upper limit on the slots of a run."""


@dataclass(frozen=True, eq=False)
class Rates:
    """Times of one worker of each of ``n`` jobs, in slots per mini-batch; infinite if it cannot run.

    A worker of a job with ``N`` workers takes ``compute + f·(update + transfer)`` slots for a mini-batch, without
    `transfer` if everything is on one server. ``f`` is 1 with parameter servers (Zhou, eq. 1) and ``(N − 1)/N`` in a
    ring (eq. 14), which has no PS types.

    Attributes
    ----------
    compute, transfer
        ``(n, M)``.
    update
        ``(n, P)`` by PS type; ``(n, 1)`` in a ring.
    """

    compute: Array
    update: Array
    transfer: Array
    ring: bool

    def slots(
        self, job: int, worker_type: Ints | int, ps_type: Ints | int, workers: Ints | int, together: Bools | bool
    ) -> Array:
        """Return the slots of one worker for a mini-batch; all but `job` broadcast. A ring ignores `ps_type`."""
        share = (workers - 1) / workers if self.ring else 1.0
        others = self.update[job, 0 if self.ring else ps_type]
        others = others + np.where(together, 0.0, self.transfer[job, worker_type])
        return np.asarray(self.compute[job, worker_type] + share * others)


def rates(
    jobs: Sequence[Job], workers: Sequence[WorkerType], servers: Sequence[PSType], slot_s: float
) -> tuple[Rates, Rates]:
    """Return the rates with parameter servers, and those in a ring, by worker and PS type.

    This is the only place where units are converted: mini-batch and update times are milliseconds in the file,
    gradients megabytes, bandwidths Gbit/s; rates are slots per mini-batch.

    Mini-batch times by worker type come from a job's profile, or else from its rates (one worker with g GPUs does g
    times the iterations of one GPU). A profile's rates for all types (`colocated_rate_per_s`, `spread_rate_per_s`)
    replace mini-batch, update and transfer times. It raises `InstanceError` if a job has neither profile nor rates.
    """
    rows = [_seconds(job, i, workers, servers) for i, job in enumerate(jobs)]
    compute, update, ring, transfer = (np.array([row[part] for row in rows], float) / slot_s for part in range(4))
    return Rates(compute, update, transfer, ring=False), Rates(compute, ring, transfer, ring=True)


def _seconds(
    job: Job, position: int, workers: Sequence[WorkerType], servers: Sequence[PSType]
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the seconds that a job's steps take: a mini-batch, an update by PSs or in a ring, and a transfer.

    The lists have a mini-batch's time by worker type, an update's by PS type, an update's in a ring (one value), and
    a transfer's by worker type.
    """
    profile = job.distributed or DistributedProfile()
    if together := profile.colocated_rate_per_s:
        apart = max(1 / (profile.spread_rate_per_s or together) - 1 / together, 0.0)
        return [1 / together] * len(workers), [0.0] * len(servers), [0.0], [apart] * len(workers)
    times = profile.minibatch_ms
    if not times and not job.rates:
        raise InstanceError(f"jobs[{position}]: a distributed job needs mini-batch times, rates, or a colocated rate")
    ring_ms = profile.ring_update_ms
    # Gradients are sent and received through a worker's bandwidth (Zhou's 2π/b).
    sent = 2 * profile.gradient_mb * MBIT_PER_MB
    rates = [job.rates.get(w.gpu_type or "", 0.0) * w.gpus for w in workers]
    compute = [1 / rate if rate > 0 else math.inf for rate in rates]
    return (
        [times[w.name] / 1000 if w.name in times else own for w, own in zip(workers, compute, strict=True)],
        [profile.update_ms.get(s.name, 0.0) / 1000 for s in servers],
        [(min(profile.update_ms.values(), default=0.0) if ring_ms is None else ring_ms) / 1000],
        [sent / (w.bandwidth_gbps * MBIT_PER_GBIT) for w in workers],
    )


@dataclass(frozen=True, eq=False)
class RunOptions:
    """Options of ``n`` jobs, concatenated: those of job j are at ``first[j] … first[j + 1] − 1``.

    Attributes
    ----------
    slots, worker_type, ps_type, together, workers
        ``(o,)`` duration, types (PS type −1 in a ring), whether all is on one server, number of workers; within a job
        sorted by the first two with those on one server first, or in the order of Zhou's loops (:func:`options_of`).
    """

    first: Ints
    slots: Ints
    worker_type: Ints
    ps_type: Ints
    together: Bools
    workers: Ints

    @cached_property
    def job(self) -> Ints:
        """``(o,)`` job of each option."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def of(self, job: int) -> slice:
        """Return the slice of a job's options."""
        return slice(int(self.first[job]), int(self.first[job + 1]))

    def take(self, which: Ints) -> RunOptions:
        """Return only the options with these ascending indices, for the same jobs."""
        first = np.concatenate(([0], np.cumsum(np.bincount(self.job[which], minlength=len(self.first) - 1))))
        names = ("slots", "worker_type", "ps_type", "together", "workers")
        return RunOptions(first, **{name: getattr(self, name)[which] for name in names})

    @cached_property
    def shortest(self) -> Ints:
        """``(n,)`` slots of each job's fastest option; 0 for jobs without any."""
        nonempty = np.diff(self.first) > 0
        out = np.zeros(len(nonempty), np.int64)
        out[nonempty] = np.minimum.reduceat(self.slots, self.first[:-1][nonempty])
        return out


@dataclass(frozen=True, eq=False, kw_only=True)
class Moldable:
    """``n`` moldable jobs and their servers.

    Attributes
    ----------
    rates
        Slots per mini-batch of one worker.
    arrival
        ``(n,)`` first slot in which each job may run, as the view numbers slots.
    work, most
        ``(n,)`` mini-batches, and maximum number of workers (Zhou's ``E·D·K`` and ``D``).
    slots
        Number of slots, ``T``.
    """

    machines: Machines
    rates: Rates
    ids: tuple[str, ...]
    arrival: Ints
    work: Array
    most: Ints
    slots: int

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.ids)

    @cached_property
    def options(self) -> RunOptions:
        """Undominated options of all jobs."""
        return options_of(self.machines, self.work, self.most, self.rates)

    @cached_property
    def classes(self) -> Machines:
        """Machines with one entry per class of interchangeable servers."""
        return classes(self.machines)


@dataclass(frozen=True, eq=False, repr=False)
class Runs(Decision):
    """``a`` uninterrupted runs of jobs, and ``e`` entries with the placement of their workers and parameter servers.

    Attributes
    ----------
    job, start, slots
        ``(a,)`` index of the job, first slot, number of slots: run i holds its servers in slots
        ``start[i] … start[i] + slots[i] − 1``. A job that is never interrupted has one run.
    worker_type, ps_type
        ``(a,)`` types; the PS type of a ring is −1.
    run, server
        ``(e,)`` index of the run and of the server; each pair at most once.
    workers, ps
        ``(e,)`` workers and parameter servers of the run on that server, not both 0.
    """

    job: Ints
    start: Ints
    slots: Ints
    worker_type: Ints
    ps_type: Ints
    run: Ints
    server: Ints
    workers: Ints
    ps: Ints


def options_of(
    machines: Machines,
    work: Array,
    most: Ints,
    rates: Rates,
    *,
    prune: bool = True,
    loops: bool = False,
    lone: bool = True,
) -> RunOptions:
    """Return the options of all jobs that fit on the empty machines.

    Parameters
    ----------
    machines, work, most, rates
        As in :class:`Moldable`.
    prune
        Whether to drop dominated options. The rest always contains a cheapest option at any non-negative prices,
        whatever is free.
    loops
        Whether to order options like the loops of Zhou's Algorithms 3 to 7: all on one server first, then by worker
        type and PS type, then by duration, and in a ring by the number of workers. Then an option is dropped only if an
        earlier one dominates it: it is never cheaper than that one, so that the first of the cheapest remains.
    lone
        Whether the option of a single worker on another server than its PS rules out options of more workers that take
        as long. Methods that never place a single worker so need false. Without `prune`, its option then remains beside
        those of more workers.
    """
    limits = largest(classes(machines), rates.ring, int(np.max(most, initial=1)))
    tables = [_pareto(job, work[job], np.minimum(most[job], limits), rates, lone) for job in range(len(work))]
    table = np.concatenate([np.zeros((6, 0), np.int64), *tables], axis=1)
    if prune:
        from schedgap.instances.moldable import _kernels as kernels

        costs = _costs(machines, table)
        order = _loop_order(table) if loops else np.lexsort((costs.sum(axis=1), table[1], table[4], table[0]))
        group = 2 * table[0, order] + table[4, order]
        table = table[:, order[kernels.undominated(group, np.ascontiguousarray(costs[order]))]]
    return _sorted(table, len(work), loops)


def _pareto(job: int, work: float, most: Ints, rates: Rates, lone: bool) -> Ints:
    """Return the table ``(6, o)`` of a job's options with the fewest workers per duration; `most` is ``(M, P, 2)``."""
    number = np.arange(1, int(most.max(initial=0)) + 1)
    kinds, servers = np.flatnonzero(np.isfinite(rates.compute[job])), np.arange(most.shape[1])
    where = kinds[:, None, None, None], servers[:, None, None]
    per_batch = rates.slots(job, *where, number, np.array([[False], [True]]))
    slots = np.maximum(np.ceil(np.minimum(work * per_batch / number, LONGEST) * (1 - ROUNDING)), 1)
    able = number <= most[kinds][..., None]
    able[:, :, 0] &= number > int(rates.ring)
    slots = np.where(able, slots, np.inf)
    earlier = np.insert(slots, 0, np.inf, axis=3)[..., :-1]
    if not lone:
        earlier[:, :, 0, 1:2] = np.inf
    before = np.minimum.accumulate(earlier, axis=3)
    kind, server, one, at = index = np.nonzero(slots < before)
    ps_type = np.full_like(server, -1) if rates.ring else server
    return np.stack([np.full_like(kind, job), slots[index].astype(np.int64), kinds[kind], ps_type, one, number[at]])


def _loop_order(table: Ints) -> Ints:
    """Return the order of a table of options in Zhou's loops; rings of a worker type stay in the order of the table."""
    inner = np.where(table[3] < 0, 0, table[1])
    return np.lexsort((inner, table[3], table[2], -table[4], table[0]))


def _sorted(table: Ints, jobs: int, loops: bool) -> RunOptions:
    """Return the options of a table ``(6, o)``: job, slots, worker type, PS type, together, workers."""
    order = _loop_order(table) if loops else np.lexsort((-table[4], table[2], table[1], table[0]))
    # Contiguous rows: kernels are compiled again for others.
    job, slots, worker_type, ps_type, together, workers = np.take(table, order, axis=1)
    first = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=jobs))])
    return RunOptions(first, slots, worker_type, ps_type, together.astype(bool), workers)


def printed_rings(options: RunOptions, work: Array, most: Ints, rates: Rates, loops: bool = False) -> RunOptions:
    """Return the options of rings by Zhou's Algorithm 7 as printed: on several servers, as many workers as slots.

    Its line 5 sets N̂ = d̂, where N̂ = Φ′ would place the Φ′ workers for which d̂ was computed. It tries every Φ′ up to
    D and does not require a second server. The closed window ``[t⁻, t⁺]`` of line 10 is read as that of Algorithm 6,
    ``[t⁻, t⁺)``.

    Those of `options` on one server (Algorithm 6) remain; the other arguments are as in :func:`options_of`.
    """
    o = options
    columns = (o.job, o.slots, o.worker_type, o.ps_type, o.together, o.workers)
    rows = [np.stack([column[o.together] for column in columns]).astype(np.int64)]
    for job, m in np.argwhere(np.isfinite(rates.compute)).tolist():
        number = np.arange(1, int(most[job]) + 1)
        exact = work[job] * rates.slots(job, m, -1, number, False) / number
        every = np.maximum(np.ceil(exact * (1 - ROUNDING)), 1).astype(np.int64)
        slots = every[np.sort(np.unique(every, return_index=True)[1])]
        rows.append(np.stack(np.broadcast_arrays(job, slots, m, -1, 0, slots)))
    return _sorted(np.concatenate(rows, axis=1), len(work), loops)


def _costs(m: Machines, table: Ints) -> Array:
    """Return costs ``(o, c)`` of options; one option dominates another if none of its costs is larger.

    For options on one server they are the resources of all workers and the PS together; on several servers, the number
    of workers, and the resources and bandwidth of one worker and one PS. In both cases, further columns mark the
    classes of servers that a type cannot use, and the last one is the duration.
    """
    _, slots, worker, server, together, number = table
    one = together == 1
    ring = not server.size or server[0] < 0
    ps = np.zeros((len(slots), len(m.resources))) if ring else m.ps[server]
    need = m.worker[worker]
    apart = np.column_stack((number, need, m.worker_bandwidth[worker], ps))
    if not ring:
        apart = np.column_stack((apart, -m.ps_bandwidth[server]))
    whole = np.zeros_like(apart)
    whole[:, : need.shape[1]] = number[:, None] * need + ps
    return np.column_stack((np.where(one[:, None], whole, apart), ~classes(m).able.T[:, worker].T, slots))


def largest(m: Machines, ring: bool, most: int) -> Ints:
    """Return the ``(M, P, 2)`` most workers that fit on several empty servers (``[…, 0]``) and on one (``[…, 1]``).

    At most `most` workers per server are considered. If N workers fit, so do N − 1, except that a ring on several
    servers has at least two workers.
    """
    limits = np.zeros((len(m.worker), 1 if ring else len(m.ps), 2), np.int64)
    for worker, server in np.ndindex(limits.shape[:2]):
        if ring:
            room = m.room[worker]
            several = int(m.count[room > 0].sum()) > 1
            limits[worker, server] = room @ m.count if several else 0, room.max(initial=0)
        else:
            limits[worker, server] = _with_servers(m, worker, server, most)
    return limits


def _with_servers(m: Machines, worker: int, server: int, most: int) -> tuple[int, int]:
    room, e, z = m.room[worker], m.worker[worker], m.ps[server]
    hosts = fitting(m.capacity, z) > 0
    next_to_ps = np.where(m.able[worker] & hosts, fitting(m.capacity, e, z), 0)
    total = int(room @ m.count)
    spread = 0
    per_server = m.ps_bandwidth[server] / m.worker_bandwidth[worker]
    for host in np.flatnonzero(hosts).tolist():
        for g in range(min(int(room[host]), most) + 1):
            servers = int(fitting(m.capacity[[host]], z, g * e)[0])
            covered = math.floor(min(servers * per_server * (1 + SLACK), 1e15))
            others = min(covered, total - int(room[host]))
            if servers > 0 and others >= 1:
                spread = max(spread, g + others)
    return spread, int(next_to_ps.max(initial=0))
