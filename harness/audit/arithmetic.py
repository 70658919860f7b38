"""Slips of arithmetic: what a paper printed, beside what its own numbers make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from schedgap.harness.audit.registry import Count, Evidence, Witness

NOISE = 1e-9


class Printed(NamedTuple):
    """A printed number: what it is, its value, what the paper's own numbers make, and half a unit of its last place."""

    what: str
    value: float
    made: float
    tolerance: float

    @property
    def right(self) -> bool:
        """Whether the printed number is the rounded one."""
        return abs(self.value - self.made) <= self.tolerance * (1 + NOISE)


def recomputed(
    numbers: Sequence[Printed],
    narrower: tuple[str, Sequence[Printed]] | None = None,
    witnesses: Sequence[Witness] = (),
) -> Evidence:
    """Return how many of the printed numbers are what the paper's own numbers make.

    Parameters
    ----------
    numbers
        The printed numbers.
    narrower
        A name for some of them, and which.
    witnesses
        Instances on which they can be seen, if any.
    """
    stated = _count("as printed", numbers)
    some = [_count(*narrower)] if narrower else []
    lines = [f"{n.what}: {n.made:.4g}, printed {n.value:g}" for n in numbers]
    return stated.evidence("; ".join(lines), *some, numbers={n.what: n.made for n in numbers}, also=witnesses)


def _count(scope: str, numbers: Sequence[Printed]) -> Count:
    count = Count(scope)
    for number in numbers:
        count.add(number.right)
    return count
