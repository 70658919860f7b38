"""Logs of executed jobs (sacct, SWF and mapped CSV; real and hostile ones), and what is certified about them."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import PAI_JOBS, SAMPLES

import schedgap as sg
from schedgap.harness.studies.certify import held, save
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.importers.sacct import hosts
from schedgap.instances.schema import Instance

LOGS = Path(os.environ.get("SCHEDGAP_DATA", ROOT.parent / "shared" / "data")) / "logs"
real = pytest.mark.skipif(not LOGS.is_dir(), reason="shared/data is not here")

HEAD = "JobID|JobName|Submit|Start|End|State|AllocTRES|NodeList\n"
ONE = "1|a|2026-03-02T08:00:00|2026-03-02T08:10:00|2026-03-02T09:00:00|COMPLETED|cpu=1,gres/gpu:v100=4|g1\n"
SWF = "1 0 10 100 4 -1 -1 4 200 -1 1 1 1 -1 0 -1 -1 -1\n"


def read(tmp_path: Path, format: str, text: str, **options: Any) -> Instance:
    path = tmp_path / f"log.{format}"
    path.write_text(text)
    return import_trace(format, path, Options(history=True, **options))


def runs(instance: Instance) -> dict[str, tuple[float, tuple[tuple[float, float], ...], int]]:
    return {job.id: (job.submit_s, job.history.runs if job.history else (), job.gpus) for job in instance.jobs}


@real
def test_the_sample_of_slurm() -> None:
    found = import_trace("sacct", LOGS / "sacct_sample.txt", Options(history=True))
    assert list(runs(found)) == ["1001", "1002", "1003_1", "1003_2", "1004", "1007", "1007#2"]
    assert runs(found)["1004"] == (5395.0, ((43438.0, 46795.0),), 4)
    assert found.jobs[1].history is not None
    assert found.jobs[1].history.hosts == ({"g002": 1, "g003": 1},)
    assert found.cluster.gpus_by_type == {"v100": 13}
    assert "2 of 12 lines left out: they are steps of jobs" in found.derived
    assert "2 of 12 lines left out: they never started" in found.derived


@real
def test_the_history_of_batch_jobs_by_a_map() -> None:
    columns = {"id": "job_id", "submit": "submit_time", "start": "start_time", "end": "finish_time"}
    found = import_trace("csv", LOGS / "hpc_jobs.csv", Options(history=True, columns=columns | {"cores": "num_cores"}))
    assert len(found.jobs) == 87
    assert found.cluster.gpus_by_type == {"core": 30}


@real
def test_a_workload_without_waits_has_no_history() -> None:
    found = import_trace("swf", LOGS / "NASA-iPSC-1993-3.1-cln.swf", Options(history=True, max_jobs=50))
    assert found.cluster.gpus_by_type == {"processor": 128}
    assert not any(job.history and job.history.runs for job in found.jobs)


WRONG = [
    (
        "sacct",
        HEAD + ONE.replace("T09:00:00", "T07:00:00"),
        'line 2: End = "2026-03-02T07:00:00": before Start = "2026-03-02T08:10:00"',
    ),
    ("sacct", HEAD + ONE.replace("2026-03-02T08:10:00", "yesterday"), 'line 2: Start = "yesterday": a date'),
    ("sacct", HEAD + ONE + ONE[:40], "line 3: 4 fields instead of 8: the line is cut off"),
    ("sacct", HEAD + "x" + ONE, 'line 2: JobID = "x1": a job id such as 123'),
    ("sacct", HEAD.replace("|End", ""), "line 1: no column End"),
    ("sacct", HEAD, "only a header"),
    ("sacct", "JobID JobName Submit Start End\n", "line 1: the columns have fixed widths"),
    ("swf", SWF + "2 0 10\n", "line 2: 3 fields instead of 18"),
    ("swf", SWF + SWF.replace("100", "-7", 1).replace("1", "2", 1), 'line 2: run = "-7"'),
    ("swf", SWF + SWF.replace("100", "99"), 'line 2: job = "1": already used in line 1'),
    ("csv", "id,submit,start,end,gpus\na,0,1,x,1\n", 'line 2: end = "x"'),
    ("csv", "id,submit,start,end,gpus\na,0,1,2,-1\n", 'line 2: gpus = "-1"'),
    (
        "csv",
        "id,submit,start,end,gpus\na,0,1,2,1\na,0,1,3,1\n",
        'line 2: id = "a": several lines with this id, whose runs overlap',
    ),
    ("csv", "id,submit,begin,end,gpus\na,0,1,2,1\n", "start: unknown column 'start'"),
]


@pytest.mark.parametrize(("format", "text", "told"), WRONG)
def test_errors_name_line_and_field(tmp_path: Path, format: str, text: str, told: str) -> None:
    with pytest.raises(InstanceError) as caught:
        read(tmp_path, format, text, max_bad=0)
    assert told in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_format_of_times_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="bad directive"):
        read(tmp_path, "csv", "id,submit,start,end,gpus\na,0,1,2,1\n", time_format="%q")


def test_a_mapped_log_becomes_an_instance(tmp_path: Path, command: Command) -> None:
    (tmp_path / "log.csv").write_text("job,submit,begin,end,gpus\na,0,1,2,1\n")
    words = (
        "import",
        "csv",
        tmp_path / "log.csv",
        "-o",
        tmp_path / "my.json",
        "--map",
        "id=job,submit=submit,start=begin,end=end,gpus=gpus",
    )
    assert "add --history" in command(*words).stderr
    assert command(*words, "--history").returncode == 0
    assert len(sg.load(tmp_path / "my.json").jobs) == 1


def test_a_name_with_the_delimiter_is_refused_where_two_columns_may_have_it(tmp_path: Path) -> None:
    head = "JobID|JobName|Comment|Submit|Start|End|State|NCPUS\n"
    line = "1|a|b|c|2026-03-02T08:00:00|2026-03-02T08:10:00|2026-03-02T09:00:00|COMPLETED|4\n"
    assert runs(read(tmp_path, "sacct", head + line)) == {"1": (0.0, ((600.0, 3600.0),), 4)}
    with pytest.raises(InstanceError, match="line 2: 10 fields instead of 8"):
        read(tmp_path, "sacct", head.replace("Comment", "Account") + line.replace("2026-03-02T09", "2026|03-02T09"))


def test_requeues_and_preemptions(tmp_path: Path) -> None:
    again = ONE.replace("T08:00:00", "T08:30:00").replace("T08:10:00", "T09:20:00").replace("T09:00:00", "T10:00:00")
    failed = read(tmp_path, "sacct", HEAD + ONE.replace("COMPLETED", "NODE_FAIL") + again)
    assert runs(failed) == {"1": (0.0, ((600.0, 3600.0),), 4), "1#2": (3600.0, ((4800.0, 7200.0),), 4)}
    preempted = read(tmp_path, "sacct", HEAD + ONE.replace("COMPLETED", "PREEMPTED") + again)
    assert runs(preempted) == {"1": (0.0, ((600.0, 3600.0), (4800.0, 7200.0)), 4)}


def test_a_requeued_job_that_is_preempted_keeps_its_release(tmp_path: Path) -> None:
    failed = ONE.replace("COMPLETED", "NODE_FAIL")
    again = ONE.replace("T08:10:00", "T09:20:00").replace("T09:00:00", "T10:00:00")
    later = ONE.replace("T08:10:00", "T11:00:00").replace("T09:00:00", "T12:00:00")
    found = read(tmp_path, "sacct", HEAD + failed + again.replace("COMPLETED", "PREEMPTED") + later)
    runs_of = {"1": (0.0, ((600.0, 3600.0),), 4), "1#2": (3600.0, ((4800.0, 7200.0), (10800.0, 14400.0)), 4)}
    assert runs(found) == runs_of


def test_time_zones(tmp_path: Path) -> None:
    summer = HEAD + ONE.replace("T08:00:00", "T08:00:00+02:00").replace("T08:10:00", "T06:10:00Z")
    found = read(tmp_path, "sacct", summer.replace("T09:00:00", "T09:00:00+02:00"))
    assert runs(found) == {"1": (0.0, ((600.0, 3600.0),), 4)}
    back = ONE.replace("2026-03-02T08", "2026-10-25T01").replace("2026-03-02T09:00:00", "2026-10-25T03:10:00")
    assert runs(read(tmp_path, "sacct", HEAD + back, timezone="Europe/Berlin"))["1"][1] == ((600.0, 11400.0),)
    with pytest.raises(UsageError, match="no such zone"):
        read(tmp_path, "sacct", HEAD + ONE, timezone="Mars/Base")


def test_a_log_that_breaks_its_cluster_is_told_and_gets_its_peak(tmp_path: Path) -> None:
    found = read(tmp_path, "swf", "; MaxProcs: 6\n; UnixStartTime: 749458803\n" + SWF + SWF.replace("1", "2", 1))
    assert found.cluster.gpus_by_type == {"processor": 8}
    told = "8 processors in use where there are 6 (MaxProcs of the header), first at 1993-10-01 07:00:13: 8, the peak"
    assert any(told in line for line in found.derived), found.derived
    assert read(tmp_path, "swf", SWF, gpus={"": 16}).cluster.gpus == 16
    with pytest.raises(UsageError, match="the log has pools processor"):
        read(tmp_path, "swf", SWF, gpus={"V100": 16})


def test_swf_parts_and_gzip(tmp_path: Path) -> None:
    parts = "1 0 5 10 4 -1 -1 4 99 -1 2 1 1 -1 0 -1 -1 -1\n1 15 20 30 4 -1 -1 4 99 -1 3 1 1 -1 0 -1 -1 -1\n"
    whole = "1 0 5 40 4 -1 -1 4 99 -1 1 1 1 -1 0 -1 -1 -1\n"
    assert runs(read(tmp_path, "swf", whole + parts)) == {"1": (0.0, ((5.0, 15.0), (35.0, 65.0)), 4)}
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(SWF.encode()))
    assert runs(import_trace("swf", path, Options(history=True))) == {"1": (0.0, ((10.0, 110.0),), 4)}
    path.write_bytes(gzip.compress(SWF.encode())[:-9])
    with pytest.raises(InstanceError, match="cannot be unpacked"):
        import_trace("swf", path, Options(history=True))


def test_unsorted_lines_and_starts_before_submission(tmp_path: Path) -> None:
    text = "id;submit;start;end;gpus\nb;50;60;70;2\na;20;10;30;1\n"
    found = read(tmp_path, "csv", text)
    assert runs(found) == {"a": (0.0, ((0.0, 20.0),), 1), "b": (40.0, ((50.0, 60.0),), 2)}
    assert any("1 job with a start before the submission (by up to 10 s)" in line for line in found.derived)


def test_node_lists() -> None:
    assert hosts("b[002-003],c1") == ("b002", "b003", "c1")
    assert hosts("n[1,3-4]-ib") == ("n1-ib", "n3-ib", "n4-ib")
    assert hosts("n[0-99999999]") == ()
    assert hosts("") == ()


def told(instance: Instance, *words: str) -> None:
    for one in words:
        assert any(one in line for line in instance.derived), instance.derived


def test_servers_of_a_node_list_are_checked_one_by_one(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("node,gpus,type\ng1,4,v100\ng2,4,v100\nc1,0,\n")
    two = ONE.replace("1|a", "2|b").replace("|g1", "|g[1-2]").replace("=4", "=6").replace("T08:10", "T08:20")
    found = read(tmp_path, "sacct", HEAD + ONE + two, nodes=nodes)
    told(
        found,
        "2 of 2 servers are checked one by one",
        "6 v100 in use on g1, which has 4, first at 2026-03-02 08:20",
    )
    assert [job.history.hosts for job in found.jobs if job.history] == [({"g1": 4},), ({"g1": 2, "g2": 2},)]
    assert [(group.name, group.gpus) for group in found.cluster.servers] == [("g1", 6), ("g2", 4)]
    other = read(tmp_path, "sacct", HEAD + ONE + two.replace("v100", "k80"), nodes=nodes)
    assert [job.history.hosts for job in other.jobs if job.history] == [({"g1": 4},), ()]  # the list has g1 elsewhere
    text = 'id,submit,start,end,gpus,where\na,0,0,9,2,g1\nb,0,0,9,3,"g1,x"\n'
    columns = {name: name for name in ("id", "submit", "start", "end", "gpus")} | {"server": "where"}
    mapped = read(tmp_path, "csv", text, nodes=nodes, columns=columns)
    assert [job.history.hosts for job in mapped.jobs if job.history] == [({"g1": 2},), ({"g1": 1, "x": 1},)]
    nodes.write_text("node,gpus,type\ng1,4,v100\ng1,4,v100\n")
    with pytest.raises(InstanceError, match='line 3: node = "g1": already used in line 2'):
        read(tmp_path, "sacct", HEAD + ONE, nodes=nodes)


def test_philly_says_how_many_gpus_of_a_machine_are_held(tmp_path: Path) -> None:
    nodes = tmp_path / "cluster_machine_list.csv"
    nodes.write_text("machineId, number of GPUs, single GPU mem\nm1,2,24GB\nm2,1,12GB\n")
    found = read(tmp_path, "philly_json", PHILLY, nodes=nodes)
    assert [job.history.hosts for job in found.jobs if job.history] == [({"m1": 2}, {"m2": 2})]
    told(found, "2 GPUs in use on m2, which has 1, first at 2017-10-07 03:00:00: the peak counts")


def test_jobs_may_move_where_the_log_says_how_long_they_would_run(tmp_path: Path) -> None:
    text = "id,submit,start,end,gpus,type,k80,v100\na,0,0,10,2,V,30,10\nb,0,0,0:00:30,1,K,0:00:30,\n"
    names = ("id", "submit", "start", "end", "gpus", "type")
    columns = {name: name for name in names} | {"duration:K": "k80", "duration:V": "v100", "duration:P": "k80"}
    text = text.replace("0,0:00:30,1", "0,30,1")
    found = read(tmp_path, "csv", text, columns=columns)
    assert [job.history.durations_s for job in found.jobs if job.history] == [{"K": 30.0}, {}]
    assert found.jobs[0].rates == {"V": 1.0, "K": pytest.approx(1 / 3)}
    told(found, "duration:P of 2 lines left out: nothing ran on P, and its size is not known (give it with --gpus)")
    known = read(tmp_path, "csv", text, columns=columns, gpus={"V": 2, "K": 1, "P": 8})
    assert [job.history.durations_s for job in known.jobs if job.history] == [{"K": 30.0, "P": 30.0}, {"P": 30.0}]
    assert known.cluster.gpus_by_type == {"V": 2, "K": 1, "P": 8}
    with pytest.raises(InstanceError, match='line 2: k80 = "x": a duration in seconds'):
        read(tmp_path, "csv", text.replace("V,30", "V,x"), columns=columns, max_bad=0)
    with pytest.raises(UsageError, match="unknown name 'duration:'"):
        read(tmp_path, "csv", text, columns=columns | {"duration:": "k80"})


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"job": "id"}, "--map: unknown name 'job'; "),
        ({"id": "id"}, "no column for submit, for start or wait, for end or duration, for gpus or cpus or cores or "),
        (None, "start: unknown column 'start'; known: id, submit, begin, finish, n (--map start=…,end=…,gpus=…; the "),
        ({"submit": "submit", "wait": "n", "end": "finish", "gpus": "n", "nodes": "n"}, "gpus and nodes all give"),
    ],
)
def test_a_map_that_lacks_something_is_answered_with_all_of_it(
    columns: dict[str, str] | None, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, "csv", "id,submit,begin,finish,n\na,0,1,2,1\n", columns=columns)
    assert told in str(caught.value)


@real
def test_batch_jobs_are_certified_as_a_stranger_types_it(command: Command) -> None:
    log = LOGS / "hpc_jobs.csv"
    bare = command("certify", "csv", log)
    assert (bare.returncode, bare.stderr.count("\n")) == (2, 1)
    assert "did you mean job_id? (--map id=…,submit=…,start=…,end=…,gpus=…; the header has job_id, num_c" in bare.stderr
    columns = "id = job_id, submit = submit_time, wait = wait_time, duration = run_time, cores = num_cores"
    done = command("certify", "csv", log, "--map", columns, "--time-limit", 2, "--jobs", 1, "--no-report")
    assert done.returncode == 0, done.stderr
    assert "30 cores: the most that the log has in use at once" in done.stderr
    assert "as executed 0.0328 h, at most 1.713 × the optimum" in " ".join(done.stdout.split())


@settings(max_examples=60, deadline=None)
@given(format=st.sampled_from(["sacct", "swf", "csv"]), text=st.text(max_size=200), cut=st.integers(0, 200))
def test_whatever_a_file_holds_is_read_or_refused_in_a_line(
    format: str, text: str, cut: int, tmp_path_factory: Any
) -> None:
    good = {"sacct": HEAD + ONE, "swf": SWF, "csv": "id,submit,start,end,gpus\na,0,1,2,1\n"}[format]
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes((good[:cut] + text + good[cut:]).encode("utf-8", "surrogatepass"))
    try:
        found = import_trace(format, path, Options(history=True))
    except UsageError as error:
        said = str(error)
    else:
        said = f"{len(found.jobs)} jobs"
    assert "\n" not in said


HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
PHILLY = """[{"status": "Pass", "vc": "v", "jobid": "a", "user": "u", "submitted_time": "2017-10-07 01:00:00",
"attempts": [
{"start_time": "2017-10-07 01:00:10", "end_time": "2017-10-07 02:00:00", "detail": [{"ip": "m1", "gpus": ["0", "1"]}]},
{"start_time": "2017-10-07 03:00:00", "end_time": "2017-10-07 04:00:00", "detail": [{"ip": "m2", "gpus": ["0", "1"]}]}
]}]"""
OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p,1,1,2,1000,,LS,Running,0,90,30\nq,1,1,1,1000,,LS,Pending,5,9,\n"""


