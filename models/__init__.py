"""Optimization models of the papers, in Pyomo, solved with HiGHS.

>>> from schedgap import instances, models
>>> round(models.get("oef.cooperative").solve(instances.load("paper/oef-eq1")).objective, 6)
4.5
"""

import schedgap.models._pyomo  # isort: skip # noqa: F401 -- before whatever imports Pyomo
from schedgap.instances.discovery import import_submodules
from schedgap.models.registry import MODELS, ModelSpec, Outcome, oracle

import_submodules(__name__)

get = MODELS.get

__all__ = ["MODELS", "ModelSpec", "Outcome", "get", "oracle"]
