"""Share the time of a run among searches, each of which can go on for as long as it is given seconds.

A search that has used its seconds asks for more, and tells its gap. The pool answers once a processor is free and all
tasks of the run have begun: the search whose gap promises most goes on, and at the end of the run all end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from schedgap.instances import clock

RESERVE = 0.18
"""Fraction of a run's time that is left for what follows the searches: rules derive their bounds anew, and tables are
made. On ``gen/200jobs``, nine searches need 25 s of computing for this, after 60 s."""

LEAST_S, MOST_S = 2.0, 6.0
"""Least seconds that a search is given at a time, and most at first; each time is one annealing from hot to cold."""

STALLED = 0.05
"""A search whose gap has fallen by less than this fraction of it comes after all others."""


GOOD = 0.0095
"""Gap with which a search needs no more than its first seconds: rounded up, the certified gap is 1 %."""


class Asking(NamedTuple):
    """News from a worker: its search has used its seconds, and its gap is this, by the solver's word."""

    gap: float


Ask = Callable[[Asking], float]

_asks: list[Ask] = []
"""How this process asks for more seconds: nothing if there is no pool that could give any."""


def listen(ask: Ask) -> None:
    """Let searches of this process ask for more seconds."""
    _asks[:] = [ask]


def more(gap: float) -> float:
    """Ask for more seconds of computing; return 0 if there are none. The clock stands still until the answer."""
    if not _asks:
        return 0.0
    with clock.paused():
        return _asks[0](Asking(gap))


@dataclass
class Pacer:
    """Gaps of the searches of a run, and the seconds that each is given. The time of the run excludes compilation."""

    began: float = field(default_factory=time.monotonic)
    gaps: dict[str, list[float]] = field(default_factory=dict)
    compiling: dict[str, float] = field(default_factory=dict)
    """Tasks whose workers compile, and since when."""

    def compiles(self, key: str, begins: bool) -> None:
        """Note that the worker of a task begins to compile, or has ended; the run's time goes on once none does."""
        if begins:
            self.compiling[key] = min([time.monotonic(), *self.compiling.values()])
        elif (since := self.compiling.pop(key, None)) is not None and not self.compiling:
            self.began += time.monotonic() - since

    def note(self, key: str, gap: float) -> None:
        """Note the gap of a search, which asks for more seconds."""
        self.gaps.setdefault(key, []).append(gap)

    def next(self, keys: Sequence[str]) -> str:
        """Return the search that is to go on: the one with the largest gap of those whose gap falls."""
        return max(keys, key=self._promise)

    def _promise(self, key: str) -> tuple[bool, float]:
        *before, gap = self.gaps[key]
        falls = not before or math.isinf(gap) or gap < before[-1] * (1 - STALLED)
        return falls, gap

    def seconds(self, key: str, run_s: float, others: Sequence[str], workers: int) -> float:
        """Return the seconds that a search is given; 0 once the time of the run is used.

        The time that is left is shared among it and the others by how far their gaps are from a good one, since one
        long annealing finds more than two short ones.
        """
        left_s = self.began + (1 - RESERVE) * run_s - time.monotonic()
        if left_s < LEAST_S / 2:
            return 0.0
        own = self._excess(key, key)
        share = own / (own + sum(self._excess(other, key) for other in others))
        return min(max(left_s * workers * share, LEAST_S), left_s)

    def _excess(self, key: str, if_unknown: str) -> float:
        gap = self.gaps.get(key, self.gaps[if_unknown])[-1]
        return min(max(gap - GOOD, GOOD / 10), 1.0)
