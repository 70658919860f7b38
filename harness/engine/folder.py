"""A results folder: written so that a kill at any moment loses no finished result, and read back.

=====================  =============================================================================================
``run.json``           kind of study, command, limits, versions, machine, commit; replaced atomically
``rows.jsonl``         the journal: one line per finished task, synced to disk as it comes; the truth
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
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from schedgap.harness.engine.result import Result, Stored
from schedgap.instances.canonical import read, to_json, write_atomically
from schedgap.instances.errors import UsageError
from schedgap.instances.plugins import require
from schedgap.instances.schema import Instance

SCHEMA_VERSION = 2

DAMAGE = (ValueError, TypeError, KeyError, AttributeError, OSError, EOFError, RecursionError, zlib.error)
"""What reading files can raise that are not what was written."""

JOURNAL = "rows.jsonl"


class Folder:
    """An open results folder that results are appended to; it is created if it is not there.

    Raises
    ------
    UsageError
        If the folder cannot be created or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            (path / "instances").mkdir(parents=True, exist_ok=True)
            self._journal: IO[bytes] = open(path / JOURNAL, "ab")  # noqa: SIM115 - open for the whole run
            self._lock()
            self._end_torn_line()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a failing file system into one line that says where, and how the run can go on."""
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            later = f"; finished rows are kept, go on with: --resume {self.path}" if self._has_rows() else ""
            raise UsageError(f"{self.path}: results cannot be written there: {why}{later}") from error

    def _has_rows(self) -> bool:
        path = self.path / JOURNAL
        return path.is_file() and path.stat().st_size > 0

    def _lock(self) -> None:
        """Refuse a folder that another run is writing to; the lock ends with the process, however it ends."""
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{self.path}: another run is writing there") from error

    def _end_torn_line(self) -> None:
        """Close a last line that a kill cut off, so that the next result starts on its own line."""
        if self._has_rows() and not (self.path / JOURNAL).read_bytes().endswith(b"\n"):
            self._append(b"\n")

    def begin(self, meta: Mapping[str, Any], instances: Iterable[Instance]) -> None:
        """Save the instances under their fingerprints, and what is going to run."""
        with self._explained():
            for instance in instances:
                path = self.path / "instances" / f"{instance.fingerprint}.json"
                write_atomically(path, to_json(instance).encode())
        self.describe(meta)

    def add(self, result: Result) -> None:
        """Append a result: its files first, then its line, which makes it count."""
        with self._explained():
            for name, content in result.files().items():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self.path / name, content)
            line = {"record": result.record, "key": result.key, **result.content()}
            self._append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        self._journal.write(line)
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def describe(self, meta: Mapping[str, Any]) -> None:
        """Replace ``run.json``."""
        with self._explained():
            write_atomically(self.path / "run.json", (json.dumps(meta, indent=2) + "\n").encode())

    def finish(self, meta: Mapping[str, Any], tables: Mapping[str, bytes]) -> None:
        """Write ``run.json`` anew, and the files that hold the whole run; close the journal."""
        self.describe(meta)
        with self._explained():
            for name, content in tables.items():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self.path / name, content)
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
    """Turn what damaged files raise into one line that names the folder.

    Raises
    ------
    UsageError
        Instead of anything that reading raises.
    """
    try:
        yield
    except UsageError:
        raise
    except DAMAGE as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"{path}: damaged results: {what}") from error


def open_stored(path: Path, kind: str | None = None) -> Stored:
    """Read a results folder, also one whose run was killed; it must be of that kind of study, if one is named.

    Raises
    ------
    UsageError
        If it is no results folder, of another study, of another version, or damaged.
    """
    if not (path / "run.json").is_file():
        raise UsageError(f"{path}: not a results folder (no run.json); commands that run print where they write")
    with damage_explained(path):
        meta = json.loads((path / "run.json").read_bytes())
        if meta["schema_version"] != SCHEMA_VERSION:
            raise UsageError(
                f"{path}: written in version {meta['schema_version']} of the results' format, this program reads "
                f"version {SCHEMA_VERSION}; run again: {meta.get('command')}"
            )
        if kind is not None and meta["kind"] != kind:
            raise UsageError(f"{path}: results of harness {meta['kind']}, not of harness {kind}")
        require(meta, str(path))
        instances = {name: read(path / "instances" / f"{name}.json") for name in meta["instances"]}
        return Stored(path, meta, _lines(path), instances)


def _lines(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for line in (path / JOURNAL).read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        found[entry["key"]] = entry
    return found
