"""What a figure or table of a paper is about, as a file: ``reproductions/<paper>/<figure>.toml``.

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
    only_if = [{ setting = "jobs are placed in the policy's order", instead = { "synergy.tune.fifo" = "…" } }]

A run is a sweep (:mod:`schedgap.harness.sweep`); its ``quick`` says what is smaller under ``--quick``. A number is a
mean over everything that ``at`` does not fix. ``[[published]]`` takes the numbers that stand in an instance's file.
What is compared names its run where there are several; ``needs`` says what a figure would take that cannot be tested
here. ``docs/figures.md`` shows what is said once: ``runs`` of another figure, ``only_if`` at the top, and ``each``.
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

from schedgap.harness.sweep import Sweep, Value
from schedgap.instances import load
from schedgap.instances.canonical import parse, read_mapping
from schedgap.instances.errors import UnknownNameError, UsageError
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Name, Record, Text, rule, violation
from schedgap.instances.schema.base import Numbers

Values = Value | tuple[Value, ...]

COMPARED = ("numbers", "published", "orders", "trends")
"""Fields of a setting with what is compared."""


class Run(Sweep):
    """A sweep of a setting: methods or policies on instances."""

    title: Text = ""
    name: Text = ""
    quick: Mapping[Name, Any] = {}

    def small(self) -> Run:
        """Return the run as it is under ``--quick``."""
        said = {**self.model_dump(mode="json", exclude_unset=True), **self.quick}
        return parse(Run, said, f"run {self.name!r}: quick")


class Alternative(Record):
    """A setting that the paper does not state, in which something is compared as well."""

    setting: Name = rule("what is different, in a few words")
    run: Text = ""
    at: Mapping[Name, Values] = {}
    instead: Mapping[Name, Name] = {}


class Item(Record):
    """What all compared things have: where they are printed, which run and points they are about, and what to say."""

    run: Text = ""
    at: Mapping[Name, Values] = {}
    place: Text = ""
    note: Text = ""
    only_if: tuple[Alternative, ...] = ()


class Number(Item):
    """A number that is printed: the mean (or largest, or smallest value) of a quantity over all cases.

    `quantity`, `exact`, `relation` and `tolerance` are as those of :class:`schedgap.instances.schema.Published`.
    """

    method: Name
    quantity: Name = "objective"
    value: Numbers
    exact: Numbers | None = None
    relation: Literal["equal", "at least", "at most"] = "equal"
    tolerance: float = rule("a tolerance is positive", gt=0, default=0.005)
    unit: Name = "1"
    statistic: Literal["mean", "largest", "smallest"] = "mean"


class Order(Item):
    """An ordering that is printed, the best first; with `along` it is one at every value of a parameter."""

    order: Annotated[tuple[Name, ...], Field(min_length=2)]
    quantity: Name = "objective"
    along: Text = ""


class Trend(Item):
    """What a curve does along a parameter, as it is printed; it peaks, or is lowest, at one of `peak`."""

    method: Name
    quantity: Name = "objective"
    along: Name
    shape: Literal["rises", "falls", "peaks", "lowest"]
    peak: tuple[Value, ...] = ()


class Quoted(Item):
    """The numbers that stand in the file of an instance: those whose place contains `where`."""

    instance: Name
    where: Text = ""
    scope: Text = ""

    def numbers(self) -> Iterator[Number]:
        """Yield them; those about more than the instance are asked for by their scope."""
        shared: dict[str, Any] = {"run": self.run, "at": self.at, "only_if": self.only_if}
        for entry in load(self.instance).published:
            if entry.value is None or self.where not in entry.where or self.scope != entry.scope:
                continue
            same = ("method", "quantity", "value", "exact", "relation", "tolerance", "unit")
            told: dict[str, Any] = {name: getattr(entry, name) for name in same}
            note = f"{entry.note} {self.note}".strip()
            yield Number(**told, **shared, place=entry.where, note=note)


class Drawing(Record):
    """How a figure is drawn: lines or bars along a parameter, a map of two, or a distribution.

    A distribution is of jobs by completion time, or with the quantity ``gru`` of rounds by the part of the GPUs in use.
    """

    kind: Literal["lines", "bars", "map", "cdf"]
    run: Text = ""
    at: Mapping[Name, Values] = {}
    quantity: Name = "objective"
    methods: tuple[Name, ...] = ()
    along: Text = ""
    across: Text = ""
    title: Text = ""


class Setting(Record):
    """A figure or table: what is run and compared; what is printed, but cannot be tested, and what that would need."""

    id: Text = ""
    title: Text = rule("what the figure shows, in a line")
    place: Text = rule("Fig. 4, Table 5, section 5.6: where the paper has it")
    needs: Text = ""
    printed: tuple[Text, ...] = ()
    note: Text = ""
    runs: tuple[Run, ...] = ()
    numbers: tuple[Number, ...] = ()
    published: tuple[Quoted, ...] = ()
    orders: tuple[Order, ...] = ()
    trends: tuple[Trend, ...] = ()
    drawings: tuple[Drawing, ...] = ()

    @model_validator(mode="after")
    def _possible(self) -> Self:
        names = [run.name for run in self.runs]
        if len(set(names)) < len(names):
            raise violation("runs", ", ".join(names), "runs of different names")
        if not self.runs and not self.needs:
            raise violation("needs", repr(self.needs), "runs, or what it would need to test it")
        compared = [item for field in COMPARED for item in getattr(self, field)]
        wanted = [("run", item.run) for item in compared]
        wanted += [("drawings.run", drawing.run) for drawing in self.drawings]
        wanted += [("only_if.run", other.run) for item in compared for other in item.only_if]
        for field, name in wanted:
            if name and name not in names:
                raise violation(field, name, f"one of the runs: {', '.join(names)}")
        return self

    @property
    def items(self) -> list[Number | Order | Trend]:
        """Everything that is compared, one by one."""
        quoted = [number for group in self.published for number in group.numbers()]
        return [*self.numbers, *quoted, *self.orders, *self.trends]

    @property
    def paper(self) -> str:
        """The paper that it is of."""
        return self.id.partition("/")[0]

    def run_of(self, name: str) -> Run:
        """Return the run of that name, the first one where none is named."""
        return next(run for run in self.runs if name in ("", run.name))

    def small(self) -> Setting:
        """Return the setting as it is under ``--quick``."""
        return self.model_copy(update={"runs": tuple(run.small() for run in self.runs)})


def read(path: Path) -> Setting:
    """Return what a file of one's own says; raise `UsageError` in one line where it cannot be."""
    return _checked(read_mapping(path), path.stem, str(path))


