"""Common parts of the generator families: spec files, the registry, random streams, one-line errors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import numpy as np
from pydantic import ValidationError

from schedgap.instances.arrays import Array
from schedgap.instances.canonical import describe, parse
from schedgap.instances.errors import InstanceError, UnknownNameError
from schedgap.instances.model_catalogue import significant
from schedgap.instances.parameters import shown
from schedgap.instances.registry import Registry, unknown
from schedgap.instances.schema import Instance, Published
from schedgap.instances.schema.base import Name, Record, Text, rule
from schedgap.instances.schema.job import Constant, LinearDeadline, NormalisedThroughput, Sigmoid, Utility
from schedgap.instances.workload import workload

Scalar = bool | int | float | str

UtilityName = Literal["effective_throughput", "normalised", "sigmoid", "linear_deadline", "constant"]
"""Kinds of Hadar's utilities in an instance."""

PATIENCE = 4.0
"""Patience of a job without a deadline, as a multiple of its time alone on its fastest GPUs."""

STEEPNESS = 4.0
"""Steepness of sigmoids: 0.98 of the amplitude at the arrival, half at the end of the patience, 0.02 at twice it."""


class GeneratorSpec(Record):
    """Parameters of every family; each family extends this class.

    Jobs have utilities of kind `utility` with amplitude 1. A job's patience lasts until its deadline, or
    :data:`PATIENCE` times its time alone if it has none. At its end, a sigmoid has fallen to a half; a linear deadline
    begins to fall and reaches 0 after as much time again. With a `tightness` of 2, jobs are half as patient, and
    deadlines leave half as much slack.
    """

    family: Name
    seed: int = rule("a seed is a whole number, 0 or more", ge=0, default=1)
    utility: UtilityName = "effective_throughput"
    tightness: float = rule(
        "0.01 to 100; patience and slack of deadlines are divided by it", ge=0.01, le=100, default=1.0
    )


class SpecFile(Record):
    """A TOML (or JSON) document with a ``generator`` table.

    `published` is valid for the table's parameters; an instance with other parameters has only those numbers that the
    paper states for ranges that include them.
    """

    title: Text = ""
    source: Text = ""
    licence: Text = ""
    generator: Mapping[str, Any] = rule("a table of parameters, with the family of the generator")
    published: tuple[Published, ...] = ()


@dataclass(frozen=True)
class Streams:
    """Streams of uniform random numbers, one per quantity, derived from one seed.

    A quantity's numbers depend only on the seed and its name. Families draw by inverse distribution functions, one
    number per item, so that the first n items do not depend on how many follow.
    """

    seed: int

    def uniform(self, quantity: str, n: int) -> Array:
        """Return the first `n` numbers, in [0, 1), of a quantity's stream."""
        key = [self.seed, zlib.crc32(quantity.encode())]
        return np.random.Generator(np.random.PCG64(key)).random(n)


@dataclass(frozen=True)
class Family:
    """A generator family: `id` is the value of ``family`` in a spec, `spec` the class of its parameters.

    ``build(spec, streams)`` returns fields of :class:`~schedgap.instances.schema.Instance` by name.
    """

    id: str
    spec: type[GeneratorSpec]
    build: Callable[[Any, Streams], Mapping[str, Any]]


FAMILIES: Registry[Family] = Registry("generator family")


def usual_of(document: Mapping[str, Any], parameter: str) -> Scalar | None:
    """Return the value of a parameter in a spec file, or its family's default; ``None`` if there is no such one.

    A list of numbers is returned as a reference states it, ``1,2,4``.
    """
    table = document["generator"]
    fields = FAMILIES.get(str(table.get("family"))).spec.model_fields
    value = table.get(parameter, fields[parameter].default if parameter in fields else None)
    if isinstance(value, list | tuple) and all(isinstance(one, int | float) for one in value):
        return ",".join(map(shown, value))
    return value if isinstance(value, int | float | str) else None


def generate(
    document: Mapping[str, Any], overrides: Mapping[str, Scalar], name: str, where: str = "generator"
) -> Instance:
    """Draw the instance of a spec.

    Parameters
    ----------
    document
        The spec file: title, source, and a table ``generator``.
    overrides
        Parameters that replace those of the table (numbers, or text as in ``?load=1.2``). Published numbers are left
        out unless each changed parameter is in the range for which they are stated.
    name
        Name of the instance, of which the first 200 characters are kept.
    where
        Prefix of error messages.

    Raises
    ------
    InstanceError
        If a parameter is missing, of the wrong type or out of range, or if the instance would be too large.
    UnknownNameError
        If the family or a parameter does not exist; the message suggests the closest names.
    """
    file, family, table = _read(document, overrides, where)
    spec = parse(family.spec, table, where)
    changed = {key: value for key, value in table.items() if value != file.generator.get(key)}
    published = list(file.published)
    changes = ", ".join(f"{key} = {value}" for key, value in changed.items() if key != "seed")
    title = f"{file.title}; {changes}"[:4000] if changes else file.title
    texts: dict[str, Any] = {"name": name[:200], "title": title, "source": file.source, "licence": file.licence}
    for key, value in changed.items():
        ranges = [(entry, entry.within.get(key)) for entry in published if isinstance(value, int | float)]
        published = [entry for entry, ends in ranges if ends and ends[0] <= value <= ends[1]]
    texts["published"] = tuple(published)
    try:
        parts = family.build(spec, Streams(spec.seed))
        drawn = Instance(**texts, **parts)
        utilities = _with_utilities(drawn, spec)
        return Instance(**{**texts, **parts, **utilities}) if utilities else drawn
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error)}") from None
    except InstanceError as error:
        raise InstanceError(f"{where}: {error}") from None


