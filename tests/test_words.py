"""The words of the glossary (docs/numbers.md) mean the same in messages, tables, pages, docs and lessons.

Texts are read from the sources: strings and docstrings of all packages, Markdown, templates, settings of reproductions,
and the lessons. What commands print is read as well.
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from conftest import ROOT
from report_runs import hostile_run, oef_run, row, sweep_run, troubled_run
from rich.console import Console

from schedgap.harness.show.page import blocks, to_html
from schedgap.harness.show.table import Table, to_latex, to_markdown
from schedgap.harness.show.terminal import show
from schedgap.harness.studies.compare.row import Comparison, Row

PACKAGES = ("harness", "heuristics", "models", "instances", "certificates", "examples", "src/schedgap")
HOLE = "{}"
"""The text that stands for a value that an f-string fills in."""


@dataclass(frozen=True)
class Text:
    """A text that a user may read: where it is, whether it is a docstring, and its words on one line."""

    where: str
    doc: bool
    words: str

    def sentences(self) -> list[str]:
        return re.split(r"(?<=[.;])\s", self.words)


def docstrings(tree: ast.AST) -> set[int]:
    homes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    first = [home.body[0] for home in homes if home.body]
    return {id(statement.value) for statement in first if isinstance(statement, ast.Expr)}


def strings(source: str, where: str) -> Iterator[Text]:
    """Yield the strings of Python code; in f-strings, holes stand for the values."""
    tree = ast.parse(source)
    docs, parts = docstrings(tree), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in ast.walk(node)}
            words = "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
            yield Text(f"{where}:{node.lineno}", False, " ".join(words.split()))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield Text(f"{where}:{node.lineno}", id(node) in docs, " ".join(node.value.split()))


def code(folders: tuple[str, ...] = PACKAGES) -> Iterator[tuple[str, str]]:
    """Yield the name and the source of every Python file, and of every code cell of the lessons."""
    for folder in folders:
        files = (ROOT / folder).glob("*.py") if folder.startswith("src") else (ROOT / folder).rglob("*.py")
        yield from ((str(path.relative_to(ROOT)), path.read_text()) for path in sorted(files))
    for name, kind, source in cells():
        if kind == "code":
            yield name, re.sub(r"^[%!].*$", "", source, flags=re.M)


@cache
def cells() -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (f"{path.name}, cell {i}", cell["cell_type"], "".join(cell["source"]))
        for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
        for i, cell in enumerate(json.loads(path.read_text())["cells"])
    )


@cache
def texts() -> tuple[Text, ...]:
    found = [text for where, source in code() for text in strings(source, where)]
    found += [Text(name, False, " ".join(source.split())) for name, kind, source in cells() if kind == "markdown"]
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages += [*sorted((ROOT / "harness").rglob("*.j2")), *sorted((ROOT / "reproductions").rglob("*.toml"))]
    for page in pages:
        parts = re.split(r"\n\s*\n", page.read_text())
        found += [Text(str(page.relative_to(ROOT)), False, " ".join(part.split())) for part in parts]
    return tuple(text for text in found if text.words)


@dataclass(frozen=True)
class Rule:
    """A use of a word that the glossary excludes: a pattern, an example, and what to write instead."""

    word: str
    refused: str
    bad: str
    good: str
    docs: bool = True

    def broken(self, sentence: str) -> bool:
        return re.search(self.refused, sentence, flags=re.I) is not None


RULES = (
    Rule(
        "certified",
        r"\bproved (optim\w+|(lower |upper )?bounds?|ratios?|gaps?)\b",
        "The largest ratio to a proved optimum.",
        "The largest ratio to a certified optimum.",
    ),
    Rule(
        "certified",
        r"\b(optimum|optima|ratio|gap)\b (is|are|was|were|can be|could be) (not )?proved\b",
        "≤: the optimum is not proved.",
        "≤: the optimum is not certified.",
    ),
    Rule(
        "certified",
        r"\b(solvers?|models?|searches|search|HiGHS|SCIP|CBC|generation|P1|method) (also )?(proves?|proved|proving) "
        r"(the|an|a|its|their|no) (optim|bound)",
        "Column generation proves the optimum here.",
        "Column generation reaches the certified bound here.",
    ),
    Rule(
        "claimed",
        r"(?<!by the )\bsolver'?s word\b",
        "The bound is the solver's word.",
        "The bound is claimed; no certificate shows it.",
    ),
    Rule(
        "infeasible",
        r"\b(has|have) no (feasible )?solution\b(?!, by the solver's word)",
        "hadar.complete has no solution on this instance",
        "HiGHS calls this infeasible: hadar.complete has no solution, by the solver's word",
        docs=False,
    ),
    Rule(
        "infeasible",
        r"\bis infeasible\b(?! is| by the solver's word)",
        "the problem is infeasible",
        "HiGHS calls this infeasible",
        docs=False,
    ),
    Rule(
        "mean gap",
        r"geometric means? of (time, gap|(the )?(certified )?gaps)|"
        r"(?<!shifted )geometric mean\b(?! of the (ratios|smallest))",
        "geometric mean of the certified gaps",
        "arithmetic mean of the certified gaps; shifted geometric mean of times",
    ),
    Rule(
        "price",
        r"\b(gap|loss) of (envy-freeness|the sharing incentive|equal efficiency|no preemption|completing)\b",
        "the gap of envy-freeness",
        "the price of envy-freeness",
    ),
    Rule(
        "dual",
        r"\b(dual|that of \([0-9a-z]+\)) is (the|what)\b[^.;]*\bcosts?\b(?! if| of)",
        "Duals: that of (8) is the total efficiency that the right to an equal split costs.",
        "Duals: that of (8) is what the total gains at the margin.",
    ),
    Rule(
        "dual",
        r"\bdual\w*\b[^.;]*\bwould (add|save|gain)\b",
        "The dual of a row is what one more device would add.",
        "One more device adds at most the dual of its row.",
    ),
    Rule(
        "at most",
        r"\bup to (about )?\{\}( %|%)",
        "gains by up to {} %",
        "gains by at most {} %",
        docs=False,
    ),
    Rule(
        "impossible",
        r"\b(options?|limits?|settings?|seeds?|rules|they) (is|are) impossible\b|"
        r"impossible (options?|limits?|settings?)|(malformed|invalid) or impossible",
        "raise `UsageError` if limits are impossible",
        "raise `UsageError` if limits contradict each other or are out of range",
    ),
    Rule(
        "only if",
        r"\bonly if and only if\b|\bonly when and only when\b",
        "only if and only if",
        "if and only if",
    ),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.word}: {rule.bad[:40]}")
def test_a_rule_refuses_what_it_is_for_and_nothing_else(rule: Rule) -> None:
    assert rule.broken(rule.bad)
    assert not any(other.broken(rule.good) for other in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.word}: {rule.bad[:40]}")
def test_all_texts_use_the_words_of_the_glossary(rule: Rule) -> None:
    found = [
        f"{text.where}: {sentence}"
        for text in texts()
        if rule.docs or not text.doc
        for sentence in text.sentences()
        if rule.broken(sentence) and rule.bad not in sentence
    ]
    assert not found, f"{rule.word}: write {rule.good!r}, not:\n" + "\n".join(found)


def test_the_texts_are_those_that_users_read() -> None:
    """All kinds of sources are searched, and each f-string is one text."""
    words = {text.words for text in texts()}
    assert len(words) > 5000
    assert "{} calls this" in words
    where = {re.split(r"[:,]", text.where)[0] for text in texts()}
    assert {"README.md", "docs/numbers.md", "05-oef-fairness.ipynb", "harness/show/page/answer.py"} <= where
    assert any(name.endswith(".j2") for name in where)


def test_the_glossary_has_a_row_for_every_word() -> None:
    (table,) = re.findall(
        r"^\| word \| meaning \|\n(.*?)\n\n", (ROOT / "docs/numbers.md").read_text(), flags=re.S | re.M
    )
    words = set(re.findall(r"^\| \*\*([a-z ]+)\*\*", table, flags=re.M))
    asked = "optimal, claimed, certified, verified, infeasible, impossible, only if, gap, price, at most"
    assert set(asked.split(", ")) <= words
    assert {rule.word for rule in RULES} <= words


# ---------------------------------------------------------------- estimates are rounded to their side

ROUNDING = ("number", "percent", "numbers", "hours", "round")
"""Functions that round to the nearest number unless they are told to which side."""

SIDED = re.compile(r"(at most|at least|less than|more than|≤|≥)\s*$")


def sides(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of numbers that bound something but are rounded to the nearest number."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        before = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                before = str(part.value)
            elif isinstance(part, ast.FormattedValue):
                if SIDED.search(before) and nearest(part):
                    yield part.lineno, before + ast.unparse(part)
                before = ""


def nearest(part: ast.FormattedValue) -> bool:
    """Return whether a value is rounded to the nearest number: by a format with digits, or by :data:`ROUNDING`."""
    if part.format_spec is not None and re.search(r"\.\d+[%efg]", ast.unparse(part.format_spec)):
        return True
    call = part.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in ROUNDING:
        return False
    told = [*call.args, *(keyword.value for keyword in call.keywords)]
    return not any(isinstance(each, ast.Constant) and each.value in ("at most", "at least") for each in told)


def test_numbers_that_limit_others_are_rounded_to_their_side() -> None:
    assert [text for _, text in sides('f"at most {gap:.1%}"')]
    assert [text for _, text in sides('f"≥ {number(bound)} h"')]
    assert not list(sides("f\"≥ {number(bound, side='at least')}, at most {count:,} of {at_most(gap)}\""))
    found = [f"{where}:{line}: {text}" for where, source in code() for line, text in sides(source)]
    assert not found, "\n".join(found)


# ---------------------------------------------------------------- what is printed

CLAIMS = ("optimal", "infeasible")


def claimed(status: Any) -> Row:
    """Return a row whose status only the solver vouches for: its certified bound is twice its objective."""
    decided = 1.75 if status == "optimal" else None
    found = row("hadar.p1", "f" * 64, decided, 3.5, problem="hadar.utility", status=status, ratio_is_upper=True)
    return found.replace(claimed_bound=decided, solver="highs", verified=None if decided is None else True)


def printed(run: Comparison) -> dict[str, str]:
    """Return a run's printed texts by form: terminal, Markdown, LaTeX, and page."""
    out, shown = io.StringIO(), blocks(run)
    show(Console(width=200, file=out), shown)
    page = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", to_html(run, []), flags=re.S)
    return {"terminal": out.getvalue(), "markdown": to_markdown(shown), "latex": to_latex(shown), "page": page}


