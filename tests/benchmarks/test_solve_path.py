"""What Pyomo costs on the way to HiGHS, against scipy arrays passed directly and against Pyomo's other interfaces."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pyomo.environ as pyo
import pytest

from schedgap import instances, models
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.random_instances import synergy as small
from schedgap.instances.registry import PAPERS
from schedgap.instances.views import synergy
from schedgap.models.engine.solve import Session, SolveOptions, StandardForm, Times, build, compile_model
from schedgap.models.synergy.throughput import RoundRule, build_round, own_floor
from schedgap.models.synergy.unpruned import build_unpruned

WAYS = Path(__file__).with_name("ways.py")
TENANTS = 200

# From the specification's table: seconds of build and transfer, and the total as a multiple of the floor.
TABLE = {
    "floor": ("scipy arrays → HiGHS: the floor", 0.11, 1.00),
    "variables_and_matrix": ("Pyomo variables, rows from a matrix", 0.16, 1.02),
    "ours": ("templates → standard form → HiGHS: ours", 0.66, 1.18),
    "linear_expressions": ("LinearExpression rows → standard form", 0.9, 1.96),
    "rules": ("rules → standard form", 3.8, 2.49),
    "contrib": ("rules → contrib.solver", 6.3, 3.4),
    "appsi": ("rules → appsi", 6.3, 3.4),
    "templates_contrib": ("templates → contrib.solver", 6.6, 3.6),
}


COMPARED = {"floor", "ours"}
"""Ways with which all others are compared; they are measured three times."""


@cache
def measured(way: str, most: int) -> dict[str, float]:
    """Build and solve in a process of its own, so that its peak memory is its own; return the measured numbers."""
    rounds = min(most, 3 if way in COMPARED else 1)
    command = [sys.executable, WAYS, way, str(TENANTS)]
    found = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(rounds)]
    return dict(sorted(found, key=lambda one: one["total_s"])[rounds // 2])


@pytest.mark.parametrize("way", list(TABLE))
def test_ways_to_highs(bench, way: str) -> None:  # type: ignore[no-untyped-def]
    """Compare every way of building and passing a model with ours: how many times longer does it take?"""
    title, seconds, over_floor = TABLE[way]
    bench.time(lambda: measured(way, bench.most_rounds), rounds=1)
    this, mine, least = (measured(name, bench.most_rounds) for name in (way, "ours", "floor"))
    note = (
        f"total {this['total_s'] / least['total_s']:.2f}× the floor (table: {over_floor:.2f}×; build + transfer "
        f"{seconds:.2g} s there); HiGHS {this['highs_s']:.2g} s, peak {this['peak_mb']:.0f} MB"
    )
    if way == "ours":
        bench.line(
            f"n = {TENANTS}, {title}: total", this["total_s"], least["total_s"], "≥ 0.85× the floor", note, least=0.85
        )
    else:
        bench.line(f"n = {TENANTS}, ours against {title}", mine["build_transfer_s"], this["build_transfer_s"], "", note)


def test_linopy(bench) -> None:  # type: ignore[no-untyped-def]
    """Note that linopy is not measured; the specification's table has its numbers."""
    bench.absent("n = 200 by linopy", "linopy is not among the packages that this project needs")


