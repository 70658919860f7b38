"""Share the time of a run among searches, each of which can go on for as long as it is given seconds.

A search that has used its seconds reports its gap and asks for more. The pool answers once a processor is free and all
tasks of the run have begun: the most promising search goes on. When the time of the run is used, every search ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from schedgap.instances import clock

RESERVE = 0.1
"""Fraction of a run's time that is kept for the work after the searches: bounds are certified, and tables are made."""

LEAST_S, MOST_S = 2.0, 6.0
"""Least seconds that a search gets each time, and most that it gets first; they are one annealing from hot to cold."""

STALLED = 0.05
"""A search that last lowered its gap by less than this fraction of the gap comes after all others."""


GOOD = 0.0095
"""Gap from which on a search hardly gets more than its first seconds: rounded up, it is certified as 1 %."""


class Asking(NamedTuple):
    """News from a worker: its search has used its seconds, and has reached this `gap`, which is not yet certified."""

    gap: float


Ask = Callable[[Asking], float]

_asks: list[Ask] = []
"""The function with which this process asks for more seconds; the list is empty if no pool could give any."""


def listen(ask: Ask) -> None:
    """Let searches of this process call `ask` for more seconds."""
    _asks[:] = [ask]


def more(gap: float) -> float:
    """Ask for more seconds of computing; return 0 if there are none. The clock stands still until the answer."""
    if not _asks:
        return 0.0
    with clock.paused():
        return _asks[0](Asking(gap))


@dataclass
class Pacer:
    """Decides which search of a run goes on, and for how long, from the gaps that the searches report.

    The time in which workers compile is not part of the run's time.
    """

    began: float = field(default_factory=time.monotonic)
    gaps: dict[str, list[float]] = field(default_factory=dict)
    given_s: dict[str, float] = field(default_factory=dict)
    """Seconds that each search has been given beyond its first ones."""
    compiling: dict[str, float] = field(default_factory=dict)
    """Maps the keys of tasks whose workers compile to the time since when they do."""

    def compiles(self, key: str, begins: bool) -> None:
        """Note that the worker of a task begins to compile, or has finished; meanwhile, the run's time stands still."""
        if begins:
            self.compiling[key] = min([time.monotonic(), *self.compiling.values()])
        elif (since := self.compiling.pop(key, None)) is not None and not self.compiling:
            self.began += time.monotonic() - since

    def note(self, key: str, gap: float) -> None:
        """Note the gap of a search that asks for more seconds."""
        self.gaps.setdefault(key, []).append(gap)

    def next(self, keys: Sequence[str]) -> str:
        """Return the search that goes on next.

        Of those whose gap still falls, it is the one that is farthest above :data:`GOOD` for the seconds that it has
        had. Otherwise one with a large gap, which falls slowly, would take the seconds of all others.
        """
        return max(keys, key=self._promise)

    def _promise(self, key: str) -> tuple[bool, float]:
        *before, gap = self.gaps[key]
        falls = not before or math.isinf(gap) or gap < before[-1] * (1 - STALLED)
        return falls, self._excess(key, key) / (MOST_S + self.given_s.get(key, 0.0))

    def seconds(self, key: str, run_s: float, others: Sequence[str], workers: int) -> float:
        """Return the seconds that a search is given; 0 once the time of the run is used.

        Each search gets a share of the time left in proportion to how far its gap is above :data:`GOOD`. It gets its
        share in one piece, since one long annealing finds more than two short ones.
        """
        left_s = self.began + (1 - RESERVE) * run_s - time.monotonic()
        if left_s < LEAST_S / 2:
            return 0.0
        own = self._excess(key, key)
        share = own / (own + sum(self._excess(other, key) for other in others))
        given_s = min(max(left_s * workers * share, LEAST_S), left_s)
        self.given_s[key] = self.given_s.get(key, 0.0) + given_s
        return given_s

    def _excess(self, key: str, if_unknown: str) -> float:
        gap = self.gaps.get(key, self.gaps[if_unknown])[-1]
        return min(max(gap - GOOD, GOOD / 10), 1.0)
