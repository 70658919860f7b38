"""Findings as a table of a page, a section of another page, and a page of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.audit.finding import FAILED, Finding, headline, kind
from harness.audit.registry import REFUTED
from harness.audit.render import COLUMNS, CONFIRMED_IS, by_paper, cells, replays
from harness.report.page import Page, Section, macro, notes_section, render, results_section
from harness.report.tables import Cell, Group, Table, slug, sort_key, title_of

if TYPE_CHECKING:
    from harness.audit.running import Audit

EXPLAINED = {
    "verdict": "computed from the counts: confirmed, refuted, only for a narrower scope, not testable",
    "failed": "cases in which the claim does not hold, of those tried within the paper's scope",
    "what it says": "theorem, equation, figure or section of the paper, and the claim in a sentence",
    "found": "which cases were tried, and the numbers that count",
}


def table(findings: Sequence[Finding], caption: str = CONFIRMED_IS) -> Table:
    """Return findings as a table in the look of all reports."""
    sides = {"failed": "right"}
    headings = [(name, EXPLAINED.get(name, ""), sides.get(name, "left")) for name in COLUMNS]
    return Table(caption, headings, [_row(finding) for finding in findings])


def _row(finding: Finding) -> list[Cell]:
    return [
        Cell(text, _sort(finding, name, text), _classes(finding, name))
        for name, text in zip(COLUMNS, cells(finding), strict=True)
    ]


def _sort(finding: Finding, name: str, text: str) -> str:
    return sort_key(finding.tally.failed if name == "failed" else text)


def _classes(finding: Finding, name: str) -> str:
    if name == "claim":
        return "method"
    if name == "failed":
        return "right"
    bad = " bad" if name == "verdict" and finding.status in (FAILED, REFUTED) else ""
    return ("note" if name in ("what it says", "found") else "wide") + bad


def groups(findings: Sequence[Finding]) -> list[Group]:
    """Return a table per paper."""
    return [
        Group(f"audit-{slug(paper)}", paper, title_of(paper), [table(group)]) for paper, group in by_paper(findings)
    ]


def section(findings: Sequence[Finding]) -> Section:
    """Return findings as a section of another page: a table per paper."""
    made = groups(findings)
    links = [(group.id, group.name) for group in made] if len(made) > 1 else []
    return Section("audit", "Claims of the papers", macro("results", made, [], len(made) > 1), links)


def witnesses(findings: Sequence[Finding]) -> list[Section]:
    """Return the witnesses with the commands that replay them, as a section."""
    listed = [(name, f"{what}: {how}") for name, what, how in replays(findings)]
    return [Section("witnesses", "Witnesses", macro("notes", listed))] if listed else []


def page(audit: Audit, images: Sequence[object] = (), undrawn: Sequence[str] = ()) -> str:
    """Return an audit as one self-contained HTML page; it has no figures."""
    del images, undrawn
    findings = audit.findings
    failures = [(finding.id, finding.text) for finding in findings if not finding.ok]
    counts = Counter(kind(finding) for finding in findings)
    return render(
        Page(
            question="Does the theory hold?",
            title="Audit of the papers' claims",
            headline=headline(findings),
            trouble=bool(failures),
            sections=[
                results_section(groups(findings), list(EXPLAINED.items())),
                *notes_section(failures),
                *witnesses(findings),
            ],
            meta=audit.meta,
            counts=[(str(count), name) for name, count in counts.items()],
        )
    )


def fragment(findings: Sequence[Finding]) -> str:
    """Return headline and tables as HTML to show inside another page, such as a notebook."""
    from harness.report.page import template

    tables = [made for group in groups(findings) for made in group.tables]
    found: str = template("fragment.html.j2").render(
        headline=headline(findings), tables=tables, notes=[], published=None, published_notes=[]
    )
    return found
