"""Strict reading of delimited traces: errors name the file, line, field, value, and what would be right."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from schedgap.instances.canonical import read_bytes
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers.registry import find_formats
from schedgap.instances.importers.trace import MAX_DURATION_S, MAX_GANG
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


@dataclass(frozen=True)
class Column:
    """A column that an importer reads.

    Parameters
    ----------
    kind
        ``text`` (stripped), ``number``, ``whole`` (a whole number) or ``date`` (as seconds since 1970).
    right
        What would be right, for messages.
    low, high
        Range of numbers, inclusive.
    blank
        Whether a field may be empty: an empty text is ``""``, an empty number or date NaN.
    optional
        Whether the whole column may be missing; it is then left out of the table.
    """

    name: str
    kind: Literal["text", "number", "whole", "date"]
    right: str
    low: float = 0.0
    high: float = LARGEST
    blank: bool = False
    optional: bool = False


gang = partial(Column, kind="whole", right=f"a whole number of GPUs, 0 to {MAX_GANG}", high=MAX_GANG)
_iterations = f"a whole number of iterations, 1 to {MAX_ITERATIONS:g}"
work = partial(Column, kind="whole", right=_iterations, low=1, high=MAX_ITERATIONS)
duration = partial(Column, kind="number", right=f"seconds, 0 to {MAX_DURATION_S:g}", high=MAX_DURATION_S)
arrival = partial(Column, kind="number", right=f"a time, 0 to {LARGEST:g}")
"""Columns of a job by name: its GPUs, iterations, run time in seconds, and arrival in the format's unit."""


def numbers_at(line: str, width: int, positions: Sequence[int]) -> int:
    """Return `width` where `line` has so many fields, with numbers at `positions`, otherwise 0."""
    fields = line.split(",")
    if len(fields) != width:
        return 0
    return width if all(NUMBER.fullmatch(fields[i].strip()) for i in positions) else 0


def header_of(columns: Sequence[Column], delimiter: str = ",") -> Callable[[str], int]:
    """Return the `recognise` of a format whose header has these columns (optional ones may be missing)."""

    def recognise(first_line: str) -> int:
        names = {name.strip() for name in first_line.split(delimiter)}
        required = [c.name for c in columns if not c.optional]
        return sum(c.name in names for c in columns) if names.issuperset(required) else 0

    return recognise


def read_text(path: Path) -> str:
    """Return the text of a trace.

    Raises
    ------
    InstanceError
        If the file is missing, a folder, too large, empty, compressed, or not UTF-8 text.
    """
    content = read_bytes(path)
    kind = COMPRESSED.get(content[:2])
    if kind is not None and b"\x00" in content:
        raise InstanceError(f"{path}: compressed ({kind}): unpack it first")
    if b"\x00" in content:
        raise InstanceError(f"{path}: a binary file (byte {content.index(0)} is 0), not a text trace")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InstanceError(f"{path}: not UTF-8 text (byte {error.start})") from error
    if not text.strip():
        raise InstanceError(f"{path}: empty: a header and one or more lines are wanted")
    if text.count("\n") > MAX_LINES:
        limit = f"{MAX_LINES} lines (instances.importers.table.MAX_LINES)"
        raise InstanceError(f"{path}: {text.count(chr(10))} lines are more than the limit of {limit}")
    return text


def check_format(path: Path, text: str, format: str, wanted: str) -> None:
    """Raise where another format fits the first line of `text` better than `format` does.

    `format` is what the user chose, `wanted` says for the message what a first line of it looks like.
    """
    first = first_line(text)
    found = find_formats(first)
    best = max(found, key=lambda name: (found[name], name == format), default=None)
    if best == format:
        return
    looks = f"this looks like format {best}" if best else f"the line is {shown(first)}"
    raise InstanceError(f"{path}: line 1: not {format}: {wanted}; {looks}")


def first_line(text: str) -> str:
    """Return the first line of `text` that is not empty, within :data:`LOOK_AHEAD` characters."""
    return next((line for line in re.split(r"[\r\n]+", text[:LOOK_AHEAD]) if line.strip()), "")


def read_table(path: Path, format: str, columns: Sequence[Column]) -> pd.DataFrame:
    """Read a CSV file with a header.

    Returns
    -------
    pandas.DataFrame
        The named columns, converted by kind, in the order of the file; the index is the line number. Columns
        of the file that are not named are left out.

    Raises
    ------
    InstanceError
        On the first thing that is wrong.
    """
    text = read_text(path)
    required = [c.name for c in columns if not c.optional]
    names = {name.strip() for name in first_line(text).split(",")}
    missing = ", ".join(name for name in required if name not in names)
    lacks = f"no column {missing}; " if missing else ""
    check_format(path, text, format, f"{lacks}its columns are {', '.join(required)}")
    return parse_table(path, text, columns)


