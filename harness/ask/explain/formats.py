"""Explanations as documents, and writers for text, Markdown, LaTeX and JSON."""

from __future__ import annotations

import html
import json
import re
import shutil
import textwrap
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from functools import cache
from itertools import groupby
from typing import Any

from schedgap.harness.ask.explain.docstrings import Block, replace_inline
from schedgap.harness.show.text import seconds

WIDEST = 110
"""Maximum width of text in characters; also the width if the output is not a terminal."""

_SPACES = (
    (r"\s*([≤≥=≠∈⊆])\s*", r" \1 "),
    (r"\s*·\s*", "·"),
    (r"\b(max|min) ?(?=[^\W\d_]|∑)", r"\1 "),
    (r"\s*∀\s*", "   for all "),
    (r" : ", ": "),
    (r"(?<=[(⌈⌊]) | (?=[)⌉⌋])", ""),
)
"""Patterns and replacements that adjust the spaces in plain-text formulas, after runs of spaces became single."""

_EMPHASIS = re.compile(r"\*{1,2}([^*]+)\*{1,2}")


@dataclass(frozen=True)
class Sizes:
    """Sizes of a model on an instance, or the `reason` why it was not built.

    The `caption` describes the instance in words. `parts` counts rows by Pyomo constraint and columns by Pyomo
    variable; `build_s` is the time to build and compile the model. For models that generate their columns, `implied` is
    the base-10 logarithm of the number of columns in the full model, or a lower bound on it if `at_least` is set.
    """

    instance: str
    caption: str = ""
    rows: int | None = None
    columns: int | None = None
    nonzeros: int | None = None
    integers: int | None = None
    parts: dict[str, int] = field(default_factory=dict)
    build_s: float | None = None
    reason: str = ""
    implied: float | None = None
    at_least: bool = False

    @property
    def sentence(self) -> str:
        """The sizes in words."""
        if self.rows is None:
            return f"not built: {self.reason}"
        whole = f", {self.integers:,} of them integer" if self.integers else ""
        text = f"{self.rows:,} rows, {self.columns:,} columns{whole}, {self.nonzeros:,} nonzeros"
        return f"{text}; columns implied: {self._implied}" if self._implied else text

    @property
    def lines(self) -> list[str]:
        """Lines about the sizes in an explanation."""
        took = f" Built and compiled in {seconds(self.build_s)}." if self.build_s is not None else ""
        implied = f"Columns implied: {self._implied}." if self.rows is None and self._implied else ""
        return [line for line in (f"On {self.instance}: {self.sentence}.{took}", implied, self.caption) if line]

    @property
    def _implied(self) -> str:
        if self.implied is None:
            return ""
        # Above seven digits, two significant ones are enough, and the number may be too large for a float.
        number = f"{round(10**self.implied):,}" if self.implied < 7 else f"{Decimal(10) ** Decimal(self.implied):.1e}"
        return ("≥ " if self.at_least else "") + number.replace("e+", "e")


