"""Strict reading of delimited traces: errors name the file, line, field, value, and what would be right."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from schedgap.instances.canonical import read_bytes, shown
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers.registry import IMPORTERS, MAX_DURATION_S, MAX_GANG, TraceJob
from schedgap.instances.schema import MAX_ITERATIONS

MAX_LINES = 3_000_000
"""Longer traces are refused before they are parsed (memory is checked before it is taken)."""

LARGEST = 1e13
"""Largest number in a trace that has no closer limit: milliseconds since 1970 stay below it."""

LOOK_AHEAD = 10_000
"""Characters of a file that its format is recognised by: a JSON log may be one line of 100 MB."""

COMPRESSED = {b"\x1f\x8b": "gzip", b"PK": "zip", b"BZ": "bzip2", b"\xfd7": "xz", b"(\xb5": "zstd"}
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?( ?(Z|[+-]\d\d:?\d\d))?")

Jobs = tuple[pd.DataFrame, dict[str, int], dict[str, Any]]
"""Jobs, the reason and number of those left out, and fields of the trace that depend on them."""


@dataclass(frozen=True)
class Column:
    """A column that an importer reads.

    Parameters
    ----------
    kind, low, high
        ``text`` (stripped), ``number``, ``whole`` (a whole number) or ``date`` (as seconds since 1970), and the range
        of numbers, inclusive.
    right
        What would be right, for messages.
    blank, optional
        Whether a field may be empty (``""`` or NaN), and whether the whole column may be missing; it is then left out.
    field
        The field of :class:`~schedgap.instances.importers.registry.TraceJob` that it is, if it is one.
    """

    name: str
    kind: Literal["text", "number", "whole", "date"]
    right: str
    low: float = 0.0
    high: float = LARGEST
    blank: bool = False
    optional: bool = False
    field: str = ""


KINDS: Mapping[str, Mapping[str, Any]] = {
    "gang": {"kind": "whole", "right": f"a whole number of GPUs, 0 to {MAX_GANG}", "high": MAX_GANG},
    "work": {
        "kind": "whole",
        "right": f"a whole number of iterations, 1 to {MAX_ITERATIONS:g}",
        "low": 1,
        "high": MAX_ITERATIONS,
    },
    "duration": {"kind": "number", "right": f"seconds, 0 to {MAX_DURATION_S:g}", "high": MAX_DURATION_S},
    "arrival": {"kind": "number", "right": f"a time, 0 to {LARGEST:g}"},
}
"""What all formats say of GPUs, iterations, run times in seconds, and arrivals in the unit of the format."""


def read_text(path: Path) -> str:
    """Return the text of a trace; raise where the file is too long, empty, compressed, or not UTF-8 text."""
    content = read_bytes(path)
    kind = COMPRESSED.get(content[:2])
    if kind is not None and b"\x00" in content:
        raise InstanceError(f"{path}: compressed ({kind}): unpack it first")
    return decoded(path, content, "utf-8-sig", "a header and one or more lines")


def decoded(path: Path, content: bytes, encoding: str, wanted: str) -> str:
    """Return the text of what a file holds; raise where it is none, empty (`wanted` is what is missing) or too long."""
    if b"\x00" in content:
        raise InstanceError(f"{path}: a binary file (byte {content.index(0)} is 0), not a text trace")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InstanceError(f"{path}: not UTF-8 text (byte {error.start})") from error
    if not text.strip():
        raise InstanceError(f"{path}: empty: {wanted} are wanted")
    if text.count("\n") > MAX_LINES:
        limit = f"{MAX_LINES} lines (instances.importers.table.MAX_LINES)"
        raise InstanceError(f"{path}: {text.count(chr(10))} lines are more than the limit of {limit}")
    return text


def check_format(path: Path, text: str, format: str, wanted: str) -> None:
    """Raise where another format fits the first line of `text` better than `format` does.

    `format` is what the user chose, `wanted` says for the message what a first line of it looks like.
    """
    first = first_line(text)
    score, _, best = max((spec.recognise(first), spec.id == format, spec.id) for spec in IMPORTERS)
    if score and best == format:
        return
    looks = f"this looks like format {best}" if score else f"the line is {shown(first)}"
    raise InstanceError(f"{path}: line 1: not {format}: {wanted}; {looks}")


def first_line(text: str) -> str:
    """Return the first line of `text` that is not empty, within :data:`LOOK_AHEAD` characters."""
    return next((line for line in re.split(r"[\r\n]+", text[:LOOK_AHEAD]) if line.strip()), "")


def parse_headed(path: Path, text: str, columns: Sequence[Column], least: int = 1) -> pd.DataFrame:
    """Return the named columns of CSV `text`, whose first line is the header; see :func:`parse`."""
    _, names = next(split(path, text, ",", '"'))
    at = {name: place for place, name in enumerate(names)}
    for column in columns:
        if column.name not in at and not column.optional:
            raise InstanceError(f"{path}: line 1: no column {column.name!r}: {column.right}")
    return parse(path, text, {at[c.name]: c for c in columns if c.name in at}, len(names), headed=True, least=least)


def split(path: Path, text: str, delimiter: str, quote: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields, stripped, of every line that is not empty."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote, quoting=quoting)
    try:
        for fields in reader:
            if fields and any(fields):
                yield reader.line_num, [one.strip() for one in fields]
    except csv.Error as error:
        raise InstanceError(f"{path}: line {reader.line_num}: not {delimiter!r}-separated text: {error}") from error


def parse(
    path: Path,
    text: str,
    columns: Mapping[int, Column],
    width: int,
    delimiter: str = ",",
    headed: bool = False,
    least: int = 1,
) -> pd.DataFrame:
    """Return columns by their places in lines that have `width` fields each, or raise on the first thing that is wrong.

    They are converted by kind; the index is the line number. Without a header, quotes are part of a field. A header
    needs `least` lines below it.
    """
    lines = split(path, text, delimiter, '"' if headed else None)
    if headed:
        next(lines)
    table = framed(path, lines, {column.name: place for place, column in columns.items()}, width, least)
    return pd.DataFrame({column.name: convert(path, table[column.name], column) for column in columns.values()})


def framed(
    path: Path, lines: Iterable[tuple[int, list[str]]], places: Mapping[str, int], width: int, least: int = 1
) -> pd.DataFrame:
    """Return the fields at some places of numbered lines as text, by column, or raise on lines of another width.

    It raises on fewer than `least` lines, too.
    """
    rows = {}
    for number, line in lines:
        if len(line) != width:
            raise InstanceError(f"{path}: line {number}: {len(line)} fields instead of {width}")
        rows[number] = [line[place] for place in places.values()]
    if len(rows) < least:
        raise InstanceError(f"{path}: only a header: one or more lines follow it")
    return pd.DataFrame(list(rows.values()), index=list(rows), columns=list(places), dtype=object)


def convert(path: Path, raw: pd.Series, column: Column, at: str = "line") -> pd.Series:
    """Return the values of one column by its kind, or raise on the first wrong one; `at` is what lines are called."""
    empty = raw == ""
    good: pd.Series
    if column.kind == "text":
        wrong = raw.map(lambda value: len(value) > 200 or CONTROL.search(value) is not None)
        good = raw
    else:
        good = seconds(raw) if column.kind == "date" else pd.to_numeric(raw, errors="coerce").astype(float)
        wrong = ~((good >= column.low) & (good <= column.high))
        if column.kind == "whole":
            wrong |= good % 1 != 0
        wrong &= ~empty
    if not column.blank:
        wrong |= empty
    refuse(path, wrong, raw.rename(column.name), column.right, at)
    return good


def refuse(path: Path, wrong: Any, raw: pd.Series, right: str, at: str = "line") -> None:
    """Raise on the first line that is wrong in a column, whose index has their numbers."""
    wrong = pd.Series(np.asarray(wrong), raw.index)
    if wrong.any():
        line = first_where(wrong)
        raise InstanceError(f"{path}: {at} {line}: {raw.name} = {shown(raw.loc[line])}: {right}")


def sifted(frame: pd.DataFrame, reasons: Mapping[str, pd.Series]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows to which no reason to leave them out applies, and for how many others each is the first."""
    left_out = {}
    for reason, applies in reasons.items():
        out = applies.reindex(frame.index)
        left_out[reason] = int(out.sum())
        frame = frame[~out]
    return frame, left_out


