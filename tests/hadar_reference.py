"""An exhaustive search for Hadar's problem on tiny instances, which shares no code with the models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from drawing import Shrinking
from hypothesis import strategies as st

from schedgap.heuristics.simulator import Assignment, State
from schedgap.instances.random_instances import hadar as random_instances
from schedgap.instances.random_instances.hadar import linear
from schedgap.instances.schema import Instance, Job

__all__ = ["best", "fifo", "instances_of", "linear", "with_long_horizon", "worth"]

Counts = tuple[int, ...]

Place = tuple[str, int, tuple[str, int]]
"""Where GPUs are: their type, their number, and their server."""


@st.composite
def instances_of(draw: st.DrawFn, jobs: int = 3, slots: int = 5, gpus: int = 3, mixed: bool = False) -> Instance:
    """Draw an instance with up to so many jobs, slots and GPUs per server."""
    return random_instances.draw(Shrinking(draw), jobs=jobs, slots=slots, gpus=gpus, mixed=mixed)


def with_long_horizon(instance: Instance) -> Instance:
    """Return the instance with a horizon in which any policy that never idles completes all jobs."""
    assert instance.horizon is not None
    return instance.model_copy(update={"horizon": instance.horizon.model_copy(update={"slots": 80})})


def fifo(state: State) -> Assignment:
    """Place gangs in order of arrival on the fastest free GPUs that they can use, on several types if needed."""
    free = state.servers.gpus.copy()
    entries: list[tuple[int, int, int]] = []
    for j in state.jobs.tolist():
        rate = state.workload.rates[j, state.servers.gpu_type]
        hosts = [h for h in np.argsort(-rate, kind="stable").tolist() if rate[h] > 0]
        left = int(state.workload.gpus[j])
        taken = []
        for h in hosts:
            if count := min(left, int(free[h])):
                taken.append((j, h, count))
                left -= count
        if left == 0:
            entries += taken
            for _, h, count in taken:
                free[h] -= count
    return Assignment.of(entries)


def worth(job: Job, arrival_s: float, duration_s: float) -> float:
    """Return the utility of a job that completes `duration_s` after its arrival, computed from the definitions."""
    utility: Any = job.utility
    if utility.kind == "effective_throughput":
        return job.iterations / duration_s
    if utility.kind == "normalised":
        return job.iterations / duration_s / (job.gpus * max(job.rates.values()))
    if utility.kind == "sigmoid":
        return float(utility.amplitude / (1 + math.exp(utility.steepness_per_s * (duration_s - utility.midpoint_s))))
    if utility.kind == "constant" or job.deadline_s is None:
        return float(utility.amplitude)
    late = arrival_s + duration_s - job.deadline_s
    return float(utility.amplitude * (1 if late <= 0 else max(0.0, 1 - late / utility.grace_s)))


def best(instance: Instance, complete: bool, beta: float | None = None) -> float | None:
    """Return the largest total utility over all ways to give out GPUs slot by slot; ``None`` if there is none.

    The search's state is the work that each job has left; a job earns its utility in the slot in which this reaches 0.
    With `beta`, GPUs are given out by server, and a gang pays that much per slot for every server beyond its first.
    """
    assert instance.horizon is not None
    slot_s, slots = instance.horizon.slot_s, instance.horizon.slots
    groups = [(g, i) for g in instance.cluster.servers for i in range(g.count)]
    places = [(g.gpu_type, g.gpus, (g.servers_of or g.name, i)) for g, i in groups]
    if beta is None:
        places = [(name, gpus, ("anywhere", 0)) for name, gpus in instance.cluster.gpus_by_type.items()]
    room = tuple(gpus for _, gpus, _ in places)
    jobs = instance.jobs
    arrival = [math.ceil(job.submit_s / slot_s) for job in jobs]
    moves = [_moves(job, places, slot_s, beta or 0.0) for job in jobs]

    @cache
    def value(slot: int, left: tuple[float, ...]) -> float:
        if slot == slots:
            return -math.inf if complete and any(left) else 0.0
        here = [moves[j] if left[j] and slot >= arrival[j] else moves[j][:1] for j in range(len(jobs))]
        found = -math.inf
        for choice in product(*here):
            if any(sum(counts) > n for counts, n in zip(zip(*(c for c, *_ in choice), strict=True), room, strict=True)):
                continue
            after = tuple(max(0.0, x - done) for x, (_, done, _) in zip(left, choice, strict=True))
            gain = sum(
                worth(job, arrival[j] * slot_s, (slot - arrival[j] + 1) * slot_s)
                for j, job in enumerate(jobs)
                if left[j] and not after[j]
            )
            found = max(found, gain - sum(cost for *_, cost in choice) + value(slot + 1, after))
        return found

    most = value(0, tuple(float(job.iterations) for job in jobs))
    return None if most == -math.inf else most


def _moves(job: Job, places: Sequence[Place], slot_s: float, beta: float) -> list[tuple[Counts, float, float]]:
    """Return what a job may hold in a slot (nothing or its whole gang), the work that it then does, and the cost."""
    found = [((0,) * len(places), 0.0, 0.0)]
    for counts in product(*(range(gpus + 1) for _, gpus, _ in places)):
        held = [place for place, n in zip(places, counts, strict=True) if n]
        slowest = min((job.rates.get(name, 0.0) for name, *_ in held), default=0.0)
        if sum(counts) == job.gpus and slowest > 0:
            found.append((counts, job.gpus * slowest * slot_s, beta * (len({server for *_, server in held}) - 1)))
    return found
