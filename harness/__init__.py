"""The harness: compare schedulers with certified bounds, and report what was found.

>>> from schedgap import harness
>>> comparison = harness.compare("paper/oef-eq1", methods=["oef.*"])  # doctest: +SKIP
>>> comparison.table[["method", "objective", "gap"]]  # doctest: +SKIP
>>> harness.figures(comparison, "gap")  # doctest: +SKIP

Results are data; how they are shown is known to :mod:`schedgap.harness.page`. Notebooks show them as that says.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from schedgap.instances.lazy import lazy_attributes

if TYPE_CHECKING:
    from schedgap.harness.adversary.row import Adversary
    from schedgap.harness.adversary.run import adversary
    from schedgap.harness.audit.row import Audit
    from schedgap.harness.audit.run import audit
    from schedgap.harness.compare.row import Comparison
    from schedgap.harness.compare.run import compare, read_run
    from schedgap.harness.compare.sweep import sweep
    from schedgap.harness.engine.limits import Limits
    from schedgap.harness.explain import Explanation, explain
    from schedgap.harness.figure import figures
    from schedgap.harness.page import to_html
    from schedgap.harness.simulate.row import Simulation
    from schedgap.harness.simulate.run import simulate

_HOME = {
    "Adversary": "adversary.row",
    "adversary": "adversary.run",
    "Audit": "audit.row",
    "audit": "audit.run",
    "Comparison": "compare.row",
    "compare": "compare.run",
    "read_run": "compare.run",
    "sweep": "compare.sweep",
    "Limits": "engine.limits",
    "Explanation": "explain",
    "explain": "explain",
    "figures": "figure",
    "to_html": "page",
    "Simulation": "simulate.row",
    "simulate": "simulate.run",
}
__all__ = [
    "Adversary",
    "Audit",
    "Comparison",
    "Explanation",
    "Limits",
    "Simulation",
    "adversary",
    "audit",
    "compare",
    "explain",
    "figures",
    "read_run",
    "simulate",
    "sweep",
    "to_html",
]


class _Front(ModuleType):
    """Keeps the name of a study for its function: importing its package would bind the name to that."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOME or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front


def __getattr__(name: str) -> Any:
    # Importing solvers and pandas takes a second; `harness --help` and `import schedgap.harness` should not.
    return lazy_attributes(__name__, {name: f"{__name__}.{home}" for name, home in _HOME.items()}, name)


def _html(found: Any) -> str:
    from schedgap.harness.page import to_fragment

    return to_fragment(found)


if (_ipython := sys.modules.get("IPython")) and (_shell := _ipython.get_ipython()):
    # Results know of no page: IPython asks here, by the name of their class, how to show them.
    _formatter = _shell.display_formatter.formatters["text/html"]
    _formatter.for_type_by_name("schedgap.harness.engine.result", "Found", _html)
