"""One table: columns are declared once per kind of row; a writer each makes Markdown, LaTeX, CSV, JSON, Parquet of it.

What a command prints is a list of blocks: lines, notes about something, and tables. Pages draw the same tables
(``templates/tables.html.j2``), so a table looks and reads alike everywhere.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import itemgetter
from typing import Any, Generic, Literal, TypeVar

from schedgap.harness.text import ABSENT, clean, counted, plain
from schedgap.instances.errors import UnknownNameError

R = TypeVar("R")

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet take text for a formula."""

LONG = 28
"""Longer cells of a page may break into lines."""


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column of a table.

    Parameters
    ----------
    key
        Name of the row's field it shows.
    header, explanation
        What stands above it, and one sentence for the legend.
    text, value
        The cell, and what it is sorted by where that is not its text; ``None`` sorts last.
    align
        Numbers stand on the right.
    priority
        Columns of a higher number leave first where the terminal is too narrow; 0 never leaves.
    shared
        Whether it says nothing where all rows agree, since the caption names what they share.
    bad
        Whether a row's cell tells of something wrong.
    css
        Class of its cells on a page, beside its alignment.
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
        # a number sorts in full, text without case
        sort = repr(float(value)) if isinstance(value, int | float) else "" if value is None else str(value).casefold()
        wide = len(text) > {"status": LONG / 2, "text": LONG}.get(self.css, math.inf)
        classes = [self.css, self.align, "wide" * wide, "bad" * bool(self.bad(row))]
        return Cell(text, sort, " ".join(filter(None, classes)))


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, what it sorts by on a page, and its classes there."""

    text: str
    sort: str = ""
    classes: str = ""

    @property
    def bad(self) -> bool:
        """Whether it tells of something wrong."""
        return "bad" in self.classes.split()


@dataclass(frozen=True)
class Table:
    """A table: a caption, columns, and rows that hold as many cells.

    Rows in `dim` are of less interest; `heads` are the headings of rows, by the number of the first one below.
    """

    caption: str
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[Cell]]
    dim: frozenset[int] = field(default=frozenset())
    heads: Mapping[int, str] = field(default_factory=dict)

    @property
    def texts(self) -> list[list[str]]:
        """Headers, and the texts of each row."""
        return [[column.header for column in self.columns], *([cell.text for cell in row] for row in self.rows)]


@dataclass(frozen=True)
class Line:
    """A line of text, with a style of the terminal."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Note:
    """What is to be said about something; people copy a `command`, so no writer breaks it into lines."""

    about: str
    text: str
    command: bool = False

    @property
    def style(self) -> str:
        """How the terminal shows it."""
        return "red" if self.text.startswith("WRONG") else ""


Block = Line | Note | Table


def visible(columns: Iterable[Column[R]], rows: Sequence[R]) -> list[Column[R]]:
    """Return the columns that tell the rows apart: neither empty nor without news."""
    shown = []
    for column in columns:
        cells = {column.text(row) for row in rows}
        if not cells <= {ABSENT, ""} and not (column.shared and len(cells) == 1):
            shown.append(column)
    return shown


def explained(columns: Sequence[Column[R]], tables: Iterable[Sequence[R]]) -> list[tuple[str, str]]:
    """Return header and explanation of the columns that some of the tables with these rows shows."""
    shown = {column.key for rows in tables for column in visible(columns, rows)}
    return [(column.header, column.explanation) for column in columns if column.key in shown and column.explanation]


@dataclass(frozen=True)
class View:
    """What is shown of a table of results.

    Parameters
    ----------
    top
        Number of rows; 0: as many as are usual, infinite: all of them.
    sort, columns
        Keys or headers: of the column that rows are sorted by, after a minus the largest first; of those to show.
    verbose
        Whether methods that were skipped are listed with their reasons.
    """

    top: float = 0
    sort: str = ""
    columns: Sequence[str] = ()
    verbose: bool = False

    @property
    def everything(self) -> bool:
        """Whether all rows were asked for."""
        return self.top == math.inf

    def most(self, usual: int) -> int | None:
        """Return how many rows to show, ``None`` for all of them, where that many are usual."""
        return None if self.everything else int(self.top) or usual

    def chosen(self, columns: Sequence[Column[R]], rows: Sequence[R], usual: Sequence[str]) -> list[Column[R]]:
        """Return the columns that were asked for; else, of the usual ones, those that tell the rows apart."""
        if self.columns:
            return [_named(columns, name) for name in self.columns]
        told = visible(columns, rows)
        return sorted((c for c in told if c.key in usual), key=lambda c: usual.index(c.key)) if usual else told

    def ordered(self, columns: Sequence[Column[R]], rows: Sequence[R]) -> list[R]:
        """Return the rows in the order that was asked for; what has no value stands last."""
        if not self.sort:
            return list(rows)
        column = _named(columns, self.sort.removeprefix("-"))
        keys = [column.value(row) if column.value else column.text(row) for row in rows]
        known = [i for i, key in enumerate(keys) if key is not None and key != ABSENT]
        known.sort(key=lambda i: keys[i], reverse=self.sort.startswith("-"))
        return [rows[i] for i in [*known, *(i for i in range(len(rows)) if i not in known)]]


USUALLY = View()
"""What is shown unless somebody asks for something else."""


def _named(columns: Sequence[Column[R]], name: str) -> Column[R]:
    found = [column for column in columns if name in (column.key, column.header)]
    if not found:
        from schedgap.instances.registry import unknown

        raise UnknownNameError(unknown("column", name, [column.key for column in columns]))
    return found[0]


