"""Small workloads and clusters for tests of the simulator and its policies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schedgap.heuristics.simulator import Assignment, Servers, Workload
from schedgap.instances.arrays import Ints
from schedgap.instances.utility import DEADLINE as CONSTANT
from schedgap.instances.utility import Utilities


def cluster(*hosts: tuple[int, int]) -> Servers:
    """Return servers with these ``(type, GPUs)``."""
    kind, gpus = np.array(hosts, np.int64).T
    zeros = np.zeros(len(hosts))
    return Servers(tuple(f"s{i}" for i in range(len(hosts))), kind, gpus, zeros, zeros)


def dense(assignment: Assignment, jobs: int, servers: int) -> Ints:
    """Return the ``(jobs, servers)`` matrix of GPUs in an assignment."""
    matrix = np.zeros((jobs, servers), np.int64)
    matrix[assignment.job, assignment.server] = assignment.gpus
    return matrix


def jobs(*rows: dict[str, Any], rates: tuple[float, ...] = (1.0, 2.0)) -> Workload:
    """Return a workload of jobs with ``work`` and optional ``gpus``, ``at``, ``until``, ``weight`` and ``rates``.

    Each job has a tenant of its own.
    """
    n = len(rows)
    names = tuple(f"j{i}" for i in range(n))
    return Workload(
        ids=names,
        tenants=names,
        gpu_types=tuple(f"t{i}" for i in range(len(rates))),
        tenant=np.arange(n),
        arrival_s=np.array([r.get("at", 0.0) for r in rows]),
        leave_s=np.array([r.get("until", math.inf) for r in rows]),
        gpus=np.array([r.get("gpus", 1) for r in rows]),
        work=np.array([r["work"] for r in rows], float),
        rates=np.array([r.get("rates", rates) for r in rows], float),
        exchange_s=np.array([r.get("exchange_s", 0.0) for r in rows], float),
        weight=np.array([r.get("weight", 1.0) for r in rows]),
        utilities=Utilities(np.full(n, CONSTANT), np.ones(n), np.full(n, math.inf), np.zeros(n)),
    )
