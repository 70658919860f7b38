"""SCIP, by PySCIPOpt. The model goes over as a file: building rows as expressions takes ten times as long."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    """Solve a form by SCIP, in one thread; after Ctrl-C, which SCIP catches, incumbent and bound are kept."""
    try:
        import pyscipopt
    except ImportError:
        raise absent("scip") from None
    one, scip, sign = Run(form, options), pyscipopt.Model(), -1.0 if form.maximise else 1.0
    scip.hideOutput()
    _pass(scip, form)
    limits = {"limits/gap": options.rel_gap, "randomization/randomseedshift": options.seed}
    limits |= {} if options.time_limit_s is None else {"limits/time": options.time_limit_s}
    limits |= {} if options.nodes is None else {"limits/nodes": options.nodes}
    for name, value in limits.items():
        scip.setParam(name, value)

    class Watch(pyscipopt.Eventhdlr):  # type: ignore[misc]
        """Notes every better incumbent and bound."""

        def eventinit(self) -> None:
            for kind in WATCHED:
                self.model.catchEvent(getattr(pyscipopt.SCIP_EVENTTYPE, kind), self)

        def eventexit(self) -> None:
            for kind in WATCHED:
                self.model.dropEvent(getattr(pyscipopt.SCIP_EVENTTYPE, kind), self)

        def eventexec(self, event: Any) -> None:
            one.reached(sign * self.model.getPrimalbound(), sign * self.model.getDualbound())

    scip.includeEventhdlr(Watch(), "watch", "notes better incumbents and bounds")
    one.begin()
    scip.optimize()
    told, feasible = scip.getStatus(), scip.getNSols() > 0
    if told == "inforunbd":
        scip.freeTransform()
        scip.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
        scip.optimize()
        told = scip.getStatus()
    values = None
    if feasible:
        best = scip.getBestSol()
        # SCIP sorts its columns by kind; their numbers are in their names.
        at = {column.name: scip.getSolVal(best, column) for column in scip.getVars()}
        values = np.array([at[name] for name in files.names(form, readable=False).columns])
    status = one.stopped(feasible) if told == "timelimit" else STATUS.get(told, "error")
    bounded = status not in ("infeasible", "unbounded")
    return one.ended(
        status,
        told,
        values if status != "unbounded" else None,
        sign * scip.getObjVal() if feasible else None,
        sign * scip.getDualbound() if bounded else None,
        int(scip.getNTotalNodes()),
    )


WATCHED = ("BESTSOLFOUND", "DUALBOUNDIMPROVED")


def _pass(scip: Any, form: StandardForm) -> None:
    """Hand over the form, with numbered columns."""
    lines = files.mps(replace(form, offset=0.0), "model", files.names(form, readable=False))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mps"
        path.write_text("\n".join(lines) + "\n")
        scip.readProblem(str(path))
