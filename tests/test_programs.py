"""External schedulers (``--policy exec:…``): examples, the protocol, faulty programs, and how programs end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from conftest import HARNESS, PATIENCE_S, ROOT, Command, wait_for

from schedgap import instances
from schedgap.harness.engine.pool import NOT_COUNTED, Pool, Worker
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.given import verify
from schedgap.harness.studies.folders import reopen
from schedgap.harness.studies.simulate.row import Simulation, SimulationRow
from schedgap.harness.studies.simulate.run import SimulationOptions, resolve, rules_for, simulate
from schedgap.harness.studies.simulate.task import SimulationTask
from schedgap.heuristics.simulator import POLICIES, ProgramError
from schedgap.heuristics.simulator.messages import schema
from schedgap.heuristics.simulator.program import MOST_BYTES, named
from schedgap.instances.canonical import to_json
from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import base_id

TINY = instances.load("gen/20jobs")
FIRST_ROUND = 7
"""Number of the round in which the first job of ``gen/20jobs`` is there."""

HELLO = """#!/bin/sh
read line; echo '{"type":"hello","version":1}'
read line
"""
SLOW = """#!/bin/sh
read line; echo '{{"type":"hello","version":1,"answer_s":{}}}'
read line; {}
"""


def written(folder: Path, text: str, name: str = "mine") -> Path:
    """Write an executable program and return its path."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def answering(run: str, number: int = FIRST_ROUND) -> str:
    """Return a program that answers the first state with these entries, and then stops."""
    return HELLO + f'echo \'{{"type":"assignment","round":{number},"run":{run}}}\'; read line'


def task(path: Path, **limits: float) -> SimulationTask:
    """Return the task that simulates a program on the small instance."""
    rules, policy = rules_for(TINY, SimulationOptions()), f"exec:{path}"
    given = (*sent(TINY), policy, 0, rules)
    return SimulationTask(*given, program=named(policy), limits=Limits(**limits))  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """Return whether a process has ended."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()  # nobody has asked for its exit code yet
    except OSError:
        return True


# --- the examples ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that compiles an example program once and returns its executable."""
    folder = tmp_path_factory.mktemp("examples")

    def path(name: str) -> Path:
        source, program = ROOT / "examples" / name, folder / f"made-of-{name}"
        if source.suffix == ".py":
            return source
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            pytest.skip("no C++ compiler is here (g++ or clang++)")
        if not program.exists():
            words = [compiler, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source]
            subprocess.run(words, check=True, capture_output=True)
        return program

    return path


def test_a_schedule_that_an_example_makes_is_verified(examples: Callable[[str], Path], tmp_path: Path) -> None:
    path, program = tmp_path / "mine.csv", examples("fifo.cpp")
    path.write_text(subprocess.run(program, input=to_json(TINY), capture_output=True, text=True, check=True).stdout)
    (row,) = verify("gen/20jobs", "hadar.utility", [path]).rows
    assert row.verified
    assert row.gap is not None
    assert row.gap < 0.2


@pytest.mark.parametrize("reference", ["gen/20jobs", "gen/hadar-aws", "paper/hadar-fig1"])
@pytest.mark.parametrize("name", ["fifo.cpp", "fifo.py"])
def test_an_example_is_our_fifo(name: str, reference: str, examples: Callable[[str], Path]) -> None:
    found = simulate(reference, [f"exec:{examples(name)}", "hadar.fifo"], jobs=1)
    theirs, ours = found.rows
    assert found.ok, theirs.reason
    assert theirs.verified
    same = ("status", "ttd_s", "jct_mean_s", "jct_max_s", "utility", "restarts", "rounds", "gru", "finished")
    assert {name: getattr(theirs, name) for name in same} == {name: getattr(ours, name) for name in same}
    assert theirs.ttd_bound_ratio == ours.ttd_bound_ratio
    one, other = found.traces[theirs.policy], found.traces[ours.policy]
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.completion_s, other.completion_s)
    np.testing.assert_array_equal(one.progress, other.progress)


