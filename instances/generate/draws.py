"""Inverse distribution functions, and rounding to what is the same on every machine.

Every function maps uniform numbers ``u`` in [0, 1) to values, item by item, so that a longer ``u`` only
appends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from schedgap.instances.arrays import Array
from schedgap.instances.model_catalogue import significant


def poisson_arrivals(u: Array, rate: float) -> Array:
    """Return arrival times with exponential gaps of mean ``1/rate``, starting from 0."""
    return np.cumsum(-np.log1p(-u)) / rate


def log_uniform(u: Array, mean: float, spread: float) -> Array:
    """Return values with uniform logarithms, the largest `spread` times the smallest, of exactly this mean.

    The density is ``1/x`` between ``a`` and ``a·spread``, so the mean is ``a·(spread − 1)/ln(spread)``:
    heavy, as job sizes are (Philly spans orders of magnitude), but bounded, so that every job can finish.
    """
    low = mean * math.log(spread) / (spread - 1)
    return low * np.power(spread, u)


def choice(u: Array, probabilities: Sequence[float]) -> NDArray[np.int64]:
    """Return indices drawn with these probabilities."""
    edges = np.cumsum(probabilities)
    return np.minimum(np.searchsorted(edges / edges[-1], u, side="right"), len(probabilities) - 1)


def between(u: float, low: float, high: float) -> float:
    """Return a value uniform between `low` and `high`."""
    return low + (high - low) * u


def whole(u: float, low: int, high: int) -> int:
    """Return a whole number uniform between `low` and `high`, both included."""
    return low + min(int(u * (high - low + 1)), high - low)


def rounded(values: Array) -> list[float]:
    """Return values at six significant digits.

    Libraries differ in the last bits of logarithms and powers; rounding keeps fingerprints the same
    everywhere.
    """
    return [significant(float(v)) for v in values]
