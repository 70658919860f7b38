"""Reads the servers of an instance as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..basics import Array, Data, require
from .jobs import types_of

MOST_SERVERS = 10**6
"""Largest number of servers: each has a name of its own, which takes memory."""


@dataclass(frozen=True, eq=False)
class RawServers:
    """``h`` servers, each with the index of its GPU type, GPUs, CPUs and gigabytes, all ``(h,)``.

    A server with GPUs of several types has one entry per type; `machine` says which server each entry belongs to.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    gpu_type: Array
    gpus: Array
    cpus: Array
    memory_gb: Array
    machine: Array

    @property
    def size(self) -> int:
        """Number of entries: a server counts once for each of its GPU types."""
        return len(self.names)

    @property
    def machines(self) -> int:
        """Number of servers."""
        return int(self.machine.max()) + 1

    @property
    def amounts(self) -> Array:
        """``(h, 3)`` GPUs, CPUs and gigabytes of each entry."""
        return np.column_stack((self.gpus, self.cpus, self.memory_gb)).astype(float)

    @property
    def capacity(self) -> Array:
        """``(k,)`` GPUs of each type."""
        return np.bincount(self.gpu_type, self.gpus, len(self.types)).astype(np.int64)


def servers_of(data: Data) -> RawServers:
    """Return the servers of an instance, group by group; a group of several servers numbers them from 0."""
    groups, types, count = data["cluster"]["servers"], types_of(data), counts(data)
    whole = {group["name"]: i for i, group in enumerate(groups)}
    hosts = [(whole[g.get("servers_of", g["name"])], i) for g in groups for i in range(g["count"])]
    number = {host: i for i, host in enumerate(sorted(set(hosts)))}
    amounts = {name: np.repeat([g.get(name, 0.0) for g in groups], count) for name in ("cpus", "memory_gb")}
    return RawServers(
        names=server_names(data),
        types=types,
        gpu_type=np.repeat([types.index(g["gpu_type"]) for g in groups], count),
        gpus=np.repeat([g["gpus"] for g in groups], count).astype(np.int64),
        cpus=amounts["cpus"].astype(float),
        memory_gb=amounts["memory_gb"].astype(float),
        machine=np.array([number[host] for host in hosts], np.int64),
    )


def capacities(data: Data) -> dict[str, int]:
    """Return the number of GPUs by name of their type."""
    gpus = dict.fromkeys(types_of(data), 0)
    for group in data["cluster"]["servers"]:
        gpus[group["gpu_type"]] += group["count"] * group["gpus"]
    return gpus


def counts(data: Data) -> list[int]:
    """Return the number of servers of each group; refuse more than :data:`MOST_SERVERS`."""
    count = [group["count"] for group in data["cluster"]["servers"]]
    require(sum(count) <= MOST_SERVERS, f"{sum(count):,} servers are too many for this plain program")
    return count


def server_names(data: Data) -> tuple[str, ...]:
    """Return the names of the servers: the group's name, numbered from 0 if the group has several servers."""
    groups = data["cluster"]["servers"]
    return tuple(g["name"] if g["count"] == 1 else f"{g['name']}.{i}" for g in groups for i in range(g["count"]))
