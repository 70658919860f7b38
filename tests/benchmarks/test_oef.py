"""OEF with envy rows that are added when violated, against the full LP, and growth with tenants."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from schedgap import instances, models
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.oef import OefView
from schedgap.models.engine.solve import Session, SolveOptions
from schedgap.models.engine.solve.session import PRIMAL_SIMPLEX
from schedgap.models.oef.fair import curve
from schedgap.models.oef.lazy import lazy_fair
from schedgap.models.oef.printed import Constraints

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ways
from test_oef_frontier import compared

FULL_S = 60.0
"""Seconds that HiGHS gets for the full LP of 1000 tenants."""


def scale(tenants: int) -> OefView:
    """Return a view of tenants with random increasing speedups on ten GPU types."""
    return PAPERS.get("oef").view(instances.load(f"gen/oef-scale?tenants={tenants}"))


@pytest.mark.parametrize(("tenants", "least"), [(200, 4.0), (400, 8.0)])
def test_lazy_against_full(bench, tenants: int, least: float) -> None:  # type: ignore[no-untyped-def]
    """Time lazy rows against the full LP, which is stopped at 1.5 times the time that meets the target."""
    view = scale(tenants)
    outcomes, whole = [], []
    lazy = bench.time(lambda: outcomes.append(models.get("oef.cooperative").run(view)))
    limit = SolveOptions(time_limit_s=1.5 * least * lazy)
    full = bench.reference(lambda: whole.append(models.get("oef.cooperative.full").run(view, limit)), rounds=1)
    size = outcomes[-1].solution.size
    note = f"{size.rows:,} of {tenants * (tenants - 1):,} rows, peak {outcomes[-1].solution.peak_mb:.0f} MB"
    name = f"cooperative, lazy rows against the full LP, n = {tenants}"
    capped = whole[-1].solution.status != "optimal"
    bench.line(name, lazy, full, f"≥ {least:.0f}×", note, least=least, capped=capped)


def test_lazy_at_1000(bench) -> None:  # type: ignore[no-untyped-def]
    """Time lazy rows for 1000 tenants; the full LP is stopped early (it takes more than 1700 s by simplex)."""
    view = scale(1000)
    outcomes = []
    seconds = bench.time(lambda: outcomes.append(models.get("oef.cooperative").run(view)), rounds=1)
    size = outcomes[-1].solution.size
    full = bench.reference(lambda: ways.floor(view, seconds=FULL_S), rounds=1)
    note = f"{size.rows:,} of {1000 * 999:,} rows; the full LP was stopped after {FULL_S:.0f} s of HiGHS"
    name = "cooperative, lazy rows against the full LP, n = 1000"
    bench.line(name, seconds, full, "≤ 60 s", note, most=60.0, capped=True)


def test_lazy_rows_by_dual_simplex(bench, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """After new rows the basis stays dual feasible: dual simplex goes on, primal simplex starts anew."""
    view = scale(200)
    dual = bench.time(lambda: lazy_fair(view, SolveOptions(method="simplex")))
    added = Session.add_rows

    def by_primal(session: Session, *rows: Any) -> None:
        added(session, *rows)
        session.set_option("simplex_strategy", PRIMAL_SIMPLEX)

    monkeypatch.setattr(Session, "add_rows", by_primal)
    primal = bench.reference(lambda: lazy_fair(view, SolveOptions(method="simplex", time_limit_s=60)), rounds=1)
    bench.line("lazy rows, n = 200: dual, against primal simplex", dual, primal, "≥ 1× (18× in one case)", least=1.0)


def test_points_of_a_curve_begin_where_the_last_one_ended(bench) -> None:  # type: ignore[no-untyped-def]
    """Time a curve of 50 tenants, against points that begin anew."""
    view = PAPERS.get("oef").view(instances.load("gen/oef-50"))
    points, options = [Constraints(epsilon=i / 20) for i in range(21)], SolveOptions(method="simplex")
    warm = bench.time(lambda: list(curve(view, points, options)))
    anew = bench.reference(lambda: [next(curve(view, [point], options)) for point in points])
    bench.line("21 points of a frontier, n = 50: from the last one, against anew", warm, anew, "≥ 1×", least=1.0)


def test_points_of_300_random_instances_are_those_of_scipy(bench) -> None:  # type: ignore[no-untyped-def]
    """Time 1,200 points of frontiers; each is compared with the full program, and its bound is derived."""
    seconds = bench.time(lambda: [compared(seed) for seed in range(300)], rounds=1)
    bench.line("1,200 points of frontiers on 300 random instances: all equal scipy's optimum", seconds, None, "")


@pytest.mark.parametrize("model", ["oef.cooperative", "oef.noncooperative", "oef.efficiency"])
def test_growth_with_tenants(bench, model: str) -> None:  # type: ignore[no-untyped-def]
    sizes = (100, 200, 400, 600)
    seconds = []
    for tenants in sizes[:-1]:
        began = time.perf_counter()
        models.get(model).run(scale(tenants))
        seconds.append(time.perf_counter() - began)
    view = scale(sizes[-1])
    seconds.append(bench.time(lambda: models.get(model).run(view), rounds=1))
    bench.growth(f"{model} over tenants", sizes, seconds)
