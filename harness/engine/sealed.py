"""Safe reading of results from untrusted folders: digests, regular files only, bounded size and memory.

``run.json`` and the lines of the journal contain digests of themselves and of their files. Digests detect damage, not
forgery: whoever writes a folder can write matching digests. Therefore sizes are bounded while reading, and types are
validated.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from schedgap.instances.canonical import read_bytes
from schedgap.instances.errors import UsageError

MAX_READ_MB, MAX_UNPACKED_MB = 2000, 200
"""Limits in MB on the memory of one file's parsed content, and on its text, which also limits a journal line."""

SIZES = {b",": 64, b"[": 128, b"{": 320}
"""Upper bounds on the bytes that a value, list and object take once parsed, by the character counted for each."""

SEAL = "sum"


def digest(content: bytes) -> str:
    """Return a digest of 16 hexadecimal digits."""
    return blake2b(content, digest_size=8).hexdigest()


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the digest of each file's content."""
    return {name: digest(content) for name, content in files.items()}


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data with their digest as the last entry."""
    return {**content, SEAL: _seal(content)}


def unsealed(content: Any, what: str) -> dict[str, Any]:
    """Return the data without their digest; raise `ValueError`, which begins with `what`, if the digest is wrong."""
    data = {name: value for name, value in content.items() if name != SEAL} if isinstance(content, dict) else {}
    if not data or content.get(SEAL) != _seal(data):
        raise ValueError(f"{what} is not as it was written (its digest differs)")
    return data


def _seal(content: Mapping[str, Any]) -> str:
    return digest(json.dumps(content, separators=(",", ":")).encode())


def parsed(text: bytes) -> Any:
    """Parse a JSON text in bounded memory.

    The memory is estimated first, because a parser that runs out of memory ends the process: the three bytes ``[],``
    become 88. Raise `ValueError` if the text is not JSON, or would take more than :data:`MAX_READ_MB`.
    """
    if sum(size * text.count(mark) for mark, size in SIZES.items()) > MAX_READ_MB * 1_000_000:
        raise ValueError(f"it takes more than {MAX_READ_MB} MB of memory (harness.engine.sealed.MAX_READ_MB)")
    return from_json(text, allow_inf_nan=True)


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder; raise `UsageError` if the name leads out of it, or is a link."""
    path = folder / name
    if not path.parent.resolve().is_relative_to(folder.resolve()) or path.is_symlink():
        raise UsageError(f"{folder}: {name} leads out of the folder or is a link, which results may not contain")
    return path


@dataclass(frozen=True)
class KeptFile:
    """A file of a results folder, with its digest from the journal."""

    folder: Path
    name: str
    digest: str | None

    def content(self) -> bytes:
        """Return the file's bytes; raise `ValueError` if it is not a regular file, too large, or not as written."""
        content = read_bytes(inside(self.folder, self.name))
        if digest(content) != self.digest:
            raise ValueError(f"{self.name} is not as it was written (its digest differs)")
        return content

    def unpacked(self) -> Any:
        """Return the plain data in the file, which is gzipped JSON.

        Raise `ValueError` as :meth:`content` does, or if the data are too large.
        """
        unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = unzip.decompress(self.content(), MAX_UNPACKED_MB * 1_000_000)
        if not unzip.eof:
            raise ValueError(f"{self.name} is cut off, or holds more than {MAX_UNPACKED_MB} MB")
        return parsed(text)
