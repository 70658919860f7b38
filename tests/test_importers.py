"""Trace importers: exact counts on real traces, rules that fill gaps, documented headers, and hostile input."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from trace_samples import GAVEL_NEW, GAVEL_OLD, PHILLY_JSON, SAMPLES

from schedgap.instances.canonical import read, to_json, validate, write
from schedgap.instances.errors import InstanceError, UnknownNameError, UsageError
from schedgap.instances.importers import IMPORTERS, Options, filling, import_trace, table
from schedgap.instances.importers.registry import ImportedTrace, TraceJob
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.model_catalogue import MODELS, find
from schedgap.instances.schema import Instance, Job, limits

pytestmark = pytest.mark.filterwarnings("error")


def gangs(instance: Instance) -> dict[int, int]:
    return dict(Counter(job.gpus for job in instance.jobs))


def gang_seconds(job: Job, gpu_type: str) -> float:
    """Return the seconds that a whole gang takes on one GPU type."""
    return job.iterations / (job.gpus * job.rates[gpu_type])


# Real traces. The numbers were counted with awk and pandas on the files, not with the importers.


@dataclass(frozen=True)
class Real:
    format: str
    file: str
    gangs: dict[int, int]
    tenants: int
    last_s: float
    shift_s: float = 0
    left_out: tuple[str, ...] = ()
    gpus: dict[str, int] = field(default_factory=lambda: {"V100": 36, "P100": 36, "K80": 36})


PHILLY = "philly/philly_first20000.csv"
OPENB = "openb/openb_pod_list_default.csv"
NODES = "openb/openb_node_list_gpu_node.csv"
TABLE = "gavel/simulation_throughputs.json"
SYNERGY = {"V100": 32}
REAL = [
    Real("gavel", "gavel/artifact_evaluation.trace", {1: 12, 2: 3}, 7, 0),
    Real("gavel", "gavel/minimize_makespan.trace", {1: 71, 2: 6, 4: 23}, 7, 0),
    Real("gavel", "gavel/small_test.trace", {1: 17, 2: 3}, 6, 0),
    Real(
        "gavel",
        "gavel/philly_vc_103959.trace",
        {1: 476, 2: 33, 4: 368},
        7,
        7_910_536,
        left_out=("1 of 878 jobs left out: they ask for 0 GPUs",),
    ),
    Real(
        "philly",
        PHILLY,
        {1: 18869, 2: 353, 4: 455, 8: 265, 12: 7, 16: 32, 24: 5, 32: 14},
        12,
        8_028_262,
        shift_s=1_504_778_270,
    ),
    Real(
        "itp",
        "itp/cluster01.csv",
        {1: 1530, 2: 11, 4: 6, 8: 5, 16: 6, 32: 11, 64: 26},
        23,
        4_848_400 - 1_932_025,
        shift_s=1_932_025,
        gpus={"V100": 64, "P100": 64, "K80": 64},
    ),
    Real("tiresias", "tiresias/60_job.csv", {1: 30, 2: 10, 4: 10, 8: 10}, 7, 1779),
    Real("muri", "muri/muri_trace1.csv", {1: 536, 2: 5, 4: 423, 8: 465, 16: 40, 32: 25}, 7, 10_817_570),
    Real("synergy", "synergy/test_trace", {1: 2, 2: 2, 4: 4}, 6, 0.609 - 0.123, shift_s=0.123, gpus=SYNERGY),
    Real("synergy", "synergy/static_100job_6_3_1100.0", {1: 100}, 9, 0.099, gpus=SYNERGY),
    Real("synergy", "synergy/dynamic_srtf.log", {1: 100}, 9, 12_039 - 8, shift_s=8, gpus=SYNERGY),
    Real(
        "synergy_csv",
        "synergy/artefact_rebuilt_9perh.csv",
        {1: 5000},
        10,
        1986951 - 409,
        shift_s=409,
        gpus={"V100": 128},
    ),
    Real(
        "openb",
        OPENB,
        {1: 6129, 2: 15, 4: 15, 8: 44},
        4,
        12_901_761,
        left_out=(
            "1088 of 8152 jobs left out: they ask for 0 GPUs",
            "861 of 8152 jobs left out: they were never scheduled (Pending)",
        ),
    ),
]


@pytest.fixture(scope="module")
def imported(data_dir: Path) -> dict[str, Instance]:
    return {real.file: import_trace(real.format, data_dir / real.file) for real in REAL}


@pytest.mark.real_data
@pytest.mark.parametrize("real", REAL, ids=lambda real: real.file)
def test_counts_of_a_real_trace(real: Real, imported: dict[str, Instance]) -> None:
    instance = imported[real.file]
    assert gangs(instance) == real.gangs
    assert len(instance.tenants) == real.tenants
    assert instance.jobs[0].submit_s == 0
    assert instance.jobs[-1].submit_s == pytest.approx(real.last_s, abs=1e-9)
    assert [job.submit_s for job in instance.jobs] == sorted(job.submit_s for job in instance.jobs)
    assert tuple(d for d in instance.derived if "left out" in d) == real.left_out
    shift = [d for d in instance.derived if d.startswith("arrivals shifted")]
    assert shift == (
        [f"arrivals shifted by {real.shift_s} s, so that the first job arrives at 0 s"] if real.shift_s else []
    )
    assert instance.cluster.gpus_by_type == real.gpus
    assert instance.horizon is None
    assert instance.source
    assert instance.licence
    assert instance.name == f"{real.format}/{Path(real.file).stem}"


@pytest.mark.real_data
def test_every_real_trace_is_tested(data_dir: Path) -> None:
    traces = {str(p.relative_to(data_dir)) for p in data_dir.rglob("*") if p.suffix in {".trace", ".log"}}
    assert traces <= {real.file for real in REAL}


@pytest.mark.real_data
@pytest.mark.parametrize("file", [PHILLY, "itp/cluster01.csv", "tiresias/60_job.csv", "muri/muri_trace1.csv"])
def test_a_job_takes_its_recorded_duration_on_the_recorded_gpu_type(file: str, imported: dict[str, Instance]) -> None:
    """Work and rates of a job reproduce its recorded run time, to half an iteration."""
    gpu_type = "P100" if file.startswith("tiresias") else "V100"
    for job in imported[file].jobs:
        whole = 1 / (job.gpus * job.rates[gpu_type])
        assert job.duration_s is not None
        wrong = abs(gang_seconds(job, gpu_type) - job.duration_s)
        assert wrong <= 0.5 * whole + 1e-9 * job.duration_s or (job.iterations == 1 and job.duration_s < whole)


@pytest.mark.real_data
def test_philly_is_sorted_and_keeps_its_virtual_clusters(data_dir: Path, imported: dict[str, Instance]) -> None:
    with (data_dir / PHILLY).open() as file:
        rows = list(csv.DictReader(file))
    assert [r["timestamp"] for r in rows] != sorted(r["timestamp"] for r in rows)
    jobs = {job.id: job for job in imported[PHILLY].jobs}
    assert len(jobs) == len(rows) == 20_000
    for i in (0, 1, 777, 19_999):
        job = jobs[f"job-{i}"]
        assert job.tenant == rows[i]["cluster"]
        assert job.gpus == int(rows[i]["num_gpus"])
        assert job.duration_s == float(rows[i]["duration"])
    first = min(range(20_000), key=lambda i: rows[i]["timestamp"])
    assert imported[PHILLY].jobs[0].id == f"job-{first}"


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["artifact_evaluation", "minimize_makespan", "small_test", "philly_vc_103959"])
def test_rates_of_one_gpu_are_those_of_the_throughput_table(data_dir: Path, name: str) -> None:
    """Imported rates equal those of a CSV file with the same measurements."""
    with (data_dir / "gavel/isolated_throughputs.csv").open() as file:
        whole = {(r["job_type"], int(r["scale_factor"])): r for r in csv.DictReader(file)}
    options = Options(throughputs=data_dir / TABLE)
    instance = import_trace("gavel", data_dir / f"gavel/{name}.trace", options)
    lacking = 0
    for job in instance.jobs:
        assert job.model is not None
        row = whole.get((job.model, job.gpus))
        lacking += row is None
        scale = job.gpus if row else max(s for kind, s in whole if kind == job.model and s < job.gpus)
        row = whole[job.model, scale]
        assert job.rates == {g: pytest.approx(float(row[g.lower()]) / scale, rel=1e-9) for g in ("V100", "P100", "K80")}
    assert any(f"lacks the scale factor of {lacking} jobs" in d for d in instance.derived) == (lacking > 0)
    assert lacking == {"philly_vc_103959": 101}.get(name, 0)
    assert not any("catalogue models that the trace names" in d for d in instance.derived)


@pytest.mark.real_data
def test_gavel_without_a_table_takes_the_catalogue(imported: dict[str, Instance]) -> None:
    for job in imported["gavel/minimize_makespan.trace"].jobs:
        model = find(job.model or "", suite="gavel")
        assert model is not None
        assert job.rates == {g: model.rates[g] for g in ("V100", "P100", "K80")}


@pytest.mark.real_data
def test_muri_is_in_milliseconds(imported: dict[str, Instance]) -> None:
    job = next(j for j in imported["muri/muri_trace1.csv"].jobs if j.id == "1")
    assert (job.submit_s, job.duration_s, job.gpus, job.model) == (201_694.0, 4_472_936.0, 8, "dqn")
    assert job.rates["V100"] * job.gpus == pytest.approx(1000 / 509, rel=1e-3)  # iteration_time = 509 ms


@pytest.mark.real_data
def test_synergy_iterations_are_steps_of_the_gang(imported: dict[str, Instance]) -> None:
    """An iteration in Synergy's trace is one of the whole gang: AlexNet takes 0.6 s on one GPU and on four."""
    job = imported["synergy/test_trace"].jobs[0]
    assert (job.model, job.gpus, job.iterations) == ("alexnet", 4, 3349)
    assert gang_seconds(job, "V100") == pytest.approx(3349 * 0.6, rel=1e-4)
    assert job.sensitivity == MODELS["Synergy AlexNet"].sensitivity


