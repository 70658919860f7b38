"""Solving Pyomo models without compiling them: Pyomo's own HiGHS interface, and CBC through PuLP.

The former is for models that do not compile to arrays (quadratic objectives and the like). The latter is a second
modelling layer and a second solver: it reads the Pyomo constraints row by row and shares nothing with
:mod:`schedgap.models.engine.solve.form`, so a mistake in the fast path shows as a difference of objectives.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pulp
import pyomo.environ as pyo
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
from pyomo.repn import generate_standard_repn

from schedgap.instances import clock
from schedgap.instances.registry import Status
from schedgap.models.engine.solve import logs
from schedgap.models.engine.solve.session import finite, peak_mb
from schedgap.models.engine.solve.solution import Size, Solution, SolveOptions, Times

_ENDED: dict[Any, Status] = {
    TerminationCondition.convergenceCriteriaSatisfied: "optimal",
    TerminationCondition.provenInfeasible: "infeasible",
    TerminationCondition.locallyInfeasible: "infeasible",
    TerminationCondition.infeasibleOrUnbounded: "infeasible",
    TerminationCondition.unbounded: "unbounded",
    TerminationCondition.interrupted: "interrupted",
}


def solve_through_pyomo(model: pyo.ConcreteModel, options: SolveOptions) -> Solution:
    """Solve `model` by Pyomo's ``highs`` interface.

    Duals, basis, MIP starts and traces are not available here.
    """
    began = clock.now()
    results = SolverFactory("highs").solve(
        model,
        time_limit=options.time_limit_s,
        threads=options.threads,
        rel_gap=options.rel_gap,
        solver_options={"random_seed": options.seed, **options.own, **logs.settings(options.logs)},
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
        solver=options.solver,
        model=model,
        columns=[variable for variable, _ in primals],
        column_values=np.array([value for _, value in primals], float) if feasible else None,
    )


def cbc_objective(model: pyo.ConcreteModel, options: SolveOptions) -> float | None:
    """Solve a linear Pyomo model by CBC; return its objective, or ``None`` unless CBC proves it optimal.

    Time limit, relative gap and threads are passed on.
    """
    objective = next(model.component_data_objects(pyo.Objective, active=True))
    problem = pulp.LpProblem("model", pulp.LpMinimize if objective.sense == pyo.minimize else pulp.LpMaximize)
    columns: dict[int, pulp.LpVariable] = {}
    problem += _affine(objective.expr, problem, columns)
    for i, row in enumerate(model.component_data_objects(pyo.Constraint, active=True)):
        # Reading `expr` makes Pyomo evaluate the rule of a template row again, which checks the template as well.
        _ = row.expr
        lower, expression, upper = row.to_bounded_expression(evaluate_bounds=True)
        body = _affine(expression, problem, columns)
        if lower is not None and lower == upper:
            problem += (body == lower, f"r{i}")
            continue
        if lower is not None:
            problem += (body >= lower, f"r{i}l")
        if upper is not None:
            problem += (body <= upper, f"r{i}u")
    with warnings.catch_warnings():
        # PuLP 3 bundles CBC and warns that PuLP 4 will not. The dependency is pinned below 4.
        warnings.simplefilter("ignore", DeprecationWarning)
        solver = pulp.PULP_CBC_CMD(
            msg=False, timeLimit=options.time_limit_s, gapRel=options.rel_gap, threads=options.threads
        )
    problem.solve(solver)
    # `status` is also Optimal for a time limit with an incumbent; `sol_status` distinguishes the two.
    if problem.sol_status != pulp.LpSolutionOptimal:
        return None
    return float(pulp.value(problem.objective))


def _affine(expression: Any, problem: pulp.LpProblem, columns: dict[int, pulp.LpVariable]) -> pulp.LpAffineExpression:
    repn = generate_standard_repn(expression, compute_values=True)
    for variable in repn.linear_vars:
        if id(variable) not in columns:
            category = pulp.LpContinuous if variable.is_continuous() else pulp.LpInteger
            columns[id(variable)] = problem.add_variable(f"x{len(columns)}", variable.lb, variable.ub, category)
    terms = [(columns[id(v)], float(c)) for v, c in zip(repn.linear_vars, repn.linear_coefs, strict=True)]
    return pulp.LpAffineExpression(terms, constant=float(pyo.value(repn.constant)))
