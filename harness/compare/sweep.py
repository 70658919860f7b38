"""Sweeps: many instances × methods × seeds × limits, described by a TOML file and run as one comparison.

.. code-block:: toml

    title = "Number of servers at equal capacity"
    source = "Zhou et al., Fig. 3"
    plugins = ["mine.py"]
    methods = ["zhou.ps.online", "zhou.ps.fifo"]
    time_limit_s = 60.0

    [[grids]]
    base = "gen/zhou-ps?capacity=0.5"
    vary = { servers = [100, 150, 200], seed = [1, 2, 3] }

    [[limits]]
    name = "short"
    time_limit_s = 10.0

A grid is the product of its lists, the last one running fastest; ``instances = ["paper/oef-eq1", …]`` names single
ones. Every method runs once per seed and under each of the limits; what these leave open is as the file says for all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self, Unpack
from urllib.parse import quote, urlencode

from pydantic import Field, model_validator

from schedgap.harness.compare.methods import select
from schedgap.harness.compare.row import Comparison
from schedgap.harness.compare.run import compare
from schedgap.harness.engine.study import Running, command_line, several
from schedgap.harness.engine.task import Limits
from schedgap.instances.canonical import read_mapping
from schedgap.instances.catalogue import MAX_REFERENCE
from schedgap.instances.errors import UsageError
from schedgap.instances.generate.core import parse
from schedgap.instances.plugins import load_plugin
from schedgap.instances.ranges import MOST_THREADS
from schedgap.instances.schema import Name, Record, Text, rule, violation

MAX_INSTANCES = 1000
"""Most instances of one sweep; to raise it, set ``schedgap.harness.compare.sweep.MAX_INSTANCES``."""

MAX_RESULTS = 100_000
"""Most instances × seeds × limits of one sweep, each of which every method runs on."""

Reference = Annotated[str, Field(min_length=1, max_length=MAX_REFERENCE)]
Value = bool | int | float | str


class Grid(Record):
    """An instance, and values of its parameters of which every combination is one."""

    base: Reference = rule("a reference, such as gen/zhou-ps or gen/200jobs?load=1.2")
    vary: Mapping[Name, Annotated[tuple[Value, ...], Field(min_length=1)]] = rule(
        "a list of one or more values by parameter", min_length=1
    )

    @property
    def size(self) -> int:
        """Number of combinations."""
        return math.prod(len(values) for values in self.vary.values())

    def references(self) -> Iterator[str]:
        """Yield the references of all combinations."""
        joined = "&" if "?" in self.base else "?"
        for values in itertools.product(*self.vary.values()):
            pairs = zip(self.vary, values, strict=True)
            yield self.base + joined + urlencode(list(pairs), safe="+", quote_via=quote)


class LimitSet(Record):
    """Limits under which every method runs; what is absent is as the file says for all."""

    name: Name = rule("what rows show in their column limits")
    time_limit_s: float | None = rule("seconds each solve may take, positive", gt=0, default=None)
    rel_gap: float | None = rule("relative gap at which a MIP counts as solved, in [0, 1)", ge=0, lt=1, default=None)
    threads: int | None = rule("threads of one solve", ge=1, le=MOST_THREADS, default=None)
    all_sizes: bool | None = None

    def over(self, limits: Limits) -> Limits:
        """Return `limits` with what is said here."""
        said = {name: getattr(self, name) for name in type(self).model_fields if name != "name"}
        return replace(limits, **{name: value for name, value in said.items() if value is not None})


class Sweep(Record):
    """What a sweep file says."""

    title: Text = rule("what is varied, in a line")
    source: Text = ""
    plugins: tuple[Reference, ...] = ()
    instances: tuple[Reference, ...] = ()
    grids: tuple[Grid, ...] = ()
    methods: tuple[Name, ...] = rule("ids or patterns of methods ('oef.*'), one or more", min_length=1)
    papers: tuple[Name, ...] = ()
    seeds: tuple[int, ...] = rule("seeds of heuristics and solver, one or more", min_length=1, default=(0,))
    time_limit_s: float = rule("seconds each solve may take, positive", gt=0, default=Limits.time_limit_s)
    all_sizes: bool = False
    limits: tuple[LimitSet, ...] = ()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        size = len(self.instances) + sum(grid.size for grid in self.grids)
        if size == 0:
            raise violation("instances", "[]", "one or more references here, or in [[grids]]")
        runs = size * len(self.seeds) * max(1, len(self.limits))
        how = "to raise it, set schedgap.harness.compare.sweep.{} in Python"
        if size > MAX_INSTANCES:
            raise violation("grids", f"{size} instances", f"at most {MAX_INSTANCES}; {how.format('MAX_INSTANCES')}")
        if runs > MAX_RESULTS:
            told = f"at most {MAX_RESULTS}; {how.format('MAX_RESULTS')}"
            raise violation("seeds", f"{runs} instances × seeds × limits", told)
        names = [limits.name for limits in self.limits]
        if len(set(names)) < len(names):
            raise violation("limits", ", ".join(names), "limits of different names")
        return self

    @property
    def references(self) -> list[str]:
        """References of all instances, single ones first."""
        return [*self.instances, *(ref for grid in self.grids for ref in grid.references())]

    def kinds(self, limits: Limits) -> dict[str, Limits]:
        """Return `limits` as the file changes them, by name; the empty name where it has one kind only."""
        common = replace(limits, time_limit_s=self.time_limit_s, all_sizes=self.all_sizes)
        return {kind.name: kind.over(common) for kind in self.limits} or {"": common}


def read(path: Path, **instead: Any) -> Sweep:
    """Return what a sweep file says, with some keys instead of its own; plug-ins are loaded, instances are not.

    It raises `UsageError` if the file cannot be read, has unknown keys or grids of no size that is possible, or names
    unknown methods or plug-ins.
    """
    if path.suffix.lower() != ".toml":
        raise UsageError(f"{path}: a sweep file ends in .toml")
    found = parse(Sweep, {**read_mapping(path), **instead}, str(path))
    try:
        for plugin in found.plugins:
            load_plugin(plugin)
        select(found.methods, found.papers)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return found


def sweep(
    path: str | Path,
    *,
    seeds: int | Sequence[int] = (),
    time_limit_s: float | None = None,
    memory_mb: int = Limits.memory_mb,
    **running: Unpack[Running],
) -> Comparison:
    """Run a sweep file and return certified rows; see :func:`schedgap.harness.compare.run.compare`.

    `seeds` and `time_limit_s` are instead of what the file says for all; `memory_mb` caps each worker process. Only
    methods that the file names run.
    """
    seeds = several(seeds)
    instead = {"seeds": seeds, "time_limit_s": time_limit_s}
    asked = read(Path(path), **{name: value for name, value in instead.items() if value})
    limits = Limits(memory_mb=memory_mb)
    options = {"seed": seeds, "time_limit": time_limit_s, **limits.given(Limits())}
    return compare(
        asked.references,
        asked.methods,
        asked.papers,
        seeds=asked.seeds,
        limits=asked.kinds(limits),
        bound=False,
        command=command_line(options, "sweep", str(path)),
        **running,
    )
