"""Small admission instances for tests, and an exhaustive search over everything that the text allows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from drawing import Shrinking
from hypothesis import strategies as st

from schedgap.instances.random_instances import admission as random_instances
from schedgap.instances.random_instances.admission import instance, job
from schedgap.instances.schema import Instance
from schedgap.instances.views import admission

__all__ = ["Plan", "exhaustive", "instance", "job", "plans", "small", "tiny", "view"]


class Plan(NamedTuple):
    """A schedule that a job may get: its utility, when it runs, its worker type, and workers and PSs by server."""

    worth: float
    start: int
    end: int
    kind: str
    workers: tuple[int, ...]
    ps: tuple[int, ...]


def plans(of: Instance, j: int, first: int) -> Iterator[Plan]:
    """Yield every schedule of job `j` that may start `first` slots after its arrival.

    PSs may be on any servers, and more than the workers need. Schedules with more slots than the work takes are left
    out.
    """
    one = of.jobs[j]
    arrival = math.ceil(one.submit_s)
    assert of.horizon is not None
    assert one.distributed is not None
    due = of.horizon.slots if one.deadline_s is None else min(math.floor(one.deadline_s), of.horizon.slots)
    groups = of.cluster.servers
    for worker in of.worker_types:
        ratio = worker.bandwidth_gbps / of.ps_types[0].bandwidth_gbps
        seconds = one.distributed.minibatch_ms[worker.name] / 1000
        transfer = 2 * one.distributed.gradient_mb * 8 / 1000 / worker.bandwidth_gbps
        rooms = [g.gpus if g.gpu_type == worker.gpu_type else 0 for g in groups]
        for y in product(*(range(room + 1) for room in rooms)):
            if not 1 <= sum(y) <= one.chunks:
                continue
            for z in product(*(range(g.ps_slots + 1) for g in groups)):
                covered = all((sum(y) - own) * ratio <= n + 1e-9 for own, n in zip(y, z, strict=True) if n)
                if not sum(z) or not covered:
                    continue
                apart = sum(a + b > 0 for a, b in zip(y, z, strict=True)) > 1
                took = math.ceil(one.iterations * (seconds + transfer * apart) / sum(y) - 1e-9)
                for start in range(arrival + first, due - took + 1):
                    amplitude, steepness = one.utility.amplitude, one.utility.steepness_per_s  # type: ignore[union-attr]
                    worth = amplitude / (1 + math.exp(steepness * (start + took - arrival)))
                    yield Plan(worth, start, start + took, worker.name, y, z)


def exhaustive(of: Instance, first: int = 1) -> float:
    """Return the largest total utility of any set of schedules that fit together."""
    assert of.horizon is not None
    choices = [sorted(plans(of, j, first), key=lambda plan: -plan.worth) for j in range(len(of.jobs))]
    most = [max((plan.worth for plan in own), default=0.0) for own in choices]
    # What is in use, by server and slot: workers and PSs.
    used = [[[0, 0] for _ in range(of.horizon.slots)] for _ in of.cluster.servers]
    best = 0.0

    def change(plan: Plan, sign: int) -> bool:
        fits = True
        for s, group in enumerate(of.cluster.servers):
            for t in range(plan.start, plan.end):
                cell = used[s][t]
                cell[0] += sign * plan.workers[s]
                cell[1] += sign * plan.ps[s]
                fits = fits and cell[0] <= group.gpus and cell[1] <= group.ps_slots
        return fits

    def visit(j: int, total: float) -> None:
        nonlocal best
        best = max(best, total)
        for plan in choices[j] if j < len(choices) else ():
            if total + plan.worth + sum(most[j + 1 :]) <= best * (1 + 1e-12):
                break
            if change(plan, 1):
                visit(j + 1, total + plan.worth)
            change(plan, -1)
        if j < len(choices) and total + sum(most[j + 1 :]) > best * (1 + 1e-12):
            visit(j + 1, total)

    visit(0, 0.0)
    return best


@st.composite
def tiny(draw: st.DrawFn, jobs: int = 2) -> Instance:
    """Draw an instance of up to `jobs` jobs on two or three small servers, for the exhaustive search."""
    return random_instances.draw(Shrinking(draw), jobs=jobs)


@st.composite
def small(draw: st.DrawFn, jobs: int = 8) -> Instance:
    """Draw an instance of up to `jobs` jobs on up to six servers, for heuristics."""
    return random_instances.draw(Shrinking(draw), jobs=jobs, servers=6, room=4, sizes=(1, 2, 3, 5, 8), slots=14)


def view(of: Instance) -> admission.AdmissionView:
    """Return the view that methods for admission problems read."""
    return admission.view(of)
