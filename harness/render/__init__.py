"""How a run reads: the same numbers, headline and columns in the terminal, in files and in the report."""

from harness.render.columns import COLUMNS, Column, visible
from harness.render.formats import notes, parts, published_notes, to_csv, to_json, to_markdown, to_rich
from harness.render.headline import headline

__all__ = [
    "COLUMNS",
    "Column",
    "headline",
    "notes",
    "parts",
    "published_notes",
    "to_csv",
    "to_json",
    "to_markdown",
    "to_rich",
    "visible",
]
