"""Artefact of a run for a paper: tables, figures, numbers as LaTeX macros, bibliography, and a check of all results."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from schedgap.harness.engine.result import Found
from schedgap.harness.show import table
from schedgap.harness.show.drawing import draw_all, write_figures
from schedgap.harness.show.figure import Drawing
from schedgap.harness.show.page import blocks
from schedgap.harness.show.page.frame import TEMPLATES
from schedgap.heuristics import HEURISTICS
from schedgap.instances.errors import UsageError
from schedgap.instances.parameters import base_id
from schedgap.models import MODELS

LATEX = TEMPLATES.overlay(
    autoescape=False,
    variable_start_string="<<",
    variable_end_string=">>",
    block_start_string="<%",
    block_end_string="%>",
    comment_start_string="<#",
    comment_end_string="#>",
)
"""Template environment whose delimiters leave braces to LaTeX."""

ABOUT = ("method", "policy", "heuristic")
"""Fields that name the method of a row; rows of other commands have no macros."""

CASE = ("options", "limits", "seed")
"""Fields that follow the instance in macros if rows differ in them."""

GIVEN = "given"
"""Folder with the user's own files that the command names; ``make check`` repeats the command there."""


def write(found: Found[Any], folder: Path) -> Sequence[str]:
    """Write the artefact of a run into a new folder and return a message for each figure that cannot be drawn.

    The folder has ``paper.tex`` and the parts that it shows (``tables/``, ``figures/``, ``numbers.tex``,
    ``references.bib``), the run itself (``run/``), the files that its command names (``given/``), the exact environment
    (``requirements.txt``), and a ``Makefile``: ``make`` typesets the paper, ``make check`` repeats the run and compares
    every number. Raise `UsageError` if the folder is not empty, or if the results were not saved.
    """
    if found.folder is None:
        raise UsageError("these results were not saved; an artefact needs the results folder that a command writes")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: not empty; name a new folder")
    shutil.copytree(found.folder, folder / "run", ignore=shutil.ignore_patterns("report.html", "figures"))
    drawings, failures = draw_all(found)
    write_figures(drawings, folder)
    (folder / GIVEN).mkdir()
    command = shlex.join(_kept(word, folder / GIVEN) for word in shlex.split(found.meta["command"])[1:])
    for name, text in _texts(found, drawings, command):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return failures


def _kept(word: str, folder: Path) -> str:
    """Copy the file that a word of the command names, if any, into `folder`; return the word for the copy."""
    path = Path(word.removeprefix("exec:"))
    if not path.is_file():
        return word
    outside = path.is_absolute() or ".." in path.parts
    copy = folder / (path.name if outside else path)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, copy)
    return f"{'exec:' * word.startswith('exec:')}./{path.name}" if outside else word


def _texts(found: Found[Any], drawings: Iterable[Drawing], command: str) -> Iterator[tuple[str, str]]:
    contents = [block for block in blocks(found) if isinstance(block, table.Table)]
    tables = {f"tables/{i:02}.tex": content for i, content in enumerate(contents, 1)}
    for name, content in tables.items():
        # The paper puts the caption into the float around the table.
        yield name, table.to_latex([replace(content, caption="")])
    yield "numbers.tex", macros(found.rows)
    yield "references.bib", "\n".join(bibliography(found).values())
    installed = {d.name: d.version for d in importlib.metadata.distributions()}
    ours = installed.pop("schedgap")
    yield "requirements.txt", "".join(f"{name}=={installed[name]}\n" for name in sorted(installed, key=str.casefold))
    context = {
        "meta": found.meta,
        "command": command.replace("$", "$$"),
        "version": ours,
        "title": table.latex_text(found.meta["command"]),
        "tables": {name: table.latex_text(content.caption) for name, content in tables.items()},
        "figures": {f"figures/{each.name}.pdf": table.latex_text(each.caption) for each in drawings if not each.minor},
    }
    for name in ("paper.tex", "Makefile", "README.md"):
        yield name, LATEX.get_template(f"artefact/{name}.j2").render(context)


def macros(rows: Sequence[Any]) -> str:
    r"""Define the numbers of the rows for LaTeX: ``\gap{hadar.online}{gen/20jobs}``.

    The second argument is the instance, followed by the :data:`CASE` where rows differ in it: ``gen/20jobs, seed 1``.
    Characters that TeX reserves are ``-`` there. TeX ends with an error if a document asks for an undefined number.
    """
    records = [row.as_dict() for row in rows]
    measured = [measure for measure in rows[0].measures.values() if measure.macro] if rows else []
    several = [name for name in CASE if len({record.get(name) for record in records}) > 1]
    numbers: dict[tuple[str, ...], str] = {}
    for record in records:
        case = ", ".join([str(record.get("instance")), *(f"{name} {record[name]}" for name in several)])
        about = [re.sub(r"[\\{}%#~^]", "-", part) for part in (_about(record), case)]
        for measure in measured:
            if (value := record[measure.name]) is not None:
                text = table.latex_text(measure.format.bare(value, measure.side(record.get)))
                numbers.setdefault((measure.macro, *about), text)
    known = dict.fromkeys(name for name, *_ in numbers)
    lines = [COMMANDS, *(rf"\newcommand{{\{name}}}[2]{{\schedgapnumber{{{name}}}{{#1}}{{#2}}}}" for name in known)]
    lines += [rf"\schedgapdefine{{{'|'.join(key)}}}{{{text}}}" for key, text in numbers.items()]
    return "".join(f"{line}\n" for line in lines) if numbers else ""


COMMANDS = r"""\newcommand{\schedgapdefine}[2]{\expandafter\gdef\csname schedgap|#1\endcsname{#2}}
\newcommand{\schedgapnumber}[3]{\ifcsname schedgap|#1|#2|#3\endcsname\csname schedgap|#1|#2|#3\endcsname
  \else\errmessage{numbers.tex has no #1 of #2 on #3}\fi}"""
"""Commands that define a number, and that print it or end TeX with the names that have no number."""


def _about(record: Mapping[str, Any]) -> str:
    return next((str(record[name]) for name in ABOUT if record.get(name)), "")


def bibliography(found: Found[Any]) -> Mapping[str, str]:
    """Return the BibTeX entries of the papers and traces that the run used, by key."""
    methods = {base_id(_about(row.as_dict())) for row in found.rows}
    specs = [registry.get(id) for registry in (MODELS, HEURISTICS) for id in methods if id in registry]
    sources = [*(instance.source or "" for instance in found.instances.values()), *(spec.source for spec in specs)]
    text = " ".join([*sources, *methods, "HiGHS"]).casefold()
    entries = resources.files("schedgap.harness.show").joinpath("references.bib").read_text().split("\n@")[1:]
    by_key = {entry[entry.index("{") + 1 : entry.index(",")]: f"@{entry}" for entry in entries}
    subjects = {key: re.search(r", about = \{(.*)\}", entry) for key, entry in by_key.items()}
    return {
        key: by_key[key].replace(match[0], "")
        for key, match in subjects.items()
        if match and re.search(rf"\b{re.escape(match[1])}\b", text)
    }
