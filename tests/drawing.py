"""A source of randomness with which hypothesis draws random instances and shrinks those that fail."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Shrinking:
    """Draws the random numbers of :mod:`schedgap.instances.random_instances` from hypothesis."""

    draw: st.DrawFn

    def integers(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high` − 1."""
        return self.draw(st.integers(low, high - 1))
