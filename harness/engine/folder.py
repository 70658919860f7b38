"""A results folder: written so that a kill at any moment loses no finished result, and read back.

=====================  =============================================================================================
``run.json``           kind of study, command, limits, versions, machine, commit; replaced atomically
``rows.jsonl``         the journal: one line per finished task, synced to disk as it comes; the truth. As ``run.json``,
                       each line has a digest of itself, and of the files that belong to it
``instances/``         the instances, by fingerprint
``schedules/`` …       what results keep beside their line, such as decisions as gzipped JSON
``certificates/``      what proves bounds, for ``examples/check_certificate.py``
``rows.parquet`` …     tables of the whole run for other tools; replaced atomically at the end
``report.html``        the page; ``figures/`` the pictures as files
=====================  =============================================================================================
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import BaseModel, StringConstraints

from schedgap.harness.engine.result import Result, Stored
from schedgap.harness.engine.sealed import MAX_UNPACKED_MB, KeptFile, digests, inside, parsed, sealed, unsealed
from schedgap.harness.text import clean
from schedgap.instances.canonical import TEMPORARY, read_bytes, to_json, validate, write_atomically
from schedgap.instances.errors import UsageError
from schedgap.instances.plugins import require
from schedgap.instances.schema import Instance

SCHEMA_VERSION = 3

DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OSError, EOFError, RecursionError, zlib.error)
"""What reading files can raise that are not what was written."""

JOURNAL = "rows.jsonl"

MOST_DAMAGED = 10_000
"""Damaged lines of a journal up to which the others are looked for."""

Mark = Annotated[str, StringConstraints(pattern="^[0-9a-f]{1,64}$")]


class _Meta(BaseModel):
    """What studies read of ``run.json``; a stranger's may hold anything."""

    kind: str
    command: str
    plan: list[Mark]
    instances: dict[Mark, str]
    interrupted: bool
    started_utc: str
    duration_s: float = 0.0
    versions: dict[str, str]
    machine: dict[str, str]
    git_commit: str | None
    files: dict[str, str]
    plugins: list[dict[str, Any]]
    needs: list[str]
    limits: dict[str, float | bool | None] | dict[str, dict[str, float | bool | None]] = {}
    seeds: list[int] = []
    policies: list[str] = []
    claims: list[str] = []


class _Line(BaseModel):
    """What every line of a journal has."""

    record: str
    key: Mark
    files: dict[str, str]


