"""Models as files for any solver: ``harness export`` writes them, ``harness verify --solution`` reads solutions.

Each model file, such as ``p1.mps.gz``, comes with a JSON file, ``p1.json``, that contains the instance, the method, the
meaning of each variable, and the model's variable and index for each column. With it, a solution file can be turned
into a decision.

A library has a folder of models per instance, and at the top ``index.csv`` (sizes, best known objective and bound, and
checksum of each file) and ``SHA256SUMS``. Writing a library again reproduces its files; best known values only improve.
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

from schedgap.harness.ask.explain import stated
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.instances import load
from schedgap.instances.canonical import read_mapping, validate, write_atomically
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.importers.table import read_text
from schedgap.instances.registry import unknown
from schedgap.instances.schema import Instance
from schedgap.instances.schema.content import dumps
from schedgap.models import MODELS, ModelSpec
from schedgap.models.engine.solve import NotLinearError, Solution, StandardForm, build, compile_model, files

BETTER = 1e-6
"""Least relative difference by which a value counts as better; smaller ones are within solvers' tolerances."""


@dataclass(frozen=True, eq=False)
class Export:
    """A model of an instance in matrix form, with names of rows and columns."""

    spec: ModelSpec
    instance: Instance
    view: Any
    model: Any
    form: StandardForm
    names: files.Names

    def text(self, suffix: str) -> str:
        """Return the text of the model's file in the format of that suffix."""
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{self.spec.id}-{self.instance.fingerprint[:12]}")
        return "\n".join(files.WRITERS[suffix](self.form, name, self.names)) + "\n"

    def mapping(self) -> dict[str, Any]:
        """Return the content of the JSON file, which maps solutions of the model to decisions."""
        columns = dict(zip(self.names.columns, map(_place, self.form.columns), strict=True))
        statement = "\n".join(stated(self.spec).values())
        # Reversed, so that the first description of a variable wins.
        meanings = dict(reversed(re.findall(r"^ *- ``(\w+)`` (.+)$", statement, re.MULTILINE)))
        variables = {variable for variable, *_ in columns.values()}
        # The labels stand in the order in which indices count them.
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
        """SHA-256 digest of the model, the same for all file formats."""
        return hashlib.sha256(self.text(".mps").encode()).hexdigest()


def exported(method: str, instance: Instance) -> Export:
    """Build the model of a method on an instance.

    It raises `UsageError` if the method is not a model, and `NotApplicableError` if it cannot run on the instance,
    generates its columns, or is not linear.
    """
    if method not in MODELS:
        raise UsageError(f"{unknown('model', method, MODELS.ids())} (heuristics are not models)")
    spec = MODELS.get(method)
    if spec.implied:
        raise NotApplicableError(f"{spec.id} generates its columns as needed; the full model is too large for a file")
    view = spec.view(instance)
    if reason := spec.skip(view):
        raise NotApplicableError(f"{spec.id} on {instance.name}: {reason}")
    try:
        model = build(spec.build, view)
        form = compile_model(model)
    except NotLinearError as error:
        raise NotApplicableError(f"{spec.id} on {instance.name}: not linear: {error}") from error
    return Export(spec, instance, view, model, form, files.names(form))


def _place(column: Any) -> list[Any]:
    """Return the variable of a column and its index, as ``["w", 0, 3, 1]``."""
    index = column.index()
    return [column.parent_component().name, *(index if isinstance(index, tuple) else [] if index is None else [index])]


def export(method: str, reference: str, path: Path) -> Export:
    """Write a model to a file, together with the JSON file that maps its solutions to decisions.

    It raises `UsageError` if the model or instance does not exist, or if the file's suffix is unknown or it cannot be
    written.
    """
    _suffix(path)
    built = exported(method, load(reference))
    _write(built, path)
    return built


def _suffix(path: Path) -> tuple[str, str]:
    """Return the suffix of a model's file (without ``.gz``), and the file's name without its suffixes."""
    name = path.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in files.WRITERS:
        suffixes = ", ".join(f"{each}, {each}.gz" for each in files.WRITERS)
        raise UsageError(f"{path}: a model's file ends in {suffixes}")
    return suffix, path.name[: len(name) - len(suffix)]


def _write(export: Export, path: Path) -> bytes:
    """Write both files; return the content of the model's file."""
    suffix, stem = _suffix(path)
    content = export.text(suffix).encode()
    if path.suffix.lower() == ".gz":
        content = gzip.compress(content, mtime=0)
    write_atomically(path, content)
    write_atomically(path.with_name(stem + ".json"), (dumps(export.mapping()) + "\n").encode())
    return content


