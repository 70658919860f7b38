"""How far from optimal deep-learning cluster schedulers are.

>>> import schedgap as sg
>>> instance = sg.load("paper/oef-eq1")
>>> sg.compare(instance, methods=["oef.*"]).table[["method", "objective", "gap"]]  # doctest: +SKIP

Imports run one way: :mod:`schedgap.instances` knows nothing of the others, :mod:`schedgap.models` and
:mod:`schedgap.heuristics` stand on it side by side, and :mod:`schedgap.harness` runs, checks and reports what they
find.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from typing import TYPE_CHECKING, Any

from schedgap.instances.discovery import lazy_attributes

if TYPE_CHECKING:
    from schedgap.harness.adversary.row import Adversary as Adversary
    from schedgap.harness.adversary.run import adversary as adversary
    from schedgap.harness.audit.row import Audit as Audit
    from schedgap.harness.audit.run import audit as audit
    from schedgap.harness.compare.row import Comparison as Comparison
    from schedgap.harness.compare.run import compare as compare
    from schedgap.harness.compare.run import read_run as read_run
    from schedgap.harness.engine.task import Limits as Limits
    from schedgap.harness.explain import Explanation as Explanation
    from schedgap.harness.explain import explain as explain
    from schedgap.harness.figure import figure as figure
    from schedgap.harness.figure import figures as figures
    from schedgap.harness.page import to_html as to_html
    from schedgap.harness.simulate.row import Simulation as Simulation
    from schedgap.harness.simulate.run import simulate as simulate
    from schedgap.harness.sweep import sweep as sweep
    from schedgap.heuristics.registry import heuristic as heuristic
    from schedgap.heuristics.simulator.policies import policy as policy
    from schedgap.instances.catalogue import load as load
    from schedgap.instances.plugins import load_plugin as load_plugin
    from schedgap.models.registry import model as model

_HOME = {
    "Adversary": "harness.adversary.row",
    "Audit": "harness.audit.row",
    "Comparison": "harness.compare.row",
    "Explanation": "harness.explain",
    "Limits": "harness.engine.task",
    "Simulation": "harness.simulate.row",
    "adversary": "harness.adversary.run",
    "audit": "harness.audit.run",
    "compare": "harness.compare.run",
    "explain": "harness.explain",
    "figure": "harness.figure",
    "figures": "harness.figure",
    "heuristic": "heuristics.registry",
    "load": "instances.catalogue",
    "load_plugin": "instances.plugins",
    "model": "models.registry",
    "policy": "heuristics.simulator.policies",
    "read_run": "harness.compare.run",
    "simulate": "harness.simulate.run",
    "sweep": "harness.sweep",
    "to_html": "harness.page",
}
_PACKAGES = ("instances", "models", "heuristics", "harness")

__all__ = list(_HOME)

__version__ = importlib.metadata.version("schedgap")


def __getattr__(name: str) -> Any:
    # Importing solvers and pandas takes a second; `harness --help` and `import schedgap` should not.
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    return lazy_attributes(__name__, {known: f"{__name__}.{home}" for known, home in _HOME.items()}, name)


def __dir__() -> list[str]:
    return [*_HOME, *_PACKAGES, "__version__"]


def _html(found: Any) -> str:
    from schedgap.harness.page import to_fragment

    return to_fragment(found)


if (_ipython := sys.modules.get("IPython")) and (_shell := _ipython.get_ipython()):
    # Results know of no page: IPython asks here, by the name of their class, how to show them.
    _formatter = _shell.display_formatter.formatters["text/html"]
    _formatter.for_type_by_name("schedgap.harness.engine.result", "Found", _html)
