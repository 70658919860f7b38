"""Other solvers than HiGHS on the arrays of a whole model: an adapter each, and one answer.

An adapter is a function of a form and options, in a module that is imported when it is asked for.
What it returns is the solver's claim; whether that is correct, the harness's checkers say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pkgutil import resolve_name

from schedgap.models.solve.form import StandardForm
from schedgap.models.solve.scaling import units
from schedgap.models.solve.session import Session
from schedgap.models.solve.solution import HIGHS, LICENSED, Solution, SolveOptions

Adapter = Callable[[StandardForm, SolveOptions], Solution]

ADAPTERS: Mapping[str, str] = {
    **{"cbc": "cbc:run", "scip": "programs:scip", "cp-sat": "programs:cp_sat"},
    **dict.fromkeys(LICENSED, "ampl:run"),
}
"""Module and function of each."""

UNSCALED = ("cp-sat", *LICENSED)
"""Solvers that take a form as it is: rows of whole numbers are to stay that, and Pyomo's interface takes the model."""


def run(form: StandardForm, options: SolveOptions) -> Solution:
    """Hand a form to the solver that the options name; raise `NotApplicableError` if that takes no such model."""
    if options.solver in HIGHS:
        return highs(form, options)
    adapter: Adapter = resolve_name(f"{__name__}.{ADAPTERS[options.solver]}")
    if options.solver in UNSCALED:
        return adapter(form, options)
    scale = units(form)
    return scale.undone(adapter(scale.scaled(form), scale.start(form, options)))


def highs(form: StandardForm, options: SolveOptions, **settings: object) -> Solution:
    """Solve a form with HiGHS, in units in which its tolerances are relative, and with more of its options.

    It raises `NotApplicableError` if the options name another solver, and `NotCertifiableError` if coefficients of one
    row are too far apart for any solver.
    """
    scale, asked = units(form), options
    if options.solver in HIGHS:
        algorithm = HIGHS[options.solver]
        asked = replace(options, solver="highs", method=options.method if algorithm == "choose" else algorithm)
    session = Session(scale.scaled(form), scale.start(form, asked))
    for name, value in settings.items():
        session.set_option(name, value)
    solution = session.run()
    if form.ties is not None and solution.status == "optimal":
        solution = session.preferred(solution)
    return replace(scale.undone(solution), solver=options.solver)
