"""The frame of every page: headline, sections, figures, environment, and how to reproduce it."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from schedgap.harness.figure import Drawing
from schedgap.harness.table import Table
from schedgap.harness.text import clean, seconds
from schedgap.instances.registry import PAPERS
from schedgap.instances.schema import Instance

MAX_DESCRIBED = 20
"""So many instances of a run are described; their names are in the table in any case."""

MAX_LINES = 60
"""So many lines of a fact about an instance are shown."""


@dataclass(frozen=True)
class Group:
    """Tables that belong together (those of a paper): an id that links lead to, what links say, and the heading."""

    id: str
    name: str
    title: str
    tables: Sequence[Table]


def slug(text: str) -> str:
    """Return an id of letters, digits and dashes."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())


def title_of(paper: str) -> str:
    """Return a paper's title, as its registration names it."""
    return clean(PAPERS.get(paper).title if paper in PAPERS else paper, 120)


class InstanceRow(Protocol):
    """A row about an instance."""

    @property
    def instance(self) -> str:
        """Name of the instance."""
        ...


def titled(rows: Sequence[InstanceRow]) -> str:
    """Return the name of the instance that rows are about, or how many there are."""
    names = list(dict.fromkeys(row.instance for row in rows))
    return clean(names[0], 60) if len(names) == 1 else f"{len(names)} instances"


def counted(counts: Mapping[str, int], always: Sequence[str]) -> list[tuple[str, str]]:
    """Return counts as a page shows them: those that say something, and some in any case."""
    return [(f"{count:,}", name) for name, count in counts.items() if name in always or count > (name == "instances")]


@dataclass(frozen=True)
class Section:
    """A section of a page: what links lead to, heading, content, and links to its parts (id, text)."""

    id: str
    title: str
    body: Markup
    parts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Page:
    """A page without its frame.

    Attributes
    ----------
    question
        Stands above the title.
    title
        What the page is about.
    headline
        The sentence that answers the question.
    trouble
        Whether something failed or is WRONG.
    answers, name
        The answer in parts: (about what, text), and what they are the parts of.
    counts
        Numbers that sum the page up: (number, of what).
    sections
        In order.
    meta
        Content of ``run.json``: what the page says of environment and reproduction.
    """

    question: str
    title: str
    headline: str
    trouble: bool
    sections: Sequence[Section]
    meta: Mapping[str, Any]
    answers: Sequence[tuple[str, str]] = ()
    counts: Sequence[tuple[str, str]] = ()
    name: str = "Paper by paper"


def render(page: Page) -> str:
    """Return the page as one self-contained HTML document."""
    script = source("report.js")
    meta = page.meta
    found: str = template("page.html.j2").render(
        page=page,
        style=Markup(source("report.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        environment=environment_facts(meta),
        commands=commands(meta),
        edited=str(meta.get("git_commit") or "").endswith("+changes"),
        when=clean(meta.get("started_utc", ""), 40),
        took=seconds(meta["duration_s"]) if isinstance(meta.get("duration_s"), int | float) else "",
    )
    return found


@lru_cache(maxsize=1)
def _environment() -> Environment:
    loader = PackageLoader("schedgap.harness.page", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def template(name: str) -> Any:
    """Return a template of the folder of templates."""
    return _environment().get_template(name)


def source(name: str) -> str:
    """Return a file of the template folder, which goes into the page as it is."""
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), name)[0]


def macro(name: str, *arguments: Any) -> Markup:
    """Return what a macro of ``sections.html.j2`` makes of its arguments."""
    return Markup(getattr(template("sections.html.j2").module, name)(*arguments))


# ---------------------------------------------------------------- sections


def results_section(groups: Sequence[Group], legend: Sequence[tuple[str, str]]) -> Section:
    """Return the tables, each group under its heading where there are several, and what the columns mean."""
    links = [(group.id, group.name) for group in groups] if len(groups) > 1 else []
    return Section("results", "Results", macro("results", groups, legend, len(groups) > 1), links)


def notes_section(listed: Sequence[tuple[str, str]]) -> list[Section]:
    """Return what went wrong or was left out, in words; nothing where there is nothing to say."""
    return [Section("notes", "Failures and skipped methods", macro("notes", listed))] if listed else []


def figures_section(
    drawings: Sequence[Drawing], titles: Mapping[str, str], failures: Sequence[str] = ()
) -> list[Section]:
    """Return the figures by group, each with links to its figures; nothing where there are none.

    Parameters
    ----------
    drawings
        The figures.
    titles
        Headings by group; a group without is headed by its name.
    failures
        What is said about figures that could not be drawn.
    """
    if not drawings and not failures:
        return []
    names = [*titles, *(drawing.group for drawing in drawings)]
    ordered = sorted(drawings, key=lambda drawing: names.index(drawing.group))
    groups = [
        (f"figures-{slug(name)}", name, titles.get(name, name), list(mine))
        for name, mine in groupby(enumerate(ordered, start=1), key=lambda item: item[1].group)
    ]
    links = [(id, name) for id, name, *_ in groups] if len(groups) > 1 else []
    lines = [clean(line, 400) for line in failures]
    return [Section("figures", "Figures", macro("figures", groups, len(groups) > 1, lines), links)]


def instances_section(instances: Mapping[str, Instance], names: Mapping[str, str]) -> list[Section]:
    """Return the instances in words; `names` are what they are called in the run, by fingerprint."""
    from schedgap.instances.schema.summary import describe

    described = []
    for fingerprint, instance in list(instances.items())[:MAX_DESCRIBED]:
        facts = [(clean(key, 60), _lines(text)) for key, text in describe(instance)]
        described.append((clean(names.get(fingerprint, instance.name), 100), facts))
    if not described:
        return []
    more = max(0, len(instances) - MAX_DESCRIBED)
    title = "Instance" if len(instances) == 1 else "Instances"
    return [Section("instances", title, macro("instances", described, more))]


def _lines(text: str) -> list[str]:
    """Return the lines of a fact, each harmless, and how many more there are."""
    lines = text.splitlines()
    more = [f"… and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
    return [clean(line, 400) for line in lines[:MAX_LINES]] + more


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
    command = meta.get("command") or ""
    line = shlex.join(map(str, command)) if isinstance(command, list | tuple) else str(command)
    commit = str(meta.get("git_commit") or "").removesuffix("+changes")
    return [*([f"git checkout {clean(commit, 80)}"] if commit else []), clean(line)]
