"""The frame that all pages share: headline, sections, figures, environment, and commands that reproduce the run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from schedgap.harness.engine.result import Found, grouped
from schedgap.harness.show.figure import Drawing, theme, themed
from schedgap.harness.show.table import Block, Note, Table, of_texts, table
from schedgap.harness.show.text import clean, differs, published_cells, seconds
from schedgap.harness.studies.compare.row import Row
from schedgap.harness.studies.published import Measures, by_reason, not_shown
from schedgap.harness.studies.simulate.row import SimulationRow
from schedgap.instances.canonical import write_atomically
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance
from schedgap.instances.text import counted, some

AnyRows = Sequence[Row | SimulationRow]

NAMED = 3
"""Maximum number of methods that a sentence names."""

MAX_DESCRIBED = 20
"""Maximum number of instances that a page describes; the tables name all of them."""

TROUBLE = ("WRONG", "failed")

LEADING = {kind: place for place, kind in enumerate(("rigid.ladder", "frontier", "gap", "simulation.ttd"))}
"""Figures that answer the page's question, with their order; they stand before the tables."""

MAX_LINES = 60
"""Maximum number of lines shown for one fact about an instance."""


@dataclass(frozen=True)
class Group:
    """Results of one paper or instance: link target and text, heading, tables, answer, and tables shown collapsed."""

    id: str
    name: str
    title: str
    tables: Sequence[Table]
    answer: str = ""
    folded: Sequence[Table] = ()


def slug(text: str) -> str:
    """Return `text` as an HTML id of lower-case letters, digits and dashes."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())


def title_of(paper: str) -> str:
    """Return the registered title of a paper, or its id if it is not registered."""
    return clean(PAPERS.get(paper).title if paper in PAPERS else paper, 120)


def titled(rows: AnyRows) -> str:
    """Return the name of the rows' instance, or the number of instances if there are several."""
    names = list(dict.fromkeys(row.instance for row in rows))
    return clean(names[0], 60) if len(names) == 1 else f"{len(names)} instances"


def summed_up(rows: Sequence[Any], counts: Mapping[str, int], always: Sequence[str]) -> list[tuple[str, str]]:
    """Return ``(number, name)`` counts for the top of a page, with WRONG, failed and skipped rows.

    Counts of 0 are left out unless their name is in `always`.
    """
    trouble = {word: sum(getattr(row, word.lower()) for row in rows) for word in TROUBLE}
    counts = {**counts, **trouble, "skipped": sum(row.status == "skipped" for row in rows)}
    return [(f"{count:,}", name) for name, count in counts.items() if name in always or count > (name == "instances")]


def answered(found: Found[Any], noun: str, *sentences: str) -> str:
    """Return the headline: a note if the run was stopped early, then WRONG and failed results, then `sentences`."""
    early = f"The run was stopped early, after {len(found.rows)} {noun}." if found.interrupted else ""
    return " ".join(filter(None, [early, *(_trouble(found, noun, word) for word in TROUBLE), *sentences]))


def _trouble(found: Found[Any], noun: str, word: str) -> str:
    """Return ``2 of 9 results are WRONG: a (why), b (why).``, or ``""`` if there are none."""
    bad = [row for row in found.rows if getattr(row, word.lower())]
    if not bad:
        return ""
    methods = []
    for row, *_ in grouped(bad, "method"):
        why = f"{row.status}: {clean(row.reason, 100)}".removesuffix(": ") if row.reason else row.status
        if row.wrong:
            why = clean(row.violations[0], 100) if row.violations else "its claim does not hold"
            why += f", and {len(row.violations) - 1} more" if len(row.violations) > 1 else ""
        methods.append(f"{clean(row.method, 60)} ({why})")
    left = len(methods) - NAMED
    more = f" and {counted(left, 'more method')}" if left > 0 else ""
    verb = "failed" if word == "failed" else f"{'is' if len(bad) == 1 else 'are'} {word}"
    return f"{len(bad)} of {len(found.rows)} {noun} {verb}: {', '.join(methods[:NAMED])}{more}."


@dataclass(frozen=True)
class Section:
    """A section of a page: link target, heading, content, and ``(id, text)`` links to its parts."""

    id: str
    title: str
    body: Markup
    parts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Page:
    """Content of a page.

    The `question` stands above the title, and the `headline` answers it. If there are several `answers`, as
    ``(subject, text)``, they follow in a list headed by `parts`. `counts` are ``(number, name)`` pairs. The `groups` of
    tables have a `legend` of their columns, and `notes`, also ``(subject, text)`` pairs, about failures and omissions.
    `study` selects the published numbers to compare with. Sections in `more` follow the results, those in `last` the
    published numbers.
    """

    question: str
    title: str
    headline: str
    groups: Sequence[Group]
    legend: Sequence[tuple[str, str]]
    notes: Sequence[tuple[str, str]] = ()
    counts: Sequence[tuple[str, str]] = ()
    answers: Sequence[tuple[str, str]] = ()
    parts: str = "Paper by paper"
    study: Measures | None = None
    more: Sequence[Section] = ()
    last: Sequence[Section] = ()


