"""Small instances, built by hand or drawn at random, on which optima are exact: for audits, searches and tests.

One file per paper. Random ones take a function that picks one of a sequence, so that a seeded generator
(:func:`picker`) and a testing library draw the same kinds of instances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedgap.instances.discovery import import_submodules
from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance

Choose = Callable[[Sequence[Any]], Any]
"""Picks one of a sequence."""


def picker(rng: np.random.Generator) -> Choose:
    """Return a function that picks one of a sequence at random."""
    return lambda among: among[int(rng.integers(len(among)))]


@dataclass(frozen=True)
class SmallSpec:
    """Random instances on which a paper's optima are exact within milliseconds; `id` is the paper's."""

    id: str
    draw: Callable[[np.random.Generator], Instance]


SMALL: Registry[SmallSpec] = Registry("family of small instances")

import_submodules(__name__)
