"""Optimistic profiling: which levels it measures, how wrong its tables are, and what it prints."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from synergy_cases import resting

from schedgap import instances, models
from schedgap.harness.check.history import check
from schedgap.harness.show.page.instance import profiled as shown
from schedgap.harness.show.page.instance import words
from schedgap.heuristics.simulator import POLICIES, Rules, simulate
from schedgap.heuristics.synergy import profiling as module
from schedgap.heuristics.synergy.profiling import (
    Profiling,
    believed,
    estimated,
    fetching,
    profiled,
    profiling,
    relative_error,
    search,
)
from schedgap.instances.arrays import Array
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.model_catalogue import MODELS
from schedgap.instances.schema import (
    Cluster,
    GpuType,
    Instance,
    Job,
    MatrixSensitivity,
    PipelineSensitivity,
    Sensitivity,
    ServerGroup,
)
from schedgap.instances.views import synergy
from schedgap.instances.views.synergy import SynergyView

TABLE_4 = tuple(name for name, m in MODELS.items() if m.suite == "synergy" and m.family not in ("BERT", "VAE"))
UNLIMITED = np.full(1, np.inf)


def one(sensitivity: Sensitivity, gpus: int = 1, speed: float = 1.0, cpus: float = 24.0) -> SynergyView:
    """Return a view of one job on the paper's servers."""
    group = ServerGroup(name="s", count=2, gpu_type="V100", gpus=8, cpus=cpus, memory_gb=500.0)
    job = Job(id="j", gpus=gpus, epochs=1000, rates={"V100": speed}, sensitivity=sensitivity)
    cluster = Cluster(gpu_types=(GpuType(name="V100"),), servers=(group,))
    return synergy.view(Instance(name="t", cluster=cluster, jobs=(job,)))


def pipeline(name: str, gpus: int = 1) -> SynergyView:
    model = MODELS[name]
    return one(model.pipeline.of_gang(gpus), gpus, model.rates["V100"] * model.pipeline.compute)


def matrix(name: str, gpus: int = 1) -> SynergyView:
    sensitivity = MODELS[name].sensitivity
    assert sensitivity is not None
    return one(sensitivity, gpus, MODELS[name].rates["V100"])


def measured(rates: list[float]) -> list[int]:
    return sorted(search(rates.__getitem__, len(rates)))


# the search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "points"),
    [
        ([7.0], [0]),
        ([1.0, 2.0], [0, 1]),
        ([1.0] * 24, [0, 1, 2, 5, 11, 23]),
        ([float(min(c, 9)) for c in range(1, 25)], [0, 5, 6, 7, 8, 11, 23]),
        ([float(c) for c in range(1, 25)], [0, 11, 17, 20, 21, 23]),
        ([5.0, 4.0, 3.0, 2.0, 1.0], [0, 1, 2, 4]),
        ([0.0] * 5, [0, 1, 2, 4]),
        # A gain of exactly the threshold is not "less than" the threshold.
        ([7.0, 8.0, 10.0, 10.5, 11.0], [0, 2, 3, 4]),
    ],
)
def test_points_of_the_binary_search(rates: list[float], points: list[int]) -> None:
    assert measured(rates) == points


@given(st.integers(1, 200), st.floats(0.001, 1), st.randoms(use_true_random=False))
def test_the_search_takes_few_points_on_any_table(levels: int, threshold: float, random: object) -> None:
    rng = np.random.default_rng(levels)
    rates = rng.random(levels).tolist()
    calls: list[int] = []

    def measure(level: int) -> float:
        calls.append(level)
        return float(rates[level])

    found = search(measure, levels, threshold)
    assert len(calls) == len(set(calls)) == len(found)
    assert {0, levels - 1} <= set(found)
    assert len(found) <= 2 + np.ceil(np.log2(levels)) if levels > 1 else len(found) == 1


