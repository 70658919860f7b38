"""Rows of a comparison in one small file, without decisions and instances: what pages on solve times read.

The folder of a run on 5,000 jobs has megabytes of schedules and instances. Rows with their times, the machine and the
versions are some kilobytes. Instances are generated anew by their names.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

from schedgap.harness.engine.result import typed
from schedgap.harness.show.table import to_json
from schedgap.harness.show.text import clean, percent
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.instances.canonical import read_bytes
from schedgap.instances.catalogue import load
from schedgap.instances.errors import UsageError

META = ("command", "started_utc", "interrupted", "limits", "machine", "load", "versions", "git_commit")
"""Entries of ``run.json`` that are kept: what the times depend on."""

FIELDS = (
    *("instance", "fingerprint", "paper", "method", "problem", "kind", "sense", "seed", "limits"),
    *("status", "verified", "objective", "best_bound", "gap", "solve_s", "core_share"),
)
"""Fields of rows that are kept; the others are absent when rows are read back."""


def kept(run: Comparison) -> str:
    """Return the rows of a run and what their times depend on as JSON, one line per row."""
    meta = json.dumps({name: run.meta[name] for name in META if name in run.meta})
    rows = [{name: value for name in FIELDS if (value := getattr(row, name)) is not None} for row in run.rows]
    return f'{{"meta": {meta},\n"rows": {to_json(rows).rstrip()}}}\n'


def read_kept(path: Path) -> Comparison:
    """Return the rows that :func:`kept` wrote as a comparison without decisions.

    Raises
    ------
    UsageError
        If the file is something else, or an instance that is generated anew is not the one that was measured.
    """
    try:
        content: dict[str, Any] = json.loads(read_bytes(path))
        rows, meta = [typed(Row, row) for row in content["rows"]], dict(content["meta"])
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path}: not the kept rows of a comparison ({clean(error, 100)})") from None
    instances = {one.fingerprint: one for one in map(load, dict.fromkeys(row.instance for row in rows))}
    if changed := [row.instance for row in rows if row.fingerprint not in instances]:
        raise UsageError(f"{path}: {changed[0]} has another content than when it was measured; measure it again")
    return Comparison(meta, rows, instances)


def measured(run: Comparison) -> str:
    """Return sentences on when and where a run measured its times: machine, load and versions."""
    meta = run.meta
    machine = ", ".join(f"{name} {value}" for name, value in meta["machine"].items())
    versions = ", ".join(f"{name} {value}" for name, value in meta["versions"].items())
    busy = [f"{meta['load']} processes were running or waiting when it began"] if "load" in meta else []
    if shares := [row.core_share for row in run.rows if row.core_share is not None]:
        busy.append(f"searches that the clock ended had {percent(fmean(shares))} of a core on average")
    load = f" Load: {' and '.join(busy)}." if busy else ""
    ended = " It was ended early." if run.interrupted else ""
    return f"begun on {meta['started_utc'][:10]}; {machine}.{load}{ended} Versions: {versions}."
