"""Tables, whose columns are declared once per kind of row, and writers for Markdown, LaTeX, CSV, JSON and Parquet.

The output of a command is a list of blocks: lines, notes, and tables. Pages draw the same tables
(``templates/tables.html.j2``), so a table reads the same everywhere.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar

from schedgap.harness.show.text import ABSENT, clean, plain
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.text import counted

R = TypeVar("R")

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet read text as a formula."""

LONG = 28
"""Cells with more characters may wrap on a page."""


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column of a table.

    Parameters
    ----------
    key
        Name of the field that the column shows.
    header, explanation
        The heading, and one sentence for the legend.
    text, value
        Functions of a row: text of its cell, and value to sort by if that is not the text; ``None`` sorts last.
    align
        Alignment; numbers are aligned right.
    priority
        If the terminal is too narrow, columns with the highest number are dropped first; 0 is never dropped.
    shared
        Whether to hide the column if all rows agree, because the caption then states the value.
    bad
        Whether a row's cell reports a failure.
    css
        CSS class of the cells on a page, in addition to their alignment.
    """

    key: str
    header: str
    explanation: str
    text: Callable[[R], str]
    value: Callable[[R], Any] | None = None
    align: Literal["left", "right"] = "left"
    priority: int = 0
    shared: bool = False
    bad: Callable[[R], bool] = lambda row: False
    css: str = ""

    def cell(self, row: R) -> Cell:
        """Return the cell of a row."""
        text = self.text(row)
        value = self.value(row) if self.value else None if text == ABSENT else text
        # Numbers sort with all their digits, text ignoring case.
        sort = repr(float(value)) if isinstance(value, int | float) else "" if value is None else str(value).casefold()
        wide = len(text) > {"status": LONG / 2, "text": LONG}.get(self.css, math.inf)
        classes = [self.css, self.align, "wide" * wide, "bad" * bool(self.bad(row))]
        return Cell(text, sort, " ".join(filter(None, classes)))


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, and its sort key and CSS classes on a page."""

    text: str
    sort: str = ""
    classes: str = ""

    @property
    def bad(self) -> bool:
        """True if the cell reports a failure."""
        return "bad" in self.classes.split()


