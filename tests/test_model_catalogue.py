"""The catalogue of deep-learning models: facts equal their sources, and every trace's model is in it."""

from __future__ import annotations

import csv
import doctest
import json
from pathlib import Path

import pytest

from schedgap.instances import model_catalogue
from schedgap.instances.model_catalogue import MODELS, CatalogueModel, find, gpu_type, rates_on

TABLE_4 = [
    "shufflenet",
    "alexnet",
    "res18",
    "mobilenet",
    "res50",
    "gnmt",
    "lstm",
    "transformer",
    "m5",
    "deepspeech",
]


def known(name: str, suite: str | None = None) -> CatalogueModel:
    model = find(name, suite)
    assert model is not None, name
    return model


def test_doctests() -> None:
    assert doctest.testmod(model_catalogue).failed == 0


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_model_is_complete(model: CatalogueModel) -> None:
    assert min(model.rates.values()) > 0
    assert model.gradient_mb > 0
    assert model.source
    assert model.sensitivity is not None
    assert model.derived[-1].startswith("gradient_mb = 4 bytes x ")
    assert find(model.name) is model


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet-50 (BATCH size 64)", "ResNet-50 (batch size 64)"),
        ("LM (batch size 5)", "LM (batch size 5)"),
        ("ResNet-18", "ResNet-18 (batch size 64)"),
        ("LSTM", "LM (batch size 20)"),
        ("vgg19", "Tiresias VGG-19"),
        ("inception4", "Tiresias Inception-v4"),
        ("shufflenet_v2_x1_0", "Muri ShuffleNetv2"),
        ("gpt2", "Muri GPT-2"),
        ("Audio-M5", "Synergy M5"),
        ("DenseNet", "OEF DenseNet"),
        ("MM", "MiMa"),
    ],
)
def test_names_and_aliases(name: str, expected: str) -> None:
    assert known(name).name == expected


@pytest.mark.parametrize(
    ("suite", "expected"),
    [
        (None, "ResNet-50 (batch size 64)"),
        ("synergy", "Synergy ResNet50"),
        ("tiresias", "Tiresias ResNet-50"),
    ],
)
def test_a_suite_is_preferred(suite: str | None, expected: str) -> None:
    assert known("resnet50", suite).name == expected


def test_a_suite_falls_back_to_all() -> None:
    assert known("CycleGAN", "muri").name == "CycleGAN"


@pytest.mark.parametrize("name", ["", "???", "no such model"])
def test_unknown_models(name: str) -> None:
    assert find(name) is None


def test_derived_rates_follow_the_nearest_measured_model() -> None:
    shufflenet, like = known("shufflenet"), known("ResNet-18 (batch size 256)")
    assert shufflenet.rates["K80"] / shufflenet.rates["V100"] == pytest.approx(
        like.rates["K80"] / like.rates["V100"], rel=1e-5
    )
    assert "rates on K80, P100 = rate on V100 x ratio of ResNet-18 (batch size 256)" in shufflenet.derived


def test_gavel_rates_are_facts() -> None:
    assert not any("rate" in line for line in known("LM (batch size 5)").derived)


def test_oef_speedups() -> None:
    speedup = {}
    for name in ("VGG", "ResNet", "DenseNet", "Transformer", "RNN", "LSTM"):
        rates = known(name, "oef").rates
        assert list(rates) == ["RTX 3070", "RTX 3080", "RTX 3090"]
        assert sorted(rates.values()) == list(rates.values())
        speedup[name] = rates["RTX 3090"] / rates["RTX 3070"]
    assert speedup["VGG"] == pytest.approx(1.39, rel=1e-4)
    assert speedup["LSTM"] == pytest.approx(2.15, rel=1e-4)
    assert sorted(speedup.values()) == list(speedup.values())
    printed = {name for name in speedup if not any("RTX 3090 =" in line for line in known(name, "oef").derived)}
    assert printed == {"VGG", "LSTM"}


