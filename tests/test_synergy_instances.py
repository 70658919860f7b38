"""Synergy's instances: generated ones as the paper describes them, its physical traces, and its worked example."""

from __future__ import annotations

import csv
import heapq
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap.harness.studies.reproduce.setting import known
from schedgap.instances.arrays import Array
from schedgap.instances.catalogue import load
from schedgap.instances.errors import InstanceError, UnknownNameError, UsageError
from schedgap.instances.generate import generate
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.model_catalogue import MODELS, find
from schedgap.instances.schema import Instance
from schedgap.instances.views import hadar, synergy
from schedgap.instances.views.synergy import SynergyView

ALL = ("gen/synergy-32", "gen/synergy-32-dynamic", "gen/synergy-128", "gen/synergy-512")
TABLE_4 = {
    "image": ("ShuffleNetv2", "AlexNet", "ResNet18", "MobileNetv2", "ResNet50"),
    "language": ("GNMT", "LSTM", "Transformer-XL"),
    "speech": ("M5", "DeepSpeech"),
}
PHILLY = {1: 18_869, 2: 353, 4: 455, 8: 265, 16: 32}
"""Number of jobs of each size among the first 20,000 of the Philly trace."""


def minutes(view: SynergyView) -> Array:
    """Return the minutes that each job takes with its proportional share."""
    return np.asarray(view.workload.work / view.needs.fair[view.profiles.kind, 0] / 60)


def tasks(instance: Instance) -> Counter[str]:
    return Counter(MODELS[job.model or ""].task for job in instance.jobs)


# what the paper says of them ----------------------------------------------------------------------


@pytest.mark.parametrize(("ref", "servers", "jobs"), [*zip(ALL, (4, 4, 16, 64), (100, 100, 2000, 2000), strict=True)])
def test_clusters_of_the_papers_servers(ref: str, servers: int, jobs: int) -> None:
    instance = load(ref)
    (group,) = instance.cluster.servers
    assert (group.count, group.gpu_type, group.gpus, group.cpus, group.memory_gb) == (servers, "V100", 8, 24, 500)
    assert len(instance.jobs) == jobs
    assert {job.model for job in instance.jobs} == {f"Synergy {m}" for names in TABLE_4.values() for m in names}
    assert instance.horizon is not None
    assert instance.horizon.slot_s == 300
    view = synergy.view(instance)
    assert not any(view.hopeless)
    assert view.needs.share[:, 0].tolist() == [[3 * g, 62.5 * g] for g in view.profiles.gpus.tolist()]


@pytest.mark.parametrize("ref", ALL)
def test_the_drawn_jobs_are_those_of_their_distributions(ref: str) -> None:
    """The generated jobs have the split, mean work and load of the paper's distributions, within one percent."""
    view, large = synergy.view(load(ref)), "512" in ref
    split = {"gen/synergy-32": (60, 30, 10), "gen/synergy-32-dynamic": (30, 60, 10)}.get(ref, (20, 70, 10))
    found = tasks(view.instance)
    assert [found[task] / view.size for task in TABLE_4] == pytest.approx(np.array(split) / 100, abs=0.0101)
    usual, rare = 0.8 * mean_of_powers(1.5, 3), 0.2 * mean_of_powers(3, 4)
    expected = {
        "gen/synergy-32": mean_of_powers(1.5, 2.7),
        "gen/synergy-32-dynamic": 0.98 * mean_of_powers(1.5, 2.7) + 0.02 * mean_of_powers(2.7, 2.9),
    }.get(ref, usual + rare)
    gang = sum(g * n for g, n in PHILLY.items()) / sum(PHILLY.values()) if large else 1.0
    assert (view.workload.gpus @ minutes(view)) / view.size == pytest.approx(expected * gang, rel=0.0101)
    per_hour = {"gen/synergy-32-dynamic": 30, "gen/synergy-128": 9, "gen/synergy-512": 25.4}.get(ref)
    hours = view.workload.arrival_s.max() / 3600
    assert hours == pytest.approx(view.size / per_hour if per_hour else 0, rel=0.0101)


def mean_of_powers(low: float, high: float) -> float:
    """Return the mean of 10^x with x uniform between two numbers."""
    return float((10**high - 10**low) / np.log(10) / (high - low))


