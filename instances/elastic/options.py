"""Which choices of types, number of workers and duration are worth considering for a job.

With ``N`` workers of type m that together do ``N·ρ`` mini-batches per slot, a job of W mini-batches takes
``d = ⌈W/(N·ρ)⌉`` slots (Zhou, (2f)). Only Pareto-minimal pairs ``(N, d)`` matter, and only types that are not beaten by
others in everything: at prices of 0 or more, what takes less of everything for no longer costs no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.elastic.machines import Machines, classes, fitting

ROUNDING = 1e-9
"""Relative error of work that counts as none."""


@dataclass(frozen=True, eq=False)
class Rates:
    """How fast one worker of each of ``n`` jobs is, in slots per mini-batch; infinite where it cannot run.

    A worker of a job with ``N`` workers takes ``compute + f·(update + transfer)`` slots for a mini-batch, without
    `transfer` where everything is on one server. ``f`` is 1 with parameter servers (Zhou, eq. 1) and ``(N − 1)/N`` in a
    ring (eq. 14), which has no PS types.

    Attributes
    ----------
    compute
        ``(n, M)``.
    update
        ``(n, P)`` by PS type; ``(n, 1)`` in a ring.
    transfer
        ``(n, M)``.
    ring
        Whether workers form a ring.
    """

    compute: Array
    update: Array
    transfer: Array
    ring: bool

    def slots(self, job: int, worker_type: int, ps_type: int, workers: int, together: bool) -> float:
        """Return the slots that one worker takes for a mini-batch; `ps_type` is −1 in a ring."""
        share = (workers - 1) / workers if self.ring else 1.0
        others = self.update[job, 0 if self.ring else ps_type]
        others += 0.0 if together else self.transfer[job, worker_type]
        return float(self.compute[job, worker_type] + share * others)


@dataclass(frozen=True, eq=False)
class Options:
    """Choices of ``n`` jobs one behind another: those of job j are at ``first[j] … first[j + 1] − 1``.

    Attributes
    ----------
    first
        ``(n + 1,)``.
    slots, worker_type, ps_type, together, workers
        ``(o,)`` duration, types (PS type −1 in a ring), whether all is on one server, number of workers; within a job
        sorted by the first two, and all on one server first.
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
        """Return where the options of a job are."""
        return slice(int(self.first[job]), int(self.first[job + 1]))

    @cached_property
    def shortest(self) -> Ints:
        """``(n,)`` slots of each job's fastest option; 0 for jobs without any."""
        some = np.diff(self.first) > 0
        out = np.zeros(len(some), np.int64)
        out[some] = np.minimum.reduceat(self.slots, self.first[:-1][some])
        return out


def options(machines: Machines, work: Array, most: Ints, rates: Rates, prune: bool = True) -> Options:
    """Return the options of all jobs that fit on the empty machines.

    Parameters
    ----------
    machines
        Servers and types.
    work, most
        ``(n,)`` mini-batches, and largest number of workers (Zhou's ``E·D·K`` and ``D``).
    rates
        Slots per mini-batch.
    prune
        Whether dominated options are left out. What is left always contains a cheapest one at any prices of 0 or more,
        whatever is free.
    """
    from schedgap.instances.elastic import _options as kernels

    each = (rates.compute, rates.update, rates.transfer)
    most_by_type = largest(classes(machines), rates.ring, int(np.max(most, initial=1)))
    found = kernels.pareto(np.asarray(work, float), np.asarray(most, np.int64), most_by_type, each, rates.ring)
    if prune:
        costs = _costs(machines, found)
        order = np.lexsort((costs.sum(axis=1), found[1], found[4], found[0]))
        group = 2 * found[0, order] + found[4, order]
        found = found[:, order[kernels.undominated(group, np.ascontiguousarray(costs[order]))]]
    order = np.lexsort((-found[4], found[2], found[1], found[0]))
    job, slots, worker_type, ps_type, together, workers = found[:, order]
    first = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=len(work)))])
    return Options(first, slots, worker_type, ps_type, together.astype(bool), workers)


