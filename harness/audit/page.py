"""Findings as a table of a page, a section of another page, and a page of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from schedgap.harness.audit.finding import Finding, headline, kind
from schedgap.harness.audit.render import COLUMNS, CONFIRMED_IS, replays, tables
from schedgap.harness.report.page import Page, Section, macro, notes_section, render, results_section
from schedgap.harness.report.tables import Group, slug, title_of

if TYPE_CHECKING:
    from schedgap.harness.audit.running import Audit


def groups(findings: Sequence[Finding]) -> list[Group]:
    """Return a table per paper."""
    return [
        Group(f"audit-{slug(paper)}", paper, title_of(paper), [replace(content, caption=CONFIRMED_IS)])
        for paper, content in tables(findings)
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
                results_section(groups(findings), [(c.header, c.explanation) for c in COLUMNS if c.explanation]),
                *notes_section(failures),
                *witnesses(findings),
            ],
            meta=audit.meta,
            counts=[(str(count), name) for name, count in counts.items()],
        )
    )
