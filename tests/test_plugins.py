"""Plug-ins: a sixth paper from outside the package, plug-ins with errors, and methods from notebooks and scripts."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HARNESS, ROOT, Command
from test_conformance import broken

import schedgap as sg
from schedgap.harness.check import judge
from schedgap.harness.studies.compare.methods import specs
from schedgap.harness.studies.compare.run import compare_here
from schedgap.heuristics import HEURISTICS
from schedgap.instances import plugins
from schedgap.instances.errors import UsageError
from schedgap.instances.registry import PAPERS
from schedgap.instances.views.oef import Allocation

PAPER = sorted((ROOT / "tests" / "smith").iterdir())
"""The files of a plug-in that adds a sixth paper."""

MINE = """
from schedgap import heuristic
from schedgap.instances.views.oef import Allocation

@heuristic("oef.mine", problem="oef.allocation")
def mine(view, context):
    print("a word on standard output")
    return Allocation(0.5 * view.capacity / view.size + 0 * view.speedups)
"""


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Remove all methods that a test has registered."""
    yield
    plugins.restore(())


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    """Write a plug-in to a file and return its path."""
    path = folder / name
    path.write_text(text)
    return path


# a sixth paper ------------------------------------------------------------------------------------


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """Return a folder with a copy of the sixth paper's files."""
    assert len([shutil.copy(path, tmp_path) for path in PAPER if path.is_file()]) <= 5
    return tmp_path


def edited(paper: Path, old: str, new: str) -> Path:
    """Return the sixth paper's file after a change of one text."""
    text = (paper / "smith.py").read_text()
    assert text.count(old) == 1
    (paper / "smith.py").write_text(text.replace(old, new))
    return paper / "smith.py"


def test_a_rule_with_the_wrong_sense_proves_nothing_and_the_table_says_so(command: Command, paper: Path) -> None:
    """Else a rule that bounds a minimum from above would certify any bound below it, and verify would agree."""
    edited(paper, "return -1, sum(own", "return 1, sum(own")
    run = command("compare", "--instance", "smith.toml", "--method", "smith.*", "--plugin", "smith.py", "--no-report")
    assert "returns the sense 1; the problem's is -1" in run.stdout + run.stderr


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('Problem("smith.waiting"', 'Problem("waiting"', "problem 'waiting': its id must begin with its paper"),
        ("ProverSpec(WAITING.id,", 'ProverSpec("smith.wating",', "unknown problem 'smith.wating'"),
        ("decode=decode,", 'decode=decode, kind="exakt",', "kind = 'exakt'"),
    ],
)
def test_what_a_paper_misnames_is_refused_when_it_is_loaded(paper: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        sg.load_plugin(edited(paper, old, new))


def test_a_rule_that_reads_an_array_at_a_symbol_is_explained(command: Command, paper: Path) -> None:
    extra = "m.extra = pyo.Constraint(m.J, rule=lambda m, j: m.x[j, 0] <= view.hours[j])"
    edited(paper, "    @m.Constraint(m.J)", f"    {extra}\n\n    @m.Constraint(m.J)")
    run = command("explain", "smith.assignment", "--instance", "smith.toml", "--plugin", "smith.py")
    assert run.returncode == 0, run.stderr
    assert "put the data into a pyo.Param" in " ".join(run.stdout.split())


def test_a_paper_from_outside_is_compared(command: Command, paper: Path) -> None:
    run = command("compare", "--instance", "smith.toml", "--paper", "smith", "--plugin", "smith.py", "--format", "json")
    assert run.returncode == 0, run.stderr
    rows = {row["method"]: row for row in json.loads(run.stdout)}
    assert rows["smith.assignment"]["status"] == "optimal"
    assert rows["smith.spt"]["ratio"] == pytest.approx(1, abs=1e-9)
    assert rows["smith.assignment"]["own_bound"] == rows["smith.spt"]["best_bound"]  # its rule ran in the worker
    assert rows["smith.as_given"]["gap"] > 0
    assert all(row["verified"] for row in rows.values())
    (folder,) = (paper / "results").iterdir()
    assert "smith.toml --paper smith --plugin smith.py" in json.loads((folder / "run.json").read_text())["command"]
    assert (folder / "figures" / "smith-completed.svg").is_file()
    plugins.restore(())
    missing = command("verify", folder)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.endswith("these results need the plug-in smith.py: add --plugin smith.py\n")
    held = command("verify", folder, "--plugin", "smith.py")
    assert (held.returncode, "holds" in held.stdout) == (0, True)
    assert command("report", folder, "--plugin", "smith.py").returncode == 0
    assert "Jobs completed: smith on smith" in (folder / "report.html").read_text()


def test_a_paper_from_outside_is_simulated_and_swept(command: Command, paper: Path) -> None:
    words = ("--instance", "smith.toml", "smith.spt", "--round-s", 60, "--no-report", "--format", "json")
    run = command("simulate", *words, "--plugin", "smith.py", "--restart-s", 0)
    assert run.returncode == 0, run.stderr
    (row,) = json.loads(run.stdout)
    assert (row["policy"], row["status"], row["verified"]) == ("smith.spt", "done", True)
    plugins.restore(())
    run = command("sweep", "sweep.toml", "--no-report", "--format", "json")
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout)
    assert len({row["instance"] for row in rows}) == 3
    assert all(row["ratio"] == pytest.approx(1, abs=1e-9) for row in rows if row["method"] == "smith.spt")


