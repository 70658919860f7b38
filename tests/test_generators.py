"""Generators are reproducible, keep the jobs of shorter instances, have the promised load, and are feasible."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap.instances.catalogue import load
from schedgap.instances.errors import InstanceError
from schedgap.instances.generate import FAMILIES, Family, GeneratorSpec, Streams, draws, generate
from schedgap.instances.generate.day import DaySpec, split
from schedgap.instances.generate.oef import vary
from schedgap.instances.model_catalogue import find
from schedgap.instances.schema import Instance, Utility
from schedgap.instances.schema.summary import load as fluid_load
from schedgap.instances.workload import workload

DAYS = ["gen/20jobs", "gen/50jobs", "gen/200jobs", "gen/1000jobs", "gen/2000jobs"]


# random numbers -----------------------------------------------------------------------------------


@given(st.integers(0, 2**64), st.integers(0, 40), st.integers(0, 40))
def test_streams_depend_on_seed_and_quantity_only(seed: int, n: int, more: int) -> None:
    streams = Streams(seed)
    first = streams.uniform("sizes", n)
    assert streams.uniform("sizes", n + more)[:n].tolist() == first.tolist()
    if n:
        assert streams.uniform("arrivals", n).tolist() != first.tolist()
        assert Streams(seed + 1).uniform("sizes", n).tolist() != first.tolist()


def test_streams_are_the_same_on_every_machine() -> None:
    assert Streams(1).uniform("sizes", 2).tolist() == [0.4022781634066661, 0.7674726584062708]


@pytest.mark.parametrize(("mean", "spread"), [(3.0, 48.0), (1.0, 1.5), (100.0, 1e4)])
def test_log_uniform_has_the_mean_and_spread_it_says(mean: float, spread: float) -> None:
    u = (np.arange(200_000) + 0.5) / 200_000
    values = draws.log_uniform(u, mean, spread)
    assert values.mean() == pytest.approx(mean, rel=1e-6)
    assert values[-1] / values[0] == pytest.approx(spread, rel=1e-3)


def test_choice_and_whole_cover_all_values() -> None:
    u = (np.arange(1000) + 0.5) / 1000
    assert np.bincount(draws.choice(u, [0.7, 0.0, 0.3])).tolist() == [700, 0, 300]
    assert {draws.whole(v, 5, 8) for v in (0.0, 0.3, 0.6, math.nextafter(1, 0))} == {5, 6, 7, 8}


def test_poisson_arrivals_have_the_rate() -> None:
    times = draws.poisson_arrivals(Streams(3).uniform("arrivals", 20_000), rate=0.5)
    assert times[-1] == pytest.approx(40_000, rel=0.02)
    assert (np.diff(times) > 0).all()


# utilities ----------------------------------------------------------------------------------------


KINDS = [kind.model_fields["kind"].default for kind in get_args(get_args(Utility)[0])]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ref", ["gen/20jobs", "gen/hadar-480?jobs=12", "gen/hadar-aws", "gen/oef-50?tenants=3"])
def test_every_utility_of_the_schema_can_be_asked_for(ref: str, kind: str) -> None:
    usual, asked = load(ref), load(ref, {"utility": kind})
    assert {job.utility.kind for job in asked.jobs} == {kind}
    same = {"utility", "deadline_s"}
    assert [j.model_dump(exclude=same) for j in asked.jobs] == [j.model_dump(exclude=same) for j in usual.jobs]
    assert all(b.deadline_s == a.deadline_s for a, b in zip(usual.jobs, asked.jobs, strict=True) if a.deadline_s)
    if kind == "effective_throughput":
        assert asked.jobs == usual.jobs
        return
    work = workload(asked)
    alone_s = work.work / (work.gpus * work.rates.max(axis=1))
    times = np.array([[1e-6], [0.5], [1.0], [1.5], [2.0]])
    due_s = [b.deadline_s or a for a, b in zip(work.arrival_s + 4 * alone_s, usual.jobs, strict=True)]
    worth = work.utilities.value(np.arange(work.size), times * (np.array(due_s) - work.arrival_s))
    expected = {
        "normalised": [alone_s / (np.array(due_s) - work.arrival_s) / time for time in (1e-6, 0.5, 1.0, 1.5, 2.0)],
        "sigmoid": [1 / (1 + math.exp(4 * (time - 1))) for time in (1e-6, 0.5, 1.0, 1.5, 2.0)],
        "linear_deadline": [1.0, 1.0, 1.0, 0.5, 0.0],
        "constant": [1.0] * 5,
    }[kind]
    assert worth == pytest.approx(np.broadcast_to(np.array(expected).reshape(5, -1), worth.shape), rel=1e-3, abs=1e-3)


def test_an_unknown_utility_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InstanceError) as caught:
        load("gen/20jobs?utility=linear")
    assert all(f"'{kind}'" in str(caught.value) for kind in KINDS)


def test_another_utility_has_no_published_numbers() -> None:
    assert load("gen/hadar-480").published
    assert not load("gen/hadar-480?utility=constant").published


# the family of gen/200jobs ------------------------------------------------------------------------


def test_golden_fingerprint() -> None:
    """The fingerprint of an instance changes only if its spec, the catalogue's facts or the generator change."""
    assert load("gen/200jobs").fingerprint == GOLDEN


