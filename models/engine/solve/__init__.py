"""The way of every model to its solution: it turns a Pyomo model into a HiGHS solution, bound and duals.

>>> import pyomo.environ as pyo
>>> from schedgap.models.engine.solve import build, solve
>>> def knapsack():
...     m = pyo.ConcreteModel()
...     m.x = pyo.Var([1, 2], bounds=(0, 1))
...     m.room = pyo.Constraint(expr=2 * m.x[1] + 3 * m.x[2] <= 4)
...     m.gain = pyo.Objective(expr=3 * m.x[1] + 4 * m.x[2], sense=pyo.maximize)
...     return m
>>> round(solve(build(knapsack)).objective, 6)
5.666667
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyomo.environ as pyo

from schedgap.instances import clock
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import Status
from schedgap.models.engine.solve import solvers
from schedgap.models.engine.solve.form import (
    TIES,
    NotLinearError,
    StandardForm,
    build,
    building,
    compile_model,
    counted,
)
from schedgap.models.engine.solve.options import SOLVERS
from schedgap.models.engine.solve.scaling import NotCertifiableError
from schedgap.models.engine.solve.session import Session, dual_bound, peak_mb
from schedgap.models.engine.solve.solution import Seed, Size, Solution, SolveOptions, Times, TracePoint, agree

__all__ = [
    "CROSS_CHECK_TOLERANCE", "SOLVERS", "TIES", "NotCertifiableError", "NotLinearError", "Seed", "Session", "Size",
    "Solution", "SolveOptions", "StandardForm", "Status", "Times", "TracePoint", "agree", "build", "building",
    "checked", "compile_model", "counted", "cross_check", "dual_bound", "peak_mb", "solve",
]  # fmt: skip

CROSS_CHECK_TOLERANCE = 1e-6
"""Largest relative difference of HiGHS's and CBC's objectives that counts as agreement."""


def solve(model: pyo.ConcreteModel, options: SolveOptions | None = None) -> Solution:
    """Solve a Pyomo model, which is best built inside :func:`building`, and return the solution with all its data.

    Infeasible, unbounded, stopped by the time limit (with or without incumbent) and interrupted are statuses, not
    exceptions. Models that do not compile to arrays go through Pyomo's own HiGHS interface (``path == "pyomo"``). The
    function raises `UsageError` if an option is invalid (time limit 0, MIP start of an unknown variable), and
    `NotCertifiableError` if coefficients of one row are too far apart for any solver.
    """
    from pyomo.common.errors import InfeasibleConstraintException

    options = options or SolveOptions()
    began = clock.now()
    try:
        form = compile_model(model)
    except InfeasibleConstraintException as error:
        return Solution(status="infeasible", termination=" ".join(str(error).split()))
    except NotLinearError as error:
        if options.program != "highs":
            raise NotApplicableError(f"{options.program} takes linear models only: {error}") from None
        from schedgap.models.engine.solve.through_pyomo import solve_through_pyomo

        return checked(solve_through_pyomo(model, options), options, lambda: model)
    compile_s = clock.now() - began
    solution = solvers.run(form, options)
    times = replace(solution.times, transfer_s=solution.times.transfer_s + compile_s)
    return checked(replace(solution, times=times), options, lambda: model)


def checked(solution: Solution, options: SolveOptions, builder: Callable[..., Any], *args: Any) -> Solution:
    """Return the solution, cross-checked by CBC on the model ``builder(*args)`` if the options require it."""
    if not options.cross_check:
        return solution
    return replace(solution, cross_check=cross_check(build(builder, *args), solution, options))


def cross_check(model: pyo.ConcreteModel, solution: Solution, options: SolveOptions) -> float | None:
    """Return the relative difference between `solution` and CBC's optimum of the linear `model`.

    This is ``|CBC − HiGHS|`` relative to the larger one; 0 if it is within rounding; ``None`` if either of them did not
    find an optimum.
    """
    from schedgap.models.engine.solve.through_pyomo import cbc_objective

    if solution.status != "optimal" or solution.objective is None:
        return None
    other = cbc_objective(model, options)
    if other is None:
        return None
    difference, larger = abs(other - solution.objective), max(abs(other), abs(solution.objective))
    return difference / larger if difference > CROSS_CHECK_TOLERANCE * 1e-3 * solution.scale else 0.0