def test_every_line_of_a_run_is_in_the_published_schema(
    command: Command, tmp_path: Path, examples: Callable[[str], Path]
) -> None:
    published = json.loads(command("schema", "policy").stdout)
    assert published == schema()
    jsonschema.Draft202012Validator.check_schema(published)
    script = f"#!/bin/sh\ntee {tmp_path}/sent | {examples('fifo.py')} | tee {tmp_path}/answered\n"
    row = task(written(tmp_path, script)).run().row
    assert (row.status, row.verified) == ("done", True)
    sent, answered = ([*map(json.loads, (tmp_path / name).open())] for name in ("sent", "answered"))
    assert [line["type"] for line in sent] == ["hello", *["state"] * row.rounds, "end"]
    assert len(answered) == row.rounds + 1
    check = jsonschema.Draft202012Validator(published)
    for line in (*sent, *answered):
        check.validate(line)
    for wrong in ({}, {"type": "state"}, {"type": "assignment", "round": 0, "run": [{"job": 0}]}):
        assert not check.is_valid(wrong)
    assert sent[0]["jobs"][0].keys() == {
        *("id", "tenant", "arrival_s", "leave_s", "gpus", "iterations", "weight", "rates")
    }
    assert any(line["running"] for line in sent[1:-1])


def test_settings_are_handed_over_and_folder_and_path_are_the_users(command: Command, tmp_path: Path) -> None:
    script = f"#!{sys.executable}\nimport beside\nbeside.tell(input())\n"
    (tmp_path / "bin").mkdir()
    written(tmp_path / "bin", script, "My Program")
    told = "import json, os, sys\ndef tell(line): sys.exit(f\"{json.loads(line)['settings']} in {os.getcwd()}\")\n"
    written(tmp_path / "bin", told, "beside.py")
    words = ("simulate", "--instance", "gen/20jobs", "--policy", "exec:bin/My Program?a=2&b=x%20y", "--no-report")
    run = command(*words, "--format", "json", "--jobs", 1)
    (row,) = json.loads(run.stdout)
    assert (run.returncode, row["policy"]) == (1, "exec:bin/My Program?a=2&b=x%20y")
    assert row["reason"].endswith(f"without answering: {{'a': '2', 'b': 'x y'}} in {tmp_path}")


def test_two_programs_are_named_beside_ours() -> None:
    assert [spec.id for spec in resolve(["exec:./A,fifo", "exec:./b?c=1"])] == [
        *("exec:./A", "hadar.fifo", "exec:./b?c=1")
    ]
    assert base_id(POLICIES.get("exec:./b?c=1").id) == "exec:./b"


# --- keys ------------------------------------------------------------------------------------------------------------


def test_an_edited_program_is_run_again_and_the_rest_is_kept(command: Command, tmp_path: Path) -> None:
    fifo = (ROOT / "examples" / "fifo.py").read_text()
    path = written(tmp_path, fifo)
    words = ("simulate", "--instance", "gen/20jobs", "--policy", "exec:./mine", "fifo", "--jobs", 1, "--no-report")
    first = command(*words, "--format", "json")
    assert first.returncode == 0, first.stderr
    (folder,) = (tmp_path / "results").iterdir()
    told = json.loads((folder / "run.json").read_text())["plugins"]
    assert [one["name"] for one in told if one["kind"] == "program"] == ["exec:./mine"]
    again = command(*words, "--format", "json", "--resume", folder)
    assert again.stdout == first.stdout, "nothing has changed, so nothing ran"
    path.write_text(fifo.replace('jobs[job]["arrival_s"]', '-jobs[job]["arrival_s"]'))
    edited = command(*words, "--format", "json", "--resume", folder)
    assert edited.returncode == 0, edited.stderr
    before, after = ({row["policy"]: row for row in json.loads(run.stdout)} for run in (first, edited))
    assert after["hadar.fifo"]["key"] == before["hadar.fifo"]["key"]
    assert after["hadar.fifo"]["decision_mean_s"] == before["hadar.fifo"]["decision_mean_s"]
    assert after["exec:./mine"]["key"] != before["exec:./mine"]["key"]
    assert after["exec:./mine"]["jct_mean_s"] > before["exec:./mine"]["jct_mean_s"]
    path.unlink()
    assert command("verify", folder).returncode == 0, "histories are read without the program"
    assert command("report", folder).returncode == 0
    assert len(reopen(folder).traces) == 2


def test_a_program_that_changes_during_a_run_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "#!/bin/sh\nexit 1\n")
    planned = task(path)
    path.write_text("#!/bin/sh\nexit 2\n")
    assert "has changed since the run began; --resume runs it again" in str(planned.run().row.reason)