@pytest.mark.real_data
def test_openb_nodes_are_the_cluster(data_dir: Path) -> None:
    instance = import_trace("openb", data_dir / OPENB, Options(nodes=data_dir / NODES))
    assert instance.cluster.gpus_by_type == {
        "A10": 2,
        "G2": 4392,
        "G3": 312,
        "P100": 265,
        "T4": 842,
        "V100M16": 195,
        "V100M32": 204,
    }
    assert sum(group.count for group in instance.cluster.servers) == 1213
    t4 = next(s for s in instance.cluster.servers if s.gpu_type == "T4" and s.gpus == 2)
    assert (t4.count, t4.cpus) == (387, 104.0)
    assert t4.memory_gb == pytest.approx(524_288 * 1024**2 / 1e9)
    memory = {g.name: g.memory_gb for g in instance.cluster.gpu_types}
    assert (memory["V100M16"], memory["V100M32"], memory["G2"]) == (16, 32, None)
    rates = instance.jobs[0].rates
    assert rates["G2"] == rates["G3"] == rates["V100M16"] == rates["V100M32"]
    assert rates["T4"] == pytest.approx(rates["V100M16"] * 8.14 / 15.7, rel=1e-5)
    assert "G2, G3 as fast as a V100: their TFLOPS are not disclosed" in instance.derived
    assert "rates of 6203 jobs on T4 by the ratio of its TFLOPS to a measured type's" in instance.derived


