"""Families on which Synergy-Tune is far from optimal: equal jobs, and an odd one whose demand just does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgap.instances.families.registry import HardSpec, hard
from schedgap.instances.random_instances.synergy import instance, job, matrix, servers
from schedgap.instances.schema import Instance, rule
from schedgap.instances.views.synergy import SynergySchedule

CHIP = "V100"
MEMORY_GB = 50.0
"""Gigabytes for each GPU, which all jobs need."""


class OddOne(HardSpec):
    """Jobs of one GPU each on a server with `share` CPUs per GPU: one wants many CPUs, the others one each."""

    gpus: int = rule("GPUs of the server, 2 to 64", ge=2, le=64, default=8)
    share: int = rule("CPUs of the server for each GPU, 2 to 64", ge=2, le=64, default=16)


def rest_to_odd(given: Instance, problem: str) -> SynergySchedule:
    """Return the round in which every job has one CPU, and the first one all that are left."""
    group = given.cluster.servers[0]
    count = len(given.jobs)
    nothing, one = np.zeros(count, np.int64), np.ones(count)
    cpus = np.where(np.arange(count) == 0, group.cpus - count + 1, 1.0)
    jobs = np.arange(count)
    return SynergySchedule(nothing, jobs, nothing, one, cpus, one * MEMORY_GB, nothing, jobs)


@hard(
    "synergy-odd-one",
    OddOne,
    methods=("synergy.tune",),
    parameter="gpus",
    values=(2, 4, 8, 16, 32),
    answer=rest_to_odd,
    growth="2 − 1/s − (1 − 1/s)/c for c GPUs with s CPUs each: tends to 2 − 1/s = 1.94",
    limit=2 - 1 / 16,
)
def odd_one(spec: OddOne) -> Instance:
    """Return jobs that need one CPU each, and an odd one that wants one CPU more than they leave.

    Tune places the odd one first, with all that it demands. The last of the others then finds no CPU left. Tune has
    nothing between the demand of a job and its share, so it switches the odd one back to its share, and most CPUs idle.
    Giving the odd one what is left nearly doubles the total progress.
    """
    cpus = spec.gpus * spec.share
    wanted = cpus - spec.gpus + 2
    levels = np.arange(1.0, wanted + 1)
    odd = matrix(levels.tolist(), [MEMORY_GB], levels[:, None].tolist())
    plain = matrix([1.0], [MEMORY_GB], [[1.0]])
    work: dict[str, Any] = {"iterations": 1000, "rates": {CHIP: 1.0}}
    jobs = [job(**work, sensitivity=odd), *[job(**work, sensitivity=plain)] * (spec.gpus - 1)]
    return instance(jobs, [servers(1, CHIP, spec.gpus, float(cpus), MEMORY_GB * spec.gpus)])


class ProgressStep(HardSpec):
    """Two jobs of one GPU each on a server of four CPUs; the odd one makes a step of `times` its fair progress."""

    times: int = rule("a whole number, 2 to 10^4", ge=2, le=10**4, default=10)


@hard(
    "synergy-step",
    ProgressStep,
    methods=("synergy.tune",),
    parameter="times",
    values=(2, 4, 16, 64, 256),
    answer=rest_to_odd,
    growth="(X + 1)/2, for X times the fair progress just below the demand",
    exponent=1.0,
)
def step(spec: ProgressStep) -> Instance:
    """Return a job of one CPU, and one that wants all four; with three, it makes `times` its fair progress already.

    Tune gives a job its demand or its share, and nothing between them. The demand does not fit beside the other job, so
    the odd one gets its share of two CPUs. Where progress is concave, as in Synergy's matrices, this costs at most a
    factor of 2; a step, such as a cache that begins to hold everything, makes it as large as the step.
    """
    high = float(spec.times)
    odd = matrix([1.0, 2.0, 3.0, 4.0], [MEMORY_GB], [[0.5], [1.0], [high], [1.5 * high]])
    plain = matrix([1.0], [MEMORY_GB], [[1.0]])
    work: dict[str, Any] = {"iterations": 1000, "rates": {CHIP: 1.0}}
    jobs = [job(**work, sensitivity=odd), job(**work, sensitivity=plain)]
    return instance(jobs, [servers(1, CHIP, 2, 4.0, 2 * MEMORY_GB)])