def test_histories_of_programs_with_similar_names_are_two_files(tmp_path: Path) -> None:
    fifo = (ROOT / "examples" / "fifo.py").read_text()
    names = [f"exec:{written(tmp_path, fifo, name)}" for name in ("A" * 200, "B" * 200)]
    found: Simulation = simulate("gen/20jobs", names, results=tmp_path, jobs=1)
    assert found.ok
    assert found.folder is not None
    assert len(list((found.folder / "schedules").iterdir())) == 2


# --- bad programs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("exec:./none", "none: no such file"),
        ("exec:", "policy 'exec:' names no program; write exec:./my_scheduler"),
        ("exec:.", "a folder, not a file"),
        ("exec:/dev/zero", "/dev/zero: not a regular file"),
        ("exec:./text", "text is not executable; to make it so: chmod +x ./text"),
        ("exec:./text?a", "'a' is not key=value (write exec:./text?name=value&name=value)"),
        ("exce:./text", "unknown policy 'exce:./text'"),
    ],
)
def test_what_cannot_be_a_program_is_one_line(policy: str, message: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    run = command("simulate", "--instance", "gen/20jobs", "--policy", policy)
    assert (run.returncode, run.stdout) == (2, "")
    assert len(run.stderr.splitlines()) == 1
    assert message in run.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"text"}


BAD = {
    "echo hi": "it is neither compiled for this machine nor a script",
    "#!/none/sh\n": "the interpreter named in its first line does not exist",
    "#!/bin/sh\necho hello; read line": "Invalid JSON: expected value at line 1 column 1 (the program answered: hello)",
    "#!/bin/sh\necho; read line": "hello: Invalid JSON: EOF",
    "#!/bin/sh\necho why >&2; echo so >&2; exit 3": "hello: the program exited with status 3 without answering: so",
    "#!/bin/sh\nkill -9 $$": "hello: the program was killed by signal 9 (Killed) without answering",
    "#!/bin/sh\nexec >&-; read line; read line": "hello: the program closed its standard output without answering",
    "#!/bin/sh\nhead -c 99999 /dev/zero | tr '\\0' '['; echo": "hello: Invalid JSON: recursion limit exceeded",
    "#!/bin/sh\nexec yes": "hello: the program answered more than one line: y y",
    "#!/bin/sh\nexec cat /dev/zero": f"hello: the program answered a line of more than {MOST_BYTES >> 20} MB",
    "#!/bin/sh\nyes no >&2 & sleep 0.2; kill $!; exit 4": "exited with status 4 without answering: no",
    '#!/bin/sh\necho \'{"type":"hello","version":2}\'; read line': "hello: version = 2: this harness speaks version 1",
    HELLO: "round 7: the program exited with status 0 without answering",
    SLOW.format(0.2, "exec sleep 60"): "round 7: no answer within 0.2 s; a program that needs more time must",
    SLOW.format(0.2, "while :; do echo y >&2; done"): "round 7: no answer within 0.2 s",
    SLOW.format(0, "exit"): "hello: answer_s = 0: an answer takes more than 0 seconds, at most a day",
    HELLO + "echo '[]'": "round 7: []: input should be an object",
    HELLO + "echo '{}'": 'round 7: type: missing: the answer to a state has the type "assignment" (and 2 more)',
    HELLO + "printf '{\"type\":'": "round 7: the program exited with status 0",
    answering("[]", number=5): "round 7: the program answered about round 5",
    answering("null"): "round 7: run = null: a list of {job, server, gpus}",
    answering('[{"job":99,"server":0,"gpus":1}]'): "round 7: jobs are numbered from 0 to 19",
    answering('[{"job":5,"server":0,"gpus":1}]'): "round 7: job job-0006 has not arrived or is no longer active",
    answering('[{"job":0,"server":99,"gpus":1}]'): "round 7: servers are numbered from 0 to",
    answering('[{"job":0,"server":0,"gpus":99}]'): "round 7: more GPUs than server",
    answering(
        '[{"job":0,"server":0,"gpus":1},{"job":0,"server":0,"gpus":1}]'
    ): "a pair of job and server occurs at most once",
    answering('[{"job":0,"server":0,"gpus":-1}]'): "round 7: run[0].gpus = -1: an entry has at least one GPU",
    answering('[{"job":0,"server":0,"gpus":0.5}]'): "round 7: run[0].gpus = 0.5: an entry has at least one GPU",
    answering(f'[{{"job":{10**30},"server":0,"gpus":1}}]'): "a job is identified by its index, from 0",
    answering("[]"): "round 8: the program exited with status 0 without answering",
}
"""Faulty programs, and the reason that each one's row states."""


