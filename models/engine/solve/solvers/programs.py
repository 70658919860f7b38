"""SCIP (by PySCIPOpt), OR-Tools' CP-SAT, and MPAX on JAX, each in a process of its own.

If killed or interrupted, the bounds of the first two are kept. MPAX (Lu, Peng and Yang, MPAX: Mathematical programming
in JAX, 2024) solves linear programs on whatever JAX finds: a card, or processors.
"""

from __future__ import annotations

import importlib.util
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.registry import Status
from schedgap.models.engine.solve import files
from schedgap.models.engine.solve.form import StandardForm
from schedgap.models.engine.solve.session import proved
from schedgap.models.engine.solve.solution import Solution, SolveOptions
from schedgap.models.engine.solve.solvers.answer import SolverRun, absent
from schedgap.models.engine.solve.solvers.whole import scaled, whole

STATUS: dict[str, Status] = {
    "optimal": "optimal",
    "gaplimit": "optimal",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "userinterrupt": "interrupted",
    "nodelimit": "gap left",
}
"""Statuses by SCIP's status strings."""


def scip(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve a form with SCIP, in one thread.

    The model is passed as a file: building rows as expressions takes ten times as long.
    """
    if importlib.util.find_spec("pyscipopt") is None:
        raise absent("scip")
    attempt, sign = SolverRun(form, options), -1.0 if form.maximise else 1.0
    limits = {"limits/gap": options.rel_gap, "limits/time": options.time_limit_s, "limits/nodes": options.nodes}
    settings = {**limits, "randomization/randomseedshift": options.seed, **options.own}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.mps"
        names = files.write_numbered(form, model)
        last, bound = attempt.program(model, settings, lambda number: sign * number, lambda number: sign * number)
    if "failure" in last:
        status, words = last["failure"]
        return attempt.ended(status, words, bound=bound)
    feasible = "values" in last
    status = attempt.stopped(feasible) if last["status"] == "timelimit" else STATUS.get(last["status"], "error")
    kept = feasible and status != "unbounded"
    return attempt.ended(
        status,
        last["status"],
        # SCIP sorts its columns by kind, so values are looked up by name.
        np.array([last["values"][name] for name in names]) if kept else None,
        sign * last["objective"] if feasible else None,
        bound if status not in ("infeasible", "unbounded") else None,
        last["nodes"],
    )


def cp_sat(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve a form with CP-SAT, in whole numbers (:mod:`schedgap.models.engine.solve.solvers.whole`).

    Costs are rounded to whole numbers, like rows; the bound is widened by the largest possible rounding error.
    """
    if importlib.util.find_spec("ortools") is None:
        raise absent("cp-sat")
    attempt, reduced = SolverRun(form, options), whole(form)
    integral, sign = reduced.form, -1.0 if form.maximise else 1.0
    # The costs, to be minimised, as a row in whole numbers.
    endless = np.full(1, np.inf)
    costs = scaled(sp.csr_array(sign * integral.cost[None, :]), -endless, endless, _most(integral))
    rows = scaled(integral.matrix.tocsr(), integral.row_lower, integral.row_upper, _most(integral))
    factor, rounding, moved = float(costs.factor[0]), float(costs.moved[0]), integral.offset - form.offset
    limits = {"relative_gap_limit": options.rel_gap, "max_time_in_seconds": options.time_limit_s}
    settings = {**limits, "num_workers": options.threads, "random_seed": options.seed, **options.own}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.npz"
        np.savez(
            model,
            lower=np.ceil(integral.lower).astype(np.int64),
            upper=np.floor(integral.upper).astype(np.int64),
            row_lower=rows.lower,
            row_upper=rows.upper,
            **{name: getattr(rows.matrix, name) for name in ("indptr", "indices", "data")},
            cost=costs.matrix.data,
            cost_indices=costs.matrix.indices,
        )
        last, bound = attempt.program(
            model,
            settings,
            lambda incumbent: sign * incumbent / factor + moved,
            lambda bound: sign * (bound - rounding) / factor + moved,
        )
    if "failure" in last:
        status, words = last["failure"]
        return attempt.ended(status, words, bound=bound)
    values = reduced.back(np.array(last["values"], float)) if "values" in last else None
    unproved: Status = attempt.stopped(values is not None) if attempt.late else "interrupted"
    proved: dict[str, Status] = {"OPTIMAL": "optimal", "INFEASIBLE": "infeasible", "MODEL_INVALID": "error"}
    status = proved.get(last["status"], unproved)
    objective = None if values is None else float(form.cost @ values)
    return attempt.ended(
        status, last["status"], values, objective, None if status in ("infeasible", "error") else bound, last["nodes"]
    )


def mpax(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve a linear program with MPAX's restarted Halpern PDHG; its prices prove a bound also before the optimum.

    It has no seed, and JAX decides how many threads it takes.
    """
    if importlib.util.find_spec("mpax") is None:
        raise absent("mpax", "pip install 'schedgap[gpu]'")
    if form.integer.any():
        raise NotApplicableError("mpax takes models without integer columns only")
    attempt, sign, rows = SolverRun(form, options), -1.0 if form.maximise else 1.0, form.matrix.tocsr()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.npz"
        sides = {name: getattr(form, name) for name in ("lower", "upper", "row_lower", "row_upper")}
        entries = {name: getattr(rows, name) for name in ("indptr", "indices", "data")}
        np.savez(model, cost=sign * form.cost, **sides, **entries)
        settings = {"time_limit": options.time_limit_s, **options.own}
        last, _ = attempt.program(model, settings, lambda number: number, lambda number: number)
    if "failure" in last:
        status, words = last["failure"]
        return attempt.ended(status, words)
    values, duals = np.array(last["values"]), sign * np.array(last["prices"])
    optimal, finite = last["status"] == "optimal", np.isfinite(duals).all()
    status = attempt.stopped(False) if last["status"] == "late" else LINEAR.get(last["status"], "error")
    objective = float(form.cost @ values) + form.offset if optimal else None
    bound = proved(form, objective, duals) if finite and status not in ("infeasible", "unbounded") else None
    solution = attempt.ended(status, f"{last['status']} on {last['device']}", values if optimal else None)
    return replace(
        solution,
        objective=objective,
        bound=bound,
        iterations=last["steps"],
        row_duals=duals if bound is not None else None,
        column_duals=form.cost - form.matrix.T @ duals if bound is not None else None,
    )


LINEAR: dict[str, Status] = {"optimal": "optimal", "infeasible": "infeasible", "unbounded": "unbounded"}


def _most(form: StandardForm) -> Array:
    return np.maximum(abs(form.lower), abs(form.upper))
