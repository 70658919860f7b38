"""Solvers by name, with options of their own: ``highs?mip_heuristic_effort=0&presolve=off``.

A solver is configured like a method (:mod:`schedgap.instances.parameters`): its parameters are its own options, with
the types, defaults and ranges that it states. SCIP, CP-SAT and MPAX check ranges themselves, once they run. Options
that schedgap sets itself are refused, with a message that says what to use instead.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import highspy

from schedgap.instances.errors import UnknownNameError
from schedgap.instances.parameters import Parameter, Parametrised, Value, base_id, configured, pairs
from schedgap.instances.registry import unknown

Algorithm = Literal["choose", "simplex", "ipm", "hipo", "pdlp"]

HIGHS: dict[str, Algorithm] = {"highs": "choose", "highs:ipm": "ipm", "highs:hipo": "hipo", "highs:pdlp": "pdlp"}
"""HiGHS's algorithms for linear programs, by their names as solvers."""

LICENSED = ("gurobi", "cplex", "copt", "xpress")

SOLVERS = (*HIGHS, "cbc", "scip", "cp-sat", "mpax", *LICENSED)
"""All solvers for models that are solved as one program."""

FIXED = "left as it is, since certified results rely on it"
FILES = "left as it is: solves read and write no files"
ALGORITHM = "chosen by the solver's name: highs:ipm, highs:hipo or highs:pdlp"

PARTS = "left as it is: it runs in parts, within --time-limit"
OUTPUT = "left as it is: what the solver prints is read by the program"

INSTEAD: Sequence[tuple[str, str]] = (
    (r"time_limit|limits/time|max_time_in_seconds", "given as --time-limit"),
    (r"threads|lp/threads|parallel/.*nthreads|num_(search_)?workers", "given as --threads"),
    (r"random_seed|randomization/randomseedshift", "given as --seed"),
    (r"mip_max_nodes|limits/(total)?nodes", "given as --nodes"),
    (r"mip_(rel|abs)_gap|limits/(abs)?gap|(relative|absolute)_gap_limit", "given as --rel-gap"),
    (r"output_flag|log_to_console|log_file", "given as --solver-logs"),
    (r"iteration_limit|warm_start|jit|unroll|debug|verbose|display_frequency", PARTS),
    (r"solver|mip_lp_solver", ALGORITHM),
    (r".*tolerance.*|numerics/.*|infinite_.*|(small|large)_matrix_value", FIXED),
    (r"user_(objective|bound)_scale|objective_(bound|target)", FIXED),
    (r"log_.*|display/.*", OUTPUT),
    (r".*file(name)?", FILES),
)
"""Options that schedgap sets itself, and what to do instead of setting them; the first pattern that matches counts."""


@dataclass(frozen=True)
class Taken(Parameter):
    """An option that users may not set; `instead` says what to do, and completes the words "must be"."""

    instead: str = ""

    def range(self, default: Value) -> str:
        """Return what to do instead of setting the option, where other options have their range."""
        return self.instead

    def read(self, text: str, default: Value) -> Value:
        """Raise `ValueError`: no value is accepted."""
        raise ValueError(text)


class Word(Parameter):
    """An option of any text, which the solver itself checks."""

    def range(self, default: Value) -> str:
        """Return the accepted values in words."""
        return "a word"

    def read(self, text: str, default: Value) -> Value:
        """Return the text."""
        return text


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
        """Return the solver's name in the form that :func:`solver` gives it."""
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
    if base in HIGHS:
        return configured(replace(_highs(), id=base), query)
    if base not in PACKAGES:
        those = "highs, scip, cp-sat and mpax"
        raise UnknownNameError(f"{name}: options after a question mark are for {those}, not for {base}")
    if importlib.util.find_spec(PACKAGES[base]):
        return configured(_of_program(base), query)
    names = pairs(query, base, f"{base}?name=value")  # rows of a solver that is not installed are skipped, but readable
    return configured(_solver(base, [Word(each, "") for each in names], dict.fromkeys(names, "")), query)


PACKAGES = {"scip": "pyscipopt", "cp-sat": "ortools", "mpax": "mpax"}
"""Packages of the solvers that run in a program of their own."""


@functools.cache
def _of_program(base: str) -> Solver:
    """Return a solver with the options that its program lists."""
    program = Path(__file__).parent / "solvers" / "_programs.py"
    listed = subprocess.run([sys.executable, "-P", str(program), base], check=True, capture_output=True, text=True)
    entries: list[tuple[str, Value, list[str]]] = json.loads(listed.stdout)
    words = {name for name, default, choices in entries if isinstance(default, str) and not choices}
    own = [(Word if name in words else Parameter)(name, "", choices=tuple(choices)) for name, _, choices in entries]
    return _solver(base, own, {name: default for name, default, _ in entries})


def _solver(base: str, own: Iterable[Parameter], defaults: Mapping[str, Value]) -> Solver:
    """Return a solver with its own options, of which those that schedgap sets are refused."""
    parameters = [_or_taken(parameter) for parameter in own]
    return Solver(base, parameters=tuple(sorted(parameters, key=lambda p: isinstance(p, Taken))), defaults=defaults)


def _or_taken(parameter: Parameter) -> Parameter:
    """Return an option of a solver; one that schedgap sets itself becomes a :class:`Taken` option."""
    instead = next((text for pattern, text in INSTEAD if re.fullmatch(pattern, parameter.name)), None)
    return Taken(parameter.name, parameter.meaning, instead=instead) if instead else parameter


ENTRY = re.compile(
    r"^# (?P<meaning>.*)\n"
    r"# \[type: (?P<kind>\w+),.*?(?: range: [\[{](?P<least>\S+), (?P<most>\S+)[\]}],)?"
    r" default: \"?(?P<default>.*?)\"?\]\n"
    r"(?P<name>\w+) = ",
    re.M,
)
"""Pattern of an option in the file of options that HiGHS writes."""

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
    return _solver("highs", map(_parameter, entries), defaults)


def _parameter(entry: Mapping[str, str]) -> Parameter:
    """Return an option of HiGHS as a parameter; HiGHS quotes the words that it accepts in the option's description."""
    name, meaning = entry["name"], entry["meaning"]
    if entry["kind"] not in ("integer", "double"):
        return Parameter(name, meaning, choices=tuple(re.findall(r'"(\w+)"', meaning)))
    return Parameter(name, meaning, least=float(entry["least"]), most=float(entry["most"]))
