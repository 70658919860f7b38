"""An interior point of an LP's optimal face, about which theorems on vertices say nothing."""

from __future__ import annotations

import highspy
import numpy as np
from numpy.typing import NDArray

from schedgap.models.solve.form import StandardForm
from schedgap.models.solve.session import _highs_lp


def interior_point(form: StandardForm) -> NDArray[np.float64]:
    """Solve an LP by the interior-point method, without crossover to a vertex; returns its columns' values."""
    highs = highspy.Highs()
    for name, value in (("output_flag", False), ("solver", "ipm"), ("run_crossover", "off"), ("presolve", "off")):
        highs.setOptionValue(name, value)
    highs.passModel(_highs_lp(form))
    highs.run()
    return np.array(highs.getSolution().col_value)
