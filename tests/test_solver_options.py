"""Options after a solver's name, and logs of HiGHS: they are passed on, refused in one line, and kept on request."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pyomo.environ as pyo
import pytest
from conftest import Command
from hypothesis import given
from hypothesis import strategies as st

import schedgap as sg
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.page import to_html
from schedgap.harness.studies.compare import summary
from schedgap.harness.studies.compare.methods import find_spec
from schedgap.harness.studies.compare.row import Row, log_file
from schedgap.harness.studies.folders import check
from schedgap.instances.errors import NotApplicableError, UsageError
from schedgap.instances.parameters import stated
from schedgap.models import MODELS
from schedgap.models.engine.solve import Session, SolveOptions, build, compile_model, logs, solve
from schedgap.models.engine.solve.options import Taken, solver

FIG1 = "paper/hadar-fig1"
NO_HEURISTICS = "highs?mip_heuristic_effort=0"
TWO = "highs?presolve=off&mip_heuristic_effort=0"
OPTIONS = [parameter for parameter in solver("highs?presolve=off").parameters if not isinstance(parameter, Taken)]
TAKEN = [parameter.name for parameter in solver("highs?presolve=off").parameters if isinstance(parameter, Taken)]


def knapsack() -> pyo.ConcreteModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2, 3], domain=pyo.Binary)
    m.room = pyo.Constraint(expr=2 * m.x[1] + 3 * m.x[2] + 4 * m.x[3] <= 6)
    m.gain = pyo.Objective(expr=3 * m.x[1] + 4 * m.x[2] + 6 * m.x[3], sense=pyo.maximize)
    return m


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("highs", "highs"),
        (NO_HEURISTICS, NO_HEURISTICS),
        ("highs?mip_heuristic_effort=0.0&presolve=off", TWO),
        ("highs?mip_heuristic_effort=0.05", "highs"),
        ("highs:ipm?run_crossover=on&mip_detect_symmetry=no", "highs:ipm?mip_detect_symmetry=false"),
        ("scip", "scip"),
    ],
)
def test_a_name_states_the_options_that_are_not_defaults(name: str, id_: str) -> None:
    assert solver(name).id == solver(solver(name).id).id == SolveOptions(solver=name).solver == id_


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "highs?mip_heuristic_efort=0",
            "highs: unknown parameter 'mip_heuristic_efort'; did you mean mip_heuristic_ef",
        ),
        ("highs?zz=0", "highs: unknown parameter 'zz'; it takes presolve, parallel, run_crossover, "),
        ("highs?mip_heuristic_effort=2", "highs: mip_heuristic_effort = '2': must be a number from 0 to 1"),
        ("highs:ipm?presolve=maybe", "highs:ipm: presolve = 'maybe': must be off or choose or on"),
        ("highs?presolve", "highs: 'presolve' is not key=value (write highs?name=value&name=value)"),
        ("highs?", "highs: '' is not key=value"),
        ("highs?presolve=off&presolve=on", "highs: 'presolve' is given twice"),
        ("highs?time_limit=3", "highs: time_limit = '3': must be given as --time-limit"),
        ("highs?threads=2", "must be given as --threads"),
        ("highs?random_seed=2", "must be given as --seed"),
        ("highs?mip_rel_gap=0.1", "must be given as --rel-gap"),
        ("highs?mip_max_nodes=7", "must be given as --nodes"),
        ("highs?solver=ipm", "must be chosen by the solver's name: highs:ipm, highs:hipo or highs:pdlp"),
        ("highs?log_file=mine", "must be given as --solver-logs"),
        ("highs?mip_feasibility_tolerance=1e-3", "must be left as it is, since certified results rely on it"),
        ("highs?write_model_file=mine", "must be left as it is: solves read and write no files"),
        ("higs?presolve=off", "unknown solver 'higs'; did you mean highs"),
        ("gurobi?Heuristics=0", "gurobi?Heuristics=0: options after a question mark are for highs"),
        ("cbc?cuts=off", "options after a question mark are for highs, scip, cp-sat and mpax, not for cbc"),
    ],
)
def test_wrong_options_are_refused_in_one_line(name: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        SolveOptions(solver=name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_the_product_sets_is_not_for_the_user() -> None:
    """Users cannot override options that a session sets itself, except for some that only change speed."""
    session = Session(compile_model(build(knapsack)), SolveOptions(nodes=5))
    own = {parameter.name for parameter in OPTIONS}
    fresh = type(session.highs)()
    changed = [name for name in [*own, *TAKEN] if session.highs.getOptionValue(name) != fresh.getOptionValue(name)]
    assert {"output_flag", "threads", "mip_max_nodes", "mip_rel_gap", "mip_feasibility_tolerance"} <= set(changed)
    assert not own & set(changed)
    assert not [name for name in own if "tolerance" in name or "file" in name.replace("profile", "")]


@given(st.data())
def test_any_option_reaches_highs_and_its_name_repeats_it(data: st.DataObject) -> None:
    settings = {}
    for option in data.draw(st.lists(st.sampled_from(OPTIONS), min_size=1, max_size=4, unique_by=lambda p: p.name)):
        default = solver("highs?presolve=off").default(option)
        if option.choices:
            settings[option.name] = data.draw(st.sampled_from(option.choices))
        elif isinstance(default, bool):
            settings[option.name] = data.draw(st.booleans())
        elif isinstance(default, int):
            settings[option.name] = data.draw(st.integers(int(option.least), int(option.most)))
        else:
            settings[option.name] = data.draw(st.floats(max(option.least, 0.0), min(option.most, 1e9)))
    one = solver(f"highs?{stated(settings)}")
    assert solver(one.id) is one or solver(one.id).settings == one.settings
    options = SolveOptions(solver=one.id)
    session = Session(compile_model(build(knapsack)), options)
    for name, value in settings.items():
        assert session.highs.getOptionValue(name)[1] == value
    method = find_spec(f"hadar.p1?{stated({'solver': one.id})}")
    assert method.settings.get("solver", "highs") == one.id
    assert find_spec(method.id).id == method.id


def test_options_of_the_user_override_choices_of_speed_only() -> None:
    session = Session(compile_model(build(knapsack)), SolveOptions(solver="highs?simplex_strategy=3"))
    session.prefer("simplex_strategy", 4)
    assert session.highs.getOptionValue("simplex_strategy")[1] == 3
    session.prefer("simplex_scale_strategy", 1)
    assert session.highs.getOptionValue("simplex_scale_strategy")[1] == 1


@pytest.mark.parametrize("name", [f"{algorithm}?presolve=off" for algorithm in ("highs", "highs:ipm")])
def test_solutions_name_the_solver_with_its_options(name: str) -> None:
    found = solve(build(knapsack), SolveOptions(solver=name))
    assert (found.status, found.objective, found.solver) == ("optimal", pytest.approx(9.0), name)


def test_in_python_a_model_takes_the_name() -> None:
    found = MODELS.get("hadar.p1").solve(sg.load(FIG1), solver=NO_HEURISTICS)
    assert (found.status, found.solver) == ("optimal", NO_HEURISTICS)
    with pytest.raises(UsageError, match="did you mean mip_heuristic_effort"):
        MODELS.get("hadar.p1").solve(sg.load(FIG1), solver="highs?mip_heuristic_efort=0")


def test_column_generation_uses_them_and_a_model_without_highs_says_so() -> None:
    found = MODELS.get("hadar.p2.columns").solve(sg.load(FIG1), solver="highs?simplex_scale_strategy=0")
    assert found.solver == "highs?simplex_scale_strategy=0"
    spec = next(spec for spec in MODELS if spec.id.startswith("synergy.jct"))
    with pytest.raises(NotApplicableError, match=r"never calls highs\?presolve=off"):
        spec.solve(sg.load("gen/20jobs?jobs=4"), solver="highs?presolve=off")


# ---------------------------------------------------------------- other solvers

PACKAGE = {"scip": "pyscipopt", "cp-sat": "ortools", "mpax": "mpax"}


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("scip?separating/maxrounds=0", "optimal"),
        ("scip?lp/pricing=d", "optimal"),
        ("scip?separating/maxrounds=-5", "error"),
        ("cp-sat?linearization_level=2", "optimal"),
        ("cp-sat?search_branching=FIXED_SEARCH", "optimal"),
    ],
)
def test_programs_pass_options_on(name: str, status: str) -> None:
    pytest.importorskip(PACKAGE[name.partition("?")[0]])
    found = solve(build(knapsack), SolveOptions(solver=name))
    assert (found.status, found.solver) == (status, name)
    if status == "error":
        assert "separating/maxrounds = -5: " in found.termination
        assert "\n" not in found.termination


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "scip?separating/maxround=0",
            "scip: unknown parameter 'separating/maxround'; did you mean separating/",
        ),
        ("scip?limits/gap=0", "must be given as --rel-gap"),
        ("scip?limits/time=0", "must be given as --time-limit"),
        ("scip?numerics/feastol=1e-3", "must be left as it is, since certified results rely on it"),
        ("scip?display/freq=1", "must be left as it is: what the solver prints is read by the program"),
        ("cp-sat?search_branching=FIXED", "must be AUTOMATIC_SEARCH or FIXED_SEARCH or "),
        ("cp-sat?num_workers=4", "must be given as --threads"),
        ("mpax?iteration_limit=5", "must be left as it is: it runs in parts, within --time-limit"),
        ("mpax?eps_re=0.1", "mpax: unknown parameter 'eps_re'; did you mean eps_rel"),
        ("cp-sat?log_to_stdout=true", "must be left as it is: what the solver prints is read by the program"),
    ],
)
def test_wrong_options_of_programs_are_refused_before_they_run(name: str, message: str) -> None:
    pytest.importorskip(PACKAGE[name.partition("?")[0]])
    with pytest.raises(UsageError) as error:
        SolveOptions(solver=name)
    assert message in str(error.value)


def test_options_of_a_solver_that_is_not_installed_stay_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    name = "scip?separating/maxrounds=3&a/b=x"
    solver.cache_clear()
    assert solver(name).id == name
    with pytest.raises(NotApplicableError, match="scip is not installed"):
        solve(build(knapsack), SolveOptions(solver=name))
    solver.cache_clear()


# ---------------------------------------------------------------- runs


def test_rows_tell_the_options_apart_and_a_resumed_run_repeats_nothing(tmp_path: Path) -> None:
    found = sg.compare(FIG1, ["hadar.p1"], solvers=["highs", NO_HEURISTICS, TWO], jobs=1, results=tmp_path)
    ids = ["hadar.p1", f"hadar.p1?solver={NO_HEURISTICS}", f"hadar.p1?solver={TWO.replace('&', '%26')}"]
    assert [(row.method, row.solver, row.status) for row in found.rows] == [
        (id_, name, "optimal") for id_, name in zip(ids, ["highs", NO_HEURISTICS, TWO], strict=True)
    ]
    assert found.table["m.solver"].tolist() == ["highs", NO_HEURISTICS, TWO]
    lines = summary.by_solver(found.rows, 20.0)
    assert [(line.solver, line.correct, line.common) for line in lines] == [
        (name, 1, 1) for name in ("highs", NO_HEURISTICS, TWO)
    ]
    assert f"--solver '{NO_HEURISTICS}'" in found.meta["command"]
    assert found.folder
    assert not [one for one in check(found.folder) if one.wrong]
    ran: list[str] = []
    again = sg.compare(FIG1, ids, jobs=1, resume=found.folder, on_result=lambda one: ran.append(one.row.method))
    assert (ran, [row.method for row in again.rows]) == ([], ids)


def test_a_sweep_names_them(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f'title = "t"\nmethods = ["oef.efficiency"]\ninstances = ["paper/oef-eq1"]\nsolvers = ["{TWO}"]\n')
    assert [row.solver for row in sg.sweep(file, jobs=1).rows] == [TWO]
    file.write_text(file.read_text().replace("presolve", "presolv"))
    with pytest.raises(UsageError, match=r"s\.toml: highs: unknown parameter 'presolv'; did you mean presolve"):
        sg.sweep(file, jobs=1)


def test_a_long_name_fits_into_the_name_of_a_file() -> None:
    whole = "&".join(f"{p.name}={p.choices[-1]}" for p in OPTIONS if p.choices) + "&mip_pool_age_limit=7"
    row = Row(
        "i", "f" * 64, "hadar", f"hadar.p1?{stated({'solver': f'highs?{whole}'})}", "hadar.utility", "exact", "max"
    )
    other = row.replace(method=row.method.replace("age_limit=7", "age_limit=8"))
    assert len(row.method) > 190 > len(Path(log_file(row)).name)
    assert log_file(row) != log_file(other)


# ---------------------------------------------------------------- logs


def test_repeated_solves_append_to_one_log(capfd: pytest.CaptureFixture[str]) -> None:
    with logs.logging(True) as folder:
        found = solve(build(knapsack), SolveOptions(logs=folder))
        assert folder is not None
        text = logs.joined(folder)
    assert found.objective == pytest.approx(9.0)
    assert text.count("MIP has 1 row") >= 2, "the answer, and the second one that it is compared with"
    assert capfd.readouterr() == ("", "")


def test_no_logs_unless_asked() -> None:
    with logs.logging(False) as folder:
        assert folder is None
    assert logs.settings(None) == {}


def test_a_log_is_cut_off_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LARGEST", 10)
    for name, text in (("1.log", "first"), ("2.log", "second"), ("3.log", "third")):
        (tmp_path / name).write_text(text)
    assert logs.joined(tmp_path) == "first\nseco\n… cut off after 10 characters; 1 more logs were left out\n"


def test_logs_stand_beside_the_decisions(tmp_path: Path) -> None:
    limits = Limits(solver_logs=True)
    methods = ["hadar.p1", "hadar.p2.columns", "hadar.fifo"]
    found = sg.compare(FIG1, methods, limits=limits, jobs=1, results=tmp_path)
    assert found.folder
    rows = {row.method: row for row in found.rows}
    assert {name[1] for name in found.logs} == {"hadar.p1", "hadar.p2.columns"}
    for method in ("hadar.p1", "hadar.p2.columns"):
        file = found.folder / log_file(rows[method])
        assert file.read_text() == found.logs[rows[method].name]
        assert "HiGHS" in file.read_text()
    page = to_html(found, [])
    targets = re.findall(r'href="(logs/[^"]+)"', page)
    assert len(targets) == 2
    assert all((found.folder / target).is_file() for target in targets)
    assert not [one for one in check(found.folder) if one.wrong]
    ran: list[str] = []
    again = sg.compare(
        FIG1, methods, limits=limits, jobs=1, resume=found.folder, on_result=lambda one: ran.append(one.row.method)
    )
    assert ran == []
    assert dict(again.logs) == dict(found.logs)


def test_a_changed_log_is_found(tmp_path: Path) -> None:
    found = sg.compare("paper/walkthrough", ["admission.offline"], limits=Limits(solver_logs=True), results=tmp_path)
    assert found.folder
    file = found.folder / log_file(found.rows[0])
    file.write_text(file.read_text().replace("Optimal", "Optimum"))
    (wrong,) = [one.wrong for one in check(found.folder) if one.wrong and "log" in one.wrong]
    assert "is not as it was written" in wrong


def test_a_sweep_of_policies_has_no_solver_logs() -> None:
    sweep = {"title": "t", "policies": ["fifo"], "instances": ["gen/20jobs?jobs=3"]}
    with pytest.raises(UsageError, match="solver logs are kept for methods, and this sweep simulates policies"):
        sg.sweep(sweep, solver_logs=True)


# ---------------------------------------------------------------- the command


def test_the_command_takes_options_and_keeps_logs(command: Command) -> None:
    words = ("compare", "--instance", FIG1, "--method", "hadar.p1", "--solver", NO_HEURISTICS, "--solver", "highs")
    run = command(*words, "--solver-logs", "--jobs", 1)
    assert run.returncode == 0, run.stderr
    assert f"hadar.p1?solver={NO_HEURISTICS}" in run.stdout
    assert "Copyright (c)" not in run.stdout + run.stderr
    folder = Path(re.search(r"solver logs: (\S+)/logs \(2 files\)", run.stderr)[1])  # type: ignore[index]
    assert len(list((folder / "logs").iterdir())) == 2
    assert 'href="logs/hadar.p1%3Fsolver%3Dhighs%3Fmip_heuristic_effort%3D0-' in (folder / "report.html").read_text()
    assert command("verify", folder).returncode == 0
    plain = command(*words, "--jobs", 1, "--no-report")
    assert plain.returncode == 0
    assert "solver logs" not in plain.stderr
    (other,) = [path.parent for path in Path("results").glob("*/journal.jsonl") if path.parent != folder]
    assert command("diff", folder, other).returncode == 0
    wrong = command(*words[:5], "--solver", "highs?mip_heuristic_efort=0")
    assert wrong.returncode == 2
    assert "did you mean mip_heuristic_effort" in wrong.stderr
    assert wrong.stderr.strip().count("\n") == 0
