"""The worked admission example: a deadline-aware primal–dual scheduler with utilities and co-location.

Each server has room for a number of workers of each type and of parameter servers (PSs). A job is rejected, or admitted
with a number of workers and a start; it then runs without interruption and has utility ``f(c − r)`` if it completes at
``c``.

Slots are numbered from 0, slot t begins at time t, and a job in slots ``a … a + d − 1`` completes at ``c = a + d``
(the text's intervals [4,6] and [6,8] overlap, half-open ones do not). Jobs start after their arrival slot, ``a > r``,
and complete by their deadline; using the arrival slot is allowed in a separate problem. Rounding: arrivals up,
deadlines down, work in full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.errors import InstanceError, NotApplicableError
from schedgap.instances.moldable import Machines, Moldable, Runs, machines_of
from schedgap.instances.moldable.options import rates
from schedgap.instances.registry import PAPERS, PaperSpec, Problem
from schedgap.instances.schema import Instance, PSType, WorkerType
from schedgap.instances.text import counted
from schedgap.instances.utility import Utilities, utilities
from schedgap.instances.workload import MAX_SERVERS, slots_from


@dataclass(frozen=True, eq=False, kw_only=True)
class AdmissionView(Moldable):
    """Jobs, servers and slots. Resources are the worker types, then the PS type; a worker or PS takes 1 of its own.

    Attributes
    ----------
    deadline
        ``(n,)`` times ``τ``; `arrival` has the times ``r``.
    utilities
        Utility of completing, by seconds since the arrival.
    """

    instance: Instance
    slot_s: float
    deadline: Ints
    utilities: Utilities

    def utility(self, job: int) -> Array:
        """Return ``(slots + 1,)`` utility of completing at each time; 0 up to the arrival and after the deadline."""
        worth = np.zeros(self.slots + 1)
        times = np.arange(self.arrival[job] + 1, self.deadline[job] + 1)
        worth[times] = self.utilities.value(job, (times - self.arrival[job]) * self.slot_s)
        return worth

    def first_start(self, problem: str) -> Ints:
        """Return ``(n,)`` first start of each job: after its arrival slot, or in it if `problem` allows that."""
        return self.arrival + (problem != FROM_ARRIVAL.id)


def view(instance: Instance) -> AdmissionView:
    """Return the admission view of `instance`.

    A server holds as many workers of a type as its GPUs allow; for each GPU type, only the worker type with the fewest
    GPUs is used. Each of a server's `ps_slots` holds one PS of the type with the largest bandwidth. It raises
    `NotApplicableError` if there are no jobs, worker types, PS types, PS slots or horizon, if jobs lack rates, or if
    there are too many servers.
    """
    needed = {
        f"at most {MAX_SERVERS} servers": sum(group.count for group in instance.cluster.servers) <= MAX_SERVERS,
        "jobs": instance.jobs,
        "worker types with GPUs": any(worker.gpus > 0 for worker in instance.worker_types),
        "PS types": instance.ps_types,
        "PS slots on servers": any(group.ps_slots for group in instance.cluster.servers),
        "horizon": instance.horizon,
    }
    missing = next((name for name, present in needed.items() if not present), None)
    if missing or instance.horizon is None:
        raise NotApplicableError(f"admission: {instance.name} has no {missing}")
    # One worker type per GPU type, and one for all GPU types if there is one.
    smallest: dict[str | None, WorkerType] = {}
    for worker in sorted(instance.worker_types, key=lambda w: w.gpus):
        if worker.gpus > 0:
            smallest.setdefault(worker.gpu_type, worker)
    workers = [worker for worker in instance.worker_types if smallest.get(worker.gpu_type) is worker]
    server = max(instance.ps_types, key=lambda p: p.bandwidth_gbps)
    slot_s, slots = instance.horizon.slot_s, instance.horizon.slots
    try:
        with_servers, _ = rates(instance.jobs, workers, [server], slot_s)
    except InstanceError as error:
        raise NotApplicableError(f"admission: {error}") from error
    jobs = instance.jobs
    arrival = slots_from(np.array([job.submit_s for job in jobs]), slot_s)
    due = [math.inf if job.deadline_s is None else job.deadline_s / slot_s * (1 + ROUNDING) for job in jobs]
    best = np.array([max(job.rates.values(), default=0.0) for job in jobs])
    return AdmissionView(
        instance=instance,
        machines=_machines(instance, workers, server),
        rates=with_servers,
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


def describe(v: AdmissionView) -> str:
    """Return the caption of a comparison: sizes and slots."""
    room = ", ".join(f"{total:g} {name}" for total, name in zip(v.machines.total, v.machines.resources, strict=True))
    return (
        f"{counted(v.size, 'job')} on {counted(v.machines.size, 'server')} ({room}), {v.slots} slots of {v.slot_s:g} s;"
        " objective: total utility of admitted jobs, which start after their arrival slot and meet their deadline"
    )


FROM_ARRIVAL = Problem(
    "admission.from_arrival",
    "largest total utility, the arrival slot may be used",
    "max",
    "utility",
    allows="the arrival slot may be used",
)
UTILITY = Problem(
    "admission.utility",
    "largest total utility of admitted jobs",
    "max",
    "utility",
    FROM_ARRIVAL.id,
    requires="starting after the arrival slot",
)

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
