"""Registry of random instances, and builders for parts of instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from schedgap.instances.registry import Registry
from schedgap.instances.schema import Instance

T = TypeVar("T")

MB_PER_S = 1000.0 / 8 / 2
"""Gradient in MB that a worker with 1 Gbit/s sends and receives in one second."""


class Source(Protocol):
    """Source of randomness: a numpy generator, or a property test that shrinks failing examples."""

    def integers(self, low: int, high: int) -> Any:
        """Return an integer in ``[low, high)``."""
        ...


def pick(rng: Source, among: Sequence[T]) -> T:
    """Return a random element of a sequence."""
    return among[int(rng.integers(0, len(among)))]


def cluster(groups: Iterable[Mapping[str, Any]], prefix: str = "h") -> dict[str, Any]:
    """Return a cluster of server groups, by default ``h0``, ``h1``, … of one server each."""
    servers = [{"name": f"{prefix}{i}", "count": 1, **group} for i, group in enumerate(groups)]
    types = dict.fromkeys(server["gpu_type"] for server in servers)
    return {"gpu_types": [{"name": name} for name in types], "servers": servers}


@dataclass(frozen=True)
class RandomSpec:
    """A paper's random instances, so small that exact optima take milliseconds; `id` is the id of the paper."""

    id: str
    draw: Callable[[np.random.Generator], Instance]


RANDOM: Registry[RandomSpec] = Registry("family of random instances")
