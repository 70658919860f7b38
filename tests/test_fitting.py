"""Fits recover the laws that drew an instance, repeat on the real traces, and are what packaged instances hold."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from scipy import stats
from scipy.linalg import expm

from schedgap.harness.show import plot
from schedgap.instances.canonical import write
from schedgap.instances.catalogue import load
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.fitting import Fit, TwoStates, fit, fit_curve, mixture, samples
from schedgap.instances.generate import Streams, laws
from schedgap.instances.generate.laws import LawsSpec, fitted
from schedgap.instances.importers import import_trace

# the real traces ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_traces(data_dir: Path) -> dict[str, Fit]:
    philly = import_trace("philly", data_dir / "philly" / "philly_first20000.csv")
    itp = import_trace("itp", data_dir / "itp" / "cluster01.csv")
    return {"philly": fit(philly, least_day=0.01), "itp": fit(itp)}


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["philly", "itp"])
def test_the_packaged_instances_hold_what_the_fit_to_the_trace_gives(of_traces: dict[str, Fit], name: str) -> None:
    packaged = fitted(name)
    for key, value in of_traces[name].parameters.items():
        if key == "arrivals" or isinstance(value, str):
            assert packaged[key] == value
        else:
            assert packaged[key] == pytest.approx(value, rel=0.02), key


DISTANCES = {
    "philly": {"durations": 0.051, "gangs": 0.0, "hours of the day": 0.042, "gaps": 0.068},
    "itp": {"durations": 0.049, "gangs": 0.0, "hours of the day": 0.210, "gaps": 0.189},
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["philly", "itp"])
def test_distances_are_those_in_the_docs(of_traces: dict[str, Fit], name: str) -> None:
    assert of_traces[name].distances == pytest.approx(DISTANCES[name], abs=0.002)


@pytest.mark.real_data
def test_distances_are_those_that_scipy_computes_from_a_drawn_sample(of_traces: dict[str, Fit], data_dir: Path) -> None:
    """Two samples, the trace's durations and those of the law, are as far apart as the trace and the law."""
    for name, file, column in (("philly", "philly_first20000.csv", 1), ("itp", "cluster01.csv", 2)):
        lines = (data_dir / name / file).read_text().splitlines()[1:]
        seconds = [float(line.split(",")[column]) for line in lines]
        spec = LawsSpec(family="fit", durations=name)
        drawn = laws.durations(spec, (np.arange(200_000) + 0.5) / 200_000, 3600 * fitted(name)["mean_h"])
        found = stats.ks_2samp(seconds, drawn).statistic
        assert found == pytest.approx(of_traces[name].distances["durations"], abs=0.002)


# Shares of the GPU jobs of Helios that take at most 1, 2, 4, …, 2^21 s, as drawn in compare_philly.pdf of
# S-Lab-System-Group/HeliosArtifact (MIT) for Hu et al., SC 2021.
HELIOS = [
    *(0.03997, 0.04934, 0.0635, 0.07699, 0.10722, 0.1615, 0.24881, 0.37811, 0.56574, 0.67579, 0.75246),
    *(0.841, 0.87534, 0.9075, 0.94364, 0.96265, 0.9777, 0.989, 0.9955, 0.99857, 0.99963, 1.0),
]
# Submissions per hour of the day, all four clusters together, from cluster_diurnal.pdf there.
HELIOS_HOURS = [
    *(328.8, 306.6, 247.8, 217.0, 205.2, 201.9, 198.9, 185.8, 203.4, 296.6, 408.8, 450.1),
    *(435.4, 445.1, 482.5, 519.2, 543.3, 483.8, 399.0, 436.0, 476.2, 445.3, 414.3, 397.7),
]


def test_helios_has_the_laws_of_its_published_figures() -> None:
    packaged = fitted("helios")
    parameters, found = fit_curve([2.0**i for i in range(22)], HELIOS, parts=2)
    for key, value in parameters.items():
        assert packaged[key] == (value if isinstance(value, str) else pytest.approx(value, rel=0.02)), key
    assert found == pytest.approx(0.025, abs=0.002)
    angle = np.repeat((np.arange(24) + 0.5) / 12 * np.pi, np.rint(HELIOS_HOURS).astype(int))
    kappa, peak, _ = stats.vonmises.fit((angle + np.pi) % (2 * np.pi) - np.pi, fscale=1)
    assert packaged["peak_ratio"] == pytest.approx(math.exp(2 * kappa), rel=0.01)
    assert packaged["peak_h"] == pytest.approx(peak / np.pi * 12 % 24, abs=0.02)


