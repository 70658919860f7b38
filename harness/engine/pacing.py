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
    until: dict[str, float] = field(default_factory=dict)
    """When a search will have used what it was given."""
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
        return falls, self._need(key, key)

    def seconds(self, key: str, run_s: float, others: Sequence[str], workers: int) -> float:
        """Return the seconds that a search is given; 0 once the time of the run is used.

        What searches at work have been given is left to them. Each search that waits gets a share of the rest, in
        proportion to how far its gap is above :data:`GOOD` for the seconds that it has had. It gets its share in one
        piece, since one long annealing finds more than two short ones.
        """
        now = time.monotonic()
        left_s = self.began + (1 - RESERVE) * run_s - now
        if left_s < LEAST_S / 2:
            return 0.0
        busy_s = {other: self.until.get(other, now) - now for other in others}
        rest_s = left_s * workers - sum(max(seconds, 0.0) for seconds in busy_s.values())
        own = self._need(key, key)
        share = own / (own + sum(self._need(other, key) for other, seconds in busy_s.items() if seconds <= 0))
        given_s = min(max(rest_s * share, LEAST_S), left_s)
        self.given_s[key] = self.given_s.get(key, 0.0) + given_s
        self.until[key] = now + given_s
        return given_s

    def _need(self, key: str, if_unknown: str) -> float:
        """Return how far a search is above :data:`GOOD`, per second that it has had."""
        gap = self.gaps.get(key, self.gaps[if_unknown])[-1]
        return min(max(gap - GOOD, GOOD / 10), 1.0) / (MOST_S + self.given_s.get(key, 0.0))
