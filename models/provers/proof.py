"""Proofs of bounds as plain data, and the rounding of their multipliers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.instances.arrays import Array
from schedgap.models.registry import Outcome
from schedgap.models.solve import Solution, SolveOptions

MARGIN = 1e-9
"""Margin, as a fraction of all terms of a bound, for floating-point sums."""

DIGITS = 2.0**55
"""Number of units in the largest number that is rounded to whole units."""


@dataclass(frozen=True, eq=False)
class Proof:
    """Multipliers from which a bound follows by weak duality, evaluated independently of the solver.

    The `bound` is rounded to the safe side by :data:`MARGIN` of its terms; `content` has the multipliers, as plain data
    that ``examples/check_certificate.py`` documents.
    """

    bound: float
    content: Mapping[str, Any]

    @staticmethod
    def of(value: float, size: float, sense: int, content: Mapping[str, Any], margin: float = MARGIN) -> Proof | None:
        """Return the proof of `value`, whose terms have the absolute sum `size`; ``None`` if that is not finite."""
        bound = value + sense * margin * size
        return Proof(bound, content) if math.isfinite(bound) else None


Prover = Callable[[Any, Outcome, SolveOptions], Proof | None]
"""``prover(view, outcome, options)`` returns a proof of a problem's bound, or ``None`` if there is none."""


def duals(solution: Solution, rows: str, shape: tuple[int, ...]) -> Array:
    """Return the shadow prices of a constraint indexed by numbers; 0 where it has no row."""
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
