"""Docstrings as an explanation needs them: which state a method, and their blocks, by :mod:`schedgap.models`."""

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
    """A part of an explanation: an ``"origin"`` (what the next blocks document), an ``"item"`` of a list, and so on.

    In a ``"plain"`` text of strangers nothing is markup. The text of a ``"row"`` of a model is LaTeX without tag and
    label; its `tags` are its number in the paper as ``"tag"``, and the name of the Pyomo constraint that it is as
    ``"label"``. `count` is how often it is there on the instance, ``×24``.
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

    A partial is documented by its function and the functions that it fixes, a wrapper by what it wraps; what a section
    *See Also* names is included. `homes` are modules whose docstrings come after that. `modules` says whether a
    docstring of one paragraph, or none, is followed by its module's.
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
    name = one.__name__
    if not inspect.ismodule(one):  # what stands in a function is named like that
        settings = (f"{key}={value!r}" for key, value in fixed.items() if isinstance(value, bool | int | str | float))
        name = f"{one.__module__}.{one.__qualname__.partition('.<locals>')[0]}({', '.join(settings)})"
    if name in found:
        return
    found[name] = doc
    listed = (text for _, text in _SEE_ALSO.findall(doc))
    lines = (line for text in listed for line in text.splitlines() if not line[:1].isspace())
    named = (each.strip(" `") for line in lines for each in line.partition(" : ")[0].split(","))
    known = (getattr(module, each, None) or sys.modules.get(each) or pydoc.locate(each) for each in named)
    others = [*filter(callable, fixed.values()), *(other for other in known if other is not None)]
    for other in others:
        _collect(other, found, modules)
    # No more than a first line, but for parameters and the like: the module says the rest.
    brief = sum(block.kind in {"prose", "row"} for block in blocks(doc)) <= 1
    if modules and brief and (doc or not others) and module and module is not one:
        _collect(module, found, modules)


def _opened(one: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function in a partial, and the keywords that it fixes."""
    fixed: dict[str, Any] = {}
    while isinstance(one, partial):
        fixed = one.keywords | fixed
        one = one.func
    return one, fixed


def home_of(function: Any, paper: str) -> Any:
    """Return the module or package that is named like the paper and holds the function; else the function's module."""
    module = inspect.getmodule(inspect.unwrap(_opened(function)[0]))
    parts = module.__name__.split(".") if module else []
    return sys.modules[".".join(parts[: parts.index(paper) + 1])] if paper in parts else module


def blocks(doc: str) -> list[Block]:
    """Return the blocks of a docstring."""
    listed = _SEE_ALSO.sub(lambda match: match[1] + re.sub(r"^(?=\S)", "- ", match[2], flags=re.MULTILINE), doc)
    found = []
    for match in _BLOCK.finditer(listed):
        kind, lines = match.lastgroup, [line.strip() for line in match[0].splitlines()]
        flat = " ".join(filter(None, lines))
        latex = flat.removeprefix(".. math::")
        if kind == "row":
            found.append(Block("row", _TAG.sub("", latex).strip(), tuple(_TAG.findall(latex))))
        elif kind == "definition":
            found.append(Block("item", f"{lines[0]}: {' '.join(lines[1:])}"))
        elif kind == "item":
            found.append(Block("item", flat[2:]))
        elif kind == "verbatim":
            found.append(Block("verbatim", match[0]))
        else:
            found.append(Block("heading", lines[0]) if kind == "heading" else Block("prose", flat))
    return found
