"""Imported first by the process that workers are forked from, and by no other: how it, and they, go about things."""

from __future__ import annotations

import gc
import sys
from types import TracebackType

gc.set_threshold(50_000)  # collections are a tenth of the time of importing numba or Pyomo, and of simulating


def _unless_main_is_dead(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an error, but not that the main process was killed while it was starting a worker: nobody is left to ask."""
    if not isinstance(error, EOFError | BrokenPipeError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _unless_main_is_dead
