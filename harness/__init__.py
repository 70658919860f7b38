"""The harness: compare schedulers with certified bounds, and report what was found.

:mod:`schedgap` has its functions by short names (``sg.compare``). The packages `compare`, `simulate`, `audit` and
`adversary` have the same shape: what is to be done (``task``), what comes of it (``row``), and how it is run (``run``).
Results are data; how they are shown is known to :mod:`schedgap.harness.page`.
"""

from __future__ import annotations

from typing import Any

from schedgap.instances.discovery import lazy_attributes


def __getattr__(name: str) -> Any:
    # So that `import schedgap as sg` is enough for `sg.harness.fairness`.
    return lazy_attributes(__name__, {}, name)
