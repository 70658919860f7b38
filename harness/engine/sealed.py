"""Reading a folder of results that nobody vouches for: digests, regular files only, bounded size and memory.

Lines of the journal and ``run.json`` carry a digest of themselves, lines also those of their files. A digest tells
damage, not forgery: whoever writes a folder can write its digests. So sizes are bounded while reading, and types are
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

MAX_READ_MB, MAX_UNPACKED_MB = 300, 100
"""Memory that the content of one file may take, and size of its text; a line of a journal is no longer either."""

SIZES = {b",": 64, b"[": 128, b"{": 320}
"""Most bytes that a value of a list or object takes, and a list and an object themselves, while they are read."""

SEAL = "sum"


def digest(content: bytes) -> str:
    """Return 16 hexadecimal digits that one flipped bit changes."""
    return blake2b(content, digest_size=8).hexdigest()


def digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the digest of each file's content."""
    return {name: digest(content) for name, content in files.items()}


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data with a digest of it as last entry."""
    return {**content, SEAL: _seal(content)}


def unsealed(content: Any, what: str) -> dict[str, Any]:
    """Return what :func:`sealed` was given; raise `ValueError`, beginning with `what`, if it is not as written."""
    told = {name: value for name, value in content.items() if name != SEAL} if isinstance(content, dict) else {}
    if not told or content.get(SEAL) != _seal(told):
        raise ValueError(f"{what} is not as it was written (its digest differs)")
    return told


def _seal(content: Mapping[str, Any]) -> str:
    return digest(json.dumps(content, separators=(",", ":")).encode())


def parsed(text: bytes) -> Any:
    """Return the plain data in a JSON text, in bounded memory.

    What it takes is estimated before: a parser that runs out of memory ends the process. `[],` makes 88 bytes of 3. It
    raises `ValueError` if it is not JSON, or would take more than :data:`MAX_READ_MB`.
    """
    if sum(size * text.count(mark) for mark, size in SIZES.items()) > MAX_READ_MB * 1_000_000:
        raise ValueError(f"it takes more than {MAX_READ_MB} MB of memory (harness.engine.sealed.MAX_READ_MB)")
    return from_json(text, allow_inf_nan=True)


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file below a folder; raise `UsageError` where a stranger's name, or a link, leads out."""
    path = folder / name
    if not path.parent.resolve().is_relative_to(folder.resolve()) or path.is_symlink():
        raise UsageError(f"{folder}: {name} leads out of the folder, or is a link; results hold neither")
    return path


@dataclass(frozen=True)
class KeptFile:
    """A file of a results folder, with the digest that the journal has of it."""

    folder: Path
    name: str
    digest: str | None

    def content(self) -> bytes:
        """Return what is in it; raise `ValueError` if it is no regular file, too large, or not what was written."""
        content = read_bytes(inside(self.folder, self.name))
        if digest(content) != self.digest:
            raise ValueError(f"{self.name} is not as it was written (its digest differs)")
        return content

    def unpacked(self) -> Any:
        """Return the plain data in it, gzipped JSON; raise `ValueError` as :meth:`content`, or if it is too large."""
        unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = unzip.decompress(self.content(), MAX_UNPACKED_MB * 1_000_000)
        if not unzip.eof:
            raise ValueError(f"{self.name} is cut off, or holds more than {MAX_UNPACKED_MB} MB")
        return parsed(text)
