"""Decisions in files: they read back as written, and faults of a file are reported in one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Command

from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare import decisions
from schedgap.harness.studies.compare.given import verify
from schedgap.harness.studies.compare.run import compare_here
from schedgap.instances import load
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import OBJECTIVES

FIG1, EQ1, WALK, JOBS = "paper/hadar-fig1", "paper/oef-eq1", "paper/walkthrough", "gen/20jobs"

RIGID = [f"{rule}?objective={what}" for rule in ("sjf", "srtf") for what in OBJECTIVES if what != "flow"]

CASES: dict[str, tuple[str, Sequence[str]]] = {
    "hadar, small": (FIG1, ["hadar.p1", "hadar.p2.columns.complete", "hadar.hadare"]),
    "hadar": (JOBS, ["hadar.srtf", "hadar.online", "hadar.hadare"]),
    "admission": (WALK, ["admission.online", "admission.offline.from_arrival"]),
    "oef": (EQ1, ["oef.*"]),
    "oef, larger": (JOBS, ["oef.gandiva_fair", "oef.cooperative", "oef.rounding"]),
    "rigid": ("paper/rigid-hpc", ["rigid.executed", "rigid.easy", "rigid.srtf", "rigid.tiresias"]),
    "rigid, microseconds": (JOBS, ["rigid.fcfs", "rigid.srtf", *(f"rigid.{one}" for one in RIGID)]),
    "synergy": (
        JOBS,
        [f"synergy.{one}" for one in ("hetero.ilp1", "lp2.vertex", "tune", "greedy", "opt.las", "tetris.static")],
    ),
    "synergy, oracle": ("paper/synergy-example", ["synergy.hetero"]),
    "zhou": (JOBS, ["zhou.*.mincost", "zhou.*.amaxweight", "zhou.*.online", "zhou.*.fifo", "zhou.*.tiresias"]),
}

GANG = "job,start,end,server,gpus"
GOOD = f"{GANG}\njob-0001,6300,12600,V100-rack1,4\n"


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_reads_back_with_the_same_objective(case: str, tmp_path: Path) -> None:
    reference, methods = CASES[case]
    found = compare_here(load(reference), methods, limits=Limits(nodes=1))
    count, without = decisions.save(found, tmp_path)
    rows = [row for row in found.rows if row.status != "skipped"]
    assert (count, without) == (len(rows), [])
    for row in rows:
        files = sorted(tmp_path.glob(f"{row.method.replace('?', '_')}.*"))
        files = [file for file in files if file.stem == row.method.replace("?", "_")]
        again = verify(reference, row.problem, files, bound=False).rows
        assert [one.objective for one in again] == [row.objective] * 2
        assert all(one.verified for one in again)


def test_every_problem_with_a_format_has_been_tried() -> None:
    tried = {row.problem for ref, methods in CASES.values() for row in compare_here(load(ref), methods).rows}
    known = {problem.id for paper in decisions.FORMS for problem in PAPERS.get(paper).problems}
    undecided = {problem.id for problem in PAPERS.get("gavel").problems}  # bounds alone; the next test tries some
    assert known - tried == undecided | {"synergy.queue", "synergy.free", "synergy.makespan", "synergy.p99", "oef.fair"}


def test_jobs_that_may_choose_have_their_pool_in_the_file(tmp_path: Path) -> None:
    history = {"gpu_type": "G", "runs": [[0, 9]], "durations_s": {"H": 5}}
    jobs = [{"id": f"J{j}", "gpus": 1, "epochs": 9, "rates": {"G": 1, "H": 2}, "history": history} for j in range(2)]
    servers = [{"name": kind, "count": 1, "gpu_type": kind, "gpus": 1} for kind in "GH"]
    cluster = {"gpu_types": [{"name": kind} for kind in "GH"], "servers": servers}
    (tmp_path / "my.json").write_text(json.dumps({"name": "t", "cluster": cluster, "jobs": jobs}))
    reference = str(tmp_path / "my.json")
    found = compare_here(load(reference), ["rigid.fcfs", "rigid.srtf"])
    assert decisions.save(found, tmp_path) == (2, [])
    assert (tmp_path / "rigid.fcfs.csv").read_text() == "job,start,end,type\nJ0,0,5,H\nJ1,0,9,G\n"
    files = [tmp_path / f"rigid.fcfs.{suffix}" for suffix in ("csv", "json")]
    assert [row.verified for row in verify(reference, "rigid.flow", files).rows] == [True, True]
    files[0].write_text("job,start,end\nJ0,0,9\nJ1,9,18\n")
    assert verify(reference, "rigid.flow", files[:1]).rows[0].verified  # by itself, a job is where it ran


def test_a_paper_without_a_format_is_named() -> None:
    with pytest.raises(UsageError, match="decisions of smith have no file format; those of admission, gavel, "):
        decisions.form("smith")


TIMES = {
    **{"gavel.makespan": "gavel.makespan_fluid", "gavel.mean": "gavel.jct", "gavel.p99": "gavel.jct_p99"},
    **{"synergy.makespan": "synergy.makespan_fluid", "synergy.p99": "synergy.jct_p99"},
}


@pytest.mark.parametrize("problem", TIMES)
def test_times_of_a_whole_schedule(problem: str, tmp_path: Path) -> None:
    """Each problem reads from the same file the time that it is about, such as makespan or mean completion time."""
    gangs = problem.startswith("gavel")
    reference, method = (FIG1, "hadar.p1.complete") if gangs else (JOBS, "synergy.opt.fifo")
    decisions.save(compare_here(load(reference), [method]), tmp_path)
    (row,) = verify(reference, problem, [tmp_path / f"{method}.csv"]).rows
    assert row.verified
    assert row.bound_from == TIMES[problem]
    assert row.gap is not None
    if gangs:  # all of these jobs are there from the start, and slots last a second
        ends = pd.read_csv(tmp_path / f"{method}.csv").groupby("job")["end"].max()
        values = {"makespan": ends.max(), "mean": ends.mean(), "p99": np.percentile(ends, 99)}
        assert row.objective == pytest.approx(values[problem.removeprefix("gavel.")])


def test_commands_write_and_verify_with_a_certified_gap(command: Command) -> None:
    words = ["--instance", FIG1, "--jobs", 1, "--no-report", "--no-bound"]
    done = command("compare", *words, "--method", "hadar.srtf", "--method", "synergy.tune", "--decisions", "out/d")
    assert "decisions: out/d (1, as CSV and JSON" in done.stderr
    again = command(
        *("verify", "--instance", FIG1, "--problem", "hadar.utility"),
        *("out/d/hadar.srtf.csv", "out/d/hadar.srtf.json", "--format", "json"),
    )
    assert again.returncode == 0
    rows = json.loads(again.stdout)
    assert [row["bound_from"] for row in rows] == ["hadar.p2.relaxed"] * 2
    assert rows[0]["gap"] == rows[1]["gap"] > 0
    shown = command("verify", "--instance", FIG1, "--problem", "hadar.utility", "out/d/hadar.srtf.csv")
    assert "hadar.p2.relaxed also ran, for its bound" in " ".join(shown.stdout.split())


def test_gpus_by_type_are_put_onto_servers(tmp_path: Path) -> None:
    by_server, by_type = tmp_path / "a.csv", tmp_path / "b.csv"
    by_server.write_text(GOOD)
    by_type.write_text(GOOD.replace("server", "type").replace("-rack1", ""))
    first, second = verify(JOBS, "hadar.utility", [by_server, by_type], bound=False).rows
    assert (first.objective, first.violations) == (second.objective, second.violations)


def test_every_violation_is_told_with_its_numbers(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(f"{GANG}\njob-0001,0,900,V100-rack1,3\njob-0002,900,1800,V100-rack1,3\n")
    done = command("verify", "--instance", JOBS, "--problem", "hadar.utility", file)
    assert done.returncode == 1
    text = " ".join(done.stdout.split())
    for told in ("3 GPUs, its gang needs all 4 or none", "runs before its arrival in slot", "(2 jobs fall short)"):
        assert told in text
    file.write_text(GOOD.replace("server", "type").replace("-rack1", "").replace(",4", ",9"))
    (row,) = verify(JOBS, "hadar.utility", [file]).rows
    assert row.violations == ("slot 7: 9 GPUs of type V100 given out, 4 available (too many in 7 slots and types)",)


def test_claims_of_a_problem_are_checked(tmp_path: Path) -> None:
    decisions.save(compare_here(load(EQ1), ["oef.efficiency"]), tmp_path)
    (row,) = verify(EQ1, "oef.envy_free", [tmp_path / "oef.efficiency.csv"]).rows
    assert row.verified is False
    assert any("env" in line for line in row.violations)


@pytest.mark.parametrize("problem", [p.id for paper in decisions.FORMS for p in PAPERS.get(paper).problems])
def test_a_file_without_lines_rejects_every_job(problem: str, tmp_path: Path) -> None:
    one = decisions.form(problem.partition(".")[0])
    (tmp_path / "none.csv").write_text(",".join(column.name for column in one.columns[0]) + "\n")
    (tmp_path / "none.json").write_text(json.dumps({"problem": problem, "rows": []}))
    rows = verify(JOBS, problem, [tmp_path / "none.csv", tmp_path / "none.json"], bound=False).rows
    may_reject = problem.endswith(
        (
            *(".utility", ".forked", ".weight", ".from_arrival", ".allocation", ".equal_efficiency"),
            *(".queue", ".free", ".round", ".least_gain", ".nash_welfare", "oef.fair"),
        )
    )
    assert [row.verified for row in rows] == [may_reject] * 2
    assert all(row.objective == 0 for row in rows if may_reject)


MOLDABLE = "job,start,end,server,worker_type,workers,ps_type,ps"

BAD = {
    "unknown job": (GOOD.replace("0001", "1"), "line 2: job: unknown job 'job-1'; did you mean job-0019 or "),
    "unknown server": (GOOD.replace("rack1", "rack9"), "line 2: server: unknown server 'V100-rack9'; did you mean"),
    "off the border": (GOOD.replace("6300", "6400"), "line 2: start = 6400.0: not on a border of slots, which are 900"),
    "negative": (GOOD.replace("6300", "-6300"), 'line 2: start = "-6300": seconds since the start of the instance'),
    "no number": (GOOD.replace("6300", "nan"), 'line 2: start = "nan"'),
    "no time": (GOOD.replace("6300", "12600"), "line 2: end = 12600.0: a time after the start"),
    "after the horizon": (GOOD.replace("12600", "9e8"), "line 2: end = 900000000.0: the horizon ends at 259200 s"),
    "half a GPU": (GOOD.replace(",4", ",0.5"), 'line 2: gpus = "0.5": a whole number, 1 or more'),
    "truncated": (GOOD[:-16], "line 2: 3 fields instead of 5"),
    "overlapping": (
        GOOD + "job-0001,900,7200,V100-rack1,4\n",
        "line 2: start = 6300.0: overlaps with line 3, of the same job and server",
    ),
    "wrong columns": (GOOD.replace("gpus", "gpu"), "line 1: columns"),
    "a column twice": (GOOD.replace("gpus", "job"), "line 1: columns"),
    "empty": ("", "the file is empty"),
    "binary": ("\0", "a binary file"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_ends_in_one_line(what: str, tmp_path: Path, command: Command) -> None:
    text, told = BAD[what]
    file = tmp_path / "mine.csv"
    file.write_text(text)
    done = command("verify", "--instance", JOBS, "--problem", "hadar.utility", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"harness: {file}: {told}")
    assert done.stderr.count("\n") == 1


BAD_JSON = {
    "no rows": ('{"rows": 3}', "rows = 3: a list of objects"),
    "no object": ('{"rows": [3]}', "row 1: 3: an object with fields"),
    "another field": ('{"rows": [{"tenant": "u1", "type": "GPU1"}]}', 'row 1: columns "tenant,type": expected'),
    "truncated": ('{"rows": [{"tenant"', "not valid JSON"),
    "another problem": ('{"problem": "oef.envy_free", "rows": []}', 'problem = "oef.envy_free": the file is read as'),
    "a text": ('{"rows": [{"tenant": "u1", "type": "GPU1", "devices": "x"}]}', 'row 1: devices = "x": a number of'),
    "a truth": ('{"rows": [{"tenant": "u1", "type": "GPU1", "devices": true}]}', 'row 1: devices = "true": a number'),
    "twice": (
        '{"rows": [{"tenant": "u1", "type": "GPU1", "devices": 0}, {"tenant": "u1", "type": "GPU1", "devices": 0}]}',
        'row 2: tenant = "u1": the same tenant and type as in row 1',
    ),
}


@pytest.mark.parametrize("what", BAD_JSON)
def test_bad_json_ends_in_one_line(what: str, tmp_path: Path, command: Command) -> None:
    text, told = BAD_JSON[what]
    file = tmp_path / "mine.json"
    file.write_text(text)
    done = command("verify", "--instance", EQ1, "--problem", "oef.allocation", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"harness: {file}: {told}")
    assert done.stderr.count("\n") == 1


def test_moldable_runs_that_are_no_runs(tmp_path: Path, command: Command) -> None:
    file, line = tmp_path / "mine.csv", "job-0001,7200,55800,V100-rack1,V100 x 1,4,PS 9,1\n"
    told = {
        f"{MOLDABLE}\n{line}{line}": 'line 3: server = "V100-rack1": the same job, time and server as in line 2',
        f"{MOLDABLE}\n{line.replace('PS 9', '')}": "line 2: ps_type: unknown ps type ''",
        f"{MOLDABLE}\n{line.replace('55800', '55801')}": "line 2: end = 55801.0: not on a border",
    }
    for text, what in told.items():
        file.write_text(text)
        done = command("verify", "--instance", JOBS, "--problem", "admission.utility", file)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(f"harness: {file}: {what}")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--instance", JOBS], "decision files need both --instance and --problem"),
        (["--problem", "hadar.utility"], "decision files need both --instance and --problem"),
        ([], "mine.csv: expected one results folder; decision files need --instance and --problem"),
        (["--instance", JOBS, "--problem", "hadar.utilty"], "unknown problem 'hadar.utilty'; did you mean"),
        (["--instance", JOBS, "--problem", "synergy.run"], 'mine.csv: line 1: columns "job,start,end,server,gpus"'),
    ],
)
def test_wrong_words_end_in_one_line(words: list[str], told: str, command: Command) -> None:
    Path("mine.csv").write_text(GOOD)
    done = command("verify", "mine.csv", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"harness: {told}")
