"""Generated instances of Hadar and HadarE: the paper's descriptions, random streams, slots, and published numbers."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap.harness.check import judge
from schedgap.instances.catalogue import load
from schedgap.instances.errors import InstanceError, UnknownNameError
from schedgap.instances.generate import generate
from schedgap.instances.generate.hadar import REFERENCE
from schedgap.instances.model_catalogue import find
from schedgap.instances.schema import Instance
from schedgap.instances.views import hadar
from schedgap.instances.views.hadar import HadarSchedule, placed

ALL = ("gen/hadar-480", "gen/hadar-aws", "gen/hadar-testbed")
MIXES = {"M-1": 1, "M-3": 3, "M-4": 4, "M-5": 5, "M-8": 8, "M-10": 10, "M-12": 12}
GPU_HOURS = {"S": (0, 1), "M": (1, 10), "L": (10, 50), "XL": (60, 100)}
TABLE_2 = {
    "ResNet-50 (batch size 64)": "XL",
    "ResNet-18 (batch size 64)": "S",
    "LM (batch size 20)": "L",
    "CycleGAN": "M",
    "Transformer (batch size 64)": "L",
}


def gpu_hours(instance: Instance) -> list[float]:
    """Return the GPU-hours that each job takes on the reference GPU type."""
    return [job.iterations / rate(job.model or "", REFERENCE) / 3600 for job in instance.jobs]


def rate(model: str, gpu_type: str) -> float:
    found = find(model)
    assert found is not None
    return found.rates[gpu_type]


# 480 jobs -----------------------------------------------------------------------------------------


def test_480_jobs_on_60_gpus() -> None:
    instance = load("gen/hadar-480")
    assert instance.cluster.gpus_by_type == {"V100": 20, "P100": 20, "K80": 20}
    assert [(g.count, g.gpus) for g in instance.cluster.servers] == [(5, 4)] * 3
    assert len(instance.jobs) == 480
    assert {job.submit_s for job in instance.jobs} == {0.0}
    assert {job.model for job in instance.jobs} == set(TABLE_2)
    assert instance.horizon is not None
    assert instance.horizon.slot_s == 360
    for job, hours in zip(instance.jobs, gpu_hours(instance), strict=True):
        low, high = GPU_HOURS[TABLE_2[job.model or ""]]
        assert low <= hours <= high * (1 + 1e-3)
        assert job.rates == {r: rate(job.model or "", r) for r in job.rates}


def test_gangs_and_models_are_drawn_as_documented() -> None:
    jobs = load("gen/hadar-480?jobs=8000").jobs
    gangs = Counter(job.gpus for job in jobs)
    assert [gangs[size] / len(jobs) for size in (1, 2, 4, 8)] == pytest.approx([0.70, 0.10, 0.15, 0.05], abs=0.01)
    models = Counter(job.model for job in jobs)
    assert [models[name] / len(jobs) for name in TABLE_2] == pytest.approx([0.2] * 5, abs=0.015)
    philly = Counter(TABLE_2[job.model or ""] for job in load("gen/hadar-480?jobs=8000&sizes=philly").jobs)
    shares = [philly[name] / len(jobs) for name in ("S", "M", "L", "XL")]
    assert shares == pytest.approx(np.array([0.8087, 0.1380, 0.0311, 0.0045]) / 0.9823, abs=0.012)


def test_gpu_hours_are_those_of_the_named_type() -> None:
    """The paper does not print the type: hours on a K80 are fewer iterations than hours on a V100."""
    jobs = {on: load(f"gen/hadar-480?hours_on={on}").jobs for on in ("V100", "P100", "K80")}
    assert load("gen/hadar-480").jobs == jobs["V100"]
    for on, made in jobs.items():
        for job, other in zip(made, jobs["V100"], strict=True):
            slower = rate(job.model or "", on) / rate(job.model or "", "V100")
            assert job.iterations == pytest.approx(other.iterations * slower, rel=1e-3, abs=1.5)


def test_the_printed_40_hours_are_a_fifth_of_what_uniform_sizes_need() -> None:
    """Uniform job sizes need over 200 h on 60 GPUs, sizes as in the Philly trace less than the printed 40 h.

    Both count all GPUs as busy and as fast as the fastest type.
    """
    uniform, philly = (sum(gpu_hours(load(f"gen/hadar-480?sizes={sizes}"))) / 60 for sizes in ("uniform", "philly"))
    assert uniform > 200
    assert philly < 40


@settings(max_examples=15)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 1000), st.sampled_from(["uniform", "philly"]))
def test_more_jobs_do_not_change_earlier_ones(n: int, more: int, seed: int, sizes: str) -> None:
    changes = {"seed": seed, "sizes": sizes}
    short, long = (load("gen/hadar-480", {**changes, "jobs": jobs}) for jobs in (n, n + more))
    assert long.jobs[:n] == short.jobs
    assert long.cluster == short.cluster


def test_quantities_have_streams_of_their_own() -> None:
    base, other, seed = (
        load(f"gen/hadar-480?{query}") for query in ("jobs=50", "jobs=50&sizes=philly", "jobs=50&seed=2")
    )
    assert [job.gpus for job in other.jobs] == [job.gpus for job in base.jobs]
    assert [job.iterations for job in other.jobs] != [job.iterations for job in base.jobs]
    assert [job.gpus for job in seed.jobs] != [job.gpus for job in base.jobs]
    larger = load("gen/hadar-480?jobs=50&servers_per_type=17")
    assert larger.jobs == base.jobs
    assert larger.cluster.gpus == 204


# mixes on five nodes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "gpus"),
    [
        ("gen/hadar-aws", {"V100": 1, "K80": 2, "T4": 2}),
        ("gen/hadar-testbed", {"Titan RTX": 1, "T4": 1, "T400": 1, "RTX 3090": 1, "RTX A2000": 1}),
    ],
)
@pytest.mark.parametrize("mix", MIXES)
def test_mixes(ref: str, gpus: dict[str, int], mix: str) -> None:
    instance = load(f"{ref}?mix={mix}")
    assert instance.cluster.gpus_by_type == gpus
    assert sum(g.count for g in instance.cluster.servers) == 5
    assert len(instance.jobs) == MIXES[mix]
    assert {job.gpus for job in instance.jobs} == {1}
    assert all(g.tflops and g.memory_gb for g in instance.cluster.gpu_types)
    weather = sum(job.id.startswith("MM") for job in instance.jobs)
    assert weather == {"M-1": 1, "M-3": 2, "M-4": 1, "M-5": 1, "M-8": 4, "M-10": 6, "M-12": 8}[mix]


def test_the_default_mix_is_m5_with_minutes_by_size() -> None:
    instance = load("gen/hadar-aws")
    assert [job.id for job in instance.jobs] == ["IC-1", "LM-1", "LT-1", "RS-1", "MM-1"]
    assert np.array(gpu_hours(instance)) * 60 == pytest.approx([10, 30, 30, 40, 20], rel=1e-3)


def test_jobs_of_a_mix_are_those_of_a_larger_one() -> None:
    eight, twelve = load("gen/hadar-aws?mix=M-8"), load("gen/hadar-aws?mix=M-12")
    assert twelve.jobs[:8] == eight.jobs


@pytest.mark.parametrize("mix", ["M-2", "m-5", "M-5 ", "5"])
def test_unknown_mixes_are_refused_with_the_known_ones(mix: str) -> None:
    with pytest.raises(InstanceError) as caught:
        load(f"gen/hadar-aws?mix={mix}")
    message = str(caught.value)
    assert "mix = " in message
    assert "\n" not in message
    known = "the name of a mix, such as M-5" if mix == "5" else "one of M-1, M-3, M-4, M-5, M-8, M-10, M-12"
    assert message.endswith(known)


# slots, horizon -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ref", ALL)
@pytest.mark.parametrize("slot_s", [90.0, 180.0, 360.0, 720.0])
def test_slot_lengths(ref: str, slot_s: float) -> None:
    base, other = load(ref), load(ref, {"slot_s": slot_s})
    assert other.jobs == base.jobs
    assert base.horizon is not None
    assert other.horizon is not None
    assert other.horizon.slot_s == slot_s
    assert other.horizon.end_s == pytest.approx(base.horizon.end_s, rel=0.15)
    assert not any(hadar.view(other).hopeless)


def first_come(instance: Instance, slowest: bool) -> HadarSchedule:
    """Return a schedule in which jobs, in order, take free GPUs (slowest or fastest first) until they complete."""
    view = hadar.view(instance)
    order = np.argsort(view.workload.rates.mean(axis=0) * (1 if slowest else -1), kind="stable")
    free_from = np.repeat(0, view.capacity.sum())
    kind = np.repeat(order, view.capacity[order])
    rows = []
    for j, gang in enumerate(view.workload.gpus):
        used = np.argsort(free_from, kind="stable")[:gang]
        begin = max(int(free_from[used].max()), int(view.arrival[j]))
        took = math.ceil(view.workload.work[j] / view.progress[j, kind[used]].min() - 1e-9)
        free_from[used] = begin + took
        types, counts = np.unique(kind[used], return_counts=True)
        for r, count in zip(types, counts, strict=True):
            slots = np.arange(begin, begin + took)
            rows.append(np.column_stack([np.full(took, j), slots, np.full(took, r), np.full(took, count)]))
    return placed(view, *np.concatenate(rows).T)


@pytest.mark.parametrize("slowest", [True, False])
@pytest.mark.parametrize(
    "ref",
    [
        "gen/hadar-480",
        "gen/hadar-480?sizes=philly",
        "gen/hadar-480?jobs=60&slot_s=720",
        "gen/hadar-480?slot_s=14400",
        *(f"gen/hadar-{name}?mix={mix}" for name in ("aws", "testbed") for mix in ("M-1", "M-5", "M-12")),
        "gen/hadar-testbed?mix=M-12&slot_s=720",
    ],
)
def test_the_horizon_holds_a_schedule_that_knows_nothing_of_types(ref: str, slowest: bool) -> None:
    instance = load(ref)
    view = hadar.view(instance)
    verdict = judge(view.instance, first_come(instance, slowest), hadar.COMPLETE.id, ())
    assert verdict.violations == ()
    assert verdict.metrics["ttd_rounds"] <= view.slots


# golden, published --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "golden"),
    [
        ("gen/hadar-480", "3ee75666928ede241f35e799146c180e267d90a1aacb4b3fa4f8030cd2c10119"),
        ("gen/hadar-aws", "95bf8557dd79c6eb3264fb1d741970c83de3c696eedb8095270610ec5cd8a72c"),
        ("gen/hadar-testbed", "2dcc06ea4e3f61f0859d08008dbd0befe4dc7f2221f2ec352fa978268a2f3360"),
    ],
)
def test_golden_fingerprints(ref: str, golden: str) -> None:
    """Fingerprints of instances change only if a spec, the catalogue's facts or the generator change."""
    assert load(ref).fingerprint == golden


