"""Pyomo's own HiGHS interface, for models that do not compile to arrays (quadratic objectives and the like)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition

from schedgap.instances import clock
from schedgap.instances.registry import Status
from schedgap.models.solve.session import finite, peak_mb
from schedgap.models.solve.solution import Size, Solution, SolveOptions, Times

_ENDED: dict[Any, Status] = {
    TerminationCondition.convergenceCriteriaSatisfied: "optimal",
    TerminationCondition.provenInfeasible: "infeasible",
    TerminationCondition.locallyInfeasible: "infeasible",
    TerminationCondition.infeasibleOrUnbounded: "infeasible",
    TerminationCondition.unbounded: "unbounded",
    TerminationCondition.interrupted: "interrupted",
}


def solve_through_pyomo(model: pyo.ConcreteModel, options: SolveOptions) -> Solution:
    """Solve `model` by Pyomo's ``highs`` interface and return the same kind of answer.

    Duals, basis, MIP starts and traces are not available here.
    """
    began = clock.now()
    results = SolverFactory("highs").solve(
        model,
        time_limit=options.time_limit_s,
        threads=options.threads,
        rel_gap=options.rel_gap,
        solver_options={"random_seed": options.seed},
        load_solutions=False,
        raise_exception_on_nonoptimal_result=False,
    )
    feasible = results.solution_status in (SolutionStatus.feasible, SolutionStatus.optimal)
    status = _ENDED.get(results.termination_condition, "error")
    if results.termination_condition == TerminationCondition.maxTimeLimit:
        status = "time limit with incumbent" if feasible else "time limit without incumbent"
    primals = list(results.solution_loader.get_vars().items()) if feasible else []
    return Solution(
        status=status,
        termination=results.termination_condition.name,
        solution_status=results.solution_status.name,
        objective=results.incumbent_objective if feasible else None,
        bound=None if results.objective_bound is None else finite(results.objective_bound),
        times=Times(solve_s=clock.now() - began),
        size=Size(columns=len(primals)),
        peak_mb=peak_mb(),
        path="pyomo",
        model=model,
        columns=[variable for variable, _ in primals],
        column_values=np.array([value for _, value in primals], float) if feasible else None,
    )