def test_a_paper_from_outside_is_listed_and_explained(command: Command, paper: Path) -> None:
    given = ("--plugin", "smith.py")
    assert "Smith, Naval Research" in command("list", "papers", *given).stdout
    assert "model smith.assignment" in command("list", "plugins", *given).stdout
    assert "smith.as_given" in command("list", "heuristics", *given).stdout
    assert "smith.spt" in command("list", "policies", *given).stdout
    assert "smith" in command("show", "smith.toml", *given).stdout
    explained = command("explain", "smith", "--instance", "smith.toml", "--format", "markdown", *given)
    assert explained.returncode == 0, explained.stderr
    size, row = "12 rows, 36 columns", "sum_k x_{jk} = 1"
    for words in ("assigns jobs to positions", size, row, "in the order of the instance"):
        assert words in explained.stdout


def test_a_paper_from_outside_is_audited_attacked_and_imported(command: Command, paper: Path) -> None:
    given = ("--plugin", "smith.py")
    run = command("audit", "--paper", "smith", "--effort", 0.5, "--no-report", "--format", "json", *given)
    assert [finding["verdict"] for finding in json.loads(run.stdout)] == ["confirmed"]
    run = command("adversary", "--heuristic", "smith.spt", "--budget", "30m", "--tries", 3, *given)
    assert run.returncode == 0, run.stderr
    assert "--method smith.spt --method smith.assignment --plugin smith.py" in run.stdout
    written(paper, "1\n2\n", "hours.txt")
    assert "2 jobs" in command("import", "hours", "hours.txt", "-o", "hours.json", *given).stdout


def test_the_installed_command_takes_plug_ins(paper: Path) -> None:
    words = [HARNESS, "compare", "--instance", "smith.toml", "--method", "smith.*", "--plugin", "smith.py"]
    run = subprocess.run([*words, "--no-report"], capture_output=True, text=True, cwd=paper, check=False)
    assert run.returncode == 0, run.stderr
    assert "smith.spt is optimal" in run.stdout


def test_its_checker_rejects_mutilated_decisions(paper: Path) -> None:
    sg.load_plugin(paper / "smith.py")
    view = PAPERS.get("smith").view(sg.load(paper / "smith.toml"))
    for spec in (spec for spec in specs() if spec.paper == "smith" and spec.id in HEURISTICS):
        for wrong in broken(spec.run(view, None), ("larger", "negative", "nan", "shape")):
            assert judge(view.instance, wrong, spec.problem, ()).violations


