"""The harness: compare schedulers with certified bounds, and report what was found.

>>> from schedgap import harness
>>> comparison = harness.compare("paper/oef-eq1", methods=["oef.*"])  # doctest: +SKIP
>>> comparison.table[["method", "objective", "gap"]]  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from schedgap.instances.lazy import lazy_attributes

if TYPE_CHECKING:
    from schedgap.harness.comparing import compare, read_run
    from schedgap.harness.comparison import Comparison
    from schedgap.harness.engine.limits import Limits
    from schedgap.harness.explaining import Explanation, explain
    from schedgap.harness.simulating import Simulation, simulate

__all__ = ["Comparison", "Explanation", "Limits", "Simulation", "compare", "explain", "read_run", "simulate"]

_HOME = {
    "compare": "schedgap.harness.comparing",
    "Comparison": "schedgap.harness.comparison",
    "Explanation": "schedgap.harness.explaining",
    "explain": "schedgap.harness.explaining",
    "Limits": "schedgap.harness.engine.limits",
    "read_run": "schedgap.harness.comparing",
    "Simulation": "schedgap.harness.simulating",
    "simulate": "schedgap.harness.simulating",
}


def __getattr__(name: str) -> Any:
    if name == "audit":  # a package of its own: harness.audit.run(…)
        return importlib.import_module("schedgap.harness.audit")
    # Importing solvers and pandas takes a second; `harness --help` and `import schedgap.harness` should not.
    return lazy_attributes(__name__, _HOME, name)
