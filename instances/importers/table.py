"""Strict reading of delimited traces: errors name the file, line, field and value, and say what would be right."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from schedgap.instances import canonical
from schedgap.instances.canonical import read_bytes, shown
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers.registry import IMPORTERS, MAX_DURATION_S, MAX_GANG, TraceJob
from schedgap.instances.importers.rows import REPEATED, REPEATED_HEADER, FileRows
from schedgap.instances.schema import MAX_ITERATIONS

MAX_LINES = 3_000_000
"""Longer traces are rejected before they are parsed, so that they do not fill the memory: a line of the published ones
takes about a kilobyte of it."""

LARGEST = 1e13
"""Largest number in a column without a stricter limit; milliseconds since 1970 stay below it."""

LOOK_AHEAD = 10_000
"""Characters of a file by which its format is recognised; a JSON log may be one line of 100 MB."""

COMPRESSED = {b"PK": "zip", b"BZ": "bzip2", b"\xfd7": "xz", b"(\xb5": "zstd"}
WESTERN = "western"
"""Name of the way to decode bytes that are no UTF-8."""

LONGEST = 1000
"""Most lines of a row that free text or a quoted field breaks."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
USUAL_DATE = "%Y-%m-%dT%H:%M:%S"
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


def read_text(path: Path, log: bool = False) -> str:
    """Return the text of a trace, gzipped or not; raise `InstanceError` if it is too long, empty, or no UTF-8 text.

    Of a `log`, every byte is text: UTF-16 by its mark, else UTF-8, and Windows-1252 where that is not valid, so that
    different names stay different. Zeros, which a crash leaves in a log, and marks of encodings are dropped.
    """
    content = unpacked(path, read_bytes(path))
    kind = COMPRESSED.get(content[:2])
    if kind is not None and b"\x00" in content:
        raise InstanceError(f"{path}: the file is compressed ({kind}); unpack it first")
    if log:
        wide = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        text = content.decode("utf-16", "replace") if wide else content.decode("utf-8", WESTERN)
        content = re.sub("[\x00\ufeff]", "", text).encode()
    return decoded(path, content, "utf-8-sig", "a header and one or more lines")


def unpacked(path: Path, content: bytes) -> bytes:
    """Return the content of a file, unpacked if it is gzipped; raise `InstanceError` if that fails or is too much."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    max_bytes = canonical.MAX_FILE_MB * 1_000_000
    try:
        with gzip.open(io.BytesIO(content)) as file:
            content = file.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InstanceError(f"{path}: cannot be unpacked: {error}") from None
    if len(content) > max_bytes:
        raise InstanceError(f"{path}: unpacks to more than the limit of {canonical.MAX_FILE_MB} MB")
    return content


def _western(error: UnicodeError) -> tuple[str, int]:
    """Return the characters that bytes have in Windows-1252 (in Latin-1 where it has none), and where they end."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    named = (bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in wrong)
    return "".join(named), error.end


codecs.register_error(WESTERN, _western)


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
    """Return the first non-empty line in the first :data:`LOOK_AHEAD` characters of `text`; of JSON, all of these."""
    if text.lstrip()[:1] in ("{", "["):
        return " ".join(text[:LOOK_AHEAD].split())
    return next((line for line in re.split(r"[\r\n]+", text[:LOOK_AHEAD]) if line.strip()), "")


def parse_headed(
    rows: FileRows, text: str, columns: Sequence[TraceColumn], least: int = 1, unique: bool = False
) -> pd.DataFrame:
    """Return the named columns of CSV `text`, whose first line is the header; see :func:`parse`."""
    names = header_of(rows.path, text, ",")
    at = {name: place for place, name in enumerate(names)}
    for column in columns:
        if column.name not in at and not column.optional:
            raise InstanceError(f"{rows.path}: line 1: no column {column.name!r}: {column.right}")
    places = {at[c.name]: c for c in columns if c.name in at}
    return parse(rows, text, places, len(names), headed=True, least=least, unique=unique)


def parse(
    rows: FileRows,
    text: str,
    columns: Mapping[int, TraceColumn],
    width: int,
    delimiter: str = ",",
    headed: bool = False,
    least: int = 1,
    unique: bool = False,
) -> pd.DataFrame:
    """Return the columns at these places, converted by kind and indexed by line number.

    Lines with an invalid field, and those without `width` fields, are bad. Without a header, quotes are part of a
    field. See :func:`framed`.
    """
    places = {column.name: place for place, column in columns.items()}
    lines = lines_of(text)
    mend = quoted(delimiter, width) if headed else single(delimiter, width)
    table = framed(rows, lines, places, delimiter, mend, headed=headed, least=least, unique=unique)
    converted = {column.name: convert(rows, table[column.name], column) for column in columns.values()}
    return rows.kept(pd.DataFrame(converted))


