"""Solvers by name, with options of their own: ``highs?mip_heuristic_effort=0&presolve=off``.

A solver is configured as a method is (:mod:`schedgap.instances.parameters`): its parameters are its own options, with
types, ranges and defaults as it states them. Those that the product sets itself are refused with what to use instead.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import highspy

from schedgap.instances.errors import UnknownNameError
from schedgap.instances.parameters import Parameter, Parametrised, Value, base_id, configured
from schedgap.instances.registry import unknown

Algorithm = Literal["choose", "simplex", "ipm", "hipo", "pdlp"]

HIGHS: dict[str, Algorithm] = {"highs": "choose", "highs:ipm": "ipm", "highs:hipo": "hipo", "highs:pdlp": "pdlp"}
"""HiGHS's algorithms for linear programs, by their names as solvers."""

LICENSED = ("gurobi", "cplex", "copt", "xpress")

SOLVERS = (*HIGHS, "cbc", "scip", "cp-sat", *LICENSED)
"""All solvers for models that are solved as one program."""

FIXED = "left as it is, since certified results rely on it"
FILES = "left as it is: solves read and write no files"
ALGORITHM = "chosen by the solver's name: highs:ipm, highs:hipo or highs:pdlp"

INSTEAD: Mapping[str, str] = {
    "time_limit": "given as --time-limit",
    "threads": "given as --threads",
    "random_seed": "given as --seed",
    "mip_max_nodes": "given as --nodes",
    **dict.fromkeys(("mip_rel_gap", "mip_abs_gap"), "given as --rel-gap"),
    **dict.fromkeys(("output_flag", "log_to_console", "log_file"), "given as --solver-logs"),
    **dict.fromkeys(("solver", "mip_lp_solver"), ALGORITHM),
    **dict.fromkeys(("infinite_cost", "infinite_bound", "small_matrix_value", "large_matrix_value"), FIXED),
    **dict.fromkeys(("user_objective_scale", "user_bound_scale", "objective_bound", "objective_target"), FIXED),
}
"""What to do instead of setting an option of HiGHS that the product sets."""


@dataclass(frozen=True)
class Taken(Parameter):
    """An option that is refused; `instead` completes "must be"."""

    instead: str = ""

    def range(self, default: Value) -> str:
        """Return what to do instead."""
        return self.instead

    def read(self, text: str, default: Value) -> Value:
        """Raise `ValueError`."""
        raise ValueError(text)


@dataclass(frozen=True)
class Solver(Parametrised):
    """A solver whose parameters are its own options, with their `defaults` by name."""

    paper: str = ""
    defaults: Mapping[str, Value] = field(default_factory=dict)

    def default(self, parameter: Parameter) -> Value:
        """Return the solver's own default of one of its options."""
        return self.defaults[parameter.name]


class SolverName(Parameter):
    """A parameter whose value is the name of a solver, possibly with options."""

    def read(self, text: str, default: Value) -> Value:
        """Return the name as :func:`solver` writes it."""
        if base_id(text) not in self.choices:
            raise ValueError(text)
        return solver(text).id


@functools.lru_cache(maxsize=1000)
def solver(name: str) -> Solver:
    """Return the solver with this name; its id states the options that differ from their defaults.

    It raises `UnknownNameError` for an unknown solver or option, and `UsageError` for a value that is out of range.
    """
    base, question, query = name.partition("?")
    if base not in SOLVERS:
        raise UnknownNameError(unknown("solver", base, SOLVERS))
    if not question:
        return Solver(base)
    if base not in HIGHS:
        raise UnknownNameError(f"{name}: options after a question mark are for highs, not for {base}")
    return configured(replace(_highs(), id=base), query)


ENTRY = re.compile(
    r"^# (?P<meaning>.*)\n"
    r"# \[type: (?P<kind>\w+),.*?(?: range: [\[{](?P<least>\S+), (?P<most>\S+)[\]}],)?"
    r" default: \"?(?P<default>.*?)\"?\]\n"
    r"(?P<name>\w+) = ",
    re.M,
)
"""An option in the file that HiGHS writes."""

KINDS: Mapping[str, Callable[[str], Value]] = {"bool": "true".__eq__, "integer": int, "double": float, "string": str}


@functools.cache
def _highs() -> Solver:
    """Return HiGHS with the options that it writes to a file of options."""
    with tempfile.TemporaryDirectory() as folder:
        path, highs = Path(folder) / "options", highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.writeOptions(str(path))
        entries = [match.groupdict() for match in ENTRY.finditer(path.read_text())]
    defaults = {entry["name"]: KINDS[entry["kind"]](entry["default"]) for entry in entries}
    own = sorted(map(_parameter, entries), key=lambda parameter: isinstance(parameter, Taken))
    return Solver("highs", parameters=tuple(own), defaults=defaults)


def _parameter(entry: Mapping[str, str]) -> Parameter:
    """Return an option of HiGHS as a parameter; words that it accepts stand in quotes in its meaning."""
    name, meaning = entry["name"], entry["meaning"]
    if instead := INSTEAD.get(name) or (FIXED if "tolerance" in name else FILES if "file" in name else ""):
        return Taken(name, meaning, instead=instead)
    if entry["kind"] not in ("integer", "double"):
        return Parameter(name, meaning, choices=tuple(re.findall(r'"(\w+)"', meaning)))
    return Parameter(name, meaning, least=float(entry["least"]), most=float(entry["most"]))
