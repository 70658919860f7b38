"""Random instances on which optima are exact, and parts of instances with short names: for audits, searches and tests.

One file per paper, which registers its ``draw(rng, ...)``. That asks `rng` for whole numbers only, so that a seeded
generator and a testing library draw the same kinds of instances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from schedgap.instances.discovery import import_submodules
from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance

T = TypeVar("T")


class Source(Protocol):
    """Where randomness comes from: a numpy generator, or a test that shrinks what fails."""

    def integers(self, low: int, high: int) -> Any:
        """Return a whole number from `low` to below `high`."""
        ...


def pick(rng: Source, among: Sequence[T]) -> T:
    """Return one of a sequence."""
    return among[int(rng.integers(0, len(among)))]


@dataclass(frozen=True)
class RandomSpec:
    """Random instances on which a paper's optima are exact within milliseconds; `id` is the paper's."""

    id: str
    draw: Callable[[np.random.Generator], Instance]


RANDOM: Registry[RandomSpec] = Registry("family of random instances")

import_submodules(__name__)
