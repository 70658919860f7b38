"""What an audit tells: a table per paper, and the witnesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from schedgap.harness.audit.row import Audit, Finding, headline, kind
from schedgap.harness.figure import Drawing
from schedgap.harness.page.columns import AUDIT, LONGEST
from schedgap.harness.page.frame import (
    Group,
    Page,
    Section,
    macro,
    notes_section,
    render,
    results_section,
    slug,
    title_of,
)
from schedgap.harness.table import Block, Command, Line, Note, Table, explained, table
from schedgap.harness.text import clean

CONFIRMED_IS = (
    "confirmed: no counterexample among the cases tried, which is no proof beyond them; failed: cases in which the "
    "claim does not hold, of those tried within the scope that the paper states"
)


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


def tables(findings: Sequence[Finding]) -> list[tuple[str, Table]]:
    """Return each paper with its table."""
    return [(paper, table("", AUDIT, group)) for paper, group in by_paper(findings)]


def blocks(audit: Audit) -> list[Block]:
    """Return what a command prints: headline, a table per paper, the witnesses and how to replay them."""
    shown: list[Block] = [Line(audit.headline, "bold"), Line(CONFIRMED_IS, "dim")]
    for paper, content in tables(audit.rows):
        shown += [Line(""), Line(clean(paper), "bold"), content]
    told = replays(audit.rows)
    shown += [Line("witnesses", "bold")] if told else []
    return [*shown, *(block for name, what, how in told for block in (Note(name, what), Command("replay", how)))]


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


def page(audit: Audit, drawings: Sequence[Drawing], failures: Sequence[str]) -> str:
    """Return an audit as one self-contained HTML page; it has no figures."""
    findings = audit.rows
    failed = [(finding.id, finding.text) for finding in findings if not finding.ok]
    counts = Counter(kind(finding) for finding in findings)
    return render(
        Page(
            question="Does the theory hold?",
            title="Audit of the papers' claims",
            headline=headline(findings),
            trouble=bool(failed),
            sections=[
                results_section(groups(findings), explained(AUDIT, [findings])),
                *notes_section(failed),
                *witnesses(findings),
            ],
            meta=audit.meta,
            counts=[(str(count), name) for name, count in counts.items()],
        )
    )
