"""HiGHS and, through one adapter each, other solvers, for models that are solved as one program.

An adapter is a function of a form and options, in a module that is imported on first use.
It returns what the solver claims; the harness's checkers decide whether the claim is correct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pkgutil import resolve_name

from schedgap.models.engine.solve.form import StandardForm
from schedgap.models.engine.solve.options import HIGHS, LICENSED
from schedgap.models.engine.solve.scaling import units
from schedgap.models.engine.solve.session import Session
from schedgap.models.engine.solve.solution import Solution, SolveOptions

Adapter = Callable[[StandardForm, SolveOptions], Solution]

ADAPTERS: Mapping[str, str] = {
    **{"cbc": "cbc:run", "scip": "programs:scip", "cp-sat": "programs:cp_sat", "mpax": "programs:mpax"},
    **dict.fromkeys(LICENSED, "ampl:run"),
}
"""Module and function of each adapter."""

UNSCALED = ("cp-sat", *LICENSED)
"""Solvers whose forms are not scaled: CP-SAT needs rows of whole numbers, and licensed ones get the Pyomo model."""


def run(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve a form with the solver of the options; raise `NotApplicableError` if it does not support the model."""
    if options.program in HIGHS:
        return highs(form, options)
    adapter: Adapter = resolve_name(f"{__name__}.{ADAPTERS[options.program]}")
    if options.program in UNSCALED:
        return adapter(form, options)
    scale = units(form)
    return scale.undone(adapter(scale.scaled(form), scale.start(form, options)))


def highs(form: StandardForm, options: SolveOptions, **settings: object) -> Solution:
    """Solve a form with HiGHS, in units that make its tolerances relative.

    `settings` are additional HiGHS options, which those of the user override. It raises `NotApplicableError` if the
    options name another solver, and `NotCertifiableError` if coefficients of one row are too far apart for any solver.
    """
    scale, resolved = units(form), options
    if options.program in HIGHS:
        algorithm, own = HIGHS[options.program], options.solver.removeprefix(options.program)
        method = options.method if algorithm == "choose" else algorithm
        resolved = replace(options, solver=f"highs{own}", method=method)
    session = Session(scale.scaled(form), scale.start(form, resolved))
    for name, value in settings.items():
        session.prefer(name, value)
    solution, _ = session.refined(session.confirmed(session.run()))
    if form.ties is not None and solution.status == "optimal":
        solution = session.preferred(solution)
    return replace(scale.undone(solution), solver=options.solver)