def parse_table(path: Path, text: str, columns: Sequence[Column]) -> pd.DataFrame:
    """Return the named columns of CSV `text`, whose first line is the header (see :func:`read_table`)."""
    lines = split(path, text, ",", '"')
    _, header = next(lines)
    names = [name.strip() for name in header]
    present = [c for c in columns if c.name in names]
    for column in columns:
        if column.name not in names and not column.optional:
            raise InstanceError(f"{path}: line 1: no column {column.name!r}: {column.right}")
    return to_frame(path, lines, present, [names.index(c.name) for c in present], len(names))


def parse_lines(path: Path, text: str, columns: Mapping[int, Column], width: int, delimiter: str) -> pd.DataFrame:
    """Return the `columns`, by position, of `text` without header that has `width` fields in every line."""
    return to_frame(path, split(path, text, delimiter, None), list(columns.values()), list(columns), width)


def split(path: Path, text: str, delimiter: str, quote: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of every line that is not empty."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote, quoting=quoting)
    try:
        for fields in reader:
            if fields and any(fields):
                yield reader.line_num, fields
    except csv.Error as error:
        raise InstanceError(f"{path}: line {reader.line_num}: not {delimiter!r}-separated text: {error}") from error


def to_frame(
    path: Path,
    lines: Iterable[tuple[int, list[str]]],
    columns: Sequence[Column],
    positions: Sequence[int],
    width: int,
) -> pd.DataFrame:
    """Return `columns`, found at `positions` of lines that have `width` fields each."""
    numbers: list[int] = []
    fields: list[list[str]] = [[] for _ in columns]
    for number, line in lines:
        if len(line) != width:
            raise InstanceError(f"{path}: line {number}: {len(line)} fields instead of {width}")
        numbers.append(number)
        for values, position in zip(fields, positions, strict=True):
            values.append(line[position].strip())
    if not numbers:
        raise InstanceError(f"{path}: only a header: one or more lines follow it")
    index = np.array(numbers)
    data = {c.name: convert(path, index, values, c) for c, values in zip(columns, fields, strict=True)}
    return pd.DataFrame(data, index=index)


def convert(path: Path, lines: NDArray[np.int64], values: list[str], column: Column, at: str = "line") -> pd.Series:
    """Return the values of one column by its kind, or raise on the first that is wrong; `at` is what `lines` number."""
    raw = pd.Series(values, index=lines, dtype=object)
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
    if wrong.any():
        line = first_where(wrong)
        raise InstanceError(f"{path}: {at} {line}: {column.name} = {shown(raw.loc[line])}: {column.right}")
    return good


def first_where(wrong: pd.Series) -> int:
    """Return the line number of the first row where `wrong` holds."""
    return int(wrong.index[int(wrong.to_numpy().argmax())])


def seconds(dates: pd.Series) -> pd.Series:
    """Return ISO dates as seconds since 1970 (UTC where they name no zone); NaN for what is no date."""
    proper = dates.where(dates.map(lambda text: ISO_DATE.fullmatch(text) is not None))
    stamps = pd.to_datetime(proper, errors="coerce", utc=True, format="ISO8601")
    return (stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)


def check_unique(path: Path, ids: pd.Series) -> None:
    """Raise on the first id that occurs twice; the index of `ids` is the line number."""
    twice = ids.duplicated()
    if twice.any():
        line = first_where(twice)
        before = first_where(ids == ids.loc[line])
        value = shown(ids.loc[line])
        message = f"{ids.name} = {value}: already used in line {before}; each occurs once"
        raise InstanceError(f"{path}: line {line}: {message}")


def check_run_times(path: Path, starts: pd.Series, ends: pd.Series) -> None:
    """Raise on the first end before its start, or too long after it."""
    wrong = (ends < starts) | (ends - starts > MAX_DURATION_S)
    if wrong.any():
        line = first_where(wrong)
        right = f"after {starts.name} = {shown(starts.loc[line])}, by up to {MAX_DURATION_S:g} s"
        raise InstanceError(f"{path}: line {line}: {ends.name} = {shown(ends.loc[line])}: {right}")


def shown(value: object) -> str:
    """Return a stranger's value for a message: quoted, escaped, on one line, not long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