@given(st.integers(2, 48), st.floats(1, 60), st.floats(0.01, 0.5))
def test_a_skipped_half_costs_less_than_the_threshold(levels: int, knee: float, threshold: float) -> None:
    """On a table that rises and then is flat, estimates are never too high, and too low by at most the threshold."""
    cpus = np.arange(1.0, levels + 1)
    true = np.minimum(cpus, knee)
    found, points = estimated(cpus, true.tolist().__getitem__, UNLIMITED, threshold)
    assert len(points) <= 2 + np.ceil(np.log2(levels))
    assert (found[:, 0] <= true * (1 + 1e-12)).all()
    assert relative_error(found[:, 0], true).max() <= threshold


def test_errors_are_relative_to_the_truth() -> None:
    found = relative_error(np.array([1.5, 0.0, 1.0, 0.5]), np.array([1.0, 0.0, 0.0, 1.0]))
    assert found.tolist() == [0.5, 0, np.inf, 0.5]


# tables of the model: the paper's claim -----------------------------------------------------------


@pytest.mark.parametrize("name", TABLE_4)
@pytest.mark.parametrize("gpus", [1, 8])
def test_estimates_of_pipelines_are_within_3_percent_from_a_third_of_the_points(name: str, gpus: int) -> None:
    """A third of the levels gives tables of pipelines within 3 %, as published for ResNet18 (8 of 24).

    Only M5 is 3.3 % off, at the 8 CPUs of one GPU at which it saturates: its last 7 % are less than the threshold.
    """
    found = profiling(pipeline(name, gpus))
    assert found.levels[0, 0] == 24
    assert found.points[0, 0] <= 8
    assert found.seconds[0, 0] == 60 * found.points[0, 0]
    published = 0.03
    assert found.error.max() <= (0.0334 if (name, gpus) == ("Synergy M5", 1) else published)


def test_the_one_above_3_percent() -> None:
    found = profiling(pipeline("Synergy M5"))
    assert found.error.max() == pytest.approx(1 / 30, rel=1e-3)


@pytest.mark.parametrize("gpus", [1, 8, 16])
def test_the_memory_axis_follows_from_the_cache(gpus: int) -> None:
    """With all CPU levels measured, tables are exact, although rates were measured with all memory only."""
    view = pipeline("Synergy M5", gpus)
    found = profiling(view, threshold=0.0)
    true = view.profiles.rate[0, 0]
    cached = np.minimum(true[:, -1:], fetching(view)[0, 0][None, :])
    assert cached == pytest.approx(true)
    assert found.error.max() < 1e-5
    assert true[:, 0].max() < true[:, -1].max()


@pytest.mark.parametrize("name", TABLE_4)
def test_schedulers_can_use_estimated_tables(name: str) -> None:
    view = pipeline(name)
    found = profiling(view).profiles
    assert found.rate.shape == view.profiles.rate.shape
    assert found.cpus is view.profiles.cpus
    share = (np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([3.0]), np.array([50.0]))
    assert found.rate_of(*share) == pytest.approx(view.profiles.rate_of(*share), rel=0.04)


def test_the_process_has_to_fit() -> None:
    given = PipelineSensitivity(
        prep_rate_per_cpu=1.0, item_mb_per_iteration=1.0, dataset_gb=10.0, process_memory_gb=120.0, storage_mb_per_s=1e3
    )
    found = profiling(one(given, 4))
    assert (found.profiles.rate[0, 0, :, :2] == 0).all()
    assert (found.profiles.rate[0, 0, :, 2:] > 0).all()
    assert found.error.max() == 0


# measured matrices --------------------------------------------------------------------------------

MEASURED = {
    "Synergy ShuffleNetv2": (0.085, 0.085),
    "Synergy AlexNet": (0.085, 0.085),
    "Synergy ResNet18": (0.084, 0.084),
    "Synergy MobileNetv2": (0.049, 0.049),
    "Synergy ResNet50": (0.055, 0.055),
    "Synergy GNMT": (0.0, 0.0),
    "Synergy LSTM": (0.0, 0.0),
    "Synergy Transformer-XL": (0.0, 0.0),
    "Synergy M5": (0.15, 0.305),
    "Synergy DeepSpeech": (0.0, 0.0),
}
"""Largest errors of estimated tables by model: with all memory, and from 62.5 GB on."""


