"""Figures of Hadar's schedules: bars and rows of Gantt charts, curves, prices; and that nothing is lost or invented."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.image import imread

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.figure import Drawing, figures, saved
from schedgap.harness.plots.gantt import MAX_LANES, Chart, gantt, lanes, merged, of_schedule, of_trace
from schedgap.harness.plots.hadar import completion_s, price_field, shares
from schedgap.harness.plots.many import decision_time, fitted_exponent
from schedgap.harness.plots.pieces import completion_cdf, price_map, utilisation
from schedgap.harness.plots.style import time_unit
from schedgap.harness.verify.hadar import check
from schedgap.heuristics.hadar.prices import Market, prices
from schedgap.heuristics.simulator import Assignment, State, simulate
from schedgap.instances.catalogue import load
from schedgap.instances.schema import Instance
from schedgap.instances.views import hadar
from schedgap.instances.views.hadar import Schedule, View
from schedgap.instances.workload import Servers

NAMES = ("gantt", "jct-cdf", "utilisation", "prices")


def by_order(view: View, order: list[int], blind: bool = False) -> Schedule:
    """Each job in that order as early as its gang fits, on the fastest (or, blind, the first) GPUs free throughout."""
    free = np.tile(view.servers.gpus, (view.slots, 1))
    rows: list[tuple[int, int, int, int]] = []
    for j in order:
        rates = view.workload.rates[j, view.servers.gpu_type]
        ranked = np.arange(view.servers.size) if blind else np.argsort(-rates, kind="stable")
        for begin in range(int(view.arrival[j]), view.slots):
            chosen = gang(free, begin, int(view.workload.gpus[j]), ranked, view, j)
            if chosen:
                took, parts = chosen
                for server, gpus in parts:
                    free[begin : begin + took, server] -= gpus
                    rows += [(j, slot, server, gpus) for slot in range(begin, begin + took)]
                break
    return Schedule.of(np.array(rows, np.int64))


def gang(free: Any, begin: int, gpus: int, ranked: Any, view: View, j: int) -> tuple[int, list[tuple[int, int]]] | None:
    """Slots and servers of a gang that starts there, if it fits until it is done."""
    parts, left = [], gpus
    for server in ranked.tolist():
        count = min(left, int(free[begin, server]))
        parts += [(server, count)] if count else []
        left -= count
    if left:
        return None
    rate = min(view.progress[j, view.servers.gpu_type[server]] for server, _ in parts)
    took = int(np.ceil(view.workload.work[j] / rate - 1e-9))
    if begin + took > view.slots or any((free[begin : begin + took, s] < count).any() for s, count in parts):
        return None
    return took, parts


def run_of(instance: Instance, **orders: Any) -> Comparison:
    """A run whose methods take the jobs in that order."""
    view = hadar.view(instance)
    rows, decisions = [], {}
    for name, order in orders.items():
        method = f"hadar.{name.replace('__', '.')}"
        schedule = by_order(view, order, blind=name == "fifo")
        verdict = check(view, schedule, hadar.UTILITY.id, ())
        assert verdict.violations == ()
        common = {"instance": instance.name, "fingerprint": instance.fingerprint, "paper": "hadar", "sense": "max"}
        row = Row(
            **common,
            method=method,
            problem=hadar.UTILITY.id,
            kind="online",
            objective=verdict.objective,
            status="feasible",
            verified=True,
            solve_s=0.1,
        )
        rows.append(row)
        decisions[instance.fingerprint, method, 0, ""] = schedule
    return Comparison({}, rows, {instance.fingerprint: instance}, decisions)


@pytest.fixture(scope="module")
def small() -> Comparison:
    order = [0, 1, 2]
    return run_of(load("paper/hadar-fig1"), p1=[1, 0, 2], online=order, fifo=order)


@pytest.fixture(scope="module")
def large() -> Comparison:
    jobs = list(range(60))
    shortest = sorted(jobs, key=lambda j: load("gen/200jobs?jobs=60").jobs[j].iterations)
    return run_of(load("gen/200jobs?jobs=60&slot_s=1800"), srtf=shortest, online=jobs, fifo=jobs)


def drawn(run: Comparison, name: str) -> Drawing:
    (item,) = figures(run, name)
    return item


def texts(figure: Figure) -> str:
    return " ".join(t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text")))


# bars and rows ------------------------------------------------------------------------------------


def test_bars_that_follow_one_another_merge() -> None:
    bars = merged([0, 0, 0, 0, 1], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1], [2, 0, 5, 1, 3], [3, 2, 6, 2, 4])
    found = sorted(zip(bars.job, bars.server, bars.gpus, bars.start, bars.end, strict=True))
    assert found == [(0, 0, 1, 0, 3), (0, 0, 1, 5, 6), (0, 1, 1, 1, 2), (1, 0, 1, 3, 4)]


def test_a_change_of_gpus_is_a_new_bar() -> None:
    bars = merged([0, 0], [0, 0], [1, 2], [0, 1], [1, 2])
    assert bars.gpus.tolist() == [1, 2]


def test_no_bars() -> None:
    empty = merged([], [], [], [], [])
    assert empty.job.size == 0
    assert lanes(empty, np.array([4])).shape == (0, 3)


entries = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 1), st.integers(1, 2)), max_size=40)


@given(entries)
def test_merging_and_rows_keep_every_gpu_second(found: list[tuple[int, int, int, int]]) -> None:
    capacity = np.array([4, 3])
    used = np.zeros((10, 2), int)
    kept: dict[tuple[int, int, int], int] = {}
    for job, slot, server, gpus in found:
        if (job, slot, server) not in kept and used[slot, server] + gpus <= capacity[server]:
            kept[job, slot, server] = gpus
            used[slot, server] += gpus
    table = np.array([(j, t, h, w) for (j, t, h), w in kept.items()], np.int64).reshape(-1, 4)
    job, slot, server, gpus = table.T
    bars = merged(job, server, gpus, slot * 0.1, slot * 0.1 + 0.1)
    assert (bars.gpus * (bars.end - bars.start)).sum() == pytest.approx(0.1 * gpus.sum())
    held = np.zeros((2, 4, 10), int)
    for bar, row, count in lanes(bars, capacity).tolist():
        first, last = round(bars.start[bar] * 10), round(bars.end[bar] * 10)
        held[bars.server[bar], row : row + count, first:last] += 1
        assert row + count <= capacity[bars.server[bar]]
    assert held.max(initial=0) <= 1
    assert held.sum(axis=1).T.tolist() == used.tolist()


def first_fit(state: State) -> Assignment:
    """Jobs in order on the first free GPUs."""
    free, rows = state.servers.gpus.copy(), []
    for job, gpus in zip(state.jobs.tolist(), state.gpus.tolist(), strict=True):
        if gpus <= free.sum():
            taken = np.minimum(free, np.maximum(gpus - (np.cumsum(free) - free), 0))
            rows += [(job, server, int(taken[server])) for server in np.flatnonzero(taken).tolist()]
            free -= taken
    return Assignment.of(rows)


def test_a_simulation_has_the_bars_of_its_allocation() -> None:
    view = hadar.view(load("gen/20jobs"))
    trace = simulate(view.workload, view.servers, first_fit, round_s=360.0)
    bars = of_trace(trace)
    total = trace.allocation[:, 3].sum() * trace.round_s
    assert (bars.gpus * (bars.end - bars.start)).sum() == pytest.approx(total)
    assert len(bars.job) < len(trace.allocation) / 5
    chart = Chart(view.servers, view.workload.gpu_types, view.workload.ids)
    assert "[h]" in texts(gantt(chart, {"simulated": bars})[0])


# figures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_the_same_every_time(name: str, large: Comparison) -> None:
    first, second = (drawn(large, name).svg for _ in range(2))
    assert first == second
    ET.fromstring(first)
    assert len(first) < 400_000
    assert imread(io.BytesIO(drawn(large, name).file("png"))).shape[1] > 1000


def test_every_run_draws_what_it_has(small: Comparison) -> None:
    assert {item.name for item in figures(small)} >= {f"hadar-{name}" for name in NAMES}
    for name in NAMES:
        assert "n = 3 jobs" in drawn(small, name).caption


def test_nothing_to_draw() -> None:
    instance = load("paper/hadar-fig1")
    empty = run_of(instance, online=[])
    absent = Comparison({}, empty.rows, empty.instances)
    wrong = Comparison(
        {}, [empty.rows[0].replace(verified=False)], empty.instances, run_of(instance, online=[0]).decisions
    )
    for run in (empty, absent, wrong, Comparison({}, [], {})):
        for name in NAMES:
            assert figures(run, name) == []


def test_gantt_shows_the_best_and_the_online_schedule(small: Comparison) -> None:
    item = drawn(small, "gantt")
    titles = [ax.get_title() or ax.get_title(loc="left") for ax in item.figure.axes]
    worth = {row.method: row.objective or 0.0 for row in small.rows if row.method != "hadar.online"}
    best = max(worth, key=lambda m: worth[m])
    assert [t.split(":")[0] for t in titles] == [best, "hadar.online"]
    assert "J1" in texts(item.figure)
    assert [t.get_text() for t in item.figure.axes[0].get_yticklabels()] == ["V100", "P100", "K80"]


def test_gantt_leaves_copies_out_of_the_comparison(small: Comparison) -> None:
    forked = small.rows[0].replace(method="hadar.hadare", problem=hadar.FORKED.id, objective=1e9)
    decisions = {**small.decisions, (forked.fingerprint, "hadar.hadare", 0): next(iter(small.decisions.values()))}
    item = drawn(Comparison({}, [forked, *small.rows], small.instances, decisions), "gantt")
    assert "hadar.hadare" not in texts(item.figure)


def test_many_jobs_are_coloured_by_order(large: Comparison) -> None:
    figure = drawn(large, "gantt").figure
    assert "job, in the order of the instance" in texts(figure)
    areas = 0.0
    ax = figure.axes[0]
    bars = [c for c in ax.collections if isinstance(c, PolyCollection)][1]
    for path in bars.get_paths():
        (x0, y0), (x1, y1) = path.vertices.min(axis=0), path.vertices.max(axis=0)
        areas += (x1 - x0) * (y1 - y0)
    view = hadar.view(next(iter(large.instances.values())))
    method = ax.get_title(loc="left").split(":")[0]
    schedule = large.decisions[large.rows[0].fingerprint, method, 0, ""]
    unit_s, _ = time_unit(of_schedule(view, schedule).end.max())
    assert areas == pytest.approx(schedule.gpus.sum() * view.slot_s / unit_s)


def test_a_huge_cluster_shows_the_first_servers_of_every_type() -> None:
    count = 100
    kinds = np.repeat([0, 1], count)
    servers = Servers(tuple(map(str, range(200))), kinds, np.full(200, 8), np.zeros(200), np.zeros(200))
    everywhere = np.arange(200)
    bars = merged(everywhere % 30, everywhere, np.full(200, 8), np.zeros(200), np.ones(200))
    figure, words = gantt(Chart(servers, ("a", "b"), [f"j{i}" for i in range(30)]), {"x": bars})
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["a", "b"]
    shown = [c for c in figure.axes[0].collections if isinstance(c, PolyCollection)][1]
    assert len(shown.get_paths()) * 8 <= MAX_LANES
    assert "(20 of 200)" in words
    few = Servers(("s",), np.array([0]), np.array([4]), np.zeros(1), np.zeros(1))
    assert "servers" not in gantt(Chart(few, ("a",), ["j"]), {"x": merged([0], [0], [1], [0.0], [5.0])})[1]


def test_hostile_names_are_drawn_as_they_are() -> None:
    servers = Servers(("s",), np.array([0]), np.array([1]), np.zeros(1), np.zeros(1))
    bars = merged([0], [0], [1], [0.0], [5.0])
    figure, _ = gantt(Chart(servers, ("$x$",), ("<b>$j$",)), {"$t$": bars})
    assert b"<b>" not in saved(figure, "svg")


# completion times, utilisation --------------------------------------------------------------------


def test_completion_times_count_from_the_arrival_slot(small: Comparison) -> None:
    view = hadar.view(load("paper/hadar-fig1"))
    schedule = Schedule.of(np.array([[0, 0, 0, 2], [0, 2, 1, 1], [2, 4, 0, 2]]))
    assert completion_s(view, schedule).tolist() == pytest.approx([3.0, np.nan, 5.0], nan_ok=True)


def test_cdf_ends_at_the_share_that_completes() -> None:
    figure = completion_cdf({"a": np.array([10.0, 20.0, np.nan, 40.0]), "b": np.array([5.0, 5.0, 5.0, 5.0])})
    a, b = figure.axes[0].lines
    assert a.get_ydata()[-1] == 0.75
    assert b.get_ydata()[-1] == 1.0
    assert "a (1 never)" in texts(figure)


def test_cdf_of_nobody_who_completes() -> None:
    assert saved(completion_cdf({"a": np.array([np.nan, np.nan])}), "png").startswith(b"\x89PNG")


def test_cdf_over_orders_of_magnitude_is_logarithmic() -> None:
    times = {"a": np.array([60.0] * 9 + [1e6])}
    assert completion_cdf(times).axes[0].get_xscale() == "log"
    assert completion_cdf({"a": np.array([60.0, 100.0])}).axes[0].get_xscale() == "linear"


def test_more_methods_than_colours_name_what_is_left_out() -> None:
    instance = load("paper/hadar-fig1")
    names = ["online", *(f"online?beam={i}" for i in range(12)), "fifo", "srtf"]
    run = run_of(instance, **{name: [0, 1, 2] for name in names})
    item = drawn(run, "jct-cdf")
    assert len(item.figure.axes[0].lines) == 10
    assert "No room for: hadar.online?beam=7, hadar.online?beam=8," in item.caption
    assert {"hadar.fifo", "hadar.srtf", "hadar.online"} <= set(texts(item.figure).split())


def test_utilisation_is_the_share_of_gpus(small: Comparison) -> None:
    view = hadar.view(load("paper/hadar-fig1"))
    schedule = Schedule.of(np.array([[0, 0, 0, 2], [0, 0, 1, 1], [2, 2, 0, 2]]))
    assert shares(view, schedule).tolist() == [0.5, 0.0, pytest.approx(1 / 3)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=700))
def test_averaging_keeps_the_mean(values: list[float]) -> None:
    ax = utilisation({"a": np.array(values)}, 360.0).axes[0]
    heights, edges, _ = ax.patches[0].get_data()
    assert len(heights) <= 180
    assert float(np.dot(heights, np.diff(edges)) / edges[-1]) == pytest.approx(100 * np.mean(values), abs=1e-6)


def test_many_methods_are_a_map() -> None:
    figure = utilisation({f"m{i}": np.ones(5 + i) for i in range(7)}, 360.0)
    assert figure.axes[0].images[0].get_array().shape == (7, 11)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == [f"m{i}" for i in range(7)]


# prices, decision time ----------------------------------------------------------------------------


def test_prices_are_those_of_equation_5() -> None:
    view = hadar.view(load("paper/hadar-fig1"))
    found = prices(Market.of(view))
    schedule = Schedule.of(np.array([[0, 0, 0, 2], [0, 0, 1, 1], [2, 2, 0, 2]]))
    field = price_field(view, schedule)
    assert field[0] == pytest.approx([found.high[0], found.low[0], found.high[0]])
    assert field[1, 0] == pytest.approx(found.low[1] * (found.high[1] / found.low[1]) ** (1 / 3))
    assert field[2] == pytest.approx([found.low[2]] * 3)


@pytest.mark.parametrize(
    ("cells", "log"),
    [
        (np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.5]]), False),
        (np.array([[0.0, 1e-6, 2.0], [3.0, 0.0, 0.5]]), True),
        (np.zeros((2, 3)), False),
        (np.full((1, 5000), 2.0), False),
    ],
)
def test_price_maps(cells: Any, log: bool) -> None:
    figure = price_map(cells, ["a", "b"][: len(cells)], 360.0)
    image = figure.axes[0].images[0]
    assert isinstance(image.norm, LogNorm) == log
    assert image.get_array().shape == (len(cells), min(cells.shape[1], 180))
    assert "mathdefault" not in texts(figure)
    assert saved(figure, "svg") == saved(price_map(cells, ["a", "b"][: len(cells)], 360.0), "svg")


def test_fitted_exponent() -> None:
    jobs = np.array([32, 128, 512, 2048])
    assert fitted_exponent(jobs, 3e-4 * jobs**1.7) == pytest.approx(1.7)
    assert np.isnan(fitted_exponent([32], [1.0]))


def test_decision_time_shows_exponents_and_the_limit() -> None:
    jobs = [32, 64, 128, 256, 512, 1024, 2048]
    figure = decision_time({"hadar.online": (jobs, np.array(jobs) ** 2 * 1e-6), "one": ([32], [0.1])}, limit_s=420.0)
    shown = texts(figure)
    assert "hadar.online: n^2.00" in shown
    assert "420 s" in shown
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ["32", "64", "128", "256", "512", "1024", "2048"]


@pytest.mark.parametrize(("end_s", "unit"), [(8, "s"), (600, "min"), (30_000, "h"), (1e6, "days")])
def test_time_units(end_s: float, unit: str) -> None:
    assert time_unit(end_s)[1] == unit
