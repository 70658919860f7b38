"""Moldable jobs (Zhou, admission): workers with parameter servers (PSs), or rings of workers, on servers.

All PSs of a run are on one server, and their bandwidth limits the number of workers on other servers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..basics import LESS, STRETCH, Array, Data
from .jobs import work_of
from .servers import counts, server_names

RESOURCES = {"gpus": "GPU", "cpus": "CPU", "memory_gb": "memory", "bandwidth_gbps": "bandwidth"}
"""Resources of servers, workers and PSs (Zhou): fields of the instance, and their names."""


def times(job: Data, worker: Data, server: Data | None) -> tuple[float, float, float]:
    """Return how many seconds a mini-batch, an update, and a transfer of gradients both ways take.

    In a ring, there is no PS: `server` is ``None``.
    """
    profile = job.get("distributed") or {}
    if together := profile.get("colocated_rate_per_s"):
        return 1 / together, 0.0, max(1 / (profile.get("spread_rate_per_s") or together) - 1 / together, 0.0)
    updates, ring = profile.get("update_ms", {}), profile.get("ring_update_ms")
    if server is not None:
        update = updates.get(server["name"], 0.0)
    else:
        update = min(updates.values(), default=0.0) if ring is None else ring
    transfer = profile.get("gradient_mb", 0.0) * 16 / (worker["bandwidth_gbps"] * 1000)
    measured, rate = profile.get("minibatch_ms", {}), job.get("rates", {}).get(worker.get("gpu_type") or "", 0.0)
    alone = 1 / (rate * worker["gpus"]) if rate * worker["gpus"] else math.inf
    return measured[worker["name"]] / 1000 if worker["name"] in measured else alone, update / 1000, transfer


class Hardware(NamedTuple):
    """The types of workers and PSs (none for rings), and what they take of the servers' resources.

    Attributes
    ----------
    have
        ``(groups, R)`` capacity of a server of each group.
    takes
        ``(M, R)`` and ``(P, R)`` needs of a worker and of a PS of each type.
    able
        ``(M, groups)`` whether workers of a type can run on servers of a group.
    """

    resources: tuple[str, ...]
    workers: Sequence[Data]
    ps: Sequence[Data]
    have: Array
    takes: tuple[Array, Array]
    able: Array


def amounts(parts: Sequence[Data]) -> Array:
    """Return ``(parts, R)`` how much of each of :data:`RESOURCES` each part has, or needs."""
    return np.array([[part.get(r, 0.0) for r in RESOURCES] for part in parts], float).reshape(-1, len(RESOURCES))


def able(workers: Sequence[Data], groups: Sequence[Data]) -> Array:
    """Return ``(M, groups)`` whether the GPU type of each group is the one that the workers of a type need, if any."""
    return np.array([[w.get("gpu_type") in (None, g["gpu_type"]) for g in groups] for w in workers], bool)


class Layout(NamedTuple):
    """Types of a run's workers and PSs, and whether all of them are on one server."""

    worker: int
    ps: int
    together: int