def test_traces_that_say_when_jobs_ran(tmp_path: Path) -> None:
    line = "7,u,v,8,1,1,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:30:00,2020-06-09 19:00:00,1800,0\n"
    helios = read(tmp_path, "helios", HELIOS + line)
    assert runs(helios) == {"7": (0.0, ((1800.0, 3600.0),), 8)}
    assert helios.jobs[0].history is not None
    assert helios.jobs[0].history.partition == "v"
    assert runs(read(tmp_path, "philly_json", PHILLY)) == {"a": (0.0, ((10.0, 3600.0), (7200.0, 10800.0)), 2)}
    openb = read(tmp_path, "openb", OPENB)
    assert runs(openb) == {"p": (0.0, ((30.0, 90.0),), 2)}
    assert "1 of 2 lines left out: they never started" in openb.derived
    with pytest.raises(UsageError, match="itp: traces of this format do not record"):
        read(tmp_path, "itp", "job_id,submission_time,duration,num_gpu\n1,0,5,1\n")


@pytest.mark.parametrize("header", [False, True])
def test_pai_by_its_task_and_job_tables(header: bool, tmp_path: Path) -> None:
    tasks, jobs = tmp_path / "pai_task_table.csv", tmp_path / "pai_job_table.csv"
    with_header = SAMPLES["pai2020"].replace(",,\n", ",0,\n", 1)  # a first line has all numbers
    tasks.write_text(with_header if header else with_header.partition("\n")[2])
    with pytest.raises(InstanceError, match=r"pai_job_table.csv .* says when jobs were submitted"):
        import_trace("pai2020", tasks, Options(history=True))
    jobs.write_text("job_name,inst_id,user,status,start_time,end_time\n" * header + PAI_JOBS)
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("machine,gpu_type,cap_cpu,cap_mem,cap_gpu\nm1,T4,96,512,2\nm2,MISC,96,512,8\n")
    found = import_trace("pai2020", tasks, Options(history=True, nodes=nodes))
    assert runs(found) == {"j1": (0.0, ((70.0, 350.0),), 2), "j2": (9.0, ((10.0, 40.0),), 1)}
    assert [(job.tenant, job.status) for job in found.jobs] == [("ann", "Terminated"), ("bob", "Failed")]
    assert found.cluster.gpus_by_type == {"T4": 2, "MISC": 8}
    assert found.began_s == 40 + 8 * 3600
    told(found, "gangs of 1 job rounded up to whole GPUs", "one of their tasks has no start or no end")
    jobs.write_text(PAI_JOBS.replace(",49,", ",,"))
    told(
        import_trace("pai2020", tasks, Options(history=True)),
        "pai_job_table.csv does not say when they were submitted",
    )
    jobs.write_text(PAI_JOBS + PAI_JOBS)
    repeated = import_trace("pai2020", tasks, Options(history=True))
    told(repeated, "2 of 4 lines of pai_job_table.csv left out: they repeat another line")
    jobs.write_text(PAI_JOBS + PAI_JOBS.replace("j1,i1,ann", "j1,i9,ann"))
    told(import_trace("pai2020", tasks, Options(history=True)), "their job_name is that of an earlier line")
    jobs.write_text("a,b\n")
    with pytest.raises(InstanceError, match="line 1: no column 'job_name'"):
        import_trace("pai2020", tasks, Options(history=True))


