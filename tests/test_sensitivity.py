"""Rates by CPUs and memory: what the pipeline model ensures, published facts about ten models, and how well it fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedgap.instances.arrays import Array
from schedgap.instances.errors import NotApplicableError
from schedgap.instances.model_catalogue import MODELS, CatalogueModel, find
from schedgap.instances.schema import (
    Cluster,
    GpuType,
    Instance,
    Job,
    MatrixSensitivity,
    PipelineSensitivity,
    ServerGroup,
)
from schedgap.instances.sensitivity import MAX_LEVELS, MEMORY_UNIT_GB, Profiles, pipeline_rate, profiles
from schedgap.instances.workload import servers, workload

TABLE_4 = tuple(name for name, m in MODELS.items() if m.suite == "synergy" and m.family not in ("BERT", "VAE"))

positive = st.floats(0.01, 100.0)
pipelines = st.builds(
    PipelineSensitivity,
    prep_rate_per_cpu=positive,
    item_mb_per_iteration=st.floats(0, 500),
    dataset_gb=st.floats(0.01, 2000),
    process_memory_gb=st.floats(0, 60),
    storage_mb_per_s=st.floats(1, 2000),
)
amounts = st.lists(st.floats(0.0, 600.0), min_size=2, max_size=12).map(lambda x: np.array(sorted(x)))


def rate(given: PipelineSensitivity, gpu_rate: float, cpus: Any, memory_gb: Any) -> Array:
    return pipeline_rate(given, np.asarray(gpu_rate), np.asarray(cpus, float), np.asarray(memory_gb, float))


def tables(*jobs: Job, gpus: int = 8, cpus: float = 24.0, memory_gb: float = 500.0, count: int = 2) -> Profiles:
    group = ServerGroup(name="s", count=count, gpu_type="V100", gpus=gpus, cpus=cpus, memory_gb=memory_gb)
    instance = Instance(name="t", cluster=Cluster(gpu_types=(GpuType(name="V100"),), servers=(group,)), jobs=jobs)
    return profiles(instance, workload(instance), servers(instance))


def job(sensitivity: Any, gpus: int = 1, speed: float = 1.0, name: str = "j") -> Job:
    return Job(id=name, gpus=gpus, epochs=1, rates={"V100": speed}, sensitivity=sensitivity)


def look_up(table: Profiles, cpus: Any, memory_gb: Any, kind: int = 0) -> Array:
    c, m = np.broadcast_arrays(np.asarray(cpus, float).ravel(), np.asarray(memory_gb, float).ravel())
    return table.rate_of(np.full(c.shape, kind), np.zeros(c.shape, np.int64), c, m)


# the pipeline -------------------------------------------------------------------------------------


@given(pipelines, positive, amounts, amounts)
def test_more_never_hurts(given: PipelineSensitivity, gpu_rate: float, cpus: Array, memory_gb: Array) -> None:
    found = rate(given, gpu_rate, cpus[:, None], memory_gb[None, :])
    assert (np.diff(found, axis=0) >= 0).all()
    assert (np.diff(found, axis=1) >= 0).all()


@given(pipelines, positive, st.floats(0.1, 200), st.floats(0, 3000))
def test_the_least_stage_is_the_pace(
    given: PipelineSensitivity, gpu_rate: float, cpus: float, memory_gb: float
) -> None:
    found = float(rate(given, gpu_rate, cpus, memory_gb))
    prepared = cpus * given.prep_rate_per_cpu
    if memory_gb < given.process_memory_gb * (1 - 1e-6):
        assert found == 0
        return
    assert found <= min(gpu_rate, prepared)
    missed = given.item_mb_per_iteration * max(0.0, 1 - (memory_gb - given.process_memory_gb) / given.dataset_gb)
    fetched = given.storage_mb_per_s / missed if missed > 0 else np.inf
    assert found == pytest.approx(min(gpu_rate, prepared, fetched), rel=1e-6)


@given(pipelines, positive)
def test_nothing_is_fetched_once_all_is_cached(given: PipelineSensitivity, gpu_rate: float) -> None:
    whole = given.process_memory_gb + given.dataset_gb * (1 + 1e-9)
    assert float(rate(given, gpu_rate, 1e9, whole)) == gpu_rate
    assert float(rate(given, gpu_rate, 0.0, whole)) == 0


def test_a_pipeline_without_data_waits_for_its_cpus_alone() -> None:
    given = PipelineSensitivity(
        prep_rate_per_cpu=2.0, item_mb_per_iteration=0.0, dataset_gb=1.0, process_memory_gb=0.0, storage_mb_per_s=1.0
    )
    assert rate(given, 5.0, [1, 2, 3], 0.0).tolist() == [2, 4, 5]


# tables -------------------------------------------------------------------------------------------

matrices = st.integers(1, 4).flatmap(
    lambda a: st.integers(1, 4).flatmap(
        lambda b: st.builds(
            MatrixSensitivity,
            cpus_per_gpu=st.just(tuple(float(x + 1) for x in range(a))),
            memory_gb_per_gpu=st.just(tuple(10.0 * (x + 1) for x in range(b))),
            progress=st.lists(st.lists(st.floats(0, 4), min_size=b, max_size=b).map(tuple), min_size=a, max_size=a).map(
                tuple
            ),
        )
    )
)


@given(matrices, st.integers(1, 8), positive)
def test_cells_of_a_matrix_are_per_gpu(given: MatrixSensitivity, gpus: int, speed: float) -> None:
    table = tables(job(given, gpus, speed))
    for a, cpus in enumerate(given.cpus_per_gpu):
        for b, memory_gb in enumerate(given.memory_gb_per_gpu):
            wanted = gpus * speed * given.progress[a][b]
            assert look_up(table, gpus * cpus, gpus * memory_gb).tolist() == pytest.approx([wanted])


@given(matrices, st.integers(1, 8), st.floats(0, 50), st.floats(0, 500))
def test_rates_are_floored_to_the_levels(given: MatrixSensitivity, gpus: int, cpus: float, memory_gb: float) -> None:
    table = tables(job(given, gpus))
    a = sum(gpus * x <= cpus * (1 + 1e-9) for x in given.cpus_per_gpu) - 1
    b = sum(gpus * x <= memory_gb * (1 + 1e-9) for x in given.memory_gb_per_gpu) - 1
    wanted = gpus * given.progress[a][b] if min(a, b) >= 0 else 0.0
    assert look_up(table, cpus, memory_gb).tolist() == pytest.approx([wanted])


@given(pipelines, st.integers(1, 16), st.floats(0, 60), st.floats(0, 1100))
def test_a_pipeline_has_whole_cpus_and_units_of_memory(
    given: PipelineSensitivity, gpus: int, cpus: float, memory_gb: float
) -> None:
    table = tables(job(given, gpus))
    span = 2 if gpus > 8 else 1
    c = min(np.floor(cpus * (1 + 1e-9) / span), 24) * span
    m = min(np.floor(memory_gb * (1 + 1e-9) / (MEMORY_UNIT_GB * span)), 10) * MEMORY_UNIT_GB * span
    wanted = float(rate(given, gpus, c, m)) if min(c, m) > 0 else 0.0
    assert look_up(table, cpus, memory_gb).tolist() == pytest.approx([wanted])


@pytest.mark.parametrize(("gpus", "span"), [(1, 1), (8, 1), (9, 2), (16, 2)])
def test_a_gang_has_at_most_as_many_servers_as_its_gpus_need(gpus: int, span: int) -> None:
    given = MODELS["Synergy AlexNet"].pipeline.of_gang(gpus)
    table = tables(job(given, gpus))
    assert (table.cpus[0, 0], table.cpus[0, -1]) == (span, span * 24)
    assert (table.memory_gb[0, 0], table.memory_gb[0, -1]) == (span * 50, span * 500)


def test_levels_of_large_servers_are_multiples_of_the_units() -> None:
    given = MODELS["Synergy AlexNet"].pipeline.sensitivity
    table = tables(job(given), cpus=100.0, memory_gb=4000.0)
    assert table.cpus.shape[1] <= MAX_LEVELS[0]
    assert table.memory_gb.shape[1] <= MAX_LEVELS[1]
    assert np.diff(table.cpus[0]).tolist() == [3] * (table.cpus.shape[1] - 1)
    assert set(np.diff(table.memory_gb[0]).tolist()) == {150}


def test_jobs_of_a_kind_share_a_table_and_shorter_tables_are_padded() -> None:
    matrix, flat = MODELS["Synergy AlexNet"].sensitivity, MODELS["Synergy GNMT"].pipeline.sensitivity
    table = tables(job(matrix, name="a"), job(flat, name="b"), job(matrix, name="c"), job(matrix, 2, name="d"))
    assert table.kind.tolist() == [0, 1, 0, 2]
    assert table.gpus.tolist() == [1, 1, 2]
    assert np.isinf(table.cpus[0, 9:]).all()
    assert np.isinf(table.memory_gb[0, 5:]).all()
    assert look_up(table, 1e6, 1e6).tolist() == pytest.approx([2.94])


@pytest.mark.parametrize(("cpus", "memory_gb"), [(0.5, 500.0), (24.0, 40.0), (0.5, 40.0)])
def test_nothing_runs_on_servers_smaller_than_a_unit(cpus: float, memory_gb: float) -> None:
    table = tables(job(MODELS["Synergy AlexNet"].pipeline.sensitivity), cpus=cpus, memory_gb=memory_gb)
    assert look_up(table, [0, cpus, 1e6], [0, memory_gb, 1e6]).tolist() == [0, 0, 0]


def test_jobs_without_sensitivity_and_servers_without_cpus_are_refused() -> None:
    with pytest.raises(NotApplicableError, match=r"jobs\[1\]\.sensitivity = none: a matrix"):
        tables(job(MODELS["Synergy AlexNet"].sensitivity, name="a"), job(None, name="b"))
    for cpus, memory_gb in ((0.0, 500.0), (24.0, 0.0)):
        with pytest.raises(NotApplicableError, match=r"no CPUs or no memory \(cluster\.servers\)"):
            tables(job(MODELS["Synergy AlexNet"].sensitivity), cpus=cpus, memory_gb=memory_gb)


# published facts ----------------------------------------------------------------------------------


def speed(model: CatalogueModel, cpus: float, memory_gb: float, dataset: str | None = None) -> float:
    """Return the rate of one GPU by a model's pipeline, relative to the rate with 3 CPUs and 62.5 GB."""
    given, base = model.pipeline.of_gang(1, dataset), model.rates["V100"]
    return float(rate(given, model.pipeline.compute * base, cpus, memory_gb)) / base


