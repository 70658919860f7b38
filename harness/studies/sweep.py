"""Sweeps: a TOML file describes a grid of instances, methods or policies, seeds and options, run as one study.

.. code-block:: toml

    title = "Number of servers at equal capacity"
    source = "Zhou et al., Fig. 3"
    plugins = ["mine.py"]
    methods = ["zhou.ps.fifo", { base = "zhou.ps.online", vary = { alpha = [1, 4] } }]
    time_limit_s = 60.0

    [[grids]]
    base = "gen/zhou-ps?capacity=0.5"
    vary = { servers = [100, 150, 200], seed = [1, 2, 3] }

    [[limits]]
    name = "short"
    time_limit_s = 10.0

A grid is the product of lists of parameter values, the last list varying fastest; it may vary an instance, a method or
a policy. Values may be lists themselves: ``gangs = [[1, 2], [1, 2, 4, 8]]``. Its ``base`` may be a list, too, of
references or files: ``base = ["gen/philly", "mine.toml"]``. ``instances = ["paper/oef-eq1", "mine.json", …]`` lists
single instances, ``traces`` real traces. With ``policies`` instead
of ``methods`` the sweep simulates, and ``options`` may contain lists, too: ``options = { round_s = [90, 360] }``. Every
method runs once per seed and limit set, every policy once per seed and combination of options, and every model once per
solver (``solvers = ["highs", "scip"]``). A limit set inherits what it does not set.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self, Unpack
from urllib.parse import quote, urlencode

from pydantic import BeforeValidator, Field, model_validator

from schedgap.harness.engine import study
from schedgap.harness.engine.study import Running, command_line, several
from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare.methods import Spec, select, solved_by
from schedgap.harness.studies.compare.row import Comparison
from schedgap.harness.studies.compare.run import compare
from schedgap.harness.studies.simulate.row import Simulation
from schedgap.harness.studies.simulate.run import USUAL, SimulationOptions, resolve
from schedgap.harness.studies.simulate.run import run as simulate
from schedgap.instances.canonical import parse, read_mapping
from schedgap.instances.catalogue import MAX_REFERENCE, load
from schedgap.instances.errors import UsageError
from schedgap.instances.importers import Options as ImportOptions
from schedgap.instances.importers import import_trace
from schedgap.instances.parameters import extended
from schedgap.instances.plugins import load_plugin
from schedgap.instances.ranges import MOST_THREADS
from schedgap.instances.schema import Instance, Name, Record, Text, rule, violation

MAX_INSTANCES = 1000
"""Maximum number of instances in a sweep; set ``schedgap.harness.studies.sweep.MAX_INSTANCES`` to raise it."""

MAX_RESULTS = 100_000
"""Maximum number of instances × seeds × options (or limits) in a sweep; each method has one result for each."""

Reference = Annotated[str, Field(min_length=1, max_length=MAX_REFERENCE)]
Scalar = bool | int | float | str


def _value(value: Any) -> Any:
    """Return the value of a parameter, a list as a tuple; raise `ValueError` if it is neither plain nor such a list."""
    several = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not several or not all(isinstance(one, Scalar) for one in several):
        raise ValueError
    return several if isinstance(value, list) else value


Value = Annotated[Scalar | tuple[Scalar, ...], BeforeValidator(_value)]
"""A value of a parameter; a list is written as ``1,2,4``."""


def combinations(vary: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """Return the product of the lists as mappings, the last list varying fastest."""
    return [dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())]


def query(values: Mapping[str, Value]) -> str:
    """Return settings in the form used by references and ids, ``load=9&gangs=1,2``; booleans are lower case."""
    listed = {name: value if isinstance(value, tuple) else (value,) for name, value in values.items()}
    pairs = [
        (name, ",".join(str(one).lower() if isinstance(one, bool) else str(one) for one in several))
        for name, several in listed.items()
    ]
    return urlencode(pairs, safe="+:,", quote_via=quote)


class SweepGrid(Record):
    """Instances, methods or policies, and lists of parameter values; every combination is run."""

    base: Reference | Annotated[tuple[Reference, ...], Field(min_length=1)] = rule(
        "references, files or ids, one or a list: gen/zhou-ps, gen/200jobs?load=1.2, mine.toml or hadar.online"
    )
    vary: Mapping[Name, Annotated[tuple[Value, ...], Field(min_length=1)]] = rule(
        "by parameter, a list of values, which may be lists themselves; one or more", min_length=1
    )

    def references(self) -> Iterator[str]:
        """Yield the references of all combinations, those of each base together."""
        for base in self.bases:
            yield from (extended(base, query(values)) for values in combinations(self.vary))

    @property
    def bases(self) -> tuple[str, ...]:
        """References or ids that are varied."""
        return self.base if isinstance(self.base, tuple) else (self.base,)

    @property
    def size(self) -> int:
        """Number of combinations."""
        return len(self.bases) * math.prod(map(len, self.vary.values()))


Choice = Name | SweepGrid
"""An id, a pattern, or a grid of ids."""


class SweepRules(Record):
    """The :class:`~schedgap.harness.studies.simulate.run.SimulationOptions` of a sweep, each a value or a list."""

    round_s: float | tuple[float, ...] | None = None
    restart_s: float | tuple[float, ...] | None = None
    spread_factor: float | tuple[float, ...] | None = None
    until_h: float | tuple[float, ...] | None = None
    profiling_min: float | tuple[float, ...] | None = None
    window: Text | tuple[Text, ...] | None = None
    network: bool | tuple[bool, ...] | None = None

    def kinds(self, whole: bool = False) -> dict[str, SimulationOptions]:
        """Return every combination of options, labelled by the varied ones (``round_s=90``), or by all if `whole`."""
        options = self.model_dump(exclude_none=True)
        vary = {name: value if isinstance(value, tuple) else (value,) for name, value in options.items()}
        labels = [name for name, values in vary.items() if whole or len(values) > 1]
        settings: list[dict[str, Any]] = [*combinations(vary)]
        return {query({name: one[name] for name in labels}): SimulationOptions.of_command(**one) for one in settings}


class AbsentDataError(UsageError):
    """The file of a real trace is not on this machine."""


class TraceFile(Record):
    """A real trace to import, with the options of ``harness import``.

    `file` and `nodes` are relative to the folder of traces. With `history`, it is a log: when jobs ran is read as well.
    """

    format: Name
    file: Name
    name: Text | None = None
    max_jobs: int | None = rule("number of first jobs to keep, positive", gt=0, default=None)
    hours: tuple[float, float] | None = None
    gangs: tuple[int, ...] = ()
    split: tuple[float, ...] = ()
    gpus: Mapping[Name, int] | None = None
    history: bool = False
    columns: Mapping[Name, Text] | None = None
    nodes: Name | None = None
    time_format: Text | None = None
    timezone: Name | None = None
    resource: Name | None = None
    by_partition: bool = False

    def loaded(self) -> Instance:
        """Import the trace; raise `AbsentDataError` if one of its files is missing.

        Traces do not come with the project. They are expected in the folder ``SCHEDGAP_DATA``, or next to the project.
        """
        options = self.model_dump(exclude={"format", "file", "nodes"})
        nodes = None if self.nodes is None else _of_traces(self.nodes)
        return import_trace(self.format, _of_traces(self.file), ImportOptions(**options, nodes=nodes))


def _of_traces(file: str) -> Path:
    """Return the path of a file of a real trace; raise `AbsentDataError` if it is missing."""
    if not (path := Path(os.environ.get("SCHEDGAP_DATA", "../shared/data")) / file).is_file():
        how = "set SCHEDGAP_DATA to the folder of real traces"
        raise AbsentDataError(f"the real trace {file}, which is not here: {how}")
    return path


class LimitSet(Record):
    """A named set of limits, under which every method runs; the file's own limits stand in for absent ones."""

    name: Name = rule("label of the rows, in their column limits")
    time_limit_s: float | None = rule("seconds each solve may take, positive", gt=0, default=None)
    rel_gap: float | None = rule("relative gap at which a search ends, in [0, 1)", ge=0, lt=1, default=None)
    threads: int | None = rule("threads of one solve", ge=1, le=MOST_THREADS, default=None)
    nodes: int | None = rule("nodes per search or MIP, 0 or more", ge=0, default=None)
    all_sizes: bool | None = None

    def over(self, limits: Limits) -> Limits:
        """Return `limits`, changed by this set."""
        return replace(limits, **self.model_dump(exclude={"name"}, exclude_none=True))


