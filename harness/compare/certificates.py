"""Files that prove bounds, beside the rows; ``examples/check_certificate.py`` checks them without this package."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgap.harness.compare.row import Row
from schedgap.harness.engine.folder import damage_explained
from schedgap.harness.engine.sealed import KeptFile
from schedgap.harness.verify import differ
from schedgap.instances.errors import UsageError
from schedgap.instances.schema.content import dumps
from schedgap.models.certificates import Proof

FOLDER = "certificates"


def certificate(row: Row, proof: Proof) -> dict[str, Any]:
    """Return the certificate of a row's bound: what it is about, its multipliers, and a digest of all that."""
    about = {"instance": row.fingerprint, "method": row.method, "problem": row.problem, "bound": proof.bound}
    content = about | dict(proof.content)
    return content | {"digest": _digest(content)}


def read(file: KeptFile, row: Row) -> dict[str, Any]:
    """Return the certificate in a file.

    Raises
    ------
    UsageError
        If it is damaged, or of another bound than the row's.
    """
    with damage_explained(file.folder / file.name):
        content: dict[str, Any] = file.unpacked()
        if _digest({name: value for name, value in content.items() if name != "digest"}) != content["digest"]:
            raise ValueError("its digest is that of another content")
        told = content["instance"], content["problem"], content["bound"]
        if told != (row.fingerprint, row.problem, row.proved_bound):
            raise ValueError("it is about another bound than that of its row")
        return content


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(dumps(content).encode()).hexdigest()


def proved(row: Row) -> bool:
    """Whether the certificate of a row proves its bound, or a tighter one; otherwise the solver's word stands."""
    if row.proved_bound is None or row.own_bound is None:
        return False
    weaker = row.proved_bound - row.own_bound if row.sense == "max" else row.own_bound - row.proved_bound
    return weaker <= 0 or not differ(row.proved_bound, row.own_bound)


def export(run: Path, folder: Path) -> None:
    """Copy the certificates of a results folder, and the instances that they are about, into another folder.

    Raises
    ------
    UsageError
        If they cannot be written.
    """
    try:
        for part in (FOLDER, "instances"):
            if (run / part).is_dir():
                shutil.copytree(run / part, folder / part, dirs_exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: certificates cannot be written: {error.strerror or error}") from error
