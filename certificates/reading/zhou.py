"""Reads Zhou's jobs, in slots from 1, with parameter servers (``ps``) and as rings (``ra``).

A slot is an hour, unless the instance's slots are longer or its horizon is shorter than a day. T is the end of the
horizon, or the last arrival if that is later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..basics import LESS, Array, Data
from .jobs import first_slots
from .moldable import RESOURCES, Hardware, RawMoldable, able, amounts

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S

PARTS = 11
"""Loads of ``zhou.*.cost`` are elevenths of a capacity."""


class RawArchitecture(RawMoldable):
    """The jobs under one architecture, parameter servers or rings.

    `timespan` is T; `due` and `worth` are τ and F if the instance states them.
    """

    def __init__(self, data: Data, slot_s: float, timespan: int, ring: bool) -> None:
        groups, workers, ps = data["cluster"]["servers"], data.get("worker_types", ()), data.get("ps_types", ())
        ps = () if ring else ps
        needs, names = (amounts(workers), amounts(ps)), tuple(RESOURCES.values())
        hardware = Hardware(names, workers, ps, amounts(groups), needs, able(workers, groups))
        super().__init__(data, hardware, slot_s, ring)
        self.timespan, self.due, self.worth = timespan, data.get("due_slot"), data.get("unit_worth")

    @cached_property
    def deadline(self) -> int:
        """The deadline τ; if the instance states none, a power of two by which about half of the work can be done.

        Pool all servers, and let every job use as little of a resource as it can: the scarcest resource then needs some
        number of slots for all jobs. τ is the largest power of two up to this number, but late enough for the shortest
        job.
        """
        if self.due is not None:
            return int(self.due)
        total, shortest = self.count @ self.has, math.inf
        least = np.full((self.size, len(total)), np.inf)
        for (m, p, _), number, _, slots in self.runs():
            taken = number[:, None] * self.hardware.takes[0][m]
            taken = taken if self.ring else taken + self.hardware.takes[1][p]
            part = np.divide(taken, total, out=np.zeros_like(taken), where=total > 0)
            shortest = min(shortest, slots.min(initial=np.inf))
            for r, each in enumerate(part.T):
                taken_in_all = np.multiply(each, slots, out=np.full(slots.shape, np.inf), where=slots < np.inf)
                least[:, r] = np.minimum(least[:, r], taken_in_all.min(axis=1, initial=np.inf))
        tau: int = 2 ** max(0, math.floor(math.log2(max(least.sum(axis=0).max(), 1.0))))
        while tau < 1 + shortest:
            tau *= 2
        return tau

    @cached_property
    def unit_worth(self) -> float:
        """The constant F of (11); if the instance states none, the largest ratio of a job's weight to its consumption.

        A schedule consumes its slots times the units of all resources that it takes.
        """
        if self.worth is not None:
            return float(self.worth)
        least, takes = np.full(self.size, np.inf), [need.sum(axis=1) for need in self.hardware.takes]
        for (m, p, _), number, servers, slots in self.runs():
            taken = number * takes[0][m] + (0.0 if self.ring else servers * takes[1][p])
            least = np.minimum(least, (taken * slots).min(axis=1, initial=np.inf))
        return max(float((self.weight / least).max()), 1e-12)

    @cached_property
    def base(self) -> float:
        """The base λ = 2·T·H·R·F + 1 of the prices (11)."""
        return 2.0 * self.timespan * len(self.names) * len(RESOURCES) * self.unit_worth + 1.0

    def loads(self, servers: Array, first: int, end: int) -> Array:
        """Return ``(servers, R, slots)`` what other jobs use in ``zhou.*.cost``, in slots `first` … `end` − 1, from 1.

        These loads follow an arithmetic pattern, up to five elevenths of each capacity; GPUs are whole.
        """
        resource, slot = np.ogrid[: len(RESOURCES), first - 1 : end - 1]
        part = (3 * servers[:, None, None] + 7 * resource + 5 * slot) % PARTS // 2
        used = self.capacity[servers][:, :, None] * part / PARTS
        used[:, 0] = np.floor(used[:, 0])
        return np.asarray(used)


@dataclass(frozen=True, eq=False)
class Zhou:
    """Jobs in slots from 1 to `slots` (T), under both architectures; `arrival` has the first slot of each job."""

    slot_s: float
    slots: int
    arrival: Array
    architectures: Mapping[str, RawArchitecture]


def zhou_of(data: Data) -> Zhou:
    """Return Zhou's jobs and servers."""
    horizon = data.get("horizon", {"slot_s": HOUR_S, "slots": 0})
    slot_s, end_s = horizon["slot_s"], horizon["slot_s"] * horizon["slots"]
    if "horizon" not in data or not (slot_s >= HOUR_S or end_s < DAY_S):
        slot_s = HOUR_S
    arrival = 1 + first_slots([job.get("submit_s", 0.0) for job in data["jobs"]], slot_s)
    slots = max(math.ceil(end_s / slot_s * LESS), int(arrival.max()))
    both = {name: RawArchitecture(data, slot_s, slots, ring=name == "ra") for name in ("ps", "ra")}
    return Zhou(slot_s, slots, arrival, both)