def test_splits_gangs_and_durations_are_drawn_as_documented() -> None:
    instance = load("gen/synergy-128?jobs=20000&gpus=multi")
    found = tasks(instance)
    assert [found[task] / 20_000 for task in TABLE_4] == pytest.approx([0.2, 0.7, 0.1], abs=0.01)
    models = Counter(job.model for job in instance.jobs)
    for task, names in TABLE_4.items():
        shares = [models[f"Synergy {name}"] / found[task] for name in names]
        assert shares == pytest.approx([1 / len(names)] * len(names), abs=0.03)
    gangs = Counter(job.gpus for job in instance.jobs)
    total = sum(PHILLY.values())
    assert [gangs[g] / 20_000 for g in PHILLY] == pytest.approx([n / total for n in PHILLY.values()], abs=0.005)
    exponents = np.log10(minutes(synergy.view(instance)))
    assert exponents.min() == pytest.approx(1.5, abs=0.01)
    assert exponents.max() == pytest.approx(4, abs=0.01)
    assert (exponents > 3).mean() == pytest.approx(0.2, abs=0.01)
    assert np.quantile(exponents[exponents < 3], 0.5) == pytest.approx(2.25, abs=0.03)
    assert np.quantile(exponents[exponents > 3], 0.5) == pytest.approx(3.5, abs=0.03)
    gaps = np.diff([job.submit_s for job in instance.jobs]) / 3600
    assert gaps.mean() == pytest.approx(1 / 9, rel=0.02)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)


@pytest.mark.parametrize("sensitivity", ["matrix", "pipeline"])
@pytest.mark.parametrize("cpus", [3, 4, 5, 6])
def test_a_job_takes_its_duration_at_the_share_of_its_cluster(cpus: int, sensitivity: str) -> None:
    """A job takes its duration with the share of any cluster; with more CPUs per GPU there is less to gain."""
    base, here = (
        synergy.view(load(f"gen/synergy-128?jobs=300&gpus=multi&cpus_per_gpu={c}&sensitivity={kind}"))
        for c, kind in ((3, "matrix"), (cpus, sensitivity))
    )
    assert here.needs.share[:, 0, 0].tolist() == [cpus * g for g in here.profiles.gpus.tolist()]
    assert minutes(here) == pytest.approx(minutes(base), rel=1e-3)
    assert here.workload.arrival_s.tolist() == base.workload.arrival_s.tolist()
    gain = here.needs.best[:, 0] / here.needs.fair[:, 0]
    assert (gain >= 1 - 1e-9).all()
    most = {3: 2.95, 4: 2.36, 5: 1.93, 6: 1.69} if sensitivity == "matrix" else {3: 3.1, 4: 2.33, 5: 1.86, 6: 1.69}
    assert gain.max() <= most[cpus] * 1.01


def test_rates_of_pipelines_are_those_of_gpus_that_never_wait() -> None:
    jobs = load("gen/synergy-128?sensitivity=pipeline&gpus=multi").jobs
    for job in jobs:
        model = MODELS[job.model or ""]
        assert job.rates["V100"] == pytest.approx(model.rates["V100"] * model.pipeline.compute, rel=1e-5)
        assert job.sensitivity == model.pipeline.of_gang(job.gpus)
    notes = load("gen/synergy-128?sensitivity=pipeline").derived
    assert sum("pipeline on " in note for note in notes) == 10


def test_a_load_of_0_has_all_jobs_at_the_start() -> None:
    assert {job.submit_s for job in load("gen/synergy-32").jobs} == {0}
    static = load("gen/synergy-128?load=0&jobs=50")
    assert {job.submit_s for job in static.jobs} == {0}
    poisson = load("gen/synergy-128?jobs=50")
    assert [job.minibatches_per_chunk for job in static.jobs] == [job.minibatches_per_chunk for job in poisson.jobs]


def test_the_load_scales_arrivals() -> None:
    one, two = (np.array([job.submit_s for job in load(f"gen/synergy-128?load={x}").jobs]) for x in (4.5, 9))
    assert one == pytest.approx(2 * two, rel=1e-5)


