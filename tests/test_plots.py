"""Figures: what they draw, what they leave out, and that they are the same each time."""

from __future__ import annotations

import os
import signal
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest
from charts import channels, panels, record, records, scale_of, texts
from report_runs import ALLOCATIONS, hostile_run, instance, large_run, oef_run, row, sweep_run, troubled_run

from schedgap.harness.check import judge_asked
from schedgap.harness.engine.pool import Worker
from schedgap.harness.show.drawing import draw_all, figures, registered, write_figures
from schedgap.harness.show.figure import FIGURES, Drawing, plain_spec, rendered
from schedgap.harness.show.looks import PALETTE
from schedgap.harness.show.plots.common import SHORTEST_S, apart
from schedgap.harness.show.plots.oef import CELLS, envy, per_tenant, ranked
from schedgap.harness.show.plots.style import rows, text_colour
from schedgap.harness.show.text import clean
from schedgap.harness.studies.compare.row import Comparison
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.plugins import load_plugin, restore
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import Allocation, matrix_view, view


def drawn(run: Comparison, name: str) -> list[Drawing]:
    return figures(run, name)


OEF = {"gap", "time", "efficiency", "envy", "devices"}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (oef_run, OEF),
        (hostile_run, OEF - {"gap", "time"}),  # a single point is no figure
        (lambda: large_run(20), OEF),
        (lambda: sweep_run(1), {"gap", "time", "traces"}),
        (lambda: Comparison({}, [], {}), set()),
        (lambda: Comparison({}, troubled_run().rows[-3:], troubled_run().instances), set()),
    ],
)
def test_every_run_draws_what_it_has(make: Callable[[], Comparison], names: set[str]) -> None:
    found = figures(make())
    assert {item.name.split("-")[1] for item in found} == names
    for item in found:
        assert "n = " in item.caption
        assert item.spec["title"] == item.title


@pytest.mark.parametrize(("make", "name"), [(oef_run, "envy"), (lambda: sweep_run(4), "gap"), (large_run, "envy")])
def test_figures_are_the_same_every_time(make: Callable[[], Comparison], name: str) -> None:
    first, second = (drawn(make(), name)[0].svg for _ in range(2))
    assert first == second
    ET.fromstring(first)


@pytest.mark.parametrize("make", [troubled_run, lambda: sweep_run(4), large_run, lambda: sweep_run(1)])
def test_charts_keep_to_the_schema_and_name_no_counters(make: Callable[[], Comparison]) -> None:
    for item in figures(make()):
        alt.Chart.from_dict(item.spec, validate=True)
        assert "view_" not in texts(item)


def test_saved_as_svg_and_pdf(tmp_path: Path) -> None:
    paths = write_figures(drawn(oef_run(), "gap"), tmp_path)
    assert [p.relative_to(tmp_path).as_posix() for p in paths] == [
        "figures/oef-gap.svg",
        "figures/oef-gap.pdf",
    ]
    svg, pdf = (p.read_bytes() for p in paths)
    assert svg.startswith(b"<svg")
    assert pdf.startswith(b"%PDF")
    assert drawn(oef_run(), "gap")[0].file("png").startswith(b"\x89PNG")


# ---------------------------------------------------------------- common figures


def test_gap_leaves_out_and_counts_what_is_wrong_or_failed() -> None:
    (item,) = drawn(troubled_run(), "gap")
    assert "Not drawn: 1 WRONG, 1 failed, 1 skipped." in item.caption
    assert "n = 5 results of 5 methods on paper/oef-eq1." in item.caption
    assert not records(item, method="oef.rounding")


def test_gap_tells_estimates_from_proved_ones() -> None:
    mark = instance().fingerprint
    rows = [row("oef.a", mark, 4.0), row("oef.b", mark, 4.001, ratio_is_upper=True)]
    (item,) = drawn(Comparison({}, rows, {}), "gap")
    proved, estimate = record(item, method="oef.a"), record(item, method="oef.b")
    assert (proved["what"], proved["value"], proved["beside"]) == ("optimum certified", pytest.approx(20.0), "20.0 %")
    assert estimate["what"].startswith("upper estimate")
    assert (estimate["value"], estimate["beside"]) == (pytest.approx(19.98), "≤ 20.0 %")
    assert scale_of(item, "shape")["range"] == ["circle", "triangle-left"]


