"""Explanations as text, Markdown, LaTeX, HTML and JSON."""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from schedgap.harness.explain.document import Block, Document, Line
from schedgap.harness.explain.mathematics import prose, replace_formulas, to_plain

WIDTH = 110


def to_text(documents: Sequence[Document]) -> str:
    """Return explanations for a terminal."""
    return "\n\n".join("\n".join(_text(document)) for document in documents) + "\n"


def _text(document: Document) -> Iterable[str]:
    yield document.id
    yield from _wrapped(document.title, "")
    for block in document.blocks:
        yield ""
        if block.label:
            yield block.label
        indent = "  " if block.label else ""
        for paragraph in filter(None, block.paragraphs):
            mark = "- " if block.kind == "list" else ""
            yield from _wrapped(paragraph if block.kind == "plain" else prose(paragraph), indent, mark)
        yield from (_symbol_lines if block.kind == "symbols" else _row_lines)(block.lines)


def _wrapped(text: str, indent: str, mark: str = "") -> list[str]:
    later = indent + " " * len(mark)
    return textwrap.wrap(text, WIDTH, initial_indent=indent + mark, subsequent_indent=later, break_long_words=False)


def _symbol_lines(lines: Sequence[Line]) -> Iterable[str]:
    plain = [to_plain(line.latex) for line in lines]
    width = min(30, max((len(text) for text in plain), default=0))
    for symbol, line in zip(plain, lines, strict=True):
        count = f"  {line.count}" if line.count else ""
        head = f"  {symbol.ljust(width)}  "
        if len(symbol) > width:
            yield head.rstrip()
            head = " " * (width + 4)
        meaning = textwrap.wrap(prose(line.text) + count, WIDTH - width - 4, break_long_words=False)
        yield head + meaning[0]
        yield from (" " * (width + 4) + more for more in meaning[1:])


def _row_lines(lines: Sequence[Line]) -> Iterable[str]:
    for line in lines:
        formula = to_plain(line.latex) + (f"    for all {to_plain(line.every)}" if line.every else "")
        number = f"({line.equation})" if line.equation else ""
        right = f"{number:>7} {line.count:>9}".rstrip()
        yield f"  {formula.ljust(WIDTH - 22)}  {right}".rstrip()
        if line.text:
            yield from _wrapped(prose(line.text), "      ")


_MARKED = {"list": "- {}", "plain": "`{}`\n"}


def to_markdown(documents: Sequence[Document]) -> str:
    """Return explanations as Markdown, with mathematics for MathJax."""
    return "\n".join("\n".join(_markdown(document)) for document in documents)


def _markdown(document: Document) -> Iterable[str]:
    yield f"## `{document.id}`\n\n{document.title}\n"
    for block in document.blocks:
        if block.label:
            yield f"**{block.label.capitalize()}**\n"
        for paragraph in filter(None, block.paragraphs):
            yield _MARKED.get(block.kind, "{}\n").format(paragraph.replace("`", "'"))
        if block.kind == "list":
            yield ""
        if block.kind == "symbols":
            yield "| symbol | meaning |\n| --- | --- |"
            yield from (f"| ${_cell(line.latex)}$ | {_cell(_counted(line))} |" for line in block.lines)
            yield ""
        if block.kind == "rows":
            yield from (f"$$\n{_display(line)}\n$$\n\n{_counted(line)}\n" for line in block.lines)


def _cell(text: str) -> str:
    # A bar would end the cell of a table; in mathematics \vert is the same sign.
    return replace_formulas(text, lambda latex: f"${latex}$").replace("|", r"\vert ")


def _counted(line: Line) -> str:
    return f"{line.text} ({line.count})".strip() if line.count else line.text


def _display(line: Line) -> str:
    """Return a row with its quantifier and number, for a displayed formula."""
    every = rf" \qquad \forall\, {line.every}" if line.every else ""
    tag = rf" \tag{{{line.equation}}}" if line.equation else ""
    return f"{line.latex}{every}{tag}"


def to_latex(documents: Sequence[Document]) -> str:
    r"""Return explanations as LaTeX, to be input into a document with ``amsmath``."""
    return "\n".join("\n".join(_latex(document)) for document in documents)


