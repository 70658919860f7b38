"""Models as files, MPS and LP, and the files in which solvers write their solutions.

Files are written from the arrays that every solver gets, with all digits, and are the same whenever they are written
again. MPS files minimise, as those of MIPLIB do: CBC ignores the section that would say otherwise, so that costs of a
model that maximises stand there with the opposite sign. LP files have the model's own sense.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances.errors import UsageError
from schedgap.models.solve.form import StandardForm

CONSTANT = "constant"
"""Column of an LP file, fixed at 1, that carries the constant of the objective: not all readers take one without."""


def names_of(parts: Sequence[Any], prefix: str, count: int) -> list[str]:
    """Return a name per column or row that every format takes: ``w(0,3,1)`` for Pyomo's ``w[0,3,1]``, each once."""
    if not len(parts):
        return [f"{prefix}{i}" for i in range(count)]
    found: dict[str, int] = {}
    names = []
    for part in parts:
        name = re.sub(r"[^A-Za-z0-9_.,()]", "_", part.name.replace("[", "(").replace("]", ")"))
        found[name] = found.get(name, 0) + 1
        # The two rows of a range have one name in Pyomo.
        names.append(name if found[name] == 1 else f"{name}.{found[name]}")
    return names


class Names(NamedTuple):
    """Names of a form's columns and rows in files."""

    columns: list[str]
    rows: list[str]


def names(form: StandardForm) -> Names:
    """Return the names of columns and rows, those of the Pyomo model."""
    rows, columns = form.matrix.shape
    return Names(names_of(form.columns, "x", columns), names_of(form.rows, "r", rows))


def write_numbered(form: StandardForm, path: Path) -> list[str]:
    """Write the form without its constant as an MPS file with numbers for names; return those of its columns."""
    told = names(replace(form, columns=(), rows=()))
    path.write_text("\n".join(mps(replace(form, offset=0.0), "model", told)) + "\n")
    return told.columns


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def mps(form: StandardForm, name: str, told: Names) -> Iterator[str]:
    """Yield the lines of a free MPS file, which minimises; CBC takes it for a fixed one unless the name says that."""
    sign = -1.0 if form.maximise else 1.0
    low, high = form.row_lower, form.row_upper
    kind = np.where(low == high, "E", np.where(np.isinf(high), "G", "L"))
    kind[np.isinf(low) & np.isinf(high)] = "N"
    yield f"* {'costs negated: the model maximises' if form.maximise else 'the model minimises'}"
    yield from (f"NAME {name} FREE", "ROWS", " N obj")
    yield from (f" {k} {row}" for k, row in zip(kind.tolist(), told.rows, strict=True))
    yield "COLUMNS"
    yield from _columns(form, sign, told)
    yield "RHS"
    if form.offset:
        yield f"    RHS obj {_number(-sign * form.offset)}"
    right = np.where(kind == "G", low, high)
    yield from (f"    RHS {told.rows[i]} {_number(right[i])}" for i in np.flatnonzero((right != 0) & (kind != "N")))
    ranged = np.flatnonzero((kind == "L") & np.isfinite(low))
    if ranged.size:
        yield "RANGES"
        yield from (f"    RNG {told.rows[i]} {_number(high[i] - low[i])}" for i in ranged)
    yield "BOUNDS"
    for column, lower, upper in zip(told.columns, form.lower.tolist(), form.upper.tolist(), strict=True):
        yield from (f" {line}" for line in _bounds(column, lower, upper))
    yield "ENDATA"


def _columns(form: StandardForm, sign: float, told: Names) -> Iterator[str]:
    starts, rows, data = form.matrix.indptr.tolist(), form.matrix.indices.tolist(), form.matrix.data.tolist()
    marked = False
    for j, (column, cost, integer) in enumerate(
        zip(told.columns, form.cost.tolist(), form.integer.tolist(), strict=True)
    ):
        if integer != marked:
            marked = integer
            yield f"    MARKER 'MARKER' '{'INTORG' if integer else 'INTEND'}'"
        if cost or starts[j] == starts[j + 1]:  # one without entries would be unknown to the section of bounds
            yield f"    {column} obj {_number(sign * cost)}"
        yield from (f"    {column} {told.rows[rows[k]]} {_number(data[k])}" for k in range(starts[j], starts[j + 1]))
    if marked:
        yield "    MARKER 'MARKER' 'INTEND'"


def _bounds(column: str, lower: float, upper: float) -> list[str]:
    """Return the bounds of a column, all of them: readers differ in what they take an integer column to have."""
    if lower == upper:
        return [f"FX BND {column} {_number(lower)}"]
    if np.isinf(lower) and np.isinf(upper):
        return [f"FR BND {column}"]
    low = f"MI BND {column}" if np.isinf(lower) else f"LO BND {column} {_number(lower)}"
    return [low, f"PL BND {column}" if np.isinf(upper) else f"UP BND {column} {_number(upper)}"]


def lp(form: StandardForm, name: str, told: Names) -> Iterator[str]:
    """Yield the lines of an LP file (CPLEX's format)."""
    matrix = form.matrix.tocsr()
    yield f"\\ {name}"
    yield "Maximize" if form.maximise else "Minimize"
    used = np.flatnonzero(form.cost)
    yield " obj:"
    yield from _terms(form.cost[used], used, told.columns)
    if form.offset:
        yield f"  {'+' if form.offset >= 0 else '-'} {_number(abs(form.offset))} {CONSTANT}"
    yield "Subject To"
    for i, row in enumerate(told.rows):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        low, high = form.row_lower[i], form.row_upper[i]
        sides = [("=", low)] if low == high else [(">=", low)] * bool(np.isfinite(low))
        sides += [("<=", high)] * bool(np.isfinite(high) and low != high)
        for n, (sense, side) in enumerate(sides):
            yield f" {row}{'.upper' * n}:"
            yield from _terms(matrix.data[part], matrix.indices[part], told.columns)
            yield f"  {sense} {_number(side)}"
    yield "Bounds"
    for column, lower, upper in zip(told.columns, form.lower.tolist(), form.upper.tolist(), strict=True):
        left = "-inf" if np.isinf(lower) else _number(lower)
        yield f" {left} <= {column} <= {'+inf' if np.isinf(upper) else _number(upper)}"
    if form.offset:
        yield f" {CONSTANT} = 1"
    yield "Generals"
    yield from (f" {told.columns[j]}" for j in np.flatnonzero(form.integer))
    yield "End"


