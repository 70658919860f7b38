"""SCIP, by PySCIPOpt. The model goes over as a file: building rows as expressions takes ten times as long."""

from __future__ import annotations

import importlib.util
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from schedgap.instances.registry import Status
from schedgap.models.solve import files
from schedgap.models.solve.form import StandardForm
from schedgap.models.solve.solution import Solution, SolveOptions
from schedgap.models.solve.solvers.answer import Run, absent

STATUS: dict[str, Status] = {
    "optimal": "optimal",
    "gaplimit": "optimal",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "userinterrupt": "interrupted",
    "nodelimit": "gap left",
}


def run(form: StandardForm, options: SolveOptions) -> Solution:
    """Solve a form by SCIP, in one thread and a process of its own; killed or interrupted, it leaves its last bound."""
    if importlib.util.find_spec("pyscipopt") is None:
        raise absent("scip")
    one, sign = Run(form, options), -1.0 if form.maximise else 1.0
    limits = {"limits/gap": options.rel_gap, "randomization/randomseedshift": options.seed}
    limits |= {} if options.time_limit_s is None else {"limits/time": options.time_limit_s}
    limits |= {} if options.nodes is None else {"limits/nodes": options.nodes}
    names = files.names(form, readable=False)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.mps"
        model.write_text("\n".join(files.mps(replace(form, offset=0.0), "model", names)) + "\n")
        told = one.program("_scip.py", model, limits)
    bound = one.follow(told, lambda number: sign * number, lambda number: sign * number)
    if told.failure is not None:
        return one.ended(*told.failure, bound=bound)
    last = told.lines[-1]
    feasible = "values" in last
    status = one.stopped(feasible) if last["status"] == "timelimit" else STATUS.get(last["status"], "error")
    kept = feasible and status != "unbounded"
    return one.ended(
        status,
        last["status"],
        # SCIP sorts its columns by kind; their numbers are in their names.
        np.array([last["values"][name] for name in names.columns]) if kept else None,
        sign * last["objective"] if feasible else None,
        bound if status not in ("infeasible", "unbounded") else None,
        last["nodes"],
    )