def test_published_ratios_with_their_errata() -> None:
    ratios = {e.quantity: e for e in load("gen/hadar-480").published if e.method == "hadar.online"}
    assert ratios["ttd_ratio:hadar.yarn_cs"].value == 1.67
    assert "1.70" in ratios["ttd_ratio:hadar.yarn_cs"].note
    assert ratios["ttd_ratio:hadar.tiresias"].value == 1.35
    assert ratios["ttd_ratio:hadar.gavel"].value == 1.21
    assert ratios["ttd_h"].value == 40
    for ref, cru, jct in (("gen/hadar-aws", 1.56, 2.23), ("gen/hadar-testbed", 1.62, 2.76)):
        found = {(e.method, e.quantity): e.value for e in load(ref).published}
        assert found["hadar.hadare", "cru_ratio:hadar.gavel"] == cru
        assert found["hadar.hadare", "jct_mean_ratio:hadar.gavel"] == jct


@pytest.mark.parametrize("ref", ALL)
def test_published_numbers_are_about_the_spec_as_it_stands(ref: str) -> None:
    assert load(ref).published
    assert load(f"{ref}?seed=1&slot_s=360").published == load(ref).published
    assert load(f"{ref}?slot_s=90").published == ()
    assert load(f"{ref}?seed=2").published == ()


