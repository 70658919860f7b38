"""Models as files, for solvers anywhere: ``harness export`` writes them, ``harness verify --solution`` reads answers.

Beside ``p1.mps.gz`` stands ``p1.json``: which instance and method the file is about, what each variable means, and for
each column the variable and index of the model. With it, a solution file becomes a decision again.

A library has a folder per instance with its models, and at the top ``index.csv`` (sizes, best known objective and
bound, checksum of each file) and ``SHA256SUMS``. Whoever writes it again gets the same files; what is known only gets
better.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedgap.harness.compare.row import Comparison, Row
from schedgap.harness.explain import stated
from schedgap.instances import load
from schedgap.instances.canonical import read_mapping, validate, write_atomically
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.importers.table import read_text
from schedgap.instances.registry import PAPERS, unknown
from schedgap.instances.schema import Instance
from schedgap.instances.schema.content import dumps
from schedgap.models import MODELS, ModelSpec
from schedgap.models.solve import NotLinearError, Solution, StandardForm, build, compile_model, files

BETTER = 1e-6
"""Relative difference from which on a known value is better: below it, solvers' tolerances tell them apart."""


@dataclass(frozen=True, eq=False)
class Export:
    """A model of an instance, as arrays with names."""

    spec: ModelSpec
    instance: Instance
    view: Any
    model: Any
    form: StandardForm
    names: files.Names

    def text(self, suffix: str) -> str:
        """Return the model as the text of a file."""
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{self.spec.id}-{self.instance.fingerprint[:12]}")
        return "\n".join(files.WRITERS[suffix](self.form, name, self.names)) + "\n"

    def told(self) -> dict[str, Any]:
        """Return what the file beside the model says."""
        columns = dict(zip(self.names.columns, map(_place, self.form.columns), strict=True))
        stated_of = "\n".join(stated(self.spec).values())  # what is said of a variable first counts
        meanings = dict(reversed(re.findall(r"^ *- ``(\w+)`` (.+)$", stated_of, re.MULTILINE)))
        variables = {variable for variable, *_ in columns.values()}
        # in the order in which indices count them
        labels = getattr(getattr(self.view, "workload", self.view), "ids", ()) or getattr(self.view, "labels", ())
        return {
            "method": self.spec.id,
            "problem": self.spec.problem,
            "sense": "max" if self.form.maximise else "min",
            "model": self.digest,
            "jobs": list(map(str, labels)),
            "variables": {name: meanings[name].rstrip(".") for name in sorted(variables & meanings.keys())},
            "columns": columns,
            "instance": self.instance.model_dump(mode="json", exclude_defaults=True),
        }

    @property
    def digest(self) -> str:
        """Digest of the model, the same for all its files."""
        return hashlib.sha256(self.text(".mps").encode()).hexdigest()


def exported(method: str, instance: Instance) -> Export:
    """Return the whole model of a method on an instance.

    It raises `UsageError` if the method is no model, or none that could be written as a whole, and `NotApplicableError`
    if it cannot run on the instance.
    """
    if method not in MODELS:
        raise UsageError(f"{unknown('model', method, MODELS.ids())} (heuristics are no models)")
    spec = MODELS.get(method)
    if spec.implied:
        raise NotApplicableError(f"{spec.id} makes its columns as it needs them; there are too many for a file")
    view = PAPERS.get(spec.paper).view(instance)
    if reason := spec.skip(view):
        raise NotApplicableError(f"{spec.id} on {instance.name}: {reason}")
    try:
        model = build(spec.build, view)
        form = compile_model(model)
    except NotLinearError as error:
        raise NotApplicableError(f"{spec.id} on {instance.name}: not linear: {error}") from error
    return Export(spec, instance, view, model, form, files.names(form))


def _place(column: Any) -> list[Any]:
    """Return the variable of a column and its index there, as ``["w", 0, 3, 1]``."""
    index = column.index()
    return [column.parent_component().name, *(index if isinstance(index, tuple) else [] if index is None else [index])]


def export(method: str, reference: str, path: Path) -> Export:
    """Write a model as a file, and beside it what maps its solutions to decisions.

    It raises `UsageError` if there is no such model or instance, the file's name has another ending, or cannot be
    written.
    """
    _ending(path)
    found = exported(method, load(reference))
    _write(found, path)
    return found


def _ending(path: Path) -> tuple[str, str]:
    """Return the format of a model's file, and the name of the file without its ending."""
    name = path.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in files.WRITERS:
        endings = ", ".join(f"{one}, {one}.gz" for one in files.WRITERS)
        raise UsageError(f"{path}: a model's file ends in {endings}")
    return suffix, path.name[: len(name) - len(suffix)]


