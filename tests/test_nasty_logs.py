"""Logs as people hand them in: other encodings, zeros of a crash, joined dumps, and odd but legal rows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from schedgap.instances.importers import Options, import_trace
from schedgap.instances.schema import Instance

HEADER = "JobID|User|Submit|Start|End|State|AllocTRES\n"
CSV = "job,queued,begin,finish,n,who\n"
COLUMNS = {"id": "job", "submit": "queued", "start": "begin", "end": "finish", "gpus": "n", "user": "who"}


def read(tmp_path: Path, format: str, content: str | bytes) -> Instance:
    path = tmp_path / "log.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return import_trace(format, path, Options(history=True, columns=COLUMNS if format == "csv" else None))


def runs(instance: Instance) -> list[tuple[float, tuple[tuple[float, float], ...], int]]:
    return [(job.submit_s, job.history.runs if job.history else (), job.gpus) for job in instance.jobs]


def line(job: int, user: str = "ann", gpus: str = "gres/gpu=1", state: str = "COMPLETED", submit: str = "10:00") -> str:
    """Return a line of Slurm's account: job n runs from 1n:00 to 1n:30."""
    day = "2026-01-05T"
    return f"{job}|{user}|{day}{submit}:00|{day}1{job}:00:00|{day}1{job}:30:00|{state}|cpu=4,{gpus}\n"


def row(job: object, submit: object, start: object, end: object, gpus: object = 1, user: str = "u") -> str:
    return f"{job},{submit},{start},{end},{gpus},{user}\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_names_in_any_encoding_stay_different(encoding: str, tmp_path: Path) -> None:
    log = (HEADER + line(1, "bjørn") + line(2, "björn")).replace("\n", "\r\n")
    found = read(tmp_path, "sacct", log.encode(encoding))
    assert [tenant.id for tenant in found.tenants] == ["bjørn", "björn"]
    assert runs(found) == [(0, ((3600, 5400),), 1), (0, ((7200, 9000),), 1)]


def test_dumps_in_two_encodings_joined_with_their_marks(tmp_path: Path) -> None:
    dumps = (HEADER + line(1, "bjørn")).encode("utf-8-sig") + (HEADER + line(2, "björn")).encode("cp1252")
    found = read(tmp_path, "sacct", dumps + (HEADER + line(3)).encode("utf-8-sig"))
    assert [tenant.id for tenant in found.tenants] == ["bjørn", "björn", "ann"]
    assert "2 of 5 lines left out: they repeat the header" in found.derived


@pytest.mark.parametrize("format", ["sacct", "csv"])
def test_zeros_of_a_crash_cost_no_row(format: str, tmp_path: Path) -> None:
    log = HEADER + line(1) + "\0\0\0" + line(2) if format == "sacct" else CSV + row(1, 0, 5, 9) + "\0" + row(2, 0, 5, 9)
    assert len(read(tmp_path, format, log).jobs) == 2


def test_a_compressed_log_is_unpacked(tmp_path: Path) -> None:
    assert len(read(tmp_path, "sacct", gzip.compress((HEADER + line(1)).encode())).jobs) == 1


def test_two_calls_of_sacct_in_one_json_file(tmp_path: Path) -> None:
    def dump(*numbers: int) -> str:
        tres = {"allocated": [{"type": "gres", "name": "gpu", "count": 2}]}
        times = ({"submission": 10**9, "start": 10**9 + 60 * n, "end": 10**9 + 60 * n + 60} for n in numbers)
        jobs = [
            {"job_id": n, "time": time, "state": "COMPLETED", "tres": tres}
            for n, time in zip(numbers, times, strict=True)
        ]
        return json.dumps({"jobs": jobs}, indent=1) + "\n"

    found = read(tmp_path, "sacct", dump(1, 2) + dump(2, 3))
    assert runs(found) == [(0, ((60 * n, 60 * n + 60),), 2) for n in (1, 2, 3)]
    assert "1 of 4 records left out: they repeat another line" in found.derived


def test_gpus_beside_those_of_a_type_that_slurm_accounts(tmp_path: Path) -> None:
    log = HEADER + line(1, gpus="gres/gpu=4,gres/gpu:a100=2") + line(2, gpus="gres/gpu:a100=2,gres/gpu=2")
    found = read(tmp_path, "sacct", log)
    assert found.cluster.gpus_by_type == {"a100+other": 4, "a100": 2}


def test_a_number_of_gpus_with_a_unit_is_bad(tmp_path: Path) -> None:
    found = read(tmp_path, "sacct", HEADER + line(1) + line(2, gpus="gres/gpu=1K"))
    assert len(found.jobs) == 1
    assert "1 of 2 lines left out: no valid AllocTRES (GPUs as gres/gpu=4 or gres/gpu:a100=4)" in found.derived


def test_a_preempted_job_that_is_queued_again_later_is_the_same(tmp_path: Path) -> None:
    log = (
        HEADER + line(1, state="PREEMPTED") + line(1, submit="11:45").replace("T11", "T13").replace("T13:45", "T11:45")
    )
    assert runs(read(tmp_path, "sacct", log)) == [(0, ((3600, 5400), (10800, 12600)), 1)]


