"""The worked admission example: a deadline-aware primal–dual scheduler with utilities and co-location.

Servers have room for so many workers of each type and so many parameter servers (PSs). A job is admitted with a number
of workers and a start, or rejected; it runs without interruption and is worth ``f(c − r)`` when it completes at ``c``.

Slots are numbered from 0, slot t begins at time t, and a job in slots ``a … a + d − 1`` completes at ``c = a + d``
(the text's intervals [4,6] and [6,8] overlap, half-open ones do not). Jobs start after their arrival slot, ``a > r``,
and complete by their deadline; where the arrival slot may be used, it is another problem. Rounding: arrivals up,
deadlines down, work in full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.elastic import Elastic, Machines, Runs, machines_of
from schedgap.instances.elastic.options import ROUNDING, rates
from schedgap.instances.errors import InstanceError, NotApplicableError
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Instance, PSType, WorkerType
from schedgap.instances.utility import Utilities, utilities
from schedgap.instances.workload import MAX_SERVERS, slots_from


@dataclass(frozen=True, eq=False, kw_only=True)
class View(Elastic):
    """Jobs, servers and slots. Resources are the worker types, then the PS type; one of a type takes 1 of its own.

    Attributes
    ----------
    deadline
        ``(n,)`` times ``τ``; `arrival` has the times ``r``.
    utilities
        What completing is worth, by seconds since the arrival.
    """

    instance: Instance
    slot_s: float
    deadline: Ints
    utilities: Utilities

    def utility(self, job: int) -> Array:
        """Return ``(slots + 1,)`` what completing at each time is worth; 0 up to the arrival and after the deadline."""
        worth = np.zeros(self.slots + 1)
        times = np.arange(self.arrival[job] + 1, self.deadline[job] + 1)
        worth[times] = self.utilities.value(job, (times - self.arrival[job]) * self.slot_s)
        return worth

    def first_start(self, problem: str) -> Ints:
        """Return ``(n,)`` first start of each job: after its arrival slot, or in it where `problem` says so."""
        return self.arrival + (problem != FROM_ARRIVAL.id)


def view(instance: Instance) -> View:
    """Return the admission view of `instance`.

    A server has as many workers of a type as its GPUs allow; of the worker types of a GPU type, the one of fewest GPUs
    counts. A server's `ps_slots` hold one PS each, of the PS type of the largest bandwidth. It raises
    `NotApplicableError` if there are no jobs, no worker types, no PS slots or types, or no horizon, or if jobs lack
    rates.
    """
    needed = {
        f"at most {MAX_SERVERS} servers": sum(group.count for group in instance.cluster.servers) <= MAX_SERVERS,
        "jobs": instance.jobs,
        "worker types with GPUs": any(worker.gpus > 0 for worker in instance.worker_types),
        "PS types": instance.ps_types,
        "PS slots on servers": any(group.ps_slots for group in instance.cluster.servers),
        "horizon": instance.horizon,
    }
    missing = next((name for name, there in needed.items() if not there), None)
    if missing or instance.horizon is None:
        raise NotApplicableError(f"admission: {instance.name} has no {missing}")
    # One worker type per GPU type (and one for all, if there is one).
    smallest: dict[str | None, WorkerType] = {}
    for worker in sorted(instance.worker_types, key=lambda w: w.gpus):
        if worker.gpus > 0:
            smallest.setdefault(worker.gpu_type, worker)
    kept = set(map(id, smallest.values()))
    workers = [worker for worker in instance.worker_types if id(worker) in kept]
    server = max(instance.ps_types, key=lambda p: p.bandwidth_gbps)
    slot_s, slots = instance.horizon.slot_s, instance.horizon.slots
    try:
        found, _ = rates(instance.jobs, workers, [server], slot_s)
    except InstanceError as error:
        raise NotApplicableError(f"admission: {error}") from error
    jobs = instance.jobs
    arrival = slots_from(np.array([job.submit_s for job in jobs]), slot_s)
    due = [math.inf if job.deadline_s is None else job.deadline_s / slot_s * (1 + ROUNDING) for job in jobs]
    best = np.array([max(job.rates.values(), default=0.0) for job in jobs])
    return View(
        instance=instance,
        machines=_machines(instance, workers, server),
        rates=found,
        slot_s=slot_s,
        slots=slots,
        ids=tuple(job.id for job in jobs),
        arrival=arrival,
        deadline=np.floor(np.minimum(due, slots)).astype(np.int64),
        work=np.array([job.iterations for job in jobs], float),
        most=np.array([job.chunks for job in jobs]),
        utilities=utilities(jobs, np.asarray(arrival * slot_s, float), best),
    )


def _machines(instance: Instance, workers: Sequence[WorkerType], server: PSType) -> Machines:
    groups = instance.cluster.servers
    rows = [
        [*(g.gpus // w.gpus if w.gpu_type in (None, g.gpu_type) else 0 for w in workers), g.ps_slots] for g in groups
    ]
    unit, able = np.eye(len(workers) + 1), np.ones((len(workers), len(groups)), bool)
    names = [*(worker.name for worker in workers), server.name]
    return machines_of(instance, workers, [server], names, np.array(rows, float), (unit[:-1], unit[-1:]), able)


def describe(v: View) -> str:
    """Return the caption of a comparison: sizes and slots."""
    room = ", ".join(f"{total:g} {name}" for total, name in zip(v.machines.total, v.machines.resources, strict=True))
    return (
        f"{v.size} jobs on {v.machines.size} servers ({room}), {v.slots} slots of {v.slot_s:g} s;"
        " objective: total utility of admitted jobs, which start after their arrival slot and meet their deadline"
    )


FROM_ARRIVAL = Problem(
    "admission.from_arrival", "largest total utility, the arrival slot may be used", "max", "utility"
)
UTILITY = Problem("admission.utility", "largest total utility of admitted jobs", "max", "utility", FROM_ARRIVAL.id)

PAPERS.register(
    PaperSpec(
        id="admission",
        title="Walk-through of a deadline-aware primal–dual admission scheduler",
        view=view,
        problems=(FROM_ARRIVAL, UTILITY),
        decision=Runs,
        describe=describe,
    )
)
