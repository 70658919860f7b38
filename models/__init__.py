r"""Optimization models of the papers, in Pyomo, solved with HiGHS.

>>> from schedgap import instances, models
>>> round(models.get("oef.cooperative").solve(instances.load("paper/oef-eq1")).objective, 6)
4.5

The mathematics of a model stands in the docstring of the function that builds it. Symbols that models of a paper share
stand in the docstring of the module or package that is named like the paper (of a plug-in, in that of its file).
``harness explain`` prints both, with the size of the model on an instance. Nothing has to be registered: a docstring
without mathematics is printed as it is.

- A row of the model is a line ``.. math::``: the objective, which begins with ``\max`` or ``\min``, or a family of
  constraints with its quantifier. ``\tag{1d}`` is its number in the paper, and ``\label{capacity_1d}`` the name of the
  Pyomo constraint, so that ``explain`` can count it and a test can tell when the two have parted.
- A variable is an item of a list that begins with its name in the code, followed by its symbol and its domain. Sets and
  data are items that begin with their symbol.
- Prose has formulas in ``:math:``. It says what the duals mean, and where the model departs from the printed text.
- A section *See Also* names the functions that add rows; their docstrings are printed as well. A docstring of one
  paragraph is followed by that of its module.
- Variants of one builder (``complete=True``) share its docstring, which says what they change.
- The docstring of a `procedure` says how the model is solved. Without one, it is solved as stated, in one call.

Docstrings of heuristics are printed in the same way.
"""

import schedgap.models._pyomo  # isort: skip # noqa: F401 -- before whatever imports Pyomo
from schedgap.instances.discovery import import_submodules
from schedgap.models.registry import MODELS, ModelSpec, Outcome, oracle

import_submodules(__name__)

get = MODELS.get

__all__ = ["MODELS", "ModelSpec", "Outcome", "get", "oracle"]
