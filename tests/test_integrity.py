"""Results folders that are damaged or come from a stranger are noticed, salvaged, and never followed outside."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Command

import schedgap as sg
from schedgap.harness.engine import sealed
from schedgap.harness.engine.result import encode, packed
from schedgap.harness.engine.sealed import digests
from schedgap.harness.show.page import blocks
from schedgap.harness.studies.folders import check, reopen
from schedgap.instances.errors import UsageError
from schedgap.instances.views.oef import Allocation

METHODS = ("oef.cooperative", "oef.gavel", "oef.maxmin")
FLIPS = 80


@pytest.fixture(scope="module", params=["compare", "simulate", "audit"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small run: a comparison, a simulation or an audit."""
    results = tmp_path_factory.mktemp("runs")
    found = {
        "compare": lambda: sg.compare("paper/oef-eq1", METHODS, jobs=1, bound=False, results=results),
        "simulate": lambda: sg.simulate("paper/hadar-fig1", ["srtf"], jobs=1, results=results),
        "audit": lambda: sg.audit(claims=["oef.slip.*"], effort=0.1, jobs=1, results=results),
    }[request.param]()
    return Path(found.folder)


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of a comparison's folder, which tests may damage."""
    kept = tmp_path_factory.getbasetemp() / "kept"
    if not kept.exists():
        shutil.copytree(
            str(sg.compare("paper/oef-eq1", METHODS, jobs=1, bound=False, results=tmp_path / "new").folder), kept
        )
    return Path(shutil.copytree(kept, tmp_path / "run"))


def everything(path: Path) -> str:
    """Return as text all that a folder contains: settings, rows, decisions and histories."""
    found = reopen(path)
    kept = {name: dict(getattr(found, name)) for name in ("decisions", "traces") if isinstance(found, sg.Comparison)}
    return repr((found.meta, [row.as_dict() for row in found.rows], kept))


def test_a_flipped_bit_is_noticed_or_without_effect(run: Path, tmp_path: Path) -> None:
    """A flipped bit in a results folder is noticed, or it changes nothing that is read."""
    rng = np.random.default_rng(1)
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    assert all(not wrong for *_, wrong in check(folder))
    before = everything(folder)
    names = ("run.json", "journal.jsonl", "instances/*", "schedules/*", "witnesses/*")
    files = [path for name in names for path in folder.glob(name)]
    for _ in range(FLIPS):
        path = files[int(rng.integers(len(files)))]
        whole = path.read_bytes()
        spoiled = bytearray(whole)
        spoiled[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoiled)
        try:
            noticed = bool(reopen(folder).meta["damaged"])
        except UsageError as error:
            noticed = "damaged results" in str(error)
        assert noticed or everything(folder) == before, path.name
        path.write_bytes(whole)


def test_one_damaged_file_leaves_the_other_rows(folder: Path, command: Command) -> None:
    (spoiled,) = folder.glob("schedules/oef.gavel-*")
    spoiled.write_bytes(spoiled.read_bytes()[:-1])
    (folder / ".rows.parquet.x1.partial").write_bytes(b"a kill left it")
    kept = reopen(folder)
    assert [row.method for row in kept.rows] == ["oef.cooperative", "oef.maxmin"]
    assert kept.meta["damaged"] == [f"schedules/{spoiled.name} is not as it was written (its digest differs)"]
    told = command("report", folder)
    assert (told.returncode, "left out: " + kept.meta["damaged"][0] in told.stderr) == (0, True)
    assert command("verify", folder).returncode == 1
    ran: list[str] = []
    again = sg.compare(
        "paper/oef-eq1", METHODS, bound=False, resume=folder, on_result=lambda result: ran.append(result.row.method)
    )
    assert (ran, len(again.rows)) == (["oef.gavel"], 3)
    assert not list(folder.glob(".*.partial"))
    assert command("verify", folder).returncode == 0


