"""Strict reading of delimited traces: errors name the file, line, field and value, and say what would be right."""

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
"""Longer traces are rejected before they are parsed, so that they do not fill the memory."""

LARGEST = 1e13
"""Largest number in a column without a stricter limit; milliseconds since 1970 stay below it."""

LOOK_AHEAD = 10_000
"""Characters of a file by which its format is recognised; a JSON log may be one line of 100 MB."""

COMPRESSED = {b"\x1f\x8b": "gzip", b"PK": "zip", b"BZ": "bzip2", b"\xfd7": "xz", b"(\xb5": "zstd"}
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?( ?(Z|[+-]\d\d:?\d\d))?")

Jobs = tuple[pd.DataFrame, dict[str, int], dict[str, Any]]
"""Jobs, the number of those left out by reason, and fields of the trace that depend on them."""


@dataclass(frozen=True)
class TraceColumn:
    """A column that an importer reads.

    Parameters
    ----------
    kind, low, high
        ``text`` (stripped), ``number``, ``whole`` (a whole number) or ``date`` (as seconds since 1970), and the range
        of numbers, inclusive.
    right
        Valid values, in words, for messages.
    blank, optional
        Whether a field may be empty (``""`` or NaN), and whether the whole column may be missing (it is then omitted).
    field
        Corresponding field of :class:`~schedgap.instances.importers.registry.TraceJob`, if any.
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
"""Rules for GPUs, iterations, run times in seconds, and arrivals in the format's unit, which all formats share."""


def read_text(path: Path) -> str:
    """Return the text of a trace; raise `InstanceError` if it is too long, empty, compressed, or not UTF-8 text."""
    content = read_bytes(path)
    kind = COMPRESSED.get(content[:2])
    if kind is not None and b"\x00" in content:
        raise InstanceError(f"{path}: the file is compressed ({kind}); unpack it first")
    return decoded(path, content, "utf-8-sig", "a header and one or more lines")


def decoded(path: Path, content: bytes, encoding: str, wanted: str) -> str:
    """Return the text of a file that should have `wanted`; raise `InstanceError` if it is binary, empty or too long."""
    if b"\x00" in content:
        raise InstanceError(f"{path}: a binary file (byte {content.index(0)} is 0), not a text trace")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InstanceError(f"{path}: not UTF-8 text (byte {error.start})") from error
    if not text.strip():
        raise InstanceError(f"{path}: the file is empty; it should have {wanted}")
    if (lines := text.count("\n")) > MAX_LINES:
        limit = f"{MAX_LINES} lines (instances.importers.table.MAX_LINES)"
        raise InstanceError(f"{path}: {lines} lines are more than the limit of {limit}")
    return text


def check_format(path: Path, text: str, format: str, wanted: str) -> None:
    """Raise `InstanceError` if another format fits the first line of `text` better than the user's `format`.

    `wanted` describes a first line in that format for the message.
    """
    first = first_line(text)
    score, _, best = max((spec.recognise(first), spec.id == format, spec.id) for spec in IMPORTERS)
    if score and best == format:
        return
    hint = f"this looks like format {best}" if score else f"the line is {shown(first)}"
    raise InstanceError(f"{path}: line 1: not {format}: {wanted}; {hint}")


def first_line(text: str) -> str:
    """Return the first non-empty line in the first :data:`LOOK_AHEAD` characters of `text`."""
    return next((line for line in re.split(r"[\r\n]+", text[:LOOK_AHEAD]) if line.strip()), "")


def parse_headed(path: Path, text: str, columns: Sequence[TraceColumn], least: int = 1) -> pd.DataFrame:
    """Return the named columns of CSV `text`, whose first line is the header; see :func:`parse`."""
    _, names = next(split(path, text, ",", '"'))
    at = {name: place for place, name in enumerate(names)}
    for column in columns:
        if column.name not in at and not column.optional:
            raise InstanceError(f"{path}: line 1: no column {column.name!r}: {column.right}")
    return parse(path, text, {at[c.name]: c for c in columns if c.name in at}, len(names), headed=True, least=least)