def rounds_of(jobs: int) -> synergy.SynergyView:
    """Return a view of Synergy's servers, filled by so many single-GPU jobs."""
    return synergy.view(small.pipelines(jobs, [small.servers(jobs // 8)], gangs=(1,)))


GAP = SolveOptions(rel_gap=1e-4, time_limit_s=60)


def solved(model: pyo.ConcreteModel) -> None:
    """Compile a Pyomo model, however it was built, and solve it."""
    Session(compile_model(model), GAP).run()


def test_multiple_choice_knapsack(bench) -> None:  # type: ignore[no-untyped-def]
    """ILP1 as printed for 200 jobs: pruning options before building helps more than any way of building."""
    view = rounds_of(200)
    form = compile_model(build(build_unpruned, view))
    arrays = StandardForm(**{**vars(form), "columns": (), "rows": (), "model": None})
    floor = bench.reference(lambda: Session(arrays, GAP).run())
    templates = bench.reference(lambda: solved(build(build_unpruned, view)))
    rules = bench.reference(lambda: solved(build_unpruned(view)), rounds=1)
    pruned = RoundRule(own_floor, integer=True)
    ours = bench.time(lambda: solved(build(build_round, view, pruned)))
    note = (
        f"{len(form.cost):,} binaries; from arrays {floor:.3g} s, templates {templates / floor:.2f}×, rules "
        f"{rules / floor:.2f}× (2.2× and 3.2× in the specification)"
    )
    bench.line("LP1 with binaries, 200 jobs: pruned, against arrays unpruned", ours, floor, "≥ 1×", note, least=1.0)


# Models whose building and passing takes more than a quarter of HiGHS's own time at 200 jobs, and the reason.
REASONS = {
    "hadar.p1": "{limit}; its 430,000 rows are compiled in seconds, and HiGHS does not solve them in hours",
    "hadar.p1.complete": "{limit}, as hadar.p1",
    "hadar.p1.per_server": "{limit}, as hadar.p1",
    "synergy.ilp1.unpruned": "to the letter: 48,000 binaries, most of them dominated; synergy.ilp1 drops these first",
    "zhou.ps.fluid": "closed form: HiGHS has nothing to do, building is tabulating the choices of all jobs",
    "zhou.ra.fluid": "closed form, as zhou.ps.fluid",
    "synergy.jct": "closed form: HiGHS has nothing to do",
    "zhou.ps.mincost": "built are bounds of all choices, after which HiGHS solves one or two of them",
    "zhou.ra.mincost": "built are bounds of all choices, after which HiGHS solves one or two of them",
}
LIMIT_S = 10.0
SHARE = 0.25


@pytest.mark.parametrize("spec", list(models.MODELS), ids=lambda s: s.id)
def test_share_of_pyomo_on_every_model_at_200_jobs(bench, spec: models.ModelSpec) -> None:  # type: ignore[no-untyped-def]
    """Building and passing a model takes at most a quarter of HiGHS's time, or the line says why."""
    view = PAPERS.get(spec.paper).view(instances.load("gen/200jobs"))
    if spec.skip(view) and spec.paper == "synergy":
        view = rounds_of(200)  # all GPUs of one type
    if reason := spec.skip(view):
        bench.absent(spec.id, reason)
    large = spec.too_large(view) is not None
    found: list[Times] = []

    def run() -> None:
        limit = LIMIT_S if large else 60.0
        found.append(spec.run(view, SolveOptions(time_limit_s=limit)).solution.times)

    try:
        if bench.time(run, rounds=1) < 1:
            bench.reference(run, rounds=2)
    except NotApplicableError as error:
        bench.absent(f"{spec.id} at 200 jobs", str(error))
    times = sorted(found, key=lambda t: t.build_s + t.transfer_s)[len(found) // 2]
    overhead = times.build_s + times.transfer_s
    note = f"share {overhead / max(times.solve_s, 1e-9):.0%}"
    why = _reason(spec.id, times.solve_s, large) if overhead > SHARE * times.solve_s else ""
    if why:
        note += f"; exception: {why}"
    name = f"{spec.id}: build + transfer against HiGHS"
    least = None if why else 1 / SHARE
    bench.line(name, overhead, times.solve_s, "≤ 25 % of HiGHS, or a reason", note, least=least)


def _reason(name: str, solve_s: float, large: bool) -> str:
    """Return why building a model may take longer than a quarter of HiGHS's time; an empty text if unknown."""
    limit = f"HiGHS was stopped after {LIMIT_S:.0f} s" if large else ""
    if name in REASONS:
        return REASONS[name].format(limit=limit)
    if solve_s < 0.1:
        return f"HiGHS itself needs only {solve_s * 1000:.2g} ms; Pyomo takes about 15 ms for a model of any size"
    return ""
