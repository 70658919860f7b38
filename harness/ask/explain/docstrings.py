"""Docstrings for explanations: finds the docstrings in which a method is stated, and parses them into blocks."""

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

    An ``"origin"`` names the object that the next blocks document. A ``"plain"`` text is untrusted and has no markup.
    The text of a model's ``"row"`` is LaTeX without tag and label; its `tags` have its number in the paper as ``"tag"``
    and its Pyomo constraint as ``"label"``. `count`, as ``×24``, says how often it occurs on the instance.
    """

    kind: Kind
    text: str
    tags: tuple[tuple[str, str], ...] = ()
    count: str = ""

    @property
    def tag(self) -> str:
        """Number of the row in the paper, without brackets."""
        return dict(self.tags).get("tag", "")

    @property
    def names(self) -> list[str]:
        """Names of the Pyomo variables or constraints that the block describes."""
        if self.kind == "row":
            return [name for key, name in self.tags if key == "label"]
        return re.findall(r"``(\w+)``", self.text.partition(":")[0]) if self.kind == "item" else []


def replace_inline(
    text: str, math: Callable[[str], str], code: Callable[[str], str], rest: Callable[[str], str] = str
) -> str:
    """Return a text after `math` converted its formulas, `code` its code and references, and `rest` everything else."""
    result, end = "", 0
    for match in _INLINE.finditer(text):
        formula, target, _, literal = match.groups()
        result += rest(text[end : match.start()]) + (code(target or literal) if formula is None else math(formula))
        end = match.end()
    return result + rest(text[end:])


def documentation(function: Any, *homes: Any, modules: bool = True) -> dict[str, str]:
    """Return the docstrings in which a method is stated, by the name of the documented object.

    For a partial, these are the docstrings of its function and of the functions that it fixes; for a wrapper, those of
    the wrapped function. Objects named in a section *See Also* are included. The docstrings of the modules `homes` come
    last. With `modules`, a docstring of at most one paragraph is followed by that of its module.
    """
    docs: dict[str, str] = {}
    _collect(function, docs, modules)
    docs |= {home.__name__: inspect.getdoc(home) or "" for home in homes if home}
    return {name: doc for name, doc in docs.items() if doc and name != "__main__"}


def _collect(item: Any, docs: dict[str, str], modules: bool) -> None:
    """Add to `docs` the docstrings of an object, of functions in its arguments and *See Also*, and of its module."""
    item, fixed = _opened(item)
    item = inspect.unwrap(item) if hasattr(item, "__name__") else type(item)
    module, doc = inspect.getmodule(item), inspect.getdoc(item) or ""
    name = item.__name__
    if not inspect.ismodule(item):  # a nested function goes by the name of the outer one
        settings = (f"{key}={value!r}" for key, value in fixed.items() if isinstance(value, bool | int | str | float))
        name = f"{item.__module__}.{item.__qualname__.partition('.<locals>')[0]}({', '.join(settings)})"
    if name in docs:
        return
    docs[name] = doc
    listed = (text for _, text in _SEE_ALSO.findall(doc))
    lines = (line for text in listed for line in text.splitlines() if not line[:1].isspace())
    names = (name.strip(" `") for line in lines for name in line.partition(" : ")[0].split(","))
    objects = (getattr(module, name, None) or sys.modules.get(name) or pydoc.locate(name) for name in names)
    others = [*filter(callable, fixed.values()), *(other for other in objects if other is not None)]
    for other in others:
        _collect(other, docs, modules)
    # If the docstring has only one paragraph, apart from parameters and the like, the module's contains the rest.
    brief = sum(block.kind in {"prose", "row"} for block in blocks(doc)) <= 1
    if modules and brief and (doc or not others) and module and module is not item:
        _collect(module, docs, modules)


def _opened(item: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function of a (nested) partial, and the keyword arguments that it fixes."""
    fixed: dict[str, Any] = {}
    while isinstance(item, partial):
        fixed = item.keywords | fixed
        item = item.func
    return item, fixed


def home_of(function: Any, paper: str) -> Any:
    """Return the package or module of the function that has the paper's name, or else the function's own module."""
    module = inspect.getmodule(inspect.unwrap(_opened(function)[0]))
    parts = module.__name__.split(".") if module else []
    return sys.modules[".".join(parts[: parts.index(paper) + 1])] if paper in parts else module


def blocks(doc: str) -> list[Block]:
    """Parse a docstring into blocks."""
    listed = _SEE_ALSO.sub(lambda match: match[1] + re.sub(r"^(?=\S)", "- ", match[2], flags=re.MULTILINE), doc)
    parsed = []
    for match in _BLOCK.finditer(listed):
        kind, lines = match.lastgroup, [line.strip() for line in match[0].splitlines()]
        flat = " ".join(filter(None, lines))
        latex = flat.removeprefix(".. math::")
        if kind == "row":
            parsed.append(Block("row", _TAG.sub("", latex).strip(), tuple(_TAG.findall(latex))))
        elif kind == "definition":
            parsed.append(Block("item", f"{lines[0]}: {' '.join(lines[1:])}"))
        elif kind == "item":
            parsed.append(Block("item", flat[2:]))
        elif kind == "verbatim":
            parsed.append(Block("verbatim", match[0]))
        else:
            parsed.append(Block("heading", lines[0]) if kind == "heading" else Block("prose", flat))
    return parsed
