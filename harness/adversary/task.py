"""Slices of a search, and making what was found simpler: what a worker process does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from schedgap.harness.adversary.row import Proved, Slice
from schedgap.harness.adversary.search import Lab, search, shrink
from schedgap.harness.engine.task import Task
from schedgap.instances.schema import Instance

SHRINK_TRIES = 400

RESERVE_S = 120.0
"""Seconds that a slice or the shrinking may take beyond its budget before its process is killed."""


@dataclass(frozen=True)
class SearchTask(Task[Slice]):
    """A slice of the search, in a worker process."""

    lab: Lab
    seed: int
    start: tuple[Instance, ...]
    tries: int
    seconds: float
    most: int

    def identity(self) -> Mapping[str, Any]:
        """Return all that the result depends on, but for how far the time suffices."""
        start = [one.fingerprint for one in self.start]
        lab = [self.lab.heuristic, self.lab.anywhere]
        return {"of": [*lab, self.seed, start, self.tries, self.seconds, self.most]}

    @property
    def hard_limit_s(self) -> float:
        """Wall-clock seconds after which its worker is killed."""
        return self.seconds + RESERVE_S

    def attempt(self) -> Slice:
        """Search."""
        found = search(self.lab, self.seed, self.start, self.tries, self.seconds, self.most)
        return replace(found, key=self.key)

    def failed(self, status: Any, reason: str) -> Slice:
        """Return what a slice found whose process died: nothing."""
        return Slice(self.lab.heuristic, reason=f"{status}: {reason}", key=self.key)


@dataclass(frozen=True)
class ShrinkTask(Task[Slice]):
    """Make a found instance simpler, in a worker process."""

    lab: Lab
    found: Proved
    seconds: float

    def identity(self) -> Mapping[str, Any]:
        """Return all that the result depends on, but for how far the time suffices."""
        return {"of": [self.lab.heuristic, self.lab.anywhere, self.found.instance.fingerprint, self.seconds]}

    @property
    def hard_limit_s(self) -> float:
        """Wall-clock seconds after which its worker is killed."""
        return self.seconds + RESERVE_S

    def attempt(self) -> Slice:
        """Shrink."""
        return self._slice(shrink(self.lab, self.found, SHRINK_TRIES, self.seconds))

    def failed(self, status: Any, reason: str) -> Slice:
        """Return the instance as it was."""
        return replace(self._slice(self.found), reason=f"{status}: {reason}")

    def _slice(self, one: Proved) -> Slice:
        nothing = math.isinf(one.ratio)
        elite = () if nothing else (one,)
        return Slice(self.lab.heuristic, elite, one if nothing else None, shrunk=True, key=self.key)