@pytest.mark.real_data
def test_openb_shares_and_phases(imported: dict[str, Instance]) -> None:
    instance = imported[OPENB]
    assert Counter(j.status for j in instance.jobs) == {"Running": 4149, "Failed": 1869, "Succeeded": 185}
    assert Counter(j.tenant for j in instance.jobs) == {
        "LS": 3590,
        "BE": 2510,
        "Burstable": 97,
        "Guaranteed": 6,
    }
    assert any(d.startswith("2573 jobs use a part of a GPU") for d in instance.derived)
    job = next(j for j in instance.jobs if j.id == "openb-pod-0001")  # 460 thousandths of a GPU
    assert job.duration_s == 12_902_960 - 427_061
    assert gang_seconds(job, "V100") == pytest.approx(0.46 * job.duration_s, rel=1e-6)


@pytest.mark.real_data
@pytest.mark.parametrize("file", ["muri/muri_trace1.csv", "synergy/test_trace", "itp/cluster01.csv"])
def test_canonical_json_round_trip(file: str, imported: dict[str, Instance], tmp_path: Path) -> None:
    instance = imported[file]
    write(instance, tmp_path / "trace.json")
    again = read(tmp_path / "trace.json")
    assert again == instance
    assert again.fingerprint == instance.fingerprint


def imported_text(tmp_path: Path, format: str, text: str, options: Options | None = None) -> Instance:
    path = tmp_path / "trace.txt"
    path.write_text(text, encoding="utf-8")
    return import_trace(format, path, options or Options())


def test_every_format_has_a_sample() -> None:
    assert {*SAMPLES, "csv"} == set(IMPORTERS.ids())  # what a map of columns reads has no form of its own


@pytest.mark.parametrize("format", sorted(SAMPLES))
def test_sample_round_trips_and_documents_itself(tmp_path: Path, format: str) -> None:
    instance = imported_text(tmp_path, format, SAMPLES[format])
    again = validate(json.loads(to_json(instance)), "again")
    assert again == instance
    assert again.fingerprint == instance.fingerprint
    spec = IMPORTERS.get(format)
    assert len(spec.layout) > 200
    assert spec.title
    assert instance.source == spec.source
    assert instance.derived


@pytest.mark.parametrize("chosen", sorted(SAMPLES))
@pytest.mark.parametrize("actual", sorted(SAMPLES))
def test_a_wrong_format_is_recognised(tmp_path: Path, chosen: str, actual: str) -> None:
    if chosen == actual:
        return
    with pytest.raises(InstanceError) as caught:
        imported_text(tmp_path, chosen, SAMPLES[actual])
    assert f"not {chosen}:" in str(caught.value)
    assert str(caught.value).endswith(f"; this looks like format {actual}")


