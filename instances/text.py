"""Counts, lists and suggestions in messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

LISTED = 12
"""Most names that a message lists before an ellipsis."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 tenant``, ``3 tenants`` or ``2 policies``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


UNITS = ("GPU", "CPU", "core", "node", "processor")
"""What logs count jobs by; it also names a pool whose kind a log does not say."""


def unit_of(pools: Iterable[str]) -> str:
    """Return what pools consist of: the unit by which a log counts, or GPUs."""
    kinds = {pool.partition("@")[0] for pool in pools}
    return kinds.pop() if len(kinds) == 1 and kinds <= set(UNITS) else "GPU"


def amount(number: int, pool: str) -> str:
    """Return ``36 V100``, ``1 GPU``, ``256 processors`` or ``8 cores@queue 1``; `pool` is a type or a unit."""
    kind, at, where = pool.partition("@")
    return f"{counted(number, kind) if kind in UNITS else f'{number} {kind}'}{at}{where}"


def some(names: Sequence[object], most: int = 5) -> str:
    """Return the first `most` names separated by commas, and the number of the others."""
    more = len(names) - most
    return ", ".join(map(str, names[:most])) + (f" and {more} more" if more > 0 else "")


def suggestion(name: str, names: Iterable[str], known: str = "known:") -> str:
    """Return the names closest to an unknown one, as a question, or else some of the `known` ones."""
    names = list(names)
    if close := difflib.get_close_matches(name, names, n=3, cutoff=0.5):
        return f"did you mean {' or '.join(close)}?"
    listed = [*names[:LISTED], "…"] if len(names) > LISTED else names
    return f"{known} {', '.join(listed) or 'none'}"
