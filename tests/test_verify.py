"""``harness verify`` names every result that a forger changes in a journal, even with right digests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from conftest import Command
from test_integrity import digests, forge

import schedgap as sg
from schedgap.harness.show.measures import SIMULATE
from schedgap.harness.studies.compare.consistent import TOLD
from schedgap.harness.studies.compare.row import OF_METHODS, TOGETHER
from schedgap.harness.studies.folders import Checked, check, reopen
from schedgap.harness.studies.simulate.row import MEASURED
from schedgap.instances.canonical import to_json

DAY = "gen/20jobs?jobs=3&servers_per_type=1&slot_s=21600"

RUNS: dict[str, Callable[[Path], Any]] = {
    "oef": lambda to: sg.compare(
        "paper/oef-eq1",
        ["oef.cooperative", "oef.rounding", "oef.efficiency", "hadar.online"],
        jobs=1,
        bound=False,
        results=to,
    ),
    "hadar": lambda to: sg.compare(DAY, ["hadar.p2.columns", "hadar.online"], jobs=1, results=to),
    "zhou": lambda to: sg.compare(DAY, ["zhou.ps.columns", "zhou.ps.online"], jobs=1, results=to),
    "simulate": lambda to: sg.simulate("paper/hadar-fig1", ["srtf", "online"], jobs=1, results=to),
    "audit": lambda to: sg.audit(claims=["oef.slip.*"], effort=0.1, jobs=1, results=to),
    "adversary": lambda to: sg.adversary("oef.rounding", tries=3, seed=1, jobs=1, results=to),
}
"""A small run of each kind of study."""

SILENT = {
    "row": {*TOLD} - {"status", "solver", "seed", "limits", "key"},
    "simulation": {*(n for n in MEASURED if SIMULATE[n].origin != "history"), "seed", "options", "reason"},
    "bound": {"took_s", "round_s", "reason"},
    "finding": {"found", "tested", "failed", "numbers", "seconds", "narrower", "witnesses", "refuted"},
    "slice": {"tried", "proved", "shrunk", "elite", "begun"},
}
"""Fields that no check can contradict, by kind of line; a reader has to trust the run for them."""


@pytest.fixture(scope="module", params=RUNS, ids=str)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(RUNS[request.param](tmp_path_factory.mktemp("runs")).folder)


@pytest.fixture
def folder(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "run"))


def bad(folder: Path) -> list[Checked]:
    return [line for line in check(folder) if line.wrong]


def changed(value: Any) -> Any:
    """Return a different value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 + 1
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, list):
        return value[1:] or ["x"]
    return {name: changed(inner) for name, inner in value.items()} if isinstance(value, dict) and value else 0.5