def split(path: Path, text: str, delimiter: str, quote: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the stripped fields of each non-empty line."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote, quoting=quoting)
    try:
        for fields in reader:
            if fields and any(fields):
                yield reader.line_num, [field.strip() for field in fields]
    except csv.Error as error:
        raise InstanceError(f"{path}: line {reader.line_num}: not {delimiter!r}-separated text: {error}") from error


def parse(
    path: Path,
    text: str,
    columns: Mapping[int, TraceColumn],
    width: int,
    delimiter: str = ",",
    headed: bool = False,
    least: int = 1,
) -> pd.DataFrame:
    """Return the columns at these places, converted by kind and indexed by line number.

    It raises `InstanceError` on the first invalid field, on a line that does not have `width` fields, and on fewer than
    `least` lines below the header. Without a header, quotes are part of a field.
    """
    lines = split(path, text, delimiter, '"' if headed else None)
    if headed:
        next(lines)
    table = framed(path, lines, {column.name: place for place, column in columns.items()}, width, least)
    return pd.DataFrame({column.name: convert(path, table[column.name], column) for column in columns.values()})


def framed(
    path: Path, lines: Iterable[tuple[int, list[str]]], places: Mapping[str, int], width: int, least: int = 1
) -> pd.DataFrame:
    """Return the columns at these places of numbered lines as text, indexed by line number.

    It raises `InstanceError` on a line that does not have `width` fields, and on fewer than `least` lines.
    """
    rows = {}
    for number, line in lines:
        if len(line) != width:
            raise InstanceError(f"{path}: line {number}: {len(line)} fields instead of {width}")
        rows[number] = [line[place] for place in places.values()]
    if len(rows) < least:
        raise InstanceError(f"{path}: only a header; one or more lines must follow it")
    return pd.DataFrame(list(rows.values()), index=list(rows), columns=list(places), dtype=object)


def convert(path: Path, raw: pd.Series, column: TraceColumn, at: str = "line") -> pd.Series:
    """Return the values of a column by kind, or raise on the first invalid one; `at` is the word for lines."""
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
    """Raise `InstanceError` with the first line at which `wrong` holds; the index of `raw` has the line numbers."""
    wrong = pd.Series(np.asarray(wrong), raw.index)
    if wrong.any():
        line = first_where(wrong)
        raise InstanceError(f"{path}: {at} {line}: {raw.name} = {shown(raw.loc[line])}: {right}")


def sifted(frame: pd.DataFrame, reasons: Mapping[str, pd.Series]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the rows that no reason excludes, and the number of rows left out for each reason, the first that applies.

    `reasons` maps each reason, in words, to the mask of the rows that it excludes.
    """
    left_out = {}
    for reason, applies in reasons.items():
        out = applies.reindex(frame.index)
        left_out[reason] = int(out.sum())
        frame = frame[~out]
    return frame, left_out


def jobs_of(frame: pd.DataFrame) -> list[TraceJob]:
    """Return a job for each row of a table whose columns are named like its fields; a numeric id 0 is ``job-0``."""
    names = {field.name for field in fields(TraceJob)}
    jobs = []
    for row in frame[[name for name in frame if name in names]].to_dict("records"):
        values = {str(name): value for name, value in row.items() if not (isinstance(value, float) and isnan(value))}
        whole = {name: int(values[name]) for name in ("gpus", "iterations") if name in values}
        id = values["id"] if isinstance(values["id"], str) else f"job-{values['id']:.0f}"
        jobs.append(TraceJob(**values | whole | {"id": id, "status": values.get("status") or None}))
    return jobs


def first_where(wrong: pd.Series) -> int:
    """Return the line number of the first row where `wrong` holds."""
    return int(wrong.index[int(wrong.to_numpy().argmax())])


def seconds(dates: pd.Series) -> pd.Series:
    """Return ISO dates as seconds since 1970 (UTC if they name no zone), NaN for other texts."""
    proper = dates.where(dates.map(lambda text: ISO_DATE.fullmatch(text) is not None))
    stamps = pd.to_datetime(proper, errors="coerce", utc=True, format="ISO8601")
    return (stamps - pd.Timestamp(0, tz="UTC").as_unit("us")) / pd.Timedelta(seconds=1)


def check_unique(path: Path, ids: pd.Series) -> None:
    """Raise `InstanceError` on the first id that occurs twice; the index of `ids` has the line numbers."""
    twice = ids.duplicated()
    before = first_where(ids == ids[twice].iloc[0]) if twice.any() else 0
    refuse(path, twice, ids, f"already used in line {before}; each id occurs once")


def check_run_times(path: Path, starts: pd.Series, ends: pd.Series) -> None:
    """Raise `InstanceError` on the first end that is before its start or too long after it."""
    wrong = (ends < starts) | (ends - starts > MAX_DURATION_S)
    before = shown(starts.loc[first_where(wrong)]) if wrong.any() else ""
    refuse(path, wrong, ends, f"after {starts.name} = {before}, by up to {MAX_DURATION_S:g} s")
