"""From what a user calls a policy to the registered ones."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from schedgap.heuristics.simulator import POLICIES, PolicySpec
from schedgap.instances.errors import UnknownNameError
from schedgap.instances.registry import unknown

FIRST = "hadar"
"""Paper whose policy a short name means where several have one of that name."""


def resolve(names: Iterable[str]) -> list[PolicySpec]:
    """Return the policies of these names, each once, in the order in which they are named first.

    Parameters
    ----------
    names
        Ids (``hadar.gavel``), shell patterns (``hadar.*``), the end of an id (``gavel``, ``yarn-cs``), or a paper
        (``hadar``) for its own online algorithm; several may be joined by commas.

    Raises
    ------
    UnknownNameError
        If a name matches nothing; the message names the nearest known ones.
    """
    chosen: dict[str, PolicySpec] = {}
    for name in (part.strip() for text in names for part in text.split(",")):
        chosen |= {spec.id: spec for spec in _matching(name)}
    return list(chosen.values())


def _matching(name: str) -> list[PolicySpec]:
    short, question, settings = name.partition("?")
    plain = short.lower().replace("-", "_")
    exact = [spec for wanted in (plain, f"{plain}.online") for spec in POLICIES if spec.id == wanted]
    found = exact[:1] or [spec for spec in POLICIES if fnmatch.fnmatchcase(spec.id, plain)]
    if not found:
        ending = [spec for spec in POLICIES if spec.id.partition(".")[2] == plain]
        found = sorted(ending, key=lambda spec: spec.paper != FIRST)[:1]
    if not found:
        known = [*POLICIES.ids(), *short_names()]
        raise UnknownNameError(unknown("policy", short, known))
    return [POLICIES.get(f"{spec.id}?{settings}") for spec in found if not spec.settings] if question else found


def short_names() -> list[str]:
    """Return the names without a paper that are understood, each once."""
    ends = (spec.id.partition(".")[2] for spec in POLICIES if not spec.settings)
    return list(dict.fromkeys(end for end in ends if "." not in end and end != "online"))
