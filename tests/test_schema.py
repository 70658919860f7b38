"""The schema: each malformed instance ends in one exact line, and each valid one is the same after a round trip."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import instances
from schedgap.instances import canonical
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.schema import Instance, limits

Change = Callable[[dict[str, Any]], Any]

MATRIX = {"kind": "matrix", "cpus_per_gpu": [1, 2], "memory_gb_per_gpu": [1], "progress": [[1], [1]]}
PIPELINE = {
    "kind": "pipeline",
    "prep_rate_per_cpu": 1,
    "item_mb_per_iteration": 0,
    "dataset_gb": 1,
    "process_memory_gb": 0,
    "storage_mb_per_s": 1,
}


def small() -> dict[str, Any]:
    """Return a small valid instance as plain data; its GPU type ``b`` has no servers."""
    return {
        "name": "small",
        "cluster": {
            "gpu_types": [{"name": "a"}, {"name": "b"}],
            "servers": [{"name": "s", "count": 1, "gpu_type": "a", "gpus": 2}],
        },
        "tenants": [{"id": "t"}],
        "jobs": [{"id": "j", "gpus": 1, "epochs": 1, "rates": {"a": 1.0}}],
        "worker_types": [{"name": "w", "gpus": 1, "bandwidth_gbps": 1.0}],
        "ps_types": [{"name": "p", "bandwidth_gbps": 1.0}],
        "horizon": {"slot_s": 1.0, "slots": 10},
    }


def job(**fields: Any) -> Change:
    return lambda d: d["jobs"][0].update(fields)


def server(**fields: Any) -> Change:
    return lambda d: d["cluster"]["servers"][0].update(fields)


def tenant(**fields: Any) -> Change:
    return lambda d: d["tenants"][0].update(fields)


def top(**fields: Any) -> Change:
    return lambda d: d.update(fields)


def without(*path: str | int) -> Change:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return change


def twice(*path: str) -> Change:
    def change(data: Any) -> None:
        for key in path:
            data = data[key]
        data.append(copy.deepcopy(data[0]))

    return change


def kind(**fields: Any) -> Change:
    """Return a change to a tenant with one job type that has these fields."""
    return tenant(job_types=[{"name": "k", **fields}])


GPU_RULE = "a job needs at least one GPU"
SUBMIT_RULE = "submission time is 0 or more seconds"
RATE_RULE = "iterations per second of ONE GPU of each type, 0 or more"
LIMIT = "at most 1000000; to raise it, set schedgap.instances.schema.limits.MAX_ITEMS in Python"

ERRORS: list[tuple[Change, str]] = [
    # one field of a job
    (job(gpus=0), f"jobs[0].gpus = 0: {GPU_RULE}"),
    (job(gpus=-3), f"jobs[0].gpus = -3: {GPU_RULE}"),
    (job(gpus=1.5), f"jobs[0].gpus = 1.5: {GPU_RULE}"),
    (job(gpus="2"), f'jobs[0].gpus = "2": {GPU_RULE}'),
    (job(gpus=True), f"jobs[0].gpus = true: {GPU_RULE}"),
    (job(gpus=None), f"jobs[0].gpus = null: {GPU_RULE}"),
    (job(submit_s=float("nan")), f"jobs[0].submit_s = nan: {SUBMIT_RULE}"),
    (job(submit_s=float("inf")), f"jobs[0].submit_s = inf: {SUBMIT_RULE}"),
    (job(submit_s=-1.0), f"jobs[0].submit_s = -1.0: {SUBMIT_RULE}"),
    (job(epochs=0), "jobs[0].epochs = 0: a job has at least one epoch"),
    (job(chunks=0), "jobs[0].chunks = 0: a job has at least one data chunk"),
    (job(minibatches_per_chunk=0), "jobs[0].minibatches_per_chunk = 0: a chunk has at least one mini-batch"),
    (job(weight=-1), "jobs[0].weight = -1: a weight is 0 or more"),
    (job(duration_s=-1), "jobs[0].duration_s = -1: a recorded duration is 0 or more seconds"),
    (job(deadline_s=0), "jobs[0].deadline_s = 0: a deadline is after the submission"),
    (job(submit_s=5.0, deadline_s=5.0), "jobs[0].deadline_s = 5.0: after submit_s = 5"),
    (
        job(epochs=10**16),
        "jobs[0]: iterations = 10000000000000000: at most 1000000000000000 (epochs · chunks · …)",
    ),
    (job(id=""), 'jobs[0].id = "": string should have at least 1 character'),
    (job(id="a\nb"), 'jobs[0].id = "a\\nb": text without control characters'),
    (job(id=5), "jobs[0].id = 5: input should be a valid string"),
    (job(model="m" * 300), f'jobs[0].model = "{"m" * 56}…: string should have at most 200 characters'),
    (job(size=1), "jobs[0].size: unknown field"),
    (job(**{"si\nze": 1}), "jobs[0].'si\\nze': unknown field"),
    (without("jobs", 0, "epochs"), "jobs[0].epochs: missing: a job has at least one epoch"),
    # rates, gangs and names of a job
    (job(rates={"a": -1.0}), f"jobs[0].rates.a = -1.0: {RATE_RULE}"),
    (job(rates={"a": "x"}), f'jobs[0].rates.a = "x": {RATE_RULE}'),
    (job(rates={"c": 1.0}), "jobs[0].rates = c: unknown GPU type; known: a, b"),
    (job(rates={"a": 0.0}), "jobs[0].rates = {'a': 0.0}: a positive rate on at least one GPU type"),
    (
        job(rates={"\x1b[31m": 1.0}),
        "jobs[0].rates.'\\x1b[31m' = \"\\u001b[31m\": text without control characters",
    ),
    (job(gpus=3), "jobs[0].gpus = 3: a gang fits on the 2 GPUs the job can use"),
    (job(rates={"b": 1.0}), "jobs[0].gpus = 1: a gang fits on the 0 GPUs the job can use"),
    (job(submit_s=10.0), "jobs[0].submit_s = 10.0: before the end of the horizon, 10 s"),
    (job(tenant="u"), "jobs[0].tenant = u: unknown tenant; known: t"),
    (twice("jobs"), "jobs[1].id = j: already used by jobs[0]; each id occurs once"),
    # sensitivity, utility, distributed profile
    (
        job(sensitivity={"kind": "matrix"}),
        "jobs[0].sensitivity.cpus_per_gpu: missing: CPU levels, ascending (and 2 more)",
    ),
    (job(sensitivity={}), "jobs[0].sensitivity = {}: unable to extract tag using discriminator 'kind'"),
    (
        job(sensitivity={"kind": "x"}),
        'jobs[0].sensitivity = {"kind": "x"}: '
        "input tag 'x' found using 'kind' does not match any of the expected tags: 'matrix', 'pipeline'",
    ),
    (
        job(sensitivity={**MATRIX, "cpus_per_gpu": [2, 1]}),
        "jobs[0].sensitivity.cpus_per_gpu = [2.0, 1.0]: levels are positive and ascending",
    ),
    (
        job(sensitivity={**MATRIX, "memory_gb_per_gpu": [0]}),
        "jobs[0].sensitivity.memory_gb_per_gpu = [0.0]: levels are positive and ascending",
    ),
    (
        job(sensitivity={**MATRIX, "progress": [[1], [1, 2]]}),
        "jobs[0].sensitivity.progress = rows of [1, 2]: 2 rows (CPU levels) of 1 (memory levels)",
    ),
    (
        job(sensitivity={**MATRIX, "progress": [[1], [-1]]}),
        "jobs[0].sensitivity.progress = -1.0: progress is 0 or more",
    ),
    (
        job(sensitivity={**PIPELINE, "dataset_gb": 0}),
        "jobs[0].sensitivity.dataset_gb = 0: dataset size, positive",
    ),
    (
        job(utility={"kind": "sigmoid", "amplitude": -3, "steepness_per_s": 1}),
        "jobs[0].utility.amplitude = -3: utility amplitude is positive",
    ),
    (
        job(distributed={"gradient_mb": -1}),
        "jobs[0].distributed.gradient_mb = -1: gradient size is 0 or more",
    ),
    (
        job(distributed={"minibatch_ms": {"w": 0}}),
        "jobs[0].distributed.minibatch_ms.w = 0: milliseconds per worker type, positive",
    ),
    (
        job(distributed={"minibatch_ms": {"v": 1}}),
        "jobs[0].distributed.minibatch_ms = v: unknown worker type; known: w",
    ),
    (
        job(distributed={"update_ms": {"q": 1}}),
        "jobs[0].distributed.update_ms = q: unknown PS type; known: p",
    ),
    # cluster
    (server(gpu_type="c"), "cluster.servers[0].gpu_type = c: unknown GPU type; known: a, b"),
    (server(gpus=0), "cluster.servers = 0 GPUs: a cluster has at least one GPU"),
    (server(gpus=10_001), "cluster.servers[0].gpus = 10001: GPUs per server are a whole number, 0 to 10000"),
    (server(count=0), "cluster.servers[0].count = 0: a server group has at least one server"),
    (server(count=10**7), f"cluster.servers = 10000000: {LIMIT}"),
    (server(cpus=-1), "cluster.servers[0].cpus = -1: CPUs per server are 0 or more"),
    (server(memory_gb=-1), "cluster.servers[0].memory_gb = -1: memory per server is 0 or more"),
    (server(bandwidth_gbps=-1), "cluster.servers[0].bandwidth_gbps = -1: bandwidth per server is 0 or more"),
    (
        server(ps_slots=-1),
        "cluster.servers[0].ps_slots = -1: parameter-server slots are a whole number, 0 or more",
    ),
    (
        twice("cluster", "servers"),
        "cluster.servers[1].name = s: already used by cluster.servers[0]; each name occurs once",
    ),
    (
        twice("cluster", "gpu_types"),
        "cluster.gpu_types[2].name = a: already used by cluster.gpu_types[0]; each name occurs once",
    ),
    (
        top(cluster={"gpu_types": [], "servers": []}),
        "cluster.gpu_types = []: a cluster has at least one GPU type (and 1 more)",
    ),
    (
        lambda d: d["cluster"]["gpu_types"][0].update(tflops=0),
        "cluster.gpu_types[0].tflops = 0: peak single-precision TFLOPS are positive",
    ),
    # tenants
    (twice("tenants"), "tenants[1].id = t: already used by tenants[0]; each id occurs once"),
    (tenant(weight=0), "tenants[0].weight = 0: a tenant's weight is positive"),
    (tenant(weight="1/0"), 'tenants[0].weight = "1/0": a tenant\'s weight is positive'),
    (tenant(weight="1e999999999"), 'tenants[0].weight = "1e999999999": a tenant\'s weight is positive'),
    (tenant(arrive_s=5, leave_s=5), "tenants[0].leave_s = 5.0: after arrive_s = 5"),
    (tenant(leave_s=0), "tenants[0].leave_s = 0: a tenant leaves after it arrives"),
    (kind(rates={"a": 1}), "tenants[0].job_types[0].rates = a: one rate for each GPU type: a, b"),
    (kind(rates={"a": 1, "b": 0}), "tenants[0].job_types[0].rates.b = 0: a positive rate for each GPU type"),
    (kind(rates={}), "tenants[0].job_types[0].rates = {}: a positive rate for each GPU type"),
    (
        kind(rates={"a": 1, "b": 2}, reported_rates={"b": 2}),
        "tenants[0].job_types[0].reported_rates = b: one rate for each GPU type: a, b",
    ),
    # worker and PS types
    (
        twice("worker_types"),
        "worker_types[1].name = w: already used by worker_types[0]; each name occurs once",
    ),
    (twice("ps_types"), "ps_types[1].name = p: already used by ps_types[0]; each name occurs once"),
    (
        lambda d: d["worker_types"][0].update(gpu_type="c"),
        "worker_types[0].gpu_type = c: unknown GPU type; known: a, b",
    ),
    (
        lambda d: d["worker_types"][0].update(bandwidth_gbps=0),
        "worker_types[0].bandwidth_gbps = 0: bandwidth of a worker is positive",
    ),
    (
        without("ps_types", 0, "bandwidth_gbps"),
        "ps_types[0].bandwidth_gbps: missing: bandwidth of a parameter server is positive",
    ),
    # horizon, published numbers, the whole
    (top(horizon={"slot_s": 0, "slots": 1}), "horizon.slot_s = 0: a slot has a positive length in seconds"),
    (top(horizon={"slot_s": 1, "slots": 0}), "horizon.slots = 0: a horizon has at least one slot"),
    (top(horizon={"slot_s": 1, "slots": 10**9}), f"horizon.slots = 1000000000: {LIMIT}"),
    (
        top(horizon={"slot_s": 1e300, "slots": 10**6}),
        "horizon: slot_s · slots = 1e+306: a horizon ends at or before 1e+12 s",
    ),
    (
        top(horizon={"slot_s": 1e308, "slots": 100}),
        "horizon: slot_s · slots = inf: a horizon ends at or before 1e+12 s",
    ),
    (
        top(published=[{"method": "m", "where": "w", "tolerance": 0}]),
        "published[0].tolerance = 0: a tolerance is positive",
    ),
    (
        top(published=[{"method": "m", "where": "w", "value": [["x"]]}]),
        'published[0].value[0][0] = "x": input should be a valid number (and 2 more)',
    ),
    (top(jobs=[]), "jobs = []: an instance has jobs, or tenants with job types"),
    (top(jobs={}), "jobs = {}: a list of jobs, or columns: lists of equal length, one of them of ids"),
    (top(jobs=[5]), "jobs[0] = 5: input should be an object"),
    (top(schema_version=2), "schema_version = 2: input should be 1"),
    (top(title="a\x00"), 'title = "a\\u0000": text without control characters'),
    (top(colour="red"), "colour: unknown field"),
    (without("name"), "name: missing"),
    (without("cluster"), "cluster: missing"),
]


@pytest.mark.parametrize(("change", "message"), ERRORS, ids=[message[:50] for _, message in ERRORS])
def test_every_error_says_what_and_what_would_be_right(change: Change, message: str) -> None:
    data = small()
    change(data)
    with pytest.raises(InstanceError) as caught:
        canonical.validate(data, "file.json")
    assert str(caught.value) == f"file.json: {message}"


def test_the_small_instance_is_valid() -> None:
    assert canonical.validate(small(), "x").jobs[0].iterations == 1


def test_a_gang_may_use_all_types_where_a_job_has_no_rates() -> None:
    data = small()
    data["jobs"][0].update(rates={}, gpus=2)
    assert canonical.validate(data, "x").jobs[0].gpus == 2


def test_the_latest_end_of_a_horizon_is_allowed() -> None:
    data = small()
    data["horizon"].update(slot_s=1e6, slots=10**6)
    assert canonical.validate(data, "x").horizon is not None


def test_the_limit_can_be_raised_as_the_message_says(monkeypatch: pytest.MonkeyPatch) -> None:
    data = small()
    data["horizon"]["slots"] = 10**6 + 1
    with pytest.raises(InstanceError):
        canonical.validate(data, "x")
    monkeypatch.setattr(limits, "MAX_ITEMS", 10**7)
    assert canonical.validate(data, "x").horizon is not None


def test_an_instance_is_immutable() -> None:
    instance = canonical.validate(small(), "x")
    with pytest.raises(ValueError, match="frozen"):
        instance.jobs[0].gpus = 2


# files ---------------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(InstanceError) as caught:
        canonical.read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_a_missing_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "none.json") == "no such file"


def test_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder.json"
    folder.mkdir()
    assert refused(folder) == "a folder, not a file"


def test_a_wrong_suffix(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("a,b")
    assert refused(path) == "an instance file ends in .json or .toml; import traces with: harness import"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"", "not valid JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            "a.json",
            b"{'a': 1}",
            "not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("a.json", b'{"name": "\xe9"}', "not UTF-8 text (byte 10)"),
        ("a.toml", b'name = "\xe9"', "not UTF-8 text (byte 8)"),
        ("a.json", b"[1, 2]", "it must be an object with fields, not a list"),
        ("a.json", b"NaN", "it must be an object with fields, not a float"),
        ("a.json", b'{"name": "x", "cluster": NaN}', "cluster = nan: input should be an object"),
        ("a.json", b'{"name": "\\ud800"}', "Invalid JSON: unexpected end of hex escape at line 1 column 17"),
    ],
)
def test_unreadable_content(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert refused(path) == message


@pytest.mark.parametrize(("name", "opening"), [("a.json", "["), ("a.json", '{"a":'), ("a.toml", "[")])
def test_deep_nesting(tmp_path: Path, name: str, opening: str) -> None:
    path = tmp_path / name
    path.write_text(("a = " if name == "a.toml" else "") + opening * 100_000)
    assert refused(path).startswith(f"not valid {name[2:].upper()}: ")


def test_not_toml(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("name = ")
    assert refused(path).startswith("not valid TOML: ")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name = 2020-01-01", "name = 2020-01-01: a date"),
        ("jobs = [{}, {submit_s = 2020-01-01T10:00:00Z}]", "jobs[1].submit_s = 2020-01-01 10:00:00+00:00: a datetime"),
        ("jobs = [{submit_s = 10:00:00}]", "jobs[0].submit_s = 10:00:00: a time"),
    ],
)
def test_toml_dates_are_no_values(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    assert refused(path) == f"{where} is neither text (in quotes) nor a number"


def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe.json", tmp_path / "zero.json"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    assert refused(pipe) == refused(device) == "not a regular file"


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ('{"tenants": [], "name": "x", "tenants": []}', "'tenants'"),
        ('{"jobs": [{"id": "a", "\\u001b": 1, "\\u001b": 1}]}', "'\\x1b'"),
        (f'{{"{"k" * 99}": 1, "{"k" * 99}": 1}}', f"'{'k' * 58}…"),
    ],
)
def test_a_json_key_that_occurs_twice(tmp_path: Path, content: str, key: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    assert refused(path) == f"not valid JSON: key {key} occurs twice"


LINEAR_S = 60.0
"""Seconds of computing that reading these files may take; linear time needs a hundredth, quadratic time hours."""


@pytest.mark.parametrize("part", ["a", "'a'", r'"\""', "1"])
@pytest.mark.parametrize("line", ["{} = 1", "[{}]", "a = {{ {} = 1 }}"])
def test_toml_keys_of_very_many_parts_are_refused_at_once(tmp_path: Path, part: str, line: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text("x = 1\n" + line.format(" . ".join([part] * 50_000)))
    began = time.process_time()
    assert refused(path) == "not valid TOML: line 2: a key has at most 100 parts"
    assert time.process_time() - began < LINEAR_S
    path.write_text(line.format(".".join([part] * 100)))
    assert "parts" not in refused(path)


@pytest.mark.parametrize(
    "text",
    ["x" * 300_000, "x\t " * 99_999, '"' * 300_000, '"' + '\\"' * 99_999, "'." * 99_999, "x" + ".'" * 99_999 + ' "\\'],
)
def test_looking_for_long_toml_keys_takes_linear_time(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    began = time.process_time()
    assert refused(path).startswith("not valid TOML: ")
    assert time.process_time() - began < LINEAR_S


def test_text_with_many_dots_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f'name = "{"a." * 99}"\ntitle = """{"a sentence. " * 200}\n{"." * 200}"""')
    assert refused(path) == "cluster: missing"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text(" " * 3_000_000)
    monkeypatch.setattr(canonical, "MAX_FILE_MB", 2)
    assert refused(path) == "3 MB is more than the limit of 2 MB (instances.canonical.MAX_FILE_MB)"


def test_a_file_that_hides_its_size_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.symlink_to("/proc/self/maps")
    monkeypatch.setattr(canonical, "MAX_FILE_MB", 0)
    assert refused(path) == "more than the limit of 0 MB (instances.canonical.MAX_FILE_MB)"


def test_writing_into_a_missing_folder(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.json"
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        canonical.write(canonical.validate(small(), "x"), path)


# round trip and fingerprint ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"sensitivity": MATRIX},
        {"sensitivity": PIPELINE},
        {"utility": {"kind": "normalised"}},
        {"utility": {"kind": "sigmoid", "amplitude": 1, "steepness_per_s": 2}},
        {"utility": {"kind": "linear_deadline", "amplitude": 1}, "deadline_s": 3},
        {"utility": {"kind": "constant", "amplitude": 1}},
        {"distributed": {"gradient_mb": 30, "minibatch_ms": {"w": 1}, "update_ms": {"p": 0}}},
    ],
)
def test_canonical_round_trip(tmp_path: Path, extra: dict[str, Any]) -> None:
    data = small()
    data["jobs"][0].update(extra)
    instance = canonical.validate(data, "x")
    path = tmp_path / "a.json"
    canonical.write(instance, path)
    again = canonical.read(path)
    assert again == instance
    assert again.fingerprint == instance.fingerprint
    assert canonical.to_json(again) == path.read_text() == canonical.to_json(instance)


def test_fingerprint_is_of_the_content_alone() -> None:
    first = canonical.validate(small(), "x")
    presented = {
        **small(),
        "name": "other",
        "title": "T",
        "source": "S",
        "licence": "L",
        "derived": ["d"],
        "published": [{"method": "m", "where": "w", "exact": "1/3"}],
        "schema_version": 1,
    }
    assert canonical.validate(presented, "x").fingerprint == first.fingerprint
    reordered = json.loads(json.dumps(small(), sort_keys=True))
    assert canonical.validate(reordered, "x").fingerprint == first.fingerprint
    changed = small()
    changed["jobs"][0]["weight"] = 2
    assert canonical.validate(changed, "x").fingerprint != first.fingerprint


def test_a_changed_copy_has_its_own_fingerprint() -> None:
    first = instances.load("paper/oef-eq1")
    assert first.model_copy().fingerprint == first.fingerprint
    assert first.model_copy(update={"tenants": first.tenants[:2]}).fingerprint != first.fingerprint
    assert first.cluster.model_copy(update={"servers": first.cluster.servers[:1]}).gpus < first.cluster.gpus


def test_fractions_in_published_numbers() -> None:
    data = small()
    data["published"] = [{"method": "m", "where": "w", "value": "54/13", "exact": [["1", "-5/26"], [0, 0.5]]}]
    published = canonical.validate(data, "x").published[0]
    assert published.value == pytest.approx(54 / 13)
    assert published.exact == ((1.0, -5 / 26), (0.0, 0.5))


# hostile -------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def places(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all values inside plain data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(p for key, value in items for p in places(value, (*path, key)))]


RICH = small()
RICH["jobs"][0].update(
    sensitivity=MATRIX, distributed={"minibatch_ms": {"w": 1}}, utility={"kind": "constant", "amplitude": 1}
)
RICH["tenants"][0].update(weight=2, job_types=[{"name": "k", "rates": {"a": 1, "b": 2}}])
RICH["published"] = [{"method": "m", "where": "w", "value": [1, 2]}]


@settings(max_examples=300)
@given(place=st.sampled_from([p for p in places(RICH) if p]), value=JSON)
def test_any_value_anywhere_is_either_valid_or_one_line(place: tuple[str | int, ...], value: Any) -> None:
    data = copy.deepcopy(RICH)
    inner: Any = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    message, instance = outcome(data)
    assert "\n" not in message
    if instance is None:
        assert message.startswith("x: ")
    else:
        assert canonical.validate(json.loads(canonical.to_json(instance)), "x") == instance


def outcome(data: dict[str, Any]) -> tuple[str, Instance | None]:
    """Validate data; return the message and no instance, or an empty message and the instance."""
    try:
        return "", canonical.validate(data, "x")
    except InstanceError as error:
        return str(error), None


@settings(max_examples=100)
@given(JSON)
def test_random_json_files_end_in_one_line(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "random.json"
    path.write_text(json.dumps(value))
    with pytest.raises(UsageError) as caught:
        instances.load(path)
    assert str(caught.value).isprintable()


@settings(max_examples=100)
@given(st.binary(max_size=60), st.sampled_from([".json", ".toml"]))
def test_random_bytes_end_in_one_line(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"random{suffix}"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        instances.load(path)
    assert "\n" not in str(caught.value)


def test_html_escapes_strangers_text() -> None:
    data = small()
    data["title"] = "<script>alert(1)</script>"
    data["jobs"][0]["model"] = '"><img src=x>'
    page = canonical.validate(data, "x")._repr_html_()
    assert "<script>" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert isinstance(instances.load(Instance.model_validate_json(json.dumps(data))), Instance)
