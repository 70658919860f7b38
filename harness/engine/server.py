"""Imported by the process that workers are forked from, and by no other."""

from __future__ import annotations

import sys
from types import TracebackType


def _unless_main_is_dead(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an error, but not that the main process was killed while it was starting a worker: nobody is left to ask."""
    if not isinstance(error, EOFError | BrokenPipeError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _unless_main_is_dead