def test_a_damaged_line_is_named_until_its_result_is_there_again(folder: Path) -> None:
    lines = (folder / "journal.jsonl").read_bytes().splitlines()
    lines.sort(key=lambda line: b'"helps"' in line)  # heuristics beside the models come last
    (folder / "journal.jsonl").write_bytes(
        b"\n".join([lines[0], lines[1][:-9] + bytes([lines[1][-9] ^ 1]) + lines[1][-8:], *lines[2:]]) + b"\n"
    )
    kept = reopen(folder)
    assert (len(kept.rows), kept.meta["damaged"]) == (2, ["1 damaged line of the journal, 1 result missing"])
    (folder / "journal.jsonl").write_bytes(lines[0] + b"\n")
    assert reopen(folder).meta["damaged"] == [f"{len(lines) - 1} results missing from the journal"]
    sg.compare("paper/oef-eq1", METHODS, bound=False, resume=folder)
    assert (len(reopen(folder).rows), reopen(folder).meta["damaged"]) == (3, [])


def test_ctrl_c_while_a_run_is_resumed_leaves_its_tables_whole(folder: Path) -> None:
    def interrupt(tasks: int) -> None:
        raise KeyboardInterrupt

    whole = pd.read_parquet(folder / "rows.parquet")
    other = sg.compare("paper/oef-eq1", ["oef.rounding"], bound=False, resume=folder, on_start=interrupt)
    assert (other.interrupted, len(other.rows)) == (True, 3)
    assert pd.read_parquet(folder / "rows.parquet").equals(whole)


def forge(folder: Path, change: Callable[[Any], Any], name: str = "run.json") -> None:
    """Change ``run.json``, or every line of the journal, and write right digests, as a forger can."""
    lines = (folder / name).read_text().splitlines() if name == "journal.jsonl" else [(folder / name).read_text()]
    content = [json.loads(line) for line in lines]
    forged = [sealed.sealed(change({k: v for k, v in one.items() if k != sealed.SEAL})) for one in content]
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in forged))


def pack(folder: Path, content: bytes) -> None:
    """Replace all schedules by `content`, with right digests."""
    files = {f"schedules/{path.name}": content for path in folder.glob("schedules/*")}
    for name in files:
        (folder / name).write_bytes(content)
    mine = digests(files)
    forge(
        folder,
        lambda line: line | {"files": {name: mine.get(name, kept) for name, kept in line["files"].items()}},
        "journal.jsonl",
    )


def link(path: Path, target: str) -> None:
    """Replace a file by a symbolic link to `target`."""
    path.unlink()
    path.symlink_to(target)


def pipe(path: Path) -> None:
    """Replace a file by a named pipe to which nothing is written."""
    path.unlink()
    os.mkfifo(path)


def row(**changes: Any) -> Callable[[Path], None]:
    """Return a function that changes these fields in all rows of a folder."""
    return lambda folder: forge(folder, lambda line: line | {"row": line["row"] | changes}, "journal.jsonl")


HOSTILE: dict[str, Callable[[Path], None]] = {
    "run.json a pipe": lambda folder: pipe(folder / "run.json"),
    "run.json endless": lambda folder: link(folder / "run.json", "/dev/zero"),
    "journal a pipe": lambda folder: pipe(folder / "journal.jsonl"),
    "journal endless": lambda folder: link(folder / "journal.jsonl", "/dev/zero"),
    "an instance of another folder": lambda folder: forge(folder, lambda d: d | {"instances": {"../../secret": "x"}}),
    "instances elsewhere": lambda folder: link(next(folder.glob("instances/*")), "/etc/hostname"),
    "schedules elsewhere": lambda folder: [link(path, "/etc/hostname") for path in folder.glob("schedules/*")],  # type: ignore[dict-item,return-value]
    "a bomb": lambda folder: pack(folder, gzip.compress(bytes(2_000_000))),
    "a bomb of lists": lambda folder: pack(folder, gzip.compress(b"[" + b"[]," * 300_000 + b"[]]")),
    "many lines": lambda folder: (folder / "journal.jsonl").write_bytes(b"{}\n" * 20_000),  # type: ignore[dict-item,return-value]
    "nested deeply": lambda folder: pack(folder, gzip.compress(b"[" * 10**5)),
    "no decision": lambda folder: pack(folder, gzip.compress(b"[1]")),
    "another decision": lambda folder: pack(folder, packed(encode(Allocation(np.ones((1, 1)))))),
    "no version": lambda folder: (folder / "run.json").write_text("{}"),  # type: ignore[dict-item,return-value]
    "another version": lambda folder: forge(folder, lambda run: run | {"schema_version": 99}),
    "a journal of another run": lambda folder: forge(folder, lambda line: {**line, "trace": [[1, 2]]}, "journal.jsonl"),
    "an unknown problem": row(problem="oef.none"),
    "an unknown paper": row(paper="none"),
}


