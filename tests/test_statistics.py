"""Statistics of many results: each number equals a second computation, and dependent results are not counted twice."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from report_runs import META, instance, row
from scipy.optimize import minimize
from scipy.stats import bootstrap, norm, spearmanr, wilcoxon
from scipy.stats import t as student
from statsmodels.stats.multitest import multipletests

import schedgap as sg
from schedgap.harness.show.page import simulate
from schedgap.harness.show.page.compare import blocks, page
from schedgap.harness.show.table import Selection, Table
from schedgap.harness.studies import statistics as studies
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.harness.studies.compare.run import STUDY
from schedgap.harness.studies.compare.summary import by_method
from schedgap.harness.studies.resampling import FEWEST, by_unit, interval, units_of
from schedgap.harness.studies.simulate.row import Simulation, SimulationRow
from schedgap.harness.studies.simulate.run import STUDY as SIMULATIONS
from schedgap.harness.studies.statistics import Statistics, censored_slope, features, statistics
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import PAPERS


@pytest.fixture(scope="module")
def kept() -> Comparison:
    """Thirty days at three loads, under five methods."""
    return sg.read_run(ROOT / "results/lesson09")


@pytest.fixture(scope="module")
def online(kept: Comparison) -> str:
    """The algorithm of Hadar in the kept run."""
    return next(row.method for row in kept.rows if row.kind == "online")


@pytest.fixture(scope="module")
def found(kept: Comparison) -> Statistics:
    return statistics(kept)


# intervals ----------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), min_size=1, max_size=6))
def test_an_interval_holds_values_that_occur_and_is_a_point_for_one_unit(groups: list[list[float]]) -> None:
    everything = [value for group in groups for value in group]
    low, high = interval(groups)
    assert min(everything) - 1e-9 <= low <= high <= max(everything) + 1e-9
    if len(groups) == 1 or len(set(everything)) == 1:
        assert low == high == pytest.approx(np.mean(everything))
    ends = interval(groups, "median")
    assert min(everything) - 1e-9 <= ends[0] <= ends[1] <= max(everything) + 1e-9


def test_results_on_the_same_random_numbers_are_one_unit() -> None:
    names = ["gen/20jobs?load=1&seed=3", "gen/20jobs?load=2&seed=3", "gen/20jobs?load=1&seed=4", "gen/50jobs?seed=3"]
    marks = {f"m{i}": name for i, name in enumerate([*names, "own/file"])}
    units = units_of(marks)
    assert units["m0"] == units["m1"] == units["m3"]
    assert len(set(units.values())) == 3
    assert sorted(map(len, by_unit(dict.fromkeys(marks, 1.0), units))) == [1, 1, 3]
    assert len(set(units_of({"a": "gen/20jobs?load=1", "b": "gen/20jobs?load=2"}).values())) == 1


def test_presets_of_one_seed_have_the_same_random_numbers() -> None:
    """Other laws map the same numbers to other durations: their ranks agree, so one seed of two presets is one unit."""

    def durations(base: str, seed: int) -> list[float]:
        jobs = sg.load(f"{base}?jobs=50&seed={seed}").jobs
        return [job.iterations / (job.gpus * max(job.rates.values())) for job in jobs]

    same = [spearmanr(durations("gen/50jobs", seed), durations("gen/philly", seed)).statistic for seed in range(5)]
    other = [spearmanr(durations("gen/50jobs", seed), durations("gen/philly", seed + 9)).statistic for seed in range(5)]
    assert min(same) > 0.5
    assert abs(float(np.mean(other))) < 0.2


def test_more_loads_of_the_same_days_do_not_narrow_an_interval() -> None:
    """Copies of each observation would halve the interval if they counted as independent."""
    days = np.random.default_rng(1).normal(size=30).tolist()
    once, four = interval([[day] for day in days]), interval([[day] * 4 for day in days])
    assert four == pytest.approx(once, rel=1e-12)


def test_intervals_of_gaps_equal_a_second_computation(kept: Comparison, found: Statistics) -> None:
    frame, table = kept.table, found.frame("intervals")
    rng = np.random.default_rng(5)
    for (method, value), mine in table.set_index(["method", "value"]).iterrows():
        part = frame[(frame["method"] == method) & ((frame["p.load"].astype(str) == value) | (value == ""))]
        assert (mine["results"], mine["units"]) == (len(part), 30)
        assert mine["mean"] == pytest.approx(part["gap"].mean())
        assert mine["median"] == pytest.approx(part["gap"].median())
        assert mine["upper"] == pytest.approx((part["proof"] == "upper").mean())
        days = part.groupby("p.seed")["gap"].mean().to_numpy()
        ends = np.percentile([rng.choice(days, 30).mean() for _ in range(4000)], [2.5, 97.5])
        assert [mine["mean_low"], mine["mean_high"]] == pytest.approx(ends, abs=0.06 * np.ptp(ends))
    assert set(table["factor"]) == {"", "load"}


@pytest.fixture(scope="module")
def factors() -> Comparison:
    """Hadar and Zhou over load, arrivals, heterogeneity and ten seeds; instances are generated anew."""
    table = pd.read_csv(ROOT / "results/factors.csv").astype(object)
    lines = table.where(table.notna(), None).to_dict("records")
    rows = [Row(**{str(name): value for name, value in line.items()}) for line in lines]
    return Comparison({}, rows, {})


def test_statistics_over_load_arrivals_and_heterogeneity_equal_a_second_computation(factors: Comparison) -> None:
    frame = pd.read_csv(ROOT / "results/factors.csv")
    wide = frame["instance"].str.extract(r"arrivals=(?P<arrivals>\w+)&heterogeneity=(?P<heterogeneity>[\d.]+)")
    frame = frame.join(wide).assign(
        load=frame["instance"].str.extract(r"load=([\d.]+)")[0], seed=frame["instance"].str.extract(r"seed=(\d+)")[0]
    )
    found = statistics(factors)
    gaps = frame.dropna(subset=["gap"])
    intervals = found.frame("intervals").set_index(["method", "factor", "value"])
    assert set(intervals.index.get_level_values("factor")) == {"", "load", "arrivals", "heterogeneity"}
    for (method, factor, value), mine in intervals.iterrows():
        part = gaps[(gaps["method"] == method) & ((gaps[factor] == value) if factor else True)]
        assert (mine["cases"], mine["units"]) == (len(part), part["seed"].nunique())
        assert (mine["median"], mine["mean"]) == pytest.approx((part["gap"].median(), part["gap"].mean()))
        by_seed = [one.to_numpy() for _, one in part.groupby("seed")["gap"]]
        second = bootstrap((np.arange(len(by_seed)),), resampled(by_seed), n_resamples=3000, method="percentile", rng=1)
        ends = second.confidence_interval
        wider = 0.1 * (ends.high - ends.low)
        assert [mine["mean_low"], mine["mean_high"]] == pytest.approx([ends.low, ends.high], abs=wider)
    pairs = found.frame("pairs")
    assert set(pairs["problem"]) == {"hadar.utility", "zhou.ps.completion"}
    for problem, tests in pairs.groupby("problem"):
        logs = frame[frame["problem"] == problem].pivot_table(
            index=["fingerprint", "seed"], columns="method", values="objective"
        )
        sign = 1 if problem == "hadar.utility" else -1
        p = {}
        for _, mine in tests.iterrows():
            one = sign * np.log(logs[mine["method"]] / logs[mine["reference"]])
            assert mine["ratio"] == pytest.approx(math.exp(one.mean()))
            assert (mine["wins"], mine["losses"]) == ((one > 1e-9).sum(), (one < -1e-9).sum())
            p[mine["method"]] = wilcoxon(one.groupby("seed").mean()).pvalue
        again = dict(zip(p, multipletests([*p.values()], method="holm")[1], strict=True))
        assert tests.set_index("method")["p"].to_dict() == pytest.approx(p)
        assert tests.set_index("method")["p_holm"].to_dict() == pytest.approx(again)


def resampled(groups: list[Any]) -> Any:
    """Return the mean of all observations of the groups that are drawn."""
    return lambda drawn: float(np.concatenate([groups[i] for i in drawn]).mean())


# pairs --------------------------------------------------------------------------------------------


def test_paired_differences_equal_a_second_computation(kept: Comparison, found: Statistics, online: str) -> None:
    wide = kept.table.pivot_table(index=["p.load", "p.seed"], columns="method", values="objective")
    logs = np.log(wide.drop(columns=online).div(wide[online], axis=0))
    table = found.frame("pairs").set_index("method")
    assert set(table["reference"]) == {online}
    p = {name: wilcoxon(logs[name].groupby("p.seed").mean()).pvalue for name in logs}
    for name, one in logs.items():
        mine = table.loc[name]
        assert mine["ratio"] == pytest.approx(math.exp(one.mean()))
        assert mine["ratio_low"] < mine["ratio"] < mine["ratio_high"]
        counts = (one > 1e-9).sum(), (one.abs() <= 1e-9).sum(), (one < -1e-9).sum()
        assert (mine["wins"], mine["ties"], mine["losses"]) == counts
        assert mine["p"] == pytest.approx(p[name])
    adjusted, least = {}, 0.0
    for i, name in enumerate(sorted(p, key=lambda name: p[name])):
        least = adjusted[name] = max(least, min(1.0, (len(p) - i) * p[name]))
    assert table["p_holm"].to_dict() == pytest.approx(adjusted)


def test_a_reference_may_be_chosen_and_must_have_run(kept: Comparison, online: str) -> None:
    pairs = statistics(kept, "hadar.srtf").frame("pairs").set_index("method")
    assert set(pairs["reference"]) == {"hadar.srtf"}
    back = statistics(kept).frame("pairs").set_index("method")
    assert pairs.loc[online, "ratio"] == pytest.approx(1 / back.loc["hadar.srtf", "ratio"])
    with pytest.raises(UsageError, match=r"did you mean hadar\.srtf"):
        statistics(kept, "hadar.strf")


def test_a_sweep_names_its_reference(tmp_path: Any) -> None:
    file: dict[str, Any] = {"title": "t", "methods": ["oef.maxmin", "oef.gavel"], "reference": "oef.gavel"}
    file["grids"] = [{"base": "gen/oef-20?tenants=3", "vary": {"seed": [1, 2, 3]}}]
    run = sg.sweep(file, results=tmp_path, jobs=1)
    assert isinstance(run, Comparison)
    assert {(one.method, one.reference) for one in statistics(run).pairs} == {("oef.maxmin", "oef.gavel")}
    (folder,) = tmp_path.glob("*-compare")
    assert {one.reference for one in statistics(sg.read_run(folder)).pairs} == {"oef.gavel"}  # type: ignore[arg-type]
    assert {one.reference for one in sg.statistics(run, "oef.maxmin").pairs} == {"oef.maxmin"}
    with pytest.raises(UsageError, match=r"unknown method of this run, as reference 'oef\.gavle'; did you mean"):
        sg.sweep(file | {"reference": "oef.gavle"}, results=tmp_path)


def test_a_method_that_ran_in_few_units_has_no_statistics(kept: Comparison) -> None:
    last = kept.rows[-1].method
    some = [one for one in kept.rows if one.method != last or re.search(r"seed=[12]\b", one.instance)]
    found = statistics(Comparison(kept.meta, some, kept.instances))
    assert last in {one.method for one in some}
    assert last not in {one.method for one in (*found.intervals, *found.pairs)}
    assert min(one.units for one in (*found.intervals, *found.pairs)) >= FEWEST


def test_smaller_is_better_where_a_problem_minimises() -> None:
    rows = []
    for seed in range(6):
        where: dict[str, Any] = {"instance": f"gen/20jobs?seed={seed}", "sense": "min", "status": "feasible"}
        rows += [
            row("zhou.ps.online", f"{seed}", 10.0).replace(problem="p", kind="online", **where),
            row("zhou.ps.fifo", f"{seed}", 20.0).replace(problem="p", kind="baseline", **where),
        ]
    (pair,) = statistics(Comparison(META, rows, {})).pairs
    assert (pair.method, pair.wins, pair.losses) == ("zhou.ps.fifo", 0, 6)
    assert pair.ratio == pytest.approx(0.5)
    assert pair.p == pytest.approx(2 / 2**6)


# effects ------------------------------------------------------------------------------------------


def test_effects_equal_least_squares_with_clusters_by_hand(kept: Comparison, found: Statistics, online: str) -> None:
    frame = kept.table[kept.table["method"] == online].reset_index(drop=True)
    x = pd.DataFrame([features(kept.instances[mark]) for mark in frame["fingerprint"]])
    z = np.column_stack([np.ones(len(x)), (x - x.mean()) / x.std()])
    y = frame["gap"].to_numpy()
    beta, *_ = np.linalg.lstsq(z, y, rcond=None)
    left = y - z @ beta
    scores = np.array([z[day].T @ left[day] for day in frame.groupby("p.seed").indices.values()])
    inverse = np.linalg.inv(z.T @ z)
    n, k, g = len(y), z.shape[1], len(scores)
    cover = inverse @ (scores.T @ scores) @ inverse * (g / (g - 1)) * ((n - 1) / (n - k))
    half = student.ppf(0.975, g - 1) * np.sqrt(np.diag(cover))
    mine = found.frame("effects").query("method == @online").set_index("feature")
    assert list(mine.index) == list(x.columns)
    assert mine["slope"].to_numpy() == pytest.approx(beta[1:])
    assert mine["slope_low"].to_numpy() == pytest.approx((beta - half)[1:])
    assert mine["slope_high"].to_numpy() == pytest.approx((beta + half)[1:])
    assert mine["explained"].iloc[0] == pytest.approx(1 - left @ left / ((y - y.mean()) @ (y - y.mean())))


def test_features_of_an_instance_by_hand() -> None:
    found = features(sg.load("gen/20jobs?load=1.0"))
    assert found["load"] == pytest.approx(1.0, rel=0.05)
    assert 0 <= found["gangs"] <= 1
    assert found["heterogeneity"] > 1
    assert features(instance()) == {}  # tenants have no jobs


# growth -------------------------------------------------------------------------------------------


def test_the_exponent_of_a_power_law_is_found() -> None:
    sizes = np.array([20, 50, 100, 200, 500] * 3)
    noise = np.random.default_rng(2).normal(0, 0.1, sizes.size)
    slope, low, high = censored_slope(np.log(sizes), np.log(0.01) + 1.5 * np.log(sizes) + noise, sizes < 0)
    assert low < 1.5 < high
    assert slope == pytest.approx(1.5, abs=0.1)


def test_times_at_the_limit_count_as_at_least_as_long() -> None:
    """Least squares on cut times would say 1.0 instead of 2; the likelihood equals one that scipy maximises."""
    rng = np.random.default_rng(3)
    x = np.log(np.repeat([10, 20, 40, 80, 160, 320], 6))
    true = -6 + 2 * x + rng.normal(0, 0.5, x.size)
    limit = math.log(60)
    y, cut = np.minimum(true, limit), true >= limit
    slope, low, high = censored_slope(x, y, cut)

    def loss(p: Any) -> float:
        mean, scale = p[0] + p[1] * x, math.exp(p[2])
        return -float(np.where(cut, norm.logsf(y, mean, scale), norm.logpdf(y, mean, scale)).sum())

    best = minimize(loss, [0.0, 1.0, 0.0], method="Nelder-Mead", options={"maxiter": 10_000, "xatol": 1e-9})
    assert slope == pytest.approx(best.x[1], rel=1e-3)
    assert low < 2 < high
    assert np.polyfit(x, y, 1)[0] < low


def test_growth_needs_several_sizes() -> None:
    sizes = {f"{n}-{seed}": (n, seed) for n in (2, 4, 8, 16, 32) for seed in range(3)}
    instances = {mark: instance(np.ones((n, 2)) + np.arange(2)) for mark, (n, _) in sizes.items()}
    timed = [
        row("oef.cooperative", mark, 1.0).replace(instance=mark, solve_s=0.01 * n**2 * (1 + 0.1 * seed))
        for mark, (n, seed) in sizes.items()
    ]
    (one,) = statistics(Comparison(META, timed, instances)).growth
    assert (one.smallest, one.largest, one.results, one.censored) == (2, 32, 15, 0)
    assert one.exponent == pytest.approx(2.0)
    failed: dict[str, Any] = {"status": "error", "solve_s": None, "verified": None}
    slowest = [each.replace(**failed) if each.instance.startswith("32") else each for each in timed]
    (one,) = statistics(Comparison(META, slowest, instances)).growth
    assert one.censored == 3
    assert statistics(Comparison(META, timed[:9], instances)).growth == []


def test_growth_needs_several_sizes_at_which_a_method_ended_by_itself() -> None:
    """Two results that ended and three at the limit fit any steep line: there is no exponent, and no crash."""
    instances = {str(n): instance(np.ones((n, 2)) + np.arange(2)) for n in (2, 4, 8, 16, 32, 64)}
    seconds = {"2": 0.01, "4": 0.011, "8": 60.0, "16": 60.0, "32": 60.0, "64": 60.0}
    timed = [row("oef.cooperative", n, 1.0).replace(instance=n, solve_s=s) for n, s in seconds.items()]
    assert statistics(Comparison(META, timed, instances)).growth == []
    straight = [one.replace(solve_s=1e-3 * float(one.instance) ** 2) for one in timed[:4]]
    (found,) = statistics(Comparison(META, [*straight, *timed[4:]], instances)).growth
    assert (found.censored, found.exponent_low <= found.exponent <= found.exponent_high) == (2, True)


def test_tenants_are_the_size_of_instances_of_oef() -> None:
    found = sg.load("gen/oef-4")
    assert PAPERS.get("oef").size(found) == len(found.tenants) != len(found.jobs) == PAPERS.get("hadar").size(found)


def test_growth_needs_no_other_random_numbers(kept: Comparison) -> None:
    """A grid of sizes of one day has an exponent, and no intervals of gaps: one day says nothing of others."""
    sizes = {f"gen/20jobs?jobs={n}&seed=1": n for n in (5, 10, 15, 20)}
    instances = {name: sg.load(name) for name in sizes}
    timed = [row("hadar.online", name, 1.0).replace(instance=name, solve_s=0.01 * n) for name, n in sizes.items()]
    alone = statistics(Comparison(META, timed, instances))
    assert alone.growth[0].exponent == pytest.approx(1.0)
    assert [*alone.intervals, *alone.pairs, *alone.effects] == []


# what people see ----------------------------------------------------------------------------------


def test_few_units_have_no_statistics(kept: Comparison) -> None:
    two = [one for one in kept.rows if re.search(r"seed=[12]\b", one.instance)]
    assert len(two) > 10
    assert not statistics(Comparison(kept.meta, two, kept.instances))
    assert not statistics(Comparison(kept.meta, [], {}))


def test_no_median_is_printed_without_its_interval(kept: Comparison, found: Statistics) -> None:
    shown = blocks(kept)
    summed, paired = (one for one in shown if isinstance(one, Table))
    headers = [column.header for column in summed.columns]
    for name in ("median gap", "mean gap"):
        assert all("[" in line[headers.index(name)].text for line in summed.rows), name
    assert "Paired differences" in paired.caption
    assert [line[0].text for line in paired.rows] == [one.method for one in found.pairs]
    assert "(median at most 4.8 % [3.9 %, 6.3 %])" in str(shown[0])
    captions = [one.caption for group in page(kept).groups for one in group.tables]
    assert any(caption.startswith("Gaps by load") for caption in captions)
    assert any(caption.startswith("What explains the gaps") for caption in captions)


def test_statistics_of_a_run_are_computed_once(kept: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminal, page, LaTeX and files show the same numbers, and no bootstrap runs twice."""
    calls = []
    whole = studies._intervals
    monkeypatch.setattr(studies, "_intervals", lambda *args: calls.append(1) or whole(*args))
    run = Comparison(kept.meta, kept.rows, kept.instances)
    shown, tables = [blocks(run), page(run), blocks(run)], STUDY.tables(run)
    assert all(shown)
    assert "pairs.parquet" in tables
    assert len(calls) == 1


