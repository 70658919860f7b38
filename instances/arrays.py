"""Types of arrays, by what their numbers are; shapes stand in the docstrings of those who take and return them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