def test_numbers_of_jobs_that_begin_again(tmp_path: Path) -> None:
    log = CSV + row(7, 0, 10, 20) + row(7, 1000, 1010, 1020) + row(8, 0, 20, 30) + row(8, 30, 40, 50)
    found = read(tmp_path, "csv", log)
    assert runs(found) == [(0, ((10, 20),), 1), (0, ((20, 30), (40, 50)), 1), (1000, ((1010, 1020),), 1)]
    assert "1 line with the id of a job that had ended before: other jobs" in found.derived


def test_times_in_milliseconds(tmp_path: Path) -> None:
    start = 1_767_607_200_000
    found = read(tmp_path, "csv", CSV + row(1, start, start + 1500, start + 9000))
    assert runs(found) == [(0, ((1.5, 9),), 1)]
    assert found.began_s == start / 1000


@pytest.mark.parametrize("zero", ["1970-01-01T00:00:00", "1970-01-01T01:00:00+01:00", "0001-01-01T00:00:00Z"])
def test_dates_at_the_begin_of_time_are_unknown(zero: str, tmp_path: Path) -> None:
    day = "2026-01-05T10:00"
    good = "".join(row(n, f"{day}:00", f"{day}:10", f"{day}:20") for n in range(20))
    bad = row(90, f"{day}:00", zero, f"{day}:20") + row(91, f"{day}:00", f"{day}:10", zero)
    found = read(tmp_path, "csv", CSV + good + bad + row(92, zero, f"{day}:10", f"{day}:20"))
    assert runs(found) == [(0, ((10, 20),), 1)] * 20
    assert found.began_s is not None
    assert [text.partition(": ")[2] for text in found.derived[:3]] == [
        "they never started",
        "they were still running when the log was taken, or their end is not known",
        "no valid queued (a time; every job needs a submission time)",
    ]


def test_seconds_since_1970_may_be_0_or_minus_1_where_nothing_happened(tmp_path: Path) -> None:
    good = "".join(row(n, 10**9, 10**9 + 10, 10**9 + 20) for n in range(20))
    found = read(tmp_path, "csv", CSV + good + row(90, 10**9, 0, 0) + row(91, 10**9, -1, -1))
    assert len(found.jobs) == 20
    assert "2 of 22 lines left out: they never started" in found.derived


def test_fractions_of_gpus_are_rounded_up_and_said(tmp_path: Path) -> None:
    found = read(tmp_path, "csv", CSV + row(1, 0, 0, 9, 0.5) + row(2, 0, 9, 19, 1.5) + row(3, 0, 19, 29, "2.0"))
    assert [job.gpus for job in found.jobs] == [1, 2, 2]
    assert "gangs of 2 jobs rounded up to whole GPUs, which no other job shares" in found.derived


def test_parts_of_a_job_as_the_standard_workload_format_has_them(tmp_path: Path) -> None:
    """Only the first has a submission; the wait of others counts from the end of the part before."""

    def swf(job: int, submit: int, wait: int, run: int, status: int) -> str:
        return f"{job} {submit} {wait} {run} 8 -1 -1 8 9000 -1 {status} 1 1 1 1 1 -1 -1\n"

    parts = swf(1, 0, 10, 60, 1) + swf(1, 0, 10, 20, 2) + swf(1, -1, 5, 30, 2) + swf(1, -1, 7, 10, 3)
    found = read(tmp_path, "swf", "; MaxProcs: 8\n" + parts + swf(2, 0, 100, 50, 1))
    assert runs(found) == [(0, ((10, 30), (35, 65), (72, 82)), 8), (0, ((100, 150),), 8)]
    assert "1 of 5 lines left out: they sum up parts that have their own lines" in found.derived


def test_a_line_of_unknown_submission(tmp_path: Path) -> None:
    other = "2 -1 0 50 8 -1 -1 8 9000 -1 1 1 1 1 1 1 -1 -1\n"
    found = read(tmp_path, "swf", "; MaxProcs: 8\n1 0 0 50 8 -1 -1 8 9000 -1 1 1 1 1 1 1 -1 -1\n" + other)
    assert len(found.jobs) == 1
    assert "1 of 2 lines left out: their submission is not known" in found.derived


def test_a_pod_on_a_part_of_a_gpu_is_said_to_hold_a_whole_one(tmp_path: Path) -> None:
    head = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    pods = [f"pod-{n},8000,30517,{n},{milli},,LS,Succeeded,0,60,10" for n, milli in ((0, 0), (1, 500), (2, 1000))]
    never = "pod-3,8000,30517,1,500,,LS,Failed,0,30,"
    found = read(tmp_path, "openb", "\n".join([head, *pods, never]))
    assert [job.gpus for job in found.jobs] == [1, 2]
    assert "gangs of 1 job rounded up to whole GPUs, which no other job shares" in found.derived


def test_each_of_two_joined_workload_files_has_its_own_start(tmp_path: Path) -> None:
    def swf(job: int, epoch: int) -> str:
        return f"; UnixStartTime: {epoch}\n; MaxProcs: 8\n{job} 5 10 60 8 -1 -1 8 9000 -1 1 1 1 1 1 1 -1 -1\n"

    found = read(tmp_path, "swf", swf(1, 10**9) + swf(2, 10**9 + 1000))
    assert found.began_s == 10**9 + 5
    assert runs(found) == [(0, ((10, 70),), 8), (1000, ((1010, 1070),), 8)]
