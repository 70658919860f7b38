"""Figures of Synergy: rounds beside LP1, resources, completion times, loads, sensitivities and servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import synergy_cases as cases
from matplotlib.figure import Figure

from schedgap.harness.compare.row import Comparison
from schedgap.harness.compare.run import compare
from schedgap.harness.figure import Drawing, figures, parts, styled
from schedgap.harness.plots.pieces import Group, times_beside_bounds
from schedgap.harness.plots.simulation import (
    MAX_PANELS,
    Worth,
    against_lp1,
    by_load,
    resources,
    rounds_beside_lp1,
    short_and_long,
)
from schedgap.harness.plots.synergy import MAX_SERVERS, speedups
from schedgap.harness.simulate.row import Simulation
from schedgap.harness.simulate.run import simulate
from schedgap.instances.views import synergy

CASE = cases.instance(
    [
        ("Synergy ResNet18", 2, 4000.0),
        ("Synergy GNMT", 1, 3000.0, 100.0),
        ("Synergy AlexNet", 4, 9000.0, 500.0),
        ("Synergy M5", 1, 30000.0, 900.0),
    ],
    [cases.servers(2, gpus=4, cpus=12.0, memory_gb=250.0)],
)


@pytest.fixture(scope="module")
def run() -> Comparison:
    methods = ["synergy.proportional", "synergy.tune", "synergy.tune.fifo", "synergy.greedy.fifo", "synergy.jct"]
    return compare(CASE, methods, [], jobs=1)


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return simulate(CASE, ["synergy.proportional.fifo", "synergy.tune.fifo"], restart_s=0.0, jobs=1)


def drawn(run: Comparison, name: str) -> Drawing:
    (item,) = figures(run, f"synergy.{name}")
    return item


def texts(figure: Figure) -> str:
    return " ".join(t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text")))


# comparisons ----------------------------------------------------------------------------------------------------------


def test_speedups_are_relative_to_the_share() -> None:
    found = {one.model: one for one in speedups(synergy.view(CASE))}
    assert set(found) == {"ResNet18", "GNMT", "AlexNet", "M5"}
    for one in found.values():
        assert one.speedup.shape == (len(one.memory_gb), len(one.cpus))
        assert one.speedup[one.share] == pytest.approx(1)
    # Section 3: ResNet18 gains from CPUs, GNMT nothing; AlexNet's gang fills its server, which has no more to give.
    assert found["ResNet18"].speedup.max() > 1.5
    assert found["AlexNet"].speedup.max() == found["GNMT"].speedup.max() == pytest.approx(1)
    most = [one.speedup.max() for one in speedups(synergy.view(CASE))]
    assert most == sorted(most, reverse=True)


def test_maps_name_models_and_sample(run: Comparison) -> None:
    item = drawn(run, "sensitivity")
    shown = texts(item.figure)
    for name in ("AlexNet", "GNMT", "M5", "CPUs per GPU", "GB per GPU", "speedup"):
        assert name in shown
    assert "n = 4 jobs of 4 models" in item.caption
    assert item.svg.startswith("<?xml")


def test_bars_of_servers_add_up_to_what_is_held(run: Comparison) -> None:
    item = drawn(run, "servers")
    axes = item.figure.axes
    assert len(axes) == 6
    proportional = next(d for (_, method, *_), d in run.decisions.items() if method == "synergy.proportional")
    for ax, amount, capacity in zip(axes[:3], ("gpus", "cpus", "memory_gb"), (4, 12.0, 250.0), strict=True):
        held = np.bincount(proportional.server, getattr(proportional, amount), 2) / capacity * 100
        found = np.zeros(2)
        for path in ax.collections[0].get_paths():
            (left, bottom), (right, top) = path.vertices.min(axis=0), path.vertices.max(axis=0)
            found[round((left + right) / 2)] += top - bottom
        assert found == pytest.approx(held)
    assert "2 mechanisms" in item.caption
    assert "2 servers" in item.caption


def test_only_so_many_servers_are_drawn() -> None:
    many = cases.instance([("Synergy GNMT", 1)] * 5, [cases.servers(MAX_SERVERS + 5)])
    found = compare(many, ["synergy.proportional"], [], jobs=1)
    item = drawn(found, "servers")
    assert f"the first {MAX_SERVERS} of {MAX_SERVERS + 5} servers" in item.caption


def test_mean_times_stand_beside_the_bound(run: Comparison) -> None:
    item = drawn(run, "jct-mean")
    rows = {row.method: row for row in run.rows}
    widths = sorted(bar.get_width() for bar in item.figure.axes[0].patches)
    wanted = sorted(rows[name].objective for name in ("synergy.tune.fifo", "synergy.greedy.fifo"))
    assert np.array(widths) / widths[0] == pytest.approx(np.array(wanted) / wanted[0])
    assert "certified lower bound" in texts(item.figure)
    assert "by the bound of synergy.jct" in item.caption


# simulations ----------------------------------------------------------------------------------------------------------


def test_all_figures_of_a_simulation(simulation: Simulation) -> None:
    drawn = {figure.name.removeprefix("simulation-"): figure for figure in figures(simulation)}
    usual = {"ttd", "gantt", "jct-cdf", "utilisation"}
    assert set(drawn) == usual | {"lp1", "short-long", "resources", "jct-mean"}
    for figure in drawn.values():
        assert "n = 4 jobs on case" in figure.caption
        assert "2 policies" in figure.caption
        assert len(figure.svg) > 1000


def test_so_many_policies_have_panels(simulation: Simulation) -> None:
    (part,) = parts(simulation)
    names = [f"p{i}" for i in range(MAX_PANELS + 3)]
    first = dict.fromkeys(names, next(iter(simulation.traces.values())))
    rounds = dict.fromkeys(names, next(iter(simulation.rounds.values())))
    canvas, words = rounds_beside_lp1(replace(part, traces=first, rounds=rounds))
    assert len(canvas.axes) == MAX_PANELS
    assert f"the first {MAX_PANELS} of {MAX_PANELS + 3} policies" in words


def test_loads_of_several_instances() -> None:
    loads = [
        cases.instance([("Synergy ResNet18", 1, 2000.0, i * gap) for i in range(6)], [cases.servers(1, gpus=2)], name=n)
        for n, gap in (("slow", 1800.0), ("fast", 600.0))
    ]
    found = simulate(loads, ["synergy.proportional.fifo", "synergy.tune.fifo"], restart_s=0.0, jobs=1)
    figure = next(figure for figure in figures(found, "load"))
    lines = figure.figure.axes[0].get_lines()
    assert len(lines) == 2
    for line in lines:
        assert np.asarray(line.get_xdata()) == pytest.approx([2.0, 6.0])
    assert "2 instances, 2 policies" in figure.caption


# drawing --------------------------------------------------------------------------------------------------------------


def made(draw: Any, *args: Any) -> Figure:
    with styled():
        figure: Figure = draw(*args)
        figure.canvas.draw()
    return figure


def test_rounds_without_jobs_and_without_offers() -> None:
    start_s = np.array([0.0, 300.0, 1500.0])
    worth = {"a": Worth(start_s, np.array([1.0, 2.0, 0.5]), np.array([2.0, np.nan, 1.0]))}
    figure = made(against_lp1, worth, 300.0)
    assert "a: mean 50.0 %" in texts(figure)


@pytest.mark.parametrize("policies", [1, 3, 9])
def test_resources_of_few_and_many_policies(policies: int) -> None:
    shares = {f"p{i}": np.linspace(0, 1, 30 + i) for i in range(policies)}
    figure = made(resources, {"GPUs in use": shares, "CPUs given": shares}, 300.0)
    assert len(figure.axes) == (1 if policies > 4 else 2)
    assert "CPUs given" in texts(figure)


def test_short_and_long_jobs_that_never_complete() -> None:
    times = {"a": np.array([600.0, 9e5, np.nan]), "b": np.array([100.0, 200.0, 300.0])}
    figure = made(short_and_long, times, 4 * 3600.0)
    left, right = figure.axes
    assert left.get_xlim() == (0.0, 4.0)
    assert right.get_xlim()[0] == 4.0
    assert right.get_xscale() == "log"
    assert "(1 never)" in texts(figure)


def test_means_without_a_bound() -> None:
    figure = made(times_beside_bounds, [Group({"a": 7200.0, "b": 9000.0}, None)], "mean completion time")
    assert "certified" not in texts(figure)
    assert "mean completion time [h]" in texts(figure)


def test_loads_that_explode_are_logarithmic() -> None:
    points = {"a": [(9.0, 300_000.0), (5.0, 4000.0)], "b": [(5.0, 4000.0), (9.0, 9000.0)]}
    assert made(by_load, points).axes[0].get_yscale() == "log"