def test_gap_over_instances_has_boxes_and_all_points() -> None:
    run = sweep_run(12)
    (item,) = drawn(run, "gap")
    assert len(records(item)) == len(run.rows)
    assert {each.get("aggregate") for each in channels(item, "x")} >= {"q1", "median"}
    assert not any(each["beside"] for each in records(item))
    order = next(iter(channels(item, "y")))["sort"]
    medians = [np.median([each["value"] for each in records(item, method=method)]) for method in order]
    assert medians == sorted(medians)
    assert set(order) == {r.method for r in run.rows}


def test_huge_gaps_get_a_logarithmic_axis() -> None:
    rows = [row("oef.a", "f", 4.0, gap=90.0), row("oef.b", "f", 4.0, gap=0.01)]
    (item,) = drawn(Comparison({}, rows, {}), "gap")
    assert scale_of(item, "x")["type"] == "symlog"


def test_ratio_shows_the_guarantee_of_each_row() -> None:
    (item,) = drawn(sweep_run(5), "ratio")
    assert {each["guarantee"] for each in records(item)} == {7.1}
    assert "n = 5 results of 1 method on 5 instances." in item.caption


def test_problems_stand_apart_in_one_figure() -> None:
    rows = [row("oef.a", "f", 4.0), row("oef.b", "f", 4.5, problem="oef.envy_free"), row("oef.c", "f", 4.2)]
    (item,) = drawn(Comparison({}, rows, {}), "gap")
    assert [(each["method"], each["panel"]) for each in records(item)] == [
        ("oef.a", "allocation"),
        ("oef.b", "envy_free"),
        ("oef.c", "allocation"),
    ]
    assert panels(item) == ["allocation", "envy_free"]
    assert "not comparable with one another" in item.caption


# ---------------------------------------------------------------- many instances


def test_a_failure_keeps_a_profile_below_one() -> None:
    rows = []
    for i, (slow, failed) in enumerate([(0.2, False), (0.4, False), (0.1, True), (0.8, False)]):
        rows.append(row("oef.a", f"{i}", 4.0, solve_s=0.1))
        fields = {"status": "error", "verified": None} if failed else {"solve_s": slow}
        rows.append(row("oef.b", f"{i}", None if failed else 5.0, **fields))
    (item,) = drawn(Comparison({}, rows, {}), "profile-time")
    fast, slow_line = (max(each["share"]) for each in records(item))
    assert (fast, slow_line) == (1.0, 0.75)
    assert "n = 4 cases, 2 methods" in item.caption
    (item,) = drawn(Comparison({}, rows, {}), "profile-objective")
    first, second = (each["x"] for each in records(item))
    assert second[1:4] == [1.0, 1.0, 1.0]
    assert first[-2] == pytest.approx(1.25)


def test_no_profile_of_a_single_case() -> None:
    rows = [row("oef.a", "f", 4.0), row("oef.b", "f", 4.5)]
    for name in ("profile-time", "profile-objective", "scaling"):
        assert drawn(Comparison({}, rows, {}), name) == []


def test_scaling_fits_the_exponent() -> None:
    rows, found = [], {}
    for size in (4, 8, 16, 32):
        one = instance([[1, 2 + i] for i in range(size)])
        found[one.fingerprint] = one
        rows.append(row("oef.a", one.fingerprint, 4.0, solve_s=1e-3 * size**2))
    (item,) = drawn(Comparison({}, rows, found), "scaling")
    assert "number of tenants" in item.caption
    fit = record(item, fit="n^2.00")
    points = [(each["size"], each["second"]) for each in records(item) if "fit" not in each]
    assert points == [(size, pytest.approx(1e-3 * size**2)) for size in (4, 8, 16, 32)]
    assert list(zip(fit["size"], fit["second"], strict=True)) == [points[0], (32, pytest.approx(1.024))]
    assert [4, 8, 16, 32] in [each["axis"]["values"] for each in channels(item, "x") if "axis" in each]


