"""Parts for a paper that a run writes: macros with true numbers, references for what was used, and valid TeX."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import schedgap as sg
from schedgap.harness.show.artefact import bibliography, macros, write
from schedgap.harness.show.text import percent
from schedgap.instances.canonical import to_json
from schedgap.instances.errors import UsageError

REFERENCE = "paper/oef-eq1"
HARNESS = Path(sys.executable).with_name("harness")
DEFINED = r"\\schedgapdefine\{([^}]*)\}\{(.*)\}"
tex = pytest.mark.skipif(not shutil.which("lualatex"), reason="LuaLaTeX is not installed (Debian: texlive-luatex)")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return sg.compare(REFERENCE, papers=["oef"], results=tmp_path_factory.mktemp("results"), jobs=1)


@pytest.fixture(scope="module")
def folder(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("paper") / "artefact"
    assert write(run, path) == []
    return path


def test_macros_have_the_numbers_of_the_rows_and_names_of_letters(run: Any) -> None:
    text, rows = macros(run.rows), {row.method: row for row in run.rows}
    defined = dict(re.findall(DEFINED, text))
    assert set(re.findall(r"^\\newcommand\{\\([a-z]+)\}", text, re.M)) >= {"gap", "loss", "price", "bound", "solvetime"}
    assert defined[f"gap|oef.gavel|{REFERENCE}"] == percent(rows["oef.gavel"].gap).replace("%", r"\%")
    bound = float(defined[f"bound|oef.cooperative|{REFERENCE}"])
    assert bound == pytest.approx(rows["oef.cooperative"].best_bound, rel=1e-5)


def test_runs_of_other_commands_have_artefacts_too(tmp_path: Path) -> None:
    simulated = sg.simulate("gen/20jobs?jobs=2", ["fifo", "gavel"], results=tmp_path / "results", jobs=1)
    write(simulated, tmp_path / "simulated")
    (fifo,) = (row for row in simulated.rows if row.policy == "hadar.fifo")
    numbers = (tmp_path / "simulated/numbers.tex").read_text()
    assert rf"\schedgapdefine{{ttd|hadar.fifo|{fifo.instance}}}{{{fifo.ttd_s:.6g}}}" in numbers
    assert "gavel" in bibliography(simulated)
    audited = sg.audit(claims="admission.optimal", results=tmp_path / "results", jobs=1)
    write(audited, tmp_path / "audited")
    assert not (tmp_path / "audited/numbers.tex").read_text().strip()


def test_the_bibliography_has_what_was_used(run: Any) -> None:
    assert {"oef", "gavel", "gandivafair", "highs"} <= set(bibliography(run))
    assert not {"zhou", "philly"} & set(bibliography(run))


def test_a_folder_with_something_in_it_is_refused(run: Any, folder: Path) -> None:
    with pytest.raises(UsageError, match="not empty"):
        write(run, folder)


def test_the_run_holds_and_runs_again_to_the_same_numbers(folder: Path, command: Command) -> None:
    assert command("verify", str(folder / "run")).returncode == 0
    again = subprocess.run(
        ["make", "check", f"HARNESS={HARNESS}"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stdout + again.stderr


def test_each_macro_is_there_once_and_says_what_rows_differ_in() -> None:
    rows = sg.compare(REFERENCE, ["oef.rounding"], seeds=[0, 1], bound=False, jobs=1).rows
    names = [name for name, _ in re.findall(DEFINED, macros(rows))]
    assert len(names) == len(set(names))
    assert {f"objective|oef.rounding|{REFERENCE}, seed {seed}" for seed in (0, 1)} <= set(names)


def test_a_command_is_repeated_with_the_users_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    (tmp_path / "my own").mkdir()
    (tmp_path / "my own" / "case.json").write_text(to_json(sg.load(REFERENCE)))
    monkeypatch.chdir(tmp_path)
    given = "compare", "--instance", "my own/case.json", "--method", "oef.rounding", "--results", "results"
    assert command(*given, "--no-bound", "--no-report").returncode == 0
    (run,) = (tmp_path / "results").iterdir()
    assert command("paper", run, "--output", tmp_path / "paper").returncode == 0
    (tmp_path / "my own" / "case.json").unlink()
    made = subprocess.run(
        ["make", "check", f"HARNESS={HARNESS}"], cwd=tmp_path / "paper", capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr


@tex
def test_tex_sets_the_paper(folder: Path) -> None:
    made = subprocess.run(["make"], cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-2000:]
    log = (folder / "paper.log").read_text(errors="replace")
    assert "undefined" not in log.lower()
    assert "Missing character" not in log


@tex
@pytest.mark.parametrize(("method", "found"), [("oef.gavel", True), ("oef.gabel", False)])
def test_tex_prints_a_number_or_stops_where_there_is_none(run: Any, tmp_path: Path, method: str, found: bool) -> None:
    text = rf"{macros(run.rows)}\begin{{document}}It is \gap{{{method}}}{{{REFERENCE}}}.\end{{document}}"
    (tmp_path / "one.tex").write_text(r"\documentclass{article}" + "\n" + text)
    line = ["lualatex", "-interaction=nonstopmode", "-halt-on-error", "one.tex"]
    made = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (made.returncode == 0) == found, made.stdout[-2000:]
    assert found or f"numbers.tex has no gap of {method} on {REFERENCE}" in made.stdout


@tex
def test_tex_sets_every_explanation(tmp_path: Path) -> None:
    found = "\n".join(sg.explain(paper).latex for paper in ("oef", "admission"))
    text = r"\documentclass{article}\usepackage{amsmath,amssymb}\begin{document}" + found + r"\end{document}"
    (tmp_path / "all.tex").write_text(text)
    line = ["lualatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    made = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-2000:]
