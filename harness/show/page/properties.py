"""The table of mechanisms and their properties as a page of the documentation: every mark leads to what it rests on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from markupsafe import Markup, escape

from schedgap.harness.ask.properties import PROPERTIES
from schedgap.harness.show.page.frame import slug
from schedgap.harness.studies.audit.claims.properties import Mark

Marks = Mapping[str, Mapping[str, Mark]]


def linked(marks: Marks) -> str:
    """Return the table as HTML; a mark that stands for a counterexample or a proof is a link to it."""
    head = "".join(f'<th title="{escape(one.text)}">{escape(one.short)}</th>' for one in PROPERTIES.values())
    rows = [
        f"<tr><th>{escape(id)}</th>{''.join(_cell(row.get(property)) for property in PROPERTIES)}</tr>"
        for id, row in marks.items()
    ]
    body = "".join(rows)
    return f'<table class="properties"><thead><tr><th>mechanism</th>{head}</tr></thead><tbody>{body}</tbody></table>'


def _cell(mark: Mark | None) -> Markup:
    if mark is None:
        return Markup("<td></td>")
    text = escape(mark.text)
    based = mark.finding.witnesses or mark.proof
    return Markup(f'<td><a href="#{slug(mark.finding.id)}">{text}</a></td>') if based else Markup(f"<td>{text}</td>")


def reasons(marks: Marks) -> str:
    """Return, for each mechanism, its counterexamples with the commands that replay them, and its proofs, as HTML."""
    parts = []
    for id, row in marks.items():
        entries = [
            f'<li id="{slug(mark.finding.id)}">{escape(PROPERTIES[property].text)} {_reason(mark)}</li>'
            for property, mark in row.items()
            if mark.finding.witnesses or mark.proof
        ]
        parts.append(f"<h3>{escape(id)}</h3><ul>{''.join(entries)}</ul>" if entries else "")
    return "".join(parts)


def _reason(mark: Mark) -> str:
    sentences = []
    if mark.finding.witnesses:
        where = mark.finding.numbers["situation"]
        given = "; ".join(f"{name} {value}" for name, value in where.items() if name != "weights" or set(value) != {1})
        sentences.append(f"✗ {escape(mark.finding.description)}. {escape(given)}. <code>{escape(replay(mark))}</code>")
    if mark.proof:
        scope = "" if mark.proof.several else " for tenants of one job type"
        sentences.append(f"✓{scope}: {escape(mark.proof.why)}.")
    return "<br>".join(sentences)


def replay(mark: Mark) -> str:
    """Return the command that replays a counterexample in exact arithmetic, and writes it as an instance."""
    return shlex.join(["harness", "audit", "--claim", mark.finding.id, "--effort", "0.03"])
