"""Servers with several resources, and what a worker and a parameter server take of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.instances.arrays import Array, Bools, Ints

SLACK = 1e-9
"""Relative part of a capacity that use may exceed it by, so that thirds of a server fit three times."""

ROOM = 5 * SLACK
"""The same in rows of models: a solver's tolerance of 1e-9 lies within what checkers accept, 1e-8, and beyond
:data:`SLACK`, so that use of exactly that much more is allowed here as it is there."""

PLENTY = 10**6
"""Workers that fit on a server where none of its resources limits them."""


@dataclass(frozen=True, eq=False)
class Machines:
    """``h`` servers with ``R`` resources; ``M`` types of workers and ``P`` types of parameter servers.

    Attributes
    ----------
    names, resources, worker_types, ps_types
        What they are called.
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
        found = np.stack([fitting(self.capacity, need) for need in self.worker]) if len(self.worker) else np.zeros((0,))
        return np.where(self.able, found, 0) if len(self.worker) else np.zeros(self.able.shape, np.int64)

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


def kinds(capacity: Array, able: Bools) -> Ints:
    """Return ``(h,)`` classes of servers with equal capacities and workers, numbered by first appearance."""
    rows = np.column_stack((capacity, able.T.astype(float)))
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return np.asarray(rank[inverse.ravel()], np.int64)


def classes(machines: Machines) -> Machines:
    """Return the machines with one entry per class of interchangeable servers, and how many there are of each."""
    _, first = np.unique(machines.kind, return_index=True)
    return Machines(
        names=tuple(machines.names[h] for h in first),
        resources=machines.resources,
        worker_types=machines.worker_types,
        ps_types=machines.ps_types,
        capacity=machines.capacity[first],
        count=np.bincount(machines.kind, machines.count).astype(np.int64),
        kind=np.arange(len(first)),
        worker=machines.worker,
        ps=machines.ps,
        worker_bandwidth=machines.worker_bandwidth,
        ps_bandwidth=machines.ps_bandwidth,
        able=np.ascontiguousarray(machines.able[:, first]),
    )
