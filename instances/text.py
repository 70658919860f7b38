"""Counts and lists in messages."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 tenant``, ``3 tenants`` or ``2 policies``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def some(names: Sequence[object], most: int = 5) -> str:
    """Return the first `most` names separated by commas, and the number of the others."""
    more = len(names) - most
    return ", ".join(map(str, names[:most])) + (f" and {more} more" if more > 0 else "")
