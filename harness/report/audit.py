"""An audit's folder read back, for its own page and for a section in another one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.store import AUDIT, DAMAGE, SCHEMA_VERSION
from instances.canonical import read
from instances.errors import UsageError

if TYPE_CHECKING:
    from harness.audit.finding import Finding
    from harness.audit.running import Audit


def read_audit(folder: Path) -> Audit:
    """Read the results of ``harness audit``; verdicts are computed again from the counts.

    Raises
    ------
    UsageError
        If the folder is not one of an audit, is of another version, or its files are damaged.
    """
    from harness.audit.running import Audit

    try:
        meta = json.loads((folder / "run.json").read_bytes())
        if meta.get("kind") != AUDIT:
            raise UsageError(f"{folder}: not a results folder of harness audit")
        if meta["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"written in version {meta['schema_version']}, this program reads {SCHEMA_VERSION}")
        entries = json.loads((folder / "audit.json").read_bytes())
        return Audit([_finding(folder, entry) for entry in entries], meta, folder)
    except DAMAGE as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise UsageError(f"{folder}: no audit, or damaged results: {what}") from error


def _finding(folder: Path, entry: Mapping[str, Any]) -> Finding:
    from harness.audit.finding import Finding
    from harness.audit.registry import CLAIMS, Evidence, Tally, Witness

    if entry["id"] not in CLAIMS:
        raise ValueError(f"claim {entry['id']!r} is not known here")
    if entry["status"] != "done":
        return Finding(entry["id"], None, entry["reason"], entry["seconds"], folder)
    witnesses = [Witness(_instance(folder, w["file"]), tuple(w["methods"]), w["shows"]) for w in entry["witnesses"]]
    evidence = Evidence(
        Tally(entry["scope"], entry["tested"], entry["failed"]),
        entry["found"],
        tuple(Tally(**tally) for tally in entry["narrower"]),
        entry["numbers"],
        tuple(witnesses),
    )
    return Finding(entry["id"], evidence, None, entry["seconds"], folder)


def _instance(folder: Path, name: str) -> Any:
    """Return a witness; names from a file never lead out of the folder."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{name}: outside of the folder")
    return read(path)
