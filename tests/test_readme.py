"""What the README and the pages of the site show is true: every block runs, and printed numbers are today's.

Commands run as they stand on their page, one after the other in one folder, with the files that the page mentions. What
would take long is replaced by something smaller (:data:`SMALLER`).
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import highspy
import pytest
from conftest import ROOT, Command
from test_results_page import printed
from trace_samples import GAVEL_NEW, NODES, PAI_JOBS, SAMPLES, TABLE
from typer.main import get_command

from schedgap.harness.cli import catalogue, studies  # noqa: F401 -- importing them registers their commands
from schedgap.harness.cli.app import app
from schedgap.harness.show.page import blocks as blocks_of
from schedgap.harness.show.page.columns import COMPARE
from schedgap.harness.show.table import Line
from schedgap.harness.studies.compare import decisions
from schedgap.harness.studies.compare.run import compare, compare_here, read_run
from schedgap.harness.studies.reproduce import setting
from schedgap.heuristics.simulator.messages import Answer, End, Hello, Ready, Round
from schedgap.instances import load, plugins

README = (ROOT / "README.md").read_text()
PAGES = {page.stem: page.read_text() for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
ELSEWHERE = ("make ", ".venv/bin/", "sacct ")
"""Beginnings of lines that tests do not run: they install something, start a server, or ask Slurm."""

SMALLER = {
    "gen/200jobs": "gen/20jobs",
    "gen/hadar-480": "paper/hadar-fig1",
    "gen/hadar-aws?mix=M-8": "gen/20jobs?jobs=3&slot_s=7200",
    "gen/hadar-aws": "paper/hadar-fig1",
    "paper/hadar-fig1 --method 'hadar.p1.per_server": "'gen/20jobs?jobs=3&slot_s=7200' --method 'hadar.p1.per_server",
    "gen/synergy-128?load=5": "gen/20jobs?jobs=2",
    "gen/synergy-128?load=7": "gen/20jobs?jobs=3",
    'base = "gen/50jobs"': 'base = "gen/20jobs?jobs=5&slot_s=3600"',
    "gen/50jobs --policy": "paper/hadar-fig1 --policy",
    "gen/20jobs --policy exec": "paper/hadar-fig1 --policy exec",
    "gen/50jobs": "gen/20jobs",
    "gen/20jobs?utility": "gen/20jobs?jobs=3&slot_s=7200&utility",
    "--solution p1.sol": "--solution p1.sol --no-bound",
    "gen/20jobs --json": "paper/hadar-fig1 --json",
    "gen/20jobs --problem": "paper/hadar-fig1 --no-bound --problem",
    "gen/20jobs --method hadar.p1": "paper/hadar-fig1 --method hadar.p1",
    "hadar.p1 --instance gen/20jobs": "hadar.p1 --instance paper/hadar-fig1",
    "--until-h 12": "--until-h 1",
    "synergy/table5": "synergy/table5 --quick",
    "--claim 'oef.property.*'": "--claim oef.property.maxmin.envy-free",
    "harness audit": "harness audit --claim 'oef.slip.*'",
    "--budget 300s": "--budget 30m --tries 2",
    "sg.audit(effort=0.02)": "sg.audit(claims='oef.slip.*')",
    "sg.worst_cases()": "sg.worst_cases(['hadar-late', 'zhou-lone'])",
    "gen/oef-scale?tenants=3000": "gen/oef-scale?tenants=301",
    "--library DIR": "--library DIR --instance paper/oef-eq1 --known run",
    "harness compare --instance my.json": "harness compare --instance my.json --method hadar.srtf --method hadar.p1",
    "sweeps/solvers.toml": "mine.toml",
    "sweeps/knowledge.toml": "mine.toml",
    "harness fit my.json": "harness fit gen/oef-20",
    "load = [0.6, 1.0, 1.4], seed = [1, 2, 3]": "load = [0.6]",
    "harness diff results/<a> results/<b>": "harness diff run run",
    "results/<run>": "run",
    "results/<a>": "run",
    "results/<b>": "other",
}
"""Parts of commands that would take long, and what tests run in their place."""

SWEEP = """
title = "Two rules"
methods = ["oef.efficiency", "oef.maxmin"]
[[grids]]
base = "gen/oef-20"
vary = { seed = [1] }
"""

FILES = {
    "cluster_job_log.csv": SAMPLES["philly"],
    "cluster_log.csv": SAMPLES["helios"],
    "log.txt": SAMPLES["sacct"],
    "pbs.txt": SAMPLES["pbs"],
    "lsb.acct": SAMPLES["lsf"],
    "jobs.json": SAMPLES["kubernetes"],
    "trace.swf.gz": SAMPLES["swf"],
    "log.csv": "job,queued_at,begin,finish,n_gpu,who\na,0,10,100,1,x\nb,5,50,140,2,y\n",
    "list.csv": NODES,
    "philly_first20000.csv": "timestamp,duration,num_gpus,gpu_time,cluster\n"
    + "".join(f"2017-10-0{1 + i % 3} 0{i % 9}:00:00,{60 + i * i}.0,{1 + i % 2},1.0,a\n" for i in range(60)),
    "pai_task_table.csv": SAMPLES["pai2020"],
    "pai_job_table.csv": PAI_JOBS,
    "my.trace": GAVEL_NEW,
    "rates.json": TABLE,
    "mine.toml": SWEEP,
}


def blocks(language: str, text: str = "".join(PAGES.values())) -> list[str]:
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, flags=re.S | re.M)
    return [block for name, block in found if name == language]


def lines(page: str) -> list[str]:
    """Return the commands that a page shows, without the remarks beside them."""
    code = (line for name in ("", "console") for block in blocks(name, PAGES[page]) for line in block.splitlines())
    return [re.split(r"\s{3,}", line)[0] for line in code if line.startswith(("harness ", "g++ ", *ELSEWHERE))]


def smaller(text: str) -> str:
    for said, run in SMALLER.items():
        text = text.replace(said, run)
    return text


def options(words: list[str]) -> set[str]:
    """Return the options that a command knows; the command is the first of the words, or ``harness`` itself."""
    known: Any = get_command(app)
    command = known if words[0].startswith("--") else known.get_command(None, words[0])
    return {name for p in command.params for name in (*p.opts, *p.secondary_opts)}


def words_of(line: str) -> list[str]:
    """Return the words after ``harness`` of a command, made smaller: one process, quick, without figures."""
    words = shlex.split(smaller(line))[1:]
    limited = {"--time-limit", "--nodes", "--quick"} & set(words)
    added = ["--jobs", "1"], ["--no-report"], *[["--quick"]] * (not limited)
    words += [word for given in added if given[0] in options(words) for word in given]
    return [found for word in words for found in (map(str, Path().glob(word)) if word.endswith("/*") else [word])]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all files that pages mention."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        content = text.encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (folder / "equal_split.py").write_text(*[code for code in blocks("python") if "@sg.heuristic" in code])
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name, instance in (("run", "paper/oef-eq1"), ("other", "paper/oef-eq6")):
        made = compare(instance, "oef.maxmin", bound=False, jobs=1, results=folder).folder
        assert made
        made.rename(folder / name)
    decisions.save(compare_here(load("paper/hadar-fig1"), "hadar.fifo"), folder)
    (folder / "hadar.fifo.csv").rename(folder / "mine.csv")
    return folder


@pytest.fixture
def desk(files: Path, command: Command, tmp_path: Path) -> Iterator[Command]:
    """Return a function that runs a command in a folder of its own, which has these files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    yield command
    plugins.restore(())


