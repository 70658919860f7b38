"""Hardware: GPU types, servers, and the resources of a worker or a parameter server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from schedgap.instances.schema.base import Name, Record, rule

MOST_GPUS = 10_000
"""Largest number of GPUs of a server."""


class GpuType(Record):
    """A kind of accelerator."""

    name: Name
    tflops: float | None = rule("peak single-precision TFLOPS are positive", gt=0, default=None)
    memory_gb: float | None = rule("GPU memory is positive", gt=0, default=None)


class ServerGroup(Record):
    """`count` servers of one kind; capacities are those of ONE server.

    Servers with GPUs of several types (Hadar's ``c_h^r``) need one group per type: the first states CPUs, memory and so
    on, and the others, with the same `count`, refer to it by `servers_of`.
    """

    name: Name
    count: int = rule("a server group has at least one server", ge=1)
    gpu_type: Name
    gpus: int = rule(f"GPUs per server are a whole number, 0 to {MOST_GPUS}", ge=0, le=MOST_GPUS)
    cpus: float = rule("CPUs per server are 0 or more", ge=0, default=0.0)
    memory_gb: float = rule("memory per server is 0 or more", ge=0, default=0.0)
    bandwidth_gbps: float = rule("bandwidth per server is 0 or more", ge=0, default=0.0)
    ps_slots: int = rule("parameter-server slots are a whole number, 0 or more", ge=0, default=0)
    rack: Name | None = None
    servers_of: Name | None = None


class Cluster(Record):
    """GPU types and the servers that hold them."""

    gpu_types: tuple[GpuType, ...] = rule("a cluster has at least one GPU type", min_length=1, max_length=1000)
    servers: tuple[ServerGroup, ...] = rule("a cluster has at least one server", min_length=1)

    @cached_property
    def gpus_by_type(self) -> Mapping[str, int]:
        """Number of GPUs of every type, in the order of `gpu_types`."""
        totals = dict.fromkeys((g.name for g in self.gpu_types), 0)
        for group in self.servers:
            totals[group.gpu_type] += group.count * group.gpus
        return totals

    @property
    def mixed(self) -> bool:
        """True if servers have GPUs of several types."""
        return any(group.servers_of for group in self.servers)

    @property
    def gpus(self) -> int:
        """Number of GPUs of all types."""
        return sum(self.gpus_by_type.values())


class WorkerType(Record):
    """Resources of one worker (Zhou's ``e_m^r``; bandwidth is ``b_m``)."""

    name: Name
    gpu_type: Name | None = None
    gpus: int = rule("a worker has a whole number of GPUs, 0 or more", ge=0)
    cpus: float = rule("CPUs are 0 or more", ge=0, default=0.0)
    memory_gb: float = rule("memory is 0 or more", ge=0, default=0.0)
    bandwidth_gbps: float = rule("bandwidth of a worker is positive", gt=0)


class PSType(Record):
    """Resources of one parameter server (Zhou's ``z_p^r``; bandwidth is ``B_p``)."""

    name: Name
    gpus: int = rule("a parameter server has a whole number of GPUs, 0 or more", ge=0, default=0)
    cpus: float = rule("CPUs are 0 or more", ge=0, default=0.0)
    memory_gb: float = rule("memory is 0 or more", ge=0, default=0.0)
    bandwidth_gbps: float = rule("bandwidth of a parameter server is positive", gt=0)
