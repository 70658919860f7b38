"""Results folders of any study: read one, check that everything in it holds, and merge several."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from schedgap.harness.engine.folder import (
    DAMAGE,
    Folder,
    damage_explained,
    instance_file,
    new_folder,
    open_stored,
    told,
)
from schedgap.harness.engine.result import Result, Stored
from schedgap.harness.engine.sealed import inside
from schedgap.harness.engine.study import Finished, Study, concluded, reopened, sound
from schedgap.harness.show.text import clean
from schedgap.harness.studies.adversary import run as adversary
from schedgap.harness.studies.audit import run as audit
from schedgap.harness.studies.compare import run as compare
from schedgap.harness.studies.frontier import run as frontier
from schedgap.harness.studies.reproduce import run as reproduce
from schedgap.harness.studies.simulate import run as simulate
from schedgap.harness.studies.whatif import run as whatif
from schedgap.instances import plugins
from schedgap.instances.canonical import read_bytes
from schedgap.instances.catalogue import load, namesake, references
from schedgap.instances.errors import UsageError
from schedgap.instances.schema import Instance

STUDIES: Mapping[str, Study[Any]] = {
    module.STUDY.kind: module.STUDY for module in (compare, simulate, audit, adversary, reproduce, whatif, frontier)
}
"""The studies that write results folders, by kind."""


def study_of(kind: str) -> Study[Any]:
    """Return the study of this kind, or raise `UsageError`."""
    if kind not in STUDIES:
        raise UsageError(f"results of harness {kind}: this program has no such command")
    return STUDIES[kind]


def reopen(folder: str | Path) -> Any:
    """Return the collected results of a folder; raise `UsageError` if it is not a results folder."""
    stored = open_stored(Path(folder))
    return reopened(study_of(stored.meta["kind"]), stored)


class Checked(NamedTuple):
    """The check of a result or of a table: its label, and in words what holds and what is wrong.

    Both texts are empty for results in which nothing can be checked, such as skipped ones.
    """

    label: str
    holds: str = ""
    wrong: str = ""


def check(folder: str | Path) -> list[Checked]:
    """Check every result of a folder again, alone and together with all others, and the tables made of them."""
    stored = open_stored(Path(folder))
    with damage_explained(stored.path):
        study, plan = study_of(stored.meta["kind"]), stored.meta["plan"]
        found = {key: _checked(study, stored, key) for key in plan}
        # A result that does not hold is no evidence about others. Decisions were checked one by one, and are not kept.
        holding = [study.restore(stored, key) for key in plan if not found[key].wrong]
        finished = Finished(stored.meta, stored.instances, holding, stored.path)
        for row in study.judged(finished):
            if row.trouble:
                found[row.key] = found[row.key]._replace(wrong=clean(row.trouble, 300))
        whole = not any(one.wrong for one in found.values())
        return [*found.values(), *_names_checked(stored), *(_tables_checked(study, finished) if whole else [])]


def _names_checked(stored: Stored) -> Iterator[Checked]:
    """Report instances that have the name or the published numbers of a different instance of the package."""
    for mark, one in stored.instances.items():
        other, file = namesake(one), instance_file(mark)
        if other is None:
            continue
        if other.fingerprint != mark:
            yield Checked(file, wrong=f"it is named {clean(one.name, 60)}, which is another instance")
        elif any(number not in _published(mark, other) for number in one.published):
            yield Checked(file, wrong="it has published numbers that the packaged instance has not")


def _published(mark: str, one: Instance) -> list[Any]:
    """Return the published numbers of a packaged instance, and of worked examples of the same content."""
    return [number for other in (one, *_examples()) if other.fingerprint == mark for number in other.published]


@functools.cache
def _examples() -> list[Instance]:
    return [load(ref) for ref in references() if ref.startswith("paper/")]


def _checked(study: Study[Any], stored: Stored, key: str) -> Checked:
    label, prefix, line = key, "damaged: ", stored.lines.get(key)
    if line is None:
        return Checked(key, wrong="planned, but not in the journal; --resume runs it")
    try:
        label = study.record(line).named(line)
        result = study.restore(stored, key)
        label, prefix = result.label, ""
        holds = result.holds()
        _check_line(result, line)
        return Checked(label, holds)
    except DAMAGE as error:
        return Checked(label, wrong=prefix + told(error))


def _check_line(result: Result, line: Mapping[str, Any]) -> None:
    """Raise `ValueError` if a line has other fields or files than its result would write."""
    written = json.loads(json.dumps({"record": result.record, "key": result.key, **result.content()}))
    stated = {name: value for name, value in line.items() if name != "files"}
    if other := different(stated, written):
        raise ValueError(f"its line has another {other} than follows from it")
    if set(line["files"]) != set(result.names()):
        raise ValueError("its line has other files than its result")


def different(one: Any, other: Any) -> str | None:
    """Return the place of the first difference of plain data, such as ``row.gap``, or ``None`` if they are equal."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return None if one == other else "value"
    for name in dict.fromkeys([*one, *other]):
        if name not in one or name not in other:
            return clean(name, 40)
        if inner := different(one[name], other[name]):
            return clean(name if inner == "value" else f"{name}.{inner}", 80)
    return None