@pytest.mark.parametrize("name", TABLE_4)
def test_pipelines_have_the_measured_rate_at_the_measured_share(name: str) -> None:
    assert speed(MODELS[name], 3, 62.5) == pytest.approx(1, rel=1e-5)
    assert "pipeline on " in MODELS[name].pipeline.derived


def test_alexnet_is_3_1_times_as_fast_with_12_cpus_as_with_3() -> None:
    model = MODELS["Synergy AlexNet"]
    assert speed(model, 12, 500) / speed(model, 3, 500) == pytest.approx(3.1, rel=1e-5)


def test_resnet18_is_2_3_times_as_fast_with_9_cpus_as_with_3() -> None:
    model = MODELS["Synergy ResNet18"]
    assert speed(model, 9, 500) / speed(model, 3, 500) == pytest.approx(2.3, rel=1e-5)


def test_shufflenet_needs_9_to_24_cpus() -> None:
    model = MODELS["Synergy ShuffleNetv2"]
    needed = next(c for c in range(1, 25) if speed(model, c, 500) == speed(model, 24, 500))
    assert needed == 9
    assert speed(model, 8, 500) < speed(model, 24, 500)


@pytest.mark.parametrize("name", ["Synergy Transformer-XL", "Synergy GNMT", "Synergy LSTM"])
def test_language_models_are_flat_from_one_cpu_and_20_gb(name: str) -> None:
    assert {speed(MODELS[name], c, m) for c in (1, 3, 24) for m in (20, 62.5, 500)} == {1.0}
    assert speed(MODELS[name], 24, 19.9) == 0


