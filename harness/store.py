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

import fcntl
import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from harness import codec
from harness.certify import certify
from harness.published import with_published
from harness.rows import FIELDS, Row
from harness.run import Run
from harness.tasks import TaskResult
from harness.verify import VERIFIERS, differ
from instances.canonical import read, to_json, write_atomically
from instances.errors import UsageError
from instances.registry import PAPERS
from instances.schema import Instance

COMPRESSION = 5
"""Level of gzip: on a history of 21 MB as small as the slowest level (2.6 MB), in a sixth of its time."""

SCHEMA_VERSION = 1
SIMULATION = "simulation"
"""Kind of a run of ``harness simulate``, which keeps its rows in a folder of the same form."""
AUDIT = "audit"
"""Kind of a run of ``harness audit``."""
ADVERSARY = "adversary"
"""Kind of a run of ``harness adversary``."""

ELSEWHERE = {
    SIMULATION: ("simulate", "rows are in rows.json"),
    AUDIT: ("audit", "findings are in audit.json"),
    ADVERSARY: ("adversary", "findings are in adversary.json"),
}
"""Kinds of runs that are no comparisons: command, and where what they found is."""
DAMAGE = (ValueError, TypeError, KeyError, AttributeError, OSError, EOFError, RecursionError, zlib.error)
"""What reading files can raise that are not what was written."""