def run(page: str, desk: Command) -> None:
    """Run the commands of a page in order, and check that they succeed."""
    for line in lines(page):
        if line.startswith("g++ "):
            subprocess.run(shlex.split(line), check=True)
        elif line.startswith("harness "):
            if "--solution" in line:
                solve("p1.mps.gz", "p1.sol")
            first, _, then = line.partition(" | ")
            done = desk(*words_of(first))
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            if then:
                subprocess.run(then, shell=True, check=True, input=done.stdout, text=True)


def solve(model: str, answer: str) -> None:
    """Solve a model file and write the solution, as a user's own solver would."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(model)
    solver.run()
    solver.writeSolution(answer, 0)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "extend" and "harness" in " ".join(lines(page))])
def test_the_commands_of_a_page_run(page: str, desk: Command) -> None:
    if page == "scheduler" and not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    run(page, desk)


def test_the_heuristic_of_the_pages_runs_and_is_verified(desk: Command, tmp_path: Path) -> None:
    run("extend", desk)
    (folder,) = (tmp_path / "results").iterdir()
    (row,) = [row for row in read_run(folder).rows if row.method == "oef.equal_split"]
    assert (row.status, row.verified) == ("feasible", True)


def test_the_scheduler_of_its_page_runs_at_the_first_try(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = blocks("python", PAGES["scheduler"])
    program = tmp_path / "my_sched.py"
    program.write_text(code)
    program.chmod(0o755)
    words = ("--policy", "exec:./my_sched.py", "--no-report", "--format", "json")
    run = command("simulate", "--instance", "paper/hadar-fig1", *words)
    assert run.returncode == 0, run.stderr
    (row,) = json.loads(run.stdout)
    assert (row["status"], row["verified"]) == ("done", True)


@pytest.mark.parametrize("sender", [">", "<"])
def test_the_lines_of_the_protocol_are_those_that_programs_read_and_write(sender: str) -> None:
    (shown,) = [block for block in blocks("", PAGES["scheduler"]) if block.startswith("> {")]
    messages = re.findall(rf"^{sender} (.*(?:\n +.*)*)", shown, re.MULTILINE)
    texts = ["".join(part.strip() for part in one.splitlines()).replace(", …", "") for one in messages]
    kinds: list[Any] = [Ready, Answer] if sender == "<" else [Hello, Round, End]
    assert len(texts) == len(kinds)
    for text, kind in zip(texts, kinds, strict=True):
        read = kind.model_validate_json(text)
        assert json.loads(read.model_dump_json(exclude_unset=True)) == json.loads(text)


def test_the_notebook_lines_of_the_pages_run() -> None:
    (code,) = [block for block in blocks("python") if "sg.compare(instance" in block]
    scope: dict[str, Any] = {}
    exec(compile(smaller(code), "studies", "exec"), scope)
    assert scope["comparison"].ok
    assert not scope["comparison"].table.empty


def test_from_a_sweep_to_a_figure_in_five_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = [block for block in blocks("python", PAGES["studies"]) if "sg.sweep(" in block]
    assert len([line for line in code.splitlines() if line and "import" not in line]) == 5
    scope: dict[str, Any] = {}
    exec(compile(code, "studies", "exec"), scope)
    assert scope["found"].ok
    assert len(scope["found"].rows) == 18
    assert (tmp_path / "gap-by-load.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("page", ["gallery", "claims"])
def test_the_cells_of_a_page_run(page: str) -> None:
    scope: dict[str, Any] = {}
    for cell in blocks("{code-cell} python", PAGES[page]):
        exec(compile(smaller(cell).rpartition("---\n")[2], page, "exec"), scope)
    assert scope["example" if page == "gallery" else "result"].rows


def test_the_sweep_of_the_pages_runs(command: Command, tmp_path: Path) -> None:
    (sweep,) = blocks("toml", PAGES["studies"])
    (tmp_path / "mine.toml").write_text(smaller(sweep))
    done = command(*words_of("harness sweep mine.toml"))
    assert done.returncode == 0, done.stderr


def test_the_setting_of_the_pages_is_one(tmp_path: Path) -> None:
    (part,) = blocks("toml", PAGES["figures"])
    path = tmp_path / "mine.toml"
    path.write_text(f'title = "A title"\nplace = "Fig. 1"\n{part}')
    assert setting.read(path).orders


def test_every_command_within_a_sentence_exists() -> None:
    said = [line for text in PAGES.values() for line in re.findall(r"`(harness [^`]+)`", text.replace("\n", " "))]
    assert len(said) >= 20
    for line in said:
        words = shlex.split(line)[1:]
        assert {word for word in words if word.startswith("--")} <= options(words), line


def test_the_numbers_pasted_into_the_readme_are_todays() -> None:
    run = compare("paper/oef-eq1", papers="oef")
    rows = {row.method: row for row in run.rows}
    (pasted,) = [printed(block) for block in blocks("", README) if re.search("^ method", block, re.MULTILINE)]
    assert len(pasted) == 10
    columns = {column.header: column for column in COMPARE}
    for method, cells in pasted:
        del cells["solve"]  # seconds differ each time
        assert {header: columns[header].text(rows[method]) for header in cells} == cells
    shown = [" ".join(block.text.split()) for block in blocks_of(run) if isinstance(block, Line)]
    readme = " ".join(README.split())
    answer, priced = shown[0], next(line for line in shown if line.startswith("prices: "))
    assert answer in readme
    assert priced in readme


def test_the_layout_of_the_readme_is_the_layout() -> None:
    for name in re.findall(r"^(\w+)/  ", README, flags=re.M):
        assert Path(ROOT / name).is_dir()
    assert (ROOT / "results/reference/oef-eq1-efficiency.png").exists()


def test_make_notebooks_installs_jupyter_once_and_opens_the_lessons(tmp_path: Path) -> None:
    def planned() -> list[str]:
        command = ["make", "--dry-run", "--no-print-directory", "notebooks", f"VENV={tmp_path}"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()

    opened = f"{tmp_path}/bin/jupyter lab notebooks/ --LabApp.default_url=/lab/tree/README.md"
    first = planned()
    assert any(line.endswith("install --quiet --editable '.[notebooks]'") for line in first)
    assert first[-1] == opened
    for stamp in (".installed", ".notebooks"):
        (tmp_path / stamp).touch()
    assert planned() == [opened]
