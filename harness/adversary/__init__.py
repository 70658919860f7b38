"""Searching the worst instance of a heuristic: what a guarantee promises on one side, what was found on the other."""

from __future__ import annotations

from schedgap.harness.adversary.running import Adversary, Worst, adversary
from schedgap.harness.adversary.search import Proved, searchable

__all__ = ["Adversary", "Proved", "Worst", "adversary", "searchable"]
