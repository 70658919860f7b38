r"""Optimization models of the papers, in Pyomo, solved with HiGHS.

>>> from schedgap import instances, models
>>> round(models.get("oef.cooperative").solve(instances.load("paper/oef-eq1")).objective, 6)
4.5

The docstring of the function that builds a model states its mathematics. Symbols that several models of a paper share
are defined in the docstring of the module or package named after the paper (for a plug-in, in that of its file).
``harness explain`` prints both, with the size of the model on an instance. None of this has to be registered, and a
docstring without mathematics is printed as it is.

- A row of the model is a line ``.. math::``: the objective, which begins with ``\max`` or ``\min``, or a family of
  constraints with its quantifier. ``\tag{1d}`` is its number in the paper, and ``\label{capacity_1d}`` the name of the
  Pyomo constraint, so that ``explain`` can count its rows and a test can notice when formula and code diverge.
- A variable is a list item that begins with its name in the code, followed by its symbol and its domain. Sets and data
  are list items that begin with their symbol.
- Prose puts formulas in ``:math:``. It explains what the duals mean and where the model departs from the printed text.
- A *See Also* section names the functions that add rows; their docstrings are printed as well. A docstring of a single
  paragraph is followed by that of its module.
- Variants of one builder (``complete=True``) share its docstring, which says what they change.
- The docstring of a `procedure` says how the model is solved. A model without one is solved as stated, in one call.

Docstrings of heuristics are printed in the same way.
"""

import schedgap.models.engine._pyomo  # isort: skip # noqa: F401 -- must come before anything that imports Pyomo
from schedgap.instances.discovery import import_submodules
from schedgap.models.registry import MODELS, ModelSpec, Outcome, oracle, shadow_prices

import_submodules(__name__)

get = MODELS.get

__all__ = ["MODELS", "ModelSpec", "Outcome", "get", "oracle", "shadow_prices"]
