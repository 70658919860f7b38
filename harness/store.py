"""A results folder: written so that a kill at any moment loses no finished row, read back into a :class:`Run`.

=====================  =============================================================================================
``run.json``           command, limits, seeds, versions, machine, commit; replaced atomically
``rows.jsonl``         the journal: one line per finished row, synced to disk as it comes; the truth
``rows.parquet``       the same rows with certified gaps, tidy, for other tools; replaced atomically
``traces.parquet``     bound and incumbent over time
``instances/``         the instances, by fingerprint
``schedules/``         the verified decisions, gzipped JSON
``report.html``        the page; ``figures/`` the pictures as files
=====================  =============================================================================================
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from harness import codec
from harness.certify import certify
from harness.rows import FIELDS, Row
from harness.run import Run
from harness.tasks import TaskResult
from instances.canonical import read, to_json, write_atomically
from instances.errors import UsageError
from instances.registry import PAPERS
from instances.schema import Instance

SCHEMA_VERSION = 1
_TEXT = ("published", "metrics")
_LISTS = ("violations",)
_INTEGERS = ("seed", "nodes", "iterations", "rows", "columns", "nonzeros")
_BOOLEANS = ("ratio_is_upper", "verified")
_STRINGS = (
    *("instance", "fingerprint", "paper", "method", "problem", "kind", "sense", "bound_from"),
    *("guarantee", "status", "termination", "reason", "key"),
)


class Store:
    """An open results folder that rows are appended to.

    Parameters
    ----------
    folder
        The folder; created if it is not there.

    Raises
    ------
    UsageError
        If the folder cannot be created or written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            for part in ("instances", "schedules"):
                (folder / part).mkdir(parents=True, exist_ok=True)
            self._journal: IO[bytes] = open(folder / "rows.jsonl", "ab")  # noqa: SIM115 - open for the whole run
            self._end_torn_line()
        except OSError as error:
            raise UsageError(f"{folder}: results cannot be written there: {error.strerror or error}") from error

    def _end_torn_line(self) -> None:
        """Close a last line that a kill cut off, so that the next row starts on its own line."""
        path = self.folder / "rows.jsonl"
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            self._append(b"\n")

    def add_instances(self, instances: Iterable[Instance]) -> None:
        """Save the instances under their fingerprints."""
        for instance in instances:
            path = self.folder / "instances" / f"{instance.fingerprint}.json"
            write_atomically(path, to_json(instance).encode())

    def add(self, result: TaskResult) -> None:
        """Append a finished task: its decision first, then its trace, then its row, which makes it count."""
        row = result.row
        if result.decision is not None:
            content = json.dumps(codec.encode(result.decision), separators=(",", ":")).encode()
            write_atomically(self.folder / "schedules" / _schedule_name(row), gzip.compress(content, mtime=0))
        line = {"row": row.as_dict(), "trace": [list(point) for point in result.trace]}
        self._append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        self._journal.write(line)
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def write_run(self, meta: Mapping[str, Any]) -> None:
        """Replace ``run.json``."""
        write_atomically(self.folder / "run.json", (json.dumps(meta, indent=2, sort_keys=True) + "\n").encode())

    def finish(self, run: Run) -> None:
        """Write ``run.json`` anew, the certified rows and the traces as Parquet, and close the journal."""
        self._journal.close()
        self.write_run(run.meta)
        write_atomically(self.folder / "rows.parquet", rows_parquet(run.rows))
        write_atomically(self.folder / "traces.parquet", _traces_parquet(run.traces))


def new_folder(parent: Path, meta: Mapping[str, Any]) -> Path:
    """Return a folder name for a run that starts now: ``<parent>/<utc>-<short hash of what it is>``."""
    now = datetime.now(UTC)
    content = json.dumps(meta, sort_keys=True) + now.isoformat()
    return parent / f"{now:%Y%m%dT%H%M%SZ}-{hashlib.sha256(content.encode()).hexdigest()[:6]}"