def inner(line: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a journal line that holds results: its row, its bound, or the line itself."""
    part: dict[str, Any] = line.get("row") or line.get("bound") or line
    return part


def fields(line: dict[str, Any]) -> Iterator[str]:
    yield from (name for name in inner(line) if name not in {"record", "key", "files", "sum"})


def test_every_field_that_is_changed_is_named_with_its_result(folder: Path) -> None:
    assert not bad(folder)
    for table in (line.label for line in check(folder) if line.holds == "as the journal gives it"):
        (folder / table).unlink()  # a forger writes other tables as well
    journal = (folder / "journal.jsonl").read_text()
    lines = [json.loads(line) for line in journal.splitlines()]
    missed, helpers = [], [number for number, line in enumerate(lines) if line.get("helps")]
    for number, line in enumerate(lines):
        for name in fields(line) if number not in helpers[2:] else ():  # two of the probes, which are alike
            if name in SILENT[line["record"]]:
                continue
            at = iter(range(len(lines)))

            def spoil(one: dict[str, Any], name: str = name, number: int = number, at: Any = at) -> dict[str, Any]:
                if next(at) == number:
                    inner(one)[name] = changed(inner(one)[name])
                return one

            forge(folder, spoil, "journal.jsonl")
            if not bad(folder):
                missed.append((line["record"], inner(line).get("method") or inner(line).get("policy"), name))
            (folder / "journal.jsonl").write_text(journal)
    assert not missed


def test_what_a_search_found_is_found_again(tmp_path: Path) -> None:
    folder = Path(RUNS["adversary"](tmp_path).folder)
    journal = (folder / "journal.jsonl").read_text()
    for name in ("model", "ratio", "objective", "optimum", "guarantee", "guarantee_factor"):

        def spoil(line: dict[str, Any], name: str = name) -> dict[str, Any]:
            first, *others = line["elite"]
            return line | {"elite": [first | {name: changed(first.get(name))}, *others]}

        forge(folder, spoil, "journal.jsonl")
        assert len(bad(folder)) == journal.count("\n")
        (folder / "journal.jsonl").write_text(journal)


def test_fields_that_follow_from_others_are_not_taken_from_a_journal(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    if "row" not in lines[0]:
        pytest.skip("its rows are derived from slices or counts")
    derived = {
        "row": {**dict.fromkeys((*TOGETHER, *OF_METHODS), 0.0), "instance": "another"},
        "simulation": dict.fromkeys((name for name, one in SIMULATE.items() if one.origin == "run"), 0.0),
    }
    before = [row.as_dict() for row in reopen(folder).rows]
    for name, value in derived[lines[0]["record"]].items():
        forge(
            folder,
            lambda line, name=name, value=value: line | ({"row": line["row"] | {name: value}} if "row" in line else {}),
            "journal.jsonl",
        )
        assert all(f"row.{name}" in line.wrong for line in bad(folder))
        assert len(bad(folder)) == sum("row" in line for line in lines)
        assert [row.as_dict() for row in reopen(folder).rows] == before
        (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_tables_are_those_of_the_journal(folder: Path) -> None:
    tables = [line.label for line in check(folder) if line.holds == "as the journal gives it"]
    assert tables
    for name in tables:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        assert [line.label for line in bad(folder)] == [name]
        (folder / name).write_bytes(content)


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Return the folder of a comparison in which one method is skipped."""
    methods = ["oef.cooperative", "oef.rounding", "hadar.online"]
    return Path(sg.compare("paper/oef-eq1", methods, jobs=1, bound=False, results=tmp_path).folder)


def test_skipped_rows_do_not_hold(few: Path, command: Command) -> None:
    found = command("verify", few)
    assert found.returncode == 0
    lines = check(few)
    skipped = [line for line in lines if not line.holds]
    assert [line.label for line in skipped] == ["hadar.online: skipped"]
    held = len(lines) - 1
    assert f"{held} of {held} results and tables hold; 1 have nothing to show (skipped, or failed)" in found.stderr


def test_a_row_that_was_moved_to_another_problem_is_named(few: Path, command: Command) -> None:
    """A row is reported if a forger assigns it to another problem than its method's."""

    def move(line: dict[str, Any]) -> dict[str, Any]:
        row = line["row"]
        return line | {"row": row | {"problem": "oef.envy_free"}} if row["method"] == "oef.rounding" else line

    forge(few, move, "journal.jsonl")
    found = command("verify", few, "--format", "json")
    assert found.returncode == 1
    wrong = {line["result"]: line["what is wrong"] for line in json.loads(found.stdout)}
    assert "row.problem" in wrong.pop("oef.rounding: feasible")
    assert not any(wrong.values())
    (row,) = (row for row in reopen(few).rows if row.method == "oef.rounding")
    assert row.problem == "oef.allocation"


def test_a_row_that_contradicts_another_is_named(few: Path) -> None:
    """A row that claims infeasibility is reported if another row has a decision of the same problem."""

    def claim(line: dict[str, Any]) -> dict[str, Any]:
        row = line["row"]
        if row["method"] != "oef.cooperative":
            return line
        nothing = {"objective": None, "verified": None, "metrics": {}, "own_bound": None, "claimed_bound": None}
        return line | {"row": row | nothing | {"status": "infeasible"}, "files": {}, "decided": {}}

    forge(few, claim, "journal.jsonl")
    ((label, _, wrong),) = bad(few)
    assert label == "oef.cooperative: infeasible"
    assert wrong


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "gen/200jobs"}, "it is named gen/200jobs, which is another instance"),
        ({"published": []}, ""),
        ({"published": "another"}, "published numbers that the packaged instance has not"),
    ],
)
def test_names_and_published_numbers_of_packaged_instances_are_theirs(
    few: Path, changes: dict[str, Any], words: str
) -> None:
    """Changed names and published numbers of a packaged instance are reported, although fingerprints ignore them."""
    (file,) = (few / "instances").iterdir()
    content = json.loads(file.read_text())
    if changes.get("published") == "another":
        changes = {"published": [content["published"][0] | {"value": 4.36}]}
    file.write_text(json.dumps(content | changes))
    mine = digests({f"instances/{file.name}": file.read_bytes()})
    forge(few, lambda meta: meta | {"files": meta["files"] | mine})
    wrong = [line for line in bad(few) if line.label.startswith("instances/")]
    assert [words in line.wrong for line in wrong] == [True] * bool(words)


def test_a_file_of_ones_own_does_not_have_the_name_of_a_packaged_instance(tmp_path: Path) -> None:
    content = json.loads(to_json(sg.load("paper/oef-eq1")))
    (tmp_path / "mine.json").write_text(json.dumps(content))
    assert sg.load(str(tmp_path / "mine.json")).name == "paper/oef-eq1", "a copy has"
    (tmp_path / "mine.json").write_text(json.dumps(content | {"name": "gen/200jobs"}))
    assert sg.load(str(tmp_path / "mine.json")).name == "mine"


def test_a_table_that_was_changed_does_not_hold(few: Path) -> None:
    table = pd.read_parquet(few / "rows.parquet")
    table["gap"] = 0.0
    table.to_parquet(few / "rows.parquet")
    rows = [json.loads(line) for line in (few / "rows.jsonl").read_text().splitlines()]
    (few / "rows.jsonl").write_text("".join(json.dumps(row | {"gap": 0.0}) + "\n" for row in rows))
    assert [line.label for line in bad(few)] == ["rows.jsonl", "rows.parquet"]


@pytest.mark.parametrize("entry", [{"name": "x", "kind": "file", "evil": 1}, {"kind": 3}, {"name": "x"}, "x", None])
def test_a_hostile_plug_in_entry_ends_in_words(entry: Any, few: Path, command: Command) -> None:
    forge(few, lambda meta: meta | {"plugins": [entry], "needs": ["x"]})
    found = command("verify", few)
    assert found.returncode == 2
    assert "damaged results: plugins.0" in found.stderr
    assert "__init__" not in found.stderr
