"""Writers of model files (MPS and LP), and readers of solvers' solution files.

Model files are written from the arrays that every solver gets, with all digits, and reproducibly. MPS files always
minimise, like those of MIPLIB, because CBC ignores the section that would set the sense; the costs of a model that
maximises are negated there. LP files have the model's own sense.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from schedgap.instances.errors import UsageError
from schedgap.models.engine.solve.form import StandardForm

CONSTANT = "constant"
"""Column of LP files, fixed at 1, whose cost is the objective's constant: not all readers accept a bare constant."""


def names_of(parts: Sequence[Any], prefix: str, count: int) -> list[str]:
    """Return unique names of columns or rows that every format accepts: ``w(0,3,1)`` for Pyomo's ``w[0,3,1]``."""
    if not len(parts):
        return [f"{prefix}{i}" for i in range(count)]
    uses: dict[str, int] = {}
    names = []
    for part in parts:
        name = re.sub(r"[^A-Za-z0-9_.,()]", "_", part.name.replace("[", "(").replace("]", ")"))
        uses[name] = uses.get(name, 0) + 1
        # The two rows of a range constraint share a name in Pyomo.
        names.append(name if uses[name] == 1 else f"{name}.{uses[name]}")
    return names


class Names(NamedTuple):
    """Names of a form's columns and rows in files."""

    columns: list[str]
    rows: list[str]


def names(form: StandardForm) -> Names:
    """Return the names of columns and rows, as in the Pyomo model."""
    rows, columns = form.matrix.shape
    return Names(names_of(form.columns, "x", columns), names_of(form.rows, "r", rows))


def write_numbered(form: StandardForm, path: Path) -> list[str]:
    """Write a form, without its constant, to an MPS file with numbered names; return the names of the columns."""
    numbered = names(replace(form, columns=(), rows=()))
    path.write_text("\n".join(mps(replace(form, offset=0.0), "model", numbered)) + "\n")
    return numbered.columns


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def mps(form: StandardForm, name: str, names: Names) -> Iterator[str]:
    """Yield the lines of an MPS file in free format, which minimises; CBC recognises it by ``FREE`` after the name."""
    sign = -1.0 if form.maximise else 1.0
    low, high = form.row_lower, form.row_upper
    kind = np.where(low == high, "E", np.where(np.isinf(high), "G", "L"))
    kind[np.isinf(low) & np.isinf(high)] = "N"
    yield f"* {'costs negated: the model maximises' if form.maximise else 'the model minimises'}"
    yield from (f"NAME {name} FREE", "ROWS", " N obj")
    yield from (f" {k} {row}" for k, row in zip(kind.tolist(), names.rows, strict=True))
    yield "COLUMNS"
    yield from _columns(form, sign, names)
    yield "RHS"
    if form.offset:
        yield f"    RHS obj {_number(-sign * form.offset)}"
    right = np.where(kind == "G", low, high)
    yield from (f"    RHS {names.rows[i]} {_number(right[i])}" for i in np.flatnonzero((right != 0) & (kind != "N")))
    ranged = np.flatnonzero((kind == "L") & np.isfinite(low))
    if ranged.size:
        yield "RANGES"
        yield from (f"    RNG {names.rows[i]} {_number(high[i] - low[i])}" for i in ranged)
    yield "BOUNDS"
    for column, lower, upper in zip(names.columns, form.lower.tolist(), form.upper.tolist(), strict=True):
        yield from (f" {line}" for line in _bounds(column, lower, upper))
    yield "ENDATA"


def _columns(form: StandardForm, sign: float, names: Names) -> Iterator[str]:
    starts, rows, data = form.matrix.indptr.tolist(), form.matrix.indices.tolist(), form.matrix.data.tolist()
    marked = False
    for j, (column, cost, integer) in enumerate(
        zip(names.columns, form.cost.tolist(), form.integer.tolist(), strict=True)
    ):
        if integer != marked:
            marked = integer
            yield f"    MARKER 'MARKER' '{'INTORG' if integer else 'INTEND'}'"
        if cost or starts[j] == starts[j + 1]:  # a column without entries would be undefined in the BOUNDS section
            yield f"    {column} obj {_number(sign * cost)}"
        yield from (f"    {column} {names.rows[rows[k]]} {_number(data[k])}" for k in range(starts[j], starts[j + 1]))
    if marked:
        yield "    MARKER 'MARKER' 'INTEND'"


def _bounds(column: str, lower: float, upper: float) -> list[str]:
    """Return all bounds of a column, even default ones: readers differ in the defaults of integer columns."""
    if lower == upper:
        return [f"FX BND {column} {_number(lower)}"]
    if np.isinf(lower) and np.isinf(upper):
        return [f"FR BND {column}"]
    low = f"MI BND {column}" if np.isinf(lower) else f"LO BND {column} {_number(lower)}"
    return [low, f"PL BND {column}" if np.isinf(upper) else f"UP BND {column} {_number(upper)}"]