# ---------------------------------------------------------------- lines and fields


@dataclass
class Mended:
    """What lines hold that are no plain rows, by their position in the file.

    Attributes
    ----------
    fields, problems
        Fields of such a row, or why it cannot be read.
    last
        Position of the last line of a row that spans several.
    """

    fields: dict[int, list[str]] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)


Mend = Callable[[Sequence[str], Sequence[int]], Mended]
"""Reads those of the lines at some positions that are no plain rows: other numbers of fields, quotes."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, whatever ends them."""
    return (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).split("\n")


def header_of(path: Path, text: str, delimiter: str) -> list[str]:
    """Return the stripped names of the columns, the fields of the first line that is not empty."""
    first = next((line for line in lines_of(text[:LOOK_AHEAD]) if line.strip(f"{delimiter} \t")), "")
    try:
        return [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])]
    except csv.Error as error:
        raise InstanceError(f"{path}: line 1: not {delimiter!r}-separated text: {error}") from error


def framed(
    rows: FileRows,
    lines: Sequence[str],
    places: Mapping[str, int],
    delimiter: str | None,
    mend: Mend,
    *,
    headed: bool = True,
    least: int = 1,
    unique: bool = False,
) -> pd.DataFrame:
    """Return the columns at these places as text without surrounding spaces, indexed by line number.

    Plain lines are read by columns; the others one by one.

    Parameters
    ----------
    rows
        The file's rows, which are left out if they are bad.
    lines
        Lines of the file; empty ones are skipped.
    places
        Place of each column within a line, by its name.
    delimiter
        What separates fields; ``None`` for any white space.
    mend
        Reads the lines that are no plain rows.
    headed
        Whether the first line is a header. Lines that repeat it are left out.
    least
        Least number of rows; `InstanceError` is raised if there are fewer.
    unique
        Whether each row occurs once; lines that repeat another one are then left out.
    """
    blank = f"{delimiter or ''} \t"
    at = [place for place, line in enumerate(lines) if line.strip(blank)]
    header = lines[at.pop(0)] if headed and at else None
    if len(at) < least:
        raise InstanceError(f"{rows.path}: only a header; one or more lines must follow it")
    odd = mend(lines, at)
    if odd.last:
        inner = {place for first, last in odd.last.items() for place in range(first + 1, last + 1)}
        rows.continued = len(inner.intersection(at))
        at = [place for place in at if place not in inner]

    def content(number: int) -> str:
        return "\n".join(lines[number - 1 : odd.last.get(number - 1, number - 1) + 1])

    numbers = np.array(at, np.int64) + 1
    rows.begin(numbers, content)
    whole = pd.Series(
        [content(place + 1) if place in odd.last else lines[place] for place in at], numbers, dtype=object
    )
    repeats = {} if rows.max_bad is None else {REPEATED_HEADER: whole == header}
    repeats |= {REPEATED: whole.duplicated()} if unique else {}
    whole = rows.leave(whole.to_frame(), repeats)[0]
    rows.spoil({place + 1: problem for place, problem in odd.problems.items()}, "they do not have the fields of a row")
    return rows.kept(_fields(whole, odd, places, delimiter))


def _fields(whole: pd.Series, odd: Mended, places: Mapping[str, int], delimiter: str | None) -> pd.DataFrame:
    """Return the columns at these places of lines by line number: of plain lines at once, of mended ones as read."""
    special = set(odd.fields) | set(odd.problems)
    plain = whole[[number - 1 not in special for number in whole.index]] if special else whole
    tables = [columns_of(plain, places, delimiter)]
    if odd.fields:
        fields = {place + 1: row for place, row in odd.fields.items()}
        rest = pd.DataFrame([[row[place] for place in places.values()] for row in fields.values()], list(fields))
        tables.append(rest.set_axis(list(places), axis=1).astype(object))
    frame = pd.concat(tables).sort_index() if len(tables) > 1 else tables[0]
    stripped = {name: [text.strip() for text in frame[name]] for name in frame}
    return pd.DataFrame(stripped, index=frame.index, dtype=object)


def columns_of(lines: pd.Series, places: Mapping[str, int], delimiter: str | None) -> pd.DataFrame:
    """Return the columns at these places of plain lines as text, with the index of the lines."""
    used = sorted(set(places.values()))
    if not len(lines) or not used:
        return pd.DataFrame({name: [] for name in places}, index=lines.index, dtype=object)
    read = pd.read_csv(
        io.StringIO("\n".join(lines)),
        sep=delimiter or r"\s+",
        header=None,
        usecols=used,
        dtype=object,
        quoting=csv.QUOTE_NONE,
        keep_default_na=False,
        na_filter=False,
        lineterminator="\n" if delimiter else None,
        skip_blank_lines=False,
    )
    texts = {name: read[place].to_numpy(object) for name, place in places.items()}
    return pd.DataFrame(texts, index=lines.index, dtype=object)