def test_the_median_of_helios_is_the_published_one() -> None:
    """Hu et al. print a median of 206 s for GPU jobs."""
    own = fitted("helios")
    law = laws.Mixture(own["size_spread"], own["shares"], own["medians"], own["sigmas"])
    assert math.exp(np.interp(0.5, law.below, law.x)) == pytest.approx(206, rel=0.1)


# laws that are known ------------------------------------------------------------------------------


def test_a_fit_recovers_the_laws_that_drew_the_jobs() -> None:
    query = (
        "arrivals=bursty&burst_rate=30&burst_share=0.1&burst_jobs=20&durations=log-normal&sigma=1.2&size_spread=1e5"
        "&gangs=1,4,16&gang_probabilities=0.6,0.3,0.1&gang_correlation=0.5&models=x&tail_h=3000"
    ).replace("&models=x", "")
    instance = load(f"gen/1000jobs?jobs=4000&jobs_per_day=1000&servers_per_type=25&{query}")
    mean = {job.id: sum(job.rates.values()) / len(job.rates) for job in instance.jobs}
    jobs = [j.model_copy(update={"duration_s": j.iterations / (j.gpus * mean[j.id])}) for j in instance.jobs]
    found = fit(instance.model_copy(update={"jobs": tuple(jobs)}))
    own = found.parameters
    assert own["arrivals"] == "bursty"
    assert own["burst_rate"] == pytest.approx(30, rel=0.2)
    assert own["burst_share"] == pytest.approx(0.1, rel=0.2)
    assert own["burst_jobs"] == pytest.approx(20, rel=0.2)
    assert own["gangs"] == [1, 4, 16]
    assert own["gang_probabilities"] == pytest.approx([0.6, 0.3, 0.1], abs=0.03)
    assert own["gang_correlation"] == pytest.approx(0.5, abs=0.06)
    assert own["shares"] == [1.0]
    assert own["sigmas"] == pytest.approx([1.2], rel=0.05)
    assert max(found.distances[name] for name in ("durations", "gangs", "gaps")) < 0.03
    seen, law = found.dispersion[1.0]
    assert seen == pytest.approx(law, rel=0.4)


def test_days_and_weekends_are_recovered() -> None:
    spec = LawsSpec(family="fit", arrivals="weekly-bursty", peak_ratio=9.0, peak_h=20.0, weekend=0.3, burst_rate=5.0)
    times = laws.arrival_times(spec, 12_000, 0.003, Streams(4))
    base = load("gen/20jobs").jobs[0]
    own = {"deadline_s": None, "duration_s": 60.0}
    jobs = [base.model_copy(update={"id": f"{i}", "submit_s": t, **own}) for i, t in enumerate(times.tolist())]
    jobs[0] = jobs[0].model_copy(update={"duration_s": 61.0})
    monday = 1_600_041_600.0  # 14 September 2020
    content = {"horizon": None, "began_s": monday, "jobs": tuple(jobs)}
    found = fit(load("gen/20jobs").model_copy(update=content)).parameters
    assert found["arrivals"] == "weekly-bursty"
    assert found["peak_ratio"] == pytest.approx(9, rel=0.1)
    assert found["peak_h"] == pytest.approx(20, abs=0.3)
    assert found["weekend"] == pytest.approx(0.3, rel=0.15)


@pytest.mark.parametrize("seed", range(3))
def test_hours_that_differ_by_chance_are_no_law(seed: int) -> None:
    times = laws.arrival_times(LawsSpec(family="fit", arrivals="bursty", burst_rate=50.0), 2000, 0.002, Streams(seed))
    base = load("gen/20jobs").jobs[0]
    own = [{"id": f"{i}", "submit_s": t, "deadline_s": None} for i, t in enumerate(times.tolist())]
    jobs = tuple(base.model_copy(update={**one, "duration_s": 60.0 + i}) for i, one in enumerate(own))
    found = fit(load("gen/20jobs").model_copy(update={"horizon": None, "jobs": jobs})).parameters
    assert found["arrivals"] == "bursty"


PROCESS = TwoStates(quiet=0.2, burst=5.0, begins=0.03, ends=0.4)