_TEXT = ("published", "metrics")
_LISTS = ("violations",)
_INTEGERS = ("seed", "nodes", "iterations", "rows", "columns", "nonzeros")
_BOOLEANS = ("ratio_is_upper", "verified")
_STRINGS = (
    *("instance", "fingerprint", "paper", "method", "problem", "kind", "sense", "bound_from"),
    *("guarantee", "status", "termination", "reason", "key", "limits"),
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
        with self._explained():
            for part in ("instances", "schedules"):
                (folder / part).mkdir(parents=True, exist_ok=True)
            self._journal: IO[bytes] = open(folder / "rows.jsonl", "ab")  # noqa: SIM115 - open for the whole run
            self._lock()
            self._end_torn_line()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a failing file system into one line that says where, and how the run can go on."""
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            later = f"; finished rows are kept, go on with: --resume {self.folder}" if self._has_rows() else ""
            raise UsageError(f"{self.folder}: results cannot be written there: {why}{later}") from error

    def _has_rows(self) -> bool:
        path = self.folder / "rows.jsonl"
        return path.is_file() and path.stat().st_size > 0

    def _lock(self) -> None:
        """Refuse a folder that another run is writing to; the lock ends with the process, however it ends."""
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{self.folder}: another run is writing there") from error

    def _end_torn_line(self) -> None:
        """Close a last line that a kill cut off, so that the next row starts on its own line."""
        if self._has_rows() and not (self.folder / "rows.jsonl").read_bytes().endswith(b"\n"):
            self._append(b"\n")

    def add_instances(self, instances: Iterable[Instance]) -> None:
        """Save the instances under their fingerprints."""
        with self._explained():
            for instance in instances:
                path = self.folder / "instances" / f"{instance.fingerprint}.json"
                write_atomically(path, to_json(instance).encode())

    def add(self, result: TaskResult) -> None:
        """Append a finished task: its decision first, then its trace, then its row, which makes it count."""
        row = result.row
        with self._explained():
            if result.decision is not None:
                content = json.dumps(codec.encode(result.decision), separators=(",", ":")).encode()
                packed = gzip.compress(content, COMPRESSION, mtime=0)
                write_atomically(self.folder / "schedules" / _schedule_name(row), packed)
            line = {"row": row.as_dict(), "trace": [list(point) for point in result.trace]}
            line |= {"prices": codec.plain(result.prices)} if result.prices is not None else {}
            self._append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _append(self, line: bytes) -> None:
        self._journal.write(line)
        self._journal.flush()
        os.fsync(self._journal.fileno())

    def write_run(self, meta: Mapping[str, Any]) -> None:
        """Replace ``run.json``."""
        with self._explained():
            write_atomically(self.folder / "run.json", (json.dumps(meta, indent=2, sort_keys=True) + "\n").encode())

    def finish(self, run: Run) -> None:
        """Write ``run.json`` anew, the certified rows and the traces as Parquet, and close the journal."""
        self.write_run(run.meta)
        with self._explained():
            write_atomically(self.folder / "rows.parquet", rows_parquet(run.rows))
            write_atomically(self.folder / "traces.parquet", _traces_parquet(run.traces))
        self.close()

    def close(self) -> None:
        """Close the journal; another run may write to the folder then."""
        self._journal.close()


def new_folder(parent: Path, meta: Mapping[str, Any], suffix: str = "") -> Path:
    """Return a folder name for a run that starts now: ``<parent>/<utc>-<short hash of what it is><suffix>``."""
    now = datetime.now(UTC)
    content = json.dumps(meta, sort_keys=True) + now.isoformat()
    return parent / f"{now:%Y%m%dT%H%M%SZ}-{hashlib.sha256(content.encode()).hexdigest()[:6]}{suffix}"


def read_run(folder: Path) -> Run:
    """Read a results folder back, also one whose run was killed.

    Raises
    ------
    UsageError
        If the folder is not a results folder, is of another version, or its files are damaged.
    """
    if not (folder / "run.json").is_file():
        raise UsageError(f"{folder}: not a results folder (no run.json); harness compare prints where it writes")
    if (kind := _kind(folder)) in ELSEWHERE:
        command, file = ELSEWHERE[kind]
        raise UsageError(f"{folder}: results of harness {command}, not of harness compare; its {file}")
    try:
        return _read(folder)
    except DAMAGE as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"{folder}: damaged results: {what}") from error


def _kind(folder: Path) -> str:
    """Return what kind of run a folder says that it is of; nothing for a comparison."""
    try:
        return str(json.loads((folder / "run.json").read_bytes()).get("kind"))
    except DAMAGE:
        return ""


def _read(folder: Path) -> Run:
    meta = json.loads((folder / "run.json").read_bytes())
    if meta["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"written in version {meta['schema_version']}, this program reads {SCHEMA_VERSION}")
    lines = _planned(_journal_lines(folder), meta["plan"])
    instances = {name: read(folder / "instances" / f"{name}.json") for name in meta["instances"]}
    rows = with_published(certify(_row(line["row"]) for line in lines), instances)
    decisions = {row.name: _decision(folder, row, instances[row.fingerprint]) for row in rows}
    traces: list[Mapping[str, Any]] = [
        {**trace_key(_row(line["row"])), "time_s": t, "incumbent": incumbent, "bound": bound}
        for line in lines
        for t, incumbent, bound in line["trace"]
    ]
    prices = {_row(line["row"]).name: codec.rich(line["prices"]) for line in lines if "prices" in line}
    return Run(meta, rows, instances, {k: d for k, d in decisions.items() if d is not None}, traces, prices)


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


def _planned(lines: list[dict[str, Any]], plan: list[str]) -> list[dict[str, Any]]:
    """Return the entries that belong to the run's plan, in its order; a folder may hold rows of earlier limits."""
    by_key = {line["row"]["key"]: line for line in lines}
    return [by_key[key] for key in plan if key in by_key]


def _row(fields: Mapping[str, Any]) -> Row:
    known = {name: value for name, value in fields.items() if name in FIELDS}
    return Row(**{**known, "violations": tuple(known["violations"]), "published": tuple(known["published"])})


def trace_key(row: Row) -> dict[str, Any]:
    """Return the fields of a row that its points in the trace carry, too."""
    return {name: getattr(row, name) for name in ("instance", "fingerprint", "method", "seed", "limits")}


def _schedule_name(row: Row) -> str:
    method = re.sub(r"[^a-z0-9_.?&=-]", "_", row.method)
    limits = f"-{row.key[:8]}" if row.limits else ""
    return f"{method}-{row.fingerprint[:12]}-{row.seed}{limits}.json.gz"


def _decision(folder: Path, row: Row, instance: Instance) -> Any:
    """Return the row's decision after checking again that it reaches the row's objective; ``None`` if it has none."""
    if row.objective is None:
        return None
    path = folder / "schedules" / _schedule_name(row)
    paper = PAPERS.get(row.paper)
    decision: Any = codec.decode(paper.decision, json.loads(gzip.decompress(path.read_bytes())))
    found = VERIFIERS.get(row.paper).check(paper.view(instance), decision, row.problem, ()).objective
    if found is None or differ(found, row.objective):
        raise ValueError(f"{path.name} does not reach the objective of its row")
    return decision


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

    names = dict.fromkeys(("instance", "fingerprint", "method", "limits"), pa.string()) | {"seed": pa.int64()}
    numbers = dict.fromkeys(("time_s", "incumbent", "bound"), pa.float64())
    return _parquet([dict(t) for t in traces], pa.schema(list({**names, **numbers}.items())))


def _parquet(records: list[dict[str, Any]], schema: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records, schema=schema), sink)
    return bytes(sink.getvalue().to_pybytes())
