"""Further formats of traces and logs, on made-up files: as published, with their oddities, and certified by hand."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from accounts import (
    T0,
    Object,
    batch,
    ended,
    epoch,
    lsf,
    owned,
    pbs,
    pod,
    stamp,
    started,
    thing,
    times,
    volcano,
    workload,
)
from conftest import Command, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_samples import SAMPLES

from schedgap.instances.errors import InstanceError, UsageError
from schedgap.instances.importers import IMPORTERS, Options, import_trace
from schedgap.instances.importers.registry import read_trace
from schedgap.instances.schema import Instance

LOGS = ("pbs", "lsf", "kubernetes")


def read(tmp_path: Path, format: str, text: str, history: bool = True, **options: Any) -> Instance:
    path = tmp_path / f"log.{format}"
    path.write_text(text)
    return import_trace(format, path, Options(history=history, **options))


def log(tmp_path: Path, format: str, records: Sequence[str], **options: Any) -> tuple[Instance, dict[str, Any]]:
    """Return the instance of a log, and its jobs as (submission, runs in minutes, GPUs, pool) by id."""
    found = read(tmp_path, format, "\n".join(records) + "\n", **options)
    jobs = {}
    for job in found.jobs:
        assert job.history is not None
        runs = [(start / 60, end / 60) for start, end in job.history.runs]
        jobs[job.id] = (job.submit_s / 60, runs, job.gpus, job.history.gpu_type)
    return found, jobs


def listed(items: Sequence[Object]) -> list[str]:
    """Return a list of Kubernetes, as a text."""
    return [json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}, indent=1)]


def told(instance: Instance, *words: str) -> None:
    for one in words:
        assert any(one in line for line in instance.derived), instance.derived


def all_are_counted(instance: Instance, rows: int) -> None:
    """Each row is the end of a run, or left out for a reason."""
    left = [int(line.split(" of ")[0]) for line in instance.derived if " left out: " in line]
    runs = sum(len(job.history.runs) for job in instance.jobs if job.history)
    assert runs + sum(left) == rows, instance.derived
    assert all(f" of {rows} " in line for line in instance.derived if " left out: " in line)


# All of them


@pytest.mark.parametrize("format", LOGS)
def test_a_long_job_before_a_short_one_is_certified(format: str, tmp_path: Path, command: Command) -> None:
    """Four GPUs, both submitted at once: 60 and 90 minutes, mean 1.25 h; the short one first gives 30 and 90, 1 h."""
    path = tmp_path / "log"
    path.write_text(SAMPLES[format])
    done = command("certify", format, path, "--time-limit", 2, "--jobs", 1, "--no-report", "--all-rows")
    assert done.returncode == 0, done.stderr
    assert "as executed 1.25 h" in " ".join(done.stdout.split())
    assert re.search(r"rigid\.executed +25\.0 % +1\.25 +1\.25 +1 ", done.stdout)


@pytest.mark.parametrize("format", LOGS)
def test_formats_are_listed_with_a_layout(format: str, command: Command) -> None:
    assert format in command("list", "formats").stdout
    done = command("list", "formats", format)
    assert done.returncode == 0
    assert IMPORTERS.get(format).layout.strip() in done.stdout
    assert "licence: that of the cluster's owner" in done.stdout
    assert "only formats have a layout" in command("list", "models", format).stderr
    assert "unknown importer 'pb'" in command("list", "formats", "pb").stderr


@pytest.mark.parametrize("format", ["pbs", "lsf"])
@pytest.mark.parametrize("seed", range(4))
def test_bad_lines_and_repeated_ones_change_no_job(format: str, seed: int, tmp_path: Path) -> None:
    """Of 100 lines, four are cut off or garbage and ten occur twice, in any order: what remains is the same."""
    rng = random.Random(seed)
    make = {
        "pbs": lambda i: ended(f"{i}.srv", i, i + 1, i + 2 + i % 7, exit=i % 3),
        "lsf": lambda i: lsf(i, i, i + 1, i + 2 + i % 7, hosts=("n1", "n2"), needs="rusage[ngpus_physical=2.00]"),
    }[format]
    good = [make(i) for i in range(1, 97)]
    _, jobs = log(tmp_path, format, good)
    bad = ["garbage", good[0][:40], good[1][: len(good[1]) // 3], good[2].replace(" ", "_")]
    lines = [*good, *bad, *good[10:20]]
    rng.shuffle(lines)
    again, found = log(tmp_path, format, lines)
    assert found == jobs
    assert len(found) == 96
    all_are_counted(again, len(lines))
    told(again, "10 of 110 lines left out: they repeat another line")
    with pytest.raises(InstanceError, match=r"of 1[56] lines are bad"):
        log(tmp_path, format, lines[:0] + good[:12] + bad)


@pytest.mark.parametrize("format", LOGS)
def test_a_log_without_gpus_is_counted_by_cpus_or_nodes(format: str, tmp_path: Path) -> None:
    held = "exec_host=n1/0*8+n2/0*8 exec_vnode=(n1:ncpus=8)+(n2:ncpus=8) Resource_List.ncpus=16"
    records = {
        "pbs": [ended("1", 0, 0, 60, held)],
        "lsf": [lsf(1, 0, 0, 60, needs="", hosts=("8*n1", "8*n2"))],
        "kubernetes": listed([pod("a", 0, 0, 60, 0)]),
    }[format]
    found, jobs = log(tmp_path, format, records)
    assert next(iter(jobs.values()))[2:] == ((16, "CPU") if format != "kubernetes" else (1, "CPU"))
    told(found, "jobs are counted by cpus: the log has no GPUs")
    _, jobs = log(tmp_path, format, records, resource="nodes")
    assert next(iter(jobs.values()))[2:] == ((2, "node") if format != "kubernetes" else (1, "node"))


@pytest.mark.parametrize("format", LOGS)
def test_times_since_1970_and_with_a_zone_are_not_shifted_by_a_time_zone(format: str, tmp_path: Path) -> None:
    here, jobs = log(tmp_path, format, [SAMPLES[format]])
    there, same = log(tmp_path, format, [SAMPLES[format]], timezone="Asia/Tokyo")
    assert same == jobs
    assert here.began_s == T0
    assert there.began_s == T0 + 9 * 3600  # of local clocks, for days of the week


@settings(max_examples=examples(25), deadline=None)
@given(format=st.sampled_from(LOGS), text=st.text(max_size=40), cut=st.integers(0, 2000), gone=st.integers(0, 300))
def test_whatever_a_file_holds_is_read_or_refused_in_a_line(
    format: str, text: str, cut: int, gone: int, tmp_path_factory: Any
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    sample = SAMPLES[format]
    path.write_bytes((sample[:cut] + text + sample[cut + gone :]).encode("utf-8", "surrogatepass"))
    try:
        found, rows = read_trace(format, path, Options(history=True, max_bad=100))
    except UsageError as error:
        said = str(error)
    else:
        runs = [run for job in found.jobs if job.history for run in job.history.runs]
        assert len(runs) + sum(rows.left_out.values()) == rows.read
        assert all(end >= start for start, end in runs)
        said = f"{len(runs)} runs"
    assert "\n" not in said


# Shockwave


def test_shockwave_has_gavel_s_job_types_with_a_mode_and_a_duration(tmp_path: Path) -> None:
    found = read(tmp_path, "shockwave", SAMPLES["shockwave"], history=False)
    small, large = found.jobs
    assert (small.model, small.submit_s, small.gpus, small.weight, small.duration_s) == (
        "LM (batch size 40)",
        0,
        1,
        2.5,
        40,
    )
    assert (large.tenant, large.submit_s, large.gpus, large.iterations) == ("ResNet-18", 43, 2, 7332)
    assert large.rates == {"V100": pytest.approx(7332 / 100 / 2)}
    assert small.deadline_s == pytest.approx(1.5 * 40)
    assert large.deadline_s is None
    assert found.cluster.gpus_by_type == {"V100": 32}
    assert found.derived[:2] == (
        "1 of 3 jobs left out: they ask for 0 GPUs",
        "the batch size of 1 job stays what it is at the beginning; in the trace it changes",
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("accordion", "elastic", 'line 1: mode = "elastic": static, accordion or gns'),
        ("\t100\t50\n", "\t100\n", "line 1: not shockwave: a line has 12 tab-separated fields"),
        ("\t40\t7\n", "\t\t7\n", 'line 2: duration = "": seconds'),
        ("\t40\t7\n", "\t40\n", "line 2: 11 fields instead of 12"),
    ],
)
def test_shockwave_s_lines_are_checked(old: str, new: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as caught:
        read(tmp_path, "shockwave", SAMPLES["shockwave"].replace(old, new), history=False, max_bad=0)
    assert told in str(caught.value)


# PBS


def test_what_a_crash_leaves_in_a_log_is_read_past(tmp_path: Path) -> None:
    lines = [f"Exit_status=0 end={T0}", *(ended(f"{i}.srv", i, i + 1, i + 9) for i in range(40))]
    text = "\r\n".join(lines).replace("user=ann", "user=Jos\xe9", 1).replace("\r\n", "\r\n\0\0\0", 5)
    (tmp_path / "log").write_bytes(text.encode("latin-1"))
    found = import_trace("pbs", tmp_path / "log", Options(history=True))
    assert len(found.jobs) == 40
    told(found, "1 of 41 lines left out: they are no records")


def test_pbs_reads_every_type_of_record(tmp_path: Path) -> None:
    records = [
        pbs(0, "Q", "1.srv", "queue=gpu"),
        started("1.srv", 0, 1),
        pbs(1, "L", "license", "floating license hour:3 day:9"),
        ended("1.srv", 0, 1, 61),
        started("2.srv", 0, 2, eligible=1.5),  # suspended from minute 4 to 9
        pbs(4, "z", "2.srv", "resources_used.ncpus=16"),
        pbs(9, "r", "2.srv"),
        ended("2.srv", 0, 2, 15, eligible=1.5, exit=271),
        started("3[4].srv", 0, 3),  # put back after 5 minutes
        ended("3[4].srv", 0, 3, 8, kind="R", exit=-3),
        started("3[4].srv", 0, 12),
        ended("3[4].srv", 0, 12, 20),
        ended("3[].srv", 0, 3, 20, ""),
        pbs(0, "Q", "4.srv", "queue=gpu"),
        pbs(1, "D", "4.srv", "requestor=ann@n1"),
        started("5.srv", 0, 5),
        started("6.srv", 0, 5),  # deleted while it was suspended
        pbs(6, "z", "6.srv"),
        pbs(7, "D", "6.srv", "requestor=ann@n1"),
        ended("6.srv", 0, 5, 8, exit=271),
        ended("1.srv", 90, 91, 95),  # the number again
        pbs(97, "B", "R5.srv", "owner=ann start=5 end=6"),
    ]
    found, jobs = log(tmp_path, "pbs", records)
    assert jobs == {
        "1": (0, [(1, 61)], 4, "GPU"),
        "2": (1.5, [(2, 4), (9, 15)], 4, "GPU"),
        "3[4]": (0, [(3, 8)], 4, "GPU"),
        "3[4]#2": (8, [(12, 20)], 4, "GPU"),
        "6": (0, [(5, 6)], 4, "GPU"),
        "1(2)": (90, [(91, 95)], 4, "GPU"),
    }
    told(
        found,
        "2 of 22 lines left out: they are about reservations",
        "1 of 22 lines left out: they are about whole arrays",
        "2 of 22 lines left out: they are about jobs that never started",
        "1 of 22 lines left out: they were still running when the log was taken",
        "all is about the jobs that ended; GPUs that the 1 other held count as free",
        "1 of 22 lines left out: their jobs ended while they were suspended",
    )
    all_are_counted(found, 22)
    first = found.jobs[0]
    assert (first.tenant, first.status) == ("ann", "COMPLETED")
    assert {job.id: job.status for job in found.jobs if job.id in "26"} == {"2": "exit 271", "6": None}
    assert not any("status such as Running" in line for line in found.derived)
    assert first.history is not None
    assert (first.history.hosts, first.history.partition, first.history.requested_s) == (
        ({"n1": 2, "n2": 2},),
        "gpu",
        7200,
    )


def test_torque_s_records_without_times_count_by_the_line_s_local_time(tmp_path: Path) -> None:
    held = "owner=ann@sub exec_host=n1/0-3+n2/0 Resource_List.nodes=1:ppn=4:gpus=2+1:ppn=1"
    records = [
        started("7.srv", 0, 5, held, hours=-7),
        pbs(8, "R", "7.srv", hours=-7),
        started("7.srv", 0, 15, held, hours=-7),
        pbs(19, "C", "7.srv", "Checkpointed", hours=-7),  # it runs on
        pbs(20, "C", "7.srv", "Checkpointed and held", hours=-7),
        pbs(30, "T", "7.srv", "Restart from checkpoint", hours=-7),
        ended("7.srv", 0, 15, 33, held, hours=-7).replace("start=", "start_count=2 start=", 1),
    ]
    found, jobs = log(tmp_path, "pbs", records)
    assert jobs == {"7": (0, [(5, 8)], 2, "GPU"), "7#2": (8, [(15, 20), (30, 33)], 2, "GPU")}
    all_are_counted(found, 7)
    _, jobs = log(tmp_path, "pbs", records[2:])  # the day before is not in the file
    assert jobs == {"7": (0, [(15, 20), (30, 33)], 2, "GPU")}
    found, jobs = log(tmp_path, "pbs", [*records[1:2], ended("8.srv", 0, 1, 9, hours=-7)])
    assert list(jobs) == ["8"]
    told(found, "1 of 2 lines left out: they are about jobs that never started, or not in this file")


def test_a_suspension_that_keeps_the_gpus_is_none(tmp_path: Path) -> None:
    records = [
        started("1", 0, 1),
        pbs(4, "z", "1", "resources_released=(n1:ncpus=8)"),
        pbs(9, "r", "1"),
        ended("1", 0, 1, 15),
    ]
    found, jobs = log(tmp_path, "pbs", records)
    assert jobs == {"1": (0, [(1, 15)], 4, "GPU")}
    told(found, "2 of 4 lines left out: they are suspensions and resumptions of jobs that keep their GPUs")
    freed = [line.replace("ncpus=8)", "ncpus=8:ngpus=2)") if ";z;" in line else line for line in records]
    assert log(tmp_path, "pbs", freed)[1] == {"1": (0, [(1, 4), (9, 15)], 4, "GPU")}
    without = [line.replace("ngpus=2", "mem=1gb").replace("Resource_List.ngpus=4", "") for line in records]
    assert log(tmp_path, "pbs", without)[1] == {"1": (0, [(1, 4), (9, 15)], 16, "CPU")}


@pytest.mark.parametrize(
    ("held", "gpus", "type"),
    [
        ("exec_vnode=(n1:ncpus=4:ngpus=2+n2:ngpus=1:ncpus=4) Resource_List.ngpus=8", 3, "GPU"),
        ("exec_vnode=(n1[0]:ngpus=2:ncpus=4)+(n1[1]:ncpus=4:ngpus=2)", 4, "GPU"),
        ("exec_vnode=(n1:ncpus=4) Resource_List.ngpus=2 Resource_List.gpu_type=a100", 2, "a100"),
        ("Resource_List.select=2:ncpus=8:ngpus=4:gpu_model=v100+1:ncpus=1", 8, "v100"),
        ("Resource_List.select=ncpus=8:ngpus=4", 4, "GPU"),
        ("Resource_List.ncpus=1 Resource_List.nodes=2:ppn=8:gpus=2:exclusive_process+n7:gpus=1", 5, "GPU"),
        ("Resource_List.nodes=n1:ppn=8:gpus=2+n2:ppn=8:gpus=2 Resource_List.neednodes=n1:gpus=9", 4, "GPU"),
        ("Resource_List.nodes=1:gpu=1:gpu", 1, "GPU"),
        ("Resource_List.nodect=1:ppn=24:gpu=4:reqmem=12:gpu", 4, "GPU"),
        ("Resource_List.gpus=3", 3, "GPU"),
        ("Resource_List.select=1:ncpus=8:naccelerators=6", 6, "GPU"),
    ],
)
def test_gpus_of_pbs_are_those_given_or_asked_for(held: str, gpus: int, type: str, tmp_path: Path) -> None:
    _, jobs = log(tmp_path, "pbs", [ended("1", 0, 0, 60, held)])
    assert jobs == {"1": (0, [(0, 60)], gpus, type)}


def test_a_date_long_ago_is_no_trouble(tmp_path: Path) -> None:
    records = [ended(f"{i}", 0, i, i + 9) for i in range(30)]
    _, jobs = log(tmp_path, "pbs", [records[0].replace("/2026 ", "/0026 ", 1), *records[1:]])
    assert len(jobs) == 30


def test_pbs_names_servers_if_there_are_several_and_tells_early_releases(tmp_path: Path) -> None:
    records = [ended("1.a", 0, 0, 60), ended("1.b", 0, 60, 90), pbs(5, "u", "1.a", times(0, 0))]
    found, jobs = log(tmp_path, "pbs", records)
    assert list(jobs) == ["1.a", "1.b"]
    told(found, "1 job gave back nodes before their end: they count as holding them until then")


# LSF


def test_lsf_reads_lists_of_any_length_and_quotes(tmp_path: Path) -> None:
    hard = "sh -c " "say " """x y""" " > z" " "
    records = [
        lsf(
            386,
            0,
            1,
            61,
            hosts=("4*n1", "4*n2"),
            needs="select[ngpus>0] rusage[ngpus_physical=2.00/host]",
            limit_s=7200,
        ),
        lsf(387, 0, 1, 61, hosts=("n1", "n1", "n2"), needs="rusage[mem=4,ngpus_physical=1.00/task]", usage=6),
        lsf(388, 0, 2, 62, index=4, needs="", extensions=((7, "x y"), (9, "num=4:mode=shared:mps=no")), usage=5),
        lsf(389, 0, 3, 63, command=hard.replace('"', '""'), asked=("n8", "n9")),
        lsf(390, 0, 3, 63, command="one\ntwo three four\n", status=32),
        lsf(391, 0, 3, 63, short=True, asks="rusage[ngpus_excl_p=1]"),
        lsf(386, 99, 100, 120, ran_s=1200),
    ]
    found, jobs = log(tmp_path, "lsf", ["#80123", *records])
    assert jobs == {
        "386": (0, [(1, 61)], 4, "GPU"),
        "387": (0, [(1, 61)], 3, "GPU"),
        "388[4]": (0, [(2, 62)], 4, "GPU"),
        "389": (0, [(3, 63)], 4, "GPU"),
        "390": (0, [(3, 63)], 4, "GPU"),
        "391": (0, [(3, 63)], 1, "GPU"),
        "386(2)": (99, [(100, 120)], 4, "GPU"),
    }
    told(found, "1 job with an id of an earlier job")
    by_id = {job.id: job for job in found.jobs}
    assert by_id["390"].status == "EXIT"
    history = by_id["386"].history
    assert history is not None
    assert (history.requested_s, history.hosts, history.partition) == (7200, ({"n1": 2, "n2": 2},), "gpu")
    assert by_id["387"].history is not None
    assert by_id["387"].history.hosts == ({"n1": 2, "n2": 1},)
    all_are_counted(found, 7)


def test_lsf_releases_jobs_when_they_may_start(tmp_path: Path) -> None:
    records = [
        lsf(1, 0, 50, 60, begin=30),
        lsf(2, 0, 50, 60, ineligible_s=600),
        lsf(3, 0, 50, 60, requeued=40),
        lsf(4, 0, 50, 60, begin=99),
        lsf(5, 0, 50, 60),
    ]
    found, jobs = log(tmp_path, "lsf", records)
    assert {name: of[0] for name, of in jobs.items()} == {"1": 30, "2": 10, "3": 40, "4": 50, "5": 0}
    told(found, "4 jobs became eligible after their submission")


def test_runs_of_a_job_of_lsf_that_overlap_are_bad_and_suspensions_told(tmp_path: Path) -> None:
    records = [lsf(1, 0, 10, 20), lsf(1, 0, 30, 40), lsf(2, 0, 10, 20), lsf(3, 0, 10, 30, ran_s=600)]
    found, jobs = log(tmp_path, "lsf", records)
    assert jobs == {
        "1": (0, [(10, 20)], 4, "GPU"),
        "1#2": (20, [(30, 40)], 4, "GPU"),
        "2": (0, [(10, 20)], 4, "GPU"),
        "3": (0, [(10, 15), (25, 30)], 4, "GPU"),
    }
    told(found, "1 requeue: separate jobs", "1 job suspended: interrupted for as long in the middle of the run")
    with pytest.raises(InstanceError, match="several lines with this id, whose runs overlap"):
        log(tmp_path, "lsf", [*records, lsf(2, 0, 15, 25)])


def test_what_is_no_finished_job_of_lsf_is_left_out_and_counted(tmp_path: Path) -> None:
    compound = "8*{rusage[ngpus_physical=2.00]} + 8*{rusage[mem=1]}"
    good = [lsf(i, 0, i, i + 5) for i in range(1, 61)]
    records = [
        *good,
        lsf(70, 0, None, 9, hosts=()),
        lsf(71, 0, 5, 9, to="elsewhere"),
        f'"JOB_RESIZE" "10.1" {epoch(3)} 1 0 {epoch(1)} 1501 "ann" 1 {epoch(3)} 1 "n1" 1 "n1"',
        lsf(72, 0, 5, 9, needs=compound),
        lsf(73, 0, 5, 9)[:200],
        lsf(74, 0, 5, 9, needs="", extensions=()),
    ]
    found, jobs = log(tmp_path, "lsf", records)
    assert len(jobs) == 60
    told(
        found,
        "1 of 66 lines left out: they are no records of finished jobs",
        "1 of 66 lines left out: they were forwarded to another cluster",
        "1 of 66 lines left out: they never started",
        "2 of 66 lines left out: they do not have the fields of a finished job",
        "1 of 66 lines left out: they ask for 0 GPUs",
        "1 change of the size of a job",
    )
    all_are_counted(found, 66)
    _, rows = read_trace("lsf", tmp_path / "log.lsf", Options(history=True))
    assert [row.line for row in rows.bad] == [64, 65]
    assert "a compound requirement does not say on how many hosts its GPUs are" in rows.bad[0].problem


@pytest.mark.parametrize(
    ("needs", "hosts", "gpus"),
    [
        ("2*{rusage[ngpus_physical=2.00] span[hosts=1]} + 8*{rusage[mem=1]}", ("2*n1", "8*n2"), 2),
        ("8*{rusage[ngpus_physical=2.00] span[ptile=4]} + 1*{rusage[mem=1]}", ("4*n1", "4*n2", "n3"), 4),
        ("8*{rusage[ngpus_physical=1.00/task]} + 1*{rusage[ngpus_physical=1]}", ("8*n1", "n3"), 9),
        ("select[type == any] rusage[mem=20:duration=1h,ngpus_excl_p=2.00]", ("n1", "n2"), 4),
        ("rusage[ngpus_physical=2.00/job]", ("n1", "n2"), 2),
    ],
)
def test_gpus_of_lsf_by_host_task_or_job(needs: str, hosts: tuple[str, ...], gpus: int, tmp_path: Path) -> None:
    _, jobs = log(tmp_path, "lsf", [lsf(1, 0, 0, 60, needs=needs, hosts=hosts)])
    assert jobs["1"][2] == gpus


# Kubernetes


def test_pods_say_when_a_job_ran(tmp_path: Path) -> None:
    items = [
        batch("alone", 0, 1, 61, 2, width=2),
        batch("broken", 0, 0, None, failed=50),
        batch("gang", 0, 0, 90, width=2),
        pod("gang-a", 0, 5, 65, ownerReferences=owned("uid of gang")),
        pod("gang-b", 0, 6, 70, node="n2", ownerReferences=owned("uid of gang")),
        batch("again", 0, 0, 90),
        pod("again-a", 0, 5, 15, phase="Failed", ownerReferences=owned("uid of again")),
        pod("again-b", 16, 17, 30, ownerReferences=owned("uid of again")),
        batch("waves", 0, 0, 90, width=2, completions=4),
        *(pod(f"wave-{i}", 10 * i, 10 * i + 1, 10 * i + 9, ownerReferences=owned("uid of waves")) for i in range(4)),
        pod("torch-0", 0, 3, 33, 8, ownerReferences=owned("torch", "PyTorchJob")),
        pod("torch-1", 0, 4, 33, 8, node="n2", ownerReferences=owned("torch", "PyTorchJob")),
        pod("server", 0, 3, None, phase="Running", ownerReferences=owned("set", "ReplicaSet")),
        pod("waiting", 0, None, None, phase="Pending"),
        pod("agent", 0, 3, 9, 0),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
    ]
    found, jobs = log(tmp_path, "kubernetes", listed(items))
    assert jobs == {
        "team/alone": (0, [(1, 61)], 4, "GPU"),
        "team/broken": (0, [(0, 50)], 1, "GPU"),
        "team/gang": (0, [(5, 70)], 2, "GPU"),
        "team/again": (0, [(5, 15)], 1, "GPU"),
        "team/again#2": (15, [(17, 30)], 1, "GPU"),
        **{f"team/wave-{i}": (10 * i, [(10 * i + 1, 10 * i + 9)], 1, "GPU") for i in range(4)},
        "team/torch-0": (0, [(3, 33)], 16, "GPU"),
    }
    told(
        found,
        "the start of 2 jobs without pods in the list is when the controller took them",
        "pods of 2 jobs did not run together: separate jobs",
        f"1 of {len(items)} items left out: they are no jobs, pods or workloads",
        f"1 of {len(items)} items left out: they never started",
        f"1 of {len(items)} items left out: they were still running",
        f"1 of {len(items)} items left out: they ask for 0 GPUs",
        f"2 of {len(items)} items left out: their pods are jobs of their own",
        f"3 of {len(items)} items left out: they belong to workloads or jobs of the list",
    )
    all_are_counted(found, len(items))
    gang = next(job for job in found.jobs if job.id == "team/gang")
    assert gang.history is not None
    assert gang.history.hosts == ({"n1": 1, "n2": 1},)


def test_a_job_without_pods_that_runs_in_waves_is_a_gang_of_those_at_once(tmp_path: Path) -> None:
    found, jobs = log(tmp_path, "kubernetes", listed([batch("waves", 0, 1, 61, 2, width=3, completions=9)]))
    assert jobs == {"team/waves": (0, [(1, 61)], 6, "GPU")}
    told(found, "1 job with more pods to complete than run at once: gangs of those at once")


def test_workloads_of_kueue_stand_for_their_jobs(tmp_path: Path) -> None:
    items = [
        workload("one", 0, 20, 80, ownerReferences=owned("uid of job")),
        batch("job", 0, 20, 80, 2, width=2),
        pod("job-a", 20, 21, 79, 2, ownerReferences=owned("uid of job")),
        workload("evicted", 0, 50, 80, requeued=30, flavor="h100"),
        workload("waiting", 0, None, None),
        workload("running", 0, 5, None),
    ]
    found, jobs = log(tmp_path, "kubernetes", listed(items))
    assert jobs == {"team/one": (0, [(20, 80)], 4, "a100"), "team/evicted": (30, [(50, 80)], 4, "h100")}
    told(
        found,
        "2 of 6 items left out: they belong to workloads or jobs of the list",
        "earlier runs of 1 job are not in the list (evicted): submitted when requeued",
    )
    all_are_counted(found, 6)
    assert found.jobs[0].history is not None
    assert found.jobs[0].history.partition == "q"


def test_states_of_volcano_s_jobs_are_their_runs(tmp_path: Path) -> None:
    again = [("Pending", 0), ("Running", 5), ("Restarting", 10), ("Pending", 11), ("Running", 20), ("Completed", 50)]
    items = [
        volcano("again", 0, again),
        volcano("slow", 0, [("Pending", 0), ("Running", 5), ("Completing", 9), ("Completed", 10)], replicas=(4,)),
        volcano("waiting", 0, [("Pending", 0)]),
        volcano("running", 0, [("Pending", 0), ("Running", 5)]),
    ]
    found, jobs = log(tmp_path, "kubernetes", listed(items))
    assert jobs == {
        "team/again": (0, [(5, 11)], 3, "GPU"),
        "team/again#2": (11, [(20, 50)], 3, "GPU"),
        "team/slow": (0, [(5, 10)], 4, "GPU"),
    }
    told(found, "1 of 4 items left out: they never started", "1 of 4 items left out: they were still running")
    assert [job.status for job in found.jobs] == ["Restarted", "Completed", "Completed"]


def test_each_kind_of_gpu_is_a_type(tmp_path: Path) -> None:
    zone = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["H100"]}]}
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone]}}
    far = pod("far", 0, 0, 9)
    far["spec"] |= {"affinity": {"nodeAffinity": chosen}, "initContainers": far["spec"]["containers"] * 3}
    items = [
        pod("plain", 0, 0, 9),
        pod("part", 0, 0, 9, 2, resource="nvidia.com/mig-1g.5gb"),
        pod("amd", 0, 0, 9, resource="amd.com/gpu"),
        pod("named", 0, 0, 9, selector={"cloud.google.com/gke-accelerator": "nvidia-tesla-t4", "zone": "a"}),
        far,
    ]
    _, jobs = log(tmp_path, "kubernetes", listed(items))
    assert {name: of[2:] for name, of in jobs.items()} == {
        "team/plain": (1, "gpu"),
        "team/part": (2, "mig-1g.5gb"),
        "team/amd": (1, "amd.com/gpu"),
        "team/named": (1, "nvidia-tesla-t4"),
        "team/far": (1, "H100"),
    }


def test_objects_come_in_lists_lines_or_one_after_another(tmp_path: Path) -> None:
    items = [batch(f"j{i}", 0, i, i + 9) for i in range(40)]
    _, jobs = log(tmp_path, "kubernetes", listed(items))
    lines = [json.dumps(item) for item in items]
    assert log(tmp_path, "kubernetes", lines)[1] == jobs
    assert log(tmp_path, "kubernetes", listed(items[:7]) + listed(items[7:]))[1] == jobs
    kindless = [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in items]
    whole = json.dumps({"apiVersion": "batch/v1", "kind": "JobList", "items": kindless})
    assert log(tmp_path, "kubernetes", [whole])[1] == jobs
    earlier = json.dumps(batch("j7", 0, 7, None))
    cut = [earlier, *lines, lines[3], lines[5][:60], '{"kind": 5}']
    found, again = log(tmp_path, "kubernetes", cut)
    assert again == jobs
    told(
        found,
        "1 of 44 items left out: they repeat another item",
        "1 of 44 items left out: they show an earlier state of the same object",
        "1 of 44 items left out: they are not valid JSON",
        "1 of 44 items left out: they have no kind or no name",
    )
    all_are_counted(found, 44)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"apiVersion": "v1", "items": [', "not valid JSON"),
        ('{"apiVersion": "v1", "kind": "List", "items": []}', "an empty list"),
        ("apiVersion: v1\nkind: List\n", "not kubernetes: the file is JSON of kubectl get"),
        ('[{"apiVersion": "v1"}, {"apiVersion": 3}]', "2 of 2 items are bad"),
    ],
)
def test_lists_that_cannot_be_read_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=message):
        read(tmp_path, "kubernetes", text)


def test_wrong_types_and_times_in_objects_are_bad_items(tmp_path: Path) -> None:
    good = [batch(f"j{i}", 0, i, i + 9) for i in range(80)]
    late = thing("batch/v1", "Job", "x", 0, {}, {"startTime": "yesterday"})
    many = batch("y", 0, 0, 9) | {"spec": {"parallelism": "many"}}
    back = batch("z", 0, 9, 3)
    found, jobs = log(tmp_path, "kubernetes", listed([*good, late, many, back]))
    assert len(jobs) == 80
    assert stamp(3)[:10] == "2026-03-02"
    told(found, "2 of 83 items left out: they do not have the form of their kind")
    all_are_counted(found, 83)
    assert found.began_s == T0


# Acme, Helios, PAI

KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,"
    "fail_time,stop_time,duration,queue,gpu_time\n"
)


def kalos(job: str, gpus: int, submit: str, start: str, end: str, duration: str) -> str:
    dates = ",".join(f"2023-05-17 {time}+00:00" if time else "" for time in (submit, start, end))
    return f"{job},u,8,{gpus},960,1000,100.0,Other,FAILED,{dates},,,{duration},10.0,1152.0\n"


def test_a_trace_of_shockwave_has_no_history(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="shockwave: traces of this format do not record when jobs started"):
        read(tmp_path, "shockwave", SAMPLES["shockwave"])


def test_durations_of_kalos_do_not_count_the_waiting(tmp_path: Path) -> None:
    """The published example: 18 s of duration, of which 10 s are waiting."""
    text = KALOS + kalos("a", 64, "11:00:58", "11:01:08", "11:01:16", "18")
    text += kalos("b", 8, "11:00:58", "", "", "30") + kalos("c", 8, "11:00:59", "", "", "")
    text += kalos("d", 8, "11:00:59", "11:01:59", "11:02:59", "60")
    found = read(tmp_path, "acme", text, history=False)
    assert {job.id: job.duration_s for job in found.jobs} == {"a": 8, "b": 30, "d": 60}
    told(found, "1 of 4 jobs left out: they have no duration", "the recorded duration of 1 job is not end − start")
    _, jobs = log(tmp_path, "acme", text.splitlines())
    assert {name: of[1] for name, of in jobs.items()} == {"a": [(10 / 60, 18 / 60)], "d": [(61 / 60, 121 / 60)]}


@pytest.mark.parametrize("format", ["helios", "acme"])
def test_a_published_table_with_bad_lines_is_read(format: str, tmp_path: Path) -> None:
    header, first, *_ = SAMPLES[format].splitlines()
    good = [first.replace(first.split(",")[0], str(i), 1) for i in range(97)]
    bad = [
        first[:50],
        first.replace(",1,", ",many,", 1).replace(",8,", ",many,", 1),
        first.replace("2020", "nowhere-20"),
    ]
    bad[2] = bad[2].replace("2023", "nowhere-20")
    found, jobs = log(tmp_path, format, [header, *good[:50], header, *bad, *good[50:], *good[:5]])
    assert len(jobs) == 97
    told(found, "1 of 106 lines left out: they repeat the header", "5 of 106 lines left out: they repeat another line")
    all_are_counted(found, 106)


def test_the_instance_table_of_pai_is_not_its_task_table(tmp_path: Path) -> None:
    line = "af7247,worker,0d39aa,54dbcd,e387fb,Terminated,2081336.0,2083889.0,471dda\n"
    with pytest.raises(InstanceError, match="not pai2020: the columns are job_name,task_name,inst_num"):
        read(tmp_path, "pai2020", line, history=False)
