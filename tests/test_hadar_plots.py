"""Figures of Hadar's schedules (Gantt charts, curves, prices) show everything once and invent nothing."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from charts import channels, panels, record, records, scale_of, spec_of, texts
from hypothesis import given
from hypothesis import strategies as st

from schedgap.harness.check import judge
from schedgap.harness.show.drawing import figures
from schedgap.harness.show.figure import Drawing, plain_spec, rendered
from schedgap.harness.show.plots import gantt as gantt_plots
from schedgap.harness.show.plots.gantt import MAX_LANES, Chart, gantt, lanes, merged, of_schedule, of_trace, sampled
from schedgap.harness.show.plots.hadar import completion_s, price_field, shares
from schedgap.harness.show.plots.style import clock, completion_cdf, looks, price_map, strips
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.harness.studies.compare.run import compare_here
from schedgap.heuristics.hadar.prices import prices
from schedgap.heuristics.simulator import Assignment, State, simulate
from schedgap.instances.catalogue import load
from schedgap.instances.schema import Instance
from schedgap.instances.views import hadar
from schedgap.instances.views.hadar import HadarSchedule, HadarView
from schedgap.instances.workload import Servers

NAMES = ("gantt", "jct-cdf", "utilisation", "prices")


def by_order(view: HadarView, order: list[int], blind: bool = False) -> HadarSchedule:
    """Return a schedule in which jobs, in this order, start as early as their gangs fit on the fastest free GPUs.

    If `blind`, jobs take the first servers instead of the fastest ones.
    """
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
    return HadarSchedule.of(np.array(rows, np.int64))


def gang(
    free: Any, begin: int, gpus: int, ranked: Any, view: HadarView, j: int
) -> tuple[int, list[tuple[int, int]]] | None:
    """Return the slots and servers of a gang that starts in slot `begin`, ``None`` if it does not fit to its end."""
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
    """Return a comparison whose methods schedule the jobs in the given orders."""
    view = hadar.view(instance)
    rows, decisions = [], {}
    for name, order in orders.items():
        method = f"hadar.{name.replace('__', '.')}"
        schedule = by_order(view, order, blind=name == "fifo")
        verdict = judge(view.instance, schedule, hadar.UTILITY.id, ())
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
    """Place jobs in order on the first free GPUs."""
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
    assert "time [h]" in texts(gantt(chart, {"simulated": bars}))


# figures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_the_same_every_time(name: str, large: Comparison) -> None:
    first, second = (drawn(large, name).svg for _ in range(2))
    assert first == second
    ET.fromstring(first)
    assert len(first) < 400_000
    assert drawn(large, name).file("png").startswith(b"\x89PNG")


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
    worth = {row.method: row.objective or 0.0 for row in small.rows if row.method != "hadar.online"}
    best = max(worth, key=lambda m: worth[m])
    assert [title.split(":")[0] for title in panels(item)] == [best, "hadar.online"]
    assert {each["job"] for each in records(item) if "job" in each} == {"J1", "J2", "J3"}
    assert [types(item)[key] for key in sorted(types(item), key=float)] == ["V100", "P100", "K80"]


def types(chart: Any) -> dict[str, str]:
    """Return the names of GPU types on the axis, by the middle of their rows."""
    axis = next(each["axis"] for each in channels(chart, "y") if each.get("axis"))
    found: dict[str, str] = json.loads(axis["labelExpr"].removesuffix("[datum.value]"))
    assert list(map(float, found)) == axis["values"]
    return found


def test_a_small_gantt_names_every_type_every_bar_and_whole_slots() -> None:
    run = compare_here(load("paper/hadar-fig1"), ["hadar.online"])
    (item,) = figures(run, "gantt")
    words = re.findall(r">([^<>]+)</text>", item.svg)
    assert [name for name in words if name.endswith(("00", "80"))] == ["K80", "P100", "V100"]
    assert sum(name in ("J1", "J2", "J3") for name in words) == 4 + 3  # bars, and the key below
    assert [name for name in words if name.isdigit()] == [str(slot) for slot in range(9)]


def test_gantt_leaves_copies_out_of_the_comparison(small: Comparison) -> None:
    forked = small.rows[0].replace(method="hadar.hadare", problem=hadar.FORKED.id, objective=1e9)
    decisions = {**small.decisions, (forked.fingerprint, "hadar.hadare", 0): next(iter(small.decisions.values()))}
    item = drawn(Comparison({}, [forked, *small.rows], small.instances, decisions), "gantt")
    assert "hadar.hadare" not in texts(item)


def test_many_jobs_are_coloured_by_order(large: Comparison) -> None:
    item = drawn(large, "gantt")
    assert "job, in the order of the instance" in texts(item)
    view = hadar.view(next(iter(large.instances.values())))
    for title in panels(item):
        schedule = large.decisions[large.rows[0].fingerprint, title.split(":")[0], 0, ""]
        assert area(item, title) == pytest.approx(schedule.gpus.sum() * view.slot_s / 3600, rel=1e-4)
    ends = of_schedule(view, schedule).end
    assert scale_of(item, "x")["domain"] == [0.0, pytest.approx(ends.max() / 3600, rel=1e-4)]


def area(chart: Any, panel: str) -> float:
    """Return the total GPU time of all bars in a panel."""
    return sum(
        (end - start) * (bottom - top)
        for job in records(chart, panel=panel)
        if "job" in job
        for start, end, top, bottom in zip(job["time"], job["end"], job["top"], job["bottom"], strict=True)
    )


def test_hovering_tells_the_whole_life_of_a_job(small: Comparison) -> None:
    item = drawn(small, "gantt")
    schedule = small.decisions[small.rows[0].fingerprint, "hadar.online", 0, ""]
    mine = schedule.job == 0
    life = record(item, panel=panels(item)[1], job="J1")
    assert life["first start"] == f"{schedule.slot[mine].min()} s"
    assert life["last end"] == f"{schedule.slot[mine].max() + 1} s"
    assert life["GPU time"] == f"{schedule.gpus[mine].sum()} GPU·s"
    told = {each["field"] for each in next(iter(channels_of_lists(item, "tooltip")))}
    assert {"job", "time", "end", "first start", "last end", "GPU time", "most GPUs"} <= told


def channels_of_lists(chart: Any, channel: str) -> Any:
    return (layer["encoding"][channel] for layer in spec_of(chart)["spec"]["layer"] if channel in layer["encoding"])


def test_very_many_restarts_keep_the_colours_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gantt_plots, "MOST_BARS", 500)
    servers = Servers(("s",), np.array([0]), np.array([2]), np.zeros(1), np.zeros(1))
    start = np.arange(6000) * 10.0
    busy = merged(np.arange(6000) % 3, np.zeros(6000), np.full(6000, 2), start, start + 9.9)
    half = merged(np.arange(6000) % 3, np.zeros(6000), np.ones(6000), start, start + 9.9)
    chart, words = gantt(Chart(servers, ("a",), ("x", "y", "z")), {"busy": busy, "half": half})
    assert "equidistant instants" in words
    bars = [job for job in records(chart) if "job" in job]
    assert sum(len(job["time"]) for job in bars) <= 1000
    assert "stroke" not in texts(chart).replace("strokeWidth", "")
    hours = 2 * 60_000 / 3600
    assert area(chart, "busy") == pytest.approx(hours, rel=0.02)
    assert area(chart, "half") == pytest.approx(hours / 2, rel=0.02)
    few = merged([0, 1], [0, 0], [1, 2], [0.0, 5.0], [1.0, 6.0])
    assert sampled(few) is few


def test_a_huge_cluster_shows_the_first_servers_of_every_type() -> None:
    count = 100
    kinds = np.repeat([0, 1], count)
    servers = Servers(tuple(map(str, range(200))), kinds, np.full(200, 8), np.zeros(200), np.zeros(200))
    everywhere = np.arange(200)
    bars = merged(everywhere % 30, everywhere, np.full(200, 8), np.zeros(200), np.ones(200))
    chart, words = gantt(Chart(servers, ("a", "b"), [f"j{i}" for i in range(30)]), {"x": bars})
    assert list(types(chart).values()) == ["a", "b"]
    shown = [top for job in records(chart) if "job" in job for top in job["top"]]
    assert len(shown) * 8 <= MAX_LANES
    assert "(20 of 200)" in words
    few = Servers(("s",), np.array([0]), np.array([4]), np.zeros(1), np.zeros(1))
    assert "servers" not in gantt(Chart(few, ("a",), ["j"]), {"x": merged([0], [0], [1], [0.0], [5.0])})[1]


def test_hostile_names_are_drawn_as_they_are() -> None:
    servers = Servers(("s",), np.array([0]), np.array([1]), np.zeros(1), np.zeros(1))
    bars = merged([0], [0], [1], [0.0], [5.0])
    chart, _ = gantt(Chart(servers, ("$x$'\"]",), ("<b>$j$",)), {"$t$": bars})
    svg = rendered(plain_spec(chart), "svg")
    assert b"<b>" not in svg
    assert b"$x$'" in svg


# completion times, utilisation --------------------------------------------------------------------


def test_completion_times_count_from_the_arrival_slot(small: Comparison) -> None:
    view = hadar.view(load("paper/hadar-fig1"))
    schedule = HadarSchedule.of(np.array([[0, 0, 0, 2], [0, 2, 1, 1], [2, 4, 0, 2]]))
    assert completion_s(view, schedule).tolist() == pytest.approx([3.0, np.nan, 5.0], nan_ok=True)


def test_cdf_ends_at_the_share_that_completes() -> None:
    times = {"a": np.array([10.0, 20.0, np.nan, 40.0]), "b": np.array([5.0, 5.0, 5.0, 5.0])}
    chart = completion_cdf(times, looks(times), clock(40.0))
    ends = {each["method"]: each for each in records(chart)}
    assert ends["a"]["share"][-1] == 0.75
    assert ends["b"]["share"][-1] == 1.0
    assert [ends[method]["jobs that never complete"] for method in "ab"] == [1, 0]


def test_cdf_of_nobody_who_completes() -> None:
    chart = completion_cdf({"a": np.array([np.nan, np.nan])}, looks("a"), clock(0.0))
    assert rendered(plain_spec(chart), "png").startswith(b"\x89PNG")


def test_cdf_over_orders_of_magnitude_is_logarithmic() -> None:
    times = {"a": np.array([60.0] * 9 + [1e6])}
    assert scale_of(completion_cdf(times, looks("a"), clock(1e6)), "x")["type"] == "log"
    assert "type" not in scale_of(completion_cdf({"a": np.array([60.0, 100.0])}, looks("a"), clock(100.0)), "x")


def test_a_cdf_of_many_jobs_keeps_its_shape() -> None:
    times = np.random.default_rng(0).exponential(3600.0, 5000)
    (line,) = records(completion_cdf({"a": times}, looks("a"), clock(1e5)))
    assert len(line["x"]) < 200
    for x, share in list(zip(line["x"], line["share"], strict=True))[1:-1]:
        assert share == pytest.approx(np.mean(times / 3600 <= x * (1 + 1e-5)), abs=0.01)


def test_all_methods_are_in_the_cdf_and_told_apart() -> None:
    instance = load("paper/hadar-fig1")
    names = ["online", *(f"online?beam={i}" for i in range(14)), "fifo", "srtf"]
    run = run_of(instance, **{name: [0, 1, 2] for name in names})
    item = drawn(run, "jct-cdf")
    assert len(records(item)) == len(names)
    colours, dashes = scale_of(item, "color"), scale_of(item, "strokeDash")
    assert set(colours["domain"]) == {f"hadar.{name}" for name in names}
    looked = {(colour, str(dash)) for colour, dash in zip(colours["range"], dashes["range"], strict=True)}
    assert len(looked) == len(names)


def test_utilisation_is_the_share_of_gpus(small: Comparison) -> None:
    view = hadar.view(load("paper/hadar-fig1"))
    schedule = HadarSchedule.of(np.array([[0, 0, 0, 2], [0, 0, 1, 1], [2, 2, 0, 2]]))
    assert shares(view, schedule).tolist() == [0.5, 0.0, pytest.approx(1 / 3)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=700))
def test_averaging_keeps_the_mean(values: list[float]) -> None:
    (line,) = records(strips({"a": {"GPUs": np.array(values)}}, 3600.0, clock(1e4), looks("a")))
    widths = np.diff(line["time"])
    assert len(widths) <= 120
    assert float(np.dot(line["share"][:-1], widths) / widths.sum()) == pytest.approx(100 * np.mean(values), abs=1e-2)
    assert line["mean"] == f"{100 * np.mean(values):.1f} %"


def test_each_method_has_a_strip() -> None:
    names = [f"m{i}" for i in range(7)]
    chart = strips({name: {"GPUs": np.ones(5 + i)} for i, name in enumerate(names)}, 3600.0, clock(1e4), looks(names))
    assert panels(chart) == names
    assert scale_of(chart, "x")["domain"] == [0.0, 11.0]
    assert records(chart, method="m0")[0]["share"][-1] == 0.0


# prices -------------------------------------------------------------------------------------------


def test_prices_are_those_of_equation_5() -> None:
    view = hadar.view(load("paper/hadar-fig1"))
    found = prices(view)
    schedule = HadarSchedule.of(np.array([[0, 0, 0, 2], [0, 0, 1, 1], [2, 2, 0, 2]]))
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
    names = ["a", "b"][: len(cells)]
    chart = price_map({"x": (cells, "utility")}, names, 3600.0, clock(1e5), cells.shape[1] * 3600.0)
    assert (scale_of(chart, "color").get("type") == "log") == log
    for name, row in zip(names, cells, strict=True):
        drawn = records(chart, name=name)
        assert sum(each["value"] * (each["end"] - each["time"]) for each in drawn) == pytest.approx(row.sum())
    assert rendered(plain_spec(chart), "svg")


def test_prices_to_compare_have_the_same_axes_and_colours(small: Comparison) -> None:
    mark = small.rows[0].fingerprint
    view = hadar.view(small.instances[mark])
    columns = Row(
        **{"instance": "x", "fingerprint": mark, "paper": "hadar", "method": "hadar.p2.columns", "sense": "max"},
        **{"problem": hadar.UTILITY.id, "kind": "exact", "status": "limit", "verified": True},
    )
    duals = np.ones((view.capacity.size, view.slots)) * 1e-3
    prices = {(mark, "hadar.p2.columns", 0, ""): duals}
    item = drawn(Comparison({}, [*small.rows, columns], small.instances, small.decisions, prices=prices), "prices")
    maps = item.spec["vconcat"]
    assert [each["title"] for each in maps] == ["posted by hadar.online", "dual prices of hadar.p2.columns"]
    axes = [[each["encoding"][channel] for channel in ("x", "y", "color")] for each in maps]
    assert axes[0] == axes[1]
    last = max(int(d.slot.max()) + 1 for d in small.decisions.values())
    assert axes[0][0]["scale"]["domain"] == [0.0, last * view.slot_s]
    assert max(each["end"] for each in records(item)) <= last * view.slot_s


@pytest.mark.parametrize(("span_s", "unit"), [(8, "s"), (600, "min"), (30_000, "h"), (1e6, "h")])
def test_time_units(span_s: float, unit: str) -> None:
    assert clock(span_s).name == unit


def test_all_figures_of_a_report_have_one_unit_of_time(large: Comparison) -> None:
    units = {
        unit for item in figures(large) for unit in re.findall(r"time \[(\w+)\]", texts(item)) if item.kind != "time"
    }
    assert units == {"h"}
