"""Figures: what they draw, what they leave out, and that they are the same every time."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from report_runs import ALLOCATIONS, hostile_run, instance, large_run, oef_run, row, sweep_run, troubled_run

from schedgap.harness.compare.row import Comparison
from schedgap.harness.figure import FIGURES, Drawing, draw_files, figures, registered, write_figures
from schedgap.harness.plots.common import SHORTEST_S, jitter
from schedgap.harness.plots.oef import envy, per_tenant
from schedgap.harness.plots.style import PALETTE, bins, label, text_colour
from schedgap.harness.verify.oef import check
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.plugins import load_plugin, restore
from schedgap.instances.schema import Instance
from schedgap.instances.views.oef import Allocation, matrix_view, view


def drawn(run: Comparison, name: str) -> list[Drawing]:
    return figures(run, name)


def texts(figure: Figure) -> str:
    return " ".join(t.get_text() for t in figure.findobj(lambda a: hasattr(a, "get_text")))


def marked(figure: Figure) -> list[Any]:
    """Return the lines of a figure that are points only."""
    return [line for line in figure.axes[0].lines if line.get_linestyle() == "None" and line.get_marker() != "None"]


OEF = {"gap", "time", "efficiency", "envy", "devices"}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (oef_run, OEF),
        (hostile_run, OEF),
        (lambda: large_run(20), OEF),
        (lambda: sweep_run(1), {"gap", "time", "ratio", "traces"}),
        (lambda: Comparison({}, [], {}), set()),
        (lambda: Comparison({}, troubled_run().rows[-3:], troubled_run().instances), set()),
    ],
)
def test_every_run_draws_what_it_has(make: Callable[[], Comparison], names: set[str]) -> None:
    found = figures(make())
    assert {item.name.split("-")[1] for item in found} == names
    for item in found:
        assert "n = " in item.caption
        assert item.figure.get_suptitle() == item.title


@pytest.mark.parametrize(("make", "name"), [(oef_run, "envy"), (lambda: sweep_run(4), "gap"), (large_run, "envy")])
def test_figures_are_the_same_every_time(make: Callable[[], Comparison], name: str) -> None:
    first, second = (drawn(make(), name)[0].svg for _ in range(2))
    assert first == second
    ET.fromstring(first)


def test_drawing_leaves_pyplot_and_settings_alone() -> None:
    before = dict(mpl.rcParams)
    assert drawn(sweep_run(4), "gap")[0].svg
    assert {key for key, value in mpl.rcParams.items() if value != before[key]} <= {"backend"}
    assert plt.get_fignums() == []


def test_saved_as_svg_and_png(tmp_path: Path) -> None:
    paths = write_figures(drawn(oef_run(), "gap"), tmp_path)
    assert [p.relative_to(tmp_path).as_posix() for p in paths] == [
        "figures/oef-gap.svg",
        "figures/oef-gap.png",
    ]
    svg, png = (p.read_bytes() for p in paths)
    assert svg.startswith(b"<?xml")
    assert b"<dc:date>" not in svg
    assert png.startswith(b"\x89PNG")


# ---------------------------------------------------------------- common figures


def test_gap_leaves_out_and_counts_what_is_wrong_or_failed() -> None:
    (item,) = drawn(troubled_run(), "gap")
    assert "Not drawn: 1 WRONG, 1 failed, 1 skipped." in item.caption
    assert "n = 5 results of 5 methods on paper/oef-eq1." in item.caption
    assert "oef.rounding" not in texts(item.figure)


def test_gap_tells_estimates_from_proved_ones() -> None:
    mark = instance().fingerprint
    rows = [row("oef.a", mark, 4.0), row("oef.b", mark, 4.001, ratio_is_upper=True)]
    (item,) = drawn(Comparison({}, rows, {}), "gap")
    points = [(line.get_marker(), float(line.get_xdata()[0])) for line in marked(item.figure)]
    assert points == [("o", pytest.approx(20.0)), ("<", pytest.approx(19.98))]
    assert "20.0 %" in texts(item.figure)
    assert "≤ 20.0 %" in texts(item.figure)


def test_gap_over_instances_has_boxes_and_all_points() -> None:
    run = sweep_run(12)
    (item,) = drawn(run, "gap")
    ax = item.figure.axes[0]
    assert sum(len(line.get_xdata()) for line in marked(item.figure)) == len(run.rows)
    assert len(ax.patches) == 5
    assert [t.get_text() for t in ax.get_yticklabels()] == list(dict.fromkeys(r.method for r in run.rows))


def test_huge_gaps_get_a_logarithmic_axis() -> None:
    rows = [row("oef.a", "f", 4.0, gap=90.0), row("oef.b", "f", 4.0, gap=0.01)]
    (item,) = drawn(Comparison({}, rows, {}), "gap")
    assert item.figure.axes[0].get_xscale() == "symlog"


def test_ratio_shows_the_guarantee_of_each_row() -> None:
    (item,) = drawn(sweep_run(5), "ratio")
    ax = item.figure.axes[0]
    guarantees = {
        float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 2 and line.get_linewidth() > 1.7
    }
    assert guarantees == {7.1}
    assert "n = 5 results of 1 method on 5 instances." in item.caption


def test_problems_stand_apart_in_one_figure() -> None:
    rows = [row("oef.a", "f", 4.0), row("oef.b", "f", 4.5, problem="oef.envy_free"), row("oef.c", "f", 4.2)]
    (item,) = drawn(Comparison({}, rows, {}), "gap")
    ax = item.figure.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["oef.a", "oef.c", "oef.b"]
    assert list(ax.get_yticks()) == [1.0, 2.0, 4.0]
    assert {"allocation", "envy_free"} <= {t.get_text() for t in ax.texts}
    assert "not comparable with one another" in item.caption


# ---------------------------------------------------------------- many instances


def test_a_failure_keeps_a_profile_below_one() -> None:
    rows = []
    for i, (slow, failed) in enumerate([(0.2, False), (0.4, False), (0.1, True), (0.8, False)]):
        rows.append(row("oef.a", f"{i}", 4.0, solve_s=0.1))
        fields = {"status": "error", "verified": None} if failed else {"solve_s": slow}
        rows.append(row("oef.b", f"{i}", None if failed else 5.0, **fields))
    (item,) = drawn(Comparison({}, rows, {}), "profile-time")
    fast, slow_line = (line.get_ydata() for line in item.figure.axes[0].lines)
    assert (fast.max(), slow_line.max()) == (1.0, 0.75)
    assert "n = 4 cases, 2 methods" in item.caption
    (item,) = drawn(Comparison({}, rows, {}), "profile-objective")
    first, second = item.figure.axes[0].lines
    assert list(second.get_xdata()[1:4]) == [1.0, 1.0, 1.0]
    assert first.get_xdata()[-2] == pytest.approx(1.25)
    (item,) = drawn(Comparison({}, rows, {}), "profile-bound")
    assert item.figure.axes[0].lines[1].get_ydata().max() == 0.75


def test_no_profile_of_a_single_case() -> None:
    rows = [row("oef.a", "f", 4.0), row("oef.b", "f", 4.5)]
    for name in ("profile-time", "profile-objective", "profile-bound", "scaling"):
        assert drawn(Comparison({}, rows, {}), name) == []


def test_scaling_fits_the_exponent() -> None:
    rows, found = [], {}
    for size in (4, 8, 16):
        one = instance([[1, 2 + i] for i in range(size)])
        found[one.fingerprint] = one
        rows.append(row("oef.a", one.fingerprint, 4.0, solve_s=1e-3 * size**2))
    (item,) = drawn(Comparison({}, rows, found), "scaling")
    assert "oef.a: n^2.00" in texts(item.figure)
    assert "number of tenants" in item.caption


# ---------------------------------------------------------------- drawing in workers


def test_workers_draw_the_same_files() -> None:
    run = oef_run(decisions={})
    here, there = (draw_files(run, parallel=parallel) for parallel in (False, True))
    assert here == there
    assert len(here[0]) == 2
    assert here[1] == []


MINE = """
from schedgap.harness.figure import figure
from schedgap.harness.plots.style import one_axes

