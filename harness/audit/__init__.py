"""Audit the papers' theorems, lines and numbers: each claim is data and a function that tries it.

>>> from schedgap import harness
>>> audit = harness.audit.run(papers=["oef"], effort=0.1)  # doctest: +SKIP
>>> audit.table[["id", "verdict", "tested", "failed"]]  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schedgap.instances.lazy import lazy_attributes

if TYPE_CHECKING:
    from schedgap.harness.audit.finding import Finding
    from schedgap.harness.audit.running import Audit, run

__all__ = ["Audit", "Finding", "run"]

_HOME = {
    "Audit": "schedgap.harness.audit.running",
    "Finding": "schedgap.harness.audit.finding",
    "run": "schedgap.harness.audit.running",
}


def __getattr__(name: str) -> Any:
    return lazy_attributes(__name__, _HOME, name)
