"""Ways of building OEF's envy-free LP and passing it to HiGHS, each run in a process of its own.

``python ways.py <way> <tenants>`` prints the seconds of building and transfer, the seconds in all, and the peak memory.
The way ``floor`` has no modelling layer; ``ours`` is the path that all models here take
(:mod:`schedgap.models.engine.solve`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr.numeric_expr import LinearExpression

from schedgap import instances
from schedgap.instances.views import oef
from schedgap.instances.views.oef import OefView
from schedgap.models.engine.solve import Session, SolveOptions, StandardForm, build, building, compile_model
from schedgap.models.engine.solve.session import peak_mb
from schedgap.models.oef.printed import build_cooperative, build_efficiency


def scale(tenants: int) -> OefView:
    """Return a view of tenants with random increasing speedups on ten GPU types."""
    return oef.view(instances.load(f"gen/oef-scale?tenants={tenants}"))


def matrix(view: OefView) -> sp.csc_array:
    """Return the matrix of capacity rows and envy rows over the variables ``x[l, j]``, by tenant and type."""
    n, k = view.speedups.shape
    l, i = np.nonzero(~np.eye(n, dtype=bool))
    own = (l[:, None] * k + np.arange(k)).ravel()
    other = (i[:, None] * k + np.arange(k)).ravel()
    rows = k + np.repeat(np.arange(len(l)), k)
    w = view.speedups[l].ravel()
    entries = np.r_[np.ones(n * k), w, -w]
    where = np.r_[np.tile(np.arange(k), n), rows, rows], np.r_[np.arange(n * k), own, other]
    return sp.csc_array((entries, where), shape=(k + len(l), n * k))


def arrays(view: OefView) -> StandardForm:
    """Build the LP directly as scipy arrays, with which all modelling layers are compared."""
    n, k = view.speedups.shape
    rows = matrix(view)
    envy = rows.shape[0] - k
    return StandardForm(
        cost=view.speedups.ravel(),
        offset=0.0,
        maximise=True,
        matrix=rows,
        row_lower=np.r_[np.full(k, -np.inf), np.zeros(envy)],
        row_upper=np.r_[view.capacity, np.full(envy, np.inf)],
        lower=np.zeros(n * k),
        upper=np.tile(2.0 * view.capacity, n),
        integer=np.zeros(n * k, bool),
        columns=(),
        rows=(),
    )


def floor(view: OefView, seconds: float | None = None) -> float:
    """Solve the LP from scipy arrays; return HiGHS's own seconds."""
    return passed(arrays(view), seconds)


def passed(form: StandardForm, seconds: float | None = None) -> float:
    """Pass arrays to HiGHS and solve them; return HiGHS's own seconds."""
    return Session(form, SolveOptions(method="simplex", time_limit_s=seconds)).run().times.solve_s


def variables_and_matrix(view: OefView) -> float:
    """Build variables and objective in Pyomo and the rows as a scipy matrix; return HiGHS's own seconds."""
    compile_model(build(build_efficiency, view))
    return passed(arrays(view))


def ours(view: OefView) -> float:
    """Build rules from templates and compile them to arrays; return HiGHS's own seconds."""
    return passed(compile_model(build(build_cooperative, view)))


def rules(view: OefView) -> float:
    """Build rules as expression trees and compile them to arrays; return HiGHS's own seconds."""
    return passed(compile_model(build_cooperative(view)))


def linear_expressions(view: OefView) -> float:
    """Build rows as linear expressions with garbage collection paused; return HiGHS's own seconds."""
    with PauseGC():
        model = _by_rows(view)
    return passed(compile_model(model))


def _by_rows(view: OefView) -> pyo.ConcreteModel:
    model = build(build_efficiency, view)
    n, k = view.speedups.shape
    x = [[model.x[l, j] for j in range(k)] for l in range(n)]
    model.envy = pyo.ConstraintList()
    for l in range(n):
        w = view.speedups[l].tolist()
        for i in range(n):
            if i != l:
                row = LinearExpression(linear_coefs=[*w, *(-c for c in w)], linear_vars=[*x[l], *x[i]])
                model.envy.add(row >= 0)
    return model


def contrib(view: OefView) -> float:
    """Build rules and solve by Pyomo's newer interface to HiGHS; return HiGHS's own seconds."""
    return _contrib(build_cooperative(view))


def templates_contrib(view: OefView) -> float:
    """Build rules from templates and solve by Pyomo's newer interface; return HiGHS's own seconds."""
    with building():
        model = build_cooperative(view)
    return _contrib(model)


def _contrib(model: Any) -> float:
    from pyomo.contrib.solver.common.factory import SolverFactory

    solver = SolverFactory("highs")
    solver.solve(model, threads=1)
    return float(solver._solver_model.getRunTime())


def appsi(view: OefView) -> float:
    """Build rules and solve by Pyomo's older persistent interface to HiGHS; return HiGHS's own seconds."""
    from pyomo.contrib.appsi.solvers import Highs

    solver = Highs()
    solver.highs_options = {"threads": 1}
    solver.solve(build_cooperative(view))
    return float(solver._solver_model.getRunTime())


WAYS: dict[str, Callable[[OefView], float]] = {
    "floor": floor,
    "variables_and_matrix": variables_and_matrix,
    "ours": ours,
    "linear_expressions": linear_expressions,
    "rules": rules,
    "contrib": contrib,
    "appsi": appsi,
    "templates_contrib": templates_contrib,
}


def main(way: str, tenants: int) -> dict[str, float]:
    """Measure one way once, after a small instance has loaded all imports and solvers."""
    WAYS[way](scale(5))
    view = scale(tenants)
    began = time.perf_counter()
    highs_s = WAYS[way](view)
    total = time.perf_counter() - began
    return {"build_transfer_s": total - highs_s, "highs_s": highs_s, "total_s": total, "peak_mb": peak_mb()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