def test_medians_and_intervals_are_about_instances(kept: Comparison) -> None:
    """A solver seed more of some instances changes no number, as their results are the same."""
    twice = [one.replace(seed=1) for one in kept.rows if re.search(r"seed=[1-7]\b", one.instance)]
    before, after = by_method(kept.rows), by_method([*kept.rows, *twice])
    told = [
        [(one.median_gap, one.mean_gap, one.median_gap_low, one.mean_gap_high) for one in some]
        for some in (before, after)
    ]
    assert np.array(told[0], float) == pytest.approx(np.array(told[1], float), nan_ok=True)
    overall = {one.method: one for one in statistics(kept).intervals if not one.factor}
    for one in after:
        if one.median_gap is not None:
            mine = overall[one.method]
            assert (one.median_gap, one.mean_gap) == pytest.approx((mine.median, mine.mean))
            assert (one.median_gap_low, one.mean_gap_high) == pytest.approx((mine.median_low, mine.mean_high))


def test_papers_of_one_run_may_have_one_reference(kept: Comparison) -> None:
    """The page of each paper shows its part of the statistics, also where the reference is of another paper."""
    other = [row("oef.gavel", "f", 1.0)]
    run = Comparison({**kept.meta, "reference": "hadar.srtf"}, [*kept.rows, *other], kept.instances)
    captions = {group.title: [one.caption for one in group.tables] for group in page(run).groups}
    assert len(captions) > 1
    assert sum("Paired differences" in caption for some in captions.values() for caption in some) == 1


