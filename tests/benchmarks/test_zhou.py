"""Zhou's bound against the master with a row per server, A_online at the paper's own size, and growth."""

from __future__ import annotations

import numpy as np
import pytest

import instances
from heuristics.zhou.batches import Way, online
from instances.views import zhou
from instances.views.zhou import Architecture
from models import elastic
from models.columns import Generated, GenerationOptions
from models.solve import SolveOptions
from models.zhou.columns import completing

PER_SERVER_S = 400.0
"""Seconds that the master with rows per server may take: 20 times what the other one needs, and more."""

ARCHITECTURES = [pytest.param("ps", id="ps"), pytest.param("ra", id="ra")]


def architecture(reference: str, arch: str) -> Architecture:
    """The instance's architecture, with what is computed once."""
    found = zhou.view(instances.load(reference)).architectures[arch]
    assert len(found.options.slots)
    return found


def bound(a: Architecture, per_server: bool = False, seconds: float | None = None) -> Generated:
    return elastic.bound(completing(a), GenerationOptions(time_limit_s=seconds), SolveOptions(), per_server)[0]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_bound_by_class_against_by_server(bench, arch: str) -> None:  # type: ignore[no-untyped-def]
    a = architecture(f"gen/zhou-{arch}", arch)
    bound(architecture("gen/20jobs", arch))  # what is compiled is compiled now
    found: list[Generated] = []
    other: list[Generated] = []
    seconds = bench.time(lambda: found.append(bound(a)))
    reference = bench.reference(lambda: other.append(bound(a, per_server=True, seconds=PER_SERVER_S)), rounds=1)
    mine, theirs = found[-1], other[-1]
    parts = f"pricing {mine.pricing_s:.3g} s, transfer {mine.times.transfer_s:.3g} s, HiGHS {mine.times.solve_s:.3g} s"
    note = (
        f"bound {-mine.bound:.6g} ({mine.ended}, {mine.pricings} pricings, {mine.size.rows} rows; {parts});"
        f" per server {-theirs.bound:.6g} ({theirs.ended}, {theirs.pricings} pricings, {theirs.size.rows} rows)"
    )
    bench.line(f"Zhou lower bound, {arch}, 200 jobs, 150 servers", seconds, reference, "≤ 60 s, ≥ 20×", note)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_online(bench, arch: str) -> None:  # type: ignore[no-untyped-def]
    a = architecture(f"gen/zhou-{arch}", arch)
    online(a, Way())
    windows = online(a, Way())
    seconds = bench.time(lambda: online(a, Way()))
    note = f"realised α {int(windows.window_rounds.max())}, formula {a.alpha}; options are computed before"
    bench.line(f"Zhou A_online, {arch}, 200 jobs, 150 servers", seconds, None, "≤ 5 s (paper < 120 s)", note)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_growth_with_jobs(bench, arch: str) -> None:  # type: ignore[no-untyped-def]
    sizes = (50, 100, 200, 400)
    found = [architecture(f"gen/zhou-{arch}?jobs={n}", arch) for n in sizes]
    online(found[0], Way())
    seconds = [bench.reference(lambda a=a: online(a, Way())) for a in found[:-1]]
    seconds.append(bench.time(lambda: online(found[-1], Way())))
    bench.growth(f"Zhou A_online over jobs, {arch}", sizes, seconds)
    bounds = [bench.reference(lambda a=a: bound(a), rounds=1) for a in found]
    bench.growth(f"Zhou lower bound over jobs, {arch}", sizes, bounds)


def test_options(bench) -> None:  # type: ignore[no-untyped-def]
    """Pareto pairs and dominance: how much is left of what every job could choose."""
    from instances.elastic import options

    a = architecture("gen/200jobs", "ps")
    everything = options(a.machines, a.work, a.most, a.rates, prune=False)
    seconds = bench.time(lambda: options(a.machines, a.work, a.most, a.rates))
    kept = len(a.options.slots)
    note = f"{kept:,} of {len(everything.slots):,} options ({np.round(100 * kept / len(everything.slots))} %)"
    bench.line("Zhou options, gen/200jobs", seconds, None, "–", note)