class Sweep(Record):
    """The content of a sweep file."""

    title: Text = rule("what the sweep varies, in one line")
    source: Text = ""
    plugins: tuple[Reference, ...] = ()
    instances: tuple[Reference, ...] = ()
    traces: tuple[TraceFile, ...] = ()
    grids: tuple[SweepGrid, ...] = ()
    methods: tuple[Choice, ...] = ()
    policies: tuple[Choice, ...] = ()
    papers: tuple[Name, ...] = ()
    solvers: tuple[Name, ...] = ()
    seeds: tuple[int, ...] = rule("seeds of heuristics and solver, one or more", min_length=1, default=(0,))
    time_limit_s: float | None = rule("seconds each solve or simulation may take, positive", gt=0, default=None)
    rel_gap: float | None = rule("relative gap at which a search ends, in [0, 1)", ge=0, lt=1, default=None)
    nodes: int | None = rule("nodes per search or MIP, 0 or more", ge=0, default=None)
    all_sizes: bool = False
    limits: tuple[LimitSet, ...] = ()
    reference: Name = rule("method that the others are compared with in statistics", default="")
    options: SweepRules = SweepRules()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        grids = sum(grid.size for grid in self.grids)
        size = len(self.instances) + len(self.traces) + grids
        if size == 0:
            raise violation("instances", "[]", "one or more references here, or in [[grids]]")
        if not self.methods and not self.policies:
            raise violation("methods", "[]", "ids or patterns of methods ('oef.*') or policies, one or more")
        of_methods = ("papers", "solvers", "rel_gap", "nodes", "all_sizes", "limits", "reference")
        compared = ("policies", "options") if self.methods else of_methods
        if wrong := [name for name in compared if name in self.model_fields_set]:
            what = "compares methods" if self.methods else "simulates policies"
            raise violation(wrong[0], "…", f"nothing in a sweep that {what}")
        lists = {name: values for name, values in dict(self.options).items() if isinstance(values, tuple)}
        if empty := [name for name, values in lists.items() if not values]:
            raise violation(f"options.{empty[0]}", "[]", "one or more values")
        options = math.prod(map(len, lists.values()))
        runs = size * len(self.seeds) * max(1, len(self.limits), options)
        how = "to raise it, set schedgap.harness.studies.sweep.{} in Python"
        if size > MAX_INSTANCES:
            raise violation("grids", f"{size} instances", f"at most {MAX_INSTANCES}; {how.format('MAX_INSTANCES')}")
        if runs > MAX_RESULTS:
            limit = f"at most {MAX_RESULTS}; {how.format('MAX_RESULTS')}"
            raise violation("seeds", f"{runs} instances × seeds × options", limit)
        names = [limits.name for limits in self.limits]
        if len(set(names)) < len(names):
            raise violation("limits", ", ".join(names), "limits of different names")
        return self

    @property
    def references(self) -> list[str]:
        """References of all instances except real traces; single ones come first."""
        return [*self.instances, *(ref for grid in self.grids for ref in grid.references())]

    def loaded(self) -> dict[str, Instance]:
        """Return all instances by reference, real traces by name."""
        instances = {ref: load(ref) for ref in self.references}
        return instances | {one.name: one for one in (trace.loaded() for trace in self.traces)}

    @property
    def chosen(self) -> list[str]:
        """Ids and patterns of methods or policies, with grids expanded."""
        choices = self.methods or self.policies
        return [name for one in choices for name in ([one] if isinstance(one, str) else one.references())]

    def specs(self) -> list[Spec]:
        """Return the methods, models once per solver; raise `UsageError` if a method or solver is unknown."""
        return solved_by(select(self.chosen, self.papers), self.solvers)

    def check(self) -> None:
        """Raise `UsageError` if a method, policy or paper is unknown, or an option is malformed."""
        if self.policies:
            resolve(self.chosen)
            self.options.kinds()
        else:
            self.specs()

    def kinds(self, limits: Limits) -> dict[str, Limits]:
        """Return `limits` with the file's changes, by name of the limit set (empty if the file has no sets)."""
        seconds = self.time_limit_s or limits.seconds
        gap = limits.rel_gap if self.rel_gap is None else self.rel_gap
        common = replace(limits, time_limit_s=seconds, rel_gap=gap, nodes=self.nodes, all_sizes=self.all_sizes)
        return {kind.name: kind.over(common) for kind in self.limits} or {"": common}


