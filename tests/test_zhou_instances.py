"""Zhou's simulated instances: the ranges of section 7, capacity, shorter instances, and what the figures vary."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap.heuristics.zhou.batches import Way, maxweight
from schedgap.instances.catalogue import load
from schedgap.instances.errors import InstanceError, NotApplicableError, UnknownNameError
from schedgap.instances.generate import Streams, generate
from schedgap.instances.generate.zhou import ZhouSpec, build, ideal
from schedgap.instances.schema import Instance
from schedgap.instances.views import zhou

PS, RA = "gen/zhou-ps", "gen/zhou-ra"
LARGE = {"servers": 1, "capacity": 100.0}
"""Settings of an instance with a server on which any number of jobs runs."""
BOTH = pytest.mark.parametrize("ref", [PS, RA])


def architecture(ref: str) -> zhou.Architecture:
    return zhou.view(load(ref)).architectures[ref.partition("?")[0][-2:]]


def totals(instance: Instance) -> list[float]:
    rows = [(g.count, g.gpus, g.cpus, g.memory_gb, g.bandwidth_gbps) for g in instance.cluster.servers]
    return [float(sum(row[0] * row[r] for row in rows)) for r in range(1, 5)]


# ranges -------------------------------------------------------------------------------------------


@BOTH
def test_sizes_and_ranges_are_those_of_section_7(ref: str) -> None:
    instance = load(ref)
    assert len(instance.jobs) == 200
    assert sum(group.count for group in instance.cluster.servers) == 150
    assert instance.horizon is not None
    assert (instance.horizon.slot_s, instance.horizon.slots) == (3600, 150)
    assert len(instance.worker_types) == 8
    for worker in instance.worker_types:
        assert 1 <= worker.gpus <= 4
        assert 1 <= worker.cpus <= 16
        assert 0.1 <= worker.bandwidth_gbps <= 5
    for job in instance.jobs:
        assert 200 <= job.weight <= 5000
        assert 50 <= job.epochs <= 100
        assert 5 <= job.chunks <= 50
        assert 10 <= job.minibatches_per_chunk <= 50
        assert 0 <= job.submit_s < 150 * 3600
        assert job.distributed is not None
        assert 30 <= job.distributed.gradient_mb <= 575
        times = [ms / 3_600_000 for ms in job.distributed.minibatch_ms.values()]
        assert len(times) == 8
        assert times[0] >= 0.001
        assert times == sorted(times)
        assert times[-1] <= 0.05


def test_parameter_servers_and_rings() -> None:
    ps, ra = load(PS), load(RA)
    assert len(ps.ps_types) == 10
    assert ra.ps_types == ()
    for server in ps.ps_types:
        assert 1 <= server.cpus <= 16
        assert server.gpus == 0
        assert 5 <= server.bandwidth_gbps <= 20
    for mine, other in zip(ps.jobs, ra.jobs, strict=True):
        assert mine.distributed
        assert other.distributed
        updates = list(mine.distributed.update_ms.values())
        assert len(updates) == 10
        assert 10 <= updates[0] <= updates[-1] <= 100
        assert mine.distributed.ring_update_ms is None
        assert 10 <= (other.distributed.ring_update_ms or 0) <= 100
        assert not other.distributed.update_ms
        assert mine.distributed.minibatch_ms == other.distributed.minibatch_ms
        assert (mine.id, mine.weight, mine.submit_s) == (other.id, other.weight, other.submit_s)


@BOTH
def test_every_job_fits_on_the_servers_in_three_classes(ref: str) -> None:
    found = architecture(ref)
    assert found.reason is None
    assert found.classes.size == 3
    used = np.unique(found.options.worker_type)
    assert len(used) == 8


@pytest.mark.parametrize(
    ("ref", "golden"),
    [
        (PS, "9b185ab924a8ea237ed9ae66e754adebf388cd7f3d600e564fc9861711cef020"),
        (RA, "5f2b1c06ef1e186827d0e53737945c07467c56ca5b399c49e0e040c9d70228fa"),
    ],
)
def test_golden_fingerprints(ref: str, golden: str) -> None:
    """Fingerprints of instances change only if a spec or the generator changes."""
    assert load(ref).fingerprint == golden


@settings(max_examples=10)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 1000), st.sampled_from([PS, RA]))
def test_more_jobs_do_not_change_earlier_ones(n: int, more: int, seed: int, ref: str) -> None:
    short = load(ref, {"jobs": n, "seed": seed, **LARGE})
    long = load(ref, {"jobs": n + more, "seed": seed, **LARGE})
    assert long.jobs[:n] == short.jobs
    assert long.worker_types == short.worker_types


# capacity -----------------------------------------------------------------------------------------


def test_ideal_demand_by_hand() -> None:
    spec = generated(jobs=1)
    # 10 mini-batches on 2 workers: 5 each, of 0.1 + 0.02 + 0.08 slots (36 MB there and back through 2 Mbit/s: 288 s).
    slots, taken = ideal(spec, generate_jobs(spec))
    assert slots.tolist() == [1]
    # Two fast workers, and one PS of 3 Gbit/s for the 0.004 of the workers.
    assert taken.tolist() == [[2 * 2, 2 * 1.0 + 1.0, 2 * 4.0 + 2.0, pytest.approx(2 * 0.002 + 3.0)]]
    ring, alone = ideal(spec.model_copy(update={"architecture": "ra"}), generate_jobs(spec))
    assert ring.tolist() == [1]
    assert alone.tolist() == [[4, 2.0, 8.0, 0.004]]


@BOTH
@pytest.mark.parametrize("capacity", [0.2, 0.35, 0.5])
def test_capacity_is_a_fraction_of_the_ideal_demand(ref: str, capacity: float) -> None:
    instance = load(ref, {"capacity": capacity})
    spec = spec_of(ref)
    slots, taken = ideal(spec, load(ref).jobs)
    wanted = capacity * slots @ taken / 150
    # GPUs are whole, on each of the 150 servers: half a GPU of 900 / 150 at most.
    assert totals(instance)[0] == pytest.approx(wanted[0], abs=75)
    assert totals(instance)[1:] == pytest.approx(wanted[1:].tolist(), rel=1e-5)


def test_at_the_default_fraction_servers_are_nearly_those_of_ec2() -> None:
    for group in load(PS).cluster.servers:
        assert group.gpus == pytest.approx({"p3.8xlarge": 4, "p2.8xlarge": 8, "g3.8xlarge": 2}[group.name], abs=2)
        assert group.cpus == pytest.approx(32, rel=0.1)


@pytest.mark.parametrize("servers", [100, 200, 301])
def test_the_number_of_servers_keeps_the_total(servers: int) -> None:
    base, other = load(PS), load(f"{PS}?servers={servers}")
    assert sum(group.count for group in other.cluster.servers) == servers
    assert totals(other)[1:] == pytest.approx(totals(base)[1:], rel=1e-4)
    assert totals(other)[0] == pytest.approx(totals(base)[0], rel=0.15)
    assert other.jobs == base.jobs


def test_few_servers_are_of_the_first_kinds() -> None:
    assert [group.name for group in load(f"{PS}?servers=2&jobs=5").cluster.servers] == ["p3.8xlarge", "p2.8xlarge"]


def test_slots_spread_the_same_work() -> None:
    base, other = load(PS), load(f"{PS}?slots=300")
    assert totals(other)[1:] == pytest.approx([x / 2 for x in totals(base)[1:]], rel=1e-5)
    assert [job.weight for job in other.jobs] == [job.weight for job in base.jobs]
    assert max(job.submit_s for job in other.jobs) > 290 * 3600


# what the figures vary ----------------------------------------------------------------------------


@BOTH
def test_one_worker_type(ref: str) -> None:
    base, other = load(ref), load(f"{ref}?worker_type=p2.2xlarge")
    assert [worker.name for worker in other.worker_types] == ["p2.2xlarge"]
    assert other.cluster == base.cluster
    for mine, old in zip(other.jobs, base.jobs, strict=True):
        assert mine.distributed
        assert old.distributed
        assert mine.distributed.minibatch_ms == {"p2.2xlarge": old.distributed.minibatch_ms["p2.2xlarge"]}
        assert mine.distributed.update_ms == old.distributed.update_ms
    assert architecture(f"{ref}?worker_type=p2.2xlarge").reason is None


@BOTH
@pytest.mark.parametrize("workers", [1, 7, 30])
def test_a_limited_number_of_workers(ref: str, workers: int) -> None:
    base, other = load(ref), load(f"{ref}?workers={workers}")
    assert other.cluster == base.cluster
    for mine, old in zip(other.jobs, base.jobs, strict=True):
        assert mine.chunks == min(old.chunks, workers)
        assert abs(mine.iterations - old.iterations) <= old.epochs * workers / 2


def test_when_jobs_arrive() -> None:
    first, spread, rate = (load(f"{PS}?arrivals={how}").jobs for how in ("start", "uniform", "poisson"))
    assert {job.submit_s for job in first} == {0.0}
    hours = [job.submit_s / 3600 for job in rate]
    assert hours == sorted(hours)
    assert all(hour.is_integer() for hour in hours)
    assert hours[-1] == pytest.approx(150, rel=0.2)
    last = [max(job.submit_s for job in load(f"{PS}?arrivals=poisson&seed={seed}").jobs) / 3600 for seed in range(5)]
    assert max(last) == 149  # a job that comes after the horizon comes in its last slot
    assert [job.weight for job in first] == [job.weight for job in spread] == [job.weight for job in rate]


@BOTH
def test_jobs_may_rank_worker_types_alike_or_not(ref: str) -> None:
    def fastest(types: str) -> set[str]:
        times = [job.distributed.minibatch_ms for job in load(f"{ref}?types={types}").jobs if job.distributed]
        return {min(one, key=one.__getitem__) for one in times}

    assert fastest("aligned") == {"p3.8xlarge"}
    assert len(fastest("shuffled")) == 8


def test_gpus_may_be_spread_so_that_their_sum_has_no_large_steps() -> None:
    """With ``gpus=spread`` the total number of GPUs follows the capacity; rounded by server, it jumps by 50.

    There are 50 servers of each kind.
    """
    rounded, spread = (
        [totals(load(f"{PS}?gpus={how}&capacity={capacity}"))[0] for capacity in (0.25, 0.26)]
        for how in ("rounded", "spread")
    )
    assert all(total % 50 == 0 for total in rounded)
    assert spread[1] / spread[0] == pytest.approx(0.26 / 0.25, rel=0.01)
    groups = load(f"{PS}?gpus=spread").cluster.servers
    assert sum(group.count for group in groups) == 150
    assert len({group.name for group in groups}) == len(groups) == 6


def test_unit_worth() -> None:
    assert load(PS).unit_worth is None
    other = load(f"{PS}?unit_worth=2.5")
    assert other.unit_worth == 2.5
    assert zhou.view(other).architectures["ps"].unit_worth == 2.5
    assert other.jobs == load(PS).jobs


def test_due_slot() -> None:
    """τ is the slot that is asked for; a later τ completes more weight, and without it instances do not change."""
    assert load(PS).due_slot is None
    small = f"{PS}?jobs=12&servers=6"
    own = load(small)
    views = {tau: zhou.view(load(f"{small}&due_slot={tau}")).architectures["ps"] for tau in (16, 128, 2000)}
    assert [a.deadline for a in views.values()] == [16, 128, 2000]
    assert load(f"{small}&due_slot=0").fingerprint == own.fingerprint
    assert load(f"{small}&due_slot=8").fingerprint != own.fingerprint
    assert load(f"{small}&due_slot=8").jobs == own.jobs
    done = [maxweight(a, Way()) for a in views.values()]
    assert all((run.start + run.slots).max(initial=0) <= tau for run, tau in zip(done, views, strict=True))
    assert done[0].job.size < done[1].job.size < done[2].job.size == 12
    with pytest.raises(NotApplicableError, match="no job can complete before slot 8 "):
        _ = zhou.view(load(f"{small}&due_slot=8")).architectures["ps"].deadline


@pytest.mark.parametrize("slot", ["1", "-3", "10001", "1.5"])
def test_no_job_is_done_before_slot_2(slot: str) -> None:
    with pytest.raises(InstanceError, match="due_slot"):
        load(f"{PS}?due_slot={slot}")


# what cannot be -----------------------------------------------------------------------------------


def document(**changes: Any) -> dict[str, Any]:
    table = {
        "family": "zhou", "jobs": 1, "slots": 1, "slot_s": 3600.0, "servers": 1, "capacity": 1.0,
        "weights": [1, 1], "epochs": [1, 1], "chunks": [2, 2], "minibatches": [5, 5], "minibatch_slots": [0.1, 0.1],
        "update_ms": [72_000.0, 72_000.0], "gradient_mb": [36.0, 36.0],
        "gpu_types": [{"name": "A"}],
        "server_kinds": [{"name": "s", "count": 1, "gpu_type": "A", "gpus": 4, "cpus": 4.0, "memory_gb": 16.0,
                          "bandwidth_gbps": 4.0}],
        "worker_types": [
            {"name": "fast", "gpus": 2, "cpus": 1.0, "memory_gb": 4.0, "bandwidth_gbps": 0.002},
            {"name": "slow", "gpus": 1, "bandwidth_gbps": 0.001},
        ],
        "ps_types": [{"name": "PS", "cpus": 1.0, "memory_gb": 2.0, "bandwidth_gbps": 3.0}],
    }  # fmt: skip
    return {"generator": {**table, **changes}}


def generated(**changes: Any) -> ZhouSpec:
    return ZhouSpec.model_validate_json(json.dumps(document(**changes)["generator"]))


def generate_jobs(spec: ZhouSpec) -> Any:
    return build(spec, Streams(spec.seed))["jobs"]


def spec_of(ref: str) -> ZhouSpec:
    folder = resources.files("schedgap.instances").joinpath("gen")
    table = tomllib.loads(folder.joinpath("zhou-ps.toml").read_text("utf-8"))["generator"]
    return ZhouSpec.model_validate_json(json.dumps({**table, "architecture": ref[-2:]}))


def test_the_small_spec_is_valid() -> None:
    assert generate(document(), {}, "mine").cluster.gpus > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jobs": 0}, "jobs = 0: a whole number of jobs, 1 or more"),
        ({"servers": 0}, "servers = 0: a whole number of servers, 1 or more"),
        ({"capacity": 0}, "capacity = 0: a positive fraction of the ideal demand, at most 1000"),
        ({"jobs": 10**6}, "jobs · types = 2000000: at most 1000000; to raise it"),
        ({"slots": 10**7}, "slots = 10000000: at most 1000000; to raise it"),
        ({"ps_types": []}, "ps_types = []: architecture ps needs at least one type of parameter servers"),
        ({"worker_type": "fat"}, "worker_type = fat: unknown worker type 'fat'; did you mean fast?"),
        ({"chunks": [0, 3]}, "chunks = 0: the lower end is 1 or more"),
        ({"minibatch_slots": [0.0, 3.0]}, "minibatch_slots = 0.0: the lower end is positive"),
        ({"weights": [5, 3]}, "weights = [5, 3]"),
        ({"architecture": "tree"}, "architecture = \"tree\": input should be 'ps' or 'ra'"),
    ],
)
def test_impossible_specs_are_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        generate(document(**changes), {}, "mine", "mine")
    assert str(caught.value).startswith(f"mine: {message}")
    assert "\n" not in str(caught.value)


def test_crumbs_of_servers_are_refused() -> None:
    with pytest.raises(InstanceError) as caught:
        load(f"{PS}?jobs=20")
    assert str(caught.value) == (
        f"{PS}?jobs=20: servers = 150: each is too small for a worker with a parameter server;"
        " ask for fewer servers, more jobs or more capacity"
    )
    with pytest.raises(InstanceError, match=r"servers = 100000: each is too small for a worker; ask for"):
        load(f"{RA}?servers=100000")
    assert architecture(f"{PS}?jobs=20&servers=15").reason is None


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown parameter 'server'; did you mean servers"):
        load(f"{PS}?server=4")


@BOTH
def test_published_numbers(ref: str) -> None:
    name = ref[-2:]
    found = {entry.quantity: entry.value for entry in load(ref).published}
    others = [f"objective_ratio:zhou.{name}.{other}" for other in ("fifo", "drf", "antman", "tiresias")]
    assert found == {**dict.fromkeys(others, 1.43), "solve_s": 120}
    assert load(f"{ref}?jobs=199").published == ()
