"""One table: columns are declared once per kind of row; a writer each makes Markdown, LaTeX, CSV, JSON, Parquet of it.

What a command prints is a list of blocks: lines, notes about something, and tables. Pages draw the same tables
(``templates/tables.html.j2``), so a table looks and reads alike everywhere.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from schedgap.harness.text import ABSENT, clean, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

R = TypeVar("R")

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet take text for a formula."""

LONG = 28
"""Longer cells of a page may break into lines."""

SENTENCES = ("note", "wide", "text")
"""Classes of columns whose cells may take several lines, as a status may; no other cell is ever cut or broken."""

NARROWEST = 16
"""Width of a column of sentences in a terminal that has no room for more."""

SEPARATOR = 2
"""Terminal columns that a table column takes beside its content."""


def by_text(row: Any) -> None:
    """Sort by what the cell says."""


def never(row: Any) -> bool:
    """Say that nothing is wrong with a row."""
    return False


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
    value: Callable[[R], Any] = by_text
    align: Literal["left", "right"] = "left"
    priority: int = 0
    shared: bool = False
    bad: Callable[[R], bool] = never
    css: str = ""

    def cell(self, row: R) -> Cell:
        """Return the cell of a row."""
        text = self.text(row)
        value = self.value(row) if self.value is not by_text else None if text == ABSENT else text
        wide = ["wide"] if self.css == "status" and len(text) > LONG / 2 else []
        classes = [self.css, self.align, *wide, *(["bad"] if self.bad(row) else [])]
        return Cell(text, sort_key(value), " ".join(filter(None, classes)))


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
    """A table: a caption, columns, and rows that hold as many cells. Rows in `dim` are of less interest."""

    caption: str
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[Cell]]
    dim: frozenset[int] = field(default=frozenset())

    @property
    def headings(self) -> list[tuple[str, str, str]]:
        """Header, explanation and side of each column, for pages."""
        return [(column.header, column.explanation, column.align) for column in self.columns]


@dataclass(frozen=True)
class Line:
    """A line of text, with a style of the terminal."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Note:
    """What is to be said about something."""

    about: str
    text: str

    @property
    def style(self) -> str:
        """How the terminal shows it."""
        return "red" if self.text.startswith("WRONG") else ""


@dataclass(frozen=True)
class Command:
    """A command that shows what is being talked about; people copy it, so no writer breaks it into lines."""

    about: str
    text: str


Block = Line | Note | Command | Table


def visible(columns: Iterable[Column[R]], rows: Sequence[R], leave_out: Iterable[str] = ()) -> list[Column[R]]:
    """Return the columns that tell the rows apart: neither empty nor without news."""
    hidden = set(leave_out)
    shown = []
    for column in columns:
        cells = {column.text(row) for row in rows}
        constant = column.shared and len(cells) <= 1
        if column.key not in hidden and not constant and not cells <= {ABSENT, ""}:
            shown.append(column)
    return shown


def explained(columns: Sequence[Column[R]], tables: Iterable[Sequence[R]]) -> list[tuple[str, str]]:
    """Return header and explanation of the columns that some of the tables with these rows shows."""
    shown = {column.key for rows in tables for column in visible(columns, rows)}
    return [(column.header, column.explanation) for column in columns if column.key in shown and column.explanation]


def table(caption: str, columns: Iterable[Column[R]], rows: Sequence[R], dim: Callable[[R], bool] = never) -> Table:
    """Return rows as a table with the columns that tell them apart."""
    shown = visible(columns, rows)
    cells = [[column.cell(row) for column in shown] for row in rows]
    return Table(caption, shown, cells, frozenset(i for i, row in enumerate(rows) if dim(row)))


def of_texts(headers: Sequence[str], right: Iterable[str] = ()) -> list[Column[Sequence[str]]]:
    """Return columns for rows that are sequences of texts, the first one the name of the row."""
    return [
        Column(h, h, "", itemgetter(i), align="right" if h in right else "left", css="text" if i else "method")
        for i, h in enumerate(headers)
    ]


def sort_key(value: object) -> str:
    """Return what a page sorts by: a number in full, text without case, nothing for what is absent."""
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, int | float) else str(value).casefold()


# ---------------------------------------------------------------- writers


def to_markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as GitHub-flavoured Markdown: paragraphs, tables, and notes as a list."""
    written: list[str] = []
    for block in blocks:
        if isinstance(block, Note | Command):
            text = f"`{block.text}`" if isinstance(block, Command) else markdown_text(block.text)
            line = f"- {markdown_text(block.about)}: {text}"
            if written and written[-1].startswith("- "):
                written[-1] += f"\n{line}"
            else:
                written.append(line)
        elif isinstance(block, Table):
            written += [markdown_text(block.caption)] if block.caption else []
            written.append(_markdown_table(block))
        elif block.text:
            written.append(markdown_text(block.text))
    return "\n\n".join(written) + "\n"


def _markdown_table(content: Table) -> str:
    lines = [
        [markdown_text(column.header) for column in content.columns],
        ["---:" if column.align == "right" else "---" for column in content.columns],
        *([markdown_text(cell.text) for cell in row] for row in content.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_text(text: str) -> str:
    """Return `text` such that Markdown shows it as it is, in a table too."""
    entities = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*|\[\]~$])", r"\\\1", entities)


LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "*": "{*}",
    **{c: f"\\{c}" for c in "&%$#_{}"}, **{c: f"${c}$" for c in "<>|"}, "–": "--", "−": "$-$", "…": r"\ldots{}",
    "≤": r"$\le$", "≥": r"$\ge$", "≠": r"$\ne$", "×": r"$\times$", "·": r"$\cdot$", "∞": r"$\infty$", "Σ": r"$\Sigma$",
    "✓": r"$\checkmark$", "✗": r"$\times$",
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
            about = f"{block.about}: " if isinstance(block, Note | Command) else ""
            written += [f"% {about}{block.text}"] if block.text else []
            continue
        cells = [[latex_text(cell.text) for cell in row] for row in block.rows]
        written.append(
            pd.DataFrame(cells, columns=[latex_text(column.header) for column in block.columns]).to_latex(
                index=False,
                escape=False,
                column_format="".join(column.align[0] for column in block.columns),
                caption=latex_text(block.caption) or None,
            )
        )
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
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub(
        "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]",
        lambda m: f"\\u{ord(m[0]):04x}",
        text,
    )


class Format(StrEnum):
    """How rows are printed to standard output."""

    TABLE = "table"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


Writer = Callable[[Sequence[Block], Sequence[str], Sequence[Mapping[str, Any]]], str]
WRITERS: dict[Format, Writer] = {
    Format.MARKDOWN: lambda blocks, fields, records: to_markdown(blocks),
    Format.LATEX: lambda blocks, fields, records: to_latex(blocks),
    Format.CSV: lambda blocks, fields, records: to_csv(fields, records),
    Format.JSON: lambda blocks, fields, records: to_json(records),
}
"""What makes text of blocks (for people), or of fields and records (for programs)."""

PARQUET: dict[str, Any] = {"str": "string", "Status": "string", "int": "Int64", "float": "Float64", "bool": "boolean"}


def to_parquet(types: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return records as a Parquet file with the same schema whatever they hold; lists and mappings are JSON text.

    Parameters
    ----------
    types
        Type of each field, as in the source of a dataclass.
    records
        The records.
    """
    import pandas as pd

    frame = pd.DataFrame(list(records), columns=list(types))
    for name, kind in types.items():
        known = PARQUET.get(str(kind).removesuffix(" | None"))
        column = frame[name] if known else frame[name].map(lambda value: _json(plain(value)))
        frame[name] = column.astype(known or PARQUET["str"])
    sink = io.BytesIO()
    frame.to_parquet(sink, index=False)
    return sink.getvalue()


def types_of(kind: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields, for :func:`to_parquet`."""
    return {field.name: field.type for field in fields(kind)}


def show(console: Console, blocks: Iterable[Block]) -> None:
    """Print blocks on a terminal. All text goes in as :class:`rich.text.Text`: none of it is read as markup."""
    from rich.text import Text

    for block in blocks:
        if isinstance(block, Table):
            console.print(_OnTerminal(block))
        elif isinstance(block, Command):
            console.print(Text(f"  {block.text}"), soft_wrap=True)
        else:
            about = f"{block.about}: " if isinstance(block, Note) else ""
            console.print(Text(f"{about}{block.text}", style=block.style))


class _OnTerminal:
    """A table that leaves out its least important columns where the terminal is too narrow, and names them."""

    def __init__(self, content: Table) -> None:
        self.content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        widths = [self._width(i) for i in range(len(self.content.columns))]
        kept = self._kept(widths, options.max_width)
        if self.content.caption:
            yield Text(self.content.caption, style="bold")
        yield self._drawn(kept, widths)
        if dropped := [c.header for i, c in enumerate(self.content.columns) if i not in kept]:
            yield Text(f"left out for lack of width: {', '.join(dropped)}\n", style="dim")

    def _width(self, i: int) -> int:
        """Return the width that a column needs: every cell on one line, but for those that wrap between words."""
        from rich.cells import cell_len

        header, css = self.content.columns[i].header, self.content.columns[i].css
        texts = [header, *(row[i].text for row in self.content.rows)]
        if css == "status":
            texts = [word for text in texts for word in text.split()]
        whole = max(map(cell_len, texts))
        return min(whole, max(NARROWEST, cell_len(header))) if css in SENTENCES else whole

    def _kept(self, widths: Sequence[int], most: int) -> list[int]:
        columns = self.content.columns
        kept = list(range(len(columns)))
        for i in sorted(kept, key=lambda i: -columns[i].priority):
            if not columns[i].priority or sum(widths[j] + SEPARATOR for j in kept) <= most:
                break
            kept.remove(i)
        return kept

    def _drawn(self, kept: Sequence[int], widths: Sequence[int]) -> RenderableType:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for i in kept:
            column = self.content.columns[i]
            line = column.css not in (*SENTENCES, "status")
            drawn.add_column(column.header, justify=column.align, min_width=widths[i], overflow="fold", no_wrap=line)
        for n, row in enumerate(self.content.rows):
            cells = (Text(row[i].text, style=self._style(row[i])) for i in kept)
            drawn.add_row(*cells, style="dim" if n in self.content.dim else "")
        return drawn

    def _style(self, cell: Cell) -> str:
        return "bold red" if cell.bad else "dim" if cell.text == ABSENT else ""
