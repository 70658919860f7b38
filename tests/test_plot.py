"""Statistical figures draw what a data frame says, can be drawn into other axes, and refuse frames without data."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import schedgap as sg
from schedgap.instances.errors import UsageError

mpl.use("agg")


@pytest.fixture(autouse=True)
def _closed() -> object:
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Return a frame of a sweep: two methods and a bound on two instances; one row is WRONG, one was skipped."""
    rows = []
    for load in (0.6, 1.2):
        for method, objective in (("a.good", 10.0), ("a.bad", 8.0 if load < 1 else 5.0), ("a.wrong", 99.0)):
            row = {"instance": f"gen/x?load={load}", "method": method, "problem": "a.p", "sense": "max", "seed": 0}
            row |= {"limits": "", "objective": objective, "best_bound": 10.0, "gap": 1 - objective / 10, "p.load": load}
            row |= {"proof": "exact" if load < 1 else "upper", "verified": method != "a.wrong", "solve_s": load}
            rows.append(row)
    return pd.DataFrame([*rows, rows[0] | {"method": "a.skipped", "objective": np.nan, "gap": np.nan}])


def test_gaps_are_points_by_proof_and_the_smallest_median_is_first(table: pd.DataFrame) -> None:
    ax = sg.plot.gaps(table)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a.good", "a.bad"]
    points = np.vstack([part.get_offsets() for part in ax.collections])
    assert sorted(points[:, 0]) == pytest.approx([0, 0, 0.2, 0.5])
    legend = ax.get_legend()
    assert legend is not None
    assert {"exact", "upper"} <= {text.get_text() for text in legend.get_texts()}


def test_an_ecdf_is_the_share_of_results_up_to_a_value(table: pd.DataFrame) -> None:
    lines = sg.plot.ecdf(table).get_lines()
    shares = {tuple(np.round(line.get_xdata(), 6)): tuple(line.get_ydata()) for line in lines}
    assert shares[-np.inf, 0.2, 0.5] == (0, 0.5, 1)


def test_a_profile_counts_cases_within_a_factor_of_the_best(table: pd.DataFrame) -> None:
    missing = table[(table["method"] != "a.bad") | (table["p.load"] < 1)]
    factors = []
    for data in (table, missing):
        lines = [np.asarray(line.get_xdata()) for line in sg.plot.profile(data).get_lines()]
        factors.append(sorted([x for x in line if 1 < x < 1e6] for line in lines))
    assert factors == [[[], [1.25, 2.0]], [[], [1.25]]], "a method without a result in a case is never within a factor"


def test_a_mean_along_a_parameter(table: pd.DataFrame) -> None:
    ax = sg.plot.along(table, "p.load")
    means = sorted(round(float(np.sum(line.get_ydata())), 6) for line in ax.get_lines() if len(line.get_xdata()))
    assert means == [0.0, 0.7]


def test_growth_has_the_sizes_as_ticks(table: pd.DataFrame) -> None:
    ax = sg.plot.growth(table, "p.load")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.6", "1.2"]
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_figures_take_axes_and_a_journal_s_width(table: pd.DataFrame, tmp_path: Path) -> None:
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(3.5, 2))
    assert sg.plot.ecdf(table, ax=left) is left
    assert sg.plot.along(table, "p.load", ax=right) is right
    figure.savefig(tmp_path / "panels.pdf")
    assert (tmp_path / "panels.pdf").read_bytes().startswith(b"%PDF")


def test_completion_times_of_a_simulation() -> None:
    found = sg.simulate("gen/20jobs?jobs=3", ["fifo", "gavel"], jobs=1)
    last = [max(x for x in line.get_xdata() if x < 1e6) for line in sg.plot.completion(found).get_lines()]
    longest = [float(trace.jct_s.max()) / 3600 for trace in found.traces.values()]
    assert sorted(last) == pytest.approx(sorted(longest))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gap": np.nan}, "no row has a gap"),
        ({"problem": ["a.p"] * 6 + ["a.q"], "objective": 1.0, "verified": True}, "methods of one problem"),
    ],
)
def test_frames_that_say_nothing_are_refused(table: pd.DataFrame, change: dict[str, object], words: str) -> None:
    draw = sg.plot.gaps if "gap" in change else sg.plot.profile
    with pytest.raises(UsageError, match=words):
        draw(table.assign(**change))
    with pytest.raises(UsageError, match="no column 'gapp'"):
        sg.plot.ecdf(table, x="gapp")