def test_a_spec_of_ones_own_carries_published_numbers() -> None:
    entry = {"method": "m", "where": "Table 1", "value": 3}
    document = {"generator": {"family": "speedups", "tenants": 2, "types": 2, "devices": 1, "step": 0.5}}
    assert generate({**document, "published": [entry]}, {}, "mine").published[0].value == 3
    with pytest.raises(InstanceError, match=r"^mine: published\[0\]\.where: missing$"):
        generate({**document, "published": [{"method": "m"}]}, {}, "mine", "mine")


# what cannot be -----------------------------------------------------------------------------------


def spec(**changes: Any) -> dict[str, Any]:
    table = {
        "family": "hadar-trace",
        "jobs": 3,
        "slot_s": 360.0,
        "models": ["A3C"],
        "categories": ["M"],
        "gpu_hours": {"M": [1.0, 2.0]},
        "philly_shares": {"M": 1.0},
        "gangs": [1],
        "gang_probabilities": [1.0],
        "gpu_types": ["V100"],
        "servers_per_type": 1,
        "server": {"gpus": 4},
    }
    return {"generator": {**table, **changes}}


def mix(**changes: Any) -> dict[str, Any]:
    table = {
        "family": "hadar-mix",
        "mix": "A",
        "slot_s": 360.0,
        "minutes": {"S": 5.0},
        "models": {"MM": {"model": "MiMa", "size": "S"}},
        "mixes": {"A": ["MM"]},
        "servers": [{"name": "n", "count": 1, "gpu_type": "tesla v100", "gpus": 1}],
    }
    return {"generator": {**table, **changes}}


