"""Parameters of methods: ``zhou.ps.online?alpha=1&carry=false`` names a method with two settings.

A spec declares its parameters once::

    def online(view: View, context: Context, *, alpha: float | str = 4.0) -> Schedule: ...

    HeuristicSpec(
        "zhou.ps.online", ..., run=online,
        parameters=(Parameter("alpha", "windows of a batch", choices=("formula", "realised"), least=1),),
        variants=("alpha=1",),
    )

The signature holds the default, whose type is the parameter's type. Every function of the spec that has a keyword of
that name receives the setting, so that a guarantee can depend on it, too. `variants` are settings that are registered
in addition to the default, so that patterns (``zhou.*``) and tests of all registered methods find them.
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
from schedgap.instances.text import suggestion

Value = bool | int | float | str

Changes = Mapping[Value, Mapping[str, Any]]
"""Fields of a spec that a setting changes, by the value of the setting."""

TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Parameter:
    """A setting of a method.

    Parameters
    ----------
    name
        Keyword argument of the functions that take it.
    meaning
        What it does and why one would change it, in one line.
    choices
        Words that it accepts, alone or in addition to numbers.
    least, most
        Range of a number, both ends included.
    numeric
        Whether it accepts numbers although its default is a word.
    changes
        Fields of the spec that a value changes, by value or as a function of it, for example the problem, or the claims
        if one no longer holds. Fields that a spec lacks (such as a policy's) are ignored.
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
        """Return the accepted values in words."""
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
        """Return the value that `text` stands for; raise `ValueError` unless :meth:`range` covers it."""
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
    """Common base of the specs of methods and policies.

    Parameters
    ----------
    id
        ``<paper>.<name>``, followed by ``?name=value&…`` for settings that differ from the default.
    paper
        Id of the paper that proposes it or compares with it.
    source
        Paper, section, equations or algorithm.
    parameters
        Parameters of its functions, in the order in which an id states them.
    variants
        Settings that are registered in addition to the default (``("alpha=1", "alpha=formula&carry=false")``).
    settings
        Settings that differ from the default; filled by :func:`configured`.
    """

    id: str
    paper: str
    _: KW_ONLY
    source: str = "not published"
    parameters: tuple[Parameter, ...] = ()
    variants: tuple[str, ...] = ()
    settings: Mapping[str, Value] = field(default_factory=dict)

    def default(self, parameter: Parameter) -> Value:
        """Return the default of a parameter from the signature of a function of the spec.

        It raises `ValueError` if no function of the spec takes the parameter as a keyword with a default.
        """
        for function in self._functions().values():
            keyword = inspect.signature(function).parameters.get(parameter.name)
            if keyword and keyword.default is not inspect.Parameter.empty:
                default: Value = keyword.default
                return default
        raise ValueError(f"no function takes the parameter {parameter.name!r} with a default")

    def documented(self) -> list[tuple[str, str]]:
        """Return each parameter as ``name = default`` with its range and meaning."""
        defaults = ((p, self.default(p)) for p in self.parameters)
        return [(f"{p.name} = {shown(default)}", f"{p.range(default)}: {p.meaning}") for p, default in defaults]

    def _functions(self) -> dict[str, Callable[..., Any]]:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: value for name, value in values if callable(value) and not isinstance(value, type)}


T = TypeVar("T", bound=Any)


def base_id(name: str) -> str:
    """Return the id of a method without its settings."""
    return name.partition("?")[0]


def extended(name: str, *queries: str) -> str:
    """Return the name of a method or an instance with further settings: ``gen/a?load=1`` with ``seed=2``."""
    return name + "".join(f"{'&' if '?' in name or i else '?'}{one}" for i, one in enumerate(filter(None, queries)))


def configured(spec: T, query: str) -> T:
    """Return a spec with the settings of a query (``alpha=1&carry=false``); its id states those that are not defaults.

    It raises `UsageError` if the spec has no such parameter, or a value is out of range.
    """
    texts = pairs(query, spec.id, f"{base_id(spec.id)}?name=value&name=value")
    parameters = {p.name: p for p in spec.parameters} if isinstance(spec, Parametrised) else {}
    for name in texts:
        if name not in parameters:
            hint = suggestion(name, parameters, "it takes") if parameters else "it has no parameters"
            raise UnknownNameError(f"{spec.id}: unknown parameter {name!r}; {hint}")
    settings: dict[str, Value] = {}
    for name, parameter in parameters.items():
        default = spec.default(parameter)
        try:
            value = parameter.read(texts[name], default) if name in texts else default
        except UsageError:  # the value is itself a name with settings, and the message says what is wrong in it
            raise
        except ValueError:
            accepted = parameter.range(default)
            raise UsageError(f"{spec.id}: {name} = {texts[name]!r}: must be {accepted}") from None
        if value != default:
            settings[name] = value
    if not settings:
        return spec
    # The registry's entry keeps its functions unbound, so that settings are never bound twice.
    functions = spec._functions()
    for field_name, function in functions.items():
        keywords = inspect.signature(function).parameters
        if bound := {name: value for name, value in settings.items() if name in keywords}:
            functions[field_name] = partial(function, **bound)
    changes = [change for name, value in settings.items() for change in parameters[name].changed(value).items()]
    changed = {name: to for name, to in changes if hasattr(spec, name)}
    return replace(spec, id=extended(base_id(spec.id), stated(settings)), settings=settings, **functions | changed)


F = TypeVar("F", bound=Callable[..., Any])


def passing(function: F, *to: Callable[..., Any]) -> F:
    """Return `function` with a signature that has the keywords of `to`, to which it passes ``**settings`` on.

    A default is then stated once, where it is used: ``passing(lambda view, **settings: run(view, **settings), run)``.
    If `function` has no docstring, it gets that of the first function in `to`.
    """
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    optional = {p.name: p for f in to for p in inspect.signature(f).parameters.values() if p.default is not p.empty}
    keywords = [p.replace(kind=p.KEYWORD_ONLY) for p in optional.values()]
    function.__signature__ = inspect.Signature([*own, *keywords])  # type: ignore[attr-defined]
    if not function.__doc__:
        function.__wrapped__ = to[0]  # type: ignore[attr-defined]
    return function


def stated(settings: Mapping[str, Value]) -> str:
    """Return settings as an id states them; :func:`pairs` gives their names and values back.

    A value may be a name with settings of its own: ``solver=highs?presolve=off``.
    """
    return "&".join(f"{name}={quote(shown(value), safe='+:?=/')}" for name, value in settings.items())


def pairs(query: str, where: str, example: str, error: type[UsageError] = UsageError) -> dict[str, str]:
    """Return the names and values of a percent-encoded query.

    It raises `error` for a repeated key, and for a part that is not ``key=value``. The message begins with `where`;
    `example` shows the right form.
    """
    values: dict[str, str] = {}
    for part in query.split("&"):
        name, equals, value = (unquote(text) for text in part.partition("="))
        if not name or not equals:
            raise error(f"{where}: {unquote(part)!r} is not key=value (write {example})")
        if name in values:
            raise error(f"{where}: {name!r} is given twice")
        values[name] = value
    return values


def shown(value: Value) -> str:
    """Return a value as an id states it; :meth:`Parameter.read` gives the same value back."""
    if isinstance(value, bool):
        return str(value).lower()
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return repr(value) if isinstance(value, float) and float(short) != value else short
