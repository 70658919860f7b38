"""A run on a terminal. All text goes in as :class:`rich.text.Text`, so that none of it is read as markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from harness.render.columns import Column, failed, visible, wrong
from harness.render.formats import PUBLISHED_COLUMNS, not_compared, notes, parts, published_lines, published_notes
from harness.render.headline import headline
from harness.render.summaries import SummaryColumn, caveat, summaries
from harness.render.text import ABSENT
from harness.rows import Row
from harness.run import Run
from harness.studies import COMPARE
from harness.summary import MethodSummary

MAX_ROWS = 60
"""More results of a paper than these are summed up only."""

SEPARATOR = 2
"""Terminal columns that a table column takes beside its content."""


def terminal(run: Run) -> RenderableType:
    """Return headline, a table per paper, published numbers and notes."""
    blocks: list[RenderableType] = [Text(headline(run), style="bold red" if any(map(wrong, run.rows)) else "bold")]
    summed = summaries(run)
    for text, columns, lines in summed:
        blocks += [Text(), Text(text, style="bold"), _summary_table(columns, lines), Text(caveat(lines), style="dim")]
    for text, rows in parts(run):
        if summed and len(rows) > MAX_ROWS:
            blocks.append(Text(f"{len(rows)} results: in report.html, rows.parquet, or with --format csv", style="dim"))
        else:
            blocks += [Text(), TerminalTable(text, rows)]
    if any(row.published for row in run.rows):
        blocks += [Text("published beside measured", style="bold"), _published_table(run.rows)]
        blocks += [Text(f"≠ {which}: {note}") for which, note in published_notes(run.rows)]
    for which, why in not_compared(run.rows, run.instances, COMPARE):
        blocks.append(Text(f"{which}: {why}"))
    for method, note in notes(run.rows):
        blocks.append(Text(f"{method}: {note}", style="red" if note.startswith("WRONG") else ""))
    return Group(*blocks)


def narrowed(widths: Mapping[str, int], leaving: Sequence[str], max_width: int) -> list[str]:
    """Return the columns for which a terminal has room.

    Parameters
    ----------
    widths
        Width of every column, in their order.
    leaving
        Columns that may be left out, the first ones first.
    max_width
        Width of the terminal.
    """
    kept = list(widths)
    for name in leaving:
        if sum(widths[column] + SEPARATOR for column in kept) <= max_width:
            break
        if name in kept:
            kept.remove(name)
    return kept


def left_out(headers: Sequence[str]) -> Text:
    """Return the line that names the columns that a narrow terminal has no room for."""
    return Text(f"left out for lack of width: {', '.join(headers)}\n", style="dim")


class TerminalTable:
    """A paper's table that leaves out its least important columns where the terminal is too narrow."""

    def __init__(self, text: str, rows: Sequence[Row]) -> None:
        self.caption = text
        self.rows = rows
        self.columns = visible(rows, leave_out=("published",))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table at the width at hand."""
        widths = {column.key: self._width(column) for column in self.columns}
        order = sorted(self.columns, key=lambda column: -column.priority)
        kept = narrowed(widths, [column.key for column in order if column.priority], options.max_width)
        yield Text(self.caption, style="bold")
        yield self._table([column for column in self.columns if column.key in kept], widths)
        if dropped := [column.header for column in self.columns if column.key not in kept]:
            yield left_out(dropped)

    def _width(self, column: Column) -> int:
        """Return the width at which every cell stands on one line; a status may wrap between its words."""
        texts = [column.header, *(column.text(row) for row in self.rows)]
        if column.key == "status":
            texts = [word for text in texts for word in text.split()]
        return max(map(cell_len, texts))

    def _table(self, columns: Sequence[Column], widths: Mapping[str, int]) -> Table:
        table = empty_table()
        for column in columns:
            table.add_column(column.header, justify=column.align, min_width=widths[column.key])
        for row in self.rows:
            cells = (_cell(column, row) for column in columns)
            table.add_row(*cells, style="dim" if row.status == "skipped" else "")
        return table


def empty_table() -> Table:
    """Return a table in the one style that all have."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")


def _summary_table(columns: Sequence[SummaryColumn], lines: Sequence[MethodSummary]) -> Table:
    table = empty_table()
    for column in columns:
        table.add_column(column.header, justify=column.align, no_wrap=column.header == "method")
    for line in lines:
        table.add_row(*(Text(column.text(line)) for column in columns))
    return table


def _cell(column: Column, row: Row) -> Text:
    text = column.text(row)
    bad = (column.key == "verified" and wrong(row)) or (column.key == "status" and failed(row))
    return Text(text, style="bold red" if bad else "dim" if text == ABSENT else "")


def _published_table(rows: Sequence[Row]) -> Table:
    table = empty_table()
    for header in PUBLISHED_COLUMNS:
        table.add_column(header, no_wrap=header == "method")
    for _, entry, cells in published_lines(rows):
        table.add_row(*(Text(cell, style="bold" if entry.get("agrees") is False else "") for cell in cells))
    return table
