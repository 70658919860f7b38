"""Findings as a terminal table, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from harness.audit.finding import FIELDS, Finding, headline
from harness.audit.registry import CONFIRMED, REFUTED
from harness.render.formats import csv_cell, markdown_text
from harness.text import clean, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

COLUMNS = ("claim", "verdict", "failed", "what it says", "found")
CONFIRMED_IS = (
    "confirmed: no counterexample among the cases tried, which is no proof beyond them; failed: cases in which the "
    "claim does not hold, of those tried within the scope that the paper states"
)
LONGEST = 600
"""Longest text of a cell."""


def cells(finding: Finding) -> tuple[str, ...]:
    """Return the texts of :data:`COLUMNS`."""
    tally = finding.tally
    counts = f"{tally.failed} of {tally.tested}" if tally.tested else "–"
    says = f"{finding.claim.location}: {finding.claim.claim}"
    told = (finding.id, finding.status, counts, says, finding.text)
    return tuple(clean(text, LONGEST) for text in told)


def by_paper(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the findings about each paper."""
    for paper, group in groupby(findings, key=lambda finding: finding.claim.paper):
        yield paper, list(group)


def replays(findings: Sequence[Finding]) -> list[tuple[str, str, str]]:
    """Return id of the claim, what its witness shows, and the command that replays it, for every witness."""
    return [
        (finding.id, clean(witness.shows, LONGEST), clean(finding.replay(i)))
        for finding in findings
        for i, witness in enumerate(finding.witnesses)
    ]


def to_markdown(findings: Sequence[Finding]) -> str:
    """Return headline, a table per paper and the witnesses as GitHub-flavoured Markdown."""
    blocks = [markdown_text(headline(findings)), markdown_text(CONFIRMED_IS)]
    for paper, group in by_paper(findings):
        lines = [COLUMNS, ("---",) * len(COLUMNS), *(tuple(map(markdown_text, cells(f))) for f in group)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        blocks += [f"## {markdown_text(paper)}", table]
    if shown := replays(findings):
        listed = [f"- {markdown_text(name)}: {markdown_text(what)}\n  `{how}`" for name, what, how in shown]
        blocks += ["## Witnesses", "\n".join(listed)]
    return "\n\n".join(blocks) + "\n"


def to_csv(findings: Sequence[Finding]) -> str:
    """Return all fields of all findings as CSV; lists and numbers by name are JSON, and no cell starts a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows([csv_cell(finding.as_dict()[name]) for name in FIELDS] for finding in findings)
    return out.getvalue()


def to_json(findings: Sequence[Finding]) -> str:
    """Return a JSON list with an object of all fields per finding."""
    lines = [json.dumps(plain(finding.as_dict()), ensure_ascii=True, allow_nan=False) for finding in findings]
    return "[" + ",\n ".join(lines) + "]\n"


def style(finding: Finding) -> str:
    """Return how the terminal shows a verdict."""
    if not finding.ok:
        return "bold red"
    return {CONFIRMED: "green", REFUTED: "bold"}.get(finding.status, "")


def to_rich(findings: Sequence[Finding]) -> RenderableType:
    """Return what the terminal shows: headline, a table per paper, witnesses."""
    from rich.console import Group
    from rich.text import Text

    from harness.render.terminal import empty_table

    shown: list[RenderableType] = [Text(headline(findings), style="bold"), Text(CONFIRMED_IS, style="dim")]
    for paper, group in by_paper(findings):
        table = empty_table()
        for header in ("claim", "verdict", "failed", "found"):
            table.add_column(
                header, no_wrap=header in ("claim", "failed"), min_width=16 if header == "verdict" else None
            )
        for finding in group:
            name, verdict, counts, _, found = cells(finding)
            table.add_row(Text(name), Text(verdict, style=style(finding)), Text(counts), Text(found))
        shown += [Text(), Text(clean(paper), style="bold"), table]
    if told := replays(findings):
        shown += [Text("witnesses", style="bold")]
        shown += [Text(f"{name}: {what}\n  {how}", overflow="fold") for name, what, how in told]
    return Group(*shown)
