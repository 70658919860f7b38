"""Reading of certificates and instances from files that anyone may have written, within limits on their size."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .basics import Data, require
from .reading.columns import RawColumns

MOST_BYTES = 200_000_000
"""Largest size of a file, and of what it unpacks to; the log of a million jobs has 122 MB."""

MOST_VALUES = 20_000_000
"""Largest number of values in a file; each takes up to 100 bytes of memory."""


def unpacked(path: Path) -> bytes:
    """Return the content of a gzip file; refuse a file that is damaged or cut off, or whose content is too large."""
    unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unzip.decompress(content(path), MOST_BYTES)
    except zlib.error:
        require(False, "it is not a gzip file, or it was damaged")
    require(unzip.eof, f"it is cut off, or unpacks to more than {MOST_BYTES // 10**6} MB")
    return text


def content(path: Path) -> bytes:
    """Return the content of a file; refuse a file that is missing, not a regular file, or too large."""
    require(path.is_file(), f"{path.name} is no file")
    with path.open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    require(len(text) <= MOST_BYTES, f"{path.name} has more than {MOST_BYTES // 10**6} MB")
    return text


def parsed(text: bytes) -> Data:
    """Return the object that a JSON text states.

    Texts that state no object or too many values, NaN or an infinite number, or a field twice are refused.
    """
    values = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    require(values <= MOST_VALUES, f"it has more than {MOST_VALUES:,} values")
    try:
        data = json.loads(text, object_pairs_hook=once, parse_constant=no_number, parse_float=finite)
    except RecursionError:
        require(False, "its JSON is nested too deeply")
    require(isinstance(data, dict), "it is not an object with fields")
    return data  # type: ignore[no-any-return]


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object as a mapping; refuse an object that has a field twice."""
    data = dict(pairs)
    require(len(data) == len(pairs), "it has a field twice")
    return data


def no_number(text: str) -> float:
    """Refuse NaN and infinities."""
    require(False, f"{text} is not a number")
    return 0.0


def finite(text: str) -> float:
    """Return a decimal number; refuse one that is too large for a float."""
    number = float(text)
    require(abs(number) < float("inf"), f"{text[:20]} is too large")
    return number


def instance_of(proof: Data, path: Path) -> Data:
    """Return the instance that the certificate in a file names, from ``instances/`` beside the file's folder."""
    name = proof.get("instance")
    named = isinstance(name, str) and re.fullmatch("[0-9a-f]{64}", name)
    require(bool(named), "it names no instance: that is 64 hexadecimal digits")
    data = parsed(content(path.parent.parent / "instances" / f"{name}.json"))
    jobs = data.get("jobs")
    return {**data, "jobs": RawColumns(jobs)} if isinstance(jobs, dict) else data


def printable(text: object) -> str:
    """Return text on one line, with escapes for characters that are not printable."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
