"""The results folder of a simulation: the same journal, locks and atomic files as that of a comparison.

``run.json``, ``rows.jsonl`` (the journal, a line per finished policy or bound), ``rows.parquet`` and ``rows.json``
(with ratios and bounds), ``instances/``, in ``schedules/`` the histories as gzipped JSON, ``report.html`` and
``figures/``.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.render.text import plain
from harness.simulation.bounds import Bound
from harness.simulation.rows import FIELDS, SimulationRow
from harness.simulation.task import SimulationResult
from harness.store import COMPRESSION, Store
from heuristics.simulator import Trace
from instances.canonical import write_atomically
from instances.schema import Instance

HISTORY = (
    *("start_s", "decision_s", "stragglers", "restarts", "waiting", "completion_s", "first_start_s"),
    *("allocation", "progress", "iterations", "busy_s", "speed", "cpus", "memory_gb", "offered", "unfinished"),
)
"""Attributes of :class:`~heuristics.simulator.Trace` that are saved, beside its rules."""


class SimulationStore(Store):
    """An open results folder that simulations are appended to."""

    def begin(self, instances: Sequence[Instance], meta: Mapping[str, Any]) -> None:
        """Save the instances, and what is going to run."""
        self.add_instances(instances)
        self.write_run(meta)

    def add_result(self, result: SimulationResult) -> None:
        """Append a finished simulation: its history first, then its row, which makes it count."""
        row = result.row
        with self._explained():
            if result.trace is not None:
                content = gzip.compress(history_json(result.trace).encode(), COMPRESSION, mtime=0)
                write_atomically(self.folder / "schedules" / history_name(row), content)
            self._append(_line(row))

    def add_bound(self, bound: Bound) -> None:
        """Append a bound."""
        with self._explained():
            self._append(json.dumps({"bound": plain(vars(bound))}, allow_nan=False).encode() + b"\n")

    def finish_rows(self, meta: Mapping[str, Any], rows: Sequence[SimulationRow]) -> None:
        """Write ``run.json`` anew and the compared rows, and close the journal."""
        self.write_run(meta)
        with self._explained():
            write_atomically(
                self.folder / "rows.json", b"[\n" + b",\n".join(_line(row)[:-1] for row in rows) + b"\n]\n"
            )
            _write_parquet(self.folder / "rows.parquet", rows)
        self.close()


def history_name(row: SimulationRow) -> str:
    """Return the file name of a row's history."""
    return f"{re.sub(r'[^a-z0-9_.-]', '_', row.policy)}-{row.fingerprint[:12]}-{row.seed}.json.gz"


def history_json(trace: Trace) -> str:
    """Return a history as JSON text; absent times are ``null``."""
    parts = {name: getattr(trace, name) for name in HISTORY}
    jobs = {"jobs": list(trace.workload.ids), "servers": list(trace.servers.names)}
    return json.dumps(plain({"rules": vars(trace.rules), **jobs, **parts}), separators=(",", ":"), allow_nan=False)


def _line(row: SimulationRow) -> bytes:
    return json.dumps(plain(row.as_dict()), separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _write_parquet(path: Path, rows: Sequence[SimulationRow]) -> None:
    """Write the rows with lists and mappings as JSON text."""
    import pandas as pd

    nested = ("unfinished", "published", "violations")
    records = [row.as_dict() | {name: json.dumps(plain(getattr(row, name))) for name in nested} for row in rows]
    sink = io.BytesIO()
    pd.DataFrame(records, columns=list(FIELDS)).convert_dtypes().to_parquet(sink, index=False)
    write_atomically(path, sink.getvalue())
