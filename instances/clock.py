"""Clocks for solves, which exclude importing numba and compiling or loading its kernels.

Otherwise the first method to run in a process would be charged tens of seconds that the next one does not need. Times
that a user reads are seconds of the wall clock (:func:`now`). Searches measure their limits in seconds of computing
(:class:`Budget`), so that a busy machine does not give them less work.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from numba import njit

__all__ = ["Budget", "compiling_s", "computed", "lean", "njit", "now", "paused", "stood_still"]

F = TypeVar("F", bound=Callable[..., Any])

STRETCH = 3.0
"""Most seconds of the wall clock that a search takes per second of its limit."""

SETTLED_S = 1.0
"""Seconds after which the share of a core that a search got so far is a good guess of what it will get."""


class _Still:
    """Total seconds in which the clock stood still, on the wall clock and as processor time of this process.

    It stands still during the outermost compilations of all threads (numba compiles in one thread at a time), and while
    a search waits for its next seconds.
    """

    seconds, computed, depth = 0.0, 0.0, 0
    began = 0.0, 0.0

    def on_start(self, event: object = None) -> None:
        if self.depth == 0:
            self.began = time.perf_counter(), time.process_time()
        self.depth += 1

    def on_end(self, event: object = None) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began[0]
            self.computed += time.process_time() - self.began[1]


_COMPILING, _PAUSED = _Still(), _Still()


@functools.cache
def _compiler() -> Any:
    """Import numba when a kernel is first needed, and return ``numba.njit``.

    The import takes a third of a second and makes Pyomo's import a whole second slower: numba imports scipy, and Pyomo
    imports all of ``scipy.stats`` if it finds scipy imported.
    """
    _COMPILING.on_start()
    import numba
    from numba.core import event

    class Listener(event.Listener):
        on_start, on_end = _COMPILING.on_start, _COMPILING.on_end

    # numba also holds this lock while it looks up a kernel in its disk cache and loads it.
    event.register("numba:compiler_lock", Listener())  # type: ignore[no-untyped-call]
    _COMPILING.on_end()
    return numba.njit


def _index(load: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """Return the compiled versions of a kernel on disk; none if they refer to types that have been renamed since.

    Numba loads the whole list, types included, before it looks at the stamp that makes it outdated.
    """
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


if not TYPE_CHECKING:

    def njit(**options: Any) -> Any:
        """Return ``numba.njit(**options)`` with a stricter cache; the clock stands still while it compiles.

        Numba's cache depends on a kernel's own file only, so that a kernel keeps an old version of another kernel
        inlined in it, and old values of constants from other files. Here a kernel is recompiled after a change of any
        file that defines a kernel it may call, and of any number in the namespaces of these kernels.
        """
        decorate = _compiler()(**options)

        def stamped(function: Any) -> Any:
            kernel = decorate(function)
            cache_file = vars(kernel._cache).get("_cache_file")
            if cache_file is not None:
                callees = (value for value in function.__globals__.values() if isinstance(value, type(kernel)))
                called = [one.py_func for one in (kernel, *callees)]
                cache_file._source_stamp = [
                    (file, os.stat(file).st_mtime_ns, {n: x for n, x in names.items() if isinstance(x, int | float)})
                    for file, names in sorted({one.__code__.co_filename: one.__globals__ for one in called}.items())
                ]
                cache_file._load_index = functools.partial(_index, cache_file._load_index)
            return kernel

        return stamped


def lean(function: F) -> F:
    """Compile a kernel that allocates no array, without counting references to arrays.

    Numba counts them for each array of each tuple that a function passes to another one. That took over half of the
    time of kernels that consist of small functions.
    """
    uncounted: Any = {"cache": True, "_nrt": False}
    compiled: Any = njit(**uncounted)(function)
    return cast("F", compiled)


def stood_still() -> tuple[float, float]:
    """Return the seconds in which the clock stood still so far: while kernels were compiled, and while searches waited.

    Importing numba counts as compiling.
    """
    return _COMPILING.seconds, _PAUSED.seconds


def compiling_s() -> float:
    """Return the seconds that numba has been compiling, or looking up, the current kernel; 0 if it does neither."""
    return time.perf_counter() - _COMPILING.began[0] if _COMPILING.depth else 0.0


@contextmanager
def paused() -> Iterator[None]:
    """Let the clock stand still within the block."""
    _PAUSED.on_start()
    try:
        yield
    finally:
        _PAUSED.on_end()


def now() -> float:
    """Return seconds on a clock that stands still in compilations and pauses; only differences have a meaning."""
    if "numba" in sys.modules:
        _compiler()  # excludes compilation of a plug-in's kernels, too
    return (_COMPILING.began[0] if _COMPILING.depth else time.perf_counter()) - _COMPILING.seconds - _PAUSED.seconds


def computed() -> float:
    """Return the processor time of this process, in all threads, without compilation and pauses."""
    computed_s = _COMPILING.began[1] if _COMPILING.depth else time.process_time()
    return computed_s - _COMPILING.computed - _PAUSED.computed


class Budget:
    """Seconds of computing that a search may take from now on, in all threads of this process; ``None`` for no limit.

    They are never more than the seconds of the wall clock, because several threads may compute at once, and never less
    than a third of them (:data:`STRETCH`), so that a search ends even if it gets no processor.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        self.limit_s = math.inf if limit_s is None else limit_s
        self._began, self._computed = now(), computed()

    def extend(self, seconds: float) -> None:
        """Let the search take `seconds` more; seconds by which it exceeded its limit are not subtracted."""
        self.limit_s = max(self.limit_s, self.spent_s) + seconds

    @property
    def wall_s(self) -> float:
        """Seconds of the wall clock so far."""
        return now() - self._began

    @property
    def spent_s(self) -> float:
        """Seconds of computing so far."""
        wall_s = self.wall_s
        return min(wall_s, max(computed() - self._computed, wall_s / STRETCH))

    @property
    def left_s(self) -> float:
        """Seconds of computing left, negative if more was spent, infinite without a limit."""
        return self.limit_s - self.spent_s

    @property
    def left_wall_s(self) -> float:
        """The seconds of computing left, in seconds of the wall clock, for solvers that read no other clock.

        This assumes that a solver gets as much of a core as the search has had so far (see :data:`SETTLED_S`).
        """
        return self.left_s * (self.wall_s + SETTLED_S) / (self.spent_s + SETTLED_S)

    @property
    def core_share(self) -> float:
        """Fraction of a core that the process got since the budget began, at most 1."""
        wall_s = self.wall_s
        return min(1.0, (computed() - self._computed) / wall_s) if wall_s > 0 else 1.0