def _tables_checked(study: Study[Any], finished: Finished) -> Iterator[Checked]:
    """Compare the tables of a folder, which other programs read, with those that its journal gives."""
    assert finished.folder
    for name, content in study.tables(study.collect(finished)).items():
        path = inside(finished.folder, name)
        if path.exists():
            same = read_bytes(path) == content
            other = "it is not the table that the journal gives; the run with --resume writes it again"
            yield Checked(name, "as the journal gives it") if same else Checked(name, wrong=other)


def merge(folders: Sequence[Path], results: Path) -> Any:
    """Merge results folders of one kind and code into a new folder in `results`, and return the collected results.

    Bounds from one part apply to the rows of the others. If several parts have the same result, a finished one is kept.
    Raise `UsageError` if there are fewer than two folders, or they cannot be merged.
    """
    if len({folder.resolve() for folder in folders}) < 2:
        raise UsageError("merge needs two or more different results folders")
    first, *others = parts = [open_stored(folder) for folder in folders]
    for part in others:
        if part.meta["kind"] != first.meta["kind"]:
            raise UsageError(f"{part.path}: results of harness {part.meta['kind']}, not of {first.meta['kind']}")
        if part.meta.get("code") != first.meta.get("code") or not plugins.agree(part.meta, first.meta):
            raise UsageError(
                f"{part.path}: measured by other code than {first.path}, so the two cannot be merged; "
                f"compare them with: harness diff {shlex.join([str(first.path), str(part.path)])}"
            )
    study = study_of(first.meta["kind"])
    done: dict[str, Any] = {}
    for part in parts:
        with damage_explained(part.path):
            for result in sound(study, part):
                if result.key not in done or (result.finished and not done[result.key].finished):
                    done[result.key] = result
    meta = _meta_of_all(parts)
    meta["missing"] = len(meta["plan"]) - len(done)
    instances = {mark: one for part in parts for mark, one in part.instances.items()}
    folder = Folder(new_folder(results, meta), instances.values())
    for key in filter(done.__contains__, meta["plan"]):
        folder.add(done[key])
    return concluded(study, meta, instances, done, folder)


def _meta_of_all(parts: Sequence[Stored]) -> dict[str, Any]:
    """Return ``run.json`` of merged parts: the common values, and each part's own values under ``merged``."""
    metas = [part.meta for part in parts]
    own = ("command", "started_utc", "duration_s", "machine", "load", "versions", "git_commit", "limits")
    return {
        "machine": {"processor": "several machines, see run.json"},
        "versions": {},
        "limits": {},
        **{name: value for name, value in metas[0].items() if all(one.get(name) == value for one in metas)},
        "command": shlex.join(["harness", "merge", *(str(part.path) for part in parts)]),
        "started_utc": min(str(one.get("started_utc")) for one in metas),
        "duration_s": sum(float(one.get("duration_s") or 0) for one in metas),
        "instances": {mark: name for one in metas for mark, name in one["instances"].items()},
        "plan": list(dict.fromkeys(key for one in metas for key in one["plan"])),
        "plugins": list({plugin["name"]: plugin for one in metas for plugin in one.get("plugins", ())}.values()),
        "needs": sorted({name for one in metas for name in one.get("needs", ())}),
        "interrupted": False,
        "merged": [{name: one.get(name) for name in own} for one in metas],
    }