@pytest.mark.parametrize("ref", ["gen/synergy-128", "gen/synergy-512"])
def test_9_jobs_an_hour_are_too_many_for_128_gpus_at_their_shares(ref: str) -> None:
    """With 9 jobs per hour, 512 GPUs are just loaded and 128 overloaded: the paper's 81 h come from a growing queue."""
    view = synergy.view(load(ref))
    hours = view.workload.gpus @ minutes(view) / 60
    load_of_gpus = hours / view.pools.gpus.sum() / (view.workload.arrival_s.max() / 3600)
    assert load_of_gpus == pytest.approx({"gen/synergy-128": 1.18, "gen/synergy-512": 1.0}[ref], abs=0.02)


@pytest.mark.real_data
def test_gang_sizes_are_as_frequent_as_in_the_philly_trace(data_dir: Path) -> None:
    with (data_dir / "philly/philly_first20000.csv").open() as file:
        sizes = Counter(int(row["num_gpus"]) for row in csv.DictReader(file))
    assert {g: sizes[g] for g in PHILLY} == PHILLY
    table = (Path(__file__).parent.parent / "instances/gen/synergy-128.toml").read_text()
    total = sum(PHILLY.values())
    assert f"gang_probabilities = [{', '.join(f'{n / total:.4f}' for n in PHILLY.values())}]" in table
    assert total / sum(sizes.values()) > 0.998


@pytest.mark.real_data
def test_gangs_of_the_drawn_durations_are_as_frequent_as_in_the_philly_trace(data_dir: Path) -> None:
    with (data_dir / "philly/philly_first20000.csv").open() as file:
        durations = [(int(row["num_gpus"]), float(row["duration"]) / 60) for row in csv.DictReader(file)]
    sizes = Counter(gpus for gpus, minutes in durations if 10**1.5 < minutes < 10**4)
    total = sum(sizes[g] for g in PHILLY)
    table = (Path(__file__).parent.parent / "instances/gen/synergy-128-gangs.toml").read_text()
    assert f"gang_probabilities = [{', '.join(f'{sizes[g] / total:.4f}' for g in PHILLY)}]" in table
    assert total / sum(sizes.values()) > 0.998


def test_at_5_5_jobs_an_hour_gangs_ask_for_more_than_all_gpus() -> None:
    """At 5.5 jobs per hour (section 5.4), gangs ask for 102 % of the GPUs; with all Philly gangs, for 86 %."""
    found = {}
    for ref in ("gen/synergy-128?gpus=multi&load=5.5", "gen/synergy-128-gangs?load=5.5"):
        view = synergy.view(load(ref))
        hours = view.workload.gpus @ minutes(view) / 60
        found[ref] = hours / view.pools.gpus.sum() / (view.workload.arrival_s.max() / 3600)
    assert list(found.values()) == pytest.approx([0.86, 1.02], abs=0.005)


# streams, slots, golden ---------------------------------------------------------------------------


@settings(max_examples=15)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(0, 1000),
    st.sampled_from(["single", "multi"]),
    st.sampled_from(["matrix", "pipeline"]),
)
def test_more_jobs_do_not_change_earlier_ones(n: int, more: int, seed: int, gpus: str, sensitivity: str) -> None:
    changes: dict[str, Any] = {"seed": seed, "gpus": gpus, "sensitivity": sensitivity}
    short, long = (load("gen/synergy-128", {**changes, "jobs": jobs}) for jobs in (n, n + more))
    assert long.jobs[:n] == short.jobs
    assert long.cluster == short.cluster


def test_quantities_have_streams_of_their_own() -> None:
    base, gangs, split, seed = (
        load(f"gen/synergy-128?jobs=60&{query}") for query in ("load=9", "gpus=multi", "image=70", "seed=2")
    )
    assert [job.model for job in gangs.jobs] == [job.model for job in base.jobs]
    assert [job.submit_s for job in gangs.jobs] == [job.submit_s for job in base.jobs]
    assert [job.submit_s for job in split.jobs] == [job.submit_s for job in base.jobs]
    assert minutes(synergy.view(split)) == pytest.approx(minutes(synergy.view(base)), rel=1e-3)
    assert [job.model for job in split.jobs] != [job.model for job in base.jobs]
    assert [job.model for job in seed.jobs] != [job.model for job in base.jobs]
    larger = load("gen/synergy-128?jobs=60&servers=64")
    assert larger.jobs == base.jobs
    assert larger.cluster.gpus == 512


