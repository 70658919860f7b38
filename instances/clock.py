"""Seconds that methods take, without those in which numba is imported and compiles or loads their kernels.

What runs first in a process would otherwise be charged with tens of seconds that the next one does not need.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numba import njit

__all__ = ["njit", "now"]


class _Compiling:
    """Adds up the seconds of the outermost compilations of all threads: numba compiles in one thread at a time."""

    seconds, depth, began = 0.0, 0, 0.0

    def on_start(self, event: object = None) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1

    def on_end(self, event: object = None) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began


_COMPILING = _Compiling()


@functools.cache
def _compiler() -> Any:
    """Import numba, when a kernel is first needed: a third of a second, and after it Pyomo takes another whole one.

    Pyomo imports all of scipy's statistics if it finds scipy imported, as numba does.
    """
    _COMPILING.on_start()
    import numba
    from numba.core import event

    class Listener(event.Listener):
        on_start, on_end = _COMPILING.on_start, _COMPILING.on_end

    # Held while numba looks for a kernel in its cache on disk, too, and while it loads it.
    event.register("numba:compiler_lock", Listener())  # type: ignore[no-untyped-call]
    _COMPILING.on_end()
    return numba.njit


if not TYPE_CHECKING:

    def njit(**options: Any) -> Any:
        """Return numba's decorator with these options; the clock stands still while it compiles.

        Numba looks at a kernel's own file only: one with an old version of another inside it stays in use. Here it is
        compiled anew after a change of any file that kernels which it may call come from.
        """
        decorate = _compiler()(**options)

        def stamped(function: Any) -> Any:
            kernel = decorate(function)
            known = vars(kernel._cache).get("_cache_file")
            if known is not None:
                called = (one for one in function.__globals__.values() if isinstance(one, type(kernel)))
                files = sorted({one.py_func.__code__.co_filename for one in (kernel, *called)})
                known._source_stamp = [(file, os.stat(file).st_mtime_ns) for file in files]
            return kernel

        return stamped


def now() -> float:
    """Return seconds on a clock that stands still while numba compiles; only differences mean something."""
    if "numba" in sys.modules:
        _compiler()  # kernels of a plugin count as little as ours
    return (_COMPILING.began if _COMPILING.depth else time.perf_counter()) - _COMPILING.seconds