@pytest.mark.skipif(not (LOGS.parent / "openb").is_dir(), reason="shared/data is not here")
def test_the_openb_trace_on_its_nodes() -> None:
    folder = LOGS.parent / "openb"
    options = Options(history=True, nodes=folder / "openb_node_list_gpu_node.csv", max_jobs=500)
    found = import_trace("openb", folder / "openb_pod_list_default.csv", options)
    assert found.cluster.gpus == 6212
    assert len(found.jobs) == 500


@pytest.fixture(scope="module")
def simulated() -> Any:
    return sg.simulate("gen/20jobs?jobs=8", ["hadar.tiresias", "hadar.gavel", "hadar.srtf"], jobs=1)


@pytest.mark.parametrize("format", ["sacct.txt", "swf"])
def test_our_own_simulations_read_back_are_the_same_history(format: str, simulated: Any, tmp_path: Path) -> None:
    assert save(simulated, tmp_path) == 3
    for policy, trace in simulated.traces.items():
        path = tmp_path / f"{policy}.{format}"
        found = import_trace(format.partition(".")[0], path, Options(history=True))
        first = min(trace.workload.arrival_s[one.job] for one in held(trace))
        wanted = sorted(
            (str(one.job + 1), round(one.start_s - first, 5), round(one.end_s - first, 5), sum(n for _, n in one.gpus))
            for one in held(trace)
        )
        read_back = sorted(
            (job.id.partition("~")[0], round(start, 5), round(end, 5), job.gpus)
            for job in found.jobs
            for start, end in (job.history.runs if job.history else ())
        )
        for (name, *got), (expected, *due) in zip(read_back, wanted, strict=True):
            assert name == expected
            assert got == pytest.approx(due, abs=2e-5)
        pools = {"+".join(kind for kind, _ in one.gpus) for one in held(trace)}
        if format == "sacct.txt":
            assert set(found.cluster.gpus_by_type) == pools