# ---------------------------------------------------------------- solutions


ROWS = 1e-6
"""Relative violation of a row up to which it counts as a solver's rounding."""


def returned(path: Path, beside: Path | None = None) -> tuple[Export, Any, tuple[str, ...]]:
    """Read a solution file of HiGHS, CBC, SCIP or Gurobi; return its model, the decision, and messages on violations.

    `beside` is the model's JSON file, by default the solution's path with suffix ``.json``. It raises `UsageError` if
    the solution file is truncated, in an unknown format, without a solution, or of another model.
    """
    beside = beside or path.with_suffix(".json")
    if not beside.exists():
        raise UsageError(f"{beside}: no such file; harness export writes it next to the model (or name it: --model)")
    mapping = read_mapping(beside)
    if not {"method", "model", "instance"} <= mapping.keys():
        raise UsageError(f"{beside}: not a file that harness export wrote next to a model")
    export = exported(mapping["method"], validate(mapping["instance"], where=str(beside)))
    if export.digest != mapping["model"]:
        raise UsageError(f"{beside}: this version builds another model of {export.spec.id}: export it again")
    values = _values(str(path), files.read_solution(str(path), read_text(path)), export)
    solution = Solution(
        "feasible",
        "read from a file",
        objective=float(export.form.cost @ values) + export.form.offset,
        model=export.model,
        columns=export.form.columns,
        rows=export.form.rows,
        column_values=values,
    )
    violations = _violations(export, values)
    try:
        decision = export.spec.decode(export.view, export.model, solution)
    except ValueError as error:
        decision, violations = None, (*violations, f"no decision: {error}")
    if decision is None and not violations:
        spec = export.spec
        raise UsageError(f"{path}: {spec.id} only bounds {spec.problem}, so there is no decision to check")
    return export, decision, violations


def _values(where: str, answer: files.SolutionFile, export: Export) -> Any:
    """Return the values of all columns; raise `UsageError` if they do not fit the model or the stated objective."""
    model = f"{export.spec.id} on {export.instance.name}"
    names = set(export.names.columns)
    if not answer.values and (answer.complete or answer.objective is None):
        raise UsageError(f"{where}: no solution in it ({answer.status or answer.solver})")
    if other := sorted(answer.values.keys() - names - {files.CONSTANT}):
        raise UsageError(f"{where}: {model} has no column {other[0]}: the file is of another model")
    missing = len(names - answer.values.keys())
    if answer.complete and missing:
        raise UsageError(f"{where}: {missing} of {len(names)} columns of {model} are missing: the file is truncated")
    values = np.array([answer.values.get(name, 0.0) for name in export.names.columns])
    value = float(export.form.cost @ values) + export.form.offset
    stated = answer.objective
    # Solvers read an MPS file as a minimisation, so the sign may differ.
    if stated is not None and min(abs(stated - value), abs(stated + value)) > ROWS * max(1.0, abs(value)):
        claimed = f"it states the objective {stated:.9g}, but its values give {value:.9g}"
        raise UsageError(f"{where}: {claimed}: the file is truncated, or of another model")
    return values


def _violations(export: Export, values: Any) -> tuple[str, ...]:
    """Return messages on violated rows, bounds and integrality, each with the number and the worst of them."""
    form = export.form
    messages = []
    for what, names, amount, low, high in (
        ("row", export.names.rows, form.matrix @ values, form.row_lower, form.row_upper),
        ("bounds of", export.names.columns, values, form.lower, form.upper),
    ):
        off = np.maximum(low - amount, amount - high) / np.maximum(1.0, np.abs(np.where(amount < low, low, high)))
        if count := int((off > ROWS).sum()):
            i = int(off.argmax())
            interval = f"[{low[i]:.9g}, {high[i]:.9g}]"
            messages.append(f"{what} {names[i]}: {amount[i]:.9g} is not in {interval} ({count} such in the model)")
    off = np.where(form.integer, np.abs(values - np.rint(values)), 0.0)
    if count := int((off > ROWS * 10).sum()):
        i = int(off.argmax())
        messages.append(f"{export.names.columns[i]} = {values[i]:.9g} is not an integer ({count} such in the model)")
    return tuple(messages)


# ---------------------------------------------------------------- libraries

