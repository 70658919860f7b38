"""Audits of the papers' theorems, lines and numbers: each claim is data plus a function that tests it."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["claims", "lab", "row", "run", "task"])