@pytest.mark.parametrize("name", TABLE_4)
def test_estimates_of_measured_matrices(name: str) -> None:
    """Profiling measures five of nine levels of these matrices, with errors as in :data:`MEASURED`.

    At 20.83 GB, where some matrices fall to 0.1, the process of the fitted pipeline does not fit at all.
    """
    found = profiling(matrix(name))
    assert (found.points[0, 0], found.levels[0, 0]) == (5, 9)
    with_all, usual = MEASURED[name]
    assert found.full_memory_error[0, 0] == pytest.approx(with_all, abs=1e-3)
    assert found.error[0, 0, 1:].max() == pytest.approx(usual, abs=1e-3)
    crawls = (np.array(MODELS[name].sensitivity.progress)[:, 0] == 0.1).all()  # type: ignore[union-attr]
    assert found.error[0, 0, 0] == (1.0 if crawls else 0.0)


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_points_are_within_what_a_gang_may_have(gpus: int) -> None:
    view = matrix("Synergy AlexNet", gpus)
    found = profiling(view)
    assert found.levels[0, 0] == (view.profiles.cpus[0] <= 24).sum()
    assert view.profiles.memory_gb[0, found.most[0, 0]] <= 500
    # Above the limit the table repeats its last rate.
    top = found.levels[0, 0] - 1
    assert (found.profiles.rate[0, 0, top:] == found.profiles.rate[0, 0, top]).all()


def test_an_unknown_matrix_has_no_memory_model() -> None:
    given = MatrixSensitivity(
        cpus_per_gpu=(1.0, 2.0), memory_gb_per_gpu=(10.0, 20.0), progress=((0.2, 1.0), (0.3, 1.5))
    )
    view = one(given)
    assert np.isinf(fetching(view)).all()
    found = profiling(view)
    assert found.profiles.rate[0, 0].tolist() == [[1.0, 1.0], [1.5, 1.5]]
    assert found.error[0, 0].tolist() == pytest.approx([4.0, 0.0])


# edges --------------------------------------------------------------------------------------------


def test_one_level_of_cpus() -> None:
    given = MatrixSensitivity(cpus_per_gpu=(1.0,), memory_gb_per_gpu=(50.0,), progress=((0.7,),))
    found = profiling(one(given))
    assert (found.points[0, 0], found.levels[0, 0], found.error.max()) == (1, 1, 0)


def test_a_table_that_is_not_monotone() -> None:
    given = MatrixSensitivity(
        cpus_per_gpu=(1.0, 2.0, 3.0, 4.0, 5.0),
        memory_gb_per_gpu=(50.0,),
        progress=((1.0,), (3.0,), (2.0,), (5.0,), (0.0,)),
    )
    found = profiling(one(given))
    assert found.profiles.rate[0, 0, :, 0].tolist() == pytest.approx([1, 3, 2, 1, 0])
    assert found.error[0, 0, 0] == pytest.approx(0.8)


def test_a_type_without_servers_costs_nothing() -> None:
    view = pipeline("Synergy AlexNet")
    found = profiled(view.profiles, fetching(view), np.zeros_like(view.needs.limit))
    assert found.points.tolist() == found.levels.tolist() == [[0]]
    assert found.profiles.rate.max() == found.error.max() == 0


def on(view: SynergyView, change: Callable[[Array], Array]) -> Profiling:
    return profiling(replace(view, profiles=view.profiles._replace(rate=change(view.profiles.rate))))


@given(st.floats(0.001, 1000))
def test_units_of_work_do_not_matter(factor: float) -> None:
    view = matrix("Synergy M5")
    assert on(view, lambda rate: rate * factor).points.tolist() == profiling(view).points.tolist()


# what is shown ------------------------------------------------------------------------------------


def printed(reference: str) -> str:
    out = io.StringIO()
    Console(file=out, width=160).print(words(instances.load(reference)))
    return out.getvalue()


def test_the_section_of_harness_show() -> None:
    ((title, text),) = shown(instances.load("gen/synergy-32"))
    lines = text.splitlines()
    assert title == "profiling"
    assert lines[0] == (
        "10 kinds of jobs, models: 10; 50 of 90 levels of CPUs measured, in 5 minutes per kind and GPU type"
    )
    assert "Synergy GNMT: estimates within 0.0% with all memory and with less" in lines
    assert "Synergy AlexNet: estimates within 8.5% with all memory, 100.0% with 20.83 GB per GPU" in lines
    assert len(lines) == 11
    assert lines[0] in printed("gen/synergy-32")


