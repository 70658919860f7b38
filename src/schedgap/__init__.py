"""Optimality gaps of deep-learning cluster schedulers, measured against certified bounds.

>>> import schedgap as sg
>>> instance = sg.load("paper/oef-eq1")
>>> sg.compare(instance, methods=["oef.*"]).table[["method", "objective", "gap"]]  # doctest: +SKIP

Imports run one way: :mod:`schedgap.instances` and :mod:`schedgap.certificates` import none of the other
packages, :mod:`schedgap.models` imports both, :mod:`schedgap.heuristics` only the instances, and
:mod:`schedgap.harness` imports all of them to run, check and report.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

# Importing solvers and pandas takes a second, which `harness --help` and `import schedgap` should not cost.
_attribute, _names, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    value = _attribute(name)
    if getattr(value, "__module__", "").startswith("schedgap.harness.studies"):
        from schedgap.harness.show import page  # noqa: F401 -- notebooks show results as pages do
    return value


def __dir__() -> list[str]:
    return [*_names(), "__version__"]
