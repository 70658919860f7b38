"""The frame of every page: headline, sections, figures, environment, and how to reproduce it."""

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

from schedgap.harness.compare.row import Row
from schedgap.harness.engine.result import Found, grouped
from schedgap.harness.figure import Drawing, theme, themed
from schedgap.harness.published import Measures, by_reason, not_shown
from schedgap.harness.simulate.row import SimulationRow
from schedgap.harness.table import Block, Note, Table, of_texts, table
from schedgap.harness.text import clean, counted, differs, published_cells, seconds, some
from schedgap.instances.canonical import write_atomically
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

AnyRows = Sequence[Row | SimulationRow]

NAMED = 3
"""So many methods are named one by one."""

MAX_DESCRIBED = 20
"""So many instances of a run are described; their names are in the table in any case."""

TROUBLE = ("WRONG", "failed")

LEADING = frozenset({"gap", "simulation.ttd"})
"""Figures that answer a page's question, and so stand before the tables."""

MAX_LINES = 60
"""So many lines of a fact about an instance are shown."""


@dataclass(frozen=True)
class Group:
    """What belongs together (a paper): id and words of links, heading, tables, answer, and tables folded below."""

    id: str
    name: str
    title: str
    tables: Sequence[Table]
    answer: str = ""
    folded: Sequence[Table] = ()


def slug(text: str) -> str:
    """Return an id of letters, digits and dashes."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())


def title_of(paper: str) -> str:
    """Return a paper's title, as its registration names it."""
    return clean(PAPERS.get(paper).title if paper in PAPERS else paper, 120)


def titled(rows: AnyRows) -> str:
    """Return the name of the instance that rows are about, or how many there are."""
    names = list(dict.fromkeys(row.instance for row in rows))
    return clean(names[0], 60) if len(names) == 1 else f"{len(names)} instances"


def summed_up(rows: AnyRows, counts: Mapping[str, int], always: Sequence[str]) -> list[tuple[str, str]]:
    """Return counts, and those of trouble, as a page shows them: what says something, and some in any case."""
    trouble = {word: sum(getattr(row, word.lower()) for row in rows) for word in TROUBLE}
    counts = {**counts, **trouble, "skipped": sum(row.status == "skipped" for row in rows)}
    return [(f"{count:,}", name) for name, count in counts.items() if name in always or count > (name == "instances")]


def answered(found: Found[Any], noun: str, *sentences: str) -> str:
    """Return the headline: whether the run was stopped early, what is WRONG or failed, then the answer."""
    early = f"The run was stopped early, after {len(found.rows)} {noun}." if found.interrupted else ""
    return " ".join(filter(None, [early, *(_trouble(found, noun, word) for word in TROUBLE), *sentences]))


def _trouble(found: Found[Any], noun: str, word: str) -> str:
    """Return ``2 of 9 results are WRONG: a (why), b (why).``, or nothing."""
    bad = [row for row in found.rows if getattr(row, word.lower())]
    if not bad:
        return ""
    named = []
    for row, *_ in grouped(bad, "method"):
        why = f"{row.status}: {clean(row.reason, 100)}".removesuffix(": ") if row.reason else row.status
        if row.wrong:
            why = clean(row.violations[0], 100) if row.violations else "its claim does not hold"
            why += f", and {len(row.violations) - 1} more" if len(row.violations) > 1 else ""
        named.append(f"{clean(row.method, 60)} ({why})")
    left = len(named) - NAMED
    more = f" and {counted(left, 'more method')}" if left > 0 else ""
    verb = "failed" if word == "failed" else f"{'is' if len(bad) == 1 else 'are'} {word}"
    return f"{len(bad)} of {len(found.rows)} {noun} {verb}: {', '.join(named[:NAMED])}{more}."


@dataclass(frozen=True)
class Section:
    """A section of a page: what links lead to, heading, content, and links to its parts (id, text)."""

    id: str
    title: str
    body: Markup
    parts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Page:
    """What a page tells beside its frame.

    The `question` stands above the title; the `headline` answers it, the `answers` (about what, text) do so in parts,
    where there are several, and `parts` says what these are parts of. `counts` sum the page up (number, of what).
    `groups` of tables, explained by a `legend`, are followed by `notes` (about what, text) about what went wrong or was
    left out. `study` says which published numbers stand beside the rows. Sections of `more` come after the results,
    those of `last` after the notes.
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
    # of each group the figure that answers first, folded ones last
    names = list(dict.fromkeys([*(group.name for group in page.groups), *(drawing.group for drawing in drawings)]))
    ordered = sorted(drawings, key=lambda one: (names.index(one.group), one.kind not in LEADING, one.minor))
    numbered, known = list(enumerate(ordered, start=1)), {group.name for group in page.groups}
    others = [item for item in numbered if item[1].group not in known]
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
    made: str = TEMPLATES.get_template("page.html.j2").render(
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
    return made


TEMPLATES = Environment(
    loader=PackageLoader("schedgap.harness.page", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["clean"] = clean


def source(name: str) -> str:
    """Return a file of the template folder, which goes into the page as it is."""
    return resources.files(__package__).joinpath("templates", name).read_text("utf-8")


def macro(name: str, *arguments: Any) -> Markup:
    """Return what a macro of ``sections.html.j2`` makes of its arguments."""
    return Markup(getattr(TEMPLATES.get_template("sections.html.j2").module, name)(*arguments))


# ---------------------------------------------------------------- sections


Numbered = Sequence[tuple[int, Drawing]]
"""Figures and their numbers."""


def results_section(page: Page, numbered: Numbered) -> Section:
    """Return answer, first figure, tables and other figures of each group, and what the columns mean."""
    parts, several = [], len(page.groups) > 1
    for group in page.groups:
        mine = [item for item in numbered if item[1].group == group.name]
        first = [item for item in mine if item[1].kind in LEADING]
        parts.append((group, first, mine[len(first) :]))
    links = [(group.id, group.name) for group in page.groups] if several else []
    return Section("results", "Results", macro("results", parts, page.legend, several), links)


def noted(id: str, title: str, listed: Sequence[tuple[str, str]]) -> list[Section]:
    """Return a section with what is said (about what, text), if anything is."""
    return [Section(id, title, macro("notes", listed))] if listed else []


def figures_section(numbered: Numbered, failures: Sequence[str]) -> list[Section]:
    """Return figures of no group of tables, and what is said about those not drawn, if any."""
    if not numbered and not failures:
        return []
    each = groupby(numbered, key=lambda item: item[1].group)
    groups = [(f"figures-{slug(name)}", name, list(mine)) for name, mine in each]
    lines = [clean(line, 400) for line in failures]
    return [Section("figures", "Figures", macro("figures", groups, len(groups) > 1, lines))]


def charts(drawings: Sequence[Drawing]) -> str:
    """Return the charts' specifications and look as JSON that may stand in a script element of a page."""
    told = {"config": theme(), "specs": {drawing.name: drawing.spec for drawing in drawings}}
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return themed(text.replace("<", "\\u003c")) if drawings else ""