@dataclass(frozen=True)
class Document:
    """Explanation of one method: its id, a one-line title, its parts, and the sizes of a model."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    sizes: Sizes | None = None


@cache
def _converter() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

    def fraction(node: Any, l2tobj: Any) -> str:
        above, below = (l2tobj.nodelist_to_text([part]).strip("{}") for part in node.nodeargd.argnlist)
        return "/".join(f"({part})" if re.search(r"[ +−·/-]", part) else part for part in (above, below))

    context = get_default_latex_context_db()
    signs = {"colon": ": ", "ne": "≠", "left": "", "right": ""}
    specs = [MacroTextSpec("frac", fraction), *(MacroTextSpec(name, sign) for name, sign in signs.items())]
    context.add_context_category("formulas", specs, prepend=True)
    # Without this, macros unknown to the library would vanish from the formula.
    context.set_unknown_macro_spec(MacroTextSpec("", lambda node, l2tobj: node.latex_verbatim()))
    braces = {"keep_braced_groups": True, "keep_braced_groups_minlen": 2}
    return LatexNodes2Text(context, math_mode="text", strict_latex_spaces=True, **braces)


def plain(latex: str) -> str:
    """Return a LaTeX formula as a line of plain text: ``∑_j w_{j,t,r} ≤ C^r``."""
    text = re.sub(r"\s+", " ", _converter().latex_to_text(latex))
    for pattern, spaced in _SPACES:
        text = re.sub(pattern, spaced, text)
    return text.strip()


def _prose(text: str) -> str:
    """Return prose as plain text: formulas converted, names in backticks, no emphasis."""
    return replace_inline(text, plain, lambda name: f"`{name}`", lambda words: _EMPHASIS.sub(r"\1", words))


def to_text(document: Document) -> str:
    """Return an explanation as text for a terminal."""
    width = min(WIDEST, shutil.get_terminal_size((WIDEST, 0)).columns)
    lines = [document.id, *textwrap.wrap(document.title, width)]
    before = ""
    for block in document.blocks:
        if block.kind not in {"row", "item", "plain"} or before not in {block.kind, "heading"}:
            lines.append("")
        before = block.kind
        if block.kind == "verbatim":
            lines += block.text.splitlines()
        elif block.kind == "row":
            # The row's number and count are aligned right on its last line.
            right = f"({block.tag}) {block.count}".strip() if block.tag else block.count
            wrapper = textwrap.TextWrapper(width - 12, "    ", " " * 8, break_long_words=False)
            *first, last = wrapper.wrap(plain(block.text))
            lines += [*first, f"{last}{right:>{max(width - len(last), len(right) + 2)}}".rstrip()]
        else:
            mark = {"item": "- ", "plain": "- ", "origin": "── "}.get(block.kind, "")
            text = block.text if block.kind in {"plain", "origin"} else _prose(block.text)
            wrapper = textwrap.TextWrapper(width, mark, " " * len(mark), break_long_words=False, break_on_hyphens=False)
            lines += wrapper.wrap(f"{text}  {block.count}".rstrip())
    return "\n".join(lines) + "\n"


def to_markdown(document: Document) -> str:
    """Return an explanation as Markdown, with formulas for MathJax."""
    parts = [f"## `{document.id}`", document.title]
    for block in document.blocks:
        if block.kind == "plain":
            # Markdown and MathJax leave code alone, so characters in untrusted text have no effect.
            parts.append(f"- `{block.text.replace('`', chr(39))}`")
        elif block.kind == "row":
            tag = rf" \tag{{{block.tag}}}" if block.tag else ""
            parts.append(f"$$\n{block.text}{tag}\n$$" + (f"\n\n({block.count})" if block.count else ""))
        elif block.kind in {"verbatim", "origin"}:
            parts.append(f"```\n{block.text}\n```" if block.kind == "verbatim" else f"### `{block.text}`")
        else:
            text = replace_inline(
                block.text,
                math=lambda latex: f"${latex}$",
                code=lambda name: f"`{name}`",
                rest=lambda words: html.escape(words, quote=False).replace("$", r"\$"),
            )
            mark = {"heading": "**{}**", "item": "- {}"}.get(block.kind, "{}")
            parts.append(mark.format(f"{text} {block.count}".rstrip()))
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def to_latex(document: Document) -> str:
    r"""Return an explanation as LaTeX, for ``\input`` in a Unicode document (XeLaTeX, LuaLaTeX) with ``amsmath``."""
    parts = [rf"\subsection*{{\texttt{{{_escaped(document.id)}}}}}", f"{_escaped(document.title)}\n"]
    for kind, group in groupby(document.blocks, lambda block: block.kind):
        if kind == "row":
            tagged = [rf"{b.text} \tag{{{b.tag}}}" if b.tag else rf"{b.text} \notag" for b in group]
            parts.append(_environment("gather", " \\\\\n".join(tagged)))
        elif kind in {"item", "plain"}:
            parts.append(_environment("itemize", "\n".join(rf"\item {_in_latex(b)}" for b in group)))
        elif kind == "verbatim":
            parts += [_environment("verbatim", b.text) for b in group]
        elif kind in {"origin", "heading"}:
            parts += [rf"\paragraph{{{_in_latex(b)}}}" for b in group]
        else:
            parts += [f"{_in_latex(b)}\n" for b in group]
    return "\n".join(parts)


def _environment(name: str, text: str) -> str:
    return f"\\begin{{{name}}}\n{text}\n\\end{{{name}}}\n"


def _in_latex(block: Block) -> str:
    if block.kind in {"plain", "origin"}:
        return _escaped(block.text)
    text = replace_inline(
        block.text,
        math=lambda latex: f"${latex}$",
        code=lambda name: rf"\texttt{{{_escaped(name)}}}",
        rest=lambda words: _EMPHASIS.sub(r"\\emph{\1}", _escaped(words)),
    )
    return f"{text} {block.count}".rstrip()


def _escaped(text: str) -> str:
    """Escape the characters that LaTeX reads as commands."""
    plain_text = text.replace("\\", r"\textbackslash ")
    return re.sub(r"([&%#_{}$])", r"\\\1", plain_text).replace("^", r"\^{}").replace("~", r"\~{}")


def to_json(documents: tuple[Document, ...]) -> str:
    """Return explanations as JSON, with formulas as LaTeX and as plain text."""

    def record(block: Block) -> dict[str, Any]:
        if block.kind == "row":
            row = {"latex": block.text, "plain": plain(block.text), "equation": block.tag, "names": block.names}
            return {"kind": "row", **row, "count": block.count}
        text = block.text if block.kind in {"plain", "origin", "verbatim"} else _prose(block.text)
        return {"kind": block.kind, "text": text} | ({"count": block.count} if block.count else {})

    records = [asdict(document) | {"blocks": list(map(record, document.blocks))} for document in documents]
    return json.dumps(records, indent=2, ensure_ascii=False) + "\n"
