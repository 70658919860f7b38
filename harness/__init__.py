"""The harness: compare schedulers with certified bounds, and report what was found.

>>> import harness
>>> comparison = harness.compare("paper/oef-eq1", methods=["oef.*"])  # doctest: +SKIP
>>> comparison.table[["method", "objective", "gap"]]  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from instances.lazy import lazy_attributes

if TYPE_CHECKING:
    from harness.comparing import compare, read_run
    from harness.comparison import Comparison
    from harness.engine.limits import Limits
    from harness.explaining import Explanation, explain
    from harness.simulating import Simulation, simulate

__all__ = ["Comparison", "Explanation", "Limits", "Simulation", "compare", "explain", "read_run", "simulate"]

_HOME = {
    "compare": "harness.comparing",
    "Comparison": "harness.comparison",
    "Explanation": "harness.explaining",
    "explain": "harness.explaining",
    "Limits": "harness.engine.limits",
    "read_run": "harness.comparing",
    "Simulation": "harness.simulating",
    "simulate": "harness.simulating",
}


def __getattr__(name: str) -> Any:
    if name == "audit":  # a package of its own: harness.audit.run(…)
        return importlib.import_module("harness.audit")
    # Importing solvers and pandas takes a second; `harness --help` and `import harness` should not.
    return lazy_attributes(__name__, _HOME, name)
