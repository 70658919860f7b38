"""Reads gangs in slots (Hadar, Gavel).

An instance without horizon gets slots of the first of :data:`LENGTHS_S` with which it needs at most :data:`SLOTS`
slots, and as many slots as first come, first served needs.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..basics import Array, Data
from .jobs import Jobs, first_slots, jobs_of
from .servers import RawServers, servers_of
from .utility import RawUtilities, utilities_of

LENGTHS_S = (360.0, 900.0, 1800.0, 3600.0, 4 * 3600.0, 24 * 3600.0)

SLOTS = 2000


@dataclass(frozen=True, eq=False)
class Gangs:
    """The jobs of an instance as gangs, with its servers and slots.

    Attributes
    ----------
    arrival
        ``(n,)`` first slot in which each job may run.
    utilities
        Utilities by the seconds since the start of the arrival slot.
    """

    jobs: Jobs
    servers: RawServers
    slot_s: float
    slots: int
    arrival: Array
    utilities: RawUtilities

    @cached_property
    def capacity(self) -> Array:
        """``(k,)`` GPUs of each type."""
        return self.servers.capacity

    def levels(self, j: int) -> list[Array]:
        """Return, for each rate of a job, fastest first, the types at least that fast, if the gang fits on these."""
        rates = self.jobs.rates[j]
        among = [np.flatnonzero(rates >= rate) for rate in sorted(set(rates[rates > 0].tolist()), reverse=True)]
        return [types for types in among if self.capacity[types].sum() >= self.jobs.gpus[j]]

    @cached_property
    def classes(self) -> dict[tuple[int, int], int]:
        """Number of servers by type and GPUs."""
        pairs = zip(self.servers.gpu_type.tolist(), self.servers.gpus.tolist(), strict=True)
        return dict(sorted(Counter(pairs).items()))

    def worth(self, j: int, slots: int) -> Array:
        """Return the utility of a job for each last slot, 0 before its arrival."""
        a = min(int(self.arrival[j]), slots)
        value = self.utilities.value(j, np.arange(1, slots - a + 1) * self.slot_s)
        return np.concatenate([np.zeros(a), value])


def gangs_of(data: Data) -> Gangs:
    """Return the gangs of an instance in its slots."""
    jobs, servers = jobs_of(data), servers_of(data)
    horizon = data.get("horizon")
    slot_s, slots = (horizon["slot_s"], horizon["slots"]) if horizon else derived_slots(jobs, servers.capacity)
    arrival = first_slots(jobs.arrival_s, slot_s)
    worth = utilities_of(data["jobs"], arrival * slot_s, jobs.rates.max(axis=1))
    return Gangs(jobs, servers, slot_s, slots, arrival, worth)


def derived_slots(jobs: Jobs, capacity: Array) -> tuple[float, int]:
    """Return the slot length in seconds and the number of slots for an instance without horizon."""
    speed = np.array([_alone(*row, capacity) for row in zip(jobs.gpus, jobs.rates, strict=True)])
    with np.errstate(over="ignore", divide="ignore"):
        alone_s = np.divide(jobs.work, speed, out=np.zeros(jobs.size), where=speed > 0)
        # Side by side, gangs can leave up to half of the GPUs idle; the longest job may start last.
        busy_s = 2 * float((alone_s * jobs.gpus).sum()) / float(capacity.sum()) + float(alone_s.max(initial=0.0))
    end_s = float(jobs.arrival_s.max()) + busy_s
    slot_s = next((length for length in LENGTHS_S if end_s / length <= SLOTS), LENGTHS_S[-1])
    return slot_s, math.ceil(min(end_s / slot_s, 1e9)) + int(math.sqrt(jobs.size)) + 2


def _alone(gpus: int, rates: Array, capacity: Array) -> float:
    """Return the iterations per second of a gang alone on the cluster, on its fastest GPUs; 0 if it does not fit."""
    order = np.argsort(-rates, kind="stable")
    enough = np.cumsum(np.where(rates[order] > 0, capacity[order], 0)) >= gpus
    return float(gpus * rates[order[enough.argmax()]]) if enough.any() else 0.0