GOLDEN = "9faab54800d4c8573db8193e5733ababa21c3091544a2ddf7dc5018b023c99d8"


@settings(max_examples=15)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 1000))
def test_more_jobs_do_not_change_earlier_ones(n: int, more: int, seed: int) -> None:
    short = load("gen/200jobs", {"jobs": n, "seed": seed})
    long = load("gen/200jobs", {"jobs": n + more, "seed": seed})
    assert long.jobs[:n] == short.jobs
    assert long.tenants == short.tenants
    assert long.cluster == short.cluster


@pytest.mark.parametrize("ref", DAYS)
def test_a_day_at_load_09(ref: str) -> None:
    instance = load(ref)
    assert len(instance.jobs) == int(ref.removeprefix("gen/").removesuffix("jobs"))
    assert fluid_load(instance) == pytest.approx(0.9, rel=0.011)
    assert instance.jobs[-1].submit_s == pytest.approx(86_400, rel=0.02)
    assert [job.submit_s for job in instance.jobs] == sorted(job.submit_s for job in instance.jobs)
    assert len({job.tenant for job in instance.jobs}) == len(instance.tenants)


def test_the_front_door() -> None:
    instance = load("gen/200jobs")
    assert instance.cluster.gpus_by_type == {"V100": 20, "P100": 20, "K80": 20}
    assert sum(group.count for group in instance.cluster.servers) == 15
    assert (len(instance.tenants), len(instance.worker_types), len(instance.ps_types)) == (20, 8, 10)
    assert {job.gpus for job in instance.jobs} == {1, 2, 4, 8}
    assert {tenant.weight for tenant in instance.tenants} == {1.0, 2.0}
    assert {len(tenant.job_types) for tenant in instance.tenants} == {1, 2}
    assert instance.horizon is not None
    assert (instance.horizon.slot_s, instance.horizon.slots) == (900, 288)


@pytest.mark.parametrize("load_factor", [0.5, 1.2, 2.0])
def test_load_scales_the_sizes_of_the_same_jobs(load_factor: float) -> None:
    base, other = load("gen/200jobs"), load("gen/200jobs", {"load": load_factor})
    ratio = sum(j.iterations for j in other.jobs) / sum(j.iterations for j in base.jobs)
    assert ratio == pytest.approx(load_factor / 0.9, rel=0.01)
    assert [j.submit_s for j in base.jobs] == [j.submit_s for j in other.jobs]
    assert [j.gpus for j in base.jobs] == [j.gpus for j in other.jobs]


def test_the_load_holds_on_average_over_seeds() -> None:
    loads = [fluid_load(load("gen/1000jobs", {"seed": seed})) or 0.0 for seed in range(10)]
    assert np.mean(loads) == pytest.approx(0.9, rel=0.05)


@pytest.mark.parametrize("ref", ["gen/20jobs", "gen/200jobs"])
def test_jobs_serve_all_papers(ref: str) -> None:
    instance = load(ref)
    kinds = {(t.id, k.name): k.rates for t in instance.tenants for k in t.job_types}
    for job in instance.jobs:
        model = find(job.model or "")
        assert model is not None
        assert job.rates == kinds[job.tenant or "", model.name] == {r: model.rates[r] for r in job.rates}
        assert job.sensitivity is model.sensitivity
        assert 50 <= job.epochs <= 100
        assert 5 <= job.chunks <= 50
        assert 200 <= job.weight <= 5000
        assert job.weight == int(job.weight)
        shortest = job.iterations / (job.gpus * max(job.rates.values()))
        assert job.deadline_s is not None
        factor = (job.deadline_s - job.submit_s - 1800) / shortest
        assert 1.99 < factor < 6.01


def test_distributed_profiles_are_consistent_with_the_rates() -> None:
    instance = load("gen/200jobs")
    workers = {w.name: w for w in instance.worker_types}
    for job in instance.jobs:
        profile = job.distributed
        assert profile is not None
        assert 30 <= profile.gradient_mb <= 575
        assert set(profile.minibatch_ms) == set(workers)
        for name, milliseconds in profile.minibatch_ms.items():
            rate = workers[name].gpus * job.rates[workers[name].gpu_type or ""]
            assert milliseconds == pytest.approx(1000 / rate, rel=1e-5)
        updates = [profile.update_ms[p.name] for p in sorted(instance.ps_types, key=lambda p: p.cpus)]
        assert all(a >= b for a, b in pairwise(updates))
        assert 10 <= min(updates) <= max(updates) <= 100