def lp(form: StandardForm, name: str, names: Names) -> Iterator[str]:
    """Yield the lines of an LP file (CPLEX's format)."""
    matrix = form.matrix.tocsr()
    yield f"\\ {name}"
    yield "Maximize" if form.maximise else "Minimize"
    used = np.flatnonzero(form.cost)
    yield " obj:"
    yield from _terms(form.cost[used], used, names.columns)
    if form.offset:
        yield f"  {'+' if form.offset >= 0 else '-'} {_number(abs(form.offset))} {CONSTANT}"
    yield "Subject To"
    for i, row in enumerate(names.rows):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        low, high = form.row_lower[i], form.row_upper[i]
        sides = [("=", low)] if low == high else [(">=", low)] * bool(np.isfinite(low))
        sides += [("<=", high)] * bool(np.isfinite(high) and low != high)
        for n, (sense, side) in enumerate(sides):
            yield f" {row}{'.upper' * n}:"
            yield from _terms(matrix.data[part], matrix.indices[part], names.columns)
            yield f"  {sense} {_number(side)}"
    yield "Bounds"
    for column, lower, upper in zip(names.columns, form.lower.tolist(), form.upper.tolist(), strict=True):
        left = "-inf" if np.isinf(lower) else _number(lower)
        yield f" {left} <= {column} <= {'+inf' if np.isinf(upper) else _number(upper)}"
    if form.offset:
        yield f" {CONSTANT} = 1"
    yield "Generals"
    yield from (f" {names.columns[j]}" for j in np.flatnonzero(form.integer))
    yield "End"


def _terms(values: Any, columns: Any, names: Sequence[str]) -> Iterator[str]:
    """Yield the terms of a sum, one per line, since readers limit the length of lines."""
    if not len(values):
        yield f"  0 {names[0]}"
    for value, j in zip(values.tolist(), columns.tolist(), strict=True):
        yield f"  {'-' if value < 0 else '+'} {_number(abs(value))} {names[j]}"


WRITERS: Mapping[str, Callable[[StandardForm, str, Names], Iterator[str]]] = {".mps": mps, ".lp": lp}
"""Writers of model files by file extension."""


# ---------------------------------------------------------------- solutions


@dataclass(frozen=True)
class SolutionFile:
    """Content of a solution file: the objective in the solver's own sense, and values by column.

    `complete` says whether the file lists every column, or only those with nonzero values.
    """

    solver: str
    status: str
    objective: float | None
    values: Mapping[str, float]
    complete: bool


class _Reader:
    """Numbered lines of a solution file; errors name the file and the line."""

    def __init__(self, where: str, text: str) -> None:
        self.where, self.lines = where, text.splitlines()

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
        """Return the values in lines `first` to `last - 1`, counted from 0, by the names in field `name`."""
        values: dict[str, float] = {}
        for at in range(first, last):
            fields = self.lines[at].replace("**", "").split()
            if not fields:
                continue
            if len(fields) < name + 2:
                raise self.fail(at + 1, f"{self.lines[at].strip()[:40]!r} has no value: the file is truncated")
            if fields[name] in values:
                raise self.fail(at + 1, f"column {fields[name]} occurs twice")
            values[fields[name]] = self.number(at + 1, fields[name + 1])
        return values

    def after(self, at: int, sign: str) -> float | None:
        text = self.lines[at].rpartition(sign)[2].strip()
        return self.number(at + 1, text) if text else None


def _highs(reader: _Reader) -> SolutionFile:
    try:
        at = next(i for i, line in enumerate(reader.lines) if line.startswith("# Primal solution values"))
        count = next(i for i, line in enumerate(reader.lines) if i > at and line.startswith("# Columns"))
    except StopIteration:
        raise reader.fail(len(reader.lines), "no primal solution: the file is truncated, or HiGHS found none") from None
    columns = int(reader.number(count + 1, reader.lines[count].split()[2]))
    end = count + 1 + columns
    if end > len(reader.lines):
        raise reader.fail(
            len(reader.lines), f"{len(reader.lines) - count - 1} of {columns} columns: the file is truncated"
        )
    values = reader.pairs(count + 1, end)
    objective = next((i for i in range(at, count) if reader.lines[i].startswith("Objective")), None)
    value = None if objective is None else reader.after(objective, " ")
    return SolutionFile("HiGHS", reader.lines[1].strip(), value, values, complete=True)


def _gurobi(reader: _Reader) -> SolutionFile:
    first = next((i for i, line in enumerate(reader.lines) if not line.startswith("#")), len(reader.lines))
    objective = next((i for i in range(first) if "Objective value" in reader.lines[i]), None)
    value = None if objective is None else reader.after(objective, "=")
    return SolutionFile("Gurobi", "", value, reader.pairs(first, len(reader.lines)), complete=True)


def _scip(reader: _Reader) -> SolutionFile:
    at = next((i for i, line in enumerate(reader.lines) if line.startswith("objective value")), None)
    if at is None:
        raise reader.fail(len(reader.lines), "no objective value: the file is truncated, or SCIP found no solution")
    status = reader.lines[0].partition(":")[2].strip() if at else ""
    return SolutionFile("SCIP", status, reader.after(at, ":"), reader.pairs(at + 1, len(reader.lines)), complete=False)


def _cbc(reader: _Reader) -> SolutionFile:
    status, _, _ = reader.lines[0].partition(" - ")
    value = reader.after(0, "objective value")
    return SolutionFile("CBC", status, value, reader.pairs(1, len(reader.lines), name=1), complete=False)


FORMATS: tuple[tuple[str, Callable[[_Reader], SolutionFile]], ...] = (
    (r"Model status", _highs),
    (r"# (Solution|Objective)", _gurobi),
    (r"(solution status|objective value):", _scip),
    (r"(Optimal|Stopped|Infeasible|Integer infeasible|Unbounded|Status).* - objective value", _cbc),
)
"""Readers of solution files, each with a pattern for the beginning of the first line."""


def read_solution(where: str, text: str) -> SolutionFile:
    """Read a solution file of HiGHS, Gurobi, SCIP or CBC; a `UsageError` about it names the file as `where`."""
    reader = _Reader(where, text)
    for begins, read in FORMATS:
        if re.match(begins, text):
            return read(reader)
    first = reader.lines[0].strip()[:60] if reader.lines else ""
    raise reader.fail(1, f"{first!r} does not begin a solution of HiGHS, CBC, SCIP or Gurobi")