def simulated(seeds: int) -> Simulation:
    """Two policies on days of two loads; under the second, a job is left over on the last day."""
    draws, rows = np.random.default_rng(4), []
    for load, seed, policy in itertools.product((0.6, 1.2), range(seeds), ("hadar.online", "hadar.tiresias")):
        name, least_s = f"gen/20jobs?load={load}&seed={seed}", 1000.0 * (1 + seed)
        ratio = 1 + float(draws.random())
        numbers = {"ttd_s": least_s * ratio, "ttd_bound_s": least_s, "ttd_bound_ratio": ratio}
        left = {"never placed": 1} if policy == "hadar.tiresias" and seed == seeds - 1 else {}
        about: dict[str, Any] = {"status": "unfinished" if left else "done", "verified": True, "unfinished": left}
        rows.append(SimulationRow(name, name, policy, numbers=numbers, reference="hadar.online", **about))
    return Simulation({"command": "harness sweep s.toml"}, rows, {one.instance: sg.load(one.instance) for one in rows})


def test_simulations_have_the_same_statistics() -> None:
    run = simulated(6)
    frame = run.table.assign(complete=[not one.unfinished for one in run.rows], gap=run.table["ttd_bound_ratio"] - 1)
    done = frame[frame["complete"]]
    table = statistics(run).frame("intervals").set_index(["method", "value"])
    for (policy, value), mine in table.iterrows():
        part = done[(done["policy"] == policy) & ((done["p.load"].astype(str) == value) | (value == ""))]
        assert (mine["median"], mine["mean"]) == pytest.approx((part["gap"].median(), part["gap"].mean()))
        assert mine["failed"] == mine["results"] - len(part)
    wide = done.pivot_table(index=["p.load", "p.seed"], columns="policy", values="ttd_s").dropna()
    logs = np.log(wide["hadar.online"] / wide["hadar.tiresias"])
    (pair,) = statistics(run).pairs
    assert (pair.method, pair.reference, pair.problem) == ("hadar.tiresias", "hadar.online", "ttd_s")
    assert (pair.cases, pair.units, pair.wins) == (len(logs), 5, (logs > 0).sum())
    assert pair.ratio == pytest.approx(math.exp(logs.mean()))
    assert pair.p == pytest.approx(wilcoxon(logs.groupby("p.seed").mean()).pvalue)


def test_a_simulation_of_many_instances_shows_its_statistics() -> None:
    run = simulated(4)
    captions = [one.caption for one in simulate.blocks(run) if isinstance(one, Table)]
    assert [caption.partition(",")[0] for caption in captions] == ["Gaps to certified bounds", "Paired differences"]
    assert len([one for one in simulate.blocks(run, Selection(top=math.inf)) if isinstance(one, Table)]) == 8
    assert [one.caption.partition(",")[0] for one in simulate.page(run).groups[0].tables][-1] == "Gaps by load"
    assert [name for name in SIMULATIONS.tables(run) if name == "pairs.parquet"]
    few = simulated(2)
    assert len([one for one in simulate.blocks(few) if isinstance(one, Table)]) == 4


def test_files_have_the_statistics(kept: Comparison, found: Statistics, tmp_path: Any) -> None:
    tables = STUDY.tables(kept)
    for name in ("intervals", "pairs", "effects"):
        (tmp_path / name).write_bytes(tables[f"{name}.parquet"])
        read = pd.read_parquet(tmp_path / name)
        pd.testing.assert_frame_equal(read, found.frame(name), check_dtype=False, rtol=1e-8)
    assert "growth.parquet" not in tables