# every command ------------------------------------------------------------------------------------


def test_every_command_takes_plug_ins(command: Command, tmp_path: Path) -> None:
    names = re.findall(r"^  (\w+)  ", command("--help").stdout.partition("Commands")[2], flags=re.M)
    assert len(names) > 10
    for name in names:
        assert "--plugin FILE.py|MODULE" in command(name, "--help").stdout
    assert "oef.mine" in command("--plugin", written(tmp_path, MINE), "list", "heuristics").stdout


def test_an_edited_plug_in_is_run_again_and_the_rest_is_kept(command: Command, tmp_path: Path) -> None:
    methods = ("--method", "oef.mine", "--method", "oef.rounding")  # a model would start from mine
    words = ("compare", "--instance", "paper/oef-eq1", *methods, "--plugin", written(tmp_path, MINE), "--no-report")
    first = command(*words, "--format", "json")
    assert first.returncode == 0, first.stderr
    (folder,) = (tmp_path / "results").iterdir()
    written(tmp_path, MINE.replace("0.5", "0.25"))
    again = command(*words, "--format", "json", "--resume", folder)
    assert again.returncode == 0, again.stderr
    before, after = ({row["method"]: row for row in json.loads(run.stdout)} for run in (first, again))
    assert after["oef.rounding"]["key"] == before["oef.rounding"]["key"]
    assert after["oef.rounding"]["total_s"] == before["oef.rounding"]["total_s"]
    assert after["oef.mine"]["objective"] == pytest.approx(before["oef.mine"]["objective"] / 2)


def test_rows_without_a_headline_are_not_alone_when_one_failed(command: Command, tmp_path: Path) -> None:
    plugin = written(tmp_path, MINE.replace("    return", "    1 / 0\n    return"))
    words = ("compare", "--instance", "paper/oef-eq1", "--method", "oef.mine", "--plugin", plugin, "--no-report")
    run = command(*words, "--format", "csv")
    assert run.returncode == 1
    assert "1 of 1 results failed: oef.mine (error: ZeroDivisionError" in run.stderr
    assert len(run.stdout.splitlines()) == 2


# what is wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:", "line 1: invalid syntax"),
        ("x = 1\n1 / 0", "line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)", "line 2: SystemExit: 3"),
        ("import no_such_module", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1", "it registers nothing; call HEURISTICS.register(…), or decorate a function with @sg.heuristic"),
        (MINE + MINE, "line 13: heuristic 'oef.mine' is registered already; choose another id"),
        (MINE.replace("mine", "gandiva_fair"), "heuristic 'oef.gandiva_fair' is registered already; choose another id"),
        (MINE.replace("oef.mine", "oef.gavel"), "model 'oef.gavel' is registered already; choose another id"),
        (MINE.replace('"oef.mine"', '"aef.mine"'), "unknown paper 'aef'; did you mean oef or gavel?"),
        (
            MINE.replace("oef.allocation", "oef.all"),
            "unknown problem 'oef.all'; did you mean oef.fair or oef.allocation",
        ),
        (MINE.replace('"oef.mine"', '"mine", paper="oef"'), "'mine': the id of a method must begin with its paper"),
    ],
)
def test_a_plug_in_that_cannot_be_loaded_says_why_and_leaves_nothing(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, text)
    before = {registry: list(registry) for registry in (HEURISTICS, PAPERS)}
    with pytest.raises(UsageError) as caught:
        sg.load_plugin("mine.py")
    assert str(caught.value).startswith("plug-in mine.py: ")
    assert message in str(caught.value)
    assert {registry: list(registry) for registry in before} == before
    assert plugins.loaded() == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.py", "none.py: the plug-in cannot be read: No such file or directory"),
        (".", ".: is a folder; a plug-in is a .py file or an installed module"),
        ("./mine.txt", "mine.txt: the name of a plug-in file must end in .py"),
        ("mine", "plug-in 'mine': no module 'mine' is installed; to load the file, write --plugin mine.py"),
        ("nobody.has.this", "plug-in 'nobody.has.this': no module 'nobody' is installed; a file name ends in .py"),
    ],
)
def test_a_plug_in_that_is_not_there(name: str, message: str, command: Command, tmp_path: Path) -> None:
    written(tmp_path, MINE)
    run = command("list", "papers", "--plugin", name)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", f"harness: {message}\n")


