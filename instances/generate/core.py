"""What all families share: the spec file, the registry, streams of random numbers, errors in one line."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_origin

import numpy as np
from pydantic import ValidationError

from schedgap.instances.arrays import Array
from schedgap.instances.canonical import describe, parse
from schedgap.instances.errors import InstanceError, UnknownNameError
from schedgap.instances.model_catalogue import significant
from schedgap.instances.registry import Registry, unknown
from schedgap.instances.schema import Instance, Published
from schedgap.instances.schema.base import Name, Record, Text, rule
from schedgap.instances.schema.job import Constant, LinearDeadline, NormalisedThroughput, Sigmoid, Utility
from schedgap.instances.workload import workload

Scalar = bool | int | float | str

UtilityName = Literal["effective_throughput", "normalised", "sigmoid", "linear_deadline", "constant"]
"""Hadar's utilities, by their kind in an instance."""

PATIENCE = 4.0
"""Patience of a job without deadline, as a multiple of its time alone on its fastest GPUs."""

STEEPNESS = 4.0
"""A sigmoid is 0.98 of its amplitude at the arrival, half at the end of the patience, and 0.02 after twice of it."""


class GeneratorSpec(Record):
    """Parameters that every family has; a family's own spec class adds its own.

    Jobs have the `utility` of that kind, with amplitude 1. A job's patience lasts until its deadline, or
    :data:`PATIENCE` times its time alone where it has none. At its end, a sigmoid has fallen to a half; a linear
    deadline begins to fall then, to 0 after as much time again.
    """

    family: Name
    seed: int = rule("a seed is a whole number, 0 or more", ge=0, default=1)
    utility: UtilityName = "effective_throughput"


class SpecFile(Record):
    """A TOML (or JSON) document with a ``generator`` table.

    `published` holds for the table as it stands; an instance with other parameters has only those numbers that the
    paper states within ranges of them.
    """

    title: Text = ""
    source: Text = ""
    licence: Text = ""
    generator: Mapping[str, Any] = rule("a table of parameters, with the family of the generator")
    published: tuple[Published, ...] = ()


@dataclass(frozen=True)
class Streams:
    """One stream of uniform random numbers per quantity, all from one master seed.

    A quantity's numbers depend only on the seed and its name. Families draw by inverse distribution
    functions, one number per item, so that the first n items are the same however many follow.
    """

    seed: int

    def uniform(self, quantity: str, n: int) -> Array:
        """Return the first `n` numbers, in [0, 1), of a quantity's stream."""
        key = [self.seed, zlib.crc32(quantity.encode())]
        return np.random.Generator(np.random.PCG64(key)).random(n)


@dataclass(frozen=True)
class Family:
    """A generator: `id` is ``family`` in a spec, `spec` the class of its parameters.

    ``build(spec, streams)`` returns fields of :class:`~schedgap.instances.schema.Instance` by name.
    """

    id: str
    spec: type[GeneratorSpec]
    build: Callable[[Any, Streams], Mapping[str, Any]]


FAMILIES: Registry[Family] = Registry("generator family")


def generate(
    document: Mapping[str, Any], overrides: Mapping[str, Scalar], name: str, where: str = "generator"
) -> Instance:
    """Draw the instance of a spec.

    Parameters
    ----------
    document
        The spec file: title, source, and a table ``generator``.
    overrides
        Parameters that replace those of the table (numbers, or text as in ``?load=1.2``). Published numbers, which are
        about the table's instance, are left out where one differs from the table and from what they are stated for.
    where
        Begins every error message.

    Raises
    ------
    InstanceError
        If a parameter is missing, of the wrong type or out of range, or if the instance would be too large.
    UnknownNameError
        If the family or a parameter is not known; the message names the nearest known ones.
    """
    file = parse(SpecFile, document, where)
    wanted = str(file.generator.get("family"))
    if wanted not in FAMILIES:
        raise UnknownNameError(f"{where}: {unknown(FAMILIES.kind, wanted[:60], FAMILIES.ids())}")
    family = FAMILIES.get(wanted)
    allowed = parameters(family.spec)
    for key in overrides:
        if key not in allowed:
            raise UnknownNameError(f"{where}: {unknown('parameter', key, allowed)}")
    table = {**file.generator, **{k: _number(v) for k, v in overrides.items()}}
    spec = parse(family.spec, table, where)
    changed = {key: value for key, value in table.items() if value != file.generator.get(key)}
    known = list(file.published)
    told = ", ".join(f"{key} = {value}" for key, value in changed.items() if key != "seed")
    title = f"{file.title}; {told}"[:4000] if told else file.title
    words: dict[str, Any] = {"name": name[:200], "title": title, "source": file.source, "licence": file.licence}
    for key, value in changed.items():
        ranges = [(entry, entry.within.get(key)) for entry in known if isinstance(value, int | float)]
        known = [entry for entry, ends in ranges if ends and ends[0] <= value <= ends[1]]
    words["published"] = tuple(known)
    try:
        parts = family.build(spec, Streams(spec.seed))
        drawn = Instance(**words, **parts)
        other = _worth(drawn, spec)
        return Instance(**{**words, **parts, **other}) if other else drawn
    except ValidationError as error:
        raise InstanceError(f"{where}: {describe(error)}") from None
    except InstanceError as error:
        raise InstanceError(f"{where}: {error}") from None


def _worth(drawn: Instance, spec: GeneratorSpec) -> dict[str, Any]:
    """Return jobs with a utility that is not the default, and a note on it; raise `InstanceError` without jobs."""
    if spec.utility == "effective_throughput":
        return {}
    work, jobs = workload(drawn), []
    usual_s = work.arrival_s + PATIENCE * work.work / (work.gpus * work.rates.max(axis=1))
    for job, begin_s, end_s in zip(drawn.jobs, work.arrival_s.tolist(), usual_s.tolist(), strict=True):
        due_s = job.deadline_s or significant(end_s)
        left_s = significant(due_s - begin_s)
        kinds: dict[str, Utility] = {
            "normalised": NormalisedThroughput(),
            "sigmoid": Sigmoid(amplitude=1.0, steepness_per_s=significant(STEEPNESS / left_s), midpoint_s=left_s),
            "linear_deadline": LinearDeadline(amplitude=1.0, grace_s=left_s),
            "constant": Constant(amplitude=1.0),
        }
        given = {"deadline_s": due_s} if spec.utility == "linear_deadline" else {}
        jobs.append(job.model_copy(update={"utility": kinds[spec.utility], **given}))
    told = f"patience = until the deadline, or {PATIENCE:g} x the time alone on the fastest GPUs"
    note = f"utilities = {spec.utility}" + (f", {told}" if spec.utility in ("sigmoid", "linear_deadline") else "")
    return {"jobs": tuple(jobs), "derived": (*drawn.derived, note)}


def parameters(spec: type[GeneratorSpec]) -> list[str]:
    """Return the names of the parameters that a reference may override: single numbers and words."""
    single = (int, float, bool, str)
    return [
        name
        for name, field in spec.model_fields.items()
        if name != "family" and (field.annotation in single or get_origin(field.annotation) is Literal)
    ]


def _number(value: Scalar) -> Scalar:
    """Read a number from the text of a reference; other text stays as it is, for validation to refuse."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    return value
