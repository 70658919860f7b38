"""The worked admission example: slots from 0, servers with room for workers of each type and for PSs, deadlines.

A server holds as many workers of a type as its GPUs allow; for each GPU type, only the worker type with the fewest GPUs
is used. Each of a server's PS slots holds one PS of the type with the largest bandwidth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..basics import MORE, Array, Data
from .jobs import first_slots
from .moldable import Hardware, RawMoldable, able
from .utility import RawUtilities, utilities_of


@dataclass(frozen=True, eq=False)
class RawAdmission:
    """Jobs with deadlines and utilities in `slots` slots from 0.

    Attributes
    ----------
    arrival, deadline
        ``(n,)`` slots in which jobs arrive, and by which they complete.
    utilities
        Utilities by the seconds since the start of the arrival slot.
    """

    moldable: RawMoldable
    slot_s: float
    slots: int
    arrival: Array
    deadline: Array
    utilities: RawUtilities


def admission_of(data: Data) -> RawAdmission:
    """Return the jobs of an instance with a horizon."""
    slot_s, slots = data["horizon"]["slot_s"], data["horizon"]["slots"]
    arrival = first_slots([job.get("submit_s", 0.0) for job in data["jobs"]], slot_s)
    due = [job.get("deadline_s", math.inf) / slot_s * MORE for job in data["jobs"]]
    best = np.array([max(job.get("rates", {}).values(), default=0.0) for job in data["jobs"]])
    return RawAdmission(
        moldable=RawMoldable(data, _hardware(data), slot_s),
        slot_s=slot_s,
        slots=slots,
        arrival=arrival,
        deadline=np.floor(np.minimum(due, slots)).astype(np.int64),
        utilities=utilities_of(data["jobs"], arrival * slot_s, best),
    )


def _hardware(data: Data) -> Hardware:
    groups, smallest = data["cluster"]["servers"], dict[Any, Data]()
    for worker in sorted((w for w in data["worker_types"] if w["gpus"]), key=lambda w: w["gpus"]):
        smallest.setdefault(worker.get("gpu_type"), worker)
    kept = {worker["name"] for worker in smallest.values()}
    workers = [worker for worker in data["worker_types"] if worker["name"] in kept]
    server = max(data["ps_types"], key=lambda p: p["bandwidth_gbps"])
    runs = able(workers, groups)
    room = [
        [*(g["gpus"] // w["gpus"] * can for w, can in zip(workers, own, strict=True)), g.get("ps_slots", 0)]
        for g, own in zip(groups, runs.T.tolist(), strict=True)
    ]
    unit, names = np.eye(len(workers) + 1), (*(w["name"] for w in workers), server["name"])  # one of its own kind each
    return Hardware(names, workers, [server], np.array(room, float), (unit[:-1], unit[-1:]), np.ones_like(runs))
