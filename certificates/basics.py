"""What all rules use: the error that refuses a certificate, and rounding to the safe side."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Data = Mapping[str, Any]
"""An instance, or a certificate, as plain data."""

LESS, MORE = 1 - 1.01e-9, 1 + 1.01e-9
"""Tolerance of the problems: 1.01e-9 of a job's work, of a time, or of the CPUs or memory of a level may be missing."""

STRETCH = 1 + 2.1e-8
"""Capacities and bandwidths may be exceeded by 2.1e-8, a little more than checkers of decisions accept."""

LOW, HIGH = 1 - 1e-11, 1 + 1e-12
"""Factors that round sums of costs, and values, to the safe side; they exceed floating-point errors."""

NEVER, DEAR = -(2**62), 2**61


class RefusedError(Exception):
    """A certificate does not prove its bound, or a decision breaks a rule; the message says why."""


def require(true: bool, reason: str) -> None:
    """Raise `RefusedError` with the reason unless the condition is true."""
    if not true:
        raise RefusedError(reason)


def numeric(content: object) -> bool:
    """Return whether part of a certificate has no texts with digits.

    A number as a text, such as 1e9999999, would be read as an exact fraction, which can take minutes.
    """
    if isinstance(content, Mapping):
        return all(map(numeric, content.values()))
    if isinstance(content, str):
        return not any(map(str.isdigit, content))
    return all(map(numeric, content)) if isinstance(content, list) else True


def up(value: Any, unit: float) -> Array:
    """Return values as integer multiples of a unit, rounded up beyond floating-point errors."""
    with np.errstate(over="ignore"):  # infinite values are refused in the next line
        scaled = np.maximum(np.asarray(value, float) / unit, NEVER)
    require(bool((scaled < DEAR).all()), "a value is too large for the unit")
    return np.ceil(scaled + np.abs(scaled) * 1e-12).astype(np.int64)


def total(numbers: Any) -> Fraction:
    """Return the exact sum of floats."""
    return sum(map(Fraction, np.asarray(numbers, float).ravel().tolist()), Fraction(0))