def jobs_of(frame: pd.DataFrame) -> list[TraceJob]:
    """Return a job for each row of a table whose columns have the names of its fields; numbers as ids are ``job-0``."""
    known = {field.name for field in fields(TraceJob)}
    jobs = []
    for row in frame[[name for name in frame if name in known]].to_dict("records"):
        given = {str(name): value for name, value in row.items() if not (isinstance(value, float) and isnan(value))}
        whole = {name: int(given[name]) for name in ("gpus", "iterations") if name in given}
        name = given["id"] if isinstance(given["id"], str) else f"job-{given['id']:.0f}"
        jobs.append(TraceJob(**given | whole | {"id": name, "status": given.get("status") or None}))
    return jobs


def first_where(wrong: pd.Series) -> int:
    """Return the line number of the first row where `wrong` holds."""
    return int(wrong.index[int(wrong.to_numpy().argmax())])


def seconds(dates: pd.Series) -> pd.Series:
    """Return ISO dates as seconds since 1970 (UTC where they name no zone); NaN for what is no date."""
    proper = dates.where(dates.map(lambda text: ISO_DATE.fullmatch(text) is not None))
    stamps = pd.to_datetime(proper, errors="coerce", utc=True, format="ISO8601")
    return (stamps - pd.Timestamp(0, tz="UTC").as_unit("us")) / pd.Timedelta(seconds=1)


def check_unique(path: Path, ids: pd.Series) -> None:
    """Raise on the first id that occurs twice; the index of `ids` is the line number."""
    twice = ids.duplicated()
    before = first_where(ids == ids[twice].iloc[0]) if twice.any() else 0
    refuse(path, twice, ids, f"already used in line {before}; each occurs once")


def check_run_times(path: Path, starts: pd.Series, ends: pd.Series) -> None:
    """Raise on the first end before its start, or too long after it."""
    wrong = (ends < starts) | (ends - starts > MAX_DURATION_S)
    before = shown(starts.loc[first_where(wrong)]) if wrong.any() else ""
    refuse(path, wrong, ends, f"after {starts.name} = {before}, by up to {MAX_DURATION_S:g} s")
