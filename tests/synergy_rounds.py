"""The best round on servers, by trying every set of servers and every configuration of every job."""

from __future__ import annotations

from itertools import product

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.views.synergy import SynergyView

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
