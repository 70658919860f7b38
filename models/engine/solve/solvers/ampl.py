"""Licensed solvers through Pyomo's interface to AMPL's drivers: ``gurobi``, ``cplex``, ``copt``, ``xpress``.

The drivers are executables of these names that read AMPL's format and have the same options. ``mip:bestbound`` makes
them return the bound, which would otherwise be missing if a MIP stops early.
"""

from __future__ import annotations

import logging
import shutil
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.errors import ApplicationError
from pyomo.common.log import LoggingIntercept
from pyomo.opt import TerminationCondition

from schedgap.instances.registry import Status
from schedgap.models.engine.solve.form import StandardForm
from schedgap.models.engine.solve.solution import Solution, SolveOptions
from schedgap.models.engine.solve.solvers.answer import SolverRun, absent

BOUND = "bestbound"
"""Name of the suffix in which a driver returns the bound."""

STATUS: dict[Any, Status] = {
    TerminationCondition.optimal: "optimal",
    TerminationCondition.infeasible: "infeasible",
    TerminationCondition.unbounded: "unbounded",
    TerminationCondition.userInterrupt: "interrupted",
}


def run(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve the form's Pyomo model with the executable named like the solver."""
    name = options.solver
    if shutil.which(name) is None:
        raise absent(name, f"put AMPL's driver {name!r} on the path, and its licence where the driver expects it")
    attempt, model = SolverRun(form, options), form.model
    solver = pyo.SolverFactory("asl", executable=shutil.which(name))
    settings = {"mip:gap": options.rel_gap, "tech:threads": options.threads, "mip:bestbound": 1, "solver": name}
    solver.options.update(settings | ({} if options.time_limit_s is None else {"lim:time": options.time_limit_s}))
    model.add_component(BOUND, pyo.Suffix(direction=pyo.Suffix.IMPORT))
    attempt.begin()
    try:
        with LoggingIntercept(module="pyomo", level=logging.ERROR):  # Pyomo warns of every status but optimal
            results = solver.solve(model, load_solutions=False)
            if len(results.solution):
                model.solutions.load_from(results)
        bounds = list(getattr(model, BOUND).values())
    except (ApplicationError, ValueError) as error:
        return attempt.ended("error", " ".join(str(error).split())[:300])
    finally:
        model.del_component(BOUND)
    ended = results.solver.termination_condition
    values = None
    if len(results.solution):  # columns that the driver left out are 0
        values = np.array([float(column.value or 0.0) for column in form.columns])
    status = STATUS.get(ended, "error")
    if ended in (TerminationCondition.maxTimeLimit, TerminationCondition.maxIterations):  # AMPL's codes 400 to 499
        status = attempt.stopped(values is not None)
    objective = None if values is None else float(form.cost @ values)
    bound = bounds[0] - form.offset if bounds else None
    if status == "optimal" and not form.integer.any():
        bound = objective
    return attempt.ended(status, str(results.solver.message or ended), values, objective, bound)
