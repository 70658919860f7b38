"""What the README and the pages of the site show is true: code runs, commands exist, printed numbers are today's."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from conftest import ROOT, Command
from typer.main import get_command

from schedgap.harness.cli.app import app
from schedgap.harness.compare.run import compare
from schedgap.instances import plugins

README = (ROOT / "README.md").read_text()
TEXT = README + "".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.S | re.M)
    return [text for name, text in found if name == language]


def commands() -> list[str]:
    return [
        line
        for block in (*blocks(""), *blocks("console"))
        for line in block.splitlines()
        if line.startswith("harness ")
    ]


def test_the_heuristic_of_the_readme_runs_and_is_verified(command: Command, tmp_path: Path) -> None:
    (code,) = [block for block in blocks("python") if "@sg.heuristic" in block]
    (tmp_path / "fastest_first.py").write_text(code)
    (line,) = [line for line in commands() if "--plugin" in line]
    run = command(*shlex.split(line)[1:], "--no-report", "--format", "json")
    rows = {row["method"]: row for row in json.loads(run.stdout)}
    assert (rows["oef.fastest_first"]["status"], rows["oef.fastest_first"]["verified"]) == ("feasible", True)
    plugins.restore(())


def test_the_notebook_lines_of_the_readme_run() -> None:
    (code,) = [block for block in blocks("python") if "sg.compare(instance" in block]
    scope: dict[str, Any] = {}
    exec(compile(code, "README", "exec"), scope)
    assert scope["comparison"].ok
    assert not scope["comparison"].table.empty


def test_every_command_of_the_readme_exists() -> None:
    command: Any = get_command(app)
    assert len(commands()) >= 5
    for line in commands():
        words = shlex.split(re.split(r"\s{3,}", line)[0])
        assert words[1] in command.commands, line
        options = {name for p in command.get_command(None, words[1]).params for name in (*p.opts, *p.secondary_opts)}
        for word in words[2:]:
            assert not word.startswith("-") or word in options, line


def test_the_numbers_pasted_into_the_readme_are_todays() -> None:
    rows = {row.method: row for row in compare("paper/oef-eq1").rows}
    pasted = re.findall(r"^ (oef\.\w+) +[\d.]+ % +[\d.]+ +([\d.]+) +([\d.]+) +\w+", README, flags=re.M)
    assert len(pasted) >= 6
    for method, objective, bound in pasted:
        assert f"{rows[method].objective:.4g}" == objective
        assert f"{rows[method].best_bound:.4g}" == bound


def test_the_layout_of_the_readme_is_the_layout() -> None:
    for name in re.findall(r"^(\w+)/  ", README, flags=re.M):
        assert Path(ROOT / name).is_dir()
    assert (ROOT / "results/reference/oef-eq1-efficiency.png").exists()