class RawMoldable:
    """``n`` moldable jobs on some hardware, in slots of `slot_s` seconds.

    Attributes
    ----------
    work, chunks, weight
        ``(n,)`` mini-batches, the largest number of workers, and weights.
    names, capacity
        Names and ``(h, R)`` capacities of the servers.
    has, count, room
        ``(c, R)`` capacity and ``(c,)`` number of the servers of each class of equal ones, and ``(M, c)`` number of
        workers of each type that fit on one.
    """

    def __init__(self, data: Data, hardware: Hardware, slot_s: float, ring: bool = False) -> None:
        self.jobs: Sequence[Data] = data["jobs"]
        self.hardware, self.slot_s, self.ring = hardware, slot_s, ring
        self.ids = tuple(job["id"] for job in self.jobs)
        self.work = np.array([work_of(job) for job in self.jobs])
        self.chunks = np.array([job.get("chunks", 1) for job in self.jobs], np.int64)
        self.weight = np.array([job.get("weight", 1.0) for job in self.jobs], float)
        groups: Sequence[Data] = data["cluster"]["servers"]
        servers = counts(data)
        self.names = server_names(data)
        self.capacity = np.repeat(hardware.have, servers, axis=0)
        self.gpu_types = np.repeat([group["gpu_type"] for group in groups], servers)
        self._of_classes(servers)

    def _of_classes(self, servers: Sequence[int]) -> None:
        kinds: dict[Any, int] = {}
        for amount, runs, number in zip(self.hardware.have, self.hardware.able.T, servers, strict=True):
            key = tuple(amount.tolist()), tuple(runs.tolist())
            kinds[key] = kinds.get(key, 0) + number
        self.has, self.count = np.array([has for has, _ in kinds], float), np.array(list(kinds.values()))
        with np.errstate(divide="ignore", invalid="ignore"):
            fits = np.nanmin(np.floor(self.has[:, None] * STRETCH / self.hardware.takes[0]), axis=2)
        self.room = np.where([runs for _, runs in kinds], np.minimum(fits, 10**6), 0).astype(int).T

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.jobs)

    @cache  # noqa: B019 -- there are few objects
    def seconds(self, m: int, p: int) -> Array:
        """Return the ``(n, 3)`` :func:`times` of all jobs with these types of workers and PSs."""
        worker, server = self.hardware.workers[m], None if self.ring else self.hardware.ps[p]
        return np.array([times(job, worker, server) for job in self.jobs]).reshape(-1, 3)

    def per_batch(self, jobs: Any, layout: Layout, number: Any) -> Array:
        """Return how many slots a worker takes for a mini-batch (1); jobs and numbers of workers broadcast.

        In a ring of N workers, all but the training time is multiplied by (N − 1)/N, (14).
        """
        m, p, together = layout
        compute, update, transfer = np.moveaxis(self.seconds(m, p)[jobs] / self.slot_s, -1, 0)
        share = (number - 1) / number if self.ring else 1.0
        return np.asarray(compute + share * (update + np.where(together, 0.0, transfer)))

    def slots(self, jobs: Any, layout: Layout, number: Any) -> Array:
        """Return how many slots all work of jobs takes; infinite where their workers cannot run."""
        exact = self.work[jobs] * self.per_batch(jobs, layout, number) / number
        return np.asarray(np.maximum(np.ceil(exact * LESS), 1))

    def layouts(self) -> list[Layout]:
        """Return all layouts, on several servers and on one, of types whose workers fit on some server."""
        pairs = np.ndindex(len(self.hardware.workers), len(self.hardware.ps) or 1)
        return [Layout(m, p, one) for m, p in pairs for one in range(2 if self.room[m].any() else 0)]

    @cache  # noqa: B019 -- there are few objects
    def servers(self, layout: Layout) -> Array:
        """Return the fewest PSs that 1, 2, … workers need on the empty servers; infinite where they do not fit."""
        (m, p, together), n = layout, np.arange(1, int(self.chunks.max(initial=0)) + 1)
        worker, server = self.hardware.takes[0][m], 0.0 if self.ring else self.hardware.takes[1][p]
        if together:
            whole = worker * n[:, None] + server
            fits = (whole[:, None] <= self.has * STRETCH).all(axis=2)[:, self.room[m] > 0].any(axis=1)
        else:
            fits = n <= self.room[m] @ self.count
        fewest = np.zeros(n.size) if self.ring else np.ones(n.size) if together else self._apart(m, p, n.size)
        return np.where(fits, fewest, np.inf)

    def _apart(self, m: int, p: int, most: int) -> Array:
        """Return the fewest PSs on one server that serve 1, 2, … workers, some of which are on other servers."""
        worker, server = self.hardware.takes[0][m], self.hardware.takes[1][p]
        each = self.hardware.workers[m]["bandwidth_gbps"] / self.hardware.ps[p]["bandwidth_gbps"] / STRETCH
        fewest = np.full(most, np.inf)
        for c in range(len(self.has)):
            for local in range(min(self.room[m][c], most) + 1):
                n = np.arange(local + 1, most + 1)
                need = np.maximum(np.ceil((n - local) * each), 1)
                fits = (local * worker + need[:, None] * server <= self.has[c] * STRETCH).all(axis=1)
                fits &= n - local <= self.room[m] @ self.count - self.room[m][c]
                fewest[local:] = np.minimum(fewest[local:], np.where(fits, need, np.inf))
        return np.minimum.accumulate(fewest[::-1])[::-1]

    def runs(self) -> Iterator[tuple[Layout, Array, Array, Array]]:
        """Yield, for each layout, numbers of workers ``(q,)``, fewest PSs, and ``(n, q)`` slots of all jobs.

        Numbers that do not fit on the empty servers are left out; slots are infinite beyond the job's chunks.
        """
        for layout in self.layouts():
            servers = self.servers(layout)
            number = np.flatnonzero(np.isfinite(servers)) + 1
            slots = self.slots(np.arange(self.size)[:, None], layout, number)
            yield layout, number, servers[number - 1], np.where(number <= self.chunks[:, None], slots, np.inf)