def read_run(folder: Path) -> Run:
    """Read a results folder back, also one whose run was killed.

    Raises
    ------
    UsageError
        If the folder is not a results folder, or its files are damaged.
    """
    if not (folder / "run.json").is_file():
        raise UsageError(f"{folder}: not a results folder (no run.json); harness compare prints where it writes")
    try:
        meta = json.loads((folder / "run.json").read_bytes())
        lines = _in_order(_journal_lines(folder), meta.get("plan", []))
        rows = certify(_row(line["row"]) for line in lines)
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise UsageError(f"{folder}: damaged results: {' '.join(str(error).split())[:200]}") from error
    instances = {path.stem: read(path) for path in sorted((folder / "instances").glob("*.json"))}
    decisions = {_name(row): _decision(folder, row) for row in rows if row.objective is not None}
    traces: list[Mapping[str, Any]] = [
        {**_trace_key(line["row"]), "time_s": t, "incumbent": incumbent, "bound": bound}
        for line in lines
        for t, incumbent, bound in line["trace"]
    ]
    return Run(meta, rows, instances, {k: d for k, d in decisions.items() if d is not None}, traces)


def _journal_lines(folder: Path) -> list[dict[str, Any]]:
    """Return the journal's entries, the last one per key; a line torn by a kill is left out."""
    entries: dict[str, dict[str, Any]] = {}
    for number, line in enumerate((folder / "rows.jsonl").read_bytes().split(b"\n")):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        entries[entry["row"]["key"] or str(number)] = entry
    return list(entries.values())


def _in_order(lines: list[dict[str, Any]], plan: list[str]) -> list[dict[str, Any]]:
    """Sort the journal's entries, which are in the order of finishing, by the plan of the run."""
    place = {key: i for i, key in enumerate(plan)}
    return sorted(lines, key=lambda line: place.get(line["row"]["key"], len(place)))


def _row(fields: Mapping[str, Any]) -> Row:
    known = {name: value for name, value in fields.items() if name in FIELDS}
    return Row(**{**known, "violations": tuple(known["violations"]), "published": tuple(known["published"])})


def _name(row: Row) -> tuple[str, str, int]:
    return row.fingerprint, row.method, row.seed


def _trace_key(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("instance", "fingerprint", "method", "seed")}


def _schedule_name(row: Row) -> str:
    method = re.sub(r"[^a-z0-9_.-]", "_", row.method)
    return f"{method}-{row.fingerprint[:12]}-{row.seed}.json.gz"


def _decision(folder: Path, row: Row) -> Any:
    path = folder / "schedules" / _schedule_name(row)
    try:
        return codec.decode(PAPERS.get(row.paper).decision, json.loads(gzip.decompress(path.read_bytes())))
    except FileNotFoundError:
        return None
    except (ValueError, OSError, EOFError) as error:
        raise UsageError(f"{path}: damaged schedule: {error}") from error


def rows_parquet(rows: Iterable[Row]) -> bytes:
    """Return rows as a Parquet file with one fixed schema (metrics and published numbers as JSON text)."""
    import pyarrow as pa

    records = [row.as_dict() for row in rows]
    for record in records:
        record.update({name: json.dumps(record[name]) for name in _TEXT})
        record.update({name: list(record[name]) for name in _LISTS})
    kinds = {name: pa.float64() for name in FIELDS}
    kinds |= dict.fromkeys(_INTEGERS, pa.int64()) | dict.fromkeys(_BOOLEANS, pa.bool_())
    kinds |= dict.fromkeys((*_STRINGS, *_TEXT), pa.string()) | dict.fromkeys(_LISTS, pa.list_(pa.string()))
    return _parquet(records, pa.schema(list(kinds.items())))


def _traces_parquet(traces: Iterable[Mapping[str, Any]]) -> bytes:
    import pyarrow as pa

    names = {"instance": pa.string(), "fingerprint": pa.string(), "method": pa.string(), "seed": pa.int64()}
    numbers = dict.fromkeys(("time_s", "incumbent", "bound"), pa.float64())
    return _parquet([dict(t) for t in traces], pa.schema(list({**names, **numbers}.items())))


def _parquet(records: list[dict[str, Any]], schema: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records, schema=schema), sink)
    return bytes(sink.getvalue().to_pybytes())