def _latex(document: Document) -> Iterable[str]:
    yield rf"\subsection*{{\texttt{{{_escaped(document.id)}}}}}" + "\n" + _in_latex(document.title) + "\n"
    program = [block for block in document.blocks if block.kind == "rows"]
    for block in document.blocks:
        if block.kind == "rows":
            yield from _program(program) if block is program[0] else ()
            continue
        if block.label:
            yield rf"\paragraph{{{_in_latex(block.label.capitalize())}}}"
        if block.kind == "symbols":
            items = [rf"\item[${line.latex}$] {_in_latex(_counted(line))}" for line in block.lines]
            yield _environment("description", items)
        elif block.kind == "list":
            yield _environment("itemize", [rf"\item {_in_latex(p)}" for p in block.paragraphs])
        else:
            set_in = _escaped if block.kind == "plain" else _in_latex
            yield from (f"{set_in(p)}\n" for p in block.paragraphs if p)


def _program(blocks: Sequence[Block]) -> Iterable[str]:
    r"""Yield objective and constraints as one ``align*``; notes come between the rows as ``\intertext``."""
    found: list[tuple[str, str]] = []
    for block in blocks:
        head = {"maximise": r"\max \quad", "minimise": r"\min \quad"}.get(block.label, r"\text{s.t.} \quad")
        for line in block.lines:
            every = rf" && \forall\, {line.every}" if line.every else ""
            tag = rf" \tag{{{line.equation}}}" if line.equation else ""
            found.append((f"{head} & {line.latex}{every}{tag}", _in_latex(_counted(line))))
            head = ""
    # \intertext stands between two rows only: the last note comes after the formulas.
    rows = [row + r" \\" + (rf" \intertext{{\footnotesize {note}}}" if note else "") for row, note in found[:-1]]
    yield _environment("align*", [*rows, found[-1][0]])
    if found[-1][1]:
        yield rf"{{\footnotesize {found[-1][1]}\par}}" + "\n"


def _environment(name: str, lines: Sequence[str]) -> str:
    return "\n".join([rf"\begin{{{name}}}", *(f"  {line}" for line in lines), rf"\end{{{name}}}", ""])


def _escaped(text: str) -> str:
    """Return text without the signs that LaTeX takes for commands."""
    plain = text.replace("\\", r"\textbackslash ")
    return re.sub(r"([&%#_{}])", r"\\\1", plain).replace("^", r"\^{}").replace("~", r"\~{}").replace("$", r"\$")


def _in_latex(text: str) -> str:
    return replace_formulas(text, lambda latex: f"${latex}$", _escaped)


def to_html(documents: Sequence[Document]) -> str:
    """Return explanations as an HTML fragment for a notebook, whose MathJax sets the mathematics."""
    return "".join("".join(_html(document)) for document in documents)


def _html(document: Document) -> Iterable[str]:
    yield f"<h3><code>{html.escape(document.id)}</code></h3><p>{html.escape(document.title)}</p>"
    for block in document.blocks:
        if block.label:
            yield f"<p><b>{html.escape(block.label)}</b></p>"
        paragraphs = [html.escape(p) for p in block.paragraphs if p]
        if block.kind == "list":
            yield "<ul>" + "".join(f"<li>{p}</li>" for p in paragraphs) + "</ul>"
        else:
            # Mathematics is not set within code, which keeps a stranger's dollars as they are.
            yield from (f"<p><code>{p}</code></p>" if block.kind == "plain" else f"<p>{p}</p>" for p in paragraphs)
        if block.kind == "symbols":
            cells = "".join(
                f"<tr><td>${html.escape(line.latex)}$</td><td>{html.escape(_counted(line))}</td></tr>"
                for line in block.lines
            )
            yield f"<table>{cells}</table>"
        if block.kind == "rows":
            yield from (
                f"<p>$${html.escape(_display(line))}$$</p><p>{html.escape(_counted(line))}</p>" for line in block.lines
            )


def to_json(documents: Sequence[Document]) -> str:
    """Return explanations as JSON: every formula as LaTeX and as plain text."""
    return json.dumps([as_dict(document) for document in documents], indent=2, ensure_ascii=False) + "\n"


def as_dict(document: Document) -> dict[str, Any]:
    """Return an explanation as plain data."""
    blocks = []
    for block in document.blocks:
        lines = [{**asdict(line), "plain": to_plain(line.latex), "text": prose(line.text)} for line in block.lines]
        words = [p if block.kind == "plain" else prose(p) for p in block.paragraphs if p]
        blocks.append({"kind": block.kind, "label": block.label} | ({"lines": lines} if lines else {"text": words}))
    sizes = asdict(document.sizes) if document.sizes else None
    return {"id": document.id, "title": document.title, "blocks": blocks, "sizes": sizes}