def printed_rings(kept: Options, work: Array, most: Ints, rates: Rates) -> Options:
    """Return the options of rings as Zhou's Algorithm 7 is printed: on several servers, as many workers as slots.

    Its line 5 sets N̂ = d̂, where N̂ = Φ′ would place the Φ′ workers that d̂ was computed with. It tries every Φ′ up to
    D, and does not ask for a second server.

    Parameters
    ----------
    kept
        Options whose choices on one server (Algorithm 6) remain.
    work, most, rates
        As in :func:`options`.
    """
    alone = kept.together
    columns = (kept.job, kept.slots, kept.worker_type, kept.together, kept.workers)
    rows = [np.stack([column[alone] for column in columns]).astype(np.int64)]
    for job, m in np.argwhere(np.isfinite(rates.compute)).tolist():
        number = np.arange(1, int(most[job]) + 1)
        each = [rates.slots(job, m, -1, int(n), False) for n in number]
        slots = np.unique(np.maximum(np.ceil(work[job] * np.array(each) / number * (1 - ROUNDING)), 1)).astype(np.int64)
        rows.append(np.stack([np.full(len(slots), job), slots, np.full(len(slots), m), np.zeros_like(slots), slots]))
    found = np.concatenate(rows, axis=1)
    job, slots, worker_type, together, workers = found[:, np.lexsort((-found[3], found[2], found[1], found[0]))]
    first = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=len(work)))])
    return Options(first, slots, worker_type, np.full(len(slots), -1), together.astype(bool), workers)


def _costs(m: Machines, found: Ints) -> Array:
    """Return ``(o, c)`` what options take: none that takes more of something dominates.

    On one server that is what all workers and the PS take there; on several, the number of workers and what one worker
    and one PS take and can send. Classes of servers that a type cannot use count in either case.
    """
    _, slots, worker, server, together, number = found
    one = together == 1
    ring = not server.size or server[0] < 0
    ps = np.zeros((len(slots), len(m.resources))) if ring else m.ps[server]
    each = m.worker[worker]
    apart = np.column_stack((number, each, m.worker_bandwidth[worker], ps))
    if not ring:
        apart = np.column_stack((apart, -m.ps_bandwidth[server]))
    whole = np.zeros_like(apart)
    whole[:, : each.shape[1]] = number[:, None] * each + ps
    return np.column_stack((np.where(one[:, None], whole, apart), ~classes(m).able.T[:, worker].T, slots))


def largest(m: Machines, ring: bool, most: int) -> Ints:
    """Return ``(M, P, 2)`` the most workers that fit on empty servers: on several of them ([…, 0]) and on one.

    More than `most` on one server do not count.

    What fits with N workers fits with one fewer, too, but for a ring on several servers, which has at least two.
    """
    servers = 1 if ring else len(m.ps)
    found = np.zeros((len(m.worker), servers, 2), np.int64)
    for worker in range(len(m.worker)):
        for server in range(servers):
            found[worker, server] = _ring(m, worker) if ring else _with_servers(m, worker, server, most)
    return found


def _ring(m: Machines, worker: int) -> tuple[int, int]:
    room = m.room[worker]
    usable = int(m.count[room > 0].sum())
    return int(room @ m.count) if usable > 1 else 0, int(room.max(initial=0))


def _with_servers(m: Machines, worker: int, server: int, most: int) -> tuple[int, int]:
    room, e, z = m.room[worker], m.worker[worker], m.ps[server]
    hosts = fitting(m.capacity, z) > 0
    beside = np.where(m.able[worker] & hosts, fitting(np.maximum(m.capacity - z, 0.0), e), 0)
    one = int(beside.max(initial=0))
    total = int(room @ m.count)
    spread = 0
    per_server = m.ps_bandwidth[server] / m.worker_bandwidth[worker]
    for host in np.flatnonzero(hosts).tolist():
        for g in range(min(int(room[host]), most) + 1):
            servers = int(fitting((m.capacity[host] - g * e)[None, :], z)[0])
            covered = math.floor(min(servers * per_server * (1 + ROUNDING), 1e15))
            others = min(covered, total - int(room[host]))
            if servers and others >= 1:
                spread = max(spread, g + others)
    return spread, one