def test_gpu_types() -> None:
    assert gpu_type("tesla v100").model_dump() == {"name": "V100", "tflops": 15.7, "memory_gb": 16.0}
    assert gpu_type("3090").name == "RTX 3090"
    assert gpu_type("V100M32").memory_gb == 32
    assert gpu_type("G2").model_dump() == {"name": "G2", "tflops": None, "memory_gb": None}


def test_rates_on_unmeasured_types() -> None:
    model = known("LM (batch size 20)")
    rates, derived = rates_on(model, ["Tesla V100", "T4", "G2"])
    assert rates == {
        "Tesla V100": 64.7425,
        "T4": pytest.approx(64.7425 * 8.14 / 15.7, rel=1e-5),
        "G2": 64.7425,
    }
    assert derived == (
        "rate of LM (batch size 20) on T4 = rate on V100 x 0.518 (TFLOPS)",
        "rate of LM (batch size 20) on G2 = rate on V100 (peak TFLOPS unknown)",
    )


# against the sources -------------------------------------------------------------------------------


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.real_data
def test_gavel_facts(data_dir: Path) -> None:
    single = [row for row in rows(data_dir / "gavel/isolated_throughputs.csv") if row["scale_factor"] == "1"]
    assert len(single) == sum(model.suite == "gavel" for model in MODELS.values()) == 26
    for row in single:
        model = MODELS[row["job_type"]]
        assert model.rates == {gpu: pytest.approx(float(row[gpu.lower()]), rel=1e-5) for gpu in ("K80", "P100", "V100")}


@pytest.mark.real_data
def test_synergy_facts(data_dir: Path) -> None:
    data = json.loads((data_dir / "synergy/sensitivity.json").read_text())
    profiles = data["profiles"]["models"]
    assert set(TABLE_4) < set(profiles)
    for name, profile in profiles.items():
        model = known(name, "synergy")
        matrix = model.sensitivity
        assert matrix is not None
        assert list(matrix.cpus_per_gpu) == data["cpu_per_gpu_levels"]
        assert list(matrix.memory_gb_per_gpu) == data["mem_gb_per_gpu_levels"]
        assert [list(row) for row in matrix.progress] == profile["tput"]
        assert model.rates["V100"] == pytest.approx(1 / profile["iter_time_s"], rel=1e-5)
        assert model.batch_size == profile["batch"]
        assert not any("sensitivity" in line for line in model.derived)


@pytest.mark.real_data
def test_tiresias_facts(data_dir: Path) -> None:
    for row in rows(data_dir / "tiresias/60_job.csv"):
        rate = known(row["model_name"], "tiresias").rates["P100"]
        if row["num_gpu"] == "1":
            assert int(row["iterations"]) / int(row["duration"]) == pytest.approx(rate, rel=3e-3)


@pytest.mark.real_data
def test_muri_facts(data_dir: Path) -> None:
    for row in rows(data_dir / "muri/muri_trace1.csv"):
        model = known(row["model_name"], "muri")
        assert model.batch_size == int(row["batch_size"])
        if row["num_gpu"] == "1":
            assert model.rates["V100"] == pytest.approx(1000 / int(row["iteration_time"]), rel=1e-5)


@pytest.mark.real_data
def test_every_model_of_every_trace_is_known(data_dir: Path) -> None:
    gavel = [path.read_text() for path in (data_dir / "gavel").glob("*.trace")]
    names = {line.split("\t")[0] for text in gavel for line in text.splitlines() if line.strip()}
    for trace in ("test_trace", "static_100job_6_3_1100.0", "dynamic_srtf.log"):
        names |= {line.split(",")[1] for line in (data_dir / "synergy" / trace).open() if line.strip()}
    assert not {name for name in names if find(name) is None}


@pytest.mark.real_data
def test_the_gpu_types_of_openb(data_dir: Path) -> None:
    types = {row["model"] for row in rows(data_dir / "openb/openb_node_list_gpu_node.csv")}
    unknown = {name for name in types if gpu_type(name).tflops is None}
    assert unknown == {"G2", "G3"}, "Alibaba does not disclose these two"
