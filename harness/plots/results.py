"""What figures of a comparison are drawn from: its papers and its instances."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.figure import Part, parts
from schedgap.harness.plots.style import Look, looks
from schedgap.harness.text import clean
from schedgap.instances.parameters import base_id
from schedgap.instances.registry import PAPERS

MAX_INSTANCES = 4
"""Instances of a run that have figures of their own, the first of them."""

D = TypeVar("D")


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared(Part):
    """Results of a comparison that are about one paper, on all instances or on one.

    Attributes
    ----------
    run
        The whole run.
    rows
        The results.
    """

    run: Comparison
    rows: list[Row]

    @cached_property
    def view(self) -> Any:
        """The paper's view of the (first) instance of the rows."""
        return PAPERS.get(self.group).view(self.run.instances[self.rows[0].fingerprint])

    @cached_property
    def decisions(self) -> dict[str, Any]:
        """Verified decisions by method, in the order of the rows; of several seeds the first."""
        return self._first(self.run.decisions, lambda row: bool(row.verified))

    @cached_property
    def prices(self) -> dict[str, Any]:
        """Prices that bounds come from, by method, in the order of the rows; of several seeds the first."""
        return self._first(self.run.prices, lambda row: row.verified is not False)

    def _first(self, found: Mapping[Any, Any], counts: Callable[[Row], bool]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for row in self.rows:
            if counts(row) and found.get(row.name) is not None:
                known.setdefault(row.method, found[row.name])
        return known

    def running(self, kind: type[D]) -> dict[str, D]:
        """Return the verified decisions of that type in which some job runs, by method."""
        return {method: d for method, d in self.decisions.items() if isinstance(d, kind) and d.job.size}  # type: ignore[attr-defined]

    def beside(
        self, online: str, decisions: Mapping[str, D], rivals: Callable[[Row], bool], sign: float = 1.0
    ) -> dict[str, D]:
        """Return the best of the other decisions (that of least objective if `sign` is −1), and that of `online`."""
        rows = [row for row in self.rows if row.method in decisions and row.method != online and rivals(row)]
        best = max(rows, key=lambda row: sign * (row.objective or 0.0), default=None)
        shown = [*([best.method] if best else []), online]
        return {method: decisions[method] for method in shown if method in decisions}

    def results(self, problem: str) -> list[Row]:
        """Return the verified results of a problem, of several seeds the first, those of least objective first."""
        known: dict[str, Row] = {}
        for row in self.rows:
            if row.problem == problem and row.verified and row.objective is not None:
                known.setdefault(row.method, row)
        return sorted(known.values(), key=lambda row: row.objective or 0.0)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Look of each method of the paper in the whole run, those that decide without settings of their own first."""
        mine = {row.method: row for row in self.run.rows if row.paper == self.group}
        return looks(sorted(mine, key=lambda m: "?" in m or mine[m].kind in ("relaxation", "bound")))

    def sample(self, drawn: Iterable[Row]) -> str:
        """Return the end of a caption: ``n = 7 results of 5 methods on …``, and what is not drawn."""
        methods = [row.method for row in drawn]
        count = counted(len(set(methods)), "method")
        return f"n = {counted(len(methods), 'result')} of {count} on {self.where}.{self.left_out}"

    def n(self, drawn: int, what: str = "") -> str:
        """Return the end of a caption: ``n = 3 jobs, 2 methods on …``, and what is not drawn."""
        seeds = " Of several seeds the first is shown." if len({row.seed for row in self.rows}) > 1 else ""
        size = what or counted(self.view.size, "job")
        return f"n = {size}, {counted(drawn, 'method')} on {self.where}.{seeds}{self.left_out}"

    @property
    def left_out(self) -> str:
        """Sentence about the results that no figure draws, behind a space; empty where there are none."""
        counts = {
            "WRONG": sum(row.wrong for row in self.rows),
            "failed": sum(row.failed for row in self.rows),
            "skipped": sum(row.status == "skipped" for row in self.rows),
        }
        listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f" Not drawn: {listed}." if listed else ""


@parts.register
def _(run: Comparison) -> list[Compared]:
    found = []
    for paper in dict.fromkeys(row.paper for row in run.rows):
        rows = [row for row in run.rows if row.paper == paper]
        found.append(_part(run, "paper", paper, rows))
        prints = list(dict.fromkeys(row.fingerprint for row in rows))
        for fingerprint in prints[:MAX_INSTANCES]:
            suffix = f"-{fingerprint[:8]}" if len(prints) > 1 else ""
            mine = [row for row in rows if row.fingerprint == fingerprint]
            found.append(_part(run, "instance", paper, mine, suffix))
    return found


def _part(run: Comparison, of: str, paper: str, rows: list[Row], suffix: str = "") -> Compared:
    names = dict.fromkeys(row.instance for row in rows)
    where = clean(next(iter(names)), 40) if len(names) == 1 else f"{len(names)} instances"
    heading = f"{clean(paper, 20)} on {where}"
    return Compared(of=of, group=paper, heading=heading, where=where, suffix=suffix, run=run, rows=rows)


def counted(number: int, noun: str) -> str:
    """Return ``1 tenant`` or ``3 tenants``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def fitting(methods: Collection[str], most: int) -> tuple[list[str], str]:
    """Return the methods that find room, and a sentence about the others; those with settings are left out first."""
    kept = sorted(methods, key=lambda method: base_id(method) != method)[:most]
    out = ", ".join(clean(method, 30) for method in methods if method not in kept)
    return [method for method in methods if method in kept], f"No room for: {out}. " if out else ""
