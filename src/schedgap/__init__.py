"""Optimality gaps of deep-learning cluster schedulers, measured against certified bounds.

>>> import schedgap as sg
>>> instance = sg.load("paper/oef-eq1")
>>> sg.compare(instance, methods=["oef.*"]).table[["method", "objective", "gap"]]  # doctest: +SKIP

Imports run one way: :mod:`schedgap.instances` and :mod:`schedgap.certificates` import none of the other
packages, :mod:`schedgap.models` imports both, :mod:`schedgap.heuristics` only the instances, and
:mod:`schedgap.harness` imports all of them to run, check and report.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.instances.discovery import lazy_attributes

if TYPE_CHECKING:
    from schedgap.harness import lessons as lessons
    from schedgap.harness import plot as plot
    from schedgap.harness.adversary.row import Adversary as Adversary
    from schedgap.harness.adversary.run import adversary as adversary
    from schedgap.harness.audit.row import Audit as Audit
    from schedgap.harness.audit.run import audit as audit
    from schedgap.harness.certify import certify as certify
    from schedgap.harness.compare.row import Comparison as Comparison
    from schedgap.harness.compare.run import compare as compare
    from schedgap.harness.compare.run import compare_here as compare_here
    from schedgap.harness.compare.run import read_run as read_run
    from schedgap.harness.engine.task import Limits as Limits
    from schedgap.harness.explain import Explanation as Explanation
    from schedgap.harness.explain import explain as explain
    from schedgap.harness.figure import figure as figure
    from schedgap.harness.figure import figures as figures
    from schedgap.harness.graphs import envy as envy
    from schedgap.harness.graphs import flow as flow
    from schedgap.harness.graphs import support as support
    from schedgap.harness.graphs import windows as windows
    from schedgap.harness.page import to_html as to_html
    from schedgap.harness.simulate.row import Simulation as Simulation
    from schedgap.harness.simulate.run import simulate as simulate
    from schedgap.harness.sweep import sweep as sweep
    from schedgap.harness.text import at_most as at_most
    from schedgap.heuristics.registry import heuristic as heuristic
    from schedgap.heuristics.simulator.policies import policy as policy
    from schedgap.instances.catalogue import load as load
    from schedgap.instances.importers import Options as Options
    from schedgap.instances.importers import import_trace as import_trace
    from schedgap.instances.plugins import load_plugin as load_plugin
    from schedgap.models.registry import model as model

_PACKAGES = ("instances", "certificates", "models", "heuristics", "harness")

__version__: str


@functools.cache
def _homes() -> dict[str, str]:
    """Return the module of each public name, read from the imports for type checkers above."""
    front = next(node for node in ast.parse(Path(__file__).read_text("utf-8")).body if isinstance(node, ast.If))
    imports = (node for node in front.body if isinstance(node, ast.ImportFrom))
    return {alias.name: node.module or "" for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    # Importing solvers and pandas takes a second, which `harness --help` and `import schedgap` should not cost.
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return [*_homes()] if name == "__all__" else lazy_attributes(__name__, _homes(), name)


def __dir__() -> list[str]:
    return [*_homes(), *_PACKAGES, "__version__"]
