"""Sweep files: what they expand to, which are refused, and that they run as one comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT
from typer.testing import CliRunner

from harness import sweeping
from harness.cli import app
from harness.sweeping import Sweep, read, run_sweep
from instances.catalogue import load
from instances.errors import UsageError

FILES = sorted((ROOT / "sweeps").glob("*.toml"), key=lambda path: (len(path.name), path.name))

SMALL = """
title = "mine"
instances = ["paper/oef-eq1"]
methods = ["oef.cooperative", "oef.gandiva_fair"]
time_limit_s = 20

[[grids]]
base = "gen/oef-20?seed=3"
vary = { tenants = [3, 4], arrivals = ["start"] }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_grid_is_the_product_of_its_lists(tmp_path: Path) -> None:
    sweep = read(written(tmp_path, SMALL.replace('["start"]', '["start", "poisson"]')))
    assert sweep.references == [
        "paper/oef-eq1",
        "gen/oef-20?seed=3&tenants=3&arrivals=start",
        "gen/oef-20?seed=3&tenants=3&arrivals=poisson",
        "gen/oef-20?seed=3&tenants=4&arrivals=start",
        "gen/oef-20?seed=3&tenants=4&arrivals=poisson",
    ]
    assert (sweep.seeds, sweep.time_limit_s, sweep.all_sizes) == ((0,), 20.0, False)


def test_a_base_without_parameters_and_values_that_need_quoting(tmp_path: Path) -> None:
    text = SMALL.replace("?seed=3", "").replace('["start"]', '["a&b=c d"]')
    assert read(written(tmp_path, text)).references[1] == "gen/oef-20?tenants=3&arrivals=a%26b%3Dc%20d"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("methods =", "method =", "mine.toml: methods: missing: ids or patterns of methods ('oef.*'), one or more"),
        ("title =", "titel = 1\ntitle =", "mine.toml: titel: unknown field"),
        ("vary = { tenants = [3, 4]", "vary = { tenants = []", "mine.toml: grids[0].vary.tenants = []"),
        ('vary = { tenants = [3, 4], arrivals = ["start"] }', "vary = {}", "mine.toml: grids[0].vary = {}: a list of"),
        ("tenants = [3, 4]", "tenants = 3", "mine.toml: grids[0].vary.tenants = 3: "),
        ("tenants = [3, 4]", "tenants = [[3]]", "mine.toml: grids[0].vary.tenants[0]"),
        ("oef.cooperative", "oef.cooperativ", "mine.toml: unknown method 'oef.cooperativ'; did you mean oef.coop"),
        ('["oef.cooperative", "oef.gandiva_fair"]', "[]", "mine.toml: methods = []: ids or patterns"),
        ("time_limit_s = 20", "time_limit_s = 0", "mine.toml: time_limit_s = 0: seconds each solve may take, positive"),
        ("time_limit_s = 20", 'papers = ["gandiva"]', "mine.toml: unknown paper 'gandiva'"),
        ("time_limit_s = 20", "seeds = []", "mine.toml: seeds = []: seeds of heuristics and solver, one or more"),
        ("[[grids]]", "[[grid]]", "mine.toml: grid: unknown field"),
        ("title =", "title", "mine.toml: not valid TOML"),
        ("time_limit_s = 20", "time_limit_s = 2020-01-01", "mine.toml: "),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = written(tmp_path, SMALL.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)


def test_a_sweep_of_nothing_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 'title = "x"\nmethods = ["oef.cooperative"]\n')
    with pytest.raises(UsageError, match=r"instances = \[\]: one or more references here, or in \[\[grids\]\]"):
        read(path)


def test_too_many_instances_are_refused_before_they_are_written_out(tmp_path: Path) -> None:
    many = ", ".join(map(str, range(1000)))
    wide = f"vary = {{ a = [{many}], b = [{many}], c = [{many}] }}"
    text = SMALL.replace('vary = { tenants = [3, 4], arrivals = ["start"] }', wide)
    with pytest.raises(UsageError, match="grids = 1000000001 instances: at most 1000; to raise it"):
        read(written(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gen/oef-20?seed=3", "gen/oef-21", "unknown instance 'gen/oef-21'; did you mean gen/oef-20"),
        ("tenants = [3, 4]", "tenant = [3, 4]", "unknown parameter 'tenant'; did you mean tenants?"),
        ("tenants = [3, 4]", "seed = [3, 4]", "'seed' is given twice"),
        ("tenants = [3, 4]", "tenants = [3, 3]", "two of the instances have the same content; name each once"),
        ("time_limit_s = 20", "seeds = [1, 1]", "seeds = 1, 1: name each seed once"),
        ("time_limit_s = 20", "seeds = [-1]", "seed"),
    ],
)
def test_instances_that_cannot_be_are_refused_before_anything_runs(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = written(tmp_path, SMALL.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        run_sweep(path, results=tmp_path)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["none.toml", "mine.json", "."])
def test_what_is_no_sweep_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"no such file|a sweep file ends in \.toml"):
        read(tmp_path / name)


def test_the_command_runs_resumes_and_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweeping, "MAX_INSTANCES", 3)
    path = written(tmp_path, SMALL)
    first = CliRunner().invoke(app, ["sweep", "mine.toml", "--jobs", "1", "--no-report", "--format", "json"])
    assert first.exit_code == 0, first.output
    rows = json.loads(first.stdout)
    assert [(row["instance"], row["method"]) for row in rows] == [
        (name, method)
        for name in ("paper/oef-eq1", *(f"gen/oef-20?arrivals=start&seed=3&tenants={n}" for n in (3, 4)))
        for method in ("oef.cooperative", "oef.gandiva_fair")
    ]
    (folder,) = (tmp_path / "results").iterdir()
    assert json.loads((folder / "run.json").read_text())["command"] == "harness sweep mine.toml"
    ran: list[int] = []
    again = run_sweep(path, jobs=1, resume=folder, on_start=ran.append)
    assert ran == [0]
    assert [row.objective for row in again.rows] == [row["objective"] for row in rows]


# the sweeps that come with the project ------------------------------------------------------------


def test_zhou_figures_are_all_there() -> None:
    assert [path.stem for path in FILES if path.stem.startswith("zhou")] == [f"zhou-fig{n}" for n in range(2, 13)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_can_be_run(path: Path) -> None:
    sweep: Sweep = read(path)
    assert sweep.title
    assert sweep.source
    references = sweep.references
    assert len(set(references)) == len(references)
    names = {load(ref).name for ref in references}
    assert len(names) == len(references)
