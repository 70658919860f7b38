"""Reads what the completion of a job is worth, by the seconds since the start of its arrival slot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..basics import MORE, Array, Data
from .jobs import work_of

THROUGHPUT, SIGMOID, DEADLINE = range(3)
"""Shapes of utility after ``d`` seconds: ``a / d``; ``a / (1 + exp(b·(d − c)))``; and ``a`` until ``b`` seconds, then
falling linearly to 0 within ``c`` seconds."""


class RawUtilities(NamedTuple):
    """Shapes and parameters ``(n,)`` of the jobs' utilities."""

    shape: Array
    a: Array
    b: Array
    c: Array

    def value(self, job: Any, seconds: Any) -> Array:
        """Return the utility of jobs that complete the given seconds after the start of their arrival slots."""
        job, d = np.broadcast_arrays(np.asarray(job, np.int64), np.asarray(seconds, float))
        shape, a, b, c = (column[job] for column in self)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            late = np.where(d <= b * MORE, 0.0, (d - b) / c)
            worth = a / d, a / (1.0 + np.exp(b * (d - c))), a * (1.0 - np.minimum(late, 1.0))
        return np.asarray(np.choose(shape, worth))


def utilities_of(jobs: Sequence[Data], begin_s: Array, best: Array) -> RawUtilities:
    """Return the utilities of jobs; their time counts from `begin_s`, and `best` has their largest rates, ``(n,)``."""
    rows = [_shape(*row) for row in zip(jobs, begin_s.tolist(), best.tolist(), strict=True)]
    return RawUtilities(*(np.array(column) for column in zip(*rows, strict=True)))


def _shape(job: Data, begin_s: float, best: float) -> tuple[int, float, float, float]:
    curve = job.get("utility", {"kind": "effective_throughput"})
    kind, a = curve["kind"], curve.get("amplitude", 0.0)
    if kind == "effective_throughput":
        return THROUGHPUT, work_of(job), 0.0, 0.0
    if kind == "normalised":
        return THROUGHPUT, work_of(job) / (job["gpus"] * best) if best else 0.0, 0.0, 0.0
    if kind == "sigmoid":
        return SIGMOID, a, curve["steepness_per_s"], curve.get("midpoint_s", 0.0)
    due = math.inf if kind == "constant" or "deadline_s" not in job else job["deadline_s"] - begin_s
    return DEADLINE, a, due, curve.get("grace_s", 0.0)