def test_the_likelihood_is_that_of_matrix_exponentials() -> None:
    gaps = np.array([0.1, 3.0, 0.02, 0.5, 12.0])
    leave = np.array([[-PROCESS.begins, PROCESS.begins], [PROCESS.ends, -PROCESS.ends]])
    rates = np.diag([PROCESS.quiet, PROCESS.burst])
    share = np.array([1 - PROCESS.share, PROCESS.share])
    state = share @ rates / (share @ rates).sum()
    for gap in gaps:
        state = state @ expm((leave - rates) * gap) @ rates
    assert PROCESS.log_likelihood(gaps) == pytest.approx(math.log(state.sum()), rel=1e-9)


def test_gaps_of_the_process_have_its_law() -> None:
    rate = (1 - PROCESS.share) * PROCESS.quiet + PROCESS.share * PROCESS.burst
    spec: Any = LawsSpec(family="fit", arrivals="bursty", **PROCESS.parameters)
    gaps = np.diff(laws.arrival_times(spec, 100_000, rate, Streams(1)))
    assert stats.ks_1samp(gaps, PROCESS.gap_cdf).statistic < 0.02


def test_two_parts_of_a_mixture_are_found() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, 0.5, 3000), rng.normal(6, 1.0, 7000)])
    weight, mean, width = mixture(x, 2)
    assert weight == pytest.approx([0.3, 0.7], abs=0.02)
    assert mean == pytest.approx([0, 6], abs=0.1)
    assert width == pytest.approx([0.5, 1.0], rel=0.05)


@pytest.mark.parametrize("marginal", ["durations", "gaps"])
def test_a_figure_compares_jobs_and_laws(marginal: str) -> None:
    instance = load("gen/200jobs?arrivals=bursty")
    found = fit(instance)
    observed, drawn = samples(instance, found)[marginal]
    assert observed.size == drawn.size
    assert stats.ks_2samp(observed, drawn).statistic < 0.15
    ax = plot.laws(instance, found, marginal)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [instance.name, "fitted law"]
    lines = sorted((np.asarray(line.get_xdata(), float)[1:] for line in ax.get_lines()), key=lambda x: float(x.sum()))
    for line, values in zip(lines, sorted((observed, drawn), key=lambda x: float(x.sum())), strict=True):
        assert line * 3600 == pytest.approx(np.sort(values), rel=1e-9)
    with pytest.raises(UsageError, match="marginal = 'gangs': durations or gaps"):
        plot.laws(instance, found, "gangs")


# the command --------------------------------------------------------------------------------------


def test_the_command_writes_a_spec_that_can_be_loaded(command: Command, tmp_path: Path) -> None:
    write(load("gen/200jobs?arrivals=bursty"), tmp_path / "mine.json")
    done = command("fit", "mine.json", "-o", "law.toml")
    assert done.returncode == 0, done.stderr
    table = tomllib.loads((tmp_path / "law.toml").read_text())
    assert table["title"] == "200 jobs with laws fitted to gen/200jobs?arrivals=bursty"
    drawn = load(tmp_path / "law.toml", {"jobs": 30})
    assert len(drawn.jobs) == 30
    printed = command("fit", "mine.json")
    assert printed.stdout == (tmp_path / "law.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gen/20jobs"], "gen/20jobs: 20 jobs with a duration; 50 or more can be fitted"),
        (
            ["gen/200jobs?jobs_per_day=20", "--least-day", "0.9"],
            "0 jobs arrive on days with 0.9 of all jobs; 50 or more",
        ),
        (["gen/200jobs", "-o", "law.json"], "law.json: a spec file must end in .toml"),
        (["gen/200job"], "unknown instance 'gen/200job'; did you mean"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_line(command: Command, arguments: list[str], message: str) -> None:
    done = command("fit", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_jobs_that_are_all_there_have_no_gaps() -> None:
    found = fit(load("gen/oef-20"))
    assert found.parameters["arrivals"] == "start"
    assert set(found.distances) == {"durations", "gangs"}


def test_equal_durations_are_refused() -> None:
    instance = load("gen/200jobs")
    jobs = tuple(job.model_copy(update={"duration_s": 60.0}) for job in instance.jobs)
    with pytest.raises(InstanceError, match="all jobs take 60 s; nothing to fit"):
        fit(instance.model_copy(update={"jobs": jobs}))
