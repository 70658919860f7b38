"""Checker for admission: starts, deadlines, work, bandwidth, capacity, and the utility of the admitted jobs.

Rates, capacities, deadlines and utilities are recomputed from the instance (:mod:`schedgap.harness.verify.elastic`);
slots, arrivals, and the types of workers and parameter servers are taken from the view.
"""

from __future__ import annotations

import math

import numpy as np

from schedgap.certificates.basics import MORE, Data, utility
from schedgap.harness.verify import VERIFIERS, Verdict, VerifierSpec, elastic, slotted
from schedgap.harness.verify.rules import refusing
from schedgap.instances.arrays import Ints
from schedgap.instances.canonical import validate
from schedgap.instances.elastic import Runs
from schedgap.instances.views.admission import FROM_ARRIVAL, View, view


@refusing
def check(view: View, decision: Runs, problem: str, claims: tuple[str, ...]) -> Verdict:
    """Check the schedule of the admitted jobs.

    In ``admission.utility`` a job starts after its arrival slot; in ``admission.from_arrival`` it may start in it.
    """
    instance, machines = view.instance, view.machines
    workers = [w for name in machines.worker_types for w in instance.worker_types if w.name == name]
    servers = [p for name in machines.ps_types for p in instance.ps_types if p.name == name]
    room = [
        [*(g.gpus // w.gpus * (not w.gpu_type or w.gpu_type == g.gpu_type) for w in workers), g.ps_slots]
        for g in instance.cluster.servers
    ]
    names, unit = [*machines.worker_types, *machines.ps_types], np.eye(len(workers) + 1)  # each takes 1 of its own kind
    hardware = elastic.Hardware(instance, names, workers, servers, room, unit[:-1], unit[-1:])
    plan = elastic.Plan(decision, hardware, view.slot_s, first=0)
    runs, due = plan.runs, deadlines(view)[plan.runs.job]
    lines = [
        *elastic.placements(plan),
        *elastic.several(plan),
        *elastic.early(plan, view.arrival + (problem != FROM_ARRIVAL.id)),
        *runs.broken(runs.end > due, elastic.AT + "completes at {end}, after its deadline {due}", due=due),
        *elastic.unfinished(plan),
        *elastic.capacity(plan),
    ]
    worth, arrived = [], view.arrival[runs.job]
    for j, first, slots in zip(runs.job.tolist(), arrived.tolist(), (runs.end - arrived).tolist(), strict=True):
        job = instance.jobs[j]
        value = utility(job.model_dump(), first * view.slot_s, max(job.rates.values(), default=0.0))
        worth += [value(slots * view.slot_s)] if slots > 0 else []
    completion = np.zeros(view.size, np.int64)
    completion[runs.job] = runs.end
    admitted = int((completion > 0).sum())
    metrics: dict[str, float | int | bool] = {
        "admitted": admitted,
        "rejected": view.size - admitted,
        "colocated": len(set(runs.job[runs.hosts == 1].tolist())),
    }
    objective = float(np.sum(worth))
    return Verdict(objective, tuple(lines), metrics, {"completion": completion, "objective": objective, **metrics})


def deadlines(view: View) -> Ints:
    """Return the ``(n,)`` slots by which jobs must complete: their deadlines, or the end of the horizon."""
    due = [view.slots if job.deadline_s is None else job.deadline_s / view.slot_s for job in view.instance.jobs]
    return np.array([min(math.floor(slot * MORE), view.slots) for slot in due], np.int64)


QUANTITIES = ("admitted", "rejected", "colocated", "completion")


def read(data: Data) -> View:
    """Return the view of an instance."""
    return view(validate(data, "the instance"))


VERIFIERS.register(VerifierSpec("admission", read, check, lambda problem: QUANTITIES, slotted))