def list_schedule(instance: Instance) -> int:
    """Return the last used slot if jobs, by arrival, take the GPUs on which they end earliest."""
    assert instance.horizon is not None
    slot_s = instance.horizon.slot_s
    gpus = [(r, 0) for r, count in instance.cluster.gpus_by_type.items() for _ in range(count)]
    for job in instance.jobs:
        options = []
        for bottleneck in set(job.rates.values()):
            free = sorted((until, i) for i, (r, until) in enumerate(gpus) if job.rates[r] >= bottleneck)[: job.gpus]
            start = max(math.ceil(job.submit_s / slot_s), free[-1][0])
            end = start + math.ceil(job.iterations / (job.gpus * bottleneck * slot_s))
            options += [(end, [i for _, i in free])] if len(free) == job.gpus else []
        end, used = min(options)
        for i in used:
            gpus[i] = (gpus[i][0], end)
    return max(until for _, until in gpus)


@pytest.mark.parametrize("ref", [*DAYS[:4], "gen/20jobs?load=1.2", "gen/200jobs?load=1.2", "gen/200jobs?jobs=300"])
def test_a_list_schedule_ends_within_the_horizon(ref: str) -> None:
    instance = load(ref)
    assert instance.horizon is not None
    assert list_schedule(instance) < 0.75 * instance.horizon.slots


@given(st.floats(1, 1e9), st.floats(0, 0.999), st.floats(0, 0.999))
def test_split_keeps_the_work(work: float, u_epochs: float, u_chunks: float) -> None:
    spec = DaySpec.model_construct(epochs=(50, 100), chunks=(5, 50))
    epochs, chunks, batches = split(work, spec, u_epochs, u_chunks)
    assert 1 <= epochs <= 100
    assert 5 <= chunks <= 50
    got = epochs * chunks * batches
    if work >= 5000:
        assert epochs >= 50
        assert got == pytest.approx(work, rel=0.051)
    elif work >= 5:
        assert got == pytest.approx(work, rel=0.51)


# OEF's set-ups ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "tenants", "jobs"), [("gen/oef-4", 4, 40), ("gen/oef-20", 20, 100), ("gen/oef-50", 50, 1000)]
)
def test_oef_tenants(ref: str, tenants: int, jobs: int) -> None:
    instance = load(ref)
    assert instance.cluster.gpus_by_type == {"RTX 3070": 8, "RTX 3080": 8, "RTX 3090": 8}
    assert [(g.count, g.gpus) for g in instance.cluster.servers] == [(2, 4)] * 3
    assert (len(instance.tenants), len(instance.jobs)) == (tenants, jobs)
    for tenant in instance.tenants:
        rates = list(tenant.job_types[0].rates.values())
        assert rates == sorted(rates)
        own = [job for job in instance.jobs if job.tenant == tenant.id]
        assert own
        assert all(job.rates == tenant.job_types[0].rates for job in own)
        assert tenant.arrive_s == min(job.submit_s for job in own)
    assert len({tuple(t.job_types[0].rates.values()) for t in instance.tenants}) == tenants


def test_oef_variation_is_bounded() -> None:
    model = find("OEF VGG")
    assert model is not None
    base = model.rates["RTX 3090"] / model.rates["RTX 3070"]
    for tenant in load("gen/oef-50").tenants[::6]:
        rates = tenant.job_types[0].rates
        assert 0.9**2 <= rates["RTX 3090"] / rates["RTX 3070"] / base <= 1.1**2
        assert 0.5 <= rates["RTX 3070"] / model.rates["RTX 3070"] <= 2


@given(st.lists(st.floats(0.1, 1.9), min_size=3, max_size=3))
def test_faster_types_stay_faster(factors: list[float]) -> None:
    rates = list(vary({"a": 1.0, "b": 1.2, "c": 1.3}, 1.0, np.array(factors)).values())
    assert rates[0] < rates[1] < rates[2]


def test_a_tenant_may_leave_or_begin_a_second_type_and_all_else_stays() -> None:
    usual, left = load("gen/oef-4"), load("gen/oef-4?leave_min=40")
    assert [tenant.leave_s for tenant in left.tenants] == [None, None, None, 2400]
    assert (left.jobs, left.tenants[:3]) == (usual.jobs, usual.tenants[:3])
    second = load("gen/oef-4?second_type_min=40")
    assert (second.jobs[:40], second.tenants[1:]) == (usual.jobs, usual.tenants[1:])
    assert [kind.name for kind in second.tenants[0].job_types] == ["OEF LSTM", "OEF Transformer"]
    own = [job for job in usual.jobs if job.tenant == "tenant-01"]
    added = [(job.tenant, job.model, job.submit_s) for job in second.jobs[40:]]
    assert added == [("tenant-01", "OEF Transformer", 2400)] * len(own)


