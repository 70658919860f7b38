"""Rows that are kept of a run without its decisions: the page on solve times shows the same of them as of the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import schedgap as sg
from schedgap.harness.studies.compare.kept import kept, measured, read_kept
from schedgap.harness.studies.compare.row import Comparison
from schedgap.harness.studies.statistics import statistics
from schedgap.instances.errors import UsageError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two methods of OEF on four sizes, with saved results."""
    sizes = [f"gen/oef-20?tenants={n}" for n in (3, 6, 12, 24)]
    results = tmp_path_factory.mktemp("results")
    return sg.compare(sizes, ["oef.maxmin", "oef.gandiva_fair"], bound=False, jobs=1, results=results)


@pytest.fixture(scope="module")
def file(run: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("kept") / "growth" / "oef.json"
    subprocess.run([sys.executable, ROOT / "sweeps/keep.py", run.folder, target], check=True)
    return target


def test_kept_rows_show_the_same_growth_as_the_run(run: Comparison, file: Path) -> None:
    back = read_kept(file)
    assert kept(back) == file.read_text()
    assert [(row.method, row.solve_s) for row in back.rows] == [(row.method, row.solve_s) for row in run.rows]
    assert (found := statistics(back).growth) == statistics(run).growth
    assert {one.method for one in found} == {"oef.maxmin", "oef.gandiva_fair"}
    (before,), (after,) = (sg.figures(one, "scaling") for one in (run, back))
    assert after.svg == before.svg


def test_kept_rows_say_where_they_were_measured(run: Comparison, file: Path) -> None:
    said = measured(read_kept(file))
    for part in (*run.meta["machine"].values(), *run.meta["versions"].values(), run.meta["load"]):
        assert part in said
    assert "ended early" not in said
    assert "ended early" in measured(Comparison({**run.meta, "interrupted": True}, []))


def test_other_files_and_other_instances_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the kept rows"):
        read_kept(ROOT / "results/reproductions.json")
    (other := tmp_path / "other.json").write_text(file.read_text().replace("tenants=3", "tenants=4"))
    with pytest.raises(UsageError, match=r"oef-20\?tenants=4 has another content"):
        read_kept(other)


@pytest.mark.parametrize(("name", "ignored"), [("jobs.json", False), ("jobs/run.json", True)])
def test_git_keeps_the_rows_of_growth_and_no_folders(name: str, ignored: bool) -> None:
    told = subprocess.run(["git", "-C", ROOT, "check-ignore", "-q", f"results/growth/{name}"], check=False)
    if told.returncode > 1:
        pytest.skip("not a git checkout")
    assert (told.returncode == 0) == ignored
