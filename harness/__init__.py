"""The harness: run schedulers, check and certify their results, and report them.

:mod:`schedgap` exports its main functions (``sg.compare``). The packages `compare`, `simulate`, `audit` and `adversary`
have the same structure: ``task`` is one task in a worker, ``row`` the results as plain data, ``run`` the study. Only
:mod:`schedgap.harness.page` knows how results are displayed.
"""

from __future__ import annotations

from typing import Any

from schedgap.instances.discovery import lazy_attributes


def __getattr__(name: str) -> Any:
    # With this, `import schedgap as sg` is enough to use `sg.harness.fairness`.
    return lazy_attributes(__name__, {}, name)
