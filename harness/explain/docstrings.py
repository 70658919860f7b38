"""Docstrings as an explanation needs them: which ones state a method, and their blocks.

The convention that they follow stands in :mod:`schedgap.models`.
"""

from __future__ import annotations

import inspect
import pydoc
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

Kind = Literal["origin", "heading", "prose", "item", "row", "verbatim", "plain"]

_BLOCK = re.compile(
    r"""
    (?P<heading> ^\S.*\n-{3,}$ )
    | (?P<verbatim> ^(?:={3,}|>>>|\ ).*(?:\n.+)* )
    | (?P<row> ^\.\.\ math::.*(?:\n+\ +.+)* )
    | (?P<item> ^-\ .*(?:\n+\ +.+)* )
    | (?P<definition> ^\S.*(?:\n\ +.+)+ )
    | (?P<prose> ^\S.*(?:\n(?!\.\.\ math::|-\ |\S.*\n-{3,}$|\S.*\n\ )\S.*)* )
    """,
    re.MULTILINE | re.VERBOSE,
)
_TAG = re.compile(r"\\(tag|label)\{([^}]*)\}")
_INLINE = re.compile(r":math:`([^`]*)`|:[\w:]+:`~[\w.]*?(\w+)`|(?::[\w:]+:)?(`{1,2})(.+?)\3")
_SEE_ALSO = re.compile(r"^(See Also\n-+\n)(.*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A part of an explanation.

    Attributes
    ----------
    kind
        ``"origin"`` (what the next blocks document), ``"heading"``, ``"prose"``, ``"item"`` of a list, ``"row"`` of a
        model, ``"verbatim"`` (tables, examples), or ``"plain"`` for text of strangers, in which nothing is markup.
    text
        Its text; of a row, LaTeX without tag and label.
    tags
        A row's number in the paper as ``"tag"``, and the name of the Pyomo constraint that it is as ``"label"``.
    count
        How often it is there on the instance, ``×24``.
    """

    kind: Kind
    text: str
    tags: tuple[tuple[str, str], ...] = ()
    count: str = ""

    @property
    def tag(self) -> str:
        """A row's number in the paper, without brackets."""
        return dict(self.tags).get("tag", "")

    @property
    def names(self) -> list[str]:
        """Names of the Pyomo variables or constraints that it is about."""
        if self.kind == "row":
            return [name for key, name in self.tags if key == "label"]
        return re.findall(r"``(\w+)``", self.text.partition(":")[0]) if self.kind == "item" else []


def replace_inline(
    text: str, math: Callable[[str], str], code: Callable[[str], str], rest: Callable[[str], str] = str
) -> str:
    """Return text with formulas, code and references, and everything else, each changed by its function."""
    found, end = "", 0
    for match in _INLINE.finditer(text):
        formula, target, _, literal = match.groups()
        found += rest(text[end : match.start()]) + (code(target or literal) if formula is None else math(formula))
        end = match.end()
    return found + rest(text[end:])


def documentation(function: Any, *homes: Any, modules: bool = True) -> dict[str, str]:
    """Return the docstrings that state a method, by the name of what they document.

    Parameters
    ----------
    function
        What a spec registers. A partial is documented by its function and the functions that it fixes, a wrapper by
        what it wraps; what a section *See Also* names is included.
    *homes
        Modules whose docstrings come after that.
    modules
        Whether a docstring of one paragraph, or none, is followed by its module's.
    """
    found: dict[str, str] = {}
    _collect(function, found, modules)
    found |= {home.__name__: inspect.getdoc(home) or "" for home in homes if home}
    return {name: doc for name, doc in found.items() if doc and name != "__main__"}


def _collect(one: Any, found: dict[str, str], modules: bool) -> None:
    """Add the docstrings of an object, of what it fixes and names, and of its module."""
    one, fixed = _opened(one)
    one = inspect.unwrap(one) if hasattr(one, "__name__") else type(one)
    module, doc = inspect.getmodule(one), inspect.getdoc(one) or ""
    settings = ", ".join(
        f"{key}={value!r}" for key, value in fixed.items() if isinstance(value, bool | int | str | float)
    )
    name = one.__name__ if inspect.ismodule(one) else f"{_home(one)}({settings})"
    if name in found:
        return
    found[name] = doc
    named = (_resolved(module, name) for name in _named(doc))
    others = [*filter(callable, fixed.values()), *(known for known in named if known is not None)]
    for other in others:
        _collect(other, found, modules)
    alone = _brief(doc) and (doc or not others)
    if modules and alone and module and module is not one:
        _collect(module, found, modules)


def _opened(one: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function in a partial, and the keywords that it fixes."""
    fixed: dict[str, Any] = {}
    while isinstance(one, partial):
        fixed = one.keywords | fixed
        one = one.func
    return one, fixed


def _home(one: Any) -> str:
    """Return the full name of a function, or of the one that it stands in."""
    return f"{one.__module__}.{one.__qualname__.partition('.<locals>')[0]}"


def _brief(doc: str) -> bool:
    """Return whether a docstring says no more than its first line, but for parameters and the like."""
    return sum(block.kind in {"prose", "row"} for block in blocks(doc)) <= 1


def _named(doc: str) -> list[str]:
    """Return the names in the section *See Also* of a docstring."""
    lines = [line for _, text in _SEE_ALSO.findall(doc) for line in text.splitlines() if not line[:1].isspace()]
    return [name.strip(" `") for line in lines for name in line.partition(" : ")[0].split(",")]


def _resolved(module: Any, name: str) -> Any:
    """Return what a docstring names, as seen from its module, ``None`` if there is no such thing."""
    return getattr(module, name, None) or sys.modules.get(name) or pydoc.locate(name)


def home_of(function: Any, paper: str) -> Any:
    """Return the module or package that is named like the paper and holds the function; else the function's module."""
    module = inspect.getmodule(inspect.unwrap(_opened(function)[0]))
    parts = module.__name__.split(".") if module else []
    return sys.modules[".".join(parts[: parts.index(paper) + 1])] if paper in parts else module


def blocks(doc: str) -> list[Block]:
    """Return the blocks of a docstring."""
    listed = _SEE_ALSO.sub(lambda match: match[1] + re.sub(r"^(?=\S)", "- ", match[2], flags=re.MULTILINE), doc)
    return [_block(str(match.lastgroup), match[0]) for match in _BLOCK.finditer(listed)]


def _block(kind: str, text: str) -> Block:
    lines = [line.strip() for line in text.splitlines()]
    if kind == "verbatim":
        return Block("verbatim", text)
    if kind == "definition":
        return Block("item", f"{lines[0]}: {' '.join(lines[1:])}")
    if kind == "heading":
        return Block("heading", lines[0])
    flat = " ".join(filter(None, lines))
    if kind == "row":
        latex = flat.removeprefix(".. math::")
        return Block("row", _TAG.sub("", latex).strip(), tuple(_TAG.findall(latex)))
    return Block("item", flat[2:]) if kind == "item" else Block("prose", flat)