def _read(
    document: Mapping[str, Any], overrides: Mapping[str, Scalar], where: str
) -> tuple[SpecFile, Family, dict[str, Any]]:
    """Return a spec file, its family, and its parameters with those that replace them."""
    file = parse(SpecFile, document, where)
    id = str(file.generator.get("family"))
    if id not in FAMILIES:
        raise UnknownNameError(f"{where}: {unknown(FAMILIES.kind, id[:60], FAMILIES.ids())}")
    family = FAMILIES.get(id)
    allowed = parameters(family.spec, file.generator)
    for key in overrides:
        if key not in allowed:
            whole = f" (harness show {where.partition('?')[0]} lists all)"
            raise UnknownNameError(f"{where}: {unknown('parameter', key, allowed)}{whole}")
    lists = [name for name in allowed if not _single(family.spec, name)]
    given = {k: [number(part) for part in str(v).split(",")] if k in lists else number(v) for k, v in overrides.items()}
    return file, family, {**file.generator, **given}


class GeneratorParameter(NamedTuple):
    """A parameter of a generated instance that a reference may override: its value, and which values are right."""

    name: str
    value: str
    right: str


def described(
    document: Mapping[str, Any], overrides: Mapping[str, Scalar], where: str = "generator"
) -> list[GeneratorParameter]:
    """Return the parameters of a spec that a reference may override; it raises what :func:`generate` raises."""
    file, family, table = _read(document, overrides, where)
    spec, found = parse(family.spec, table, where), []
    for name in parameters(family.spec, file.generator):
        field, value = family.spec.model_fields[name], getattr(spec, name)
        extra = field.json_schema_extra
        right = str(extra["rule"]) if isinstance(extra, dict) else "true or false" if field.annotation is bool else ""
        if get_origin(field.annotation) is Literal:
            right = "one of " + ", ".join(get_args(field.annotation))
        found.append(
            GeneratorParameter(name, ",".join(map(shown, value if isinstance(value, tuple) else [value])), right)
        )
    return found


def _with_utilities(drawn: Instance, spec: GeneratorSpec) -> dict[str, Any]:
    """Return the jobs with the spec's utility and a note on it; empty for the default utility.

    It raises `InstanceError` if there are no jobs.
    """
    impatient = spec.utility in ("sigmoid", "linear_deadline")
    if spec.tightness != 1 and not impatient and not any(job.deadline_s for job in drawn.jobs):
        right = "1, since these jobs have no deadlines; or utility=sigmoid or linear_deadline"
        raise InstanceError(f"tightness = {spec.tightness:g}: {right}")
    if spec.utility == "effective_throughput":
        return {}
    work, jobs = workload(drawn), []
    usual_s = work.arrival_s + PATIENCE / spec.tightness * work.work / (work.gpus * work.rates.max(axis=1))
    for job, begin_s, end_s in zip(drawn.jobs, work.arrival_s.tolist(), usual_s.tolist(), strict=True):
        due_s = job.deadline_s or significant(end_s)
        left_s = significant(due_s - begin_s)
        kinds: dict[str, Utility] = {
            "normalised": NormalisedThroughput(),
            "sigmoid": Sigmoid(amplitude=1.0, steepness_per_s=significant(STEEPNESS / left_s), midpoint_s=left_s),
            "linear_deadline": LinearDeadline(amplitude=1.0, grace_s=left_s),
            "constant": Constant(amplitude=1.0),
        }
        deadline = {"deadline_s": due_s} if spec.utility == "linear_deadline" else {}
        jobs.append(job.model_copy(update={"utility": kinds[spec.utility], **deadline}))
    patience = f"patience = until the deadline, or {PATIENCE / spec.tightness:g} x the time alone on the fastest GPUs"
    note = f"utilities = {spec.utility}" + (f", {patience}" if impatient else "")
    return {"jobs": tuple(jobs), "derived": (*drawn.derived, note)}


def parameters(spec: type[GeneratorSpec], table: Iterable[str] = ()) -> list[str]:
    """Return the names of the parameters that a reference may override: scalars, words and lists of numbers.

    Those that a `table` sets come first, in its order, then the family's own, then those of all families.
    """
    own = [name for one in spec.__mro__ for name in vars(one).get("__annotations__", ())]
    ordered = dict.fromkeys(name for name in (*table, *own) if name in spec.model_fields)
    return [name for name in ordered if name != "family" and (_single(spec, name) or _numbers(spec, name))]


def _single(spec: type[GeneratorSpec], name: str) -> bool:
    """Return whether a parameter is a scalar or a word."""
    annotation = spec.model_fields[name].annotation
    return annotation in (int, float, bool, str) or get_origin(annotation) is Literal


def _numbers(spec: type[GeneratorSpec], name: str) -> bool:
    """Return whether a parameter is a list of numbers: ``?gangs=1,2,4``."""
    annotation = spec.model_fields[name].annotation
    plain = [get_args(one)[0] if get_origin(one) is Annotated else one for one in get_args(annotation)]
    return get_origin(annotation) is tuple and all(one in (int, float, ...) for one in plain)


def number(value: Scalar) -> Scalar:
    """Convert the text of a reference to a number if it is one; validation rejects other text if need be."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    return value
