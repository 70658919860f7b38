"""Laws of arrivals, durations, gangs, failures and GPU types: what they promise, and that defaults stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Command, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from schedgap.instances.catalogue import load, parameters, references
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.generate import FAMILIES, Streams, laws
from schedgap.instances.generate.laws import LawsSpec, TypesSpec
from schedgap.instances.schema.summary import load as fluid_load

HOUR = 3600.0
GENERATED = [ref for ref in references() if ref.startswith("gen/")]
WITH_JOBS = [ref for ref in GENERATED if any(row.name == "arrivals" for row in parameters(ref))]
PRESETS = {"gen/philly", "gen/helios", "gen/itp"}

# The first 16 digits of fingerprints before these laws were parameters.
BEFORE = {
    "gen/20jobs": "625b8206a99c32c4",
    "gen/50jobs": "20242c1c4f5f3cc5",
    "gen/200jobs": "9faab54800d4c857",
    "gen/1000jobs": "cec7ee0411bab3ef",
    "gen/2000jobs": "3c06dddc1b5caf0b",
    "gen/hadar-480": "3ee75666928ede24",
    "gen/hadar-aws": "95bf8557dd79c6eb",
    "gen/hadar-testbed": "2dcc06ea4e3f61f0",
    "gen/oef-4": "6016fef2d9b7a415",
    "gen/oef-20": "afd392a92cafebf0",
    "gen/oef-50": "2353cd4c50cae3fd",
    "gen/oef-classes": "5b54d96ae6f7b99d",
    "gen/oef-scale": "d20c9ca8a3433bfa",
    "gen/synergy-32": "b7d8e4a911a04f22",
    "gen/synergy-32-dynamic": "7424b44cbe596c98",
    "gen/synergy-128": "d57ef5cbf90b6e54",
    "gen/synergy-128-gangs": "9f0aef9e5fdc4204",
    "gen/synergy-512": "bd7bdfdb2ca9ff04",
    "gen/zhou-ps": "9b185ab924a8ea23",
    "gen/zhou-ra": "5f2b1c06ef1e1868",
    "gen/20jobs?utility=sigmoid": "f87c3b422c0ff22f",
    "gen/oef-20?arrivals=poisson": "9c4f61a363987f52",
    "gen/zhou-ra?types=shuffled&workers=3": "ff72b6ba48c92261",
    "gen/zhou-ps?arrivals=poisson": "b51f26fa7ced3728",
    "gen/zhou-ps?arrivals=start": "010d0c678b16a651",
}


@pytest.mark.parametrize("ref", BEFORE)
def test_defaults_draw_what_they_drew(ref: str) -> None:
    assert load(ref).fingerprint[:16] == BEFORE[ref]


def test_every_instance_without_fitted_laws_is_among_them() -> None:
    assert set(GENERATED) - PRESETS <= set(BEFORE)


def spec(**changes: Any) -> LawsSpec:
    return LawsSpec(family="day", **changes)


def arrivals(jobs: int = 20_000, rate: float = 0.01, seed: int = 1, **changes: Any) -> np.ndarray:
    return laws.arrival_times(spec(**changes), jobs, rate, Streams(seed))


# arrivals -----------------------------------------------------------------------------------------

KINDS = ["poisson", "bursty", "diurnal", "weekly", "diurnal-bursty", "weekly-bursty"]


@pytest.mark.parametrize("kind", KINDS)
def test_arrivals_ascend_have_the_rate_and_do_not_depend_on_how_many_follow(kind: str) -> None:
    times = arrivals(arrivals=kind, burst_rate=10.0)
    assert (np.diff(times) >= 0).all()
    assert times[-1] == pytest.approx(2e6, rel=0.08)
    short = arrivals(500, arrivals=kind, burst_rate=10.0)
    assert short == pytest.approx(times[:500], rel=1e-12)


def test_all_jobs_are_there_at_the_start() -> None:
    assert not arrivals(5, arrivals="start").any()
    assert not arrivals(5, arrivals="bursty", rate=0.0).any()


@pytest.mark.parametrize("seed", range(5))
def test_poisson_gaps_are_exponential(seed: int) -> None:
    gaps = np.diff(arrivals(2000, seed=seed))
    assert stats.kstest(gaps, "expon", args=(0, 100)).pvalue > 0.01


def test_bursts_of_rate_one_are_no_bursts() -> None:
    assert arrivals(arrivals="bursty", burst_rate=1.0) == pytest.approx(arrivals(arrivals="poisson"), rel=1e-12)


@settings(max_examples=examples(6))
@given(st.floats(10, 100), st.floats(0.05, 0.3), st.floats(5, 50), st.integers(0, 100))
def test_bursty_gaps_vary_more_than_exponential_ones(ratio: float, share: float, jobs: float, seed: int) -> None:
    law = {"arrivals": "bursty", "burst_rate": ratio, "burst_share": share, "burst_jobs": jobs}
    gaps = np.diff(arrivals(seed=seed, **law))
    assert gaps.std() / gaps.mean() > 1.1
    assert np.diff(arrivals(seed=seed, rate=7.0, **law)) * 700 == pytest.approx(gaps, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("window_h", [0.5, 2.0, 8.0])
def test_counts_of_bursty_arrivals_have_the_dispersion_of_the_process(window_h: float) -> None:
    """The index of dispersion of counts is that of a two-state process (Fischer, Meier-Hellstern, 1993, section 4)."""
    rate, ratio, share, jobs = 0.01, 8.0, 0.2, 100.0
    times = arrivals(400_000, rate, arrivals="bursty", burst_rate=ratio, burst_share=share, burst_jobs=jobs)
    slow = rate / (1 - share + share * ratio)
    burst = jobs / (slow * ratio)
    change = 1 / burst + share / (1 - share) / burst
    window = window_h * HOUR
    counts = np.bincount((times // window).astype(int))[:-1]
    variance = share * (1 - share) * (slow * (ratio - 1)) ** 2
    expected = 1 + 2 * variance / (rate * change) * (1 - (1 - np.exp(-change * window)) / (change * window))
    assert counts.var() / counts.mean() == pytest.approx(expected, rel=0.05)
    assert counts.mean() == pytest.approx(rate * window, rel=0.05)


def test_days_have_the_busiest_hour_that_is_asked_for() -> None:
    """Hours of the day follow a von Mises law."""
    times = arrivals(5000, arrivals="diurnal", peak_ratio=9.0, peak_h=20.0)
    angle = (times / HOUR % 24 - 20) / 24 * 2 * np.pi
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    assert stats.kstest(angle, "vonmises", args=(np.log(9) / 2,)).pvalue > 0.01


@pytest.mark.parametrize("kind", ["weekly", "weekly-bursty"])
def test_weekends_are_quiet(kind: str) -> None:
    times = arrivals(100_000, rate=0.002, arrivals=kind, weekend=0.25, burst_rate=5.0)
    days = np.bincount((times // 86_400).astype(int) % 7, minlength=7)
    assert days[5:].mean() / days[:5].mean() == pytest.approx(0.25, rel=0.1)


# durations ----------------------------------------------------------------------------------------

MIXTURE = {"shares": (1.0, 3.0), "medians": (1.0, 40.0), "sigmas": (0.3, 1.0)}
DURATIONS: list[dict[str, Any]] = [
    {"durations": "log-uniform", "size_spread": 48.0},
    {"durations": "log-normal", "sigma": 1.5, "size_spread": 1e4},
    {"durations": "log-normal", "sigma": 3.0, "size_spread": 20.0},
    {"durations": "pareto", "alpha": 0.7, "size_spread": 1e5},
    {"durations": "pareto", "alpha": 1.0, "size_spread": 1e3},
    {"durations": "mixture", "size_spread": 1e6, **MIXTURE},
    {"durations": "philly"},
    {"durations": "helios"},
    {"durations": "itp"},
]


@pytest.mark.parametrize("changes", DURATIONS)
def test_durations_have_the_mean_and_keep_their_bounds(changes: dict[str, Any]) -> None:
    u = (np.arange(1_000_000) + 0.5) / 1_000_000
    values = laws.durations(spec(**changes), u, 7.0)
    assert values.mean() == pytest.approx(7.0, rel=2e-3)
    assert (np.diff(values) >= 0).all()
    assert values[-1] / values[0] <= changes.get("size_spread", 1e6) * (1 + 1e-9)


def mixture_cdf(x: np.ndarray) -> np.ndarray:
    parts = [w / 4 * stats.lognorm.cdf(x, s, scale=m) for w, m, s in zip(*MIXTURE.values(), strict=True)]
    return np.sum(parts, axis=0)


LAWS: list[tuple[dict[str, Any], Any]] = [
    ({"durations": "log-uniform", "size_spread": 48.0}, stats.loguniform(1, 48).cdf),
    ({"durations": "log-normal", "sigma": 1.5, "size_spread": 1e6}, stats.lognorm(1.5).cdf),
    ({"durations": "pareto", "alpha": 0.7, "size_spread": 1e5}, stats.truncpareto(0.7, 1e5).cdf),
    ({"durations": "mixture", "size_spread": 1e6, **MIXTURE}, mixture_cdf),
]


@pytest.mark.parametrize(("changes", "law"), LAWS)
def test_durations_follow_the_law_that_is_named(changes: dict[str, Any], law: Any) -> None:
    """Durations are those of the law up to their unit, which the mean gives; the smallest or the median is known."""
    u = Streams(5).uniform("sizes", 5000)
    own = spec(**changes)
    at = {"log-uniform": 0.0, "pareto": 0.0, "log-normal": 0.5}.get(changes["durations"])
    scale = laws.durations(own, np.array([at or 0.0]), 1.0)[0]
    if at is None:  # the mixture's median, by its own distribution function
        grid = np.geomspace(1e-3, 1e4, 100_001)
        scale = laws.durations(own, np.array([0.5]), 1.0)[0] / grid[np.searchsorted(mixture_cdf(grid), 0.5)]
    assert stats.kstest(laws.durations(own, u, 1.0) / scale, law).pvalue > 0.01


def test_a_mixture_of_one_is_the_log_normal_law() -> None:
    u = Streams(5).uniform("sizes", 100)
    one = laws.durations(spec(durations="mixture", sigmas=(1.2,), medians=(9.0,)), u, 2.0)
    assert one == pytest.approx(laws.durations(spec(durations="log-normal", sigma=1.2), u, 2.0), rel=1e-12)


# gangs and failures -------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.floats(-0.95, 0.95), st.integers(0, 50))
def test_correlated_gangs_keep_their_shares(correlation: float, seed: int) -> None:
    streams, shares = Streams(seed), [0.7, 0.2, 0.1]
    sizes, u = streams.uniform("sizes", 4000), streams.uniform("gangs", 4000)
    place = np.digitize(laws.gang_quantiles(u, sizes, correlation), np.cumsum(shares[:-1]))
    assert stats.chisquare(np.bincount(place, minlength=3), 4000 * np.array(shares)).pvalue > 1e-4
    ranks = stats.spearmanr(place, sizes)[0]
    assert abs(ranks) < 0.06 or np.sign(ranks) == np.sign(correlation)
    assert abs(correlation) < 0.3 or abs(ranks) > 0.1
    chances = laws.gang_chances(shares, laws.QUANTILES, correlation)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert chances.mean(axis=0) == pytest.approx(shares, abs=1e-3)


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.8])
@pytest.mark.parametrize("failures", [0.0, 0.5])
def test_the_expected_gpu_time_is_that_of_many_jobs(correlation: float, failures: float) -> None:
    own, streams, gangs, shares = spec(sigma=1.0, failures=failures), Streams(2), [1, 8, 64], [0.7, 0.2, 0.1]
    sizes = streams.uniform("sizes", 200_000)
    u = laws.gang_quantiles(streams.uniform("gangs", 200_000), sizes, correlation)
    of = np.array(gangs)[np.digitize(u, np.cumsum(shares[:-1]))]
    hours = laws.durations(own, sizes, 10.0)
    lasting = np.array(laws.with_failures(own, (HOUR * hours).tolist(), of.tolist(), streams)) / HOUR
    expected = laws.gpu_time(own, gangs, shares, correlation, laws.durations(own, laws.QUANTILES, 1.0))
    assert (of * lasting).mean() / 10.0 == pytest.approx(expected, rel=0.02)
    assert (lasting >= hours - 1e-3).all()


def test_failures_cost_half_a_checkpoint_each_on_average() -> None:
    own = spec(failures=2.0, checkpoint_min=30.0)
    lasting = np.array(laws.with_failures(own, [10 * HOUR] * 20_000, [4] * 20_000, Streams(1)))
    per_job = 2.0 * 4 * 10 / 24
    assert (lasting - 10 * HOUR).mean() / 900 == pytest.approx(per_job, rel=0.02)
    never = stats.poisson.pmf(0, per_job)
    assert (lasting == 10 * HOUR).mean() == pytest.approx(never, abs=0.01)
    assert laws.with_failures(spec(), [5.0], [4], Streams(1)) == [5.0]
    some = laws.with_failures(own, [10 * HOUR] * 50, [4] * 50, Streams(1))
    assert some == lasting[:50].tolist()


# types of GPUs ------------------------------------------------------------------------------------

RATES = {"K80": 1.0, "V100": 8.0, "P100": 4.0}


@settings(max_examples=50)
@given(st.floats(0, 10))
def test_types_differ_by_a_power(power: float) -> None:
    order = ["K80", "P100", "V100"]
    own = laws.typed(TypesSpec(heterogeneity=power), RATES, order, Streams(1), "x")
    assert own["V100"] / own["K80"] == pytest.approx(8**power, rel=1e-4)
    assert np.prod(list(own.values())) == pytest.approx(32, rel=1e-4)
    assert laws.typed(TypesSpec(), RATES, order, Streams(1), "x") == RATES


def test_jobs_rank_types_alike_or_not() -> None:
    other = {"K80": 3.0, "V100": 2.0, "P100": 1.0}
    order = laws.slowest_first([RATES, other])
    assert order == ["K80", "P100", "V100"]
    aligned = [laws.typed(TypesSpec(types="aligned"), one, order, Streams(1), "x") for one in (RATES, other)]
    assert all(one["K80"] < one["P100"] < one["V100"] for one in aligned)
    shuffled = [laws.typed(TypesSpec(types="shuffled"), RATES, order, Streams(1), str(i)) for i in range(60)]
    assert {max(one, key=one.__getitem__) for one in shuffled} == set(RATES)
    assert all(sorted(one.values()) == sorted(RATES.values()) for one in shuffled)


# instances ----------------------------------------------------------------------------------------

ALL = (
    "arrivals=weekly-bursty&durations=log-normal&sigma=1.5&size_spread=200&failures=0.2&checkpoint_min=30&seed=3"
    "&heterogeneity=1.5"
)


@pytest.mark.parametrize("ref", WITH_JOBS)
def test_every_family_of_jobs_takes_the_laws(ref: str) -> None:
    """Each family has the parameters of the laws, and draws instances that can be."""
    offered = {row.name: row.value for row in parameters(ref)}
    assert set(LawsSpec.model_fields) - {"family"} <= set(offered)
    asked = "&".join(part for part in ALL.split("&") if part.partition("=")[0] in offered)
    small = {"gen/1000jobs", "gen/2000jobs", "gen/oef-50", "gen/synergy-512"}
    size = "&jobs=60" if ref in small else ""
    rate = "&jobs_per_day=100" if ref == "gen/hadar-480" else "&load=4" if offered.get("load") == "0" else ""
    tail = "&tail_h=1000" if "tail_h" in offered else ""
    drawn = load(f"{ref}?{asked}{size}{rate}{tail}")
    usual = load(f"{ref}?seed=3{size}{tail}")
    assert len(drawn.jobs) == len(usual.jobs)
    gaps = np.diff(sorted(job.submit_s for job in drawn.jobs))
    assert gaps.max() > 0
    assert any("done again after failures" in line for line in drawn.derived)
    assert [job.iterations for job in drawn.jobs] != [job.iterations for job in usual.jobs]


def test_families_without_jobs_or_chance_have_no_laws() -> None:
    without = {ref for ref in GENERATED if ref not in WITH_JOBS}
    assert without == {"gen/oef-classes", "gen/oef-scale", "gen/hadar-aws", "gen/hadar-testbed"}
    assert {id for id in FAMILIES.ids() if issubclass(FAMILIES.get(id).spec, LawsSpec)} >= {"day", "tenants", "zhou"}


@pytest.mark.parametrize(
    "query",
    [
        "durations=log-normal&sigma=1.5&size_spread=500",
        "gang_correlation=0.6",
        "failures=0.5",
        "gang_correlation=-0.4&failures=0.3&durations=pareto",
        "mean_h=1.5&jobs_per_day=0",
        "heterogeneity=2&types=shuffled",
    ],
)
def test_the_load_holds_on_average_under_all_laws(query: str) -> None:
    loads = [fluid_load(load(f"gen/1000jobs?{query}&tail_h=500&seed={seed}")) or 0.0 for seed in range(20)]
    assert abs(np.mean(loads) - 0.9) < 3.5 * np.std(loads) / np.sqrt(20)
    assert np.std(loads) < 0.15


def test_the_mean_duration_may_be_given_and_the_load_sets_the_arrivals() -> None:
    low, high = (load(f"gen/200jobs?mean_h=1.5&jobs_per_day=0&load={one}") for one in (0.5, 1.0))
    assert [job.iterations for job in low.jobs] == [job.iterations for job in high.jobs]
    assert low.jobs[-1].submit_s == pytest.approx(2 * high.jobs[-1].submit_s, rel=1e-4)


def test_gangs_of_64_go_with_long_jobs() -> None:
    gangs = "gangs=1,8,64&gang_probabilities=0.7,0.2,0.1&gang_correlation=0.7"
    jobs = load(f"gen/1000jobs?{gangs}&tail_h=500").jobs
    assert {job.gpus for job in jobs} == {1, 8, 64}
    alone = [job.iterations / (job.gpus * sum(job.rates.values())) for job in jobs]
    assert stats.spearmanr([job.gpus for job in jobs], alone)[0] > 0.35


def test_tight_deadlines_leave_less_slack() -> None:
    usual, tight = load("gen/200jobs").jobs, load("gen/200jobs?tightness=2").jobs
    for a, b in zip(usual, tight, strict=True):
        assert a.deadline_s
        assert b.deadline_s
        assert b.deadline_s - b.submit_s == pytest.approx((a.deadline_s - a.submit_s) / 2, rel=1e-3)
    patient, hasty = (load(f"gen/oef-20?utility=sigmoid&tightness={one}").jobs for one in (1, 4))
    ratios = [a.utility.midpoint_s / b.utility.midpoint_s for a, b in zip(patient, hasty, strict=True)]  # type: ignore[union-attr]
    assert ratios == pytest.approx([4.0] * len(ratios), rel=1e-3)


# Words of errors say which values are right.
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("arrivals=often", "arrivals = \"often\": input should be 'start', 'poisson', 'bursty', 'diurnal', 'weekly', "),
        ("burst_share=1", "burst_share = 1: the share of time in bursts, from 0 to 1, both excluded"),
        ("burst_rate=0.5", "burst_rate = 0.5: the rate in a burst, 1 to 1e6 times that of quiet times"),
        ("peak_h=25", "peak_h = 25: the busiest hour of a day, 0 to 24"),
        ("durations=paper", "durations = \"paper\": input should be 'log-uniform', 'log-normal', 'pareto', "),
        ("shares=1,2", "medians = (1.0,): as many as shares, one or more"),
        ("sigmas=0", "sigmas[0] = 0: standard deviations of logarithms, positive"),
        ("gang_correlation=1", "gang_correlation = 1: the correlation of gangs with durations, from -0.99 to 0.99"),
        ("failures=-1", "failures = -1: failures per day and GPU, 0 to 100"),
        ("heterogeneity=11", "heterogeneity = 11: 0 (all types alike) to 10; 1 is as measured"),
        ("types=equal", "types = \"equal\": input should be 'measured', 'aligned' or 'shuffled'"),
        ("tightness=0", "tightness = 0: 0.01 to 100; patience and slack of deadlines are divided by it"),
        ("mean_h=2", "jobs_per_day = 20 and mean_h = 2: one of them positive, the other 0: the load gives it"),
        ("jobs_per_day=1e-7", "jobs_per_day = 1e-07: jobs per day, at least 1e-6"),
    ],
)
def test_values_that_cannot_be(query: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(f"gen/20jobs?{query}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tightness_without_deadlines_is_refused() -> None:
    with pytest.raises(InstanceError, match="tightness = 2: 1, since these jobs have no deadlines; or utility=sigmoid"):
        load("gen/synergy-32?tightness=2")


def test_the_command_lists_the_parameters(command: Command) -> None:
    shown = command("show", "gen/20jobs?load=1.2&gangs=1,2&gang_probabilities=3,1")
    assert shown.returncode == 0, shown.stderr
    lines = [line.split(maxsplit=2) for line in shown.stdout.splitlines() if line.startswith(" ")]
    found = {line[0]: line[1:] for line in lines if len(line) == 3}
    assert found["load"][0] == "1.2"
    assert found["gangs"][0] == "1,2"
    assert found["arrivals"] == [
        "poisson",
        "one of start, poisson, bursty, diurnal, weekly, diurnal-bursty, weekly-bursty",
    ]
    assert "parameters" not in command("show", "paper/oef-eq1").stdout