def _several(table: Any) -> Iterator[Any]:
    if not isinstance(table, dict) or not isinstance(table.get("each"), list):
        yield table
        return
    shared = {name: value for name, value in table.items() if name != "each"}
    for one in table["each"]:
        yield {**shared, **one} if isinstance(one, dict) else _filled(shared, str(one))


def _filled(value: Any, text: str) -> Any:
    """Return a value with a text in place of each ``{}``."""
    if isinstance(value, dict):
        return {_filled(key, text): _filled(one, text) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, text) for one in value]
    return value.replace("{}", text) if isinstance(value, str) else value


def _checked(content: Mapping[str, Any], id: str, where: str) -> Setting:
    # every table that stands for several, and what is said once, written out
    said = {name: value for name, value in content.items() if name != "only_if"} | {"id": id}
    if isinstance(figure := said.get("runs"), str):
        file = _folder().joinpath(f"{figure}.toml")
        if not re.fullmatch(r"[a-z]+/[a-z0-9-]+", figure) or not file.is_file():
            raise UsageError(f"{where}: runs = {figure!r}: a figure that has runs is expected (harness list figures)")
        said["runs"] = tomllib.loads(file.read_text("utf-8")).get("runs")
    for name in ("runs", *COMPARED, "drawings"):
        if isinstance(tables := said.get(name), list):
            shared = {"only_if": content["only_if"]} if "only_if" in content and name in COMPARED else {}
            several = [one for table in tables for one in _several(table)]
            said[name] = [{**shared, **one} if isinstance(one, dict) else one for one in several]
    found = parse(Setting, said, where)
    try:
        for run in found.runs:
            run.check()
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return found


def _folder() -> Traversable:
    return resources.files("schedgap").joinpath("reproductions")


@cache
def known() -> Mapping[str, Setting]:
    """Return the settings that come with the package, by id (``hadar/fig4``), in the order of papers and places."""
    found = {}
    for paper in sorted((one for one in _folder().iterdir() if one.is_dir()), key=lambda one: one.name):
        for file in paper.iterdir():
            if file.name.endswith(".toml"):
                id = f"{paper.name}/{file.name.removesuffix('.toml')}"
                found[id] = _checked(tomllib.loads(file.read_text("utf-8")), id, f"reproductions/{id}.toml")
    return dict(sorted(found.items(), key=lambda item: _place(item[0])))


def _place(id: str) -> tuple[str, str, int, str]:
    """Return what settings are sorted by: paper, word (fig, section, table), number, the rest."""
    paper, _, name = id.partition("/")
    found = re.fullmatch(r"(?P<word>[a-z]*)(?P<number>[0-9]*)(?P<rest>.*)", name)
    return (paper, found["word"], int(found["number"] or 0), found["rest"]) if found else (paper, name, 0, "")


def find(names: Sequence[str]) -> list[Setting]:
    """Return the settings of names: ``hadar/fig4``, ``hadar``, ``all``, or the path of a file.

    It raises `UsageError` if there is none of a name; the message names the nearest ones.
    """
    chosen: dict[str, Setting] = {}
    for name in names:
        if name.endswith(".toml"):
            found = [read(Path(name))]
        else:
            found = [one for id, one in known().items() if name in (id, one.paper, "all")]
        if not found:
            papers = dict.fromkeys(one.paper for one in known().values())
            raise UnknownNameError(unknown("figure", name, [*known(), *papers, "all"]))
        chosen |= {one.id: one for one in found}
    return list(chosen.values())


def about(instances: Iterable[str]) -> list[str]:
    """Return the figures and tables that are about some of these instances, whatever the parameters are."""
    asked = {name.partition("?")[0] for name in instances}
    references = {id: (ref for run in one.runs for ref in run.references) for id, one in known().items()}
    return [id for id, named in references.items() if any(ref.partition("?")[0] in asked for ref in named)]
