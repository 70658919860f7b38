"""Types of arrays, by what their numbers are, and how ragged ones are laid out flat.

Shapes stand in the docstrings of those who take and return arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def members(counts: Ints) -> tuple[Ints, Ints]:
    """Return the group of each member of groups of so many members, and its number within the group, from 0."""
    group = np.repeat(np.arange(len(counts)), counts)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
