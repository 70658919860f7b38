"""Colours, dashes and marks that tell methods apart in all figures: in colour, in grey and for colour-blind readers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

PALETTE = ("#04658f", "#d05c02", "#0c7e5b", "#fa73a1", "#d4943a", "#8957b9", "#2795e3", "#8f8f8f", "#5e8c03", "#6b5f02")
"""Ten colours, visible on white and on black.

Two of them differ by at least 9.6 in CIELAB, with normal sight and without the cones for long, middle or short waves
(by the matrices of Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009). Every other colour is one of the five
lightnesses 40, 46.5, 53, 59.5 and 66, so that those that share dashes differ in grey, too.
"""

DASHES = ((1.0, 0.0), (6.0, 2.5), (2.0, 2.0), (9.0, 2.5, 2.0, 2.5), (15.0, 3.0), (9.0, 2.5, 2.0, 2.5, 2.0, 2.5))
"""Lengths of strokes and gaps, in pixels: solid, dashed, dotted, dash and dot, long dashes, dash and two dots."""

MARKS = {"circle": "o", "square": "s", "diamond": "D", "cross": "P", "triangle-up": "^", "triangle-down": "v"}
"""Marks of points as Vega-Lite and as matplotlib call them."""


class Look(NamedTuple):
    """What a method looks like: colour, lengths of strokes and gaps in pixels, and mark of its points."""

    colour: str
    dash: tuple[float, ...]
    mark: str

    @property
    def marker(self) -> str:
        """The mark as matplotlib calls it."""
        return MARKS[self.mark]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return what each name looks like. No two of 30 names share colour and dashes, none of 36 dashes and mark.

    Neighbours differ in all three. Names that share dashes have colours of different lightness, and different marks.
    """
    marks = [*MARKS]
    return {
        one: Look(PALETTE[i % len(PALETTE)], DASHES[i % len(DASHES)], marks[(i + i // len(DASHES)) % len(marks)])
        for i, one in enumerate(dict.fromkeys(names))
    }