def test_a_better_version_replaces_the_first_and_a_worse_one_does_not(tmp_path: Path) -> None:
    path = written(tmp_path, MINE)
    sg.load_plugin(path)
    assert sg.load_plugin(path) == sg.load_plugin(written(tmp_path / "..", MINE))
    written(tmp_path, MINE.replace("oef.mine", "oef.better"))
    sg.load_plugin(path)
    assert "oef.better" in HEURISTICS
    assert "oef.mine" not in HEURISTICS
    written(tmp_path, "1 / 0")
    with pytest.raises(UsageError, match="ZeroDivisionError"):
        sg.load_plugin(path)
    assert "oef.better" in HEURISTICS


def test_a_module_of_a_package_is_a_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lab").mkdir()
    written(tmp_path / "lab", "", "__init__.py")
    written(tmp_path / "lab", MINE, "methods.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = sg.load_plugin("lab.methods")
    assert (first.kind, "oef.mine" in HEURISTICS) == ("module", True)
    written(tmp_path / "lab", MINE.replace("oef.mine", "oef.other"), "methods.py")
    assert sg.load_plugin("lab.methods").digest != first.digest
    assert "oef.other" in HEURISTICS
    assert "oef.mine" not in HEURISTICS


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    sg.load_plugin(written(tmp_path, MINE))
    with pytest.raises(UsageError, match="has the same module name; rename one of them"):
        sg.load_plugin(written(tmp_path / "other", MINE.replace("oef.mine", "oef.other")))


# installed distributions --------------------------------------------------------------------------


def installed(folder: Path, name: str, text: str) -> None:
    """Make a distribution with an entry point, as pip would install it."""
    written(folder, text, f"{name}.py")
    (folder / f"{name}-1.2.dist-info").mkdir()
    written(folder / f"{name}-1.2.dist-info", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", "METADATA")
    written(folder / f"{name}-1.2.dist-info", f"[schedgap.plugins]\nit = {name}\n", "entry_points.txt")


def test_plug_ins_of_distributions_come_by_themselves_and_broken_ones_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    installed(tmp_path, "speedy", MINE)
    installed(tmp_path, "shaky", "import no_such_module")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(plugins, "_pending", [plugins.GROUP])
    monkeypatch.setattr(plugins, "_broken", [])
    with caplog.at_level(logging.WARNING):
        assert "oef.mine" in HEURISTICS
    assert [(one.name, one.distribution) for one in plugins.loaded()] == [("speedy", "speedy 1.2")]
    (line,) = caplog.messages
    assert line.startswith(
        "plug-in shaky: ModuleNotFoundError: No module named 'no_such_module'; it comes with shaky 1.2"
    )
    assert line.endswith("update it (pip install -U shaky) or remove it (pip uninstall shaky)")
    with pytest.raises(
        UsageError, match=r"unknown heuristic 'oef\.shaky'.* \(plug-ins that could not be loaded: shaky"
    ):
        HEURISTICS.get("oef.shaky")


# definitions in cells and scripts -----------------------------------------------------------------


def row_of(method: str) -> Any:
    """Run a method and OEF's optimum in worker processes; return the row of the method."""
    comparison = sg.compare("paper/oef-eq1", [method, "oef.efficiency"], jobs=1)
    return next(row for row in comparison.rows if row.method == method)


def test_a_heuristic_that_is_defined_here_runs_in_workers_and_may_be_defined_again(tmp_path: Path) -> None:
    share = 0.5

    @sg.heuristic("oef.here")
    def here(view: Any, context: Any) -> Allocation:
        return Allocation(share * view.capacity / view.size + 0 * view.speedups)

    first = row_of("oef.here")
    assert first.verified
    share = 0.25
    second = row_of("oef.here")
    assert second.objective == pytest.approx(first.objective / 2)
    assert second.key != first.key
    sg.heuristic("oef.here", source="again")(here)
    assert HEURISTICS.get("oef.here").source == "again"
    folder = sg.compare("paper/oef-eq1", ["oef.here"], results=tmp_path).folder
    plugins.restore(())
    with pytest.raises(UsageError, match="run the notebook or script that defines it first"):
        sg.read_run(folder)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda view: np.zeros(3), "TypeError: oef.here returned ndarray; methods of oef return Allocation"),
        (lambda view: None, "TypeError: oef.here returned nothing; methods of oef return Allocation"),
        (lambda view: view.no_such_field, "AttributeError: 'OefView' object has no attribute 'no_such_field'"),
        (lambda view: sys.exit(3), "SystemExit: 3"),
    ],
)
def test_what_goes_wrong_in_a_method_is_a_row(answer: Any, reason: str) -> None:
    sg.heuristic("oef.here")(lambda view, context: answer(view))
    row = row_of("oef.here")
    where = r" \(test_plugins\.py, line \d+\)" if "no_such_field" in reason else ""
    assert row.status == "error"
    assert re.fullmatch(re.escape(reason) + where, row.reason)


