"""The installed command ``harness``, used and misused as by a stranger."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import HARNESS, PATIENCE_S, Command
from typer.main import get_command

import schedgap
from schedgap.harness import cli
from schedgap.harness.cli import catalogue, studies  # noqa: F401 -- importing them registers their commands
from schedgap.harness.cli.app import app
from schedgap.harness.show import page
from schedgap.harness.studies.compare import run as comparing
from schedgap.harness.studies.compare.row import FIELDS, FINISHED

LIGHT = ["--no-report", "--jobs", "1"]


def one_line_error(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert result.returncode == 2, result
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    for part in parts:
        assert part in result.stderr


def test_help_names_every_command(command: Command) -> None:
    result = command("--help")
    assert result.returncode == 0
    for name in ("compare", "list", "show", "import", "report"):
        assert name in result.stdout


def test_version_names_the_solvers(command: Command) -> None:
    lines = command("--version").stdout.splitlines()
    assert lines[0] == f"schedgap {schedgap.__version__}"
    assert {"python", "pyomo", "highspy", "pulp"} <= {line.split()[0] for line in lines}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("compare --method hadar.on", "hadar.online"),
        ("compare --instance gen/200", "gen/200jobs"),
        ("simulate --policy hadar.fi", "hadar.fifo"),
        ("reproduce hadar/fig", "hadar/fig4"),
        ("explain oef.co", "oef.cooperative"),
        ("show paper/", "paper/oef-eq1"),
    ],
)
def test_a_shell_completes_registered_names(
    words: str, name: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # or else the program is `python -m pytest`
    monkeypatch.setenv("COMP_WORDS", f"harness {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    monkeypatch.setenv("_HARNESS_COMPLETE", "complete_bash")
    done = command()
    assert done.returncode == 0
    assert name in done.stdout.splitlines()


@pytest.mark.parametrize("name", ["compare", "sweep", "simulate", "audit", "adversary"])
def test_commands_that_run_studies_have_the_same_options(name: str) -> None:
    options = {option for p in get_command(app).commands[name].params for option in p.opts}
    wanted = "--jobs --dask --resume --results --memory-mb --time-limit --seed --format --report"
    assert set(wanted.split()) <= options


def test_compare_prints_published_beside_measured_and_writes_results(command: Command, tmp_path: Path) -> None:
    result = command("compare", "--instance", "paper/oef-eq1", "--paper", "oef")
    assert result.returncode == 0, result.stderr
    out = " ".join(result.stdout.split())
    for text in ("oef.cooperative", "4.5", "4.154", "oef.gandiva_fair", "1.18", "1.102", "published"):
        assert text in out
    (folder,) = (tmp_path / "results").iterdir()
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "certificates",
        "run.json",
        "journal.jsonl",
        "rows.jsonl",
        "rows.parquet",
        "traces.parquet",
        "instances",
        "schedules",
        "figures",
        "report.html",
    }
    meta = json.loads((folder / "run.json").read_text())
    assert meta["command"] == "harness compare --instance paper/oef-eq1 --paper oef"
    assert meta["interrupted"] is False
    assert not list(folder.rglob(".*"))
    assert str(folder.relative_to(tmp_path)) in " ".join(result.stderr.split())


@pytest.mark.parametrize("output", ["json", "csv", "markdown"])
def test_formats_keep_standard_output_clean(command: Command, output: str) -> None:
    args = ["compare", "--instance", "paper/oef-eq6", "--method", "oef.cooperative", "--format", output, *LIGHT]
    args += ["--method", "oef.cooperative.full"]
    result = command(*args)
    assert result.returncode == 0, result.stderr
    if output == "json":
        rows = json.loads(result.stdout)
        assert [set(row) for row in rows] == [{*FIELDS, "claim"}] * 2
        assert rows[0]["objective"] == pytest.approx(5.25)
    elif output == "csv":
        records = list(csv.DictReader(io.StringIO(result.stdout)))
        assert [r["method"] for r in records] == ["oef.cooperative", "oef.cooperative.full"]
    else:
        assert "| oef.cooperative" in result.stdout


def test_ctrl_c_while_modules_are_imported_is_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupted)
    result = command("list")
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "harness: interrupted\n")


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["compare", "--instance", "gen/200job"], ["gen/200job", "did you mean gen/200jobs"]),
        (
            ["compare", "--instance", "paper/oef-eq1", "--method", "oef.cooperativ"],
            ["did you mean oef.cooperative"],
        ),
        (["compare", "--instance", "paper/oef-eq1", "--paper", "gandiva"], ["unknown paper 'gandiva'"]),
        (["compare", "--instance", "paper/oef-eq1", "--time-limit", "0"], ["time limit = 0 s", "positive"]),
        (["compare", "--instance", "paper/oef-eq1", "--time-limit", "nan"], ["time limit = nan s"]),
        (
            ["compare", "--instance", "paper/oef-eq1", "--results", "/proc/none"],
            ["/proc/none", "cannot be written"],
        ),
        (
            ["compare", "--instance", "paper/oef-eq1", "--resume", "nowhere"],
            ["nowhere: not a results folder"],
        ),
        (["compare", "--instance", "missing.json"], ["missing.json", "no such file"]),
        (["compare", "--instance", "gen/200jobs?jbs=3"], ["jbs", "jobs"]),
        (["compare", "--instance", "gen/200jobs?jobs=-3"], ["jobs", "-3"]),
        (["compare", "--instance", "gen/../../etc/passwd"], ["gen/../../etc/passwd"]),
        (["show", "paper/nothing"], ["paper/nothing"]),
        (["report", "nowhere"], ["nowhere: not a results folder"]),
        (["import", "gavl", "x.trace", "-o", "x.json"], ["gavl", "did you mean gavel"]),
        (["import", "gavel", "x.trace", "-o", "x.json"], ["x.trace", "no such file"]),
        (["import", "gavel", "x.trace", "-o", "x.yaml"], ["x.yaml", ".json"]),
        (["import", "philly", "x.csv", "-o", "x.json", "--gpus", "V100"], ["--gpus V100", "V100=36,P100=36"]),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    command: Command, args: Sequence[str], parts: Sequence[str], tmp_path: Path
) -> None:
    one_line_error(command(*args), *parts)
    assert not any(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("{", ["bad.json: not valid JSON"]),
        ('{"name": "x"}', ["bad.json: cluster: missing"]),
        (
            '{"name":"x","cluster":{"gpu_types":[{"name":"A"}],"servers":[{"name":"s","count":1,"gpu_type":"A","gpus":2}]},'
            '"jobs":[{"id":"j","gpus":0,"epochs":1}]}',
            ["bad.json: jobs[0].gpus = 0: a job needs at least one GPU"],
        ),
        ('{"name":"[red]x\\u001b[31m"}', ["bad.json: name"]),
    ],
)
def test_bad_instances_name_file_field_value_and_what_is_right(
    command: Command, content: str, parts: Sequence[str], tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text(content)
    result = command("compare", "--instance", "bad.json")
    one_line_error(result, *parts)
    assert "\x1b" not in result.stderr
    assert not (tmp_path / "results").exists()


def test_an_instance_no_method_can_take_is_skipped_with_the_reason(command: Command, tmp_path: Path) -> None:
    (tmp_path / "rateless.json").write_text(
        '{"name":"rateless","cluster":{"gpu_types":[{"name":"A"}],"servers":[{"name":"s","count":1,"gpu_type":"A",'
        '"gpus":2}]},"jobs":[{"id":"j","gpus":1,"epochs":1}]}'
    )
    result = command("compare", "--instance", "rateless.json", "--paper", "oef", "--format", "json", *LIGHT)
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert {row["status"] for row in rows} == {"skipped"}
    assert all("positive rate on each GPU type" in row["reason"] for row in rows)


def test_hostile_names_are_shown_as_text(command: Command, tmp_path: Path) -> None:
    instance = json.loads(command("show", "paper/oef-eq1", "--json").stdout)
    instance["name"] = "[bold red]=cmd()<script>alert(1)</script>"
    instance["tenants"][0]["id"] = "<img src=x onerror=alert(1)>"
    (tmp_path / "hostile.json").write_text(json.dumps(instance))
    result = command("compare", "--instance", "hostile.json", "--method", "oef.cooperative")
    assert result.returncode == 0, result.stderr
    assert "[bold red]" in result.stdout
    page = next((tmp_path / "results").glob("*/report.html")).read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("kind", ["instances", "models", "heuristics", "papers", "formats"])
def test_list(command: Command, kind: str) -> None:
    lines = json.loads(command("list", kind, "--format", "json").stdout)
    assert lines
    first = next(iter(lines[0].values()))
    assert first in command("list", kind).stdout
    assert all(next(iter(line.values())) for line in lines)


def test_show_in_words_and_a_picture(command: Command, tmp_path: Path) -> None:
    result = command("show", "gen/20jobs", "--picture", "p.png")
    assert result.returncode == 0, result.stderr
    for text in ("gen/20jobs", "V100", "jobs arriving", "█"):
        assert text in result.stdout
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert command("show", "gen/20jobs", "--picture", "p.doc").returncode == 2


def test_report_of_an_earlier_run_can_be_written_elsewhere(command: Command, tmp_path: Path) -> None:
    args = ["compare", "--instance", "paper/oef-eq1", "--method", "oef.cooperative", "--results", "r", *LIGHT]
    assert command(*args).returncode == 0
    (folder,) = (tmp_path / "r").iterdir()
    assert not (folder / "report.html").exists()
    assert command("report", folder, "-o", "page.html").returncode == 0
    assert "<html" in (tmp_path / "page.html").read_text()
    assert command("report", folder, "-o", "missing/page.html").returncode == 2
    assert command("report", folder).returncode == 0
    assert (folder / "report.html").exists()
    assert list((folder / "figures").glob("*.svg"))


def shell(line: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ``harness`` is the installed command."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'harness() {{ "{HARNESS}" "$@"; }}; {line}'],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", **environment},
        timeout=PATIENCE_S,
        check=False,
    )


ONE = "compare --instance paper/oef-eq1 --method oef.cooperative --jobs 1"
"""The shortest comparison: one method on a small instance."""


@pytest.mark.parametrize("words", ["list models --format json", "--help", "show paper/oef-eq1"])
def test_a_closed_pipe_is_no_error(words: str, tmp_path: Path) -> None:
    # `sleep`: the reader has gone before the first byte is written
    result = shell(f"(sleep 0.2; harness {words}) | true", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_closed_pipe_loses_neither_the_report_nor_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(
        "import sys; from schedgap.harness import cli; from schedgap.harness.studies.compare.row import Comparison\n"
        "Comparison.ok = property(lambda self: False)\n"
        f"sys.argv[1:] = {ONE.split()}\ncli.main()"
    )
    result = shell(f"(sleep 0.2; {sys.executable} failing.py) 2>&1 | true", tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    (page,) = tmp_path.glob("results/*/report.html")
    assert "</html>" in page.read_text()


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closed: str, tmp_path: Path) -> None:
    result = shell(f"harness {ONE} --no-report {closed}", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    assert ("oef.cooperative" in result.stdout) == (closed == "2>&-")
    assert len(list(tmp_path.glob("results/*/rows.parquet"))) == 1


@pytest.mark.parametrize("words", ["list models", "--help", "show paper/oef-eq1 --json"])
def test_a_full_disk_behind_standard_output_is_one_line(words: str, tmp_path: Path) -> None:
    result = shell(f"harness {words} > /dev/full", tmp_path)
    one_line_error(result, "harness: standard output: No space left on device")
    assert shell(f"harness {words} > /dev/null 2> /dev/full", tmp_path).returncode == 0


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_encodings_without_our_characters(environment: dict[str, str], tmp_path: Path) -> None:
    result = shell("harness show gen/20jobs", tmp_path, **environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert "20 V100" in result.stdout or "GPUs by type" in result.stdout


@pytest.mark.parametrize(
    "option", [["--seed", "-1"], ["--seed", "2147483648"], ["--threads", "1025"], ["--memory-mb", "16777217"]]
)
def test_limits_of_numbers(command: Command, option: list[str], tmp_path: Path) -> None:
    result = command("compare", "--instance", "paper/oef-eq1", *option)
    assert (result.returncode, result.stdout) == (2, "")
    assert option[0] in result.stderr
    assert not list(tmp_path.iterdir())


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_nothing_but_the_mistake_is_printed(command: Command) -> None:
    result = command("compare", "--instance", "nowhere.json")
    assert result.stderr == "harness: nowhere.json: no such file\n"


def test_ctrl_c_while_loading_is_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "load", stop)
    result = command(*ONE.split())
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "harness: interrupted\n")


def test_ctrl_c_while_drawing_the_report_leaves_table_and_folder(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "save", stop)
    result = command(*ONE.split())
    assert result.returncode == 130
    assert "oef.cooperative" in result.stdout
    (folder,) = (tmp_path / "results").iterdir()
    assert result.stderr == f"results: results/{folder.name}\nharness: interrupted\n"


def test_a_terminal_shows_progress_and_nothing_of_it_stays(tmp_path: Path) -> None:
    code = f"import pty, sys; sys.exit(pty.spawn(['{HARNESS}', *{ONE.split()}, '--no-report']) >> 8)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stdout
    assert "0/5" in result.stdout  # four heuristics run beside the model
    assert "\x1b[2K" in result.stdout


@pytest.mark.real_data
def test_import_gavel_and_compare(command: Command, data_dir: Path) -> None:
    trace, table = data_dir / "gavel/philly_vc_103959.trace", data_dir / "gavel/simulation_throughputs.json"
    result = command("import", "gavel", trace, "--throughputs", table, "-o", "philly.json")
    assert result.returncode == 0, result.stderr
    assert "877 jobs" in result.stdout
    assert "1 of 878 jobs left out" in result.stderr
    patterns = ("oef.*", "hadar.srtf", "hadar.gavel", "synergy.lp*", "synergy.tune")
    methods = [word for pattern in patterns for word in ("--method", pattern)]
    words = ("--instance", "philly.json", "--format", "json", "--nodes", "1")
    compared = command("compare", *words, *methods, *LIGHT)
    assert compared.returncode == 0, compared.stderr
    rows = json.loads(compared.stdout)
    assert {row["paper"] for row in rows} == {"oef", "hadar", "synergy"}
    assert all(row["verified"] for row in rows if row["objective"] is not None)
    assert {row["status"] for row in rows} <= FINISHED


@pytest.mark.real_data
def test_import_that_cannot_be_written_leaves_nothing(command: Command, data_dir: Path, tmp_path: Path) -> None:
    trace = data_dir / "gavel/small_test.trace"
    one_line_error(command("import", "gavel", trace, "-o", "missing/x.json"), "missing/x.json")
    assert list(tmp_path.iterdir()) == []
