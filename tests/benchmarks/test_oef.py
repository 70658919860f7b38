"""OEF: lazy rows against the full LP, and growth with tenants."""

from __future__ import annotations

import time

import pytest

import instances
import models
from instances.registry import PAPERS
from instances.views.oef import View


def scale(tenants: int) -> View:
    """Tenants with random increasing speedups on ten GPU types."""
    return PAPERS.get("oef").view(instances.load(f"gen/oef-scale?tenants={tenants}"))


@pytest.mark.parametrize(("tenants", "target", "rounds"), [(200, "≥ 4×", 3), (400, "≥ 8×", 1)])
def test_lazy_against_full(bench, tenants: int, target: str, rounds: int) -> None:  # type: ignore[no-untyped-def]
    view = scale(tenants)
    outcomes = []
    lazy = bench.time(lambda: outcomes.append(models.get("oef.cooperative").run(view)), rounds=3)
    full = bench.reference(lambda: models.get("oef.cooperative.full").run(view), rounds=rounds)
    size = outcomes[-1].solution.size
    note = f"{size.rows:,} of {tenants * (tenants - 1):,} rows, peak {outcomes[-1].solution.peak_mb:.0f} MB"
    bench.line(f"cooperative, lazy rows, n = {tenants}", lazy, full, target, note)


def test_lazy_at_1000(bench) -> None:  # type: ignore[no-untyped-def]
    view = scale(1000)
    seconds = bench.time(lambda: models.get("oef.cooperative").run(view), rounds=1)
    bench.line("cooperative, lazy rows, n = 1000", seconds, None, "≤ 60 s")


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