def test_lists_of_numbers_are_parameters() -> None:
    instance = load("gen/oef-20?gangs=2,3&gang_probabilities=0.5,0.5&epochs=7,7")
    assert {job.gpus for job in instance.jobs} == {2, 3}
    assert {job.epochs for job in instance.jobs} == {7}
    assert load("gen/oef-20?gangs=1,2,4").fingerprint == load("gen/oef-20").fingerprint
    with pytest.raises(InstanceError, match="one probability per gang size"):
        load("gen/oef-20?gangs=1,2")
    with pytest.raises(InstanceError, match=r"gangs\[1\] = \"x\""):
        load("gen/oef-20?gangs=1,x")


def test_two_classes_of_tenants() -> None:
    tenants = load("gen/oef-classes?ratio=4&fast=2&tenants=5").tenants
    rates = [list(tenant.job_types[0].rates.values()) for tenant in tenants]
    assert rates == [[1, 1, 4]] * 2 + [[1, 1, 1]] * 3


def test_oef_scale() -> None:
    small, large = load("gen/oef-scale"), load("gen/oef-scale?tenants=1000")
    assert (len(small.tenants), len(small.cluster.gpu_types), len(small.jobs)) == (200, 10, 0)
    assert large.tenants[:200] == small.tenants
    for tenant in small.tenants:
        speedups = list(tenant.job_types[0].rates.values())
        assert speedups[0] == 1
        assert speedups == sorted(speedups)


def test_oef_more_jobs_do_not_change_earlier_ones() -> None:
    short, long = load("gen/oef-50?jobs=60"), load("gen/oef-50?jobs=90")
    assert long.jobs[:60] == short.jobs


# the mechanism ------------------------------------------------------------------------------------


def test_families_register_themselves() -> None:
    assert set(FAMILIES.ids()) >= {"day", "tenants", "speedups"}
    with pytest.raises(ValueError, match="generator family 'day' is registered already; choose another id"):
        FAMILIES.register(Family("day", GeneratorSpec, lambda spec, streams: {}))


def test_an_instance_that_cannot_be_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"^gen/20jobs\?tail_h=0: jobs\[.*before the end of the horizon") as caught:
        load("gen/20jobs?tail_h=0")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": ["ResNet-5"]}, "models[0] = ResNet-5: unknown model 'ResNet-5'; did you mean "),
        ({"models": []}, "models = []: names from the model catalogue"),
        (
            {"gang_probabilities": [0.5, 0.5]},
            "gang_probabilities = (0.5, 0.5): one probability per gang size",
        ),
        ({"epochs": [9, 3]}, "epochs = [9, 3]: two whole numbers, the smaller first"),
        ({"server": {"gpus": 0}}, "server.gpus = 0: a server has at least one GPU"),
        (
            {"gangs": [100], "gang_probabilities": [1]},
            "jobs[0].gpus = 100: a gang fits on the 12 GPUs the job can use",
        ),
        (
            {"gpu_types": ["V100", "Tesla V100"]},
            "cluster.gpu_types[1].name = V100: already used by cluster.gpu_types[0]",
        ),
    ],
)
def test_specs_are_validated(changes: dict[str, object], message: str) -> None:
    spec = {**MINIMAL, **changes}
    with pytest.raises(ValueError, match=r"^mine: ") as caught:
        generate({"generator": spec}, {}, name="mine", where="mine")
    assert str(caught.value).startswith(f"mine: {message}")


def test_gpu_types_go_by_the_names_of_the_catalogue() -> None:
    instance = generate({"generator": {**MINIMAL, "gpu_types": ["tesla v100", "T4"]}}, {}, name="mine")
    assert set(instance.jobs[0].rates) == {"V100", "T4"}
    assert "rate of A3C on T4 = rate on V100 x 0.518 (TFLOPS)" in " ".join(instance.derived)


MINIMAL = {
    "family": "day",
    "jobs": 4,
    "jobs_per_day": 4.0,
    "load": 0.5,
    "size_spread": 10.0,
    "tail_h": 48.0,
    "slot_s": 900.0,
    "tenants": 1,
    "models": ["A3C"],
    "gangs": [1],
    "gang_probabilities": [1.0],
    "gpu_types": ["V100", "P100", "K80"],
    "servers_per_type": 1,
    "server": {"gpus": 4},
}
