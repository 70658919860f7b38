"""Seconds that methods take, without those in which numba compiles or loads their kernels.

What runs first in a process would otherwise be charged with tens of seconds that the next one does not need.
"""

from __future__ import annotations

import time

from numba.core import event


class _Compiling(event.Listener):
    """Adds up the seconds of the outermost compilations of all threads: numba compiles in one thread at a time."""

    def __init__(self) -> None:
        self.seconds, self.depth, self.began = 0.0, 0, 0.0

    def on_start(self, event: object) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1

    def on_end(self, event: object) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began


_COMPILING = _Compiling()
# Held while numba looks for a kernel in its cache on disk, too, and while it loads it.
event.register("numba:compiler_lock", _COMPILING)  # type: ignore[no-untyped-call]


def now() -> float:
    """Return seconds on a clock that stands still while numba compiles; only differences mean something."""
    return (_COMPILING.began if _COMPILING.depth else time.perf_counter()) - _COMPILING.seconds
