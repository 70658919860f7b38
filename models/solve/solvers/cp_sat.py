"""OR-Tools' CP-SAT, on models that are in whole numbers (:mod:`schedgap.models.solve.solvers.whole`)."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from schedgap.instances.arrays import Array
from schedgap.instances.registry import Status
from schedgap.models.solve.form import StandardForm
from schedgap.models.solve.solution import Solution, SolveOptions
from schedgap.models.solve.solvers.answer import Run, Told, absent
from schedgap.models.solve.solvers.whole import Rows, Whole, scaled, whole

STATUS: dict[str, Status] = {"OPTIMAL": "optimal", "INFEASIBLE": "infeasible"}


def run(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve a form by CP-SAT in a process of its own; killed or interrupted, it leaves its last bound.

    Costs are rounded to whole numbers as rows are; the bound is widened by what that can be.
    """
    if importlib.util.find_spec("ortools") is None:
        raise absent("cp-sat")
    one, reduced = Run(form, options), whole(form)
    # Costs, to be minimised, as a row in whole numbers.
    cost, endless = -reduced.form.cost if form.maximise else reduced.form.cost, np.full(1, np.inf)
    costs = scaled(sp.csr_array(cost[None, :]), -endless, endless, _most(reduced.form))
    settings = {"num_workers": options.threads, "random_seed": options.seed, "relative_gap_limit": options.rel_gap}
    settings |= {} if options.time_limit_s is None else {"max_time_in_seconds": options.time_limit_s}
    with tempfile.TemporaryDirectory() as folder:
        model, integral = Path(folder) / "model.npz", reduced.form
        rows = scaled(integral.matrix.tocsr(), integral.row_lower, integral.row_upper, _most(integral))
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
        return _read(one, reduced, costs, one.program("_cp_sat.py", model, settings))


def _most(form: StandardForm) -> Array:
    return np.maximum(abs(form.lower), abs(form.upper))


def _read(one: Run, reduced: Whole, costs: Rows, told: Told) -> Solution:
    form, sign = one.form, -1.0 if one.form.maximise else 1.0
    moved = reduced.form.offset - form.offset

    factor, rounding = float(costs.factor[0]), float(costs.moved[0])
    bound = one.follow(
        told, lambda found: sign * found / factor + moved, lambda found: sign * (found - rounding) / factor + moved
    )
    if told.failure is not None:
        return one.ended(*told.failure, bound=bound)
    last = told.lines[-1]
    values = reduced.back(np.array(last["values"], float)) if "values" in last else None
    unproved: Status = one.stopped(values is not None) if one.late else "interrupted"
    status = "error" if last["status"] == "MODEL_INVALID" else STATUS.get(last["status"], unproved)
    objective = None if values is None else float(form.cost @ values)
    return one.ended(
        status, last["status"], values, objective, None if status in ("infeasible", "error") else bound, last["nodes"]
    )