@cache
def library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script; the versions are those of the pinned vl-convert."""
    import vl_convert

    # Bundling takes two seconds, so it is done once; as numba's compiled code, the script stays beside the sources.
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
    """Return the instances in words, under the names that the rows have for them."""
    from schedgap.instances.schema.summary import describe

    shown = list(found.instances.values())[:MAX_DESCRIBED]
    described = [(one.name, [(key, text.splitlines()) for key, text in describe(one)]) for one in shown]
    body = macro("instances", described, len(found.instances) - len(shown), MAX_LINES)
    return [Section("instances", f"Instance{'s' * (len(found.instances) > 1)}", body)] if shown else []


# ---------------------------------------------------------------- published numbers


HEADERS = ("method", "quantity", "published", "measured", "exact", "unit", "where")

CAPTION = (
    "Numbers that papers printed about this instance, beside ours. ✓: equal to its last place; "
    "≠: not. Exact, ✓: what we measured is the exact value."
)


def published(rows: AnyRows, caption: str, every: bool = False) -> tuple[list[Table], list[tuple[str, str]]]:
    """Return published numbers as a table, if any, where those that we do not get stand out; of equal ones the first.

    Notes say something about these, such as why we do not get them, or about `every` number: (which number, note).
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
    """Return which published numbers stand beside none of the rows, and why: (which numbers, why)."""
    found = []
    for mine in grouped(rows, "fingerprint"):
        instance = instances.get(mine[0].fingerprint)
        left = not_shown(mine, instance, study) if instance else []
        found += [(f"{clean(e.method, 60)} {clean(e.quantity, 60)}", clean(why, 400)) for e, why in left]
    return [(f"published, not compared here: {names}", why) for names, why in together(found)]


def published_blocks(
    rows: AnyRows, instances: Mapping[str, Instance], study: Measures, notes: Sequence[tuple[str, str]]
) -> list[Block]:
    """Return what a command prints of published numbers, with other notes at the end."""
    tables, noted = published(rows, "published beside measured")
    told = [*((f"≠ {which}", note) for which, note in noted), *not_compared(rows, instances, study), *notes]
    return [*tables, *(Note(which, note) for which, note in told)]


def published_section(rows: AnyRows, instances: Mapping[str, Instance], study: Measures) -> list[Section]:
    """Return published numbers beside ours and what is to be said about them as a section, where there are any."""
    tables, noted = published(rows, CAPTION, every=True)
    listed = [*noted, *not_compared(rows, instances, study)]
    if not tables and not listed:
        return []
    from schedgap.harness.reproduce.setting import about  # imports pandas, of which tables alone need nothing

    if figures := about(instance.name for instance in instances.values()):
        listed.append(("figures and tables of the papers on it", f"harness reproduce {' '.join(figures)}"))
    return [Section("published", "Published numbers", macro("published", tables[0] if tables else None, listed))]


def together(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return who has the same to say in one line, in the order in which it is said first: (who, what)."""
    return [(some(names, NAMED + (len(names) == NAMED + 1)), note) for note, names in by_reason(found).items()]


# ---------------------------------------------------------------- environment and reproduction


def environment_facts(meta: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return versions, machine and limits as named lists of (name, value); limits of several kinds one by one."""
    found = []
    for name in ("versions", "machine", "limits"):
        facts = meta.get(name) or {}
        several = {f"{name}: {clean(kind, 40)}": each for kind, each in facts.items() if isinstance(each, Mapping)}
        for title, each in (several or {name: facts}).items():
            found.append((title, [(clean(k, 60), clean(v, 120)) for k, v in sorted(each.items())]))
    return [(name, facts) for name, facts in found if facts]


def commands(meta: Mapping[str, Any]) -> list[str]:
    """Return the lines that repeat the run."""
    commit = str(meta.get("git_commit") or "").removesuffix("+changes")
    return [*([f"git checkout {clean(commit, 80)}"] if commit else []), clean(meta.get("command") or "")]