FALSE: dict[str, dict[str, Any]] = {
    "another sense": {"sense": "min"},
    "no number": {"own_bound": float("nan")},
    "another property": {"metrics": {"envy_free": False}},
}


@pytest.mark.parametrize("lie", FALSE, ids=str)
def test_what_a_row_says_beside_its_objective_is_checked(lie: str, folder: Path) -> None:
    row(**FALSE[lie])(folder)
    assert all(wrong for *_, wrong in check(folder))


def test_a_history_is_that_of_its_row_and_a_bound_is_about_its_metric(tmp_path: Path) -> None:
    found = sg.simulate("paper/hadar-fig1", ["gavel"], jobs=1, results=tmp_path)
    assert found.folder

    def change(line: dict[str, Any]) -> dict[str, Any]:
        if line["record"] == "simulation":
            return line | {"row": line["row"] | {"gru": 0.5}}
        other = {"ttd_s": "jct_mean_s", "jct_mean_s": "ttd_s"}
        return line | {"bound": line["bound"] | {"metric": other.get(line["bound"]["metric"], "jct_p99_s")}}

    forge(found.folder, change, "journal.jsonl")
    wrong = {result.split(":")[0]: text for result, _, text in check(found.folder)}
    assert "another gru" in wrong["hadar.gavel"]
    assert "does not bound jct_mean_s" in wrong["gavel.makespan_fluid"]
    assert "does not bound ttd_s" in wrong["gavel.jct"]
    assert not wrong["gavel.jct_p99"]


def test_a_schedule_is_checked_for_the_claims_of_its_method(tmp_path: Path) -> None:
    """A schedule without restarts is refused if its method claims restarts, as its jobs then do too little work."""
    methods = ["zhou.ps.tiresias", "zhou.ps.tiresias?restart_slots=6"]
    found = sg.compare("gen/20jobs", methods, jobs=1, bound=False, results=tmp_path)
    free, _ = found.rows
    assert found.folder
    (content,) = (path.read_bytes() for path in found.folder.glob("schedules/*tiresias-*"))
    pack(found.folder, content)
    row(objective=free.objective, metrics=free.metrics)(found.folder)
    (_, _, right), (_, _, wrong) = check(found.folder)
    assert not right
    assert "mini-batches" in wrong


@pytest.mark.parametrize("attack", HOSTILE, ids=str)
def test_a_strangers_folder_ends_in_one_line(
    attack: str, folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "MAX_UNPACKED_MB", 1)
    monkeypatch.setattr(sealed, "MAX_READ_MB", 10)
    monkeypatch.setattr("schedgap.instances.canonical.MAX_FILE_MB", 1)
    HOSTILE[attack](folder)
    for words in (("report", folder), ("verify", folder), ("diff", folder, folder)):
        told = command(*words)
        assert told.returncode in (0, 1, 2)
        assert "Traceback" not in told.stderr
        assert len(told.stderr.splitlines()) <= 6, told.stderr
    assert command("verify", folder).returncode != 0


def test_figures_are_not_written_through_a_link(folder: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "figures").symlink_to(tmp_path / "elsewhere")
    command("report", folder)
    assert not list((tmp_path / "elsewhere").iterdir())


WRONG = (None, "x", -1, [], {}, [None], {"a": [1]}, 1e308, True)


@pytest.mark.parametrize("name", ["run.json", "journal.jsonl"])
def test_values_of_a_wrong_type_are_refused_or_harmless(name: str, folder: Path) -> None:
    kept = (folder / name).read_bytes()
    content = json.loads(kept.splitlines()[0]) if name == "journal.jsonl" else json.loads(kept)
    places = [(key,) for key in content] + [("row", key) for key in content.get("row", {})]
    rng = np.random.default_rng(0)
    for place in places:
        wrong = WRONG[int(rng.integers(len(WRONG)))]

        def spoil(data: dict[str, Any], place: tuple[str, ...] = place, wrong: Any = wrong) -> dict[str, Any]:
            inner = data[place[0]] | {place[1]: wrong} if len(place) == 2 else wrong
            return data | {place[0]: inner}

        forge(folder, spoil, name)
        with suppress(UsageError):
            blocks(reopen(folder))
        (folder / name).write_bytes(kept)
