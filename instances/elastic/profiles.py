"""Rates of an instance's jobs by worker and PS type, with or without parameter servers.

Units are converted here, once: mini-batch and update times are milliseconds in the file, gradients megabytes,
bandwidths Gbit/s; rates are slots per mini-batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgap.instances.arrays import Array, Bools
from schedgap.instances.elastic.options import Rates
from schedgap.instances.errors import InstanceError
from schedgap.instances.schema import DistributedProfile, Job, PSType, WorkerType

MBIT_PER_MB = 8.0
MBIT_PER_GBIT = 1000.0


def rates(
    jobs: Sequence[Job], workers: Sequence[WorkerType], servers: Sequence[PSType], slot_s: float
) -> tuple[Rates, Rates]:
    """Return the rates with parameter servers, and those in a ring.

    A job's profile gives its mini-batch times by worker type; where it does not, they are those of its rates (one
    worker with g GPUs does g times the iterations of one GPU). Rates that a profile gives for all types alike
    (`colocated_rate_per_s`, `spread_rate_per_s`) replace mini-batch, update and transfer times.

    Raises
    ------
    InstanceError
        If a job has neither profile nor rates.
    """
    compute = np.array([_compute(job, i, workers) for i, job in enumerate(jobs)]).reshape(len(jobs), len(workers))
    profiles = [job.distributed or DistributedProfile() for job in jobs]
    update = np.array([[_update(p, s.name) for s in servers] for p in profiles]).reshape(len(jobs), len(servers))
    ring = np.array([[_ring_update(profile)] for profile in profiles])
    transfer = np.array([[_transfer(profile, w) for w in workers] for profile in profiles])
    transfer = transfer.reshape(len(jobs), len(workers))
    with_servers = Rates(compute / slot_s, update / slot_s, transfer / slot_s, ring=False)
    return with_servers, Rates(compute / slot_s, ring / slot_s, transfer / slot_s, ring=True)


def _compute(job: Job, position: int, workers: Sequence[WorkerType]) -> list[float]:
    """Return the seconds of a mini-batch by worker type."""
    profile = job.distributed
    if profile and profile.colocated_rate_per_s:
        return [1 / profile.colocated_rate_per_s] * len(workers)
    given = profile.minibatch_ms if profile else {}
    if not given and not job.rates:
        raise InstanceError(f"jobs[{position}]: a distributed job has mini-batch times, rates, or a colocated rate")
    return [given[w.name] / 1000 if w.name in given else _by_rates(job, w) for w in workers]


def _by_rates(job: Job, worker: WorkerType) -> float:
    rate = job.rates.get(worker.gpu_type or "", 0.0) * worker.gpus
    return 1 / rate if rate > 0 else np.inf


def _update(profile: DistributedProfile, name: str) -> float:
    return 0.0 if profile.colocated_rate_per_s else profile.update_ms.get(name, 0.0) / 1000


def _ring_update(profile: DistributedProfile) -> float:
    if profile.colocated_rate_per_s:
        return 0.0
    if profile.ring_update_ms is not None:
        return profile.ring_update_ms / 1000
    return min(profile.update_ms.values(), default=0.0) / 1000


def _transfer(profile: DistributedProfile, worker: WorkerType) -> float:
    """Return the seconds of sending and receiving gradients through a worker's bandwidth (``2π/b``)."""
    if profile.colocated_rate_per_s:
        spread = profile.spread_rate_per_s or profile.colocated_rate_per_s
        return max(1 / spread - 1 / profile.colocated_rate_per_s, 0.0)
    return 2 * profile.gradient_mb * MBIT_PER_MB / (worker.bandwidth_gbps * MBIT_PER_GBIT)


def able(workers: Sequence[WorkerType], gpu_types: Sequence[str]) -> Bools:
    """Return ``(M, h)`` which workers can run on servers of these GPU types."""
    return np.array([[w.gpu_type in (None, g) for g in gpu_types] for w in workers], bool).reshape(-1, len(gpu_types))


def takes(parts: Sequence[WorkerType] | Sequence[PSType]) -> Array:
    """Return ``(types, 4)`` GPUs, CPUs, gigabytes and Gbit/s of one worker or parameter server of each type."""
    return np.array([[x.gpus, x.cpus, x.memory_gb, x.bandwidth_gbps] for x in parts], float).reshape(-1, 4)