def test_labels_of_exponents_do_not_overlap() -> None:
    rows, found = [], {}
    for size in (4, 8, 16, 32):
        one = instance([[1, 2 + i] for i in range(size)])
        found[one.fingerprint] = one
        for name, second in (("oef.a", 1e-3), ("oef.b", 1.001e-3), ("oef.c", 1e-2)):
            rows.append(row(name, one.fingerprint, 4.0, solve_s=second * size**2))
    (item,) = drawn(Comparison({}, rows, found), "scaling")
    assert {each["method"]: each["labelled"] for each in records(item) if "fit" in each} == {
        "oef.a": False,
        "oef.b": True,
        "oef.c": True,
    }
    assert "Labels that would overlap are left out." in item.caption
    assert apart({"a": 1.0, "b": 0.0}, [0.0, 1.0]) == {"a", "b"}


# ---------------------------------------------------------------- all figures of a run


MINE = """
from schedgap.harness.show.figure import figure
from schedgap.harness.show.plots.style import rows
import altair as alt

@figure("oef.waiting", "Waiting", of="instance", each={"a": "A", "b": "B"})
def waiting(data, key):
    "Waiting time of {}, in seconds."
    return None if key == "b" else (alt.Chart(rows([])).mark_point(), f"n = {len(data.decisions)}.")
"""


def test_a_figure_of_a_plug_in_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    load_plugin(tmp_path / "mine.py")
    try:
        drawings, failures = draw_all(oef_run())
    finally:
        restore(())
    assert failures == []
    (mine,) = [one for one in drawings if "waiting" in one.name]
    assert (mine.name, mine.title) == ("oef-waiting-a", "Waiting: oef on paper/oef-eq1")
    assert mine.caption == "Waiting time of A, in seconds. n = 5."


def test_a_method_looks_the_same_in_all_figures() -> None:
    run = sweep_run(12)
    seen = [_colours(figures(run, name)[0]) for name in ("profile-time", "profile-objective", "gap")]
    assert len(seen[1]) == 5
    assert seen[1].items() <= seen[0].items() == seen[2].items()


def _colours(item: Drawing) -> dict[str, str]:
    scale = scale_of(item, "color")
    return dict(zip(scale["domain"], scale["range"], strict=True))


def test_a_drawing_is_saved_in_the_format_of_its_ending(tmp_path: Path) -> None:
    (item,) = drawn(oef_run(decisions={}), "gap")
    assert item.save(tmp_path / "gap.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(UsageError, match=r"\.svg, \.png or \.pdf, not as \.jpg"):
        item.save(tmp_path / "gap.jpg")


def test_unknown_figures_are_named() -> None:
    with pytest.raises(UnknownNameError, match="did you mean gap"):
        figures(oef_run(), "gapp")


def test_every_figure_has_title_and_caption() -> None:
    for spec in registered():
        assert spec.title
        assert spec.caption.endswith(".")
        assert "{" not in spec.caption


def test_a_figure_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: Any) -> Any:
        raise ZeroDivisionError("oops <b>")

    spec = replace(registered().get("gap"), draw=fail)
    monkeypatch.setattr(FIGURES, "_entries", FIGURES._entries | {"gap": spec})
    pictures, failures = draw_all(oef_run(decisions={}))
    assert [picture.name for picture in pictures] == ["oef-time"]
    assert failures == ["the figure gap could not be drawn: ZeroDivisionError: oops <b>"]


def test_times_below_the_axis_are_drawn_at_its_end() -> None:
    rows = [row("oef.a", "f", 4.0, solve_s=0.0), row("oef.b", "f", 4.0)]
    (item,) = drawn(Comparison({}, rows, {}), "time")
    assert record(item, method="oef.a")["value"] == SHORTEST_S