def test_resnet18_on_openimages_nearly_doubles_from_62_to_500_gb() -> None:
    model = MODELS["Synergy ResNet18"]
    assert model.pipeline.dataset == "ImageNet"
    ratio = speed(model, 3, 500, "OpenImages") / speed(model, 3, 62.5, "OpenImages")
    assert ratio == pytest.approx(2, abs=0.2)


def test_a_model_like_another_has_its_pipeline_in_units_of_its_own_rate() -> None:
    own, like = MODELS["ResNet-50 (batch size 64)"], MODELS["Synergy ResNet50"]
    assert own.pipeline.derived == "pipeline = that of Synergy ResNet50, in units of the rate"
    for cpus in (1, 3, 5):
        for memory_gb in (50, 62.5, 150):
            assert speed(own, cpus, memory_gb) == pytest.approx(speed(like, cpus, memory_gb), rel=1e-4)
    oef = find("DenseNet")
    assert oef is not None
    assert oef.pipeline.sensitivity.prep_rate_per_cpu == pytest.approx(oef.rates["RTX 3070"] / 3, rel=1e-4)


FIT = {
    "Synergy ShuffleNetv2": 0.446,
    "Synergy AlexNet": 0.501,
    "Synergy ResNet18": 0.144,
    "Synergy MobileNetv2": 0.1,
    "Synergy ResNet50": 0.167,
    "Synergy GNMT": 0.0,
    "Synergy LSTM": 0.0,
    "Synergy Transformer-XL": 0.0,
    "Synergy M5": 0.3051,
    "Synergy DeepSpeech": 0.112,
}
"""Largest relative error of a fitted pipeline against the measured matrix, from 62.5 GB on, by model."""


@pytest.mark.parametrize("name", TABLE_4)
def test_how_well_a_pipeline_fits_its_matrix(name: str) -> None:
    """Fitted pipelines differ from measured matrices by at most the errors in :data:`FIT`.

    A pipeline cannot have concave progress in CPUs; where matrices fall to 0.1, its process does not fit into memory.
    """
    model, matrix = MODELS[name], MODELS[name].sensitivity
    assert matrix is not None
    measured = np.array(matrix.progress)
    fitted = np.array([[speed(model, c, m) for m in matrix.memory_gb_per_gpu] for c in matrix.cpus_per_gpu])
    error = np.abs(fitted / measured - 1)
    assert error[:, 1:].max() <= FIT[name] + 1e-5
    assert error[:, 1:].max() >= FIT[name] - 1.2e-3
    assert (measured[:, 0] == 0.1).all() == (FIT[name] > 0)
    assert np.all(error[:, 0] == (1.0 if FIT[name] > 0 else 0.0))


def test_the_fits_are_of_all_models_of_table_4() -> None:
    assert set(FIT) == set(TABLE_4)
