"""Random instances drawn by hypothesis, which shrinks those that fail."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Shrinking:
    """A source of randomness for :mod:`schedgap.instances.random_instances`."""

    draw: st.DrawFn

    def integers(self, low: int, high: int) -> int:
        """Return a whole number from `low` to below `high`."""
        return self.draw(st.integers(low, high - 1))