def _write(found: Export, path: Path) -> bytes:
    """Write both files; return the content of the model's."""
    suffix, stem = _ending(path)
    content = found.text(suffix).encode()
    if path.suffix.lower() == ".gz":
        content = gzip.compress(content, mtime=0)
    write_atomically(path, content)
    write_atomically(path.with_name(stem + ".json"), (dumps(found.told()) + "\n").encode())
    return content


# ---------------------------------------------------------------- solutions


ROWS = 1e-6
"""Relative violation of a row that is a solver's rounding."""


def returned(path: Path, beside: Path | None = None) -> tuple[Export, Any, tuple[str, ...]]:
    """Read a solution file of HiGHS, CBC, SCIP or Gurobi back: its model, the decision, and which rows do not hold.

    `beside` is the ``.json`` of the model; by default that of the same name. It raises `UsageError` if the file is
    truncated, in no known format, without a solution, or of another model.
    """
    beside = beside or path.with_suffix(".json")
    if not beside.exists():
        raise UsageError(f"{beside}: no such file; harness export writes it beside the model (or name it: --model)")
    about = read_mapping(beside)
    if not {"method", "model", "instance"} <= about.keys():
        raise UsageError(f"{beside}: not a file that harness export wrote beside a model")
    one = exported(about["method"], validate(about["instance"], where=str(beside)))
    if one.digest != about["model"]:
        raise UsageError(f"{beside}: this version builds another model of {one.spec.id}: export it again")
    values = _values(str(path), files.read_solution(str(path), read_text(path)), one)
    solution = Solution(
        "feasible",
        "read from a file",
        objective=float(one.form.cost @ values) + one.form.offset,
        model=one.model,
        columns=one.form.columns,
        rows=one.form.rows,
        column_values=values,
    )
    violations = _broken(one, values)
    try:
        decision = one.spec.decode(one.view, one.model, solution)
    except ValueError as error:
        decision, violations = None, (*violations, f"no decision: {error}")
    if decision is None and not violations:
        raise UsageError(f"{path}: {one.spec.id} decides nothing that could be checked; it bounds {one.spec.problem}")
    return one, decision, violations


def _values(where: str, answer: files.Answer, one: Export) -> Any:
    """Return the values of all columns, after what would show that they are not those that were found."""
    about = f"{one.spec.id} on {one.instance.name}"
    known = set(one.names.columns)
    if not answer.values and (answer.complete or answer.objective is None):
        raise UsageError(f"{where}: no solution in it ({answer.status or answer.solver})")
    if other := sorted(answer.values.keys() - known - {files.CONSTANT}):
        raise UsageError(f"{where}: column {other[0]} is none of {about}: the file is of another model")
    missing = len(known - answer.values.keys())
    if answer.complete and missing:
        raise UsageError(f"{where}: {missing} of {len(known)} columns of {about} are not there: the file is truncated")
    values = np.array([answer.values.get(name, 0.0) for name in one.names.columns])
    value = float(one.form.cost @ values) + one.form.offset
    told = answer.objective
    # What a solver reads from an MPS file is minimised.
    if told is not None and min(abs(told - value), abs(told + value)) > ROWS * max(1.0, abs(value)):
        claimed = f"it says the objective is {told:.9g}, and its values have {value:.9g}"
        raise UsageError(f"{where}: {claimed}: the file is truncated, or of another model")
    return values


def _broken(one: Export, values: Any) -> tuple[str, ...]:
    """Return a line about the rows, bounds and integers of the model that the values break, with the worst one."""
    form = one.form
    found = []
    for what, names, amount, low, high in (
        ("row", one.names.rows, form.matrix @ values, form.row_lower, form.row_upper),
        ("bounds of", one.names.columns, values, form.lower, form.upper),
    ):
        off = np.maximum(low - amount, amount - high) / np.maximum(1.0, np.abs(np.where(amount < low, low, high)))
        if count := int((off > ROWS).sum()):
            i = int(off.argmax())
            where = f"[{low[i]:.9g}, {high[i]:.9g}]"
            found.append(f"{what} {names[i]}: {amount[i]:.9g} is not in {where} ({count} such in the model)")
    off = np.where(form.integer, np.abs(values - np.rint(values)), 0.0)
    if count := int((off > ROWS * 10).sum()):
        i = int(off.argmax())
        found.append(f"{one.names.columns[i]} = {values[i]:.9g} is not whole ({count} such in the model)")
    return tuple(found)


# ---------------------------------------------------------------- libraries

