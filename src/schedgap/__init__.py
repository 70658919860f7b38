"""How far from optimal deep-learning cluster schedulers are.

>>> import schedgap as sg
>>> instance = sg.load("paper/oef-eq1")
>>> sg.compare(instance, methods=["oef.*"]).table[["method", "objective", "gap"]]  # doctest: +SKIP

Imports run one way: :mod:`schedgap.instances` knows nothing of the others, :mod:`schedgap.models` and
:mod:`schedgap.heuristics` stand on it side by side, and :mod:`schedgap.harness` runs, checks and reports what they
find.
"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any

from schedgap.instances.lazy import lazy_attributes

if TYPE_CHECKING:
    from schedgap.harness.compare.run import compare, read_run
    from schedgap.harness.compare.sweep import sweep
    from schedgap.harness.explain import explain
    from schedgap.harness.figure import figure
    from schedgap.harness.simulate.run import simulate
    from schedgap.heuristics.registry import heuristic
    from schedgap.heuristics.simulator.policies import policy
    from schedgap.instances.catalogue import load
    from schedgap.instances.plugins import load_plugin
    from schedgap.models.registry import model

__all__ = [
    "__version__",
    "compare",
    "explain",
    "figure",
    "heuristic",
    "load",
    "load_plugin",
    "model",
    "policy",
    "read_run",
    "simulate",
    "sweep",
]

__version__ = importlib.metadata.version("schedgap")

_HOME = {
    "load": "schedgap.instances.catalogue",
    "compare": "schedgap.harness.compare.run",
    "explain": "schedgap.harness.explain",
    "figure": "schedgap.harness.figure",
    "read_run": "schedgap.harness.compare.run",
    "simulate": "schedgap.harness.simulate.run",
    "sweep": "schedgap.harness.compare.sweep",
    "heuristic": "schedgap.heuristics.registry",
    "load_plugin": "schedgap.instances.plugins",
    "model": "schedgap.models.registry",
    "policy": "schedgap.heuristics.simulator.policies",
}
_PACKAGES = ("instances", "models", "heuristics", "harness")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    return lazy_attributes(__name__, _HOME, name)
