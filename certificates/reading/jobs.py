"""Reads the jobs of an instance as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..basics import LESS, Array, Data, require

NEVER = 2.0**53
"""Slot that stands for times after any horizon."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """``n`` jobs as arrays ``(n,)``, on ``k`` GPU types; `work` is in iterations.

    Attributes
    ----------
    arrival_s, leave_s
        The time at which the job has been submitted and its tenant has arrived; the time at which the tenant leaves
        (``inf`` for never).
    rates
        ``(n, k)`` iterations per second of ONE GPU of each type; 0 if the job cannot run there.
    exchange_s
        Seconds that a ring over several servers takes to exchange the gradients of an iteration; NaN if not known.
    """

    ids: tuple[str, ...]
    gpu_types: tuple[str, ...]
    arrival_s: Array
    leave_s: Array
    gpus: Array
    work: Array
    weight: Array
    rates: Array
    exchange_s: Array

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.ids)


def jobs_of(data: Data) -> Jobs:
    """Return the jobs of an instance.

    A job without rates has those of the tenant's job type that is named like the job's model, or those of the tenant's
    only job type. A job does not arrive before its tenant.
    """
    types = types_of(data)
    tenants = {tenant["id"]: tenant for tenant in data.get("tenants", ())}
    jobs: Sequence[Data] = data["jobs"]
    owners = [tenants.get(job.get("tenant", job["id"]), {}) for job in jobs]
    leaves = [owner.get("leave_s", math.inf) for owner in owners]
    rows = [job.get("rates") or _of_tenant(job, owner) for job, owner in zip(jobs, owners, strict=True)]
    return Jobs(
        ids=tuple(job["id"] for job in jobs),
        gpu_types=types,
        arrival_s=np.array(arrivals(data), float),
        leave_s=np.array(leaves, float),
        gpus=np.array([job["gpus"] for job in jobs], np.int64),
        work=np.array([work_of(job) for job in jobs], float),
        weight=np.array([job.get("weight", 1.0) for job in jobs], float),
        rates=np.array([[row.get(r, 0.0) for r in types] for row in rows], float).reshape(len(jobs), len(types)),
        exchange_s=np.array([_exchange_s(job, data) for job in jobs], float),
    )


def types_of(data: Data) -> tuple[str, ...]:
    """Return the names of the GPU types."""
    return tuple(kind["name"] for kind in data["cluster"]["gpu_types"])


def work_of(job: Data) -> float:
    """Return the iterations or mini-batches of a job."""
    return float(job["epochs"] * job.get("chunks", 1) * job.get("minibatches_per_chunk", 1))


def arrivals(data: Data) -> list[float]:
    """Return the arrival times of jobs, in seconds; a job does not arrive before its tenant."""
    tenants = {t["id"]: t.get("arrive_s", 0.0) for t in data.get("tenants", ())}
    return [max(job.get("submit_s", 0.0), tenants.get(job.get("tenant", job["id"]), 0.0)) for job in data["jobs"]]


def first_slots(times_s: Any, slot_s: float) -> Array:
    """Return, for each time, the first slot (from 0) that begins at or after it."""
    with np.errstate(over="ignore"):
        return np.minimum(np.ceil(np.asarray(times_s, float) / slot_s * LESS), NEVER).astype(np.int64)


def _exchange_s(job: Data, data: Data) -> float:
    """Return the seconds of a ring: each of w workers sends 2 (w − 1) / w gradients, at 0.008 Gbit per megabyte."""
    if job["gpus"] == 1:
        return 0.0
    slowest_gbps = min((g.get("bandwidth_gbps", 0.0) for g in data["cluster"]["servers"] if g["gpus"] > 0), default=0.0)
    if "distributed" not in job or slowest_gbps == 0:
        return math.nan
    sent = 2 * (job["gpus"] - 1) / job["gpus"]
    return float(sent * job["distributed"].get("gradient_mb", 0.0) * 0.008 / slowest_gbps)


def _of_tenant(job: Data, owner: Data) -> Data:
    kinds = owner.get("job_types", ())
    named = [kind for kind in kinds if kind["name"] == job.get("model")] or kinds
    require(len(named) == 1, f"{job['id']} has no rates")
    rates: Data = named[0]["rates"]
    return rates
