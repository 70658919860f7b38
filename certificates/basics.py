"""Helpers of all rules: refusal, safe rounding, and the jobs and GPUs of an instance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Data = Mapping[str, Any]
"""An instance, or a certificate, as plain data."""

LESS, MORE = 1 - 1.01e-9, 1 + 1.01e-9
"""As in the problems, 1.01e-9 of a job's work, of a time, or of the CPUs or memory of a level may be missing."""

STRETCH = 1 + 1.15e-8
"""As in the problems, capacities and bandwidths may be exceeded by 1.15e-8."""

LOW, HIGH = 1 - 1e-11, 1 + 1e-12
"""Factors that round sums of costs, and values, to the safe side; they exceed floating-point errors."""

NEVER, DEAR = -(2**62), 2**61


class RefusedError(Exception):
    """A certificate does not prove its claim, or a decision breaks the rules named in the arguments."""


def require(true: bool, reason: str) -> None:
    """Raise `RefusedError` with the reason unless the condition is true."""
    if not true:
        raise RefusedError(reason)


def up(value: Any, unit: float) -> Array:
    """Return values as integer multiples of a unit, rounded up beyond floating-point errors."""
    scaled = np.maximum(np.asarray(value, float) / unit, NEVER)
    require(bool((scaled < DEAR).all()), "a value is too large for the unit")
    return np.ceil(scaled + np.abs(scaled) * 1e-12).astype(np.int64)


def work_of(job: Data) -> float:
    """Return the iterations or mini-batches of a job."""
    return float(job["epochs"] * job.get("chunks", 1) * job.get("minibatches_per_chunk", 1))


def slot_of(time_s: float, slot_s: float) -> int:
    """Return the first slot that begins at or after a time."""
    return math.ceil(time_s / slot_s * LESS)


def times(job: Data, worker: Data, server: Data | None) -> tuple[float, float, float]:
    """Return the seconds of a mini-batch, an update, and a transfer of gradients both ways; rings have no `server`."""
    profile = job.get("distributed") or {}
    if together := profile.get("colocated_rate_per_s"):
        return 1 / together, 0.0, max(1 / (profile.get("spread_rate_per_s") or together) - 1 / together, 0.0)
    updates, ring = profile.get("update_ms", {}), profile.get("ring_update_ms")
    if server is not None:
        update = updates.get(server["name"], 0.0)
    else:
        update = min(updates.values(), default=0.0) if ring is None else ring
    transfer = profile.get("gradient_mb", 0.0) * 16 / (worker["bandwidth_gbps"] * 1000)
    measured, rate = profile.get("minibatch_ms", {}), job.get("rates", {}).get(worker.get("gpu_type") or "", 0.0)
    alone = 1 / (rate * worker["gpus"]) if rate * worker["gpus"] else math.inf
    return measured[worker["name"]] / 1000 if worker["name"] in measured else alone, update / 1000, transfer


def utility(job: Data, begin_s: float, best: float) -> Callable[[Array], Array]:
    """Return a job's utility as a function of the seconds from `begin_s` to completion; `best` is its largest rate."""
    curve = job.get("utility", {"kind": "effective_throughput"})
    kind, a, work = curve["kind"], curve.get("amplitude"), work_of(job)
    if kind in ("effective_throughput", "normalised"):
        return lambda d: (work / (job["gpus"] * (best or math.inf)) if kind == "normalised" else work) / d
    if kind == "sigmoid":
        return lambda d: (
            a / (1 + np.exp(np.clip(curve["steepness_per_s"] * (d - curve.get("midpoint_s", 0)), -700, 700)))
        )
    due = math.inf if kind == "constant" or job.get("deadline_s") is None else job["deadline_s"] - begin_s
    grace = curve.get("grace_s", 0.0)
    return lambda d: a * np.where(d <= due * MORE, 1.0, np.clip(1 - (d - due) / grace, 0, 1) if grace else 0.0)


def arrivals(data: Data) -> list[float]:
    """Return the arrival times of jobs, in seconds; a job does not arrive before its tenant."""
    tenants = {t["id"]: t.get("arrive_s", 0.0) for t in data.get("tenants", ())}
    return [max(job.get("submit_s", 0.0), tenants.get(job.get("tenant", job["id"]), 0.0)) for job in data["jobs"]]


class Gangs:
    """Jobs with gangs, their rates by GPU type, and the servers (Hadar, Gavel, Synergy)."""

    def __init__(self, data: Data, slot_s: float) -> None:
        self.jobs, self.groups, self.slot_s = data["jobs"], data["cluster"]["servers"], slot_s
        self.types = [g["name"] for g in data["cluster"]["gpu_types"]]
        self.gpus = [sum(g["count"] * g["gpus"] for g in self.groups if g["gpu_type"] == r) for r in self.types]
        tenants = {t["id"]: t for t in data.get("tenants", ())}
        self.work = [work_of(job) for job in self.jobs]
        self.rates, self.arrival_s = [], arrivals(data)
        self.arrival = [slot_of(at, slot_s) for at in self.arrival_s]
        for job in self.jobs:
            tenant = tenants.get(job.get("tenant", job["id"]), {})
            kinds = tenant.get("job_types", ())
            rates = job.get("rates") or ([k for k in kinds if k["name"] == job.get("model")] or kinds)[0]["rates"]
            self.rates.append(np.array([rates.get(r, 0.0) for r in self.types]))

    def levels(self, j: int) -> list[Array]:
        """For each rate of a job, fastest first, return the types at least that fast if the gang fits on them."""
        rates = self.rates[j]
        among = [np.flatnonzero(rates >= rate) for rate in sorted({r for r in rates if r > 0})[::-1]]
        return [types for types in among if sum(self.gpus[r] for r in types) >= self.jobs[j]["gpus"]]

    def classes(self) -> dict[tuple[int, int], int]:
        """Return the number of servers by type and GPUs."""
        count = Counter[tuple[int, int]]()
        for g in self.groups:
            count[self.types.index(g["gpu_type"]), g["gpus"]] += g["count"]
        return dict(sorted(count.items()))

    def worth(self, j: int, slots: int) -> Array:
        """Return a job's utility by its last slot, 0 before its arrival."""
        a = min(self.arrival[j], slots)
        value = utility(self.jobs[j], a * self.slot_s, float(self.rates[j].max()))
        return np.concatenate([np.zeros(a), value(np.arange(1, slots - a + 1) * self.slot_s)])


def total(numbers: Any) -> Fraction:
    """Return the exact sum of floats."""
    return sum(map(Fraction, np.asarray(numbers, float).ravel().tolist()), Fraction(0))
