"""Output of blocks on a terminal: no cell is cut; cells that do not fit into their row follow below it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from schedgap.harness.show.table import Block, Cell, Line, Note, Table
from schedgap.harness.show.text import ABSENT

SENTENCES = ("note", "wide", "text", "status")
"""CSS classes of columns whose cells may take several lines."""

NARROWEST = 20
"""Least width of a column of sentences, unless its cells are shorter or have longer words."""

GAP = 2
"""Number of blanks between columns."""

UNBROKEN = "\xa0"

MARGIN = " "
"""Left margin of every line of a table."""


def show(console: Console, blocks: Iterable[Block]) -> None:
    """Print blocks on a terminal. All text is passed as :class:`rich.text.Text`, so none of it is read as markup.

    Commands, and notes that contain one, are never wrapped, since people copy them.
    """
    before: Block | None = None
    for block in blocks:
        if before and (isinstance(block, Table) or (isinstance(before, Table) and not isinstance(block, Line))):
            console.print()
        before = block
        if isinstance(block, Table):
            for line in drawn(block, console.width):
                console.print(line, soft_wrap=True)
        elif isinstance(block, Note) and block.command:
            console.print(Text(f"  {block.text}"), soft_wrap=True)
        else:
            text = f"{block.about}: {block.text}" if isinstance(block, Note) else block.text
            for part in [text] if "harness " in text else _wrapped(text, console.width):
                console.print(Text(part, block.style), soft_wrap=True)


def drawn(content: Table, width: int) -> Iterator[Text]:
    """Yield a table as lines of at most `width` characters, unless a single cell is wider.

    If the columns do not fit, the least important ones are dropped and named below the table. If that is not enough,
    cells with sentences move below their row, then the rightmost cells.
    """
    widths, below, dropped = _layout(content, width - len(MARGIN))
    total = sum(widths.values()) + GAP * (len(widths) - 1)
    if content.caption:
        yield from (Text(line, "bold") for line in _wrapped(content.caption, width))
        yield Text("")
    if not content.rows:
        yield Text(f"{MARGIN}none", "dim")
        return
    yield from _row(content, [Cell(column.header) for column in content.columns], widths, "bold")
    yield Text(MARGIN + "─" * total)
    for i, row in enumerate(content.rows):
        if i in content.heads:
            yield from [Text("")] * (i > 0)
            yield from (Text(MARGIN + line, "italic") for line in _wrapped(content.heads[i], width - len(MARGIN)))
        style = "dim" if i in content.dim else ""
        yield from _row(content, row, widths, style)
        for j in below:
            if row[j].text not in ("", ABSENT):
                lines = _wrapped(f"{content.columns[j].header}: {row[j].text}", width - 4)
                yield from (Text(" " * 4 + line, "bold red" if row[j].bad else style) for line in lines)
    if dropped:
        yield from (Text(line, "dim") for line in _wrapped(f"left out for lack of width: {', '.join(dropped)}", width))


def _row(content: Table, row: Sequence[Cell], widths: dict[int, int], style: str) -> Iterator[Text]:
    """Yield the lines of a row; cells with sentences may take several."""
    cells = [_wrapped(row[i].text, widths[i]) for i in sorted(widths)]
    for parts in zip_longest(*cells, fillvalue=""):
        line = Text(MARGIN, style)
        for place, (i, part) in enumerate(zip(sorted(widths), parts, strict=True)):
            blanks = " " * (widths[i] - cell_len(part))
            own = "bold red" if row[i].bad else "dim" if row[i].text == ABSENT else ""
            right = content.columns[i].align == "right"
            line.append(" " * GAP * (place > 0) + blanks * right)
            line.append(part, own)
            line.append(blanks * (not right))
        line.rstrip()
        yield line


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap a text. Later lines are indented twice as far as the first; numbers stay on a line with their units."""
    if cell_len(text) <= width:
        return [text]
    indent = " " * 2 * (len(text) - len(text.lstrip()))
    joined = re.sub(r"(?<=\d) (?=%|[hs]\b)", UNBROKEN, text)
    lines = textwrap.wrap(joined, max(width, 1), subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(UNBROKEN, " ") for line in lines]


def _layout(content: Table, width: int) -> tuple[dict[int, int], list[int], list[str]]:
    """Return the width of each column in the row, the columns below the row, and the headers of dropped columns."""
    columns = content.columns
    whole, least = {}, {}
    for i, column in enumerate(columns):
        lines = [column.header, *(row[i].text for row in content.rows)]
        whole[i] = least[i] = max(map(cell_len, lines))
        if column.css in SENTENCES:
            word = max(cell_len(word) for line in lines for word in line.split() or [""])
            least[i] = min(whole[i], word if column.css == "status" else max(NARROWEST, word))
    dropped, below = [], []

    def too_wide() -> bool:
        return sum(least.values()) + GAP * (len(least) - 1) > width

    for i in sorted(range(len(columns)), key=lambda i: -columns[i].priority):
        if columns[i].priority and too_wide() and not any(row[i].bad for row in content.rows):
            dropped.append(i)
            del least[i]
    sentences = sorted((i for i in least if whole[i] > least[i] and i), key=lambda i: -whole[i])
    for i in [*sentences, *(i for i in sorted(least, reverse=True) if i and i not in sentences)]:
        if too_wide():
            below.append(i)
            del least[i]
    room = width - sum(least.values()) - GAP * (len(least) - 1)
    narrow = sorted((i for i in least if whole[i] > least[i]), key=lambda i: whole[i] - least[i])
    for waiting, i in zip(range(len(narrow), 0, -1), narrow, strict=True):
        more = max(0, min(whole[i] - least[i], room // waiting))
        least[i] += more
        room -= more
    return least, sorted(below), [columns[i].header for i in sorted(dropped)]
