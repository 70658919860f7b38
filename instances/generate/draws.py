"""Inverse distribution functions, and rounding that gives the same values on every machine.

Every function maps uniform numbers ``u`` in [0, 1) to values item by item, so that a longer ``u`` only appends values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from schedgap.instances.arrays import Array, Ints
from schedgap.instances.model_catalogue import significant


def poisson_arrivals(u: Array, rate: float) -> Array:
    """Return arrival times with exponential gaps of mean ``1/rate``, starting from 0."""
    return np.cumsum(-np.log1p(-u)) / rate


def log_uniform(u: Array, mean: float, spread: float) -> Array:
    """Return log-uniform values of expectation `mean`, with an upper end that is `spread` times the lower end.

    The density is proportional to ``1/x`` between ``a`` and ``a·spread``, so that the mean is
    ``a·(spread − 1)/ln(spread)``. It is heavy-tailed like job sizes (Philly spans orders of magnitude), but bounded, so
    that every job can finish.
    """
    low = mean * math.log(spread) / (spread - 1)
    return low * np.power(spread, u)


def choice(u: Array, probabilities: Sequence[float]) -> Ints:
    """Return indices drawn with these probabilities."""
    edges = np.cumsum(probabilities)
    return np.minimum(np.searchsorted(edges / edges[-1], u, side="right"), len(probabilities) - 1)


Uniform = TypeVar("Uniform", float, Array)


def between(u: Uniform, low: float, high: float) -> Uniform:
    """Return a value (or values) uniform between `low` and `high`."""
    return low + (high - low) * u


def whole(u: float, low: int, high: int) -> int:
    """Return a whole number uniform between `low` and `high`, both included."""
    return low + min(int(u * (high - low + 1)), high - low)


def rounded(values: Array) -> list[float]:
    """Return values rounded to six significant digits.

    Libraries differ in the last bits of logarithms and powers; rounding makes fingerprints the same everywhere.
    """
    return [significant(float(v)) for v in values]