DEFAULT = (
    "paper/hadar-fig1",
    "paper/walkthrough",
    "paper/synergy-example",
    "paper/oef-eq1",
    "gen/20jobs?jobs=3",
    "gen/20jobs?jobs=2&servers_per_type=1&slot_s=21600",
)
"""Default instances of a library; every model can run on at least one of them."""


Entry = dict[str, Any]
"""A row of a library's index."""

KNOWN = ("objective", "objective_by", "bound", "bound_by")
"""Fields of an entry with the best known values, in the problem's own sense, and the methods that they come from."""


def library(folder: Path, references: Sequence[str], known: Iterable[Comparison]) -> tuple[list[Entry], list[str]]:
    """Write the models of a list of instances, except those above their stated size; return the index and omissions.

    Best known values come from the comparisons `known` and from an existing index.
    """
    import pandas as pd

    path, previous = folder / "index.csv", dict[str, Entry]()
    if path.exists():
        lines = list(csv.DictReader(io.StringIO(read_text(path))))
        if not all({"file", "sha256", *KNOWN} <= line.keys() for line in lines):
            raise UsageError(f"{path}: not the index of a library: name another folder")
        previous = {line["file"]: line for line in lines}
    rows = [row for comparison in known for row in (*comparison.rows, *comparison.bounds)]
    entries, left_out = [], []
    for instance in {each.fingerprint: each for each in map(load, references)}.values():
        subfolder = re.sub(r"[^A-Za-z0-9_.-]", "_", instance.name)
        for spec in MODELS:
            try:
                view = spec.view(instance)
                reason = spec.skip(view) or spec.too_large(view)
                export = None if reason else exported(spec.id, instance)
            except NotApplicableError as error:
                export, reason = None, str(error)
            if export is None:
                left_out.append(f"{spec.id} on {instance.name}: {reason}")
                continue
            name, form = f"{subfolder}/{spec.id}.mps.gz".replace("?", "_"), export.form
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256(_write(export, folder / name)).hexdigest()
            entry = {"file": name, "method": spec.id, "problem": spec.problem, "kind": spec.kind}
            entry |= {"sense": "max" if form.maximise else "min", "instance": instance.name}
            sizes = dict(zip(("rows", "columns"), form.matrix.shape, strict=True))
            sizes |= {"integers": int(form.integer.sum()), "nonzeros": form.matrix.nnz}
            best = _known(spec, [row for row in rows if row.fingerprint == instance.fingerprint])
            old = previous.get(name, {"sha256": ""})
            best = _better(best, old, entry["sense"]) if old["sha256"] == digest else best
            entries.append({**entry, "fingerprint": instance.fingerprint, **sizes, **best, "sha256": digest})
    write_atomically(path, pd.DataFrame(entries).to_csv(index=False).encode())
    names = [name for e in entries for name in (e["file"], e["file"].removesuffix(".mps.gz") + ".json")]
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (*names, "index.csv")}
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests.items())  # the format of ``sha256sum -c``
    write_atomically(folder / "SHA256SUMS", sums.encode())
    return entries, left_out


def _known(spec: ModelSpec, rows: Sequence[Row]) -> Entry:
    """Return the best known objective and bound of a model; for a relaxation, both are its own optimum."""
    best, valid = dict.fromkeys(KNOWN, ""), [r for r in rows if r.verified is not False and r.problem == spec.problem]
    if spec.kind != "exact":
        own = [row.claimed_bound for row in valid if row.method == spec.id and row.status == "optimal"]
        number = next((bound for bound in own if bound is not None), None)
        if number is None or spec.kind == "baseline":
            return best
        return dict(zip(KNOWN, (f"{number:.12g}", spec.id) * 2, strict=True))
    for row in valid:
        objective = f"{row.objective:.12g}" if row.objective is not None and row.verified else ""
        bound = "" if row.best_bound is None else f"{row.best_bound:.12g}"
        values = (objective, row.method, bound, row.bound_from or "")
        best = _better(dict(zip(KNOWN, values, strict=True)), best, row.sense)
    return best


def _better(new: Entry, old: Entry, sense: str) -> Entry:
    """Return the new values, except where they do not improve on the old ones."""
    sign, best = 1.0 if sense == "max" else -1.0, dict(new)
    for field, upwards in (("objective", sign), ("bound", -sign)):
        if old[field] and (
            not new[field] or upwards * (float(new[field]) - float(old[field])) <= BETTER * abs(float(old[field]))
        ):
            best |= {name: old[name] for name in (field, f"{field}_by")}
    return best