def test_many_models_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LISTED", 3)
    ((_, text),) = shown(instances.load("gen/synergy-32?sensitivity=pipeline"))
    assert text.splitlines()[-1] == "and 7 more models"
    assert " in 6 to 7 minutes " in text


def test_instances_without_sensitivities_have_no_section() -> None:
    assert shown(instances.load("paper/oef-eq1")) == []
    assert "profiling" not in printed("gen/hadar-aws")


# what it does to a scheduler ----------------------------------------------------------------------


def mean_s(reference: str, policy: str) -> float:
    """Simulate a policy, check the history by the true tables, and return the mean completion time."""
    instance, spec = instances.load(reference), POLICIES.get(f"synergy.{policy}")
    true, rules = synergy.view(instance), spec.rules(Rules())
    decide = spec.build(instance, models.oracle)
    trace = simulate(true.workload, true.servers, decide, profiles=true.profiles, sensitive=True)
    assert check(instance, trace, rules).violations == ()
    return float(trace.jct_s.mean())


@pytest.mark.parametrize(("sensitivity", "most"), [("pipeline", 1.03), ("matrix", 1.15)])
def test_a_scheduler_that_decides_by_profiles_loses_little(sensitivity: str, most: float) -> None:
    """A scheduler that decides by profiled tables loses little, while jobs advance by the true tables.

    Measured matrices cost more: the fitted memory of M5 is up to 30 % off.
    """
    reference = f"gen/synergy-32?jobs=60&sensitivity={sensitivity}"
    true_s, measured_s = (mean_s(reference, f"tune.fifo?profiles={source}") for source in ("true", "measured"))
    assert true_s != measured_s <= most * true_s


@pytest.mark.parametrize("name", ["tune.srtf", "refill.las", "greedy.ftf", "tetris.static", "drf.tune", "opt.fifo"])
def test_noise_changes_decisions_and_jobs_advance_by_the_truth(name: str) -> None:
    """Noise changes completion times; the same seed gives the same errors, another seed others."""
    drawn = [
        mean_s("gen/synergy-32?jobs=40", f"{name}?{noise}")
        for noise in ("noise=0", "noise=0.3", "noise=0.3&noise_seed=0", "noise=0.3&noise_seed=1")
    ]
    assert drawn[1] == drawn[2]
    assert len(set(drawn)) == 3


def test_proportional_allocation_needs_no_profiles() -> None:
    with pytest.raises(UsageError, match="it has no parameters"):
        POLICIES.get("synergy.proportional.fifo?profiles=measured")


def test_a_job_that_was_estimated_not_to_run_runs() -> None:
    """A job keeps its true rate where its profile says that storage delivers nothing."""
    given = {"cpus_per_gpu": (1.0, 3.0), "memory_gb_per_gpu": (20.0, 60.0), "progress": ((1.0, 1.0), (2.0, 2.0))}
    seen = one(MatrixSensitivity(**given))
    estimate = profiled(seen.profiles, np.zeros((1, 1, 2)), seen.needs.limit)
    assert estimate.profiles.rate[0, 0, :, 0].tolist() == [0.0, 0.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "profiling", lambda _: estimate)
        assert np.array_equal(believed(seen, "measured").rate, seen.profiles.rate)


@settings(max_examples=20)
@given(case=resting(jobs=4), noise=st.floats(0.0, 0.9), source=st.sampled_from(["true", "measured"]))
def test_what_is_believed_runs_where_the_truth_does(case: Instance, noise: float, source: str) -> None:
    try:
        seen = synergy.view(case)
    except NotApplicableError:
        return
    rate, true = believed(seen, source, noise).rate, seen.profiles.rate
    assert ((rate > 0) == (true > 0)).all()
    if source == "true":
        assert (np.abs(rate - true) <= noise * true * (1 + 1e-12)).all()
    assert synergy.view(case, tables=seen.profiles._replace(rate=rate)).hopeless == seen.hopeless