def test_gavel_old_layout(tmp_path: Path) -> None:
    instance = imported_text(tmp_path, "gavel", GAVEL_OLD)
    assert [(j.id, j.submit_s, j.gpus, j.iterations) for j in instance.jobs] == [
        ("job-1", 0, 1, 122_646),
        ("job-0", 60, 2, 2931),
    ]
    assert instance.derived[:2] == (
        "1 of 3 jobs left out: they ask for 0 GPUs",
        "arrivals shifted by 40 s, so that the first job arrives at 0 s",
    )
    assert [t.id for t in instance.tenants] == ["LM", "ResNet-50"]


def test_gavel_new_layout_has_weights_and_deadlines(tmp_path: Path) -> None:
    instance = imported_text(tmp_path, "gavel", GAVEL_NEW)
    plain, urgent = instance.jobs
    assert (plain.weight, plain.deadline_s) == (1.0, None)
    assert urgent.weight == 2.5
    assert urgent.deadline_s == pytest.approx(60 + 1.5 * 5000 / MODELS["LM (batch size 40)"].rates["V100"])
    assert "deadlines of 1 job = arrival + SLO × time alone on V100" in instance.derived


def test_gavel_table_with_zero_rates_and_unknown_job_types(tmp_path: Path) -> None:
    null = {"null": 0.0}
    rates = {
        "k80": {"('ResNet-50 (batch size 64)', 2)": null},
        "v100": {"('ResNet-50 (batch size 64)', 2)": {"null": 8.0, "('A3C', 1)": [1.0, 1.0]}},
        "v100_unconsolidated": {"('ResNet-50 (batch size 64)', 2)": {"null": 5.0}},
    }
    (tmp_path / "t.json").write_text(json.dumps(rates))
    options = Options(throughputs=tmp_path / "t.json", gpus={"v100": 4, "K80": 6}, gpus_per_server=4)
    instance = imported_text(tmp_path, "gavel", GAVEL_NEW, options)
    assert instance.jobs[0].rates == {"V100": 4.0, "K80": 0.0}
    assert instance.jobs[1].rates == {g: MODELS["LM (batch size 40)"].rates[g] for g in ("V100", "K80")}
    assert [(s.gpu_type, s.count, s.gpus) for s in instance.cluster.servers] == [
        ("V100", 1, 4),
        ("K80", 1, 4),
        ("K80", 1, 2),
    ]
    assert "rates of 1 job from t.json: whole job's / scale factor" in instance.derived


def test_gavel_deadline_of_a_job_that_the_reference_type_cannot_run(tmp_path: Path) -> None:
    table = {"v100": {"('A3C', 1)": {"null": 0.0}}, "p100": {"('A3C', 1)": {"null": 4.0}}}
    (tmp_path / "t.json").write_text(json.dumps(table))
    text = "A3C\tcmd\trl\t--n\t0\t100\t1\t1\t2.0\t0\n"
    (job,) = imported_text(tmp_path, "gavel", text, Options(throughputs=tmp_path / "t.json")).jobs
    assert job.deadline_s == 2 * 100 / 4
    assert (job.rates["V100"], job.rates["P100"]) == (0, 4)


def test_philly_json(tmp_path: Path) -> None:
    instance = imported_text(tmp_path, "philly_json", PHILLY_JSON)
    assert [(j.id, j.gpus, j.tenant, j.status, j.duration_s, j.submit_s) for j in instance.jobs] == [
        ("b", 1, "6214e9", "Killed", 10, 0),
        ("application_1506638472019_14199", 3, "ee9e8c", "Pass", 74 + 3600, 4299),
    ]
    assert instance.derived[:2] == (
        "1 of 4 jobs left out: they ask for 0 GPUs",
        "1 of 4 jobs left out: none of their attempts has both a start and an end",
    )


def test_helios(tmp_path: Path) -> None:
    instance = imported_text(tmp_path, "helios", SAMPLES["helios"])
    assert [(j.id, j.gpus, j.tenant, j.status, j.duration_s, j.submit_s) for j in instance.jobs] == [
        ("1425511", 1, "vcJkd", "COMPLETED", 36848, 0),
        ("1425512", 4, "vchbv", "FAILED", 249, 26),
    ]
    assert instance.derived[0] == "1 of 3 jobs left out: they ask for 0 GPUs"
    assert "tenants are the trace's virtual clusters" in instance.derived


def test_dates_beyond_those_that_nanoseconds_reach_are_read(tmp_path: Path) -> None:
    instance = imported_text(tmp_path, "acme", SAMPLES["acme"].replace("2023-", "3023-"))
    assert [job.submit_s for job in instance.jobs] == [0, 336]


