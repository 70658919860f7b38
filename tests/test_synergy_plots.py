"""Figures of Synergy: rounds beside LP1, resources, completion times, loads, sensitivities and servers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import synergy_cases as cases
from charts import channels, panels, record, records, scale_of, texts

from schedgap.harness.show.drawing import figures
from schedgap.harness.show.figure import Drawing, parts, plain_spec, rendered
from schedgap.harness.show.plots.simulation import MAX_PANELS, against_lp1, rounds_beside_lp1
from schedgap.harness.show.plots.style import ValueGroup, beside_bounds, clock, completion_cdf, looks, strips
from schedgap.harness.show.plots.synergy import MAX_SERVERS, speedups
from schedgap.harness.studies.compare.row import Comparison
from schedgap.harness.studies.compare.run import compare
from schedgap.harness.studies.simulate.row import Simulation, SimulationRow
from schedgap.harness.studies.simulate.run import simulate
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


# comparisons ----------------------------------------------------------------------------------------------------------


def test_speedups_are_relative_to_the_share() -> None:
    found = {one.model: one for one in speedups(synergy.view(CASE))}
    assert set(found) == {"ResNet18", "GNMT", "AlexNet", "M5"}
    for one in found.values():
        assert one.speedup.shape == (len(one.memory_gb), len(one.cpus))
        assert one.speedup[one.share] == pytest.approx(1)
    # Section 3: ResNet18 gains from more CPUs, GNMT does not; AlexNet's gang has all GPUs and CPUs of its server.
    assert found["ResNet18"].speedup.max() > 1.5
    assert found["AlexNet"].speedup.max() == found["GNMT"].speedup.max() == pytest.approx(1)
    most = [one.speedup.max() for one in speedups(synergy.view(CASE))]
    assert most == sorted(most, reverse=True)


def test_maps_name_models_and_sample(run: Comparison) -> None:
    item = drawn(run, "sensitivity")
    shown = texts(item)
    assert {each["panel"] for each in records(item)} == {"ResNet18", "GNMT", "AlexNet", "M5"}
    assert len(records(item, share=True)) == 4
    for name in ("AlexNet", "GNMT", "M5", "CPUs per GPU", "GB per GPU", "speedup"):
        assert name in shown
    assert "n = 4 jobs of 4 models" in item.caption
    assert item.svg.startswith("<svg")


def test_bars_of_servers_add_up_to_what_is_held(run: Comparison) -> None:
    item = drawn(run, "servers")
    assert len({each["panel"] for each in records(item)}) == 6
    proportional = next(d for (_, method, *_), d in run.decisions.items() if method == "synergy.proportional")
    kinds = {"GPUs": ("gpus", 4), "CPUs": ("cpus", 12.0), "memory": ("memory_gb", 250.0)}
    for resource, (amount, capacity) in kinds.items():
        held = np.bincount(proportional.server, getattr(proportional, amount), 2) / capacity * 100
        stacks = records(item, panel=f"synergy.proportional, {resource}")
        found = np.bincount([each["server"] for each in stacks], [each["held"] for each in stacks], 2)
        assert found == pytest.approx(held)
    colours = {(each["job"], each["colour"]) for each in records(item)}
    assert len(colours) == len({job for job, _ in colours})
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
    for name in ("synergy.tune.fifo", "synergy.greedy.fifo"):
        bar = record(item, method=name)
        assert bar["value"] == pytest.approx(rows[name].objective / 3600, rel=1e-5)
        assert bar["bound"] == pytest.approx(rows[name].best_bound / 3600, rel=1e-5)
    assert "certified lower bound" in scale_of(item, "strokeDash")["domain"]
    assert "by the bound of synergy.jct" in item.caption


# simulations ----------------------------------------------------------------------------------------------------------


def test_all_figures_of_a_simulation(simulation: Simulation) -> None:
    drawn = {figure.name.removeprefix("simulation-"): figure for figure in figures(simulation)}
    usual = {"ttd", "gantt", "jct-cdf", "utilisation"}
    assert set(drawn) == usual | {"lp1", "resources", "jct-mean"}
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
    assert len(records(canvas)) == MAX_PANELS
    assert f"the first {MAX_PANELS} of {MAX_PANELS + 3} policies" in words


def test_loads_of_several_instances() -> None:
    loads = [
        cases.instance([("Synergy ResNet18", 1, 2000.0, i * gap) for i in range(6)], [cases.servers(1, gpus=2)], name=n)
        for n, gap in (("slow", 1800.0), ("fast", 600.0))
    ]
    found = simulate(loads, ["synergy.proportional.fifo", "synergy.tune.fifo"], restart_s=0.0, jobs=1)
    figure = next(figure for figure in figures(found, "load"))
    for policy in ("synergy.proportional.fifo", "synergy.tune.fifo"):
        assert [each["load"] for each in records(figure, method=policy)] == pytest.approx([2.0, 6.0])
    assert "2 instances, 2 policies" in figure.caption


# drawing --------------------------------------------------------------------------------------------------------------


def test_rounds_without_jobs_and_without_offers() -> None:
    progress, most = np.array([1.0, 2.0, 0.0, 0.0, 0.0, 0.5]), np.array([2.0, np.nan, 0.0, 0.0, 0.0, 1.0])
    offers = {"a": most, "b": most[:2]}
    chart = against_lp1({"a": progress, "b": progress[:2]}, offers, 3600.0, clock(1e5))
    assert panels(chart)[0] == "a: mean 50.0 %"
    assert record(chart, method="a")["progress of the round"] == [*progress, 0.5]
    assert record(chart, method="b")["progress of the round"] == [1.0, 2.0, 2.0]
    assert rendered(plain_spec(chart), "svg")


@pytest.mark.parametrize("policies", [1, 3, 9])
def test_resources_of_few_and_many_policies(policies: int) -> None:
    shares = {f"p{i}": dict.fromkeys(["GPUs in use", "CPUs given"], np.linspace(0, 1, 30 + i)) for i in range(policies)}
    chart = strips(shares, 300.0, clock(1e4), looks(shares))
    assert panels(chart) == list(shares)
    assert scale_of(chart, "color")["domain"] == ["GPUs in use", "CPUs given"]
    assert len(records(chart)) == 2 * policies
    assert rendered(plain_spec(chart), "svg")


def test_jobs_that_never_complete() -> None:
    times = {"a": np.array([600.0, 9e5, np.nan]), "b": np.array([100.0, 200.0, 300.0])}
    chart = completion_cdf(times, looks(times), clock(1e5))
    assert plain_spec(chart)["encoding"]["x"]["scale"]["type"] == "log"
    assert record(chart, method="a")["jobs that never complete"] == 1
    assert rendered(plain_spec(chart), "svg")


def test_means_without_a_bound() -> None:
    times = {"a": 7200.0, "b": 9000.0}
    chart = beside_bounds([ValueGroup(times, None)], "mean completion time [h]", looks(times), 3600.0)
    assert 'certified lower bound"]' not in texts(chart)
    assert not list(channels(chart, "strokeDash"))
    assert [each["value"] for each in records(chart)] == [2.0, 2.5]


def test_loads_that_explode_are_logarithmic() -> None:
    points = [("a", 9.0, 300_000.0), ("a", 5.0, 4000.0), ("b", 5.0, 4000.0), ("b", 9.0, 9000.0)]
    rows = [
        SimulationRow(f"{load}", f"{load}", policy, verified=True).knowing(arrivals_per_h=load, jct_mean_s=jct_s)
        for policy, load, jct_s in points
    ]
    (item,) = figures(Simulation({}, rows, {}), "simulation.load")
    assert scale_of(item, "y")["type"] == "log"
    assert sorted(each["load"] for each in records(item, method="a")) == [5.0, 9.0]
