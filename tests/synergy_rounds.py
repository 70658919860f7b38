"""The best round on servers, and the best run, by trying every configuration of every job."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from synergy_cases import instance, job, matrix, servers

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.schema import Instance
from schedgap.instances.views.synergy import SynergyView
from schedgap.models.synergy.configurations import configurations, fitting

Option = tuple[float, Array]
"""Progress, and ``(s, 3)`` GPUs, CPUs and gigabytes on every server."""


def shares(gang: int, most: list[int]) -> list[tuple[int, ...]]:
    """Return the ways to spread the GPUs of a gang over servers with at most so many GPUs."""
    return [part for part in product(*(range(min(gang, n) + 1) for n in most)) if sum(part) == gang]


def options(view: SynergyView, j: int, fair: bool) -> list[Option]:
    """Return what job j may hold; fewer CPUs and memory at the same progress make the others superfluous."""
    tables, kind, found = view.profiles, int(view.profiles.kind[j]), list[Option]()
    for i in range(view.types):
        if fair and not view.needs.able[kind, i]:
            continue
        hosts = np.flatnonzero((view.servers.gpu_type == i) & (view.servers.gpus > 0))
        pairs = []
        for a, b in product(range(tables.cpus.shape[1]), range(tables.memory_gb.shape[1])):
            held, rate = np.array([tables.cpus[kind, a], tables.memory_gb[kind, b]]), float(tables.rate[kind, i, a, b])
            if (held <= view.needs.limit[kind, i]).all() and rate > 0:
                pairs.append((held, rate))
        floor = float(view.needs.fair[kind, i]) if fair else 0.0
        for held, rate in pairs:
            beaten = any((h <= held).all() and r >= rate and (h < held).any() for h, r in pairs)
            if rate < floor or beaten:
                continue
            gang = int(view.workload.gpus[j])
            for part in shares(gang, view.servers.gpus[hosts].tolist()):
                use = np.zeros((view.servers.size, 3))
                use[hosts] = np.outer(part, [1.0, *(held / gang)])
                found.append((float(view.weight[j]) * rate, use))
    return found


def best_on_servers(view: SynergyView, jobs: Ints, fair: bool) -> float:
    """Return the most progress of a round: with `fair`, every job runs at its fair progress; else any may stay away."""
    choices = [options(view, j, fair) for j in jobs.tolist()]
    after = np.append(np.cumsum([max((v for v, _ in own), default=0.0) for own in choices[::-1]])[::-1], 0.0)
    best = -np.inf

    def extend(n: int, value: float, room: Array) -> None:
        nonlocal best
        if value + after[n] <= best:
            return
        if n == len(choices):
            best = value
            return
        for gain, use in sorted(choices[n], key=lambda option: -option[0]):
            if (use <= room).all():
                extend(n + 1, value + gain, room - use)
        if not fair:
            extend(n + 1, value, room)

    extend(0, 0.0, view.servers.amounts * (1 + 1e-9))
    return float(best)


def best_run(view: SynergyView, rounds: int) -> float:
    """Return the least mean completion time of any schedule on super-machines, by exhaustive search over rounds."""
    jobs, slot_s = view.possible.tolist(), view.slot_s
    held = configurations(view, fitting(view))
    pools = view.pools
    room = np.column_stack((pools.gpus, pools.cpus, pools.memory_gb)) * (1 + 1e-9)
    amount = held.held()
    of = {j: np.flatnonzero(held.kind == view.profiles.kind[j]).tolist() for j in jobs}
    memo: dict[tuple[int, tuple[float, ...]], float] = {}

    def search(t: int, left: tuple[float, ...]) -> float:
        if not any(left):
            return 0.0
        if t == rounds:
            return math.inf
        key = (t, left)
        if key not in memo:
            options = [
                [None, *of[j]] if rest > 0 and view.arrival[j] <= t else [None]
                for j, rest in zip(jobs, left, strict=True)
            ]
            memo[key] = min((after(t, left, chosen) for chosen in product(*options)), default=math.inf)
        return memo[key]

    def after(t: int, left: tuple[float, ...], chosen: tuple[int | None, ...]) -> float:
        used, total, rest = np.zeros_like(room), 0.0, []
        for j, work, q in zip(jobs, left, chosen, strict=True):
            if q is None:
                rest.append(work)
                continue
            used[held.gpu_type[q]] += amount[q]
            seconds = work / held.rate[q]
            if seconds <= slot_s * (1 + 1e-12):
                total += t * slot_s + seconds - view.workload.arrival_s[j]
                rest.append(0.0)
            else:
                rest.append(round(work - slot_s * float(held.rate[q]), 9))
        if not (used <= room).all() or (tuple(rest) == left and t > int(view.arrival.max())):
            return math.inf
        return total + search(t + 1, tuple(rest))

    return search(0, tuple(view.workload.work[jobs].tolist())) / len(jobs)


def tiny(works: list[int], gpus: list[int], submit_s: list[float]) -> Instance:
    """Return an instance of jobs whose rate grows with CPUs, on four GPUs and eight CPUs, in rounds of 100 s."""
    given = matrix((1.0, 2.0, 3.0), (10.0,), [[1.0], [2.0], [3.0]])
    jobs = [
        job(gpus=g, iterations=w, submit_s=at, rates={"V100": 1.0}, sensitivity=given)
        for w, g, at in zip(works, gpus, submit_s, strict=True)
    ]
    return instance(jobs, [servers(1, gpus=4, cpus=8.0, memory_gb=100.0)], slot_s=100.0)