class Folder:
    """An open results folder that results about some instances are appended to; it is created if it is not there.

    All of its methods raise `UsageError` where the folder cannot be created or written.
    """

    def __init__(self, path: Path, instances: Iterable[Instance] = ()) -> None:
        self.path = path
        with self._explained():
            (path / "instances").mkdir(parents=True, exist_ok=True)
            self._journal: IO[bytes] = open(path / JOURNAL, "ab")  # noqa: SIM115 - open for the whole run
            try:  # the lock ends with the process, however it ends
                fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(f"{path}: another run is writing there") from error
            for left in path.rglob(f".*{TEMPORARY}"):  # what a kill left: files that were being written …
                left.unlink()
            os.truncate(path / JOURNAL, (path / JOURNAL).read_bytes().rfind(b"\n") + 1)  # … and a line without an end
        files = {instance_file(one.fingerprint): to_json(one).encode() for one in instances}
        self._write(files)
        self._files = digests(files)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a failing file system into one line that says where, and how the run can go on."""
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            journal = self.path / JOURNAL
            kept = journal.is_file() and journal.stat().st_size > 0
            later = f"; finished rows are kept, go on with: --resume {self.path}" if kept else ""
            raise UsageError(f"{self.path}: results cannot be written there: {why}{later}") from error

    def _append(self, line: bytes) -> None:
        self._journal.write(line)
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def _write(self, files: Mapping[str, bytes]) -> None:
        with self._explained():
            for name, content in files.items():
                path = inside(self.path, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, content)

    def add(self, result: Result) -> dict[str, Any]:
        """Append a result: its files first, then its line, which makes it count and is returned."""
        files = result.files()
        self._write(files)
        line = sealed({"record": result.record, "key": result.key, **result.content(), "files": digests(files)})
        with self._explained():
            self._append(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        return line

    def describe(self, meta: Mapping[str, Any]) -> None:
        """Replace ``run.json``."""
        content = sealed({**meta, "files": self._files})
        self._write({"run.json": (json.dumps(content, indent=2) + "\n").encode()})

    def finish(self, meta: Mapping[str, Any], tables: Mapping[str, bytes]) -> None:
        """Write ``run.json`` anew, and the files that hold the whole run; close the journal."""
        self.describe(meta)
        self._write(tables)
        self.close()

    def close(self) -> None:
        """Close the journal; another run may write to the folder then."""
        self._journal.close()


def new_folder(parent: Path, meta: Mapping[str, Any]) -> Path:
    """Return a folder name for a run that starts now: ``<parent>/<utc>-<short hash of what it is>-<kind of study>``."""
    now = datetime.now(UTC)
    content = json.dumps(meta, sort_keys=True) + now.isoformat()
    return parent / f"{now:%Y%m%dT%H%M%SZ}-{hashlib.sha256(content.encode()).hexdigest()[:6]}-{meta['kind']}"


@contextmanager
def damage_explained(path: Path) -> Iterator[None]:
    """Turn what damaged files raise into a `UsageError`, one line that names the folder."""
    try:
        yield
    except UsageError:
        raise
    except DAMAGE as error:
        raise UsageError(f"{path}: damaged results: {clean(error, 200) or type(error).__name__}") from error


def open_stored(path: Path, kind: str | None = None) -> Stored:
    """Read a results folder, also one whose run was killed; it must be of that kind of study, if one is named.

    It raises `UsageError` if it is no results folder, of another study, of another version, or damaged.
    """
    if not (path / "run.json").exists():
        raise UsageError(f"{path}: not a results folder (no run.json); commands that run print where they write")
    with damage_explained(path):
        content = parsed(read_bytes(inside(path, "run.json")))
        version = content.get("schema_version")
        if version is None:
            raise UsageError(f"{path}: run.json does not say in which version of the results' format it is")
        if version != SCHEMA_VERSION:
            command = clean(content.get("command"), 200)
            raise UsageError(
                f"{path}: written in version {clean(version, 20)} of the results' format, this program reads "
                f"version {SCHEMA_VERSION}; run again: {command}"
            )
        meta = unsealed(content, "run.json")
        _Meta.model_validate(meta)
        if kind is not None and meta["kind"] != kind:
            raise UsageError(f"{path}: results of harness {meta['kind']}, not of harness {kind}")
        require(meta, str(path))
        lines, damaged = _lines(path)
        instances: dict[str, Instance] = {}
        for mark in meta["instances"]:
            name = instance_file(mark)
            with suppress(*DAMAGE):  # what is not the instance that was run is left out
                one = validate(parsed(KeptFile(path, name, meta["files"].get(name)).content()), where=name)
                instances |= {mark: one} if one.fingerprint == mark else {}
        return Stored(path, meta, lines, instances, damaged)


def instance_file(mark: str) -> str:
    """Return the file of the instance with that fingerprint."""
    return f"instances/{mark}.json"


def _lines(folder: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the sound lines of the journal by key, and the number of others; a last one without an end is no line."""
    found, damaged, longest = {}, 0, MAX_UNPACKED_MB * 1_000_000
    journal = BytesIO(read_bytes(inside(folder, JOURNAL)))
    while (line := journal.readline(longest)).endswith(b"\n") or len(line) == longest:
        try:
            entry = unsealed(parsed(line), "a line")
            found[_Line.model_validate(entry).key] = entry
        except ValueError:
            damaged += 1
        if damaged > MOST_DAMAGED:
            raise ValueError(f"{JOURNAL} has more than {MOST_DAMAGED:,} lines that are none of ours")
    return found, damaged