@figure("oef.waiting", "Waiting", of="instance", each={"a": "A", "b": "B"})
def waiting(data, key):
    "Waiting time of {}, in seconds."
    return None if key == "b" else (one_axes(1.0)[0], f"n = {len(data.decisions)}.")
"""


def test_a_figure_of_a_plug_in_is_drawn_in_workers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    load_plugin(tmp_path / "mine.py")
    try:
        drawings, failures = draw_files(oef_run(), parallel=True)
    finally:
        restore(())
    assert failures == []
    (mine,) = [one for one in drawings if "waiting" in one.name]
    assert (mine.name, mine.title) == ("oef-waiting-a", "Waiting: oef on paper/oef-eq1")
    assert mine.caption == "Waiting time of A, in seconds. n = 5."


def test_a_method_looks_the_same_in_all_figures() -> None:
    run = sweep_run(12)
    seen = [_colours(figures(run, name)[0].figure) for name in ("profile-time", "profile-bound")]
    assert len(seen[1]) == 4
    assert seen[1].items() <= seen[0].items()


def _colours(figure: Figure) -> dict[str, Any]:
    (legend,) = figure.legends
    return {t.get_text(): line.get_color() for t, line in zip(legend.get_texts(), legend.get_lines(), strict=True)}


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
    def fail(data: Any) -> Figure:
        raise ZeroDivisionError("oops <b>")

    spec = replace(registered().get("gap"), draw=fail)
    monkeypatch.setattr(FIGURES, "_entries", FIGURES._entries | {"gap": spec})
    pictures, failures = draw_files(oef_run(decisions={}), parallel=False)
    assert [picture.name for picture in pictures] == ["oef-time"]
    assert failures == ["the figure gap could not be drawn: ZeroDivisionError: oops <b>"]


def test_times_below_the_axis_are_drawn_at_its_end() -> None:
    (item,) = drawn(Comparison({}, [row("oef.a", "f", 4.0, solve_s=0.0)], {}), "time")
    assert float(item.figure.axes[0].lines[0].get_xdata()[0]) == SHORTEST_S


def test_traces_survive_missing_incumbents() -> None:
    items = drawn(sweep_run(6), "traces")
    assert len(items) == 4  # MAX_INSTANCES
    assert "gap 1.7 % after 4 s" in texts(items[0].figure)
    assert "n = 2 solves on gen/200jobs?seed=0." in items[0].caption


# ---------------------------------------------------------------- OEF


def test_envy_is_what_the_checker_finds() -> None:
    v = view(instance())
    for method, devices in ALLOCATIONS.items():
        x = np.array(devices, float)
        verdict = check(v, Allocation(x), "oef.allocation", ())
        assert bool(envy(v, x).any()) != verdict.metrics["envy_free"], method


def test_envy_of_one_who_has_nothing_is_infinite() -> None:
    gain = envy(matrix_view(np.array([[1, 2], [1, 4]]), np.array([1, 1])), np.array([[0.0, 0.0], [1.0, 1.0]]))
    assert gain[0, 1] == np.inf
    assert gain[1, 0] == 0.0


def test_envy_graph_has_an_arrow_per_envying_pair() -> None:
    (item,) = drawn(oef_run(), "envy")
    by_title = {ax.get_title(loc="left").split("\n")[0]: ax for ax in item.figure.axes}
    arrows = {m: len(ax.findobj(FancyArrowPatch)) for m, ax in by_title.items()}
    assert arrows == {
        "oef.efficiency": 3,
        "oef.noncooperative": 3,
        "oef.cooperative": 0,
        "oef.gavel": 1,
        "oef.gandiva_fair": 1,
    }
    assert "nobody envies anybody" in by_title["oef.cooperative"].get_title(loc="left")


def test_efficiency_bars_are_true_speedups_times_devices() -> None:
    (item,) = drawn(oef_run(), "efficiency")
    heights = [bar.get_height() for bar in item.figure.axes[0].patches]
    assert heights[3:6] == pytest.approx([18 / 13] * 3)  # non-cooperative: equal efficiency
    assert heights[6:9] == pytest.approx([1.0, 1.5, 2.0])


def test_device_bars_stack_to_what_there_is() -> None:
    (item,) = drawn(oef_run(), "devices")
    for ax in item.figure.axes:
        filled = [bar for bar in ax.patches if bar.get_fill()]
        assert sum(bar.get_height() for bar in filled) == pytest.approx(2.0)


@pytest.mark.parametrize("tenants", [13, 200])
def test_many_tenants_become_heat_maps_with_few_labels(tenants: int) -> None:
    run = large_run(tenants)
    for name in ("efficiency", "envy", "devices"):
        (item,) = drawn(run, name)
        assert f"n = {tenants} tenants" in item.caption
        for ax in item.figure.axes:
            assert len(ax.get_xticklabels()) <= 10
            assert len(ax.get_yticklabels()) <= 10
        assert len(item.svg) < 300_000


def test_virtual_tenants_add_up_to_their_owner() -> None:
    v = matrix_view(np.array([[1, 2], [1, 3], [1, 4]]), np.array([1, 1]))
    object.__setattr__(v, "owner", np.array([0, 1, 0]))
    assert per_tenant(v, np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).tolist() == [[6, 8], [3, 4], [0, 0]]


# ---------------------------------------------------------------- style and instances


def test_hostile_names_are_drawn_as_they_are() -> None:
    (item,) = drawn(hostile_run(), "efficiency")
    shown = texts(item.figure)
    assert "[red]x[/red]" in shown
    assert "$a$ {b} \\frac" in shown
    assert "<script>" not in item.svg


def test_letters_that_the_font_lacks_do_not_stop_a_figure() -> None:
    strange = instance(names=["租户", "\u202eabc", "𝔘𝔫𝔦"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figures(strange)[0].file("png").startswith(b"\x89PNG")


def test_instance_figure_has_a_panel_for_each_thing(tmp_path: Path) -> None:
    (figure,) = (drawing.figure for drawing in figures(instance()))
    assert {ax.get_title(loc="left") for ax in figure.axes} >= {"2 GPUs by type", "speedup by tenant"}
    jobs = [{"id": f"j{i}", "gpus": 1, "epochs": 1, "submit_s": 60.0 * i} for i in range(30)]
    plain = Instance.model_validate({"name": "x", "jobs": tuple(jobs), "cluster": instance().cluster, "tenants": ()})
    titles = {ax.get_title(loc="left") for ax in figures(plain)[0].figure.axes}
    assert titles == {"2 GPUs by type", "30 jobs by submission", "jobs by gang size"}


def test_labels_are_short_and_never_hidden() -> None:
    assert label("a" * 50, 10) == "aaaaa…aaaa"
    assert not label("_hidden").startswith("_")


@pytest.mark.parametrize("colour", [*PALETTE, "#ffffff", "#000000"])
def test_ink_on_a_colour_is_readable(colour: str) -> None:
    def luminance(c: str) -> float:
        rgb = np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        return float(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])

    ink = {"white": "#ffffff", "black": "#000000"}[text_colour(colour)]
    light, dark = sorted((luminance(colour), luminance(ink)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_bins_and_jitter() -> None:
    assert [list(group) for group in bins(5, 2)] == [[0, 1, 2], [3, 4]]
    assert len(bins(3, 40)) == 3
    assert jitter(1, 0.4).tolist() == [0.0]
    assert np.abs(jitter(100, 0.4)).max() <= 0.2
