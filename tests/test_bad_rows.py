"""Logs as they are: bad rows are left out, counted and listed; every row has one fate; small logs from reports."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from conftest import Command, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import SAMPLES

from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.importers import Options, read_trace
from schedgap.instances.importers.rows import FileRows
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.schema.summary import describe

LOGS = Path(__file__).parent / "logs"
BERLIN = "Europe/Berlin"
KUBE = {"id": "name", "user": "namespace", "submit": "created", "start": "started", "end": "completed", "gpus": "gpus"}
HEAD = "JobID|JobName|Submit|Start|End|State|AllocTRES|NodeList\n"
ROW = "1|a|2026-03-02T08:00:00|2026-03-02T08:10:00|2026-03-02T09:00:00|COMPLETED|cpu=1,gres/gpu=4|g1\n"

Runs = dict[str, tuple[float, tuple[tuple[float, float], ...], int]]


def read(path: Path, format: str = "sacct", **options: Any) -> tuple[Instance, FileRows]:
    return read_trace(format, path, Options(history=True, **options))


def of_text(tmp_path: Path, text: str, format: str = "sacct", **options: Any) -> tuple[Instance, FileRows]:
    path = tmp_path / "log.txt"
    path.write_text(text)
    return read(path, format, **options)


def runs(instance: Instance) -> Runs:
    return {job.id: (job.submit_s, job.history.runs if job.history else (), job.gpus) for job in instance.jobs}


def told(instance: Instance, *words: str) -> None:
    for one in words:
        assert any(one in line for line in instance.derived), instance.derived


# ---------------------------------------------------------------- small logs from reports

FIRST: Runs = {"100": (0.0, ((0.0, 7200.0),), 4), "101": (1800.0, ((7200.0, 10800.0),), 4)}


def test_parts_of_a_heterogeneous_job_on_the_same_gpus_are_one_gang() -> None:
    found, rows = read(LOGS / "04_hetjob.txt")
    assert runs(found) == FIRST | {"500": (0.0, ((10800.0, 14400.0),), 4)}
    assert sum(rows.left_out.values()) == 1
    told(found, "1 heterogeneous job: one gang of all parts")


def test_parts_on_different_gpus_are_jobs_of_their_own(tmp_path: Path) -> None:
    text = (LOGS / "04_hetjob.txt").read_text().replace("gres/gpu=4", "gres/gpu:a=4")
    lines = text.splitlines(keepends=True)
    apart = "".join([*lines[:3], lines[3].replace("gpu=", "gpu:a="), lines[4].replace("gpu=", "gpu:b=")])
    found, _ = of_text(tmp_path, apart)
    assert list(runs(found)) == ["100", "500+0", "500+1", "101"]
    told(found, "2 parts of 1 heterogeneous job on different GPUs, or with different times: jobs of their own")


def test_times_that_a_clock_shows_twice_are_read_in_order() -> None:
    found, _ = read(LOGS / "06_dst_fall.txt", timezone=BERLIN)
    lasted = {job.id: job.duration_s for job in found.jobs}
    assert lasted == {"100": 7200.0, "101": 3600.0, "600": 2700.0, "601": 10800.0}
    submit, ((start, _),), _ = runs(found)["600"]
    assert start - submit == 5400  # 01:00 to the first 02:30
    plain, _ = read(LOGS / "24_dst_elapsed.txt", timezone=BERLIN)
    assert [job.duration_s for job in plain.jobs] == [1200.0, 1200.0]


def test_elapsed_chooses_the_reading(tmp_path: Path) -> None:
    text = (LOGS / "24_dst_elapsed.txt").read_text().replace("1200", "4800", 1)  # 01:50 to the second 02:10
    found, _ = of_text(tmp_path, text, timezone=BERLIN)
    assert sorted(job.duration_s or 0 for job in found.jobs) == [1200.0, 4800.0]
    wrong, rows = of_text(tmp_path, text.replace("4800", "77"), timezone=BERLIN)
    assert [job.id for job in wrong.jobs] == ["2"]
    (bad,) = rows.bad
    assert bad.problem == (
        'Submit = "2026-10-25T01:40:00", Start = "2026-10-25T01:50:00", End = "2026-10-25T02:10:00": '
        "no reading has them in order, 77 s apart (Europe/Berlin)"
    )


def test_the_hour_that_a_clock_skips(tmp_path: Path) -> None:
    text = "id,submit,start,end,gpus,took\na,2026-03-29T01:00:00,2026-03-29T01:50:00,2026-03-29T02:10:00,1,{}\n"
    text += "b,2026-03-29T01:00:00,2026-03-29T01:50:00,2026-03-29T03:10:00,1,1200\n"
    columns = {name: name for name in ("id", "submit", "start", "end", "gpus")} | {"duration": "took"}
    found, _ = of_text(tmp_path, text.format(1200), "csv", columns=columns, timezone=BERLIN)
    assert [job.duration_s for job in found.jobs] == [1200.0, 1200.0]  # 02:10 is read as 03:10 of summer time
    unknown, rows = of_text(tmp_path, text.format(""), "csv", columns=columns, timezone=BERLIN)
    assert [job.id for job in unknown.jobs] == ["b"]
    assert "a clock skips one of these (Europe/Berlin)" in rows.bad[0].problem


def test_times_with_a_zone_are_not_moved(tmp_path: Path) -> None:
    found, _ = read(LOGS / "30_k8s.csv", "csv", columns=KUBE, timezone=BERLIN)
    assert runs(found) == {"job-a": (0.0, ((5.0, 7205.0),), 4), "job-b": (1800.0, ((7210.25, 10810.25),), 8)}
    none = (LOGS / "30_k8s.csv").read_text().replace(",,8", ",<none>,8").replace("job-b,team2", "job-b,<none>")
    again, rows = of_text(tmp_path, none, "csv", columns=KUBE)
    assert runs(again) == runs(found)
    told(again, "1 of 3 lines left out: they were still running", "all is about the jobs that ended")
    assert not rows.bad


def test_a_negative_duration_is_a_bad_row() -> None:
    found, rows = read(LOGS / "10_neg.txt")
    assert runs(found) == FIRST | {"802": (10800.0, ((10800.0, 18000.0),), 4)}
    (bad,) = rows.bad
    assert (bad.line, bad.content[:9]) == (4, "801|neg|u")
    why = 'End = "2026-03-02T10:59:00": before Start = "2026-03-02T11:00:00"'
    assert bad.problem == f"{why}; local times need --timezone"
    assert read(LOGS / "10_neg.txt", timezone=BERLIN)[1].bad[0].problem == why
    told(found, "1 of 4 lines left out: End is before Start")


@pytest.mark.parametrize("name", ["11_concat_dup", "s_dup"])
def test_overlapping_dumps(name: str) -> None:
    found, rows = read(LOGS / f"{name}.txt")
    assert rows.left_out["they repeat another line"] == 1
    if name == "11_concat_dup":
        assert runs(found) == FIRST
        assert found.cluster.gpus == 4
        assert rows.left_out["they repeat the header"] == 1
    else:
        assert list(runs(found)) == ["1001", "1002", "1003_1", "1003_2", "1004", "1007", "1007#2"]
        assert found.cluster.gpus == 13


def test_a_log_of_two_dumps_has_its_own_ratio() -> None:
    instance, _ = read(LOGS / "11_concat_dup.txt")
    rows = {row.method: row for row in compare_here(instance, ["rigid.executed", "rigid.exact", "rigid.starts"]).rows}
    assert rows["rigid.executed"].objective == pytest.approx(2.25)
    assert rows["rigid.exact"].objective == pytest.approx(2.25)
    assert rows["rigid.executed"].ratio == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize(("format", "column"), [("sacct", "Submit"), ("csv", "created")])
def test_every_job_needs_a_submission(format: str, column: str, tmp_path: Path) -> None:
    if format == "sacct":
        text = HEAD + ROW + ROW.replace("1|a|2026-03-02T08:00:00", "2|a|Unknown")
    else:
        text = (LOGS / "30_k8s.csv").read_text().replace("2026-03-02T08:30:00Z", "<none>")
    found, rows = of_text(tmp_path, text, format, columns=KUBE if format == "csv" else None)
    assert len(found.jobs) == 1
    (bad,) = rows.bad
    value = "<none>" if format == "csv" else "Unknown"
    assert bad.problem == f'{column} = "{value}": a time; every job needs a submission time'


def test_a_suspension_is_an_interruption() -> None:
    found, _ = read(LOGS / "13_suspended.txt")
    assert runs(found) == FIRST | {"100": (0.0, ((0.0, 1800.0), (5400.0, 7200.0)), 4)}
    told(found, "1 job suspended: interrupted for as long in the middle of the run")


def test_a_suspension_longer_than_the_run_is_a_bad_row(tmp_path: Path) -> None:
    text = (LOGS / "13_suspended.txt").read_text().replace("01:00:00\n", "09:00:00\n")
    found, rows = of_text(tmp_path, text)
    assert list(runs(found)) == ["101"]
    assert [bad.line for bad in rows.bad] == [2]


def test_where_eligibility_is_not_known_the_submission_stands() -> None:
    found, _ = read(LOGS / "14_eligible.txt")
    submit, ((start, _),), _ = runs(found)["901"]
    assert start - submit == 4 * 3600 + 600
    assert runs(found)["900"][0] == 3 * 3600


def test_json_of_slurm(tmp_path: Path) -> None:
    found, _ = read(LOGS / "18_sacct.json")
    assert runs(found) == {"100": (0.0, ((0.0, 7200.0),), 4)}
    older = """{"jobs": [{"job_id": 7, "user": "u", "state": {"current": "COMPLETED"}, "array": {"job_id": 5, "task_id":
    {"set": true, "infinite": false, "number": 2}}, "time": {"submission": {"set": true, "number": 100}, "eligible": 0,
    "start": {"set": true, "infinite": false, "number": 110}, "end": 150, "elapsed": 30, "suspended": {"seconds": 10},
    "limit": {"set": true, "infinite": true, "number": 0}}, "tres": {"allocated": [{"type": "cpu", "name": "", "count":
    8}, {"type": "gres", "name": "gpu:v100", "id": 1001, "count": 2}]}, "nodes": "n[1-2]", "steps": [{"x": 1}]},
    {"job_id": 9, "state": ["RUNNING"], "time": {"submission": 100, "start": 120, "end": 0}, "tres": {}},
    {"job_id": 3}]}"""
    instance, rows = of_text(tmp_path, older)
    assert runs(instance) == {"5_2": (0.0, ((10.0, 25.0), (35.0, 50.0)), 2)}
    assert instance.cluster.gpus_by_type == {"v100": 2}
    assert [(bad.line, bad.content) for bad in rows.bad] == [(3, '{"job_id": 3}')]
    assert rows.left_out["they were still running when the log was taken, or their end is not known"] == 1
    for broken, why in (('{"jobs": []}', "one or more"), ('{"jobs": [', "not valid JSON")):
        with pytest.raises(InstanceError, match=why):
            of_text(tmp_path, broken)


def test_generic_resources_of_older_versions(tmp_path: Path) -> None:
    found, _ = read(LOGS / "22_old_gres.txt")
    assert [(job.id, job.gpus) for job in found.jobs] == [("100", 4), ("101", 2)]
    assert found.cluster.gpus_by_type == {"tesla": 4}
    head = "JobID|Submit|Start|End|ReqGRES|NNodes\n"
    line = "{}|2016-03-02T08:00:00|2016-03-02T08:00:00|2016-03-03T08:00:00|{}|{}\n"
    asked = [("gpu:2", 3), ("gpu:k80:2(S:0-1)", 1), ("craynetwork:1,gpu", 2), ("gres:gpu:1080:1", 1)]
    text = head + "".join(line.format(at, gres, nodes) for at, (gres, nodes) in enumerate(asked, 1))
    assert [job.gpus for job in of_text(tmp_path, text)[0].jobs] == [6, 2, 2, 1]


def test_free_text_with_line_breaks() -> None:
    found, rows = read(LOGS / "31_tab_multiline.txt")
    assert runs(found) == {"1": (0.0, ((0.0, 3600.0),), 2), "2": (0.0, ((3600.0, 7200.0),), 2)}
    assert (rows.read, rows.continued, rows.bad) == (2, 3, [])


@pytest.mark.parametrize("delimiter", ["|", "\t", ";", "§"])
@pytest.mark.parametrize("free", ["a{0}b{0}{0}c", "if x{0}y\n  then\n 7{0}8\nfi", "{0}" * 40 + "x\n", "\n\n3\n"])
@pytest.mark.parametrize("where", [1, 5, 9])
def test_free_text_is_found_from_both_ends(delimiter: str, free: str, where: int, tmp_path: Path) -> None:
    head = ["JobID", "Submit", "Start", "End", "State", "AllocTRES", "NodeList", "ExitCode", "ReqTRES"]
    line = ["{}", "2026-03-02T08:00:00", "2026-03-02T08:{}0:00", "2026-03-02T09:00:00", "COMPLETED", "gres/gpu=2", "g1"]
    line += ["0:0", "gres/gpu=2"]
    head.insert(where, "SubmitLine")
    text = delimiter.join(head) + "\n"
    for at in range(4):
        fields = [field.format(at) for field in line]
        fields.insert(where, free.format(delimiter) if at % 2 else "sbatch x.sh")
        text += delimiter.join(fields) + "\n"
    found, rows = of_text(tmp_path, text)
    assert not rows.bad
    assert runs(found) == {str(at): (0.0, ((600.0 * at, 3600.0),), 2) for at in range(4)}


def test_quotes_that_do_not_end_and_names_with_line_breaks(tmp_path: Path) -> None:
    lines = [f'{at},"u, {at % 2}",{60 * at},{60 * at + 5},{60 * at + 50},1\n' for at in range(8)]
    lines[2] = lines[2].replace('0",', "0,")
    lines[4] = lines[4].replace('"u, 0"', '"u\n0"')
    columns = {name: name for name in ("id", "user", "submit", "start", "end", "gpus")}
    found, rows = of_text(tmp_path, "id,user,submit,start,end,gpus\n" + "".join(lines), "csv", columns=columns)
    assert [job.id for job in found.jobs] == ["0", "1", "3", "4", "5", "6", "7"]
    assert found.jobs[3].tenant == "u_0"
    (bad,) = rows.bad
    assert (bad.line, bad.problem) == (4, "7 fields instead of 6")
    assert rows.continued == 1


# ---------------------------------------------------------------- several dumps, several lines of a job


def test_the_final_state_of_a_job_stands(tmp_path: Path) -> None:
    running = ROW.replace("2026-03-02T09:00:00", "Unknown").replace("COMPLETED", "RUNNING")
    pending = running.replace("2026-03-02T08:10:00", "Unknown").replace("RUNNING", "PENDING")
    found, rows = of_text(tmp_path, HEAD + pending + running + HEAD + ROW)
    assert runs(found) == {"1": (0.0, ((600.0, 3600.0),), 4)}
    assert rows.left_out == {
        "they show a run before its end, which another line has": 2,
        "they repeat the header": 1,
    }
    again, _ = of_text(tmp_path, HEAD + ROW + ROW.replace("|g1", "|g2"))  # the same run, written differently
    assert runs(again) == runs(found)


def test_runs_of_a_job_that_overlap_are_bad_rows(tmp_path: Path) -> None:
    other = ROW.replace("1|a", "2|b")
    text = HEAD + ROW + ROW.replace("T08:10", "T08:20") + other
    found, rows = of_text(tmp_path, text, max_bad=70)
    assert list(runs(found)) == ["2"]
    assert [bad.line for bad in rows.bad] == [2, 3]
    told(found, "2 of 3 lines left out: runs of one job overlap")
    with pytest.raises(InstanceError, match=r"2 of 3 lines are bad \(67%\), more than the 5 % of --max-bad: line 2: "):
        of_text(tmp_path, text)


def test_only_more_bad_rows_than_accepted_refuse_a_log(tmp_path: Path) -> None:
    good = "".join(ROW.replace("1|", f"{at}|", 1) for at in range(1, 40))
    for many in range(1, 4):
        bad = "".join(f"{100 + at}|x|2026-03-02\n" for at in range(many))
        if many <= 2:  # 2 of 41 are 4.9 %
            found, rows = of_text(tmp_path, HEAD + good + bad)
            assert (len(found.jobs), len(rows.bad)) == (39, many)
        else:
            with pytest.raises(InstanceError, match=r"3 of 42 lines are bad \(7%\), more than the 5 % of --max-bad"):
                of_text(tmp_path, HEAD + good + bad)
    with pytest.raises(InstanceError, match=r"more than the 0 % of --max-bad: line 41: 3 fields instead of 8"):
        of_text(tmp_path, HEAD + good + "100|x|2026-03-02\n", max_bad=0)
    with pytest.raises(InstanceError, match=r"1 of 1 line is bad \(100%\): line 2: gpus = 400000"):
        of_text(tmp_path, HEAD + ROW.replace("gpu=4", "gpu=400000"))
    with pytest.raises(UsageError, match="max_bad = 101: a percentage of rows, 0 to 100"):
        of_text(tmp_path, HEAD + good, max_bad=101)


def test_bad_rows_are_listed_beside_an_instance_and_in_the_folder_of_a_run(tmp_path: Path, command: Command) -> None:
    done = command("import", "sacct", LOGS / "10_neg.txt", "--history", "-o", tmp_path / "my.json")
    assert done.returncode == 0, done.stderr
    listed = tmp_path / "my.bad-rows.csv"
    assert f"bad rows: {listed} (1 row)" in done.stderr
    with listed.open() as file:
        (row,) = csv.DictReader(file)
    assert (row["file"], row["line"], row["content"][:4]) == ("10_neg.txt", "4", "801|")
    assert (
        command("import", "sacct", LOGS / "11_concat_dup.txt", "--history", "-o", tmp_path / "my.json").returncode == 0
    )
    assert not listed.exists()
    words = ("certify", "sacct", LOGS / "10_neg.txt", "--time-limit", 1, "--jobs", 1, "--no-report")
    run = command(*words, "--results", tmp_path / "results")
    assert run.returncode == 0, run.stderr
    (file,) = (tmp_path / "results").glob("*/bad-rows.csv")
    assert "801|neg" in file.read_text()
    assert "bad rows: " in run.stderr
    assert command(*words, "--results", tmp_path / "none", "--max-bad", 0).returncode == 2


# ---------------------------------------------------------------- all formats, time zones, words


@pytest.mark.parametrize("format", sorted({*SAMPLES} - {"csv", "kubernetes", "lsf", "pbs", "philly_json"}))
def test_every_format_leaves_out_what_is_no_row(format: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(SAMPLES[format])
    clean, _ = read_trace(format, path, Options())
    path.write_text(SAMPLES[format].rstrip("\n") + "\nwhat is this\n")
    found, rows = read_trace(format, path, Options())
    assert found.jobs == clean.jobs
    (bad,) = rows.bad
    assert (bad.content, bad.line) == ("what is this", SAMPLES[format].rstrip("\n").count("\n") + 2)
    with pytest.raises(InstanceError, match=r"more than the 0 % of --max-bad: line .*fields instead of"):
        read_trace(format, path, Options(max_bad=0))


def test_records_of_philly_are_bad_one_by_one(tmp_path: Path) -> None:
    records = json.loads(SAMPLES["philly_json"])
    records[1]["attempts"][0]["end_time"] = "1999-01-01 00:00:00"
    path = tmp_path / "log.json"
    path.write_text(json.dumps([*records, {"jobid": 5}, *records[:1]]))
    found, rows = read_trace("philly_json", path, Options(history=True, max_bad=60, timezone="America/Los_Angeles"))
    assert [job.id for job in found.jobs] == ["application_1506638472019_14199"]
    assert [(bad.line, bad.problem.split(" = ")[0]) for bad in rows.bad] == [
        (2, "attempts[0].end_time"),
        (5, "jobid"),
        (6, "jobid"),
    ]
    told(
        found,
        "attempts left out: they have no start or no end",
        "times are those of a clock there: --timezone does not move them",
    )
    assert rows.read == 6 == 1 + sum(rows.left_out.values())


def test_a_task_that_is_a_bad_row_leaves_out_its_job(tmp_path: Path) -> None:
    text = SAMPLES["pai2020"].replace("3,Terminated,110,390", "3,Terminated,110,x")
    path = tmp_path / "pai_task_table.csv"
    path.write_text(text)
    found, rows = read_trace("pai2020", path, Options())
    assert [job.id for job in found.jobs] == ["j2"]
    told(found, "1 of 5 lines left out: no valid end_time", "1 of 4 jobs left out: one of their tasks is a bad row")
    assert [bad.line for bad in rows.bad] == [3]


@settings(max_examples=examples(25), deadline=None)
@given(
    jobs=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 200), st.integers(0, 300)), min_size=1, max_size=8),
    spring=st.booleans(),
)
def test_local_times_with_elapsed_give_the_run_times_back(jobs: Any, spring: bool, tmp_path_factory: Any) -> None:
    """Whatever ran around the change of the clocks: run times are right, and so are times that are not shown twice."""
    began = datetime(2026, 3, 28 if spring else 24, 22, tzinfo=UTC)
    text, true = "JobID|Submit|Start|End|ElapsedRaw|NCPUS\n", {}
    for number, (submit, wait, lasted) in enumerate(jobs):
        times = [began + timedelta(minutes=minutes) for minutes in (submit, submit + wait, submit + wait + lasted)]
        local = [time.astimezone(ZoneInfo(BERLIN)) for time in times]
        text += "|".join([str(number), *(f"{time:%Y-%m-%dT%H:%M:%S}" for time in local), str(60 * lasted), "1"]) + "\n"
        once = all(time.replace(fold=0).utcoffset() == time.replace(fold=1).utcoffset() for time in local)
        true[str(number)] = (once, times[0].timestamp(), 60.0 * wait, 60.0 * lasted)
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_text(text)
    found, rows = read(path, timezone=BERLIN)
    assert not rows.bad
    assert len(found.jobs) == len(jobs)
    first = min(true[job.id][1] - job.submit_s for job in found.jobs)  # the time from which the others count
    for job in found.jobs:
        once, submit, wait, lasted = true[job.id]
        assert job.duration_s == lasted
        assert job.history is not None
        if once:
            assert job.submit_s + first == submit
            assert job.history.runs[0][0] - job.submit_s == wait


def test_words(tmp_path: Path) -> None:
    head, line = "; MaxProcs: 256\n; UnixStartTime: 749433603\n", "{} {} {} 3600 4 -1 -1 4 -1 -1 1 1 1 -1 0 -1 -1 -1\n"
    found, _ = of_text(tmp_path, head + line.format(1, 0, 0) + line.format(2, 60, 36000), "swf")
    told(found, "256 processors: MaxProcs of the header; the log uses up to 4 at once")
    assert dict(describe(found))["cluster"] == "256 processors"
    assert dict(describe(found))["gangs"] == "2 of 4 processors"
    caption = PAPERS.get("rigid").describe(PAPERS.get("rigid").view(found))
    assert caption == "2 gangs of fixed duration on 256 processors; load 0% of 11.02 h"
    never, _ = of_text(tmp_path, head + line.format(1, 0, -1), "swf")
    told(never, "256 processors: MaxProcs of the header; the log does not say when jobs ran")
    running, _ = of_text(tmp_path, HEAD + ROW.replace("COMPLETED", "RUNNING"))
    told(running, "1 line with an end, but a status such as Running: that end counts")
    hour = ROW.replace("NodeList", "")
    shifted, _ = of_text(tmp_path, HEAD.replace("JobName", "Elapsed") + hour.replace("|a|", "|01:50:00|"))
    told(shifted, "1 line with End − Start an hour off Elapsed: local times need --timezone")


# ---------------------------------------------------------------- nothing is lost silently

SLURM = "{id}|n|2026-03-02T08:00:00|{start}|{end}|COMPLETED|gres/gpu={gpus}|g1"
SPOILT = [
    "cut",
    "more",
    "x",
    "-5",
    "Unknown",
    "None",
    "twice",
    "header",
    "blank",
    "step",
    "garbage",
    "backwards",
    "empty",
]
LINES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9), st.integers(0, 9), st.sampled_from(SPOILT)))


def line_of(format: str, number: int, start: int, lasted: int, damage: str) -> str:
    """Return a line of a log with one kind of damage."""
    if format == "swf":
        fields = [str(value) for value in (number, 0, 60 * start, 60 * lasted, 4, *[-1] * 5, 1, *[-1] * 7)]
    else:
        times = [f"2026-03-02T08:{minute:02d}:00" for minute in (0, 10 + start, 10 + start + lasted)]
        fields = [str(number), "n", *times, "COMPLETED", "gres/gpu=4", "g1"]
        fields = fields if format == "sacct" else [*fields[:1], *fields[2:5], "4"]
    delimiter = {"sacct": "|", "swf": " ", "csv": ","}[format]
    if damage == "cut":
        fields = fields[:3]
    elif damage == "more":
        fields.insert(2, "extra")
    elif damage == "backwards":
        first = {"sacct": 3, "swf": 2, "csv": 2}[format]
        fields[first : first + 2] = ["-9", "-9"] if format == "swf" else reversed(fields[first : first + 2])
    elif damage == "step":
        fields[0] += ".batch"
    elif damage in {"x", "-5", "Unknown", "None"}:
        fields[3] = damage
    elif damage in {"blank", "garbage"}:
        return "" if damage == "blank" else 'slurmdbd: "error'
    return delimiter.join(fields)


@settings(max_examples=examples(50), deadline=None)
@given(format=st.sampled_from(["sacct", "swf", "csv"]), drawn=LINES)
def test_every_row_is_a_run_or_left_out_for_a_reason(format: str, drawn: Any, tmp_path_factory: Any) -> None:
    header = {"sacct": HEAD.strip(), "swf": "; Version: 2.2", "csv": "id,submit,start,end,gpus"}[format]
    lines = [header, line_of(format, 77, 0, 1, "")]
    for number, start, lasted, damage in drawn:
        again = lines[-1] if damage == "twice" else header
        lines.append(again if damage in {"twice", "header"} else line_of(format, number, start, lasted, damage))
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_text("\n".join(lines))
    instance, rows = read(path, format, max_bad=100)
    kept = [run for job in instance.jobs if job.history for run in job.history.runs]
    assert rows.read == len(kept) + sum(rows.left_out.values())
    comments = sum(line.startswith(";") for line in lines)
    headers = 0 if format == "swf" else 1
    assert rows.read + rows.continued == sum(bool(line) for line in lines) - headers - comments
    assert "77" in {job.id for job in instance.jobs} or any(row.line == 2 for row in rows.bad)
    for row in rows.bad:
        assert row.content.split("\n")[0] == lines[row.line - 1]
        assert row.problem
    counted = [int(note.split(" ")[0]) for note in instance.derived if " left out: " in note]
    assert sum(counted) == sum(rows.left_out.values())