def render(found: Found[Any], page: Page, drawings: Sequence[Drawing], failures: Sequence[str]) -> str:
    """Return the page as one self-contained HTML document."""
    # In each group, leading figures come first and folded ones last.
    tabled = [group.name for group in page.groups]
    names = list(dict.fromkeys([*tabled, *(drawing.group for drawing in drawings)]))
    ordered = sorted(
        drawings, key=lambda each: (names.index(each.group), LEADING.get(each.kind, len(LEADING)), each.minor)
    )
    numbered = list(enumerate(ordered, start=1))
    others = [item for item in numbered if item[1].group not in tabled]
    sections = [
        results_section(page, numbered),
        *page.more,
        *noted("notes", "Failures and skipped methods", page.notes),
        *(published_section(found.rows, found.instances, page.study) if page.study else []),
        *page.last,
        *figures_section(others, failures),
        *instances_section(found),
    ]
    scripts, meta = [*([library()] if drawings else []), source("report.js")], found.meta
    html: str = TEMPLATES.get_template("page.html.j2").render(
        page=page,
        sections=sections,
        trouble=not found.ok,
        style=Markup(source("report.css")),
        scripts=list(map(Markup, scripts)),
        hashes=[base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts],
        charts=Markup(charts(drawings)),
        environment=environment_facts(meta),
        commands=commands(meta),
        edited=str(meta.get("git_commit") or "").endswith("+changes"),
        when=clean(meta.get("started_utc", ""), 40),
        took=seconds(meta["duration_s"]) if isinstance(meta.get("duration_s"), int | float) else "",
    )
    return html


