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
from schedgap.instances.schema import DistributedProfile, Job, PSType, ServerGroup, WorkerType

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
    rows = [_seconds(job, i, workers, servers) for i, job in enumerate(jobs)]
    parts = (np.array([row[part] for row in rows], float) / slot_s for part in range(4))
    compute, update, ring, transfer = parts
    return Rates(compute, update, transfer, ring=False), Rates(compute, ring, transfer, ring=True)


def _seconds(
    job: Job, position: int, workers: Sequence[WorkerType], servers: Sequence[PSType]
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the seconds of a mini-batch by worker type, of an update by PS type and in a ring, and of a transfer."""
    profile = job.distributed or DistributedProfile()
    if together := profile.colocated_rate_per_s:
        apart = max(1 / (profile.spread_rate_per_s or together) - 1 / together, 0.0)
        return [1 / together] * len(workers), [0.0] * len(servers), [0.0], [apart] * len(workers)
    times = profile.minibatch_ms
    if not times and not job.rates:
        raise InstanceError(f"jobs[{position}]: a distributed job has mini-batch times, rates, or a colocated rate")
    ring_ms = profile.ring_update_ms
    # Gradients are sent and received through a worker's bandwidth (Zhou's 2π/b).
    sent = 2 * profile.gradient_mb * MBIT_PER_MB
    return (
        [times[w.name] / 1000 if w.name in times else _by_rates(job, w) for w in workers],
        [profile.update_ms.get(s.name, 0.0) / 1000 for s in servers],
        [(min(profile.update_ms.values(), default=0.0) if ring_ms is None else ring_ms) / 1000],
        [sent / (w.bandwidth_gbps * MBIT_PER_GBIT) for w in workers],
    )


def _by_rates(job: Job, worker: WorkerType) -> float:
    rate = job.rates.get(worker.gpu_type or "", 0.0) * worker.gpus
    return 1 / rate if rate > 0 else np.inf


def able(workers: Sequence[WorkerType], gpu_types: Sequence[str]) -> Bools:
    """Return ``(M, h)`` which workers can run on servers of these GPU types."""
    return np.array([[w.gpu_type in (None, g) for g in gpu_types] for w in workers], bool).reshape(-1, len(gpu_types))


def takes(parts: Sequence[WorkerType] | Sequence[PSType] | Sequence[ServerGroup]) -> Array:
    """Return ``(types, 4)`` GPUs, CPUs, gigabytes and Gbit/s of one worker, parameter server or server of each type."""
    return np.array([[x.gpus, x.cpus, x.memory_gb, x.bandwidth_gbps] for x in parts], float).reshape(-1, 4)