@pytest.mark.parametrize("document", [spec(), mix()])
def test_the_small_specs_are_valid(document: dict[str, Any]) -> None:
    assert generate(document, {}, "mine").cluster.gpus_by_type.keys() == {"V100"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (spec(gangs=[5]), "jobs[0].gpus = 5: a gang fits on the 4 GPUs the job can use"),
        (spec(jobs=0), "jobs = 0: a whole number of jobs, 1 or more"),
        (spec(slot_s=0), "slot_s = 0: a slot has a positive length in seconds"),
        (spec(slot_s=1e300), "horizon: slot_s · slots = 2e+300: a horizon ends at or before 1e+12 s"),
        (spec(categories=["M", "S"]), "categories = ['M', 'S']: one for each of the 1 models"),
        (spec(gpu_hours={"S": [0.0, 1.0]}), "gpu_hours = S: one entry for each category; M is missing"),
        (spec(gpu_hours={"M": [2.0, 1.0]}), "gpu_hours.M = [2.0, 1.0]: "),
        (spec(philly_shares={"M": 0.0}), "philly_shares = {'M': 0.0}: at least one category has a positive share"),
        (spec(sizes="large"), "sizes = \"large\": input should be 'uniform' or 'philly'"),
        (spec(gpu_hours={"M": [-1.0, 2.0]}), "gpu_hours.M = [-1.0, 2.0]: hours are 0 or more"),
        (spec(hours_on="T4"), "hours_on = \"T4\": input should be 'V100', 'P100' or 'K80'"),
        (mix(mix="B"), "mix = B: one of A"),
        (mix(mixes={"A": ["XX"]}), "mixes.A = XX: one of MM"),
        (mix(mixes={"A": []}), "jobs = []: an instance has jobs, or tenants with job types"),
        (mix(models={"MM": {"model": "Mimo", "size": "S"}}), "models.MM.model = Mimo: unknown model 'Mimo'; did you"),
        (mix(models={"MM": {"model": "MiMa", "size": "M"}}), "models.MM.size = M: one of S"),
        (mix(minutes={"S": 0.0}), "minutes.S = 0.0: minutes on one V100 by size class, positive"),
        (mix(servers=[]), "servers = []: at least one server"),
    ],
)
def test_impossible_specs_are_refused_in_one_line(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        generate(document, {}, "mine", "mine")
    assert str(caught.value).startswith(f"mine: {message}")
    assert "\n" not in str(caught.value)


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown parameter 'slots'; did you mean slot_s"):
        load("gen/hadar-aws?slots=4")


def test_rates_of_zero_on_every_type_are_refused() -> None:
    data = load("gen/hadar-aws").model_dump(mode="json")
    data["jobs"][2]["rates"] = dict.fromkeys(data["jobs"][2]["rates"], 0.0)
    with pytest.raises(ValueError, match="a positive rate on at least one GPU type"):
        Instance.model_validate_json(json.dumps(data))