TEMPLATES = Environment(
    loader=PackageLoader("schedgap.harness.show.page", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["clean"] = clean


def source(name: str) -> str:
    """Return the text of a file in the template folder that goes into the page verbatim."""
    return resources.files(__package__).joinpath("templates", name).read_text("utf-8")


def macro(name: str, *arguments: Any) -> Markup:
    """Render a macro of ``sections.html.j2``."""
    return Markup(getattr(TEMPLATES.get_template("sections.html.j2").module, name)(*arguments))


# ---------------------------------------------------------------- sections


Numbered = Sequence[tuple[int, Drawing]]
"""Figures with their numbers on the page."""


def results_section(page: Page, numbered: Numbered) -> Section:
    """Return the section of all groups (answer, leading figures, tables, other figures) and the legend of columns."""
    parts, several = [], len(page.groups) > 1
    for group in page.groups:
        mine = [item for item in numbered if item[1].group == group.name]
        leading = [item for item in mine if item[1].kind in LEADING]
        parts.append((group, leading, mine[len(leading) :]))
    links = [(group.id, group.name) for group in page.groups] if several else []
    return Section("results", "Results", macro("results", parts, page.legend, several), links)


def noted(id: str, title: str, listed: Sequence[tuple[str, str]]) -> list[Section]:
    """Return a list with a section of the ``(subject, text)`` notes `listed`; the list is empty without notes."""
    return [Section(id, title, macro("notes", listed))] if listed else []


def figures_section(numbered: Numbered, failures: Sequence[str]) -> list[Section]:
    """Return a list with a section of the figures that belong to no table and of failures to draw; it may be empty."""
    if not numbered and not failures:
        return []
    by_group = groupby(numbered, key=lambda item: item[1].group)
    groups = [(f"figures-{slug(name)}", name, list(mine)) for name, mine in by_group]
    lines = [clean(line, 400) for line in failures]
    return [Section("figures", "Figures", macro("figures", groups, len(groups) > 1, lines))]


def charts(drawings: Sequence[Drawing]) -> str:
    """Return the charts' specifications and theme as JSON that is safe inside a script element."""
    content = {"config": theme(), "specs": {drawing.name: drawing.spec for drawing in drawings}}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return themed(text.replace("<", "\\u003c")) if drawings else ""


@cache
def library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed, in the versions of the pinned vl-convert, as one script."""
    import vl_convert

    # Bundling takes two seconds, so the script is cached next to the sources, like numba's compiled code.
    path = Path(__file__).parent / "__pycache__" / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return path.read_text("utf-8")
    bundle = vl_convert.javascript_bundle().replace("</script", "<\\/script")  # type: ignore[call-arg]
    text = f"/*\n{source('vega-licence.txt')}*/\n{bundle}"
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, text.encode())
    return text


def instances_section(found: Found[Any]) -> list[Section]:
    """Return a list with a section that describes the instances, under the names used in the rows; it may be empty."""
    from schedgap.instances.schema.summary import describe

    shown = list(found.instances.values())[:MAX_DESCRIBED]
    described = [(each.name, [(key, text.splitlines()) for key, text in describe(each)]) for each in shown]
    body = macro("instances", described, len(found.instances) - len(shown), MAX_LINES)
    return [Section("instances", f"Instance{'s' * (len(found.instances) > 1)}", body)] if shown else []


# ---------------------------------------------------------------- published numbers


HEADERS = ("method", "quantity", "published", "measured", "exact", "unit", "where")

CAPTION = (
    "Numbers that papers print about this instance, and our measurements. ✓: equal to the last printed digit; ≠: not "
    "equal. In the column “exact”, ✓: the measured value is the exact one."
)


def published(rows: AnyRows, caption: str, every: bool = False) -> tuple[list[Table], list[tuple[str, str]]]:
    """Return a table of published numbers (in a list, empty if there are none) and ``(which number, note)`` pairs.

    The table marks numbers that we do not reproduce, and lists equal entries once. Notes are about the marked numbers,
    for instance why they differ, or, with `every`, about all numbers.
    """
    several, lines, notes = len({row.fingerprint for row in rows}) > 1, dict[Any, None](), dict[Any, None]()
    for row in rows:
        on = f" on {clean(row.instance, 60)}" if several else ""
        for entry in row.published:
            method, quantity = clean(row.method, 60), clean(entry.get("quantity", ""), 40)
            widths = {"unit": 60, "where": 80, "note": 400}
            unit, where, note = (clean(entry.get(name) or "", width) for name, width in widths.items())
            cells = (method, quantity, *published_cells(entry), "" if unit == "1" else unit, where)
            if note and (every or differs(entry)) and (row.fingerprint, cells) not in lines:
                notes[f"{method}, {quantity}{on}", note] = None
            lines[row.fingerprint, cells] = None
    shown = [cells for _, cells in lines]
    tables = [table(caption, of_texts(HEADERS, lambda text: text.endswith("≠")), shown)] if shown else []
    return tables, list(notes)


def not_compared(rows: AnyRows, instances: Mapping[str, Instance], study: Measures) -> list[tuple[str, str]]:
    """Return ``(which numbers, reason)`` pairs for the published numbers that none of the rows is compared with."""
    reasons = []
    for mine in grouped(rows, "fingerprint"):
        instance = instances.get(mine[0].fingerprint)
        left = not_shown(mine, instance, study) if instance else []
        reasons += [(f"{clean(e.method, 60)} {clean(e.quantity, 60)}", clean(why, 400)) for e, why in left]
    return [(f"published, not compared here: {names}", why) for names, why in together(reasons)]


def published_blocks(
    rows: AnyRows, instances: Mapping[str, Instance], study: Measures, notes: Sequence[tuple[str, str]]
) -> list[Block]:
    """Return the blocks that a command prints about published numbers, with other `notes` at the end."""
    tables, differing = published(rows, "published beside measured")
    pairs = [*((f"≠ {which}", note) for which, note in differing), *not_compared(rows, instances, study), *notes]
    return [*tables, *(Note(which, note) for which, note in pairs)]


def published_section(rows: AnyRows, instances: Mapping[str, Instance], study: Measures) -> list[Section]:
    """Return a list with a section of published numbers, our measurements and notes on them; it may be empty."""
    tables, about_numbers = published(rows, CAPTION, every=True)
    listed = [*about_numbers, *not_compared(rows, instances, study)]
    if not tables and not listed:
        return []
    from schedgap.harness.studies.reproduce.setting import about  # imports pandas, which tables alone do not need

    if figures := about(instance.name for instance in instances.values()):
        listed.append(("figures and tables of the papers on it", f"harness reproduce {' '.join(figures)}"))
    return [Section("published", "Published numbers", macro("published", tables[0] if tables else None, listed))]


def together(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Group names by identical message, in order of first appearance; return ``(names, message)`` pairs."""
    return [(some(names, NAMED + (len(names) == NAMED + 1)), note) for note, names in by_reason(pairs).items()]


# ---------------------------------------------------------------- environment and reproduction


def environment_facts(meta: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return titled lists of ``(name, value)``: versions, machine, and limits (a list for each kind of limits)."""
    lists = []
    for name in ("versions", "machine", "limits"):
        facts = meta.get(name) or {}
        by_kind = {f"{name}: {clean(kind, 40)}": each for kind, each in facts.items() if isinstance(each, Mapping)}
        for title, each in (by_kind or {name: facts}).items():
            lists.append((title, [(clean(k, 60), clean(v, 120)) for k, v in sorted(each.items())]))
    return [(title, facts) for title, facts in lists if facts]


def commands(meta: Mapping[str, Any]) -> list[str]:
    """Return the shell commands that repeat the run."""
    commit = str(meta.get("git_commit") or "").removesuffix("+changes")
    return [*([f"git checkout {clean(commit, 80)}"] if commit else []), clean(meta.get("command") or "")]