@dataclass(frozen=True)
class Table:
    """A table: a caption, columns, and rows with one cell per column.

    Rows whose index is in `dim` are shown dimmed; `heads` maps the index of a row to a heading above it.
    """

    caption: str
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[Cell]]
    dim: frozenset[int] = field(default=frozenset())
    heads: Mapping[int, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[list[str]]:
        """The headers, then the texts of each row."""
        return [[column.header for column in self.columns], *([cell.text for cell in row] for row in self.rows)]


@dataclass(frozen=True)
class Line:
    """A line of text, with a style for the terminal."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Note:
    """A text about a subject. If the text is a `command`, people copy it, so no writer wraps it."""

    about: str
    text: str
    command: bool = False

    @property
    def style(self) -> str:
        """Style of the note on a terminal."""
        return "red" if self.text.startswith("WRONG") else ""


Block = Line | Note | Table


def visible(columns: Iterable[Column[R]], rows: Sequence[R]) -> list[Column[R]]:
    """Return the columns worth showing: not empty, and not `shared` with the same text in all rows."""
    shown = []
    for column in columns:
        cells = {column.text(row) for row in rows}
        if not cells <= {ABSENT, ""} and not (column.shared and len(cells) == 1):
            shown.append(column)
    return shown


def explained(columns: Sequence[Column[R]], tables: Iterable[Sequence[R]]) -> list[tuple[str, str]]:
    """Return ``(header, explanation)`` of each column that some table shows; `tables` has the rows of each table."""
    shown = {column.key for rows in tables for column in visible(columns, rows)}
    return [(column.header, column.explanation) for column in columns if column.key in shown and column.explanation]


@dataclass(frozen=True)
class Selection:
    """The user's choice of rows and columns in tables of results.

    Parameters
    ----------
    top
        Number of rows; 0 for the usual number, infinity for all.
    sort, columns
        Key or header of the column to sort by (with a leading minus, largest first), and those of the columns to show.
    verbose
        Whether to list skipped methods with their reasons.
    """

    top: float = 0
    sort: str = ""
    columns: Sequence[str] = ()
    verbose: bool = False

    @property
    def everything(self) -> bool:
        """True if the user wants all rows."""
        return self.top == math.inf

    def most(self, usual: int) -> int | None:
        """Return the number of rows to show, given the usual number; ``None`` for all of them."""
        return None if self.everything else int(self.top) or usual

    def chosen(self, columns: Sequence[Column[R]], rows: Sequence[R], usual: Sequence[str]) -> list[Column[R]]:
        """Return the columns that the user named or, without any, the visible ones (with `usual` keys, if given)."""
        if self.columns:
            return [_named(columns, name) for name in self.columns]
        shown = visible(columns, rows)
        return sorted((c for c in shown if c.key in usual), key=lambda c: usual.index(c.key)) if usual else shown

    def ordered(self, columns: Sequence[Column[R]], rows: Sequence[R]) -> list[R]:
        """Return the rows in the user's order; those without a value come last."""
        if not self.sort:
            return list(rows)
        column = _named(columns, self.sort.removeprefix("-"))
        keys = [column.value(row) if column.value else column.text(row) for row in rows]
        known = [i for i, key in enumerate(keys) if key is not None and key != ABSENT]
        known.sort(key=lambda i: keys[i], reverse=self.sort.startswith("-"))
        return [rows[i] for i in [*known, *(i for i in range(len(rows)) if i not in known)]]


USUALLY = Selection()
"""The selection of a user who chooses nothing."""


def _named(columns: Sequence[Column[R]], name: str) -> Column[R]:
    matches = [column for column in columns if name in (column.key, column.header)]
    if not matches:
        from schedgap.instances.registry import unknown

        raise UnknownNameError(unknown("column", name, [column.key for column in columns]))
    return matches[0]


def table(
    caption: str,
    columns: Sequence[Column[R]],
    rows: Sequence[R],
    dim: Callable[[R], bool] = lambda row: False,
    view: Selection = USUALLY,
    usual: Sequence[str] = (),
) -> Table:
    """Return rows as a table, with the rows and columns that `view` chooses."""
    shown = view.chosen(columns, rows, usual)
    rows = view.ordered(columns, rows)[: view.most(len(rows))]
    cells = [[column.cell(row) for column in shown] for row in rows]
    return Table(caption, shown, cells, frozenset(i for i, row in enumerate(rows) if dim(row)))


def left_out(count: int) -> list[Block]:
    """Return a line that counts the rows of a table that are not shown, if any."""
    return [Line(f"{counted(count, 'more row')}: --all-rows", "dim")] if count else []


def listed(caption: str, columns: Sequence[Column[R]], rows: Sequence[R], **shown: Any) -> list[Block]:
    """Return a table (:func:`table`), followed by a line that counts the rows left out, if any."""
    shown_table = table(caption, columns, rows, **shown)
    return [shown_table, *left_out(len(rows) - len(shown_table.rows))]


def of_texts(headers: Sequence[str], bad: Callable[[str], bool] = lambda text: False) -> list[Column[Sequence[str]]]:
    """Return columns for rows that are sequences of texts; the first text names the row."""

    def column(i: int, header: str) -> Column[Sequence[str]]:
        css = "text" if i else "method"
        return Column(header, header, "", itemgetter(i), bad=lambda row: bad(row[i]), css=css)

    return [column(i, header) for i, header in enumerate(headers)]


# ---------------------------------------------------------------- writers


def to_markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as GitHub-flavoured Markdown: lines as paragraphs, tables, and notes as a list."""
    written: list[str] = []
    for block in blocks:
        if isinstance(block, Note):
            text = f"`{block.text}`" if block.command else markdown_text(block.text)
            line = f"- {markdown_text(block.about)}: {text}"
            if written and written[-1].startswith("- "):
                line = f"{written.pop()}\n{line}"
            written.append(line)
        elif isinstance(block, Line):
            written += [markdown_text(block.text)] if block.text else []
        elif not block.rows:
            written += filter(None, [markdown_text(block.caption), "none"])
        else:
            sides = ["---:" if column.align == "right" else "---" for column in block.columns]
            header, *lines = [[markdown_text(text) for text in line] for line in block.texts]
            for i, head in sorted(block.heads.items(), reverse=True):
                lines.insert(i, [f"**{markdown_text(head)}**", *[""] * (len(sides) - 1)])
            drawn = "\n".join(f"| {' | '.join(line)} |" for line in (header, sides, *lines))
            written += [markdown_text(block.caption), drawn] if block.caption else [drawn]
    return "\n\n".join(written) + "\n"


def markdown_text(text: str) -> str:
    """Escape `text` so that Markdown shows it unchanged, even in a table."""
    entities = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*|\[\]~$])", r"\\\1", entities)


LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "*": "{*}",
    **{c: f"\\{c}" for c in "&%$#_{}"}, **{c: f"${c}$" for c in "<>|"}, "–": "--", "−": "$-$", "…": r"\ldots{}",
    "≤": r"$\le$", "≥": r"$\ge$", "≠": r"$\ne$", "×": r"$\times$", "·": r"$\cdot$", "∞": r"$\infty$",
    "⟨": r"$\langle$", "⟩": r"$\rangle$", "✓": r"$\checkmark$", "✗": r"$\times$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "ε": r"$\varepsilon$", "η": r"$\eta$", "θ": r"$\theta$",
    "λ": r"$\lambda$", "μ": r"$\mu$", "π": r"$\pi$", "ρ": r"$\rho$", "τ": r"$\tau$",
    "Δ": r"$\Delta$", "Σ": r"$\Sigma$", "Φ": r"$\Phi$",
}  # fmt: skip
"""How to write characters that LaTeX reads as commands or cannot set, such as a bracket or star after a line break."""


def latex_text(text: str) -> str:
    """Escape `text` so that LaTeX sets it unchanged."""
    return "".join(LATEX.get(c, c) for c in text)


def to_latex(blocks: Iterable[Block]) -> str:
    """Return the tables among `blocks` as LaTeX with booktabs rules; lines and notes become comments."""
    import pandas as pd

    written = [r"% \usepackage{booktabs, amssymb}"]
    for block in blocks:
        if not isinstance(block, Table):
            subject = f"{block.about}: " if isinstance(block, Note) else ""
            written += [f"% {subject}{block.text}"] if block.text else []
            continue
        if not block.rows:
            written.append(f"% {block.caption}: none" if block.caption else "% none")
            continue
        header, *lines = [[latex_text(text) for text in line] for line in block.texts]
        sides, caption = "".join(column.align[0] for column in block.columns), latex_text(block.caption) or None
        for i, head in block.heads.items():
            rule = r"\midrule " * (i > 0)
            lines[i][0] = rf"{rule}\multicolumn{{{len(sides)}}}{{l}}{{\emph{{{latex_text(head)}}}}} \\ {lines[i][0]}"
        content = pd.DataFrame(lines, columns=header)
        written.append(content.to_latex(index=False, escape=False, column_format=sides, caption=caption))
    return "\n".join(written) + "\n"


def to_csv(fields: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """Return records as CSV; lists and mappings are written as JSON, and no cell can act as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows([csv_cell(record[name]) for name in fields] for record in records)
    return out.getvalue()


def csv_cell(value: Any) -> str | int | float | bool | None:
    """Return the value for a CSV cell: numbers unchanged, text made harmless to spreadsheets, the rest as JSON."""
    value = plain(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    text = clean(value) if isinstance(value, str) else _json(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def to_json(records: Iterable[Mapping[str, Any]]) -> str:
    """Return a JSON list with an object per record; infinities and NaN become ``null``."""
    return "[" + ",\n ".join(_json(plain(record)) for record in records) + "]\n"


def to_json_lines(kinds: Iterable[str], records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a line of JSON per record, with the fields named by `kinds`; infinities and NaN become ``null``."""
    names = tuple(kinds)
    return "".join(_json(plain({name: record.get(name) for name in names})) + "\n" for record in records).encode()


def _json(value: Any) -> str:
    """Return JSON safe for terminals: control and direction characters beyond ASCII are escaped."""
    unsafe = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub(unsafe, lambda match: f"\\u{ord(match[0]):04x}", text)


class OutputFormat(StrEnum):
    """How rows are printed to standard output."""

    TABLE = "table"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


WRITERS: dict[OutputFormat, Callable[[Sequence[Block], Sequence[str], Sequence[Mapping[str, Any]]], str]] = {
    OutputFormat.MARKDOWN: lambda blocks, fields, records: to_markdown(blocks),
    OutputFormat.LATEX: lambda blocks, fields, records: to_latex(blocks),
    OutputFormat.CSV: lambda blocks, fields, records: to_csv(fields, records),
    OutputFormat.JSON: lambda blocks, fields, records: to_json(records),
}
"""Function that writes each format; Markdown and LaTeX need the blocks, CSV and JSON the records."""

PARQUET = {
    "str": ("string", "string"),
    "int": ("int64", "Int64"),
    "float": ("double", "Float64"),
    "bool": ("bool", "boolean"),
}
"""Type of a field → type of its column in Parquet, and in the data frame that pandas reads from it."""


def to_parquet(kinds: Mapping[str, str], records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return records as a Parquet file whose schema does not depend on their values; lists and mappings become JSON.

    `kinds` gives the type of each column (:data:`PARQUET`); all others become JSON.
    """
    import pyarrow as pa
    import pyarrow.json as arrow_json  # building arrays from lists would import pandas and cost every run half a second
    import pyarrow.parquet as pq

    columns = {name: PARQUET.get(kind, PARQUET["str"]) for name, kind in kinds.items()}
    described = [
        {"name": name, "field_name": name, "pandas_type": ours, "numpy_type": theirs, "metadata": None}
        for name, (ours, theirs) in columns.items()
    ]
    pandas = {"columns": described, "index_columns": [], "column_indexes": []}
    schema = pa.schema([(name, ours) for name, (ours, _) in columns.items()], {"pandas": json.dumps(pandas)})
    values = [{name: plain(record.get(name)) for name in kinds} for record in records]
    lines = [{n: v if kinds[n] in PARQUET else _json(v) for n, v in record.items()} for record in values]
    text = "\n".join(map(json.dumps, lines)).encode()
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    parsing = arrow_json.ParseOptions(explicit_schema=schema)
    table = arrow_json.read_json(io.BytesIO(text), reading, parsing) if lines else schema.empty_table()
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(schema.metadata), sink)
    return sink.getvalue()
