"""Synergy's mechanisms and simulations: seconds per round and in all, beside Synergy's own simulator; growth."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schedgap import instances, models
from schedgap.heuristics import HEURISTICS, Context
from schedgap.heuristics.simulator import POLICIES, Trace, simulate
from schedgap.heuristics.synergy.online import SynergyScheduler, asked_round
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import SynergyView

sys.path.insert(0, str(Path(__file__).resolve().parent))

from plain import plain_python

ORIGINAL = "measured with the simulator of msr-fiddle/synergy on 2 shared cores"
STATIC_S, DYNAMIC_S, DYNAMIC_LAS_S = (0.7, 1.1), 34.0, 229.0
"""Seconds of Synergy's own simulator for 100 static jobs on 32 GPUs, and for 5 jobs per hour on 128 (FIFO, LAS)."""


def view(ref: str) -> SynergyView:
    return synergy.view(instances.load(ref))


def run(seen: SynergyView, policy: str) -> Trace:
    built = POLICIES.get(policy).build(seen.instance, models.oracle)
    return simulate(seen.workload, seen.servers, built, profiles=seen.profiles, sensitive=True)


def placing(seen: SynergyView, mechanism: str) -> Any:
    """Return a function that places the view's round by a mechanism, each time from scratch."""
    place = SynergyScheduler("fifo", mechanism).place(seen, models.oracle)
    owner = place.__self__  # type: ignore[attr-defined]
    asked = asked_round(seen, seen.runnable, np.ones(seen.runnable.size))

    def once() -> None:
        owner._last.clear()
        place(asked)

    return once


def uncompiled(function: Callable[[], object]) -> None:
    """Call a function while the compiled loops run as plain Python."""
    from schedgap.heuristics.simulator import _kernels as gangs
    from schedgap.heuristics.synergy import _kernels

    with plain_python(_kernels, gangs):
        function()


@pytest.mark.parametrize("mechanism", ["proportional", "greedy", "tune"])
def test_one_round_on_512_gpus(bench, mechanism: str) -> None:  # type: ignore[no-untyped-def]
    once = placing(view("gen/synergy-512?load=0"), mechanism)
    once()
    seconds = bench.time(lambda: [once() for _ in range(20)], rounds=5) / 20
    plain = bench.reference(lambda: uncompiled(once))
    name = f"{mechanism}, one round, 512 GPUs, against plain Python"
    bench.line(name, seconds, plain, "≤ 5 ms", most=0.005)


def test_tune_against_opt_on_128_gpus(bench) -> None:  # type: ignore[no-untyped-def]
    """Time Tune against Opt at 128 GPUs, where the paper reports a factor of 200; both use our solver."""
    seen = view("gen/synergy-128?load=0")
    once = placing(seen, "tune")
    ours = bench.time(lambda: [once() for _ in range(20)], rounds=5) / 20
    bench.line(
        "tune, one round, 128 GPUs, against opt", ours, bench.reference(placing(seen, "opt")), "200× in the paper"
    )


def test_100_static_jobs_on_32_gpus(bench) -> None:  # type: ignore[no-untyped-def]
    seen = view("gen/synergy-32")
    run(seen, "synergy.tune.fifo")
    traces: list[Trace] = []
    seconds = bench.time(lambda: traces.append(run(seen, "synergy.tune.fifo")))
    plain = bench.reference(lambda: uncompiled(lambda: run(seen, "synergy.tune.fifo")), rounds=1)
    name = "100 static jobs on 32 GPUs, tune, FIFO, whole simulation"
    note = f"{traces[-1].rounds} rounds; {ORIGINAL}: {STATIC_S[0]}–{STATIC_S[1]} s"
    bench.line(f"{name}, against Synergy's", seconds, STATIC_S[0], "≥ 10×", note, least=10.0, recorded=True)
    bench.line(f"{name}, against plain Python", seconds, plain, "", note="the same program, inner loops uncompiled")


@pytest.mark.parametrize(("policy", "original_s"), [("fifo", DYNAMIC_S), ("las", DYNAMIC_LAS_S)])
def test_five_jobs_per_hour_on_128_gpus(bench, policy: str, original_s: float) -> None:  # type: ignore[no-untyped-def]
    seen = view("gen/synergy-128?load=5")
    traces: list[Trace] = []
    seconds = bench.time(lambda: traces.append(run(seen, f"synergy.tune.{policy}")), rounds=1)
    note = f"{seen.size} jobs, {traces[-1].rounds} rounds; {ORIGINAL}: {original_s:g} s"
    name = f"5 jobs/h on 128 GPUs, tune, {policy.upper()}, against Synergy's"
    bench.line(name, seconds, original_s, "≥ 10×", note, least=10.0, recorded=True)


@pytest.mark.parametrize("mechanism", ["tune", "greedy", "drf", "tetris"])
def test_growth_with_the_cluster(bench, mechanism: str) -> None:  # type: ignore[no-untyped-def]
    """Measure one round of a mechanism on 64 to 512 GPUs, with all jobs waiting."""
    sizes = (8, 16, 32, 64)
    seconds = []
    context = Context(np.random.default_rng(0), models.oracle)
    method = HEURISTICS.get(f"synergy.{mechanism}")
    for servers in sizes:
        seen = view(f"gen/synergy-512?load=0&servers={servers}")
        method.run(seen, context)
        measure = bench.time if servers == sizes[-1] else bench.reference
        seconds.append(measure(lambda seen=seen: method.run(seen, context), rounds=3))
    bench.growth(f"{mechanism}, one round over servers of 8 GPUs", sizes, seconds)