def table(
    caption: str,
    columns: Sequence[Column[R]],
    rows: Sequence[R],
    dim: Callable[[R], bool] = lambda row: False,
    view: View = USUALLY,
    usual: Sequence[str] = (),
) -> Table:
    """Return rows as a table with the columns that tell them apart, or those that were asked for."""
    shown = view.chosen(columns, rows, usual)
    rows = view.ordered(columns, rows)[: view.most(len(rows))]
    cells = [[column.cell(row) for column in shown] for row in rows]
    return Table(caption, shown, cells, frozenset(i for i, row in enumerate(rows) if dim(row)))


def left_out(many: int) -> list[Block]:
    """Return a line that says how many rows of a table are not shown, if any."""
    return [Line(f"{counted(many, 'more row')}: --all-rows", "dim")] if many else []


def listed(caption: str, columns: Sequence[Column[R]], rows: Sequence[R], **shown: Any) -> list[Block]:
    """Return a table (:func:`table`), and below it how many rows it does not show, if any."""
    found = table(caption, columns, rows, **shown)
    return [found, *left_out(len(rows) - len(found.rows))]


def of_texts(headers: Sequence[str], bad: Callable[[str], bool] = lambda text: False) -> list[Column[Sequence[str]]]:
    """Return columns for rows that are sequences of texts, the first one the name of the row."""

    def column(i: int, header: str) -> Column[Sequence[str]]:
        css = "text" if i else "method"
        return Column(header, header, "", itemgetter(i), bad=lambda row: bad(row[i]), css=css)

    return [column(i, header) for i, header in enumerate(headers)]


# ---------------------------------------------------------------- writers


def to_markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as GitHub-flavoured Markdown: paragraphs, tables, and notes as a list."""
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
    """Return `text` such that Markdown shows it as it is, in a table too."""
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
"""Characters that LaTeX takes for commands or does not have; brackets and stars would belong to a line's end."""


def latex_text(text: str) -> str:
    """Return `text` such that LaTeX sets it as it is."""
    return "".join(LATEX.get(c, c) for c in text)


def to_latex(blocks: Iterable[Block]) -> str:
    """Return the tables of blocks for LaTeX, with the rules of booktabs; what else there is, as comments."""
    import pandas as pd

    written = [r"% \usepackage{booktabs, amssymb}"]
    for block in blocks:
        if not isinstance(block, Table):
            about = f"{block.about}: " if isinstance(block, Note) else ""
            written += [f"% {about}{block.text}"] if block.text else []
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
    """Return records as CSV; lists and mappings are JSON, and no cell starts a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows([csv_cell(record[name]) for name in fields] for record in records)
    return out.getvalue()


def csv_cell(value: Any) -> str | int | float | bool | None:
    """Return a cell: numbers as they are, text harmless to a spreadsheet, the rest as JSON."""
    value = plain(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    text = clean(value) if isinstance(value, str) else _json(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def to_json(records: Iterable[Mapping[str, Any]]) -> str:
    """Return a JSON list with an object per record; what is not finite is ``null``."""
    return "[" + ",\n ".join(_json(plain(record)) for record in records) + "]\n"


def _json(value: Any) -> str:
    """Return JSON in which control and direction characters beyond ASCII are escaped, for terminals."""
    unsafe = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub(unsafe, lambda found: f"\\u{ord(found[0]):04x}", text)


class Format(StrEnum):
    """How rows are printed to standard output."""

    TABLE = "table"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


WRITERS: dict[Format, Callable[[Sequence[Block], Sequence[str], Sequence[Mapping[str, Any]]], str]] = {
    Format.MARKDOWN: lambda blocks, fields, records: to_markdown(blocks),
    Format.LATEX: lambda blocks, fields, records: to_latex(blocks),
    Format.CSV: lambda blocks, fields, records: to_csv(fields, records),
    Format.JSON: lambda blocks, fields, records: to_json(records),
}
"""What makes text of blocks (for people), or of fields and records (for programs)."""

PARQUET = {
    "str": ("string", "string"),
    "Status": ("string", "string"),
    "int": ("int64", "Int64"),
    "float": ("double", "Float64"),
    "bool": ("bool", "boolean"),
}
"""Type of a field → that of its column in Parquet, and in the table that pandas makes of it."""


def to_parquet(types: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return records as a Parquet file with the same schema whatever they hold; lists and mappings are JSON text.

    `types` has the type of each field, as in the source of a dataclass.
    """
    import pyarrow as pa
    import pyarrow.json as arrow_json  # an array made of a list would import pandas, for half a second of every run
    import pyarrow.parquet as pq

    kinds = {name: str(kind).removesuffix(" | None") for name, kind in types.items()}
    columns = {name: PARQUET.get(kind, PARQUET["str"]) for name, kind in kinds.items()}
    described = [
        {"name": name, "field_name": name, "pandas_type": ours, "numpy_type": theirs, "metadata": None}
        for name, (ours, theirs) in columns.items()
    ]
    pandas = {"columns": described, "index_columns": [], "column_indexes": []}
    schema = pa.schema([(name, ours) for name, (ours, _) in columns.items()], {"pandas": json.dumps(pandas)})
    values = [{name: plain(record.get(name)) for name in kinds} for record in records]
    lines = [{n: v if kinds[n] in PARQUET else _json(v) for n, v in one.items()} for one in values]
    text = "\n".join(map(json.dumps, lines)).encode()
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    parsing = arrow_json.ParseOptions(explicit_schema=schema)
    table = arrow_json.read_json(io.BytesIO(text), reading, parsing) if lines else schema.empty_table()
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(schema.metadata), sink)
    return sink.getvalue()


def types_of(kind: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields, for :func:`to_parquet`."""
    return {field.name: field.type for field in fields(kind)}
