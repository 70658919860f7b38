"""Settings: a file ``reproductions/<paper>/<figure>.toml`` describes a figure or table and its runs.

.. code-block:: toml

    title = "Average JCT under FIFO"
    place = "Fig. 9"

    [[runs]]
    name = "artefact"
    policies = ["synergy.proportional.fifo", "synergy.tune.fifo"]
    traces = [{ format = "synergy_csv", file = "synergy/artefact_rebuilt_9perh.csv" }]
    options = { round_s = 300.0, restart_s = 0.0, window = "4000:1000" }

    [[numbers]]
    method = "synergy.tune.fifo"
    quantity = "jct_mean_h"
    value = 22
    tolerance = 0.5
    unit = "h"
    only_if = [{ assumption = "placement", setting = "in the policy's order", instead = { "synergy.tune.fifo" = "…" } }]

    [[assumptions]]
    name = "placement"
    ours = "by descending demand"
    why = "The text says so; the artefact places jobs in the policy's order."

What the paper prints is the setting that runs first. What it leaves open is an assumption, and ``only_if`` says what
else was tried for it. A run is a sweep (:mod:`schedgap.harness.studies.sweep`); its ``quick`` has the changes under
``--quick``. A number is a mean over all cases that ``at`` selects. ``[[published]]`` takes the numbers from an
instance's file. If there are several runs, every item names its run; ``needs`` states what a figure would require that
cannot be tested here. ``docs/figures.md`` explains the shorthands: ``runs`` of another figure, ``only_if`` at the top
level, and ``each``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from schedgap.harness.studies.sweep import Sweep, Value
from schedgap.instances import load
from schedgap.instances.canonical import parse, read_mapping
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance, Name, Published, Record, Text, rule, violation
from schedgap.instances.schema.base import Numbers

Values = Value | tuple[Value, ...]

SIMILAR = 0.5
"""Exponents of two curves that differ by at most this are similar: papers print the word without a number."""

COMPARED = ("numbers", "published", "orders", "trends", "measured")
"""Fields of a setting that contain compared items."""


class SettingRun(Sweep):
    """A sweep that belongs to a setting: methods or policies on instances."""

    title: Text = ""
    name: Text = ""
    quick: Mapping[Name, Any] = {}
    reduced: bool = False

    def small(self) -> SettingRun:
        """Return the run with its changes under ``--quick``; it is `reduced` if there are any."""
        content = self.model_dump(mode="json", exclude_unset=True)
        changes = {**self.quick, "reduced": True} if self.quick else {}
        return parse(SettingRun, content | changes, f"run {self.name!r}: quick")


class Assumption(Record):
    """A choice that the paper leaves open: its name, what we chose, and why.

    Example: ``slot length``, ``360 s``, ``The paper says "a slot" and gives no length.``
    """

    name: Name = rule("the name of what the paper leaves open, such as load or slot length")
    ours: Name = rule("what was chosen")
    why: Text = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.ours}"


class Alternative(Record):
    """Another choice for an assumption, with which an item is compared as well."""

    setting: Name = rule("the difference, in a few words")
    assumption: Text = ""
    run: Text = ""
    at: Mapping[Name, Values] = {}
    instead: Mapping[Name, Name] = {}


class Item(Record):
    """A compared item: its run, the points of the run (`at`), its place in the paper, and a note."""

    run: Text = ""
    at: Mapping[Name, Values] = {}
    place: Text = ""
    note: Text = ""
    only_if: tuple[Alternative, ...] = ()


class Number(Item):
    """A printed number: the mean (or largest, or smallest) value of a quantity over all cases.

    The ``smallest mean`` is the smallest, over all points, of the mean over the draws of a point. So is the ``largest
    mean``, for a printed "up to" over loads.

    `quantity`, `exact`, `relation` and `tolerance` are as in :class:`schedgap.instances.schema.Published`.
    """

    method: Name
    quantity: Name = "objective"
    value: Numbers
    exact: Numbers | None = None
    relation: Literal["equal", "at least", "at most"] = "equal"
    tolerance: float = rule("a tolerance is positive", gt=0, default=0.005)
    unit: Name = "1"
    statistic: Literal["mean", "largest", "smallest", "smallest mean", "largest mean"] = "mean"


class Order(Item):
    """A printed ordering, the best method first; with `along`, it holds at every value of a parameter.

    If the paper says "as good as", `ties` allows that a method equals the next.
    """

    order: Annotated[tuple[Name, ...], Field(min_length=2)]
    ties: bool = False
    quantity: Name = "objective"
    along: Text = ""


class Trend(Item):
    """A printed trend of a curve along a parameter; a peak or minimum is at one of the values `peak`.

    A curve ``scales`` similarly to that of the method `like` if their exponents, from their first to their last point,
    differ by at most :data:`SIMILAR`.
    """

    method: Name
    quantity: Name = "objective"
    along: Name
    shape: Literal["rises", "falls", "peaks", "lowest", "scales"]
    peak: tuple[Value, ...] = ()
    like: Text = ""

    @model_validator(mode="after")
    def _paired(self) -> Self:
        if bool(self.like) != (self.shape == "scales"):
            raise violation("like", repr(self.like), "the other method if shape is scales, and only then")
        return self


class Quoted(Item):
    """Published numbers from the file of an instance: those whose place in the paper contains `where`."""

    instance: Name
    where: Text = ""
    scope: Text = ""

    def has(self, entry: Published, instance: Instance) -> bool:
        """Return whether this is about a published number of an instance."""
        return self.instance == instance.name and self.where in entry.where and self.scope == entry.scope

    def numbers(self) -> Iterator[Number]:
        """Yield the numbers with this scope; a number about more than the instance has a scope."""
        shared: dict[str, Any] = {"run": self.run, "at": self.at, "only_if": self.only_if}
        instance = load(self.instance)
        for entry in instance.published:
            if entry.value is None or not self.has(entry, instance):
                continue
            names = ("method", "quantity", "value", "exact", "relation", "tolerance", "unit")
            own: dict[str, Any] = {name: getattr(entry, name) for name in names}
            note = f"{entry.note} {self.note}".strip()
            yield Number(**own, **shared, place=entry.where, note=note)


class Measured(Item):
    """A quantity of a method of which nothing is printed: a log of a cluster has no figures."""

    method: Name
    quantity: Name = "objective"
    unit: Name = "1"
    statistic: Literal["mean", "largest", "smallest", "smallest mean", "largest mean"] = "mean"


Compared = Number | Order | Trend | Measured


class FigureDrawing(Record):
    """How a figure is drawn: lines or bars along a parameter, a map over two, or a distribution.

    A distribution is that of jobs by completion time or, for ``gru``, of rounds by the fraction of GPUs in use.
    """

    kind: Literal["lines", "bars", "map", "cdf"]
    run: Text = ""
    at: Mapping[Name, Values] = {}
    quantity: Name = "objective"
    methods: tuple[Name, ...] = ()
    along: Text = ""
    across: Text = ""
    title: Text = ""


class Unmeasured(Record):
    """Something printed that no run measures: in words, its value, and the claim of the audit that tests it."""

    what: Name
    value: Text = ""
    claim: Text = ""


class Setting(Record):
    """A figure or table: its runs, assumptions and items; what is printed but not run; and what a test would need.

    It is `complete` if the paper prints everything that the runs need; only then can a printed number be impossible.
    """

    id: Text = ""
    title: Text = rule("what the figure shows, in one line")
    place: Text = rule("its place in the paper, such as Fig. 4, Table 5 or section 5.6")
    needs: Text = ""
    printed: tuple[Unmeasured, ...] = ()
    note: Text = ""
    complete: bool = False
    assumptions: tuple[Assumption, ...] = ()
    runs: tuple[SettingRun, ...] = ()
    numbers: tuple[Number, ...] = ()
    published: tuple[Quoted, ...] = ()
    orders: tuple[Order, ...] = ()
    trends: tuple[Trend, ...] = ()
    measured: tuple[Measured, ...] = ()
    drawings: tuple[FigureDrawing, ...] = ()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        names = [run.name for run in self.runs]
        if len(set(names)) < len(names):
            raise violation("runs", ", ".join(names), "runs of different names")
        if not self.runs and not self.needs:
            raise violation("needs", repr(self.needs), "runs, or what a test would need")
        compared = [item for field in COMPARED for item in getattr(self, field)]
        wanted = [("run", item.run) for item in compared]
        wanted += [("drawings.run", drawing.run) for drawing in self.drawings]
        wanted += [("only_if.run", other.run) for item in compared for other in item.only_if]
        for field, name in wanted:
            if name and name not in names:
                raise violation(field, name, f"one of the runs: {', '.join(names)}")
        declared = [one.name for one in self.assumptions]
        if self.complete and declared:
            raise violation("complete", "true", f"false: the paper leaves open {', '.join(declared)}")
        for other in (other for item in compared for other in item.only_if):
            if other.assumption and other.assumption not in declared:
                raise violation("only_if.assumption", other.assumption, f"one of: {', '.join(declared)}")
        return self

    @property
    def items(self) -> list[Compared]:
        """All compared items."""
        quoted = [number for group in self.published for number in group.numbers()]
        return [*self.numbers, *quoted, *self.orders, *self.trends, *self.measured]

    @property
    def paper(self) -> str:
        """Id of the paper."""
        return self.id.partition("/")[0]

    def run_of(self, name: str) -> SettingRun:
        """Return the run with this name, or the first run if the name is empty."""
        return next(run for run in self.runs if name in ("", run.name))

    def small(self) -> Setting:
        """Return the setting with its changes under ``--quick``."""
        return self.model_copy(update={"runs": tuple(run.small() for run in self.runs)})


def read(path: Path) -> Setting:
    """Read a setting from your own file; raise a one-line `UsageError` if it is invalid."""
    return _checked(read_mapping(path), path.stem, str(path))


def _expanded(table: Any) -> Iterator[Any]:
    """Yield the tables that a table with ``each`` stands for, or the table itself."""
    if not isinstance(table, dict) or not isinstance(table.get("each"), list):
        yield table
        return
    shared = {name: value for name, value in table.items() if name != "each"}
    for one in table["each"]:
        yield {**shared, **one} if isinstance(one, dict) else _filled(shared, str(one))


def _printed(one: Any) -> Any:
    """Return what is printed as a table; ``"what: value"`` is short for one."""
    if not isinstance(one, str):
        return one
    what, _, value = one.rpartition(": ")
    return {"what": what, "value": value} if what else {"what": value}


def _filled(value: Any, text: str) -> Any:
    """Replace each ``{}`` in a value by a text."""
    if isinstance(value, dict):
        return {_filled(key, text): _filled(one, text) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, text) for one in value]
    return value.replace("{}", text) if isinstance(value, str) else value


def _checked(content: Mapping[str, Any], id: str, where: str) -> Setting:
    """Expand the shorthands of a setting and validate it."""
    fields = {name: value for name, value in content.items() if name != "only_if"} | {"id": id}
    if isinstance(figure := fields.get("runs"), str):
        file = _folder().joinpath(f"{figure}.toml")
        if not re.fullmatch(r"[a-z]+/[a-z0-9-]+", figure) or not file.is_file():
            raise UsageError(f"{where}: runs = {figure!r}: expected a figure that has runs (harness list figures)")
        other = tomllib.loads(file.read_text("utf-8"))
        fields["runs"] = other.get("runs")
        fields["assumptions"] = [*other.get("assumptions", []), *fields.get("assumptions", [])]
    if isinstance(printed := fields.get("printed"), list):
        fields["printed"] = [_printed(one) for one in printed]
    for name in ("runs", *COMPARED, "drawings"):
        if isinstance(tables := fields.get(name), list):
            shared = {"only_if": content["only_if"]} if "only_if" in content and name in COMPARED else {}
            expanded = [one for table in tables for one in _expanded(table)]
            fields[name] = [{**shared, **one} if isinstance(one, dict) else one for one in expanded]
    setting = parse(Setting, fields, where)
    try:
        for run in setting.runs:
            run.check()
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return setting


def _folder() -> Traversable:
    return resources.files("schedgap").joinpath("reproductions")


@cache
def known() -> Mapping[str, Setting]:
    """Return the settings of the package by id (``hadar/fig4``), in the order of papers and places."""
    settings = {}
    for paper in sorted((one for one in _folder().iterdir() if one.is_dir()), key=lambda one: one.name):
        for file in paper.iterdir():
            if file.name.endswith(".toml"):
                id = f"{paper.name}/{file.name.removesuffix('.toml')}"
                settings[id] = _checked(tomllib.loads(file.read_text("utf-8")), id, f"reproductions/{id}.toml")
    return dict(sorted(settings.items(), key=lambda item: _place(item[0])))


def _place(id: str) -> tuple[str, str, int, str]:
    """Return the sort key of a setting: paper, word (fig, section, table), number, the rest."""
    paper, _, name = id.partition("/")
    parts = re.fullmatch(r"(?P<word>[a-z]*)(?P<number>[0-9]*)(?P<rest>.*)", name)
    return (paper, parts["word"], int(parts["number"] or 0), parts["rest"]) if parts else (paper, name, 0, "")


def find(names: Sequence[str]) -> list[Setting]:
    """Return the settings with these names: ``hadar/fig4``, ``hadar``, ``all``, or the path of a file.

    Raise `UsageError`, which suggests similar names, if a name is unknown.
    """
    chosen: dict[str, Setting] = {}
    for name in names:
        if name.endswith(".toml"):
            settings = [read(Path(name))]
        else:
            settings = [one for id, one in known().items() if name in (id, one.paper, "all")]
        if not settings:
            papers = dict.fromkeys(one.paper for one in known().values())
            raise UnknownNameError(unknown("figure", name, [*known(), *papers, "all"]))
        chosen |= {one.id: one for one in settings}
    return list(chosen.values())


def about(instances: Iterable[str]) -> list[str]:
    """Return the ids of figures and tables that run on some of these instances, with any parameters."""
    wanted = {name.partition("?")[0] for name in instances}
    references = {id: (ref for run in one.runs for ref in run.references) for id, one in known().items()}
    return [id for id, refs in references.items() if any(ref.partition("?")[0] in wanted for ref in refs)]


def elsewhere(instance: Instance) -> dict[str, list[Published]]:
    """Return the published numbers of an instance that figures measure only on others, by the id of the figure.

    Such a number is about more jobs, about a window of them, or about a trace. The instance itself leads to another.
    """
    by_figure: dict[str, list[Published]] = {}
    for entry in instance.published:
        quoting = [one for one in known().values() if any(quoted.has(entry, instance) for quoted in one.published)]
        if quoting and not any(instance.name in run.references for one in quoting for run in one.runs):
            by_figure.setdefault(quoting[0].id, []).append(entry)
    return by_figure