def test_acme_counts_time_zones_and_a100s(tmp_path: Path) -> None:
    instance = imported_text(tmp_path, "acme", SAMPLES["acme"])
    assert [(j.id, j.gpus, j.tenant, j.status, j.submit_s) for j in instance.jobs] == [
        ("5778432", 8, "u5907", "FAILED", 0),
        ("5778469", 16, "u5907", "COMPLETED", 336),
    ]
    assert instance.derived[0] == "1 of 3 jobs left out: they have no duration"
    for job in instance.jobs:
        assert job.duration_s is not None
        assert gang_seconds(job, "V100") == pytest.approx(job.duration_s * 19.5 / 15.7, rel=1e-3)


@pytest.mark.parametrize("header", [True, False])
def test_pai2020_groups_tasks(tmp_path: Path, header: bool) -> None:
    text = SAMPLES["pai2020"] if header else SAMPLES["pai2020"].partition("\n")[2].replace(",,\n", ",0,\n", 1)
    instance = imported_text(tmp_path, "pai2020", text)
    assert [(j.id, j.gpus, j.status, j.duration_s, j.submit_s) for j in instance.jobs] == [
        ("j2", 1, "Failed", 30, 0),
        ("j1", 2, "Terminated", 280, 60),
    ]
    old, t4 = instance.jobs
    assert gang_seconds(old, "K80") == pytest.approx(30, rel=0.1)
    assert gang_seconds(t4, "V100") == pytest.approx(280 * 1.5 / 2 * 8.14 / 15.7, rel=0.1)
    assert instance.derived[:3] == (
        "1 of 4 jobs left out: they ask for 0 GPUs",
        "1 of 4 jobs left out: one of their tasks has no start or no end",
        "gangs of 1 job rounded up to whole GPUs; their work is that of the part they ask for",
    )


def test_pai2020_joined_with_users(tmp_path: Path) -> None:
    lines = [f"{line},u{i}" for i, line in enumerate(SAMPLES["pai2020"].splitlines())]
    text = "\n".join([lines[0].replace(",u0", ",user"), *lines[1:]])
    assert [j.tenant for j in imported_text(tmp_path, "pai2020", text).jobs] == ["u3", "u2"]