def odd_ones(lines: Sequence[str], at: Sequence[int], delimiter: str | None, width: int) -> list[int]:
    """Return the positions of the lines that do not have `width` fields."""
    if delimiter is None:
        return [place for place in at if len(lines[place].split()) != width]
    return [place for place in at if lines[place].count(delimiter) != width - 1]


def unequal(count: int, width: int) -> str:
    """Return what is wrong with a row of `count` fields instead of `width`."""
    return f"{count} fields instead of {width}"


def single(delimiter: str | None, width: int) -> Mend:
    """Return the reader of odd lines of a format without quotes or line breaks: none of them can be read."""

    def mend(lines: Sequence[str], at: Sequence[int]) -> Mended:
        odd = odd_ones(lines, at, delimiter, width)
        return Mended(problems={place: unequal(len(lines[place].split(delimiter)), width) for place in odd})

    return mend


def quoted(delimiter: str, width: int) -> Mend:
    """Return the reader of odd lines of CSV; a quoted field may hold delimiters and line breaks."""

    def fields(text: str) -> list[str]:
        try:
            found = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        except csv.Error:
            return []
        return found[0] if len(found) == 1 else []

    def mend(lines: Sequence[str], at: Sequence[int]) -> Mended:
        odd = {*odd_ones(lines, at, delimiter, width), *(place for place in at if '"' in lines[place])}
        open_ = [place for place in sorted(odd) if lines[place].count('"') % 2]
        found = Mended()
        inside = -1
        for place in sorted(odd):
            if place <= inside:
                continue
            row = [] if lines[place].count('"') % 2 else fields(lines[place])
            if not row:  # the quotes end in a later line
                last = next((other for other in open_ if place < other <= place + LONGEST), place)
                row = fields("\n".join(lines[place : last + 1])) if last > place else []
                if len(row) == width:
                    inside = found.last[place] = last
            if len(row) == width:
                found.fields[place] = row
            else:
                count = len(row) or len(lines[place].split(delimiter))
                problem = unequal(count, width) if count != width else "a quote without its end"
                found.problems[place] = problem
        return found

    return mend


# ---------------------------------------------------------------- values


def convert(rows: FileRows, raw: pd.Series, column: TraceColumn) -> pd.Series:
    """Return the values of a column by kind; rows with an invalid one are bad."""
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
    rows.refuse(wrong, raw.rename(column.name), column.right)
    return good


def sifted(frame: pd.DataFrame, reasons: Mapping[str, pd.Series]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the entries that no reason excludes, and the number of those left out for each, the first that applies.

    It serves entries that are no rows of a file, such as jobs of several rows (compare :meth:`FileRows.leave`).
    `reasons` maps each reason, in words, to the mask of the entries that it excludes.
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
    stamps = pd.to_datetime(dates, errors="coerce", utc=True, format=USUAL_DATE)
    if (other := stamps.isna()).any():
        rest = dates[other]
        proper = rest.where(rest.map(lambda text: ISO_DATE.fullmatch(text) is not None))
        stamps = stamps.astype("datetime64[us, UTC]")
        stamps[other] = pd.to_datetime(proper, errors="coerce", utc=True, format="ISO8601").astype(stamps.dtype)
    return (stamps - pd.Timestamp(0, tz="UTC").as_unit("us")) / pd.Timedelta(seconds=1)


def check_unique(rows: FileRows, ids: pd.Series) -> None:
    """Make rows bad whose id an earlier one has; the index of `ids` has the line numbers."""
    twice = ids.duplicated()
    if twice.any():
        before = first_where(ids == ids[twice].iloc[0])
        right = f"already used in {rows.at} {before}; each id occurs once"
        rows.refuse(twice, ids, right, f"their {ids.name} is that of an earlier {rows.at}")


def check_run_times(rows: FileRows, starts: pd.Series, ends: pd.Series) -> None:
    """Make rows bad whose end is before the start or too long after it."""
    early, late = ends < starts, ends - starts > MAX_DURATION_S
    if early.any():
        rows.refuse(early, ends, f"before {starts.name} = " + starts.map(shown), f"{ends.name} is before {starts.name}")
    rows.refuse(late, ends, f"more than {MAX_DURATION_S:g} s after {starts.name}", "they ran for too long")