@pytest.mark.parametrize("method", ["oef.mine", "oef.efficiency"])
def test_a_method_that_writes_to_its_view_changes_nobody_elses(method: str, tmp_path: Path) -> None:
    """A method that changes its view does not change that of another; the bound stays 5, where it was 2 once."""
    text = MINE.replace("    print", "    view.speedups[:] = np.minimum(view.speedups, 1.0)\n    print")
    sg.load_plugin(written(tmp_path, f"import numpy as np{text}"))
    spec, instance = sg.heuristics.get("oef.mine"), sg.load("paper/oef-eq1")
    spec.decide(instance)
    assert sg.models.get("oef.efficiency").solve(instance).bound == pytest.approx(5.0)
    rows = {row.method: row for row in compare_here(instance, ["oef.mine", "oef.efficiency"]).rows}
    assert rows["oef.mine"].verified
    assert rows[method].best_bound == pytest.approx(5.0)


def test_what_goes_wrong_in_a_policy_is_a_row() -> None:
    @sg.policy("hadar.here")
    def here(instance: Any, oracle: Any) -> Any:
        return lambda state: None

    @sg.policy("hadar.there")
    def there(instance: Any, oracle: Any) -> Any:
        return 7

    rows = sg.simulate("paper/hadar-fig1", ["hadar.here", "hadar.there"], jobs=1).rows
    assert [row.status for row in rows] == ["error", "error"]
    assert rows[0].reason == "InvalidAssignmentError: round 0: the policy returned NoneType, not an Assignment"
    assert rows[1].reason == "TypeError: 'int' object is not callable"


def test_a_definition_that_cannot_travel_says_so() -> None:
    lock = logging.getLogger().handlers

    @sg.heuristic("oef.here")
    def here(view: Any, context: Any) -> Any:
        return lock, open_file

    with open(__file__, encoding="utf-8") as open_file, pytest.raises(UsageError, match="cannot be sent to worker"):
        row_of("oef.here")


def test_what_does_not_exist_is_refused_where_it_is_defined() -> None:
    with pytest.raises(UsageError, match="unknown paper 'aef'"):
        sg.heuristic("aef.here")(print)
    with pytest.raises(UsageError, match="unknown problem 'oef"):
        sg.heuristic("oef.here", problem="oef.none")(print)
    assert "oef.here" not in HEURISTICS
