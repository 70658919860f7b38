"""Certificate files that prove the bounds of rows; :mod:`schedgap.certificates` checks them without models."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgap import certificates as rules
from schedgap.harness.engine.folder import damage_explained
from schedgap.harness.engine.result import packed
from schedgap.harness.engine.sealed import KeptFile
from schedgap.instances.canonical import write, write_atomically
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

FOLDER = "certificates"


def certificate(about: Mapping[str, Any], multipliers: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certificate: the fields of `about` (instance, method, problem), multipliers, their bound, and a digest.

    The rule of the problem derives the bound from the multipliers and the `raw` instance. Raise one of
    :data:`schedgap.certificates.REFUSED` if no bound follows.
    """
    content = {**about, **multipliers}
    content["bound"] = rules.certified(content, raw, _sense(content["problem"]))
    return content | {"digest": rules.digest(content, set())}


def _sense(problem: str) -> int:
    """Return -1 if the objective of a problem is minimised, else 1; a plug-in's rule might return the other sense."""
    return {"min": -1, "max": 1}[PAPERS.get(problem.partition(".")[0]).problem(problem).sense]


def read(file: KeptFile, about: Mapping[str, Any], bound: float) -> dict[str, Any]:
    """Return the certificate in a file; raise `UsageError` if it is damaged or certifies another bound."""
    with damage_explained(file.folder / file.name):
        content: dict[str, Any] = file.unpacked()
        if rules.digest(content, {"digest"}) != content["digest"]:
            raise ValueError("its digest does not match its content")
        expected = {"window": None, "round_s": None, **about, "bound": bound}
        if any(content.get(name) != value for name, value in expected.items()):
            raise ValueError("it certifies another bound than that of its row")
        return content


def checked(content: Mapping[str, Any], instance: Instance) -> str:
    """Derive a certificate's bound again from its multipliers; return ``bound … holds``, or raise `ValueError`."""
    try:
        rules.check(content, instance.plain, _sense(content["problem"]))
    except rules.REFUSED as reason:
        raise ValueError(f"its certificate does not hold: {reason or type(reason).__name__}") from reason
    return f"bound {content['bound']:.10g} holds"


def save(content: Mapping[str, Any], instance: Instance, folder: Path) -> Path:
    """Write a certificate and its instance into a folder as a run lays them out; return the certificate's path."""
    path = folder / FOLDER / f"prices-{content['instance'][:12]}.json.gz"
    try:
        for part in (path.parent, folder / "instances"):
            part.mkdir(parents=True, exist_ok=True)
        write_atomically(path, packed(content))
    except OSError as error:
        raise UsageError(f"{folder}: certificates cannot be written: {error.strerror or error}") from error
    write(instance, folder / "instances" / f"{instance.fingerprint}.json")
    return path


def export(run: Path, folder: Path) -> None:
    """Copy the certificates of a results folder and their instances; raise `UsageError` if that fails."""
    try:
        for part in (FOLDER, "instances"):
            if (run / part).is_dir():
                shutil.copytree(run / part, folder / part, dirs_exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: certificates cannot be written: {error.strerror or error}") from error
