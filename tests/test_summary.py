"""Results on many instances in a few numbers: means, counts of failures, performance profiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import row, sweep_run

from schedgap.harness.show.page.compare import blocks, summary
from schedgap.harness.show.table import Table
from schedgap.harness.studies.compare.row import Row, allowed_s
from schedgap.harness.studies.compare.summary import by_method, profiles, shifted_geometric_mean

positive = st.floats(0, 1e6)


@given(st.lists(positive, min_size=1), st.floats(1e-3, 1e3))
def test_the_mean_lies_between_the_least_and_the_arithmetic_mean(values: list[float], shift: float) -> None:
    mean = shifted_geometric_mean(values, shift)
    assert mean is not None
    assert min(values) <= mean <= np.mean(values) * (1 + 1e-9) + 1e-9


@given(st.lists(positive, min_size=2), st.floats(1e-3, 1e3))
def test_the_mean_does_not_depend_on_the_order(values: list[float], shift: float) -> None:
    assert shifted_geometric_mean(values[::-1], shift) == pytest.approx(shifted_geometric_mean(values, shift))


def test_means_by_hand() -> None:
    assert shifted_geometric_mean([], 1) is None
    assert shifted_geometric_mean([0, 3], 1) == pytest.approx(1.0)  # √(1·4) − 1
    assert shifted_geometric_mean([0.0, 0.0], 0.01) == 0
    assert shifted_geometric_mean([1, math.inf], 1) == math.inf


def one(method: str, mark: str, objective: float | None = 4.0, solve_s: float | None = 1.0, **fields: object) -> Row:
    return row(method, mark, objective).replace(solve_s=solve_s, **fields)


def test_failures_count_with_what_they_were_allowed() -> None:
    rows = [one("a", "x", solve_s=3.0), one("a", "y", None, None, status="error", verified=None)]
    (line,) = by_method(rows, 60.0)
    assert (line.results, line.verified, line.failed, line.median_s) == (2, 1, 1, 3.0)
    assert line.geometric_s == pytest.approx(math.sqrt(4 * 61) - 1)


def test_nothing_unverified_enters_a_gap_and_ratios_to_bounds_are_not_proved() -> None:
    rows = [
        one("a", "x", gap=0.1, ratio=1.1, ratio_is_upper=False, instance="small"),
        one("a", "y", gap=0.2, ratio=1.5, ratio_is_upper=True),
        one("a", "z", gap=0.9, ratio=9.0, ratio_is_upper=False, verified=False),
    ]
    (line,) = by_method(rows)
    assert (line.median_gap, line.largest_gap, line.gap_is_upper) == (pytest.approx(0.15), 0.2, True)
    assert (line.largest_ratio, line.largest_on, line.wrong) == (1.1, "small", 1)
    assert line.mean_gap == pytest.approx(0.15)


def test_limits_are_told_apart_and_known_by_name() -> None:
    rows = [one("a", "x", None, None, status="error", limits=name) for name in ("short", "long")]
    meta = {"limits": {"short": {"time_limit_s": 5}, "long": {"time_limit_s": 50}}}
    assert [line.geometric_s for line in by_method(rows, allowed_s(meta))] == [pytest.approx(5), pytest.approx(50)]
    assert allowed_s({"limits": {"time_limit_s": 7}}) == 7.0
    assert allowed_s({}) == 20.0


def test_profiles_count_failures_and_leave_out_cases_that_not_all_could_try() -> None:
    rows = [
        *(one("fast", mark, 4.0, 1.0) for mark in "xyz"),
        one("slow", "x", 5.0, 2.0),
        one("slow", "y", None, None, status="out of memory", verified=None),
        one("slow", "z", None, None, status="skipped", verified=None),
    ]
    times = profiles(rows, "time")
    assert times["fast"].tolist() == [1.0, 1.0]
    assert times["slow"].tolist() == [2.0, math.inf]
    quality = profiles([r.replace(sense="max") for r in rows], "objective")
    assert quality["fast"].tolist() == [1.0, 1.25]
    assert quality["slow"].tolist() == [1.0, math.inf]


def test_everybody_failed_everywhere() -> None:
    rows = [one(m, "x", None, None, status="error", verified=None) for m in "ab"]
    assert {m: r.tolist() for m, r in profiles(rows, "objective").items()} == {"a": [math.inf], "b": [math.inf]}
    assert by_method(rows)[0].median_gap is None


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=1, max_size=8))
def test_profiles_are_ratios_of_which_the_best_is_one(pairs: list[tuple[float, float]]) -> None:
    rows = [one(m, str(i), t, t) for i, pair in enumerate(pairs) for m, t in zip("ab", pair, strict=True)]
    for measure in ("time", "objective"):
        found = profiles(rows, measure)
        both = np.concatenate(list(found.values()))
        assert (both >= 1).all()
        assert (both == 1).sum() >= len(pairs)


def test_runs_of_many_instances_are_summed_up_for_the_terminal() -> None:
    run = sweep_run()
    (content,) = (b for b in blocks(run) if isinstance(b, Table) and "results by method" in b.caption)
    assert f"{len(run.rows)} results by method" in content.caption
    assert [row[0].text for row in content.rows] == list(dict.fromkeys(r.method for r in run.rows))
    headers = [column.header for column in content.columns]
    assert headers[0] == "method"
    assert "limits" not in headers
    assert summary(run, "", run.rows[:1]) is None
