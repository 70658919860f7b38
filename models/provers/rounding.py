"""What all provers share: the rounding of multipliers to whole numbers of a unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.models.engine.solve import Solution

MARGIN = 1e-9
"""Fraction of an amount that is allowed for errors of floating-point sums."""

DIGITS = 2.0**55
"""The largest number that is rounded is about this many units."""


def duals(solution: Solution, rows: str, shape: tuple[int, ...]) -> Array:
    """Return the shadow prices of a constraint whose indices are numbers; 0 where it has no row."""
    prices = np.zeros(shape)
    for at in np.ndindex(shape):
        prices[at] = solution.duals.get(f"{rows}[{','.join(map(str, at))}]", 0.0)
    return prices


def unit_of(size: float) -> float:
    """Return a power of two that is about `size` / :data:`DIGITS`."""
    return 2.0 ** math.ceil(math.log2(max(size, 1e-200) / DIGITS))


def whole(numbers: Array, unit: float) -> Array:
    """Return numbers rounded to whole multiples of a unit."""
    return np.asarray(np.rint(numbers / unit))


def listed(numbers: Array) -> Any:
    """Return whole numbers as nested lists of integers."""
    return [listed(part) for part in numbers] if numbers.ndim > 1 else [int(x) for x in numbers]