DEFAULT = (
    "paper/hadar-fig1",
    "paper/walkthrough",
    "paper/synergy-example",
    "paper/oef-eq1",
    "gen/20jobs?jobs=3",
    "gen/20jobs?jobs=2&servers_per_type=1&slot_s=21600",
)
"""Instances of a library unless others are named: together, every model has one that it can run on."""


Entry = dict[str, Any]
"""A line of a library's index."""

KNOWN = ("objective", "objective_by", "bound", "bound_by")
"""What a line says beside sizes and checksum: the best known values, in the problem's own sense, and whose they are."""


def library(folder: Path, references: Sequence[str], known: Iterable[Comparison]) -> tuple[list[Entry], list[str]]:
    """Write all models that are not above their stated size, of a list of instances; return index and left-out models.

    What is known comes from comparisons and from the index that is there.
    """
    import pandas as pd

    path, before = folder / "index.csv", dict[str, Entry]()
    if path.exists():
        lines = list(csv.DictReader(io.StringIO(read_text(path))))
        if not all({"file", "sha256", *KNOWN} <= line.keys() for line in lines):
            raise UsageError(f"{path}: not the index of a library: name another folder")
        before = {line["file"]: line for line in lines}
    rows = [row for comparison in known for row in (*comparison.rows, *comparison.bounds)]
    entries, left_out = [], []
    for instance in {one.fingerprint: one for one in map(load, references)}.values():
        place = re.sub(r"[^A-Za-z0-9_.-]", "_", instance.name)
        for spec in MODELS:
            try:
                view = PAPERS.get(spec.paper).view(instance)
                reason = spec.skip(view) or spec.too_large(view)
                one = None if reason else exported(spec.id, instance)
            except NotApplicableError as error:
                one, reason = None, str(error)
            if one is None:
                left_out.append(f"{spec.id} on {instance.name}: {reason}")
                continue
            name, form = f"{place}/{spec.id}.mps.gz".replace("?", "_"), one.form
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256(_write(one, folder / name)).hexdigest()
            about = {"file": name, "method": spec.id, "problem": spec.problem, "kind": spec.kind}
            about |= {"sense": "max" if form.maximise else "min", "instance": instance.name}
            sizes = dict(zip(("rows", "columns"), form.matrix.shape, strict=True))
            sizes |= {"integers": int(form.integer.sum()), "nonzeros": form.matrix.nnz}
            best = _known(spec, [row for row in rows if row.fingerprint == instance.fingerprint])
            old = before.get(name, {"sha256": ""})
            best = _better(best, old, about["sense"]) if old["sha256"] == digest else best
            entries.append({**about, "fingerprint": instance.fingerprint, **sizes, **best, "sha256": digest})
    write_atomically(path, pd.DataFrame(entries).to_csv(index=False).encode())
    names = [name for e in entries for name in (e["file"], e["file"].removesuffix(".mps.gz") + ".json")]
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (*names, "index.csv")}
    told = "".join(f"{digest}  {name}\n" for name, digest in digests.items())  # as ``sha256sum -c`` reads it
    write_atomically(folder / "SHA256SUMS", told.encode())
    return entries, left_out


def _known(spec: ModelSpec, rows: Sequence[Row]) -> Entry:
    """Return the best objective and bound of a model's problem; a relaxation's own optimum is both."""
    best, told = dict.fromkeys(KNOWN, ""), [r for r in rows if r.verified is not False and r.problem == spec.problem]
    if spec.kind != "exact":
        own = [row.own_bound for row in told if row.method == spec.id and row.status == "optimal"]
        number = next((bound for bound in own if bound is not None), None)
        if number is None or spec.kind == "baseline":
            return best
        return dict(zip(KNOWN, (f"{number:.12g}", spec.id) * 2, strict=True))
    for row in told:
        objective = f"{row.objective:.12g}" if row.objective is not None and row.verified else ""
        bound = "" if row.best_bound is None else f"{row.best_bound:.12g}"
        values = (objective, row.method, bound, row.bound_from or "")
        best = _better(dict(zip(KNOWN, values, strict=True)), best, row.sense)
    return best


def _better(new: Entry, old: Entry, sense: str) -> Entry:
    """Return new values, and old ones where the new ones are not better."""
    sign, kept = 1.0 if sense == "max" else -1.0, dict(new)
    for field, upwards in (("objective", sign), ("bound", -sign)):
        if old[field] and (
            not new[field] or upwards * (float(new[field]) - float(old[field])) <= BETTER * abs(float(old[field]))
        ):
            kept |= {name: old[name] for name in (field, f"{field}_by")}
    return kept
