"""Random instances on which optima are exact, and parts of instances with short names: for audits, searches and tests.

One file per paper, which registers its ``draw(rng, ...)``. That asks `rng` for whole numbers only, so that a seeded
generator and a testing library draw the same kinds of instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from schedgap.instances.discovery import import_submodules
from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance

T = TypeVar("T")

MB_PER_S = 1000.0 / 8 / 2
"""Gradient that takes a worker of 1 Gbit/s a second to send and receive."""


class Source(Protocol):
    """Where randomness comes from: a numpy generator, or a test that shrinks what fails."""

    def integers(self, low: int, high: int) -> Any:
        """Return a whole number from `low` to below `high`."""
        ...


def pick(rng: Source, among: Sequence[T]) -> T:
    """Return one of a sequence."""
    return among[int(rng.integers(0, len(among)))]


def cluster(groups: Iterable[Mapping[str, Any]], prefix: str = "h") -> dict[str, Any]:
    """Return a cluster of groups of servers: ``h0``, ``h1``, … of one server each, unless a group says otherwise."""
    servers = [{"name": f"{prefix}{i}", "count": 1, **group} for i, group in enumerate(groups)]
    types = dict.fromkeys(server["gpu_type"] for server in servers)
    return {"gpu_types": [{"name": name} for name in types], "servers": servers}


@dataclass(frozen=True)
class RandomSpec:
    """Random instances on which a paper's optima are exact within milliseconds; `id` is the paper's."""

    id: str
    draw: Callable[[np.random.Generator], Instance]


RANDOM: Registry[RandomSpec] = Registry("family of random instances")

import_submodules(__name__)