@pytest.mark.parametrize("text", BAD)
def test_a_bad_program_is_one_clear_row(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "exec >&-" not in text:  # all others end by themselves
        monkeypatch.setattr("schedgap.heuristics.simulator.program.GRACE_S", PATIENCE_S)
    row = task(written(tmp_path, text)).run().row
    assert row.status == "error"
    assert BAD[text] in str(row.reason)
    assert len(str(row.reason)) <= 300


def test_bad_programs_leave_the_others_their_rows(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that fail or hang end only their own rows."""
    begun = tmp_path / "pid"

    def left_s(worker: Worker) -> float:
        hangs = isinstance(worker.task, SimulationTask) and worker.task.policy == "exec:./hangs"
        return PATIENCE_S if not hangs else -1.0 if begun.exists() else 0.02

    monkeypatch.setattr(Worker, "left_s", property(left_s))
    written(tmp_path, f"#!/bin/sh\necho $$ >{tmp_path}/id; mv {tmp_path}/id {begun}\nwhile :; do :; done", "hangs")
    written(tmp_path, f"#!{sys.executable}\nx = bytearray(10**9)\n", "fat")
    words = ("exec:./hangs", "exec:./fat", "exec:/bin/false", "fifo", "--time-limit", 4, "--memory-mb", 768)
    run = command("simulate", "--instance", "gen/20jobs", "--policy", *words, "--jobs", 1, "--no-report", width=80)
    assert run.returncode == 1
    assert "Traceback" not in run.stdout + run.stderr
    rows = {row.policy: row for row in reopen(next((tmp_path / "results").iterdir())).rows}
    assert [row.status for row in rows.values()] == ["time limit", "error", "error", "done"]
    assert rows["exec:./hangs"].reason == f"killed after 4 s{NOT_COUNTED}"
    assert str(rows["exec:./fat"].reason).endswith("without answering: MemoryError")
    wait_for(lambda: gone(int(begun.read_text())))


# --- how programs end ------------------------------------------------------------------------------------------------


STUBBORN = """#!/bin/sh
trap '' INT TERM HUP PIPE
sh -c 'while :; do sleep 0.1; done' &
echo $! $$ >{0}/pids.partial; mv {0}/pids.partial {0}/pids
{1}
while :; do :; done
"""
"""A program that starts another one, writes down both process numbers, and ignores signals."""


def test_a_program_ends_with_its_worker(tmp_path: Path) -> None:
    with closing(Pool(1)) as pool:
        (result,) = pool.run([task(written(tmp_path, STUBBORN.format(tmp_path, "kill -9 $PPID")))])
    row: SimulationRow = result.row
    assert "the worker died (SIGKILL" in str(row.reason)
    for pid in (tmp_path / "pids").read_text().split():
        wait_for(lambda pid=int(pid): gone(pid))  # type: ignore[misc]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_ends_with_the_command(number: signal.Signals, tmp_path: Path) -> None:
    written(tmp_path, STUBBORN.format(tmp_path, ""))
    words = [HARNESS, "simulate", "--instance", "gen/20jobs", "--policy", "exec:./mine", "--jobs", "1"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for((tmp_path / "pids").exists, process)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in errors
    for pid in (tmp_path / "pids").read_text().split():
        wait_for(lambda pid=int(pid): gone(pid))  # type: ignore[misc]


def test_a_program_that_does_not_end_at_the_end_is_ended(tmp_path: Path) -> None:
    path = written(tmp_path, f"#!/bin/sh\necho $$ >{tmp_path}/pid\nwhile :; do sleep 0.1; done")
    program = named(f"exec:{path}")
    assert program is not None
    with program.start():
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    wait_for(lambda: gone(int((tmp_path / "pid").read_text())))


def test_a_policy_by_its_name_is_a_program_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        POLICIES.get("exec:./mine").build(TINY, None)
    written(tmp_path, "echo")
    with pytest.raises(ProgramError, match="cannot be run"):
        POLICIES.get("exec:./mine").build(TINY, None)
