"""Report of reproductions: a verdict on every figure and table, with published, measured and certified numbers."""

from __future__ import annotations

from schedgap.harness.engine.result import grouped
from schedgap.harness.show.page import frame
from schedgap.harness.show.page.columns import LONGEST
from schedgap.harness.show.page.columns import REPRODUCE as COLUMNS
from schedgap.harness.show.page.frame import Group, Page
from schedgap.harness.show.table import USUALLY, Block, Line, Note, Selection, explained, listed, table
from schedgap.harness.show.text import clean
from schedgap.harness.studies.reproduce.row import REPRODUCED, UNJUDGED, VERDICTS, ReproducedRow, Reproduction, kind
from schedgap.harness.studies.reproduce.setting import Setting
from schedgap.instances.text import counted


def heading(found: Reproduction, setting: Setting) -> str:
    """Return the place, title and verdict of a figure or table, and the number of its parts that are reproduced."""
    rows = found.of(setting.id)
    title = f"{setting.id} ({clean(setting.place, 60)}): {clean(setting.title, 200)}"
    text = f"{title}: {clean(found.verdict(setting.id), LONGEST)}"
    count = sum(row.verdict == REPRODUCED for row in rows)
    return text if len(rows) == 1 or not count else f"{text}; {count} of {len(rows)} reproduced"


def _untested(row: ReproducedRow) -> bool:
    return kind(row.verdict) in UNJUDGED and row.measured is None


def notes(found: Reproduction, setting: Setting) -> list[tuple[str, str]]:
    """Return ``(subject, note)`` pairs about a figure.

    They have the assumptions, on which of them verdicts depend, failures, and remarks on what is not reproduced.
    """
    pairs = [("note", clean(setting.note, LONGEST))] if setting.note else []
    pairs += [("needs", clean(setting.needs, LONGEST))] if setting.needs else []
    pairs += [("assumption", clean(f"{one}. {one.why}", LONGEST)) for one in setting.assumptions]
    for row in found.of(setting.id):
        subject = f"{row.method} {row.what}".strip() if row.method else row.what
        pairs += [(subject, f"WRONG or failed: {row.trouble}")] if row.trouble else []
        pairs += [(subject, clean(f"measured with {line}", LONGEST)) for line in row.elsewhere]
        pairs += [(subject, clean(f"depends on {line}", LONGEST)) for line in row.flips]
        pairs += [(subject, clean(row.note, LONGEST))] if row.note and row.verdict != REPRODUCED else []
    return frame.together(pairs)


def headline(found: Reproduction) -> str:
    """Return a sentence that counts the figures and tables, in total and by verdict."""
    counts = ", ".join(f"{count} {name}" for name in VERDICTS if (count := found.verdicts[name]))
    several = counted(len(found.settings), "figure or table", "figures and tables")
    early = "The run was stopped early. " if found.interrupted else ""
    quick = " (small versions, by --quick)" if found.meta.get("quick") else ""
    return f"{early}{several}{quick}: {counts}."


def blocks(found: Reproduction, view: Selection = USUALLY) -> list[Block]:
    """Return the blocks that the command prints: the headline, then each figure or table with its notes."""
    shown: list[Block] = [Line(headline(found), "bold")]
    for setting in found.settings.values():
        shown += listed(heading(found, setting), COLUMNS, found.of(setting.id), dim=_untested, view=view)
        shown += [Note(subject, text) for subject, text in notes(found, setting)]
    return shown


def page(found: Reproduction) -> Page:
    """Return the page of reproductions, with a group of tables per paper."""
    groups, answers = [], []
    for settings in grouped(found.settings.values(), "paper"):
        paper = settings[0].paper
        tables = [table(heading(found, each), COLUMNS, found.of(each.id), _untested) for each in settings]
        groups.append(Group(f"paper-{frame.slug(paper)}", clean(paper, 60), frame.title_of(paper), tables))
        places = [(kind(found.verdict(setting.id)), setting.place) for setting in settings]
        by_verdict = {name: [place for verdict, place in places if verdict == name] for name in VERDICTS}
        listed = "; ".join(f"{name}: {', '.join(where)}" for name, where in by_verdict.items() if where)
        answers.append((clean(paper, 60), f"{listed}."))
    pairs = [(f"{id} {subject}", text) for id, each in found.settings.items() for subject, text in notes(found, each)]
    return Page(
        question="Do the papers' results reproduce?",
        title="Figures and tables of the papers",
        headline=headline(found),
        groups=groups,
        legend=[*explained(COLUMNS, [found.rows]), *((name, text) for name, text in VERDICTS.items())],
        more=frame.noted("notes", "Notes", pairs),
        counts=[(str(found.verdicts[name]), name) for name in VERDICTS if found.verdicts[name]],
        answers=answers,
    )