@pytest.mark.parametrize("split", [(20, 70, 10), (33, 33, 33), (50, 0, 50), (30, 60, 10), (60, 30, 10)])
def test_splits_of_the_paper(split: tuple[int, int, int]) -> None:
    image, language, speech = split
    found = tasks(load("gen/synergy-128", {"image": image, "language": language, "speech": speech}))
    assert [found[task] / 2000 for task in TABLE_4] == pytest.approx([x / sum(split) for x in split], abs=0.03)


@pytest.mark.parametrize("ref", [*ALL, "gen/synergy-32?sensitivity=pipeline", "gen/synergy-128?cpus_per_gpu=6"])
def test_the_horizon_is_enough_for_those_who_know_nothing_of_cpus(ref: str) -> None:
    """The horizon is long enough for FIFO at the slower of share and bare rate, with a slot lost per job."""
    view = synergy.view(load(ref))
    assert view.instance.horizon is not None
    bare = view.workload.work / (view.workload.gpus * view.workload.rates[:, 0])
    seconds = np.maximum(60 * minutes(view), bare) + 300
    assert fifo(view, seconds).max() <= view.instance.horizon.end_s


def fifo(view: SynergyView, seconds: Array) -> Array:
    """Return the completion times of jobs served strictly in order of arrival."""
    free = [0.0] * int(view.pools.gpus.sum())
    ends, start = [], 0.0
    for arrival, gpus, length in zip(view.workload.arrival_s, view.workload.gpus, seconds, strict=True):
        taken = [heapq.heappop(free) for _ in range(gpus)]
        start = max(start, arrival, *taken)
        ends.append(start + length)
        for _ in taken:
            heapq.heappush(free, ends[-1])
    return np.array(ends)


def test_hadar_can_look_at_it() -> None:
    view = hadar.view(load("gen/synergy-32"))
    assert not any(view.hopeless)


@pytest.mark.parametrize(
    ("ref", "golden"),
    [
        ("gen/synergy-32", "b7d8e4a911a04f22817ab39963b8fc5b7ccc61eef30f606c33b36bca7343c3a2"),
        ("gen/synergy-128", "d57ef5cbf90b6e548814d6b524faad61e7795c7fc90503b0e5575493f741b6fe"),
        (
            "gen/synergy-128?sensitivity=pipeline&gpus=multi&cpus_per_gpu=4",
            "7d28a43825ae5047d1ae2c198a1c9ded21a89e60130b48c7b7d315b7bdd6a246",
        ),
        ("gen/synergy-32-dynamic", "7424b44cbe596c984d77ab2b19adb5c92fcbf881d0786b88287569abdd0aef2d"),
        ("gen/synergy-512", "bd7bdfdb2ca9ff04b0df981577e3d76f572e6724fd2159ff0b0046df633f7ff4"),
    ],
)
def test_golden_fingerprints(ref: str, golden: str) -> None:
    """Fingerprints of instances change only if a spec, the catalogue's facts or the generator change."""
    assert load(ref).fingerprint == golden


def test_published_numbers_with_their_errata() -> None:
    found = {(e.method, e.quantity): e for ref in ALL[:3] for e in load(ref).published}
    assert found["synergy.proportional.fifo", "makespan_h"].value == 15.67
    assert found["synergy.tune.fifo", "makespan_h"].value == 11.33
    assert found["synergy.opt.fifo", "makespan_h"].value == 11.01
    assert found["synergy.proportional.fifo", "jct_mean_h"].value == 81
    assert found["synergy.proportional.srtf", "jct_mean_h"].value == 4.52
    assert found["synergy.tune.srtf", "jct_p99_h"].value == 8.54
    assert "1.42 simulated" in found["synergy.tune.srtf", "jct_mean_ratio:synergy.proportional.srtf"].note
    ratio = found["synergy.tune.fifo", "jct_mean_ratio:synergy.proportional.fifo"]
    assert ratio.value == 3.4
    assert "3.68" in ratio.note


def test_no_number_about_the_philly_trace_is_published_about_drawn_jobs() -> None:
    assert load("gen/synergy-512").published == ()
    assert "30 and 26 h" in {one.value for one in known()["synergy/fig6"].printed}


