"""Servers with several resources, and what a worker and a parameter server take of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints
from schedgap.instances.schema import Instance, PSType, ServerGroup, WorkerType
from schedgap.instances.workload import server_names

SLACK = 1e-9
"""Relative part of a capacity that use may exceed it by, so that thirds of a server fit three times."""

ROOM = 5 * SLACK
"""The same in rows of models: a solver's tolerance of 1e-9 lies within what checkers accept, 1e-8, and beyond
:data:`SLACK`, so that use of exactly that much more is allowed here as it is there."""

SUMS = 10**6
"""Sums, equal ones as well, up to which it is found how much of a capacity can be used."""

PLENTY = 10**6
"""Workers that fit on a server where none of its resources limits them."""


@dataclass(frozen=True, eq=False)
class Machines:
    """``h`` servers with ``R`` resources; ``M`` types of workers and ``P`` types of parameter servers.

    Attributes
    ----------
    capacity
        ``(h, R)`` of one server.
    count
        ``(h,)`` how many such servers there are: 1, unless servers stand for their class.
    kind
        ``(h,)`` class of each server: servers of a class are interchangeable.
    worker, ps
        ``(M, R)`` and ``(P, R)``: what one takes (Zhou's ``e`` and ``z``).
    worker_bandwidth, ps_bandwidth
        ``(M,)`` and ``(P,)``: ``b`` and ``B``, in one unit.
    able
        ``(M, h)`` whether workers of a type can run on a server (its GPU type).
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
        """``(M, h)`` workers of a type that fit on one empty server."""
        found = np.array([fitting(self.capacity, need) for need in self.worker], np.int64)
        return np.where(self.able, found.reshape(self.able.shape), 0)

    @cached_property
    def usable(self) -> Array:
        """``(h, R)`` the most of a server that workers and parameter servers can take together, in whole ones."""
        ps = np.array([fitting(self.capacity, need) > 0 for need in self.ps], bool).reshape(-1, self.size)
        fits, needs = np.vstack([self.room > 0, ps]), np.vstack([self.worker, self.ps])
        _, first, kind = np.unique(self.kind, return_index=True, return_inverse=True)
        found = [
            [reachable(c, need[fits[:, h]]) for c, need in zip(self.capacity[h], needs.T, strict=True)] for h in first
        ]
        return np.array(found, float).reshape(-1, len(self.resources))[kind]

    def use(self, worker_type: int, ps_type: int, workers: Ints, ps: Ints) -> Array:
        """Return ``(h, R)`` what workers and parameter servers ``(h,)`` of some types take; PS type −1 in a ring."""
        taken = workers[:, None] * self.worker[worker_type]
        return np.asarray(taken + ps[:, None] * self.ps[ps_type] if ps_type >= 0 else taken)


def fitting(capacity: Array, need: Array) -> Ints:
    """Return ``(h,)`` how many times `need` ``(R,)`` fits into capacities ``(h, R)``, at most :data:`PLENTY`."""
    asked = need > 0
    if not asked.any():
        return np.full(len(capacity), PLENTY, np.int64)
    times = np.floor(capacity[:, asked] * (1 + SLACK) / need[asked]).min(axis=1)
    return np.asarray(np.minimum(times, PLENTY), np.int64)


def reachable(capacity: float, needs: Array) -> float:
    """Return the largest sum of needs, each as often as one likes, up to a capacity.

    Where nothing needs any, or there are too many sums (:data:`SUMS`), it is the capacity.
    """
    sums, most = np.zeros(1), capacity * (1 + SLACK)
    for need in np.unique(needs[needs > 0]):
        times = math.floor(most / need) + 1
        if len(sums) * times > SUMS:
            return capacity
        sums = np.add.outer(sums, need * np.arange(times)).ravel()
        sums = sums[sums <= most]
        sums = sums[np.unique(np.round(sums / capacity, 12), return_index=True)[1]]
    return min(float(sums.max()), capacity) or capacity


def kinds(capacity: Array, able: Bools) -> Ints:
    """Return ``(h,)`` classes of servers with equal capacities and workers, numbered by first appearance."""
    rows = np.column_stack((capacity, able.T.astype(float)))
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.asarray(rank[inverse.ravel()], np.int64)


def classes(machines: Machines) -> Machines:
    """Return the machines with one entry per class of interchangeable servers, and how many there are of each."""
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
    """Return ``(M, h)`` which workers can run on servers of these GPU types."""
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
    """Return the servers of `instance`, group by group.

    Parameters
    ----------
    workers, servers
        Types of workers and of parameter servers.
    resources, capacity
        Names, and ``(groups, R)`` what one server of each group has of them.
    needs
        ``(M, R)`` and ``(P, R)`` what a worker and a parameter server take.
    able
        ``(M, groups)`` where workers can run.
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
