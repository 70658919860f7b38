"""Results folders: written so that a kill at any moment loses no finished result, and read back.

=====================  =============================================================================================
``run.json``           kind of study, command, limits, versions, machine, commit; replaced atomically
``journal.jsonl``      authoritative: one line per finished task, synced to disk at once. It has what the task found,
                       and nothing that follows from other tasks. Like ``run.json``, each line has a digest of itself
                       and of its files
``instances/``         the instances, by fingerprint
``schedules/`` …       files of results, such as decisions as gzipped JSON
``logs/``              what HiGHS wrote about each row, as text, if the run keeps it
``certificates/``      certificates of bounds, which ``examples/check_certificate.py`` checks
``rows.jsonl``,        tables of the whole run for other tools, with gaps; replaced atomically at the end
``rows.parquet`` …
``report.html``        the page, with its figures as files in ``figures/``
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
from typing import IO, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from schedgap.harness.engine.result import Result, Stored, in_words
from schedgap.harness.engine.sealed import MAX_UNPACKED_MB, KeptFile, digests, inside, parsed, sealed, unsealed
from schedgap.harness.show.text import clean, resuming
from schedgap.instances.canonical import TEMPORARY, read_bytes, to_json, validate, write_atomically
from schedgap.instances.errors import UsageError
from schedgap.instances.plugins import require
from schedgap.instances.schema import Instance

SCHEMA_VERSION = 5

DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OSError, EOFError, RecursionError, zlib.error)
"""Exceptions that reading damaged files can raise."""


def told(error: BaseException, limit: int = 300) -> str:
    """Return a sentence about a file for an exception of :data:`DAMAGE`, since Python's own messages explain little."""
    if isinstance(error, ValidationError):
        return in_words(error)
    if isinstance(error, KeyError):
        return f"the field {clean(error.args[0], 40)} is missing"
    if isinstance(error, TypeError | AttributeError | IndexError):
        return "a value is of another kind than the program writes"
    if isinstance(error, EOFError | zlib.error):
        return "a packed file is cut off or damaged"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return clean(error, limit) or type(error).__name__


JOURNAL = "journal.jsonl"

MOST_DAMAGED = 10_000
"""Maximum number of damaged lines; a journal with more is rejected."""

Mark = Annotated[str, StringConstraints(pattern="^[0-9a-f]{1,64}$")]


class _Plugin(BaseModel):
    """An entry of `plugins`, which names a plug-in or a program that the run used."""

    name: Annotated[str, StringConstraints(max_length=4096)]
    kind: Literal["file", "module", "installed", "live", "program"]
    digest: str = ""
    distribution: str = ""

    model_config = ConfigDict(extra="forbid")


class _Meta(BaseModel):
    """Fields of ``run.json`` that studies read; validated, because the file may come from anyone."""

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
    plugins: list[_Plugin]
    needs: list[str]
    limits: dict[str, float | bool | None] | dict[str, dict[str, float | bool | None]] = {}
    seeds: list[int] = []
    policies: list[str] = []
    claims: list[str] = []


class _Line(BaseModel):
    """Fields of every line of a journal."""

    record: str
    key: Mark
    files: dict[str, str]


class Folder:
    """A results folder open for appending results; it is created if missing, with the files of `instances`.

    `command` is the command line of the run, which messages repeat.
    All methods raise `UsageError` if the folder cannot be created or written.
    """

    def __init__(self, path: Path, instances: Iterable[Instance] = (), command: str = "") -> None:
        self.path, self.command = path, command
        with self._explained():
            (path / "instances").mkdir(parents=True, exist_ok=True)
            self._journal: IO[bytes] = open(path / JOURNAL, "ab")  # noqa: SIM115 - open for the whole run
            try:  # the lock ends with the process, however it ends
                fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(f"{path}: another run is writing there") from error
            for file in path.rglob(f".*{TEMPORARY}"):  # remove what a kill left: partly written files …
                file.unlink()
            os.truncate(path / JOURNAL, (path / JOURNAL).read_bytes().rfind(b"\n") + 1)  # … and a partial line
        files = {instance_file(one.fingerprint): to_json(one).encode() for one in instances}
        self._write(files)
        self._files = digests(files)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an `OSError` into a `UsageError` that names the folder and how to continue the run."""
        try:
            yield
        except OSError as error:
            journal = self.path / JOURNAL
            started = journal.is_file() and journal.stat().st_size > 0
            hint = f"; finished rows are kept, continue with: {resuming(self.command, self.path)}" if started else ""
            reason = error.strerror or str(error)
            raise UsageError(f"{self.path}: results cannot be written there: {reason}{hint}") from error

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
        """Write a result's files, then append its line to the journal, and return the line."""
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
        """Replace ``run.json``, write the tables of the whole run, and close the journal."""
        self.describe(meta)
        self._write(tables)
        self.close()

    def close(self) -> None:
        """Close the journal and release its lock, so that another run may write to the folder."""
        self._journal.close()


def new_folder(parent: Path, meta: Mapping[str, Any]) -> Path:
    """Return the path of a new results folder: ``<parent>/<utc>-<short hash of meta and time>-<kind of study>``."""
    now = datetime.now(UTC)
    content = json.dumps(meta, sort_keys=True) + now.isoformat()
    return parent / f"{now:%Y%m%dT%H%M%SZ}-{hashlib.sha256(content.encode()).hexdigest()[:6]}-{meta['kind']}"


@contextmanager
def damage_explained(path: Path) -> Iterator[None]:
    """Turn any error from a damaged file into a one-line `UsageError` that names the folder."""
    try:
        yield
    except UsageError:
        raise
    except DAMAGE as error:
        raise UsageError(f"{path}: damaged results: {told(error, 200)}") from error


def open_stored(path: Path, kind: str | None = None) -> Stored:
    """Read a results folder, even if its run was killed.

    Raise `UsageError` if it has no results, is not of the study `kind` (if given), of another version, or damaged.
    """
    if not (path / "run.json").exists():
        raise UsageError(f"{path}: not a results folder (no run.json); a command that runs a study prints its folder")
    with damage_explained(path):
        content = parsed(read_bytes(inside(path, "run.json")))
        if not isinstance(content, dict):
            raise TypeError("run.json is not an object with fields")
        version = content.get("schema_version")
        if version is None:
            raise UsageError(f"{path}: run.json does not state the version of the results format")
        if version != SCHEMA_VERSION:
            command = clean(content.get("command"), 200)
            raise UsageError(
                f"{path}: written in version {clean(version, 20)} of the results format, but this program reads "
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
            with suppress(*DAMAGE):  # leave out what is not the instance that was run
                one = validate(parsed(KeptFile(path, name, meta["files"].get(name)).content()), where=name)
                instances |= {mark: one} if one.fingerprint == mark else {}
        return Stored(path, meta, lines, instances, damaged)


def instance_file(mark: str) -> str:
    """Return the path of an instance inside a results folder."""
    return f"instances/{mark}.json"


def _lines(folder: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the intact lines of the journal by key, and the number of damaged ones; a partial last line is ignored."""
    lines, damaged, longest = {}, 0, MAX_UNPACKED_MB * 1_000_000
    journal = BytesIO(read_bytes(inside(folder, JOURNAL)))
    while (line := journal.readline(longest)).endswith(b"\n") or len(line) == longest:
        try:
            entry = unsealed(parsed(line), "a line")
            lines[_Line.model_validate(entry).key] = entry
        except ValueError:
            damaged += 1
        if damaged > MOST_DAMAGED:
            raise ValueError(f"{JOURNAL} has more than {MOST_DAMAGED:,} damaged lines")
    return lines, damaged
