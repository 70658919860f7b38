"""The results folder of an audit, complete after every claim.

``run.json`` (how it was run), ``audit.json`` (the findings), ``audit.md`` (the same to read), and in ``witnesses/`` the
instances that show them, to be replayed with ``harness compare``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.audit.finding import Finding
from harness.audit.render import to_json, to_markdown
from instances.canonical import to_json as instance_json
from instances.canonical import write_atomically
from instances.errors import UsageError


class Folder:
    """An open results folder that findings are added to.

    Parameters
    ----------
    path
        The folder; created.
    meta
        What is going to run.

    Raises
    ------
    UsageError
        If the folder cannot be created or written.
    """

    def __init__(self, path: Path, meta: Mapping[str, Any]) -> None:
        self.path = path
        with self._explained():
            (path / "witnesses").mkdir(parents=True, exist_ok=True)
            self._write_run(meta)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a failing file system into one line that says where."""
        try:
            yield
        except OSError as error:
            raise UsageError(f"{self.path}: results cannot be written there: {error.strerror or error}") from error

    def add(self, finding: Finding, so_far: Sequence[Finding]) -> None:
        """Save the witnesses of a finding, and all findings so far."""
        with self._explained():
            for i, witness in enumerate(finding.witnesses):
                write_atomically(self.path / finding.file(i), instance_json(witness.instance).encode())
            self._write(so_far)

    def finish(self, meta: Mapping[str, Any], findings: Sequence[Finding]) -> None:
        """Write ``run.json`` anew, and all findings."""
        with self._explained():
            self._write_run(meta)
            self._write(findings)

    def _write(self, findings: Sequence[Finding]) -> None:
        write_atomically(self.path / "audit.json", to_json(findings).encode())
        write_atomically(self.path / "audit.md", to_markdown(findings).encode())

    def _write_run(self, meta: Mapping[str, Any]) -> None:
        write_atomically(self.path / "run.json", (json.dumps(meta, indent=2, sort_keys=True) + "\n").encode())
