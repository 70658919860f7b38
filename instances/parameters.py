"""Parameters of methods: ``zhou.ps.online?alpha=1&carry=false`` is a method with two settings.

A spec declares its parameters once::

    def online(view: View, context: Context, *, alpha: float | str = 4.0) -> Schedule: ...

    HeuristicSpec(
        "zhou.ps.online", ..., run=online,
        parameters=(Parameter("alpha", "windows of a batch", choices=("formula", "realised"), least=1),),
        variants=("alpha=1",),
    )

The default stands in the signature, and its type is the parameter's type. Every function of the spec that has a
keyword of that name receives the setting, so a guarantee can depend on it as well. `variants` are the settings that
stand in the registry beside the default, so that patterns (``zhou.*``) and tests of everything registered find them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from schedgap.instances.errors import UnknownNameError, UsageError

Value = bool | int | float | str

Changes = Mapping[Value, Mapping[str, Any]]
"""Fields of a spec that a setting changes, by its value."""

TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Parameter:
    """A setting of a method.

    Parameters
    ----------
    name
        Keyword of the functions that take it.
    meaning
        What it does, and why one would change it, in a line.
    choices
        Words that it takes: the only values, or beside numbers where it takes numbers as well.
    least, most
        Range of a number, both ends included.
    numeric
        Whether it takes numbers although its default is a word.
    changes
        Fields of the spec that a value changes, by value, or as a function of it: where what is decided is another
        problem, or a claim falls. A spec without such a field, as that of a policy, stays as it is.
    """

    name: str
    meaning: str
    unit: str = ""
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    numeric: bool = False
    changes: Changes | Callable[[Value], Mapping[str, Any]] = field(default_factory=dict)

    def range(self, default: Value) -> str:
        """Return what it takes, in words."""
        if isinstance(default, bool):
            return "true or false"
        words = " or ".join(self.choices)
        if isinstance(default, str) and not self.numeric:
            return words
        number = "a whole number" if isinstance(default, int) else "a number"
        if math.isfinite(self.least) and math.isfinite(self.most):
            number += f" from {self.least:g} to {self.most:g}"
        elif math.isfinite(self.least):
            number += f" of at least {self.least:g}"
        elif math.isfinite(self.most):
            number += f" of at most {self.most:g}"
        unit = f" {self.unit}" if self.unit else ""
        return f"{number}{unit}{', or ' + words if words else ''}"

    def changed(self, value: Value) -> Mapping[str, Any]:
        """Return the fields of the spec that a value changes."""
        return self.changes(value) if callable(self.changes) else self.changes.get(value, {})

    def read(self, text: str, default: Value) -> Value:
        """Return the value that `text` stands for; raise `ValueError` if it is none that :meth:`range` names."""
        if isinstance(default, bool):
            if text.lower() in TRUTH:
                return TRUTH[text.lower()]
        elif text in self.choices:
            return text
        elif self.numeric or not isinstance(default, str):
            number = int(text) if isinstance(default, int) else float(text)
            if math.isfinite(number) and self.least <= number <= self.most:
                return number
        raise ValueError(text)


@dataclass(frozen=True)
class Parametrised:
    """What specs of methods and policies have in common.

    Parameters
    ----------
    id
        ``<paper>.<name>``, followed by ``?name=value&…`` where settings differ from the default.
    paper
        Id of the paper that it is of, or that compares with it.
    source
        Paper, section, equations or algorithm.
    parameters
        Settings that its functions take, in the order in which an id states them.
    variants
        Settings that are registered beside the default (``("alpha=1", "alpha=formula&carry=false")``).
    settings
        The settings that make it differ from the default; filled by :func:`configured`.
    """

    id: str
    paper: str
    _: KW_ONLY
    source: str = "not published"
    parameters: tuple[Parameter, ...] = ()
    variants: tuple[str, ...] = ()
    settings: Mapping[str, Value] = field(default_factory=dict)

    def default(self, parameter: Parameter) -> Value:
        """Return the default of one of its parameters, which stands in the signature of a function.

        It raises `ValueError` if no function of the spec takes the parameter as a keyword with a default.
        """
        for function in self._functions().values():
            found = inspect.signature(function).parameters.get(parameter.name)
            if found and found.default is not inspect.Parameter.empty:
                default: Value = found.default
                return default
        raise ValueError(f"no function takes the parameter {parameter.name!r} with a default")

    def documented(self) -> list[tuple[str, str]]:
        """Return each parameter as ``name = default`` with its range and meaning."""
        told = ((p, self.default(p)) for p in self.parameters)
        return [(f"{p.name} = {shown(default)}", f"{p.range(default)}: {p.meaning}") for p, default in told]

    def _functions(self) -> dict[str, Callable[..., Any]]:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: value for name, value in values if callable(value) and not isinstance(value, type)}


T = TypeVar("T", bound=Any)


def base_id(name: str) -> str:
    """Return the id of a method without its settings."""
    return name.partition("?")[0]


def configured(spec: T, query: str) -> T:
    """Return a spec with the settings of a query (``alpha=1&carry=false``); its id states those that matter.

    It raises `UsageError` if the spec has no such parameter, or a value is out of range.
    """
    asked = pairs(query, spec.id, f"{base_id(spec.id)}?name=value&name=value")
    known = {p.name: p for p in spec.parameters} if isinstance(spec, Parametrised) else {}
    for name in asked:
        if name not in known:
            told = f"it takes {', '.join(known)}" if known else "it has no parameters"
            raise UnknownNameError(f"{spec.id}: unknown parameter {name!r}; {told}")
    settings: dict[str, Value] = {}
    for name, parameter in known.items():
        default = spec.default(parameter)
        try:
            value = parameter.read(asked[name], default) if name in asked else default
        except ValueError:
            told = f"must be {parameter.range(default)}"
            raise UsageError(f"{spec.id}: {name} = {asked[name]!r}: {told}") from None
        if value != default:
            settings[name] = value
    if not settings:
        return spec
    text = "&".join(f"{name}={quote(shown(value), safe='+:')}" for name, value in settings.items())
    # The registry's entry keeps its functions unbound, so that settings are never bound twice.
    functions = spec._functions()
    for field_name, function in functions.items():
        taken = inspect.signature(function).parameters
        if mine := {name: value for name, value in settings.items() if name in taken}:
            functions[field_name] = partial(function, **mine)
    changes = [change for name, value in settings.items() for change in known[name].changed(value).items()]
    changed = {name: to for name, to in changes if hasattr(spec, name)}
    return replace(spec, id=f"{base_id(spec.id)}?{text}", settings=settings, **functions | changed)


F = TypeVar("F", bound=Callable[..., Any])


def passing(function: F, *to: Callable[..., Any]) -> F:
    """Return a function that passes ``**settings`` on, with the keywords of those it passes them to in its signature.

    A default is then stated once, where it is used: ``passing(lambda view, **settings: run(view, **settings), run)``.
    Without a docstring, the function is documented by the first of them.
    """
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    told = {p.name: p for f in to for p in inspect.signature(f).parameters.values() if p.default is not p.empty}
    keywords = [p.replace(kind=p.KEYWORD_ONLY) for p in told.values()]
    function.__signature__ = inspect.Signature([*own, *keywords])  # type: ignore[attr-defined]
    if not function.__doc__:
        function.__wrapped__ = to[0]  # type: ignore[attr-defined]
    return function


def pairs(query: str, where: str, example: str, error: type[UsageError] = UsageError) -> dict[str, str]:
    """Return names and values of a query, refusing what would silently be dropped.

    `query` is percent-encoded; messages begin with `where`, say that `example` is right, and come as `error`.
    """
    found: dict[str, str] = {}
    for part in query.split("&"):
        name, equals, value = (unquote(text) for text in part.partition("="))
        if not name or not equals:
            raise error(f"{where}: {unquote(part)!r} is not key=value (write {example})")
        if name in found:
            raise error(f"{where}: {name!r} is given twice")
        found[name] = value
    return found


def shown(value: Value) -> str:
    """Return a value as an id states it, such that reading it gives the same value."""
    if isinstance(value, bool):
        return str(value).lower()
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return repr(value) if isinstance(value, float) and float(short) != value else short
