"""What the README shows is true: its code runs, its commands exist, its printed numbers are those of today."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from typer.main import get_command

from schedgap import instances
from schedgap.harness.cli import app
from schedgap.harness.compare.run import compare
from schedgap.harness.compare.task import MethodTask
from schedgap.heuristics import HEURISTICS
from schedgap.instances.canonical import to_json

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


@pytest.fixture
def forgetful_registry() -> Iterator[None]:
    """Take away what a test has registered."""
    before = dict(HEURISTICS._entries)
    yield
    HEURISTICS._entries.clear()
    HEURISTICS._entries.update(before)


@pytest.mark.usefixtures("forgetful_registry")
def test_the_heuristic_of_the_readme_runs_and_is_verified() -> None:
    (code,) = [block for block in blocks("python") if "HeuristicSpec(" in block]
    exec(compile(code, "README", "exec"), {})
    instance = instances.load("gen/20jobs")
    row = MethodTask(to_json(instance), instance.name, instance.fingerprint, "oef.fastest_first").run().row
    assert (row.status, row.verified) == ("feasible", True)


def test_the_notebook_lines_of_the_readme_run() -> None:
    (code,) = [block for block in blocks("python") if "from schedgap import harness" in block]
    scope: dict[str, Any] = {}
    exec(compile(code, "README", "exec"), scope)
    assert scope["comparison"].ok
    assert not scope["comparison"].table.empty


def test_every_command_of_the_readme_exists() -> None:
    command: Any = get_command(app)
    lines = [line for block in blocks("") for line in block.splitlines() if line.startswith("harness ")]
    assert len(lines) >= 5
    for line in lines:
        words = shlex.split(re.split(r"\s{3,}", line)[0])
        assert words[1] in command.commands, line
        options = {name for p in command.commands[words[1]].params for name in (*p.opts, *p.secondary_opts)}
        for word in words[2:]:
            assert not word.startswith("-") or word in options, line


def test_the_numbers_pasted_into_the_readme_are_todays() -> None:
    rows = {row.method: row for row in compare("paper/oef-eq1").rows}
    pasted = re.findall(r"^ (oef\.\w+) +\w+ +(?:exact|baseline) +([\d.]+) +([\d.]+)", README, flags=re.M)
    assert len(pasted) >= 6
    for method, objective, bound in pasted:
        assert f"{rows[method].objective:.4g}" == objective
        assert f"{rows[method].best_bound:.4g}" == bound


def test_the_layout_of_the_readme_is_the_layout() -> None:
    for name in re.findall(r"^(\w+)/  ", README, flags=re.M):
        assert Path(ROOT / name).is_dir()
    assert (ROOT / "results/reference/oef-eq1-efficiency.png").exists()