def _terms(values: Any, columns: Any, told: Sequence[str]) -> Iterator[str]:
    """Yield a term per line: readers limit the length of lines."""
    if not len(values):
        yield f"  0 {told[0]}"
    for value, j in zip(values.tolist(), columns.tolist(), strict=True):
        yield f"  {'-' if value < 0 else '+'} {_number(abs(value))} {told[j]}"


WRITERS: Mapping[str, Callable[[StandardForm, str, Names], Iterator[str]]] = {".mps": mps, ".lp": lp}
"""Formats of models by the end of a file's name."""


# ---------------------------------------------------------------- solutions


@dataclass(frozen=True)
class Answer:
    """What a solution file says: the objective as its solver counts it, and values by column.

    `complete` says whether every column stands in it, or only those that are not 0.
    """

    solver: str
    status: str
    objective: float | None
    values: Mapping[str, float]
    complete: bool


class _Reader:
    """Lines of a solution file, numbered; what is wrong is told with file and line."""

    def __init__(self, where: str, text: str) -> None:
        self.where, self.lines = where, text.splitlines()
        self.text = text

    def fail(self, number: int, what: str) -> UsageError:
        return UsageError(f"{self.where}: line {number}: {what}")

    def number(self, line: int, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise self.fail(line, f"{text[:40]!r} is not a number") from None
        if not np.isfinite(value):
            raise self.fail(line, f"{text[:40]!r} is not finite")
        return value

    def pairs(self, first: int, last: int, name: int = 0) -> dict[str, float]:
        """Return the values in lines `first` to `last`, from 0; their names stand in field `name`."""
        found: dict[str, float] = {}
        for at in range(first, last):
            fields = self.lines[at].replace("**", "").split()
            if not fields:
                continue
            if len(fields) < name + 2:
                raise self.fail(at + 1, f"{self.lines[at].strip()[:40]!r} has no value: the file is truncated")
            if fields[name] in found:
                raise self.fail(at + 1, f"column {fields[name]} is there twice")
            found[fields[name]] = self.number(at + 1, fields[name + 1])
        return found

    def after(self, at: int, sign: str) -> float | None:
        text = self.lines[at].rpartition(sign)[2].strip()
        return self.number(at + 1, text) if text else None


def _highs(told: _Reader) -> Answer:
    try:
        at = next(i for i, line in enumerate(told.lines) if line.startswith("# Primal solution values"))
        count = next(i for i, line in enumerate(told.lines) if i > at and line.startswith("# Columns"))
    except StopIteration:
        raise told.fail(len(told.lines), "no primal solution: the file is truncated, or there is none") from None
    columns = int(told.number(count + 1, told.lines[count].split()[2]))
    end = count + 1 + columns
    if end > len(told.lines):
        raise told.fail(len(told.lines), f"{len(told.lines) - count - 1} of {columns} columns: the file is truncated")
    values = told.pairs(count + 1, end)
    objective = next((i for i in range(at, count) if told.lines[i].startswith("Objective")), None)
    value = None if objective is None else told.after(objective, " ")
    return Answer("HiGHS", told.lines[1].strip(), value, values, complete=True)


def _gurobi(told: _Reader) -> Answer:
    first = next((i for i, line in enumerate(told.lines) if not line.startswith("#")), len(told.lines))
    objective = next((i for i in range(first) if "Objective value" in told.lines[i]), None)
    value = None if objective is None else told.after(objective, "=")
    return Answer("Gurobi", "", value, told.pairs(first, len(told.lines)), complete=True)


def _scip(told: _Reader) -> Answer:
    at = next((i for i, line in enumerate(told.lines) if line.startswith("objective value")), None)
    if at is None:
        raise told.fail(len(told.lines), "no objective value: the file is truncated, or SCIP found no solution")
    status = told.lines[0].partition(":")[2].strip() if at else ""
    return Answer("SCIP", status, told.after(at, ":"), told.pairs(at + 1, len(told.lines)), complete=False)


def _cbc(told: _Reader) -> Answer:
    status, _, _ = told.lines[0].partition(" - ")
    value = told.after(0, "objective value")
    return Answer("CBC", status, value, told.pairs(1, len(told.lines), name=1), complete=False)


FORMATS: tuple[tuple[str, Callable[[_Reader], Answer]], ...] = (
    (r"Model status", _highs),
    (r"# (Solution|Objective)", _gurobi),
    (r"(solution status|objective value):", _scip),
    (r"(Optimal|Stopped|Infeasible|Integer infeasible|Unbounded|Status).* - objective value", _cbc),
)
"""Formats of solutions by how their first line begins."""


def read_solution(where: str, text: str) -> Answer:
    """Return what a file of HiGHS, Gurobi, SCIP or CBC says; raise `UsageError`, naming it `where`, for any other."""
    told = _Reader(where, text)
    for begins, read in FORMATS:
        if re.match(begins, text):
            return read(told)
    first = told.lines[0].strip()[:60] if told.lines else ""
    raise told.fail(1, f"{first!r} does not begin a solution of HiGHS, CBC, SCIP or Gurobi")