def test_openb_keeps_the_types_that_a_pod_asks_for(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text(
        "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,8,T4\nb,64000,262144,8,T4\nc,96000,1024,4,V100M16\nd,1,1,0,\n"
    )
    instance = imported_text(tmp_path, "openb", SAMPLES["openb"], Options(nodes=nodes))
    first, second = instance.jobs
    assert first.rates["T4"] == 0 < first.rates["V100M16"]
    assert second.rates["V100M16"] == 0 < second.rates["T4"]
    assert second.tenant == "unknown"
    assert [(s.name, s.count) for s in instance.cluster.servers] == [
        ("T4-8gpu-64cpu-256gib", 2),
        ("V100M16-4gpu-96cpu-1gib", 1),
    ]
    assert "1 of 4 servers left out: they have no GPU" in instance.derived
    assert "tenant 'unknown' for 1 job: the trace names none for them" in instance.derived
    elsewhere = imported_text(tmp_path, "openb", SAMPLES["openb"])
    assert "2 jobs may use every GPU type: the cluster has none of those they ask for" in elsewhere.derived


def test_unknown_model_gets_a_stand_in_and_keeps_its_name(tmp_path: Path) -> None:
    instance = imported_text(tmp_path, "tiresias", SAMPLES["tiresias"])
    job = instance.jobs[1]
    stand_in = filling.with_rates(TraceJob("1", 0.0, 1), ImportedTrace("tiresias", FileRows(tmp_path), [])).stand_in
    assert (job.model, job.tenant) == ("no_such_model", "no_such_model")
    assert job.rates["P100"] == pytest.approx(133 / 147 / 8)
    assert job.rates["V100"] / job.rates["P100"] == pytest.approx(stand_in.rates["V100"] / stand_in.rates["P100"])
    assert (
        "rates of 1 job on P100 from their iterations and durations, on other GPU types in the proportions "
        "of catalogue models chosen by a hash of the job id: the catalogue has no no_such_model"
    ) in instance.derived


def test_chosen_models_depend_on_the_job_id_alone(tmp_path: Path) -> None:
    rows = [f"id-{i},{i},{100 + i},1" for i in range(200)]
    header = "job_id,submission_time,duration,num_gpu"
    instance = imported_text(tmp_path, "itp", "\n".join([header, *rows]))
    other = imported_text(tmp_path, "itp", "\n".join([header, *reversed(rows)]), Options(max_jobs=50))
    models = {j.id: j.model for j in instance.jobs}
    assert {j.id: j.model for j in other.jobs} == {f"id-{i}": models[f"id-{i}"] for i in range(50)}
    assert len(set(models.values())) > 30
    candidates = sorted(name for name, model in MODELS.items() if "V100" in model.rates)
    digest = int("a9412fdddb26a113", 16)  # the first eight bytes of the SHA-256 of id-0, the same on every machine
    assert models["id-0"] == candidates[digest % len(candidates)]
    assert "only the first 50 of 200 jobs by arrival" in other.derived
    assert (
        "rates of 50 jobs from catalogue models chosen by a hash of the job id: the trace names none" in other.derived
    )


def test_default_cluster_grows_evenly_until_the_largest_gang_fits(tmp_path: Path) -> None:
    text = "job_id,submission_time,duration,num_gpu\na,0,10,101\n"
    instance = imported_text(tmp_path, "itp", text)
    assert instance.cluster.gpus_by_type == {"V100": 104, "P100": 104, "K80": 104}
    assert any("grown to the largest gang of 101" in d for d in instance.derived)
    eight = imported_text(tmp_path, "itp", text, Options(gpus_per_server=8, name="mine"))
    assert [(s.count, s.gpus, s.cpus, s.memory_gb) for s in eight.cluster.servers] == [(13, 8, 24.0, 500.0)] * 3
    assert eight.name == "mine"


def test_job_ids_with_markup_stay_data(tmp_path: Path) -> None:
    job_id = "<script>alert(1)</script>[bold]{x}%s"
    text = f"job_id,submission_time,duration,num_gpu\n{job_id},0,10,1\n"
    assert imported_text(tmp_path, "itp", text).jobs[0].id == job_id


# Errors: one line that names the file, the place, the value and what would be right.

ITP = "job_id,submission_time,duration,num_gpu\n"
WRONG = {
    "missing column": (
        "itp",
        "job_id,submission_time,duration\na,1,2\n",
        "line 1: not itp: no column num_gpu; its columns are job_id",
    ),
    "too few fields": ("itp", ITP + "a,0,10,1\nb,0,10\n", "line 3: 3 fields instead of 4"),
    "too many fields": ("itp", ITP + "a,0,10,1,\n", "line 2: 5 fields instead of 4"),
    "no number": ("itp", ITP + "a,soon,10,1\n", 'line 2: submission_time = "soon": a time, 0 to 1e+13'),
    "NaN": ("itp", ITP + "a,0,nan,1\n", 'line 2: duration = "nan": seconds, 0 to 1e+09'),
    "infinite": ("itp", ITP + "a,0,inf,1\n", 'line 2: duration = "inf": seconds, 0 to 1e+09'),
    "negative": ("itp", ITP + "a,0,-3,1\n", 'line 2: duration = "-3": seconds, 0 to 1e+09'),
    "fractional GPUs": ("itp", ITP + "a,0,3,1.5\n", 'num_gpu = "1.5": a whole number of GPUs, 0 to 100000'),
    "too many GPUs": ("itp", ITP + "a,0,3,1e9\n", 'num_gpu = "1e9": a whole number of GPUs, 0 to 100000'),
    "empty field": ("itp", ITP + "a,0,,1\n", 'line 2: duration = "": seconds, 0 to 1e+09'),
    "id twice": (
        "itp",
        ITP + "a,0,1,1\nb,0,1,1\na,0,2,1\n",
        'line 4: job_id = "a": already used in line 2; each',
    ),
    "control character": ("itp", ITP + "a\x1b[31m,0,1,1\n", r'job_id = "a\u001b[31m": the name of the job'),
    "long name": ("itp", ITP + "a" * 999 + ",0,1,1\n", "the name of the job"),
    "only a header": ("itp", ITP, "only a header; one or more lines must follow it"),
    "empty": ("itp", "", "the file is empty; it should have a header and one or more lines"),
    "blank lines": ("itp", " \n\n", "the file is empty; it should have a header and one or more lines"),
    "binary": ("itp", "\x7fELF\x00\x01", "a binary file (byte 4 is 0), not a text trace"),
    "no GPU job": ("itp", ITP + "a,0,1,0\n", "no job to schedule: 1 of 1 job left out: they ask for 0 GPUs"),
    "no date": (
        "philly",
        "timestamp,duration,num_gpus,gpu_time,cluster\nyesterday,1,1,1,x\n",
        'timestamp = "yesterday"',
    ),
    "impossible date": (
        "philly",
        SAMPLES["philly"].replace("2017-10-09 07", "2017-13-09 07"),
        "a date such as 2017",
    ),
    "zero iterations": (
        "synergy",
        "0,alexnet,0,0,1\n",
        'iterations = "0": a whole number of iterations, 1 to 1e+15',
    ),
    "Gavel, other width": ("gavel", GAVEL_NEW + "a\tb\n", "line 3: 2 fields instead of 10"),
    "Gavel, no steps": ("gavel", GAVEL_NEW.replace("2931", "many"), 'line 1: total steps = "many"'),
    "Gavel, negative weight": (
        "gavel",
        GAVEL_NEW.replace("2.5", "-2"),
        'priority weight = "-2": a weight, 0 or more',
    ),
    "openb, ends before": (
        "openb",
        SAMPLES["openb"].replace("1005,10", "9,10"),
        "deletion_time = 9.0: before scheduled_time = 10.0",
    ),
    "PAI, ends before": (
        "pai2020",
        SAMPLES["pai2020"].replace("110,390", "110,1"),
        "line 3: end_time = 1.0: before start_time = 110.0",
    ),
    "PAI, huge gang": (
        "pai2020",
        SAMPLES["pai2020"].replace("worker,3", "worker,100000").replace("50,T4", "9999,T4"),
        "at most",
    ),
    "JSON, cut off": ("philly_json", PHILLY_JSON[:300], "EOF while parsing"),
    "JSON, no list of objects": ("philly_json", "[1, 2]", "record 1: "),
    "JSON, no id": (
        "philly_json",
        '[{"submitted_time": "2017-10-07 00:00:00"}]',
        "jobid: missing: the name of the job",
    ),
    "JSON, no date": (
        "philly_json",
        PHILLY_JSON.replace("2017-10-07 01:11:39", "x"),
        'record 1: submitted_time = "x": a date',
    ),
    "JSON, wrong type": (
        "philly_json",
        PHILLY_JSON.replace('"m47"', "3").replace('"gpu0"', "0"),
        "a list of GPU names",
    ),
    "JSON, ends before": (
        "philly_json",
        PHILLY_JSON.replace("2017-10-07 02:13:30", "2017-10-07 00:13:30"),
        'record 1: attempts[1].end_time = "2017-10-07 00:13:30": after start_time = "2017-10-07 01:13:30"',
    ),
    "JSON, id twice": (
        "philly_json",
        PHILLY_JSON.replace('"c"', '"b"'),
        'record 3: jobid = "b": already used in record 2',
    ),
    "JSON, endless nesting": ("philly_json", "[" * 100_000, "recursion limit"),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_malformed_trace(tmp_path: Path, case: str) -> None:
    format, text, message = WRONG[case]
    with pytest.raises(InstanceError) as caught:
        imported_text(tmp_path, format, text, Options(max_bad=0))
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'trace.txt'}: ")
    assert message in said
    assert said.isprintable(), "one line, nothing that moves a cursor"
    assert len(said) < 600


def test_missing_file_folder_and_archives(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="no such file"):
        import_trace("itp", tmp_path / "none.csv")
    with pytest.raises(InstanceError, match="a folder, not a file"):
        import_trace("itp", tmp_path)
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")
    with pytest.raises(InstanceError, match="cannot be unpacked"):
        import_trace("itp", tmp_path / "a.gz")
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04\x00")
    with pytest.raises(InstanceError, match=r"compressed \(zip\); unpack it first"):
        import_trace("itp", tmp_path / "a.zip")
    (tmp_path / "latin").write_bytes(b"job_id,caf\xe9\n")
    with pytest.raises(InstanceError, match=r"not UTF-8 text \(byte 10\)"):
        import_trace("itp", tmp_path / "latin")


def test_long_traces_are_refused_before_they_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_LINES", 2)
    with pytest.raises(InstanceError, match=r"3 lines are more than the limit of 2 lines \(instances"):
        imported_text(tmp_path, "itp", ITP + "a,0,1,1\nb,0,1,1\n")
    monkeypatch.undo()
    monkeypatch.setattr(limits, "MAX_ITEMS", 1)
    with pytest.raises(InstanceError, match="2 jobs: an instance holds at most 1; set max_jobs"):
        imported_text(tmp_path, "itp", ITP + "a,0,1,1\nb,0,1,1\n")


ROWS = "\n".join(
    ["job_id,submission_time,duration,num_gpu", *(f"id-{i},{600 * i},3600,{2 ** (i % 3)}" for i in range(600))]
)


def test_only_some_hours_and_gangs_of_a_trace(tmp_path: Path) -> None:
    some = imported_text(tmp_path, "itp", ROWS, Options(hours=(10, 20), gangs=(1, 4)))
    assert {job.gpus for job in some.jobs} == {1, 4}
    assert [job.id for job in some.jobs][:2] == ["id-60", "id-62"]
    assert some.jobs[-1].submit_s < 10 * 3600
    assert "only 60 jobs that arrive from hour 10 to 20 of the trace" in some.derived
    with pytest.raises(InstanceError, match="none of 600 jobs has one of these hours and gang sizes"):
        imported_text(tmp_path, "itp", ROWS, Options(gangs=(3,)))


def test_a_split_gives_synergy_s_models_their_shares(tmp_path: Path) -> None:
    """With a split, jobs get models in its proportions, and take their duration with their proportional share."""
    instance = imported_text(tmp_path, "itp", ROWS, Options(split=(20, 70, 10)))
    models = [MODELS[job.model or ""] for job in instance.jobs]
    assert {model.suite for model in models} == {"synergy"}
    shares = [sum(model.task == task for model in models) / 600 for task in ("image", "language", "speech")]
    assert shares == pytest.approx([0.2, 0.7, 0.1], abs=0.05)
    for job in instance.jobs:
        assert job.sensitivity is not None
        assert job.iterations / (job.gpus * job.rates["V100"]) == pytest.approx(3600, rel=1e-3)
    again = imported_text(tmp_path, "itp", ROWS, Options(split=(20, 70, 10), hours=(10, 20)))
    same = {job.id: job.model for job in instance.jobs}
    assert all(job.model == same[job.id] for job in again.jobs)


def test_unknown_format_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="unknown importer 'phily'; did you mean philly"):
        import_trace("phily", Path("x"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(max_jobs=0), "max_jobs = 0: keep at least one job"),
        (Options(hours=(3, 3)), "hours = 3, 3: two hours, 0 or more, the earlier first"),
        (Options(split=(1, 2)), "shares of image, language and speech models, such as 20,70,10"),
        (Options(split=(1, 2, 3), history=True), "cannot be combined with its history"),
        (Options(gpus={}), "a cluster has at least one GPU type"),
        (Options(gpus={"V100": 0}), "gpus: V100 = 0: give 1 to"),
        (Options(gpus={"V1000": 4}), "gpus: unknown GPU type 'V1000'; the catalogue has V100"),
        (Options(gpus={"\x1b": 4}), r"gpus: '\\x1b' is not the name of a GPU type"),
        (Options(gpus={"V100": 10_000_000}, gpus_per_server=1), "at most 1000000"),
        (Options(gpus={"V100": 4, "v100": 4}), "already used by"),
        (Options(gpus={"V100": 4}), r"jobs\[0\].gpus = 64: a gang fits on the 4 GPUs the job can use"),
        (Options(gpus_per_server=0), "gpus_per_server = 0: a server has 1 to 10000 GPUs"),
        (Options(gpus={"V100": 4}, nodes=Path("x")), "gpus and nodes both describe the cluster"),
        (Options(nodes=Path("nowhere.csv")), "nowhere.csv: no such file"),
        (
            Options(throughputs=Path("x")),
            "throughputs: the table is for Gavel's job types, which itp traces do not name",
        ),
        (Options(name="a\nb"), "name = "),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: Options, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        imported_text(tmp_path, "itp", SAMPLES["itp"], options)
    assert "\n" not in str(caught.value)


KIND = "('ResNet-50 (batch size 64)', 2)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not valid JSON"),
        ("[1]", "a throughput table is an object"),
        ("{}", "a throughput table is an object"),
        ('{"v100": 3}', r'"v100": must be an object'),
        ('{"v100": {"__import__(\'os\')": {"null": 1}}}', "a key is written"),
        (
            json.dumps({"v100": {KIND: {"null": -1}}}),
            "null = -1: iterations per second of the whole job, 0 or more",
        ),
        (json.dumps({"v100": {KIND: {"null": True}}}), "null = true"),
        ('{"v100": {"' + KIND + '": {"null": NaN}}}', "null = NaN"),
        (json.dumps({"v100": {KIND: {}}}), "null = null"),
        (json.dumps({"v100_unconsolidated": {KIND: {"null": 1}}}), "only rates of jobs spread over servers"),
        (json.dumps({"\u001b": {KIND: {"null": 1}}}), "the name of a GPU type"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_malformed_throughput_table(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(InstanceError, match=message) as caught:
        imported_text(tmp_path, "gavel", GAVEL_NEW, Options(throughputs=path))
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sn,cpu_milli,memory_mib,gpu\na,1,1,1\n", "no column 'model'"),
        (
            "sn,cpu_milli,memory_mib,gpu,model\na,1,1,many,T4\n",
            'line 2: gpu = "many": a whole number of GPUs',
        ),
        ("sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,T4\n", "no server has both a GPU and a GPU type"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "only a header"),
    ],
)
def test_malformed_node_list(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(content)
    with pytest.raises(InstanceError, match=message):
        imported_text(tmp_path, "openb", SAMPLES["openb"], Options(nodes=path))
