"""Families on which Zhou et al.'s algorithms are far from optimal, on one server with one GPU.

A_online waits for windows: jobs that are known at time τ run from 4τ on at the earliest. A_maxweight goes by weight,
whatever a job needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from schedgap.instances.families.registry import HardSpec, hard
from schedgap.instances.random_instances.zhou import instance, job, ps, servers, worker
from schedgap.instances.schema import Instance, rule
from schedgap.instances.views.zhou import ZhouSchedule, view

WINDOWS = 4
"""α: the windows of a batch of A_online, as the paper calls typical."""


DEMANDS = 4.0
"""What a worker takes of GPUs, CPUs, gigabytes and Gbit/s together."""


def alone(jobs: Sequence[Any], due_slot: int | None = None) -> Instance:
    """Return these jobs on one server that runs one worker (and one PS) at a time."""
    last = max(int(one["submit_s"]) for one in jobs)
    made = instance(jobs, [servers(1, 1, 3.0, memory_gb=3.0)], [worker(bandwidth_gbps=0.5)], [ps()], slots=last + 2)
    return made.model_copy(update={"due_slot": due_slot})


def in_order(given: Instance, problem: str, order: Sequence[int]) -> ZhouSchedule:
    """Return the schedule in which the only server runs these jobs one after another."""
    name = problem.split(".")[1]
    a, free, starts = view(given).architectures[name], 1, list[int]()
    lengths = a.options.shortest[list(order)].tolist()
    for k, slots in zip(order, lengths, strict=True):
        starts.append(max(free, int(a.arrival[k])))
        free = starts[-1] + slots
    count = len(lengths)
    nothing, one = np.zeros(count, np.int64), np.ones(count, np.int64)
    ring = name == "ra"
    columns = np.array(list(order)), np.array(starts), np.array(lengths), nothing, nothing - ring
    return ZhouSchedule(*columns, np.arange(count), nothing, one, nothing if ring else one)


def as_given(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all jobs in order."""
    return in_order(given, problem, range(len(given.jobs)))


def small_first(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule in which the blockers run after all others."""
    rest = list(range(WINDOWS, len(given.jobs)))
    return in_order(given, problem, [*rest, *reversed(range(WINDOWS))])


def light_ones(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all jobs but the first."""
    return in_order(given, problem, range(1, len(given.jobs)))


class Lone(HardSpec):
    """One job of 2^`doublings` slots."""

    doublings: int = rule("a whole number of doublings, 1 to 16", ge=1, le=16, default=10)


@hard(
    "zhou-lone",
    Lone,
    methods=("zhou.ps.online", "zhou.ra.online"),
    parameter="doublings",
    values=(2, 4, 6, 8, 10, 12),
    answer=as_given,
    growth="9L/(L + 1), which tends to 2α + 1 = 9",
    limit=9.0,
)
def lone(spec: Lone) -> Instance:
    """Return a single job of L = 2^k slots, which could start at once.

    The last slot of a window is never used, so a window of L slots is too short for it. It is planned at time 2L, for
    the interval from α·2L = 8L on, and completes at 9L.
    """
    return alone([job(1, minibatch_s=float(2**spec.doublings))])


class Blockers(HardSpec):
    """Blockers that fill all windows of a batch, and many small jobs that must wait for them."""

    jobs: int = rule("a whole number of small jobs, 1 to 2000", ge=1, le=2000, default=40)


@hard(
    "zhou-blockers",
    Blockers,
    methods=("zhou.ps.online", "zhou.ra.online"),
    parameter="jobs",
    values=(2, 5, 10, 40, 160, 640),
    answer=small_first,
    growth="tends to 4α = 16, so Theorem 5's ratio is tight",
    limit=16.0,
)
def blockers(spec: Blockers) -> Instance:
    """Return four blockers of 2L − 1 slots, of which the last is shorter by K, and K jobs of one slot that arrive at L.

    At time L no window is long enough for a blocker, and the small jobs arrive just too late for it. At 2L the blockers
    go first, since they weigh slightly more, one in each of the α = 4 windows of the interval from 8L to 16L. The small
    jobs get what the last blocker leaves, the end of the last window. They complete at 16L, and could have completed at
    L + K. With many small jobs, in a window that is long compared with their number, the ratio tends to 16.
    """
    window = 1 << math.isqrt(spec.jobs**3).bit_length()  # K/L vanishes
    lengths = [2 * window - 1] * (WINDOWS - 1) + [2 * window - 1 - spec.jobs]
    heavy = [job(1, minibatch_s=float(slots)) for slots in lengths]
    return alone([*heavy, *[job(1, weight=0.999, submit_s=float(window))] * spec.jobs])


class HeavyFirst(HardSpec):
    """A heavy job that needs all slots, and as many lighter jobs of one slot."""

    jobs: int = rule("a whole number of light jobs, 1 to 5000", ge=1, le=5000, default=20)


@hard(
    "zhou-heavy-first",
    HeavyFirst,
    methods=("zhou.ps.amaxweight", "zhou.ra.amaxweight"),
    parameter="jobs",
    values=(2, 4, 8, 16, 32, 64),
    answer=light_ones,
    growth="K/1.01; jobs are larger than Theorem 3 assumes",
    exponent=1.0,
)
def heavy_first(spec: HeavyFirst) -> Instance:
    """Return a job that takes the only GPU until the deadline, and K jobs of one slot that weigh slightly less each.

    A_maxweight goes by descending weight. On the empty cluster all prices are 0, so the heavy job costs nothing and is
    taken, and there is no slot left for the others. Theorem 3 assumes that a job takes at most 1/log λ of a server.
    """
    heavy = job(1, minibatch_s=float(spec.jobs), weight=1.01)
    return alone([heavy, *[job(1)] * spec.jobs], due_slot=spec.jobs + 1)


class Cheap(HardSpec):
    """Jobs that weigh what they consume, and one that weighs `times` as much."""

    times: int = rule("a whole number, 1 to 128", ge=1, le=128, default=16)


def side_by_side(given: Instance, problem: str) -> ZhouSchedule:
    """Return the schedule of all jobs at once, in the first slot."""
    columns = in_order(given, problem, range(len(given.jobs)))
    return replace(columns, start=np.ones_like(columns.start))


@hard(
    "zhou-cheap",
    Cheap,
    methods=("zhou.ra.amaxweight",),
    parameter="times",
    values=(1, 4, 16, 64, 128),
    answer=side_by_side,
    growth="log λ in the limit, half of the 2 log λ of Theorem 3, all of whose assumptions hold",
)
def cheap(spec: Cheap) -> Instance:
    """Return a server full of jobs that weigh exactly what they consume, and a job that weighs many times as much.

    The one valuable job makes F and so λ large. Prices (11) reach 1 when a share of 1/log λ of the server is in use,
    and then the others cannot pay, although nobody else comes. Jobs are small, as Theorem 3 assumes.
    """
    size = 64.0 * spec.times
    weights = [DEMANDS * spec.times] + [DEMANDS] * (int(size) - 1)
    host = servers(1, int(size), size, memory_gb=size, bandwidth_gbps=size)
    made = instance([job(1, weight=weight) for weight in weights], [host], [worker()], [ps()])
    return made.model_copy(update={"due_slot": 2})