def read(path: Path | Mapping[str, Any], **changes: Any) -> Sweep:
    """Read a sweep file, or take its content; replace some of its keys, and load its plug-ins.

    It raises `UsageError` if the sweep is invalid.
    """
    if isinstance(path, Mapping):
        given, where = path, "sweep"
    elif path.suffix.lower() == ".toml":
        given, where = read_mapping(path), str(path)
    else:
        raise UsageError(f"{path}: a sweep file must end in .toml")
    content = parse(Sweep, {**given, **changes}, where)
    try:
        for plugin in content.plugins:
            load_plugin(plugin)
        content.check()
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return content


def sweep(
    path: str | Path | Mapping[str, Any],
    *,
    seeds: int | Sequence[int] = (),
    time_limit_s: float | None = None,
    memory_mb: int = Limits.memory_mb,
    solver_logs: bool = False,
    reference: str = "",
    **running: Unpack[Running],
) -> Comparison | Simulation:
    """Run a sweep file, or its content as a dict, as ``sg.compare`` or ``sg.simulate`` do.

    `seeds`, `time_limit_s` and `reference` replace the file's own; `memory_mb` caps each worker process; with
    `solver_logs`, logs of HiGHS are kept.
    """
    changes = {"seeds": several(seeds), "time_limit_s": time_limit_s, "reference": reference}
    source = path if isinstance(path, Mapping) else Path(path)
    content = read(source, **{name: value for name, value in changes.items() if value})
    usual = USUAL if content.policies else Limits()
    limits = replace(usual, memory_mb=memory_mb, solver_logs=solver_logs)
    kinds = content.kinds(limits)
    if content.policies and solver_logs:
        raise UsageError(f"{path}: solver logs are kept for methods, and this sweep simulates policies")
    options = {"seed": several(seeds), "time_limit": time_limit_s, "reference": reference, **limits.given(usual)}
    command = command_line(options, "sweep", str(path)) if isinstance(source, Path) else f"sg.sweep({path!r})"
    same: Any = {"seeds": content.seeds, "command": command, **running}
    instances: list[study.Reference] = [*content.references, *(trace.loaded() for trace in content.traces)]
    if content.policies:
        return simulate(instances, content.chosen, content.options.kinds(), limits=kinds[""], **same)
    chosen: dict[str, Any] = {"solvers": content.solvers, "limits": kinds, "reference": content.reference}
    return compare(instances, content.chosen, content.papers, bound=False, probes=False, **chosen, **same)