def test_traces_survive_missing_incumbents() -> None:
    items = drawn(sweep_run(6), "traces")
    assert len(items) == 4  # MAX_INSTANCES
    assert "hadar.online: gap 1.7 % after 4 s" in panels(items[0])
    assert record(items[0], method="hadar.online")["incumbent"][0] is None
    assert "n = 2 solves on gen/200jobs?seed=0." in items[0].caption


def test_what_was_known_stays_known() -> None:
    run = sweep_run(1)
    about = {key: run.traces[0][key] for key in ("fingerprint", "method", "seed", "limits")}
    told = [(1.0, None, 120.0), (2.0, 90.0, None), (3.0, None, 100.0)]
    points = [{**about, "time_s": t, "incumbent": low, "bound": high} for t, low, high in told]
    (item,) = drawn(Comparison({}, run.rows, {}, traces=points), "traces")
    (only,) = records(item)
    assert (only["incumbent"], only["bound"]) == ([None, 90.0, 90.0], [120.0, 120.0, 100.0])
    assert only["end"] == "gap 10.0 % after 3 s"


@pytest.mark.parametrize("last", [None, 90.0])
def test_bounds_over_time_name_no_series_that_is_not_there(last: float | None) -> None:
    run = sweep_run(1)
    ends = {point["method"]: i for i, point in enumerate(run.traces)}.values()
    bounds = [{**point, "incumbent": last if i in ends else None} for i, point in enumerate(run.traces)]
    (item,) = drawn(Comparison({}, run.rows, {}, traces=bounds), "traces")
    assert scale_of(item, "color")["domain"] == ["bound"]


# ---------------------------------------------------------------- OEF


def test_envy_is_what_the_checker_finds() -> None:
    v = view(instance())
    for method, devices in ALLOCATIONS.items():
        x = np.array(devices, float)
        verdict = judge_asked(v, Allocation(x), "oef.allocation", ())
        assert bool(envy(v, x).any()) != verdict.metrics["envy_free"], method


