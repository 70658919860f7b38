"""HadarE's Job Forker and Job Tracker: identities of copies, split of the steps, progress of a round, Theorem 3."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from schedgap.instances.arrays import Array, Ints


@dataclass(frozen=True, eq=False)
class Dispatch:
    """Orders to the copies of a round; one row per copy.

    Attributes
    ----------
    copy
        Identity of the copy (§V-A).
    job, server, gpus
        Index of the job, of the server, and GPUs of the copy.
    steps
        Iterations assigned.
    """

    copy: Ints
    job: Ints
    server: Ints
    gpus: Ints
    steps: Array


def copy_id(max_job_count: int, i: Ints, parent: Ints) -> Ints:
    """Return ``max_job_count · i + parent``, the identity of the i-th copy (from 1) of a job (§V-A)."""
    return np.asarray(max_job_count * i + parent)


def parent(max_job_count: int, copy: Ints) -> Ints:
    """Return the jobs (0 to ``max_job_count − 1``) that copies belong to."""
    return np.asarray(copy % max_job_count)


def split(job: Ints, remaining: Array, throughput: Array) -> Array:
    """Return the steps of each copy: those left of its job, in proportion to throughput (§V-B).

    Parameters
    ----------
    job
        ``(copies,)`` row of the job in `remaining`.
    remaining
        ``(a,)`` steps left.
    throughput
        ``(copies,)`` positive, as far as the tracker knows.
    """
    total = np.bincount(job, throughput, remaining.size)
    return np.asarray(remaining[job] * throughput / total[job])


def pace(job: Ints, steps: Array, rate: Array, round_s: float, overhead_s: float) -> Array:
    """Return the factor on the summed rate of the copies by which each job advances in a round, by ascending job.

    A copy that has done its steps waits for the next round; one that has not keeps the rest for it. Jobs of two or
    more copies lose `overhead_s` to aggregation and consolidation.

    Parameters
    ----------
    job, steps, rate
        ``(copies,)`` row of the job, steps assigned, true iterations per second.
    round_s, overhead_s
        Seconds.
    """
    _, row, copies = np.unique(job, return_inverse=True, return_counts=True)
    overhead = np.where(copies > 1, overhead_s, 0.0)
    total = np.bincount(row, rate)
    needed = np.zeros(copies.size)
    np.maximum.at(needed, row, steps / rate)
    done = np.bincount(row, np.minimum(steps, rate * (round_s - overhead)[row]))
    assigned = np.bincount(row, steps)
    finishes = needed <= round_s - overhead
    return np.asarray(np.where(finishes, assigned / (needed + overhead), done / round_s) / total)


def utilisation(rounds: int, nodes: int, copies: int) -> float:
    """Return Theorem 3's cluster utilisation of one job by its number of copies.

    Case II: a job of `rounds` rounds on one node is done after ``⌈rounds / copies⌉``. The theorem's strict inequalities
    (11) fail where these are equal: 3 rounds on 5 nodes take one round, 60 % of the cluster, with 3, 4 or 5 copies.

    Parameters
    ----------
    rounds
        ``R_1``, rounds without forking.
    nodes
        ``n``.
    copies
        ``x``; more than `nodes` make no difference (Case IV).
    """
    return rounds / (nodes * math.ceil(rounds / min(copies, nodes)))
