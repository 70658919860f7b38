"""Servers with several resources, and the resources of a worker and a parameter server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from schedgap.instances.arrays import SLACK, Array, Bools, Ints
from schedgap.instances.schema import Instance, PSType, ServerGroup, WorkerType
from schedgap.instances.workload import server_names

SUMS = 10**6
"""Most sums, counted with multiplicity, that :func:`reachable` enumerates."""

UNITS = 500
"""Most whole units of all servers together that are counted: on 150 servers, they raise a bound by 0.02 % only."""

PLENTY = 10**6
"""Number of workers that fit on a server if none of its resources limits them."""


@dataclass(frozen=True, eq=False)
class Machines:
    """``h`` servers with ``R`` resources; ``M`` types of workers and ``P`` types of parameter servers.

    Attributes
    ----------
    capacity
        ``(h, R)`` capacity of one server.
    count
        ``(h,)`` number of such servers: 1, unless an entry stands for a class.
    kind
        ``(h,)`` class of each server; servers of a class are interchangeable.
    worker, ps
        ``(M, R)`` and ``(P, R)`` resources of one worker and one parameter server (Zhou's ``e`` and ``z``).
    worker_bandwidth, ps_bandwidth
        ``(M,)`` and ``(P,)`` bandwidths ``b`` and ``B``, in the same unit.
    able
        ``(M, h)`` whether workers of a type can run on a server (because of its GPU type).
    """

    names: tuple[str, ...]
    resources: tuple[str, ...]
    worker_types: tuple[str, ...]
    ps_types: tuple[str, ...]
    capacity: Array
    count: Ints
    kind: Ints
    worker: Array
    ps: Array
    worker_bandwidth: Array
    ps_bandwidth: Array
    able: Bools

    @property
    def size(self) -> int:
        """Number of servers (entries)."""
        return len(self.names)

    @cached_property
    def total(self) -> Array:
        """``(R,)`` capacity of all servers together."""
        return np.asarray(self.count @ self.capacity)

    @cached_property
    def room(self) -> Ints:
        """``(M, h)`` number of workers of a type that fit on one empty server."""
        numbers = np.array([fitting(self.capacity, need) for need in self.worker], np.int64)
        return np.where(self.able, numbers.reshape(self.able.shape), 0)

    @cached_property
    def usable(self) -> Array:
        """The ``(h, R)`` most of a server's capacity that whole numbers of workers and PSs can use together."""
        ps = np.array([fitting(self.capacity, need) > 0 for need in self.ps], bool).reshape(-1, self.size)
        fits, needs = np.vstack([self.room > 0, ps]), np.vstack([self.worker, self.ps])
        _, first, kind = np.unique(self.kind, return_index=True, return_inverse=True)
        rows = [
            [reachable(c, need[fits[:, h]]) for c, need in zip(self.capacity[h], needs.T, strict=True)] for h in first
        ]
        return np.array(rows, float).reshape(-1, len(self.resources))[kind]

    @property
    def allowed(self) -> Array:
        """The ``(h, R)`` most that may be in use on all servers of an entry together, see :attr:`usable`."""
        return np.asarray(self.usable * self.count[:, None] * (1 + SLACK))

    def use(self, worker_type: int, ps_type: int, workers: Ints, ps: Ints) -> Array:
        """Return ``(h, R)`` resources of workers and PSs ``(h,)`` of these types; the PS type of a ring is −1."""
        taken = workers[:, None] * self.worker[worker_type]
        return np.asarray(taken + ps[:, None] * self.ps[ps_type] if ps_type >= 0 else taken)


def fitting(capacity: Array, need: Array, taken: Array | float = 0.0) -> Ints:
    """Return the ``(h,)`` number of times that `need` ``(R,)`` fits into capacities ``(h, R)``, at most :data:`PLENTY`.

    Of the capacities, the amounts `taken`, which broadcast with them, are in use; the result is −1 if they exceed them.
    """
    free = capacity * (1 + SLACK) - taken
    positive = need > 0
    times = np.floor(free[:, positive] / need[positive]).min(axis=1, initial=PLENTY)
    return np.where((free < 0).any(axis=1), -1, times).astype(np.int64)


def reachable(capacity: float, needs: Array) -> float:
    """Return the largest sum of needs, each taken any number of times, up to a capacity.

    If all needs are 0, or there are too many sums (:data:`SUMS`), it is the capacity.
    """
    sums, limit = np.zeros(1), capacity * (1 + SLACK)
    for need in np.unique(needs[needs > 0]):
        times = math.floor(limit / need) + 1
        if len(sums) * times > SUMS:
            return capacity
        sums = np.add.outer(sums, need * np.arange(times)).ravel()
        sums = sums[sums <= limit]
        sums = sums[np.unique(np.round(sums / capacity, 12), return_index=True)[1]]
    return min(float(sums.max()), capacity) or capacity


def units(machines: Machines) -> tuple[tuple[int, float], ...]:
    """Return the resources that all workers take in multiples of one unit, with the unit, if PSs hide this.

    There are at most :data:`UNITS` of them on all servers together. Then at most the whole units of a server are in use
    by workers, which is less than its :attr:`Machines.usable`.
    """
    found = []
    for r, needs in enumerate(machines.worker.T.tolist()):
        unit = min((need for need in needs if need > 0), default=0.0)
        whole = unit > 0 and all(abs(need / unit - round(need / unit)) <= SLACK for need in needs)
        units_of = whole_units(machines.capacity[:, r], unit) if whole else np.zeros(machines.size)
        hidden = (unit * units_of < machines.usable[:, r] * (1 - SLACK)).any()
        if whole and hidden and machines.count @ units_of <= UNITS:
            found.append((r, unit))
    return tuple(found)


def whole_units(amount: Array, unit: float) -> Array:
    """Return how many whole units there are in amounts; rounding errors do not count."""
    return np.asarray(np.floor(amount / unit * (1 + SLACK)))


def in_units(machines: Machines) -> Machines:
    """Return the machines with a further resource for each of the :func:`units`: the whole units that workers take.

    A server has at most the units of its capacity, since the whole units of several needs are at most those of their
    sum. So this allows the same schedules, but relaxations see that PSs do not help to use all capacity. PSs take none:
    then a run's units are known before it is placed.
    """
    m = machines
    for r, unit in units(m):
        m = replace(
            m,
            resources=(*m.resources, f"{m.resources[r]} units"),
            capacity=np.column_stack((m.capacity, whole_units(m.capacity[:, r], unit))),
            worker=np.column_stack((m.worker, whole_units(m.worker[:, r], unit))),
            ps=np.column_stack((m.ps, np.zeros(len(m.ps)))),
        )
    return m


def priced_alone(machines: Machines, prices: Array) -> Array:
    """Return ``(k, R, T)`` prices of the machines' own resources, given those of :func:`in_units` of them.

    The price of a unit is paid for its amount of the resource, by PSs as well.
    """
    own, of_units = np.split(prices, [len(machines.resources)], axis=1)
    own = own.copy()
    for i, (r, unit) in enumerate(units(machines)):
        own[:, r] += of_units[:, i] / unit
    return np.asarray(own)


def kinds(capacity: Array, able: Bools) -> Ints:
    """Return ``(h,)`` classes of servers with equal capacities and worker types, numbered by first appearance."""
    rows = np.column_stack((capacity, able.T.astype(float)))
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.asarray(rank[inverse.ravel()], np.int64)


def classes(machines: Machines) -> Machines:
    """Return the machines with one entry per class of interchangeable servers and the number of servers in each."""
    _, first = np.unique(machines.kind, return_index=True)
    return replace(
        machines,
        names=tuple(machines.names[h] for h in first),
        capacity=machines.capacity[first],
        count=np.bincount(machines.kind, machines.count).astype(np.int64),
        kind=np.arange(len(first)),
        able=np.ascontiguousarray(machines.able[:, first]),
    )


def able(workers: Sequence[WorkerType], gpu_types: Sequence[str]) -> Bools:
    """Return ``(M, h)`` whether workers of each type can run on servers of these GPU types."""
    return np.array([[w.gpu_type in (None, g) for g in gpu_types] for w in workers], bool).reshape(-1, len(gpu_types))


def takes(parts: Sequence[WorkerType] | Sequence[PSType] | Sequence[ServerGroup]) -> Array:
    """Return ``(types, 4)`` GPUs, CPUs, gigabytes and Gbit/s of one worker, parameter server or server of each type."""
    return np.array([[x.gpus, x.cpus, x.memory_gb, x.bandwidth_gbps] for x in parts], float).reshape(-1, 4)


def machines_of(
    instance: Instance,
    workers: Sequence[WorkerType],
    servers: Sequence[PSType],
    resources: Sequence[str],
    capacity: Array,
    needs: tuple[Array, Array],
    able: Bools,
) -> Machines:
    """Return the machines of `instance`, one entry per server, group by group.

    Parameters
    ----------
    workers, servers
        Types of workers and of parameter servers.
    resources, capacity
        Names, and ``(groups, R)`` capacities of one server of each group.
    needs
        ``(M, R)`` and ``(P, R)`` resources of a worker and a parameter server.
    able
        ``(M, groups)`` whether workers can run there.
    """
    count = [group.count for group in instance.cluster.servers]
    each = np.repeat(capacity, count, axis=0)
    fits = np.ascontiguousarray(np.repeat(able, count, axis=1))
    return Machines(
        names=server_names(instance),
        resources=tuple(resources),
        worker_types=tuple(worker.name for worker in workers),
        ps_types=tuple(server.name for server in servers),
        capacity=each,
        count=np.ones(len(each), np.int64),
        kind=kinds(each, fits),
        worker=needs[0],
        ps=needs[1],
        worker_bandwidth=np.array([worker.bandwidth_gbps for worker in workers], float),
        ps_bandwidth=np.array([server.bandwidth_gbps for server in servers], float),
        able=fits,
    )
