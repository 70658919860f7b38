"""Rates of jobs by CPUs and memory: the tables that all schedulers share (Synergy's W_j[c,m]).

A job's table has levels of CPUs and of memory, as totals of the whole gang. Between levels, the rate is that of the
levels below (*floored to the grid*); below the lowest levels it is 0. A gang on several servers advances at the pace of
the GPU with the fewest CPUs and the least memory.

- Measured on a grid (:class:`~schedgap.instances.schema.MatrixSensitivity`): the levels per GPU times the gang's
  GPUs; the rate on a GPU type is the job's rate there times the progress of the cell.
- Input pipeline (:class:`~schedgap.instances.schema.PipelineSensitivity`): whole CPUs, and memory in units of
  :data:`MEMORY_UNIT_GB` (Synergy, section 3.1), up to the capacity of the servers that the gang needs; the rate is the
  least of computing, preprocessing and fetching.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from schedgap.instances.arrays import ROUNDING, SLACK, Array, Bools, Ints
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.schema import Instance, MatrixSensitivity, PipelineSensitivity, Sensitivity
from schedgap.instances.workload import Servers, Workload

MEMORY_UNIT_GB = 50.0
"""Unit of memory allocation for jobs with a pipeline (Synergy, section 3.1)."""

MAX_LEVELS = (48, 32)
"""Most levels of CPUs and of memory of a pipeline; on larger servers, levels are multiples of the units."""


class Profiles(NamedTuple):
    """Rates of ``n`` jobs of ``K`` kinds on ``k`` GPU types at up to ``A`` × ``B`` levels.

    Compiled functions take this tuple directly.

    Attributes
    ----------
    kind
        ``(n,)`` kind of each job; jobs of a kind have the same gang, rates and sensitivity.
    gpus
        ``(K,)`` GPUs of the gang.
    cpus, memory_gb
        ``(K, A)`` and ``(K, B)`` levels of the whole gang, ascending; ``inf`` where a kind has fewer.
    rate
        ``(K, k, A, B)`` iterations per second of the whole gang; 0 if it cannot run there.
    """

    kind: Ints
    gpus: Ints
    cpus: Array
    memory_gb: Array
    rate: Array

    @property
    def kinds(self) -> int:
        """Number of kinds."""
        return len(self.gpus)

    def level(self, kind: Ints, cpus: Array, memory_gb: Array) -> tuple[Ints, Ints]:
        """Return the indices ``(x,)`` of the highest levels at or below the amounts ``(x,)``, −1 if there are none."""
        a = (self.cpus[kind] <= cpus[:, None] * (1 + ROUNDING)).sum(axis=1) - 1
        b = (self.memory_gb[kind] <= memory_gb[:, None] * (1 + ROUNDING)).sum(axis=1) - 1
        return a, b

    def rate_of(self, kind: Ints, gpu_type: Ints, cpus: Array, memory_gb: Array) -> Array:
        """Return ``(x,)`` iterations per second of gangs on one GPU type with these totals of CPUs and gigabytes."""
        a, b = self.level(kind, cpus, memory_gb)
        return np.where((a >= 0) & (b >= 0), self.rate[kind, gpu_type, a, b], 0.0)


def least_per_gpu(cluster: Servers, types: int) -> Array:
    """Return ``(k, 2)`` minimum CPUs and gigabytes per GPU over the servers of each GPU type; 0 if it has none."""
    hosts, amounts = cluster.with_gpus(types), cluster.amounts[:, 1:]
    return np.array([(amounts[h] / cluster.gpus[h, None]).min(axis=0) if h.size else np.zeros(2) for h in hosts])


def advancing(tables: Profiles, cluster: Servers) -> Bools:
    """Return ``(n,)`` whether each job fits on GPUs of one type and advances there with its proportional share."""
    kinds, types = tables.rate.shape[:2]
    kind, gpu_type = np.divmod(np.arange(kinds * types), types)
    share = tables.gpus[kind, None] * least_per_gpu(cluster, types)[gpu_type]
    room = np.bincount(cluster.gpu_type, cluster.gpus, types)[gpu_type] >= tables.gpus[kind]
    fair = np.where(room, tables.rate_of(kind, gpu_type, share[:, 0], share[:, 1]), 0.0)
    return np.asarray(fair.reshape(kinds, types).max(axis=1)[tables.kind] > 0)


def profiles(instance: Instance, work: Workload, cluster: Servers) -> Profiles:
    """Return the tables of all jobs of `instance`; `work` and `cluster` hold its jobs and servers as arrays.

    It raises `NotApplicableError` if a job has no sensitivity, or no server with GPUs has CPUs and memory.
    """
    hosts = cluster.gpus > 0
    if not (cluster.cpus[hosts].any() and cluster.memory_gb[hosts].any()):
        raise NotApplicableError(f"{instance.name}: servers with GPUs have no CPUs or no memory (cluster.servers)")
    index: dict[tuple[Sensitivity, int, tuple[float, ...]], int] = {}
    kind = np.zeros(work.size, np.int64)
    for j, job in enumerate(instance.jobs):
        if job.sensitivity is None:
            right = "a matrix of progress by CPUs and memory, or a pipeline; harness import fills it from the model"
            raise NotApplicableError(f"jobs[{j}].sensitivity = none: {right}")
        kind[j] = index.setdefault((job.sensitivity, job.gpus, tuple(work.rates[j].tolist())), len(index))
    tables = [_table(sensitivity, gpus, np.array(rates), cluster) for sensitivity, gpus, rates in index]
    # Pad all tables to one shape; a kind without levels (on tiny servers) never runs.
    most_a, most_b = max(1, *(len(t[0]) for t in tables)), max(1, *(len(t[1]) for t in tables))
    cpus, memory_gb = np.full((len(tables), most_a), np.inf), np.full((len(tables), most_b), np.inf)
    rate = np.zeros((len(tables), len(tables[0][2]), most_a, most_b))
    for i, (c, m, r) in enumerate(tables):
        cpus[i, : len(c)], memory_gb[i, : len(m)] = c, m
        rate[i, :, : len(c), : len(m)] = r
    return Profiles(kind, np.array([gpus for _, gpus, _ in index]), cpus, memory_gb, rate)


Table = tuple[Array, Array, Array]
"""Levels of CPUs ``(A,)`` and memory ``(B,)``, and rates ``(k, A, B)``."""


def _table(sensitivity: Sensitivity, gpus: int, rates: Array, cluster: Servers) -> Table:
    if isinstance(sensitivity, MatrixSensitivity):
        rate = gpus * rates[:, None, None] * np.array(sensitivity.progress)
        return gpus * np.array(sensitivity.cpus_per_gpu), gpus * np.array(sensitivity.memory_gb_per_gpu), rate
    hosts = cluster.gpus > 0
    span = math.ceil(gpus / cluster.gpus[hosts].max())
    cpus = span * _levels(float(cluster.cpus[hosts].max()), 1.0, MAX_LEVELS[0])
    memory_gb = span * _levels(float(cluster.memory_gb[hosts].max()), MEMORY_UNIT_GB, MAX_LEVELS[1])
    return cpus, memory_gb, pipeline_rate(sensitivity, gpus * rates[:, None, None], cpus[:, None], memory_gb[None, :])


def _levels(capacity: float, unit: float, most: int) -> Array:
    """Return the multiples of a unit up to a capacity; the unit is enlarged so that there are at most `most`."""
    unit *= max(1, math.ceil(capacity / unit / most))
    return np.asarray(unit * np.arange(1, int(capacity / unit * (1 + SLACK)) + 1), float)


def pipeline_rate(pipeline: PipelineSensitivity, gpu_rate: Array, cpus: Array, memory_gb: Array) -> Array:
    """Return the iterations per second of an input pipeline; arguments broadcast.

    ``min(gpu_rate, c·prep_rate_per_cpu, storage / (item·(1 − hits)))`` with ``hits = min(1, (m − process)/dataset)``:
    cached items stay cached (MinIO), so that every epoch has the same hits. A job whose process does not fit into its
    memory does not run.

    `gpu_rate` is the rate of the whole gang if it never waits for data; CPUs and memory are totals of the gang.
    """
    hits = np.clip((memory_gb - pipeline.process_memory_gb) / pipeline.dataset_gb, 0.0, 1.0)
    missed_mb = pipeline.item_mb_per_iteration * (1 - hits)
    with np.errstate(divide="ignore", over="ignore"):
        fetched = np.where(missed_mb > 0, pipeline.storage_mb_per_s / missed_mb, np.inf)
    rate = np.minimum(np.minimum(gpu_rate, cpus * pipeline.prep_rate_per_cpu), fetched)
    return np.asarray(np.where(memory_gb * (1 + ROUNDING) >= pipeline.process_memory_gb, rate, 0.0))