@pytest.mark.parametrize("ref", ALL[:3])
def test_published_numbers_are_about_the_spec_as_it_stands(ref: str) -> None:
    assert load(ref).published
    assert load(f"{ref}?slot_s=300").published == load(ref).published
    assert load(f"{ref}?cpus_per_gpu=4").published == ()


# what cannot be -----------------------------------------------------------------------------------


def spec(**changes: Any) -> dict[str, Any]:
    table = {
        "family": "synergy",
        "jobs": 3,
        "load": 1.0,
        "servers": 1,
        "image": 1.0,
        "language": 1.0,
        "speech": 1.0,
        "gpus": "multi",
        "gangs": [1],
        "gang_probabilities": [1.0],
        "models": {"image": ["Synergy AlexNet"], "language": ["Synergy GNMT"], "speech": ["Synergy M5"]},
    }
    return {"generator": {**table, **changes}}


def test_the_small_spec_is_valid() -> None:
    instance = generate(spec(gpu_type="tesla p100"), {}, "mine")
    assert instance.cluster.gpus_by_type == {"P100": 8}
    assert not any(synergy.view(instance).hopeless)
    derived = generate(spec(gpu_type="T4"), {}, "mine")
    assert "Synergy GNMT: rate of Synergy GNMT on T4 = rate on V100 x 0.518 (TFLOPS)" in derived.derived


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (spec(jobs=0), "jobs = 0: a whole number of jobs, 1 or more"),
        (spec(load=-1), "load = -1: jobs per hour, 0 to 1e6; with 0, all arrive at the start"),
        (spec(gangs=[9]), "gangs = 9: a gang fits on the 8 GPUs"),
        (spec(gangs=[1, 2]), "gang_probabilities = (1.0,): one probability per gang size"),
        (spec(gpus="many"), "gpus = \"many\": input should be 'single' or 'multi'"),
        (spec(sensitivity="none"), "sensitivity = \"none\": input should be 'matrix' or 'pipeline'"),
        (
            spec(image=0, language=0, speech=0),
            "image, language, speech = [0.0, 0.0, 0.0]: at least one task has a positive share",
        ),
        (
            spec(models={"image": ["AlexNet"]}),
            "models = image: at least one model of each task: image, language, speech",
        ),
        (
            spec(models={"image": ["AlexNott"], "language": ["GNMT"], "speech": ["M5"]}),
            "models.image = AlexNott: unknown model 'AlexNott'; did you",
        ),
        (spec(exponents=[3.0, 1.5]), "exponents = [3.0, 1.5]: "),
        (spec(exponents=[1.5, 300]), "exponents = [1.5, 300.0, 3.0, 4.0]: all from -9 to 9"),
        (spec(long=2), "long = 2: a share of long jobs, 0 to 1"),
        (spec(cpus_per_gpu=0), "cpus_per_gpu = 0: CPUs per GPU are positive"),
        (
            spec(cpus_per_gpu=0.5),
            "cpus_per_gpu, memory_gb_per_gpu = 0.5, 62.5: every model must progress with its share; Synergy AlexNet",
        ),
        (
            spec(memory_gb_per_gpu=4, sensitivity="pipeline"),
            "cpus_per_gpu, memory_gb_per_gpu = 3, 4: every model must progress with its share; Synergy AlexNet",
        ),
    ],
)
def test_impossible_specs_are_refused_in_one_line(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        generate(document, {}, "mine", "mine")
    assert str(caught.value).startswith(f"mine: {message}")
    assert "\n" not in str(caught.value)


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown parameter 'split'"):
        load("gen/synergy-128?split=20")


# real traces --------------------------------------------------------------------------------------


def imported(data_dir: Path, format_: str, file: str, **options: Any) -> SynergyView:
    return synergy.view(import_trace(format_, data_dir / file, Options(**options)))


@pytest.mark.real_data
@pytest.mark.parametrize("file", ["static_100job_6_3_1100.0", "dynamic_srtf.log"])
def test_the_traces_of_the_physical_experiments(data_dir: Path, file: str) -> None:
    view = imported(data_dir, "synergy", f"synergy/{file}")
    assert view.servers.gpus.tolist() == [8] * 4
    assert (view.servers.cpus[0], view.servers.memory_gb[0]) == (24, 500)
    assert not any(view.hopeless)
    for job in view.instance.jobs:
        model = find(job.model or "", "synergy")
        assert model is not None
        assert (job.rates["V100"], job.sensitivity) == (model.rates["V100"], model.sensitivity)
    # 10^1.5 = 32 minutes and more, as the paper says; none is longer than 13 h.
    assert minutes(view).min() > 31.6
    assert minutes(view).max() < 13 * 60


@pytest.mark.real_data
def test_the_static_trace_takes_the_published_hours(data_dir: Path) -> None:
    """Under proportional FIFO, the static trace takes the published 15.67 h within 5 %."""
    view = imported(data_dir, "synergy", "synergy/static_100job_6_3_1100.0")
    hours = fifo(view, 60 * minutes(view)).max() / 3600
    assert hours == pytest.approx(15.67, rel=0.05)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("ref", "file"), [("gen/synergy-32", "static_100job_6_3_1100.0"), ("gen/synergy-32-dynamic", "dynamic_srtf.log")]
)
def test_the_generated_experiments_are_like_the_real_ones(data_dir: Path, ref: str, file: str) -> None:
    real, drawn = imported(data_dir, "synergy", f"synergy/{file}"), synergy.view(load(ref))
    assert drawn.servers.gpus.tolist() == real.servers.gpus.tolist()
    assert drawn.size == real.size
    assert minutes(drawn).mean() == pytest.approx(minutes(real).mean(), rel=0.05)
    assert minutes(drawn).min() == pytest.approx(minutes(real).min(), rel=0.1)
    assert minutes(drawn).max() <= 1.05 * minutes(real).max()
    assert drawn.workload.arrival_s.max() == pytest.approx(real.workload.arrival_s.max(), rel=0.2, abs=1)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("format_", "file", "options"),
    [
        ("philly", "philly/philly_first20000.csv", {"max_jobs": 2000}),
        ("philly", "philly/philly_first20000.csv", {"max_jobs": 500, "gpus": {"V100": 512}, "gpus_per_server": 8}),
        ("itp", "itp/cluster01.csv", {}),
        ("muri", "muri/muri_trace1.csv", {}),
        ("tiresias", "tiresias/60_job.csv", {}),
        ("gavel", "gavel/philly_vc_103959.trace", {}),
        ("openb", "openb/openb_pod_list_default.csv", {"max_jobs": 2000}),
    ],
)
def test_any_trace_can_be_scheduled(data_dir: Path, format_: str, file: str, options: dict[str, Any]) -> None:
    view = imported(data_dir, format_, file, **options)
    assert not any(view.hopeless)
    assert view.runnable.size > 0
    derived = " ".join(view.instance.derived)
    assert "with 3 CPUs and 62.5 GB per GPU: the trace describes no servers" in derived
    assert "CPU and memory sensitivity of " in derived