def test_envy_of_one_who_has_nothing_is_infinite() -> None:
    gain = envy(matrix_view(np.array([[1, 2], [1, 4]]), np.array([1, 1])), np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert gain[0, 1] == np.inf
    assert gain[1, 0] == 0.0


def test_envy_has_a_coloured_cell_per_envying_pair() -> None:
    (item,) = drawn(oef_run(), "envy")
    pairs = dict.fromkeys(ALLOCATIONS, 0)
    for each in records(item):
        pairs[each["method"]] += each["gain"] > 0
    assert pairs == {
        "oef.efficiency": 3,
        "oef.noncooperative": 3,
        "oef.cooperative": 0,
        "oef.gavel": 1,
        "oef.gandiva_fair": 1,
    }
    assert "oef.cooperative: nobody envies anybody" in panels(item)
    assert {"oef.cooperative"} <= {each["method"] for each in records(item)}


def test_the_least_envy_is_seen() -> None:
    run = oef_run()
    key = next(key for key in run.decisions if key[1] == "oef.cooperative")
    slight = run.decisions[key].devices + np.array([[0, -1e-4], [0, 1e-4], [0, 0]])
    run.decisions = {key: Allocation(np.abs(slight))}
    (item,) = drawn(run, "envy")
    gains = [each["gain"] for each in records(item) if each["gain"] > 0]
    assert gains
    assert max(gains) < 0.1
    colours = scale_of(item, "color")
    assert colours["domain"] == [0, 100]
    assert colours["range"][0] != "#ffffff"


def test_efficiency_bars_are_true_speedups_times_devices() -> None:
    (item,) = drawn(oef_run(), "efficiency")
    equal = [each["efficiency"] for each in records(item, method="oef.noncooperative")]
    assert equal == pytest.approx([18 / 13] * 3, rel=1e-5)
    assert [each["efficiency"] for each in records(item, method="oef.cooperative")] == pytest.approx([1.0, 1.5, 2.0])


def test_device_bars_stack_to_what_there_is() -> None:
    (item,) = drawn(oef_run(), "devices")
    for method in ALLOCATIONS:
        assert sum(each["devices"] for each in records(item, method=method)) == pytest.approx(2.0, abs=2e-5)


@pytest.mark.parametrize("tenants", [13, 200])
def test_many_tenants_become_heat_maps_with_few_labels(tenants: int) -> None:
    run = large_run(tenants)
    for name in ("efficiency", "envy", "devices"):
        (item,) = drawn(run, name)
        assert f"n = {tenants} tenants" in item.caption
        assert len({each.get("tenant", each.get("envied")) for each in records(item)}) <= CELLS
        assert len(item.svg) < 300_000


def test_virtual_tenants_add_up_to_their_owner() -> None:
    v = matrix_view(np.array([[1, 2], [1, 3], [1, 4]]), np.array([1, 1]))
    object.__setattr__(v, "owner", np.array([0, 1, 0]))
    assert per_tenant(v, np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).tolist() == [[6, 8], [3, 4], [0, 0]]


# ---------------------------------------------------------------- style and instances


@pytest.mark.parametrize(("name", "shown"), [("W" * 14, True), ("w" * 90, False)])
def test_only_names_that_are_too_long_are_cut(name: str, shown: bool) -> None:
    chart = alt.Chart(rows([{"name": name}, {"name": "b"}])).mark_bar().encode(y="name:N")
    svg = rendered(plain_spec(chart), "svg").decode()
    assert (f">{name}<" in svg) is shown
    assert ("…<" in svg) is not shown


def test_hostile_names_are_drawn_as_they_are() -> None:
    (item,) = drawn(hostile_run(), "efficiency")
    shown = {each["tenant"] for each in records(item)}
    assert {"[red]x[/red]", "$a$ {b} \\frac"} <= shown
    assert "<script>" not in item.svg


def test_letters_that_the_font_lacks_do_not_stop_a_figure() -> None:
    strange = instance(names=["租户", "\u202eabc", "𝔘𝔫𝔦"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figures(strange)[0].file("png").startswith(b"\x89PNG")


def test_instance_figure_has_a_panel_for_each_thing() -> None:
    (item,) = figures(instance())
    assert {chart["title"] for chart in item.spec["concat"]} == {"2 GPUs by type", "speedup by tenant"}
    jobs = [{"id": f"j{i}", "gpus": 1, "epochs": 1, "submit_s": 60.0 * i} for i in range(30)]
    plain = Instance.model_validate({"name": "x", "jobs": tuple(jobs), "cluster": instance().cluster, "tenants": ()})
    titles = {chart["title"] for chart in figures(plain)[0].spec["concat"]}
    assert titles == {"2 GPUs by type", "30 jobs by submission", "jobs by gang size"}


def test_labels_are_short() -> None:
    assert clean("a" * 50, 10) == "aaaaa…aaaa"


@pytest.mark.parametrize("colour", [*PALETTE, "#ffffff", "#000000"])
def test_ink_on_a_colour_is_readable(colour: str) -> None:
    def luminance(c: str) -> float:
        rgb = np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        return float(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])

    ink = {"white": "#ffffff", "black": "#000000"}[text_colour(colour)]
    light, dark = sorted((luminance(colour), luminance(ink)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_tenants_stand_in_groups_by_speedup() -> None:
    assert [list(group) for group in ranked(np.array([3.0, 1.0, 2.0]))] == [[1], [2], [0]]
    groups = ranked(-np.arange(3.0 * CELLS - 1))
    assert [list(groups[i]) for i in (0, -1)] == [[70, 69, 68], [1, 0]]
    assert len(groups) == CELLS


def test_a_picture_whose_process_is_killed_is_one_that_could_not_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    give, given = Worker.give, []

    def killing(self: Worker, task: Any) -> None:
        given.append(task)
        if len(given) == 2:  # the first one is no figure's
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.join()
        give(self, task)

    monkeypatch.setattr(Worker, "give", killing)
    pictures, failures = draw_all(oef_run(decisions={}))
    assert [picture.name for picture in pictures] == ["oef-time"]
    assert len(failures) == 1
    assert "the figure gap could not be drawn: error: the worker died (SIGKILL" in failures[0]
