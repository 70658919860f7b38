"""Pyomo's cost on the one solve path, against handing scipy arrays to HiGHS directly and against Pyomo's interfaces."""

from __future__ import annotations

import highspy
import numpy as np
import pytest
import scipy.sparse as sp
from pyomo.contrib.solver.common.factory import SolverFactory

import instances
import models
from instances.registry import PAPERS
from instances.views.oef import View
from models.oef import build_cooperative
from models.solve import SolveOptions


def scale(tenants: int) -> View:
    """Tenants with random increasing speedups on ten GPU types."""
    return PAPERS.get("oef").view(instances.load(f"gen/oef-scale?tenants={tenants}"))


def floor(view: View) -> None:
    """Solve the envy-free LP from scipy arrays: what any modelling layer is measured against."""
    n, k = view.speedups.shape
    l, i = np.nonzero(~np.eye(n, dtype=bool))
    own = (l[:, None] * k + np.arange(k)).ravel()
    other = (i[:, None] * k + np.arange(k)).ravel()
    rows = np.repeat(np.arange(len(l)), k)
    w = view.speedups[l].ravel()
    envy = sp.coo_array((np.r_[w, -w], (np.r_[rows, rows], np.r_[own, other])), shape=(len(l), n * k))
    capacity = sp.coo_array((np.ones(n * k), (np.tile(np.arange(k), n), np.arange(n * k))), shape=(k, n * k))
    matrix = sp.vstack([capacity, envy]).tocsc()
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_ = view.speedups.ravel(), np.zeros(n * k)
    lp.col_upper_ = np.tile(view.capacity, n)
    lp.row_lower_ = np.r_[np.full(k, -np.inf), np.zeros(len(l))]
    lp.row_upper_ = np.r_[view.capacity, np.full(len(l), np.inf)]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.passModel(lp)
    highs.run()


def test_build_and_transfer_at_200_tenants(bench) -> None:  # type: ignore[no-untyped-def]
    view = scale(200)
    spec = models.get("oef.cooperative.full")
    outcomes = []
    total = bench.time(lambda: outcomes.append(spec.run(view)))
    times = sorted((o.solution.times for o in outcomes), key=lambda t: t.solve_s)[len(outcomes) // 2]
    overhead = times.build_s + times.transfer_s
    note = (
        f"share {overhead / times.solve_s:.0%} of HiGHS; build {times.build_s:.3g} s, transfer {times.transfer_s:.3g} s"
    )
    bench.line("cooperative LP, n = 200: build + transfer", overhead, times.solve_s, "≥ 4× (≤ 25 % of HiGHS)", note)
    bench.line(
        "cooperative LP, n = 200: total against scipy floor",
        total,
        bench.reference(lambda: floor(view)),
        "floor = 1×",
    )


def test_pyomo_interface_at_100_tenants(bench) -> None:  # type: ignore[no-untyped-def]
    view = scale(100)

    def through_pyomo() -> None:
        options = {"load_solutions": False, "raise_exception_on_nonoptimal_result": False}
        SolverFactory("highs").solve(build_cooperative(view), **options)

    ours = bench.time(lambda: models.get("oef.cooperative.full").run(view))
    bench.line(
        "cooperative LP, n = 100: against rules → contrib.solver",
        ours,
        bench.reference(through_pyomo),
        "faster",
    )


@pytest.mark.parametrize("spec", list(models.MODELS), ids=lambda s: s.id)
def test_share_of_pyomo_on_every_model_at_200_jobs(bench, spec: models.ModelSpec) -> None:  # type: ignore[no-untyped-def]
    view = PAPERS.get(spec.paper).view(instances.load("gen/200jobs"))
    if reason := spec.skip(view):
        pytest.skip(reason)
    outcomes = []
    bench.time(lambda: outcomes.append(spec.run(view, SolveOptions(time_limit_s=60))))
    times = outcomes[-1].solution.times
    overhead = times.build_s + times.transfer_s
    small = times.solve_s < 0.1
    note = f"exception: HiGHS itself needs only {times.solve_s * 1000:.2g} ms" if small else ""
    bench.line(f"{spec.id} at gen/200jobs: build + transfer", overhead, times.solve_s, "≥ 4× (≤ 25 % of HiGHS)", note)