# CPUs and memory of imported clusters -------------------------------------------------------------

PHILLY_ROWS = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,3600,1,3600,a\n"


def test_cpus_and_memory_per_gpu_are_options_of_every_import(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(PHILLY_ROWS)
    options = Options(gpus={"V100": 10}, gpus_per_server=8, cpus_per_gpu=6.0, memory_gb_per_gpu=32.0)
    instance = import_trace("philly", path, options)
    assert [(g.gpus, g.cpus, g.memory_gb) for g in instance.cluster.servers] == [(8, 48, 256), (2, 12, 64)]
    assert any("servers of 8 GPUs with 6 CPUs and 32 GB per GPU" in line for line in instance.derived)
    assert synergy.view(instance).needs.limit[0, 0].tolist() == [48, 256]


def test_the_command_imports_with_cpus_and_memory_per_gpu(command: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(PHILLY_ROWS)
    options = ["--gpus", "V100=8", "--gpus-per-server", "8", "--cpus-per-gpu", "5", "--memory-gb-per-gpu", "100"]
    result = command("import", "philly", "t.csv", "-o", "t.json", *options)
    assert result.returncode == 0, result.stderr
    (group,) = load("t.json").cluster.servers
    assert (group.gpus, group.cpus, group.memory_gb) == (8, 40, 800)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(cpus_per_gpu=0.0), "cpus_per_gpu = 0: more than 0 and at most 1e+06"),
        (Options(cpus_per_gpu=float("nan")), "cpus_per_gpu = nan: more than 0"),
        (Options(memory_gb_per_gpu=1e7), "memory_gb_per_gpu = 1e+07: more than 0"),
        (
            Options(memory_gb_per_gpu=9.0, nodes=Path("n.csv")),
            "memory_gb_per_gpu and nodes both describe the servers",
        ),
    ],
)
def test_impossible_servers_are_refused(tmp_path: Path, options: Options, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(PHILLY_ROWS)
    with pytest.raises(UsageError) as caught:
        import_trace("philly", path, options)
    assert str(caught.value).startswith(message)


# the worked example -------------------------------------------------------------------------------

TABLE_3 = np.array([[23, 400], [12, 450], [1, 100], [12, 50]], float)
SERVERS = ((0, 2), (1, 3))
"""The jobs on servers S1 and S2 in Table 3."""


def progress(view: SynergyView, held: Array) -> Array:
    """Return the progress of jobs with these CPUs and memory, relative to that with their shares."""
    kind = view.profiles.kind
    rate = view.profiles.rate_of(kind, np.zeros(view.size, np.int64), held[:, 0], held[:, 1])
    return np.asarray(rate / view.needs.fair[kind, 0])


def test_shares_of_the_example_are_table_2() -> None:
    instance = load("paper/synergy-example")
    view = synergy.view(instance)
    assert view.needs.share[:, 0].tolist() == [[12, 250]] * 4
    printed = {(e.method, e.quantity): e for e in instance.published}
    assert printed["synergy.proportional", "cpus"].exact == tuple(view.needs.share[:, 0, 0])
    assert printed["synergy.proportional", "memory_gb"].exact == tuple(view.needs.share[:, 0, 1])
    values = [printed["synergy.tune", quantity].value for quantity in ("cpus", "memory_gb")]
    assert values == [tuple(column) for column in TABLE_3.T.tolist()]


def test_table_3_fits_and_makes_nobody_slower() -> None:
    view = synergy.view(load("paper/synergy-example"))
    for jobs in SERVERS:
        assert (TABLE_3[list(jobs)].sum(axis=0) <= [24, 500]).all()
    assert progress(view, TABLE_3) == pytest.approx([1.917, 1.385, 1, 1], abs=1e-3)
    # The claimed 1.5 depends on epoch times that are not printed; with jobs of an hour it is 1.23.
    assert 1 / (1 / progress(view, TABLE_3)).mean() == pytest.approx(1.23, abs=0.005)


def test_no_placement_with_whole_jobs_beats_table_3() -> None:
    """No pairing of the jobs on two servers, with any CPUs and memory, makes more progress than Table 3."""
    view = synergy.view(load("paper/synergy-example"))
    tables = view.profiles
    value = tables.rate[tables.kind, 0] / view.needs.fair[tables.kind, 0][:, None, None]

    def best(a: int, b: int) -> float:
        # With c CPUs and m units of memory for one job, the other has the rest; a job needs a level of each.
        found = 0.0
        for c, m in itertools.product(range(1, 24), range(1, 10)):
            pair = value[a, c - 1, m - 1], value[b, 24 - c - 1, 10 - m - 1]
            found = max(found, sum(pair)) if min(pair) >= 1 - 1e-9 else found
        return found

    totals = [best(0, x) + best(*({1, 2, 3} - {x})) for x in (1, 2, 3)]
    assert max(totals) == pytest.approx(progress(view, TABLE_3).sum())


def test_demands_of_the_example_are_not_table_3() -> None:
    """Demands of the worked example are larger than Table 3's amounts, so that Tune falls back to shares."""
    view = synergy.view(load("paper/synergy-example"))
    demand = view.needs.demand[:, 0]
    assert demand.tolist() == [[24, 450], [14, 500], [1, 50], [4, 50]]
    for sensitive, flat in itertools.product((0, 1), (2, 3)):
        assert not (demand[[sensitive, flat]].sum(axis=0) <= [24, 500]).all()
    base = view.needs.base[:, 0]
    assert base.tolist() == [[12, 250], [12, 250], [1, 50], [4, 50]]
    assert 1 / (1 / progress(view, base)).mean() == pytest.approx(1.0)
    # The paper does not say that Table 3 is Tune's: what Tune finds refutes nothing.
    assert all(e.exact is None for e in view.instance.published if e.method == "synergy.tune")
