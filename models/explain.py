"""What a model says, in mathematics: the statement that ``harness explain`` prints, beside the code that builds it.

Every registered model has a :class:`Formulation`, in ``models/formulations/<paper>.py``. Mathematics is written in
LaTeX alone (prose has it between dollars); plain text comes from
:mod:`schedgap.harness.explain.mathematics`.
Rows and symbols name the parts of the Pyomo model that they stand for, so that a test can tell when they have parted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schedgap.instances.registry import Registry


@dataclass(frozen=True)
class Symbol:
    """A set, a parameter or a variable.

    Parameters
    ----------
    latex
        The symbol, for variables with their domain.
    meaning
        What it is, with its unit.
    part
        Name of the Pyomo ``Var`` that it is, for variables.
    """

    latex: str
    meaning: str
    part: str = ""


@dataclass(frozen=True)
class Row:
    """The objective, or one family of constraints.

    Parameters
    ----------
    latex
        The (in)equation, or what is optimised (without ``max`` or ``min``, which the problem knows).
    equation
        Number in the paper, without brackets; empty where the paper has none.
    every
        What it is repeated for, as LaTeX (``j, t``).
    note
        Why it is as it is, where that needs saying.
    parts
        Names of the Pyomo constraints that it is (the objective has none).
    """

    latex: str
    equation: str = ""
    every: str = ""
    note: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Formulation:
    """Statement of one model.

    Parameters
    ----------
    id
        Id of the model.
    decides
        What the model decides, in a sentence.
    sets, data, variables
        Its symbols.
    objective, constraints
        Its rows.
    duals
        What the duals of an LP (or of a MILP's relaxation) mean.
    errata
        Where the paper's text is departed from, and why.
    solved
        How it is solved where that is not one call of HiGHS on the model as stated; a solve then reports other sizes.
    implied
        ``implied(view)`` returns the logarithm to base 10 of the number of columns that the full model would have, and
        whether that is a lower bound only; for models that generate their columns.
    example
        Small instance whose sizes are shown unless another one is given.
    variant_of
        Id of the model of which this one is a variant; a family shows it in a line.
    difference
        What is different from that model.
    sense
        ``"max"`` or ``"min"`` where it is not that of the problem: duals bound it from the other side.
    """

    id: str
    decides: str
    sets: tuple[Symbol, ...]
    data: tuple[Symbol, ...]
    variables: tuple[Symbol, ...]
    objective: Row
    constraints: tuple[Row, ...]
    duals: str
    errata: tuple[str, ...] = ()
    solved: str = ""
    implied: Callable[[Any], tuple[float, bool]] | None = None
    example: str = "gen/20jobs"
    variant_of: str = ""
    difference: str = ""
    sense: str = ""


FORMULATIONS: Registry[Formulation] = Registry("formulation")
