"""Models in files: other programs read the same model, and their solutions come back as verified decisions."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from conftest import Command
from hypothesis import given, settings
from hypothesis import strategies as st

import schedgap as sg
from schedgap.harness.ask import export
from schedgap.harness.studies.compare.given import verify_solution
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.models.engine.solve import compile_model, files, solve
from schedgap.models.engine.solve.solvers import cbc

FIG1, EQ1 = "paper/hadar-fig1", "paper/oef-eq1"
UTILITY = 48.80952381


def highs(path: Path, answer: Path | None = None) -> float:
    """Solve a model file by HiGHS alone, write its solution to `answer`, and return the objective."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    if answer:
        solver.writeSolution(str(answer), 0)
    return float(solver.getInfo().objective_function_value)


def odd_model(seed: int) -> pyo.ConcreteModel:
    """Return a model with every kind of row, bound and column, a constant, and names that file formats do not allow."""
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.x = pyo.Var(["a b", "ä", "c-d"], domain=pyo.Integers, bounds=(-1, 4))
    m.y = pyo.Var([1, 2], bounds=lambda m, i: (None, 3) if i == 1 else (0, None))
    m.z, m.idle = pyo.Var(), pyo.Var(bounds=(0.1, 0.1))
    a, b, c = rng.normal(size=3).round(3).tolist()
    m.equal = pyo.Constraint(expr=m.z + a * m.y[1] == 1 / 3)
    m.between = pyo.Constraint(expr=pyo.inequality(-2, m.x["a b"] + m.x["ä"] + b * m.z, 5))
    m.least = pyo.Constraint(expr=m.y[1] + m.z >= -4)
    m.most = pyo.Constraint(expr=m.y[2] + m.x["c-d"] + m.z <= 6.5)
    m.low = pyo.Constraint(expr=m.y[1] >= -50)
    sense = pyo.maximize if seed % 2 else pyo.minimize
    sign = -1 if seed % 2 else 1
    expression = m.x["ä"] + c * m.z + 3.3 * m.y[1] - 2 * m.y[2] + 0 * m.idle
    m.gain = pyo.Objective(expr=sign * expression + 11.5, sense=sense)
    return m


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000))
def test_other_readers_see_the_same_model(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("files")
    form = compile_model(odd_model(seed))
    names = files.names(form)
    assert len(set(names.columns)) == len(names.columns)
    expected = solve(odd_model(seed))
    for suffix, write in files.WRITERS.items():
        path = folder / f"m{suffix}"
        path.write_text("\n".join(write(form, "m", names)) + "\n")
        if expected.objective is not None:
            sign = -1.0 if suffix == ".mps" and form.maximise else 1.0
            assert sign * highs(path) == pytest.approx(expected.objective, rel=1e-6)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with P1 of Fig. 1 as ``p1.mps``, ``p1.lp`` and ``p1.json``."""
    folder = tmp_path_factory.mktemp("export")
    export.export("hadar.p1", FIG1, folder / "p1.lp")
    export.export("hadar.p1", FIG1, folder / "p1.mps")
    return folder


def solved_by_highs(folder: Path, model: Path) -> Path:
    highs(model, folder / "h.sol")
    return folder / "h.sol"


def solved_by_cbc(folder: Path, model: Path) -> Path:
    command = [cbc.executable(), str(model), "-solve", "-solution", str(folder / "c.sol")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "c.sol"


def solved_by_scip(folder: Path, model: Path) -> Path:
    scip = pytest.importorskip("pyscipopt").Model()
    scip.hideOutput()
    scip.readProblem(str(model))
    scip.optimize()
    scip.writeBestSol(str(folder / "s.sol"))
    # SCIP's own program writes this first line, which its Python library leaves out.
    text = (folder / "s.sol").read_text()
    (folder / "s.sol").write_text(f"solution status: optimal solution found\n{text}")
    return folder / "s.sol"


def solved_by_gurobi(folder: Path, model: Path) -> Path:
    """Write HiGHS's solution of a model in the form in which Gurobi would."""
    answer = files.read_solution("h", solved_by_highs(folder, model).read_text())
    lines = ["# Solution for model obj", f"# Objective value = {answer.objective}"]
    (folder / "g.sol").write_text("\n".join([*lines, *(f"{name} {value}" for name, value in answer.values.items())]))
    return folder / "g.sol"


SOLVED = {"HiGHS": solved_by_highs, "CBC": solved_by_cbc, "SCIP": solved_by_scip, "Gurobi": solved_by_gurobi}


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
@pytest.mark.parametrize("solver", SOLVED)
def test_solutions_come_back_as_decisions(solver: str, suffix: str, exported: Path, tmp_path: Path) -> None:
    solution = SOLVED[solver](tmp_path, exported / f"p1{suffix}")
    assert files.read_solution("", solution.read_text()).solver == solver
    (row,) = verify_solution([solution], exported / "p1.json", bound=False).rows
    assert row.verified, row.violations
    assert row.objective == pytest.approx(UTILITY)
    assert (row.problem, row.method) == ("hadar.utility", str(solution))


def test_commands_export_and_verify(command: Command, tmp_path: Path) -> None:
    done = command("export", "hadar.p1", "--instance", FIG1, "-o", "p1.mps.gz")
    assert done.returncode == 0
    assert done.stderr.startswith("p1.mps.gz: 243 rows, 208 columns (137 integer)")
    about = json.loads(Path("p1.json").read_text())
    assert about["variables"]["w"].endswith("GPUs of type r that it holds in slot t")
    assert about["columns"]["w(0,3,1)"] == ["w", 0, 3, 1]
    Path("p1.mps").write_bytes(gzip.decompress(Path("p1.mps.gz").read_bytes()))
    solved_by_highs(Path(), Path("p1.mps")).rename("p1.sol")
    done = command("verify", "--solution", "p1.sol", "--format", "json")
    (row,) = json.loads(done.stdout)
    assert (done.returncode, row["verified"]) == (0, True)
    assert 0 <= row["gap"] < 0.03


def test_what_breaks_the_model_is_wrong_with_its_numbers(exported: Path, tmp_path: Path) -> None:
    text = solved_by_highs(tmp_path, exported / "p1.lp").read_text()
    used = next(line for line in text.splitlines() if line.startswith("w(") and float(line.split()[1]) > 0.5)
    (tmp_path / "h.sol").write_text(text.replace(used, f"{used.split()[0]} 9"))
    (row,) = verify_solution([tmp_path / "h.sol"], exported / "p1.json", bound=False).rows
    assert row.verified is False
    assert any(line.startswith(f"bounds of {used.split()[0]}: 9 is not in [0, ") for line in row.violations)


def cut(text: str, part: float) -> str:
    return text[: int(len(text) * part)]


def no_number(text: str) -> str:
    return text.replace("v(0,2) 1", "v(0,2) one", 1)


BAD: dict[str, tuple[Any, str]] = {
    "truncated": (lambda text: cut(text, 0.2), "of 208 columns: the file is truncated"),
    "in a line": (lambda text: text[: text.index("w(1,2,1)") + 8], "of 208 columns: the file is truncated"),
    "of its header": (lambda text: cut(text, 0.002), "no primal solution: the file is truncated"),
    "empty": (lambda text: "", "empty"),
    "another model": (
        lambda text: text.replace("w(1", "u(1"),
        "hadar.p1 on paper/hadar-fig1 has no column u(1",
    ),
    "another objective": (
        lambda text: text.replace("Objective 48.8", "Objective 52.8"),
        "it states the objective 52.8095238, but its values give 48.8095238: the file is truncated, or of another",
    ),
    "no number": (no_number, "'one' is not a number"),
    "no solution": (lambda text: "hello\n", "line 1: 'hello' does not begin a solution of HiGHS, CBC, SCIP or Gurobi"),
    "binary": (lambda text: "\0", "a binary file"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_solution_ends_in_one_line(what: str, exported: Path, tmp_path: Path) -> None:
    change, told = BAD[what]
    file = solved_by_highs(tmp_path, exported / "p1.lp")
    file.write_text(change(file.read_text()))
    with pytest.raises(UsageError) as error:
        verify_solution([file], exported / "p1.json", bound=False)
    assert str(error.value).startswith(f"{file}: ")
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("solver", ["CBC", "SCIP", "Gurobi"])
def test_a_truncated_solution_without_a_count_is_found_out(solver: str, exported: Path, tmp_path: Path) -> None:
    file = SOLVED[solver](tmp_path, exported / "p1.mps")
    lines = file.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if "v(" in line)
    file.write_text("\n".join(lines[: first + 1]))
    with pytest.raises(UsageError, match=r"the file is truncated"):
        verify_solution([file], exported / "p1.json", bound=False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["export", "hadar.p1", "--instance", FIG1, "-o", "p1.txt"],
            "p1.txt: a model's file ends in .mps, .mps.gz, .lp",
        ),
        (["export", "hadar.p11", "--instance", FIG1, "-o", "a.lp"], "unknown model 'hadar.p11'; did you mean hadar.p1"),
        (["export", "hadar.fifo", "--instance", FIG1, "-o", "a.lp"], "(heuristics are not models)"),
        (["export", "hadar.p2.columns", "--instance", FIG1, "-o", "a.lp"], "generates its columns as needed"),
        (["export", "hadar.p1", "-o", "a.lp"], "name a model, one --instance and --output FILE; or --library DIR"),
        (["export", "hadar.p1", "--library", "d"], "--library writes all models: leave out METHOD and --output"),
        (["verify", "--solution", "no.sol"], "no.json: no such file; harness export writes it next to the model"),
        (["verify"], "name a results folder, decision files, or solution files of exported models (--solution)"),
    ],
)
def test_wrong_words_end_in_one_line(words: list[str], told: str, command: Command) -> None:
    done = command(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert told in done.stderr


def test_what_cannot_be_a_file_says_why() -> None:
    with pytest.raises(NotApplicableError, match="admission: paper/hadar-fig1 has no worker types"):
        export.exported("admission.offline", sg.load(FIG1))


def test_a_library_is_written_again_the_same_and_only_gets_better(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    found = sg.compare(EQ1, ["oef.*"], jobs=1)
    entries, left_out = export.library(tmp_path / "a", [EQ1], [found])
    assert [line for line in left_out if line.startswith("oef")] == [
        "oef.cooperative.first_order on paper/oef-eq1: oef.cooperative solves 3 tenants exactly within seconds",
        "oef.nash on paper/oef-eq1: oef.nash on paper/oef-eq1: not linear: LinearTemplateRepn does not support "
        "expressions containing general nonlinear terms.",
    ]
    export.library(tmp_path / "b", [EQ1], [found])
    first, second = ({p.relative_to(tmp_path / x): p.read_bytes() for p in (tmp_path / x).rglob("*.*")} for x in "ab")
    assert first == second
    before = (tmp_path / "a" / "index.csv").read_bytes()
    export.library(tmp_path / "a", [EQ1], [])
    assert (tmp_path / "a" / "index.csv").read_bytes() == before
    by_method = {line["method"]: line for line in csv.DictReader(before.decode().splitlines())}
    assert {(e["method"], e["objective"]) for e in entries} == {(m, line["objective"]) for m, line in by_method.items()}
    assert by_method["oef.cooperative"]["objective"] == "4.5"
    # It allows what checkers let decisions miss; the last digits depend on the multipliers.
    assert 4.5000001 < float(by_method["oef.cooperative"]["bound"]) < 4.5000002
    assert by_method["oef.maxmin"]["objective"] == ""  # it optimises another objective
    sums = dict(line.split("  ")[::-1] for line in (tmp_path / "a" / "SHA256SUMS").read_text().splitlines())
    digests = {name: hashlib.sha256((tmp_path / "a" / name).read_bytes()).hexdigest() for name in sums}
    assert digests == sums
    assert len(sums) == 2 * len(entries) + 1
