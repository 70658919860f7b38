"""What reproductions tell: a verdict on every figure and table, published beside measured beside certified."""

from __future__ import annotations

from schedgap.harness.engine.result import grouped
from schedgap.harness.page import frame
from schedgap.harness.page.columns import LONGEST
from schedgap.harness.page.columns import REPRODUCE as COLUMNS
from schedgap.harness.page.frame import Group, Page
from schedgap.harness.reproduce.row import NOT_TESTABLE, REPRODUCED, VERDICTS, ReproducedRow, Reproduction, kind
from schedgap.harness.reproduce.setting import Setting
from schedgap.harness.table import USUALLY, Block, Line, Note, View, explained, listed, table
from schedgap.harness.text import clean, counted


def heading(found: Reproduction, setting: Setting) -> str:
    """Return place, title and verdict of a figure or table, with how many of its parts are reproduced."""
    rows = found.of(setting.id)
    title = f"{setting.id} ({clean(setting.place, 60)}): {clean(setting.title, 200)}"
    told = f"{title}: {clean(found.verdict(setting.id), LONGEST)}"
    count = sum(row.verdict == REPRODUCED for row in rows)
    return told if len(rows) == 1 or not count else f"{told}; {count} of {len(rows)} reproduced"


def _untested(row: ReproducedRow) -> bool:
    return row.verdict == NOT_TESTABLE


def notes(found: Reproduction, setting: Setting) -> list[tuple[str, str]]:
    """Return what is to be said about a figure: trouble, other settings, and notes on what is not reproduced."""
    said = [("note", clean(setting.note, LONGEST))] if setting.note else []
    said += [("needs", clean(setting.needs, LONGEST))] if setting.needs else []
    for row in found.of(setting.id):
        about = f"{row.method} {row.what}".strip() if row.method else row.what
        said += [(about, f"WRONG or failed: {row.trouble}")] if row.trouble else []
        said += [(about, clean(f"measured where {line}", LONGEST)) for line in row.elsewhere]
        said += [(about, clean(row.note, LONGEST))] if row.note and row.verdict != REPRODUCED else []
    return frame.together(said)


def headline(found: Reproduction) -> str:
    """Return how many figures and tables there are, and what became of them."""
    counts = ", ".join(f"{count} {name}" for name in VERDICTS if (count := found.verdicts[name]))
    several = counted(len(found.settings), "figure or table", "figures and tables")
    early = "The run was stopped early. " if found.interrupted else ""
    quick = " (small versions, by --quick)" if found.meta.get("quick") else ""
    return f"{early}{several}{quick}: {counts}."


def blocks(found: Reproduction, view: View = USUALLY) -> list[Block]:
    """Return what a command prints: headline, then each figure or table with its notes."""
    shown: list[Block] = [Line(headline(found), "bold")]
    for setting in found.settings.values():
        shown += listed(heading(found, setting), COLUMNS, found.of(setting.id), dim=_untested, view=view)
        shown += [Note(which, what) for which, what in notes(found, setting)]
    return shown


def page(found: Reproduction) -> Page:
    """Return the page of reproductions: a group of tables per paper."""
    groups, told = [], []
    for settings in grouped(found.settings.values(), "paper"):
        paper = settings[0].paper
        tables = [table(heading(found, one), COLUMNS, found.of(one.id), _untested) for one in settings]
        groups.append(Group(f"paper-{frame.slug(paper)}", clean(paper, 60), frame.title_of(paper), tables))
        places = [(kind(found.verdict(setting.id)), setting.place) for setting in settings]
        by_verdict = {name: [place for verdict, place in places if verdict == name] for name in VERDICTS}
        listed = "; ".join(f"{name}: {', '.join(where)}" for name, where in by_verdict.items() if where)
        told.append((clean(paper, 60), f"{listed}."))
    said = [(f"{id} {which}".strip(), what) for id, one in found.settings.items() for which, what in notes(found, one)]
    return Page(
        question="Does it come back?",
        title="Figures and tables of the papers",
        headline=headline(found),
        groups=groups,
        legend=[*explained(COLUMNS, [found.rows]), *((name, text) for name, text in VERDICTS.items())],
        more=frame.noted("notes", "Notes", said),
        counts=[(str(found.verdicts[name]), name) for name in VERDICTS if found.verdicts[name]],
        answers=told,
    )
