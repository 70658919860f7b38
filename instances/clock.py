"""A clock for solve times that excludes importing numba and compiling or loading its kernels.

Otherwise the first method to run in a process would be charged tens of seconds that the next one does not need.
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
    """Total seconds of the outermost compilations of all threads; numba compiles in one thread at a time."""

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
            return kernel

        return stamped


def now() -> float:
    """Return seconds on a clock that stands still while numba compiles; only differences are meaningful."""
    if "numba" in sys.modules:
        _compiler()  # excludes compilation of a plug-in's kernels, too
    return (_COMPILING.began if _COMPILING.depth else time.perf_counter()) - _COMPILING.seconds
