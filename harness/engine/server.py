"""Settings of the fork server and its workers; only the server imports this module, before all others."""

from __future__ import annotations

import gc
import sys
from types import TracebackType

gc.set_threshold(50_000)  # collections take a tenth of the time of importing numba or Pyomo, and of simulating


def _unless_main_is_dead(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error, unless the main process was killed while it started a worker: then nobody is left to read it."""
    if not isinstance(error, EOFError | BrokenPipeError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _unless_main_is_dead
