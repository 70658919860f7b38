"""Utility of completing jobs (Hadar's ``U_j``), vectorized over jobs.

All kinds are non-increasing in the completion time. With ``d`` seconds from the job's arrival to its completion:

==================  ===================================================================================
effective           ``iterations / d``, in iterations per second (Hadar's default)
normalised          effective throughput divided by ``gpus · best rate``: 1 for a job that never waits
sigmoid             ``amplitude / (1 + exp(steepness · (d − midpoint)))``
linear deadline     ``amplitude`` up to the deadline, then falling to 0 within the grace period
constant            ``amplitude``
==================  ===================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from schedgap.instances.arrays import ROUNDING, Array, Ints
from schedgap.instances.schema import job as schema
from schedgap.instances.schema.job import Job

THROUGHPUT, SIGMOID, DEADLINE = range(3)


class Utilities(NamedTuple):
    """Utility functions of ``n`` jobs as parameters of three shapes; compiled functions take this tuple directly.

    Attributes
    ----------
    shape
        ``(n,)`` one of :data:`THROUGHPUT` (``a/d``), :data:`SIGMOID` (``a/(1 + exp(b·(d − c)))``) and
        :data:`DEADLINE` (``a`` until ``b`` seconds, then linearly to 0 within ``c`` seconds).
    a, b, c
        ``(n,)`` parameters.
    """

    shape: Ints
    a: Array
    b: Array
    c: Array

    def of(self, jobs: Ints) -> Utilities:
        """Return the utility functions of the jobs with these indices."""
        return Utilities(self.shape[jobs], self.a[jobs], self.b[jobs], self.c[jobs])

    def value(self, jobs: ArrayLike, duration_s: ArrayLike) -> Array:
        """Return the utility of completing jobs `duration_s` seconds after their arrival.

        Job indices and durations (positive) are broadcast against each other.
        """
        jobs, d = np.broadcast_arrays(np.asarray(jobs, np.int64), np.asarray(duration_s, float))
        shape, a, b, c = self.of(jobs)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            late = np.where(d <= b * (1 + ROUNDING), 0.0, (d - b) / c)
            choices = a / d, a / (1.0 + np.exp(b * (d - c))), a * (1.0 - np.minimum(late, 1.0))
        return np.asarray(np.choose(shape, choices))


def utilities(jobs: Sequence[Job], arrival_s: Array, best_rate: Array) -> Utilities:
    """Return the utility functions of `jobs`.

    Durations count from `arrival_s` ``(n,)``; a deadline is a point in time. `best_rate` ``(n,)`` is in iterations per
    second of one GPU of the fastest type.
    """
    rows = [_parameters(*row) for row in zip(jobs, arrival_s.tolist(), best_rate.tolist(), strict=True)]
    shape, a, b, c = zip(*rows, strict=True)
    return Utilities(np.array(shape, np.int64), np.array(a, float), np.array(b, float), np.array(c, float))


def _parameters(job: Job, arrival_s: float, best_rate: float) -> tuple[int, float, float, float]:
    match job.utility:
        case schema.EffectiveThroughput():
            return THROUGHPUT, float(job.iterations), 0.0, 0.0
        case schema.NormalisedThroughput():
            return THROUGHPUT, job.iterations / (job.gpus * best_rate) if best_rate > 0 else 0.0, 0.0, 0.0
        case schema.Sigmoid(amplitude=a, steepness_per_s=b, midpoint_s=c):
            return SIGMOID, a, b, c
        case schema.LinearDeadline(amplitude=a, grace_s=grace):
            left = math.inf if job.deadline_s is None else job.deadline_s - arrival_s
            return DEADLINE, a, left, grace
        case schema.Constant(amplitude=a):
            return DEADLINE, a, math.inf, 0.0