@pytest.mark.parametrize("status", CLAIMS)
def test_what_only_a_solver_says_is_never_said_alone(status: str) -> None:
    run = Comparison({}, [claimed(status)], {})
    for form, text in printed(run).items():
        assert re.search(rf"\b{status}\?", text), form
        alone = re.findall(rf"[^.\n]*(?<!from )\b{status}\b(?!\?)[^.\n]*", text)
        legends = [each for each in alone if "HiGHS calls this" not in each and "solver" not in each]
        legends = [each for each in legends if "How the run ended" not in each and "How far from" not in each]
        assert not legends, (form, legends)
    cells = [cell.text for block in blocks(run) if isinstance(block, Table) for line in block.rows for cell in line]
    assert status not in cells


def test_a_claimed_optimum_is_told_with_what_is_certified() -> None:
    text = printed(Comparison({}, [claimed("optimal")], {}))["terminal"]
    assert "hadar.p1 finds 1.75; HiGHS calls this optimal; certified: at most 50.0 % from optimal" in text


@pytest.mark.parametrize("run", [oef_run, sweep_run, troubled_run, hostile_run])
def test_what_runs_print_keeps_to_the_glossary(run: Any) -> None:
    for form, text in printed(run()).items():
        lines = [" ".join(line.split()) for line in text.splitlines()]
        found = [line for line in lines for rule in RULES if rule.broken(line)]
        assert not found, (form, found)
