"""Sweep files: what they expand to, which are refused, and that they run as one comparison."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Command, wait_for

from schedgap.harness.engine.task import Limits
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.harness.studies.compare.run import compare, read_run
from schedgap.harness.studies.simulate.row import Simulation
from schedgap.harness.studies.sweep import Sweep, read, sweep
from schedgap.instances.canonical import write
from schedgap.instances.catalogue import load
from schedgap.instances.errors import UsageError

FILES = sorted((ROOT / "sweeps").glob("*.toml"), key=lambda path: (len(path.name), path.name))

SMALL = """
title = "mine"
instances = ["paper/oef-eq1"]
methods = ["oef.cooperative", "oef.gandiva_fair"]
time_limit_s = 20

[[grids]]
base = "gen/oef-20?seed=3"
vary = { tenants = [3, 4], arrivals = ["start"] }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_grid_is_the_product_of_its_lists(tmp_path: Path) -> None:
    asked = read(written(tmp_path, SMALL.replace('["start"]', '["start", "poisson"]')))
    assert asked.references == [
        "paper/oef-eq1",
        "gen/oef-20?seed=3&tenants=3&arrivals=start",
        "gen/oef-20?seed=3&tenants=3&arrivals=poisson",
        "gen/oef-20?seed=3&tenants=4&arrivals=start",
        "gen/oef-20?seed=3&tenants=4&arrivals=poisson",
    ]
    assert (asked.seeds, asked.time_limit_s, asked.all_sizes) == ((0,), 20.0, False)


def test_a_base_without_parameters_and_values_that_need_quoting(tmp_path: Path) -> None:
    text = SMALL.replace("?seed=3", "").replace('["start"]', '["a&b=c d"]')
    assert read(written(tmp_path, text)).references[1] == "gen/oef-20?tenants=3&arrivals=a%26b%3Dc%20d"


def test_lists_and_files_are_varied(tmp_path: Path) -> None:
    write(load("gen/20jobs?jobs=4"), tmp_path / "mine.json")
    (tmp_path / "law.toml").write_text('base = "gen/20jobs"\n[generator]\narrivals = "bursty"\njobs = 5\n')
    files = [f'"{tmp_path / name}"' for name in ("mine.json", "law.toml")]
    text = f"""
title = "mine"
instances = [{", ".join(files)}]
methods = ["hadar.fifo"]

[[grids]]
base = ["gen/20jobs", {files[1]}]
vary = {{ jobs = [3, 4], epochs = [[1, 2], [50, 100]] }}

[[grids]]
base = [{", ".join(files)}]
vary = {{ slot_s = [1800] }}
"""
    asked = read(written(tmp_path, text))
    names = [instance.name for instance in asked.loaded().values()]
    epochs = [f"?epochs={ends}&jobs={jobs}" for jobs in (3, 4) for ends in ("1,2", "50,100")]
    assert names == [
        *("gen/20jobs?jobs=4", "law"),
        *(f"{base}{query}" for base in ("gen/20jobs", "law") for query in epochs),
        *("gen/20jobs?jobs=4&slot_s=1800", "law?slot_s=1800"),
    ]
    found = sweep(asked.model_dump(exclude_unset=True) | {"instances": asked.instances}, jobs=1, results=tmp_path)
    assert isinstance(found, Comparison)
    assert found.ok
    assert set(found.table["p.epochs"].dropna()) == {"1,2", "50,100"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("methods =", "method =", "mine.toml: method: unknown field"),
        ("title =", "titel = 1\ntitle =", "mine.toml: titel: unknown field"),
        ("vary = { tenants = [3, 4]", "vary = { tenants = []", "mine.toml: grids[0].vary.tenants = []"),
        (
            'vary = { tenants = [3, 4], arrivals = ["start"] }',
            "vary = {}",
            "mine.toml: grids[0].vary = {}: by parameter",
        ),
        ("tenants = [3, 4]", "tenants = 3", "mine.toml: grids[0].vary.tenants = 3: "),
        ("tenants = [3, 4]", "tenants = [[]]", "mine.toml: grids[0].vary.tenants[0] = []: by parameter, a list of "),
        ("tenants = [3, 4]", "tenants = [[[3]]]", "mine.toml: grids[0].vary.tenants[0] = [[3]]: by parameter, a list"),
        (
            "tenants = [3, 4]",
            "tenants = [{ a = 1 }]",
            'mine.toml: grids[0].vary.tenants[0] = {"a": 1}: by parameter, a',
        ),
        (
            'base = "gen/oef-20?seed=3"',
            "base = []",
            "mine.toml: grids[0].base = []: references, files or ids, one or a ",
        ),
        ("oef.cooperative", "oef.cooperativ", "mine.toml: unknown method 'oef.cooperativ'; did you mean oef.coop"),
        ('["oef.cooperative", "oef.gandiva_fair"]', "[]", "mine.toml: methods = []: ids or patterns"),
        ("time_limit_s = 20", "time_limit_s = 0", "mine.toml: time_limit_s = 0: seconds each solve or simulation may"),
        (
            "time_limit_s = 20",
            'policies = ["gavel"]',
            "mine.toml: policies = …: nothing in a sweep that compares methods",
        ),
        ("time_limit_s = 20", "options = { round_s = 9 }", "mine.toml: options = …: nothing in a sweep that compares"),
        ("time_limit_s = 20", 'papers = ["gandiva"]', "mine.toml: unknown paper 'gandiva'"),
        ("time_limit_s = 20", "seeds = []", "mine.toml: seeds = []: seeds of heuristics and solver, one or more"),
        ("[[grids]]", "[[grid]]", "mine.toml: grid: unknown field"),
        ("title =", "title", "mine.toml: not valid TOML"),
        ("time_limit_s = 20", "time_limit_s = 2020-01-01", "mine.toml: "),
    ],
)
def test_files_that_cannot_be(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = written(tmp_path, SMALL.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)


def test_a_sweep_of_nothing_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 'title = "x"\nmethods = ["oef.cooperative"]\n')
    with pytest.raises(UsageError, match=r"instances = \[\]: one or more references here, or in \[\[grids\]\]"):
        read(path)
    rules = 'title = "x"\npolicies = ["fifo"]\ninstances = ["gen/20jobs"]\noptions = { round_s = [] }\n'
    with pytest.raises(UsageError, match=r"options\.round_s = \[\]: one or more values"):
        read(written(tmp_path, rules))


def test_too_many_instances_are_refused_before_they_are_written_out(tmp_path: Path) -> None:
    many = ", ".join(map(str, range(1000)))
    wide = f"vary = {{ a = [{many}], b = [{many}], c = [{many}] }}"
    text = SMALL.replace('vary = { tenants = [3, 4], arrivals = ["start"] }', wide)
    with pytest.raises(UsageError, match="grids = 1000000001 instances: at most 1000; to raise it"):
        read(written(tmp_path, text))


def test_too_many_seeds_are_refused(tmp_path: Path) -> None:
    text = SMALL.replace("time_limit_s = 20", f"seeds = {list(range(40_000))}")
    with pytest.raises(UsageError, match="seeds = 120000 instances × seeds × options: at most 100000"):
        read(written(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gen/oef-20?seed=3", "gen/oef-21", "unknown instance 'gen/oef-21'; did you mean gen/oef-20"),
        ("tenants = [3, 4]", "tenant = [3, 4]", "unknown parameter 'tenant'; did you mean tenants"),
        ("tenants = [3, 4]", "seed = [3, 4]", "'seed' is given twice"),
        ("tenants = [3, 4]", "tenants = [[3, 4]]", 'tenants = "3,4": a whole number of tenants, 1 or more'),
        ('"start"', '"often"', "input should be 'start', 'poisson', 'bursty', "),
        ('"gen/oef-20?seed=3"', '["gen/oef-20?seed=3", "none.json"]', "none.json: no such file"),
        ("tenants = [3, 4]", "tenants = [3, 3]", "two of the instances have the same content; name each once"),
        ("time_limit_s = 20", "seeds = [1, 1]", "seeds = 1, 1: name each seed once"),
        ("time_limit_s = 20", "seeds = [-1]", "seed"),
    ],
)
def test_instances_that_cannot_be_are_refused_before_anything_runs(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = written(tmp_path, SMALL.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        sweep(path, results=tmp_path)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["none.toml", "mine.json", "."])
def test_what_is_no_sweep_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"no such file|a sweep file must end in \.toml"):
        read(tmp_path / name)


def test_the_command_runs_resumes_and_says_how(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schedgap.harness.studies.sweep.MAX_INSTANCES", 3)
    path = written(tmp_path, SMALL)
    first = command("sweep", "mine.toml", "--jobs", "1", "--no-report", "--format", "json")
    assert first.returncode == 0, first.stderr
    rows = json.loads(first.stdout)
    assert [(row["instance"], row["method"]) for row in rows] == [
        (name, method)
        for name in ("paper/oef-eq1", *(f"gen/oef-20?arrivals=start&seed=3&tenants={n}" for n in (3, 4)))
        for method in ("oef.cooperative", "oef.gandiva_fair")
    ]
    (folder,) = (tmp_path / "results").iterdir()
    assert json.loads((folder / "run.json").read_text())["command"] == "harness sweep mine.toml"
    ran: list[int] = []
    again = sweep(path, jobs=1, resume=folder, on_start=ran.append)
    assert not any(ran)
    assert [row.objective for row in again.rows] == [row["objective"] for row in rows]


POLICIES = """
title = "slots"
instances = ["gen/20jobs"]
policies = ["fifo", { base = "hadar.online", vary = { payoff = ["lifetime", "round"] } }]
seeds = [0, 1]
options = { round_s = [450.0, 900.0], restart_s = 10.0 }
"""


def test_policies_are_swept_over_their_parameters_seeds_and_options(tmp_path: Path, command: Command) -> None:
    path = written(tmp_path, POLICIES)
    assert read(path).chosen == ["fifo", "hadar.online?payoff=lifetime", "hadar.online?payoff=round"]
    first = sweep(path, jobs=1, results=tmp_path)
    assert isinstance(first, Simulation)
    policies = ("hadar.fifo", "hadar.online?payoff=lifetime", "hadar.online")
    assert [(row.options, row.seed, row.policy) for row in first.rows] == [
        (f"round_s={length}", seed, policy) for length in (450.0, 900.0) for seed in (0, 1) for policy in policies
    ]
    assert all(row.ok and row.restart_s == 10 and row.ttd_bound_ratio >= 1 for row in first.rows)
    assert {(row.options, row.round_s) for row in first.rows} == {("round_s=450.0", 450.0), ("round_s=900.0", 900.0)}
    ran: list[int] = []
    again = sweep(path, jobs=1, resume=first.folder, on_start=ran.append)
    assert (ran, again.rows) == ([0], first.rows)
    reported = command("report", first.folder)
    assert reported.returncode == 0, reported.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"fifo"', '"fifi"', "unknown policy 'fifi'; did you mean"),
        ("payoff = [", "payof = [", "payof"),
        ("round_s = [450.0, 900.0]", "round = 3.0", "options.round: unknown field"),
        ("restart_s = 10.0", 'window = "few"', "window = 'few': write FIRST:COUNT"),
        ("seeds = [0, 1]", 'papers = ["oef"]', "papers = …: nothing in a sweep that simulates policies"),
    ],
)
def test_sweeps_of_policies_that_cannot_be(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = written(tmp_path, POLICIES.replace(old, new))
    with pytest.raises(UsageError, match=r"mine\.toml") as caught:
        read(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


LIMITS = """
title = "limits"
instances = ["paper/oef-eq1"]
methods = ["oef.cooperative", "oef.rounding"]
seeds = [0, 1]
all_sizes = true

[[limits]]
name = "short"
time_limit_s = 10.0

[[limits]]
name = "rough"
rel_gap = 0.01
"""


def test_searches_are_limited_by_a_count(tmp_path: Path) -> None:
    text = LIMITS.replace("seeds = [0, 1]", "nodes = 6").replace("rel_gap = 0.01", "nodes = 0")
    kinds = read(written(tmp_path, text)).kinds(Limits())
    assert [(name, k.nodes, k.time_limit_s) for name, k in kinds.items()] == [("short", 6, 10.0), ("rough", 0, 20.0)]


def test_every_method_runs_once_under_each_of_the_limits(tmp_path: Path) -> None:
    path = written(tmp_path, LIMITS)
    kinds = read(path).kinds(Limits(memory_mb=2048))
    assert [(name, k.time_limit_s, k.rel_gap, k.memory_mb, k.all_sizes) for name, k in kinds.items()] == [
        ("short", 10.0, 1e-6, 2048, True),
        ("rough", 20.0, 0.01, 2048, True),
    ]
    comparison = sweep(path, jobs=1, results=tmp_path)
    assert [(row.method, row.seed, row.limits) for row in comparison.rows] == [
        (method, seed, limits)
        for method in ("oef.cooperative", "oef.rounding")
        for seed in (0, 1)
        for limits in ("short", "rough")
    ]
    assert comparison.ok
    assert comparison.folder is not None
    again = read_run(comparison.folder)
    assert [row.name for row in again.rows] == [row.name for row in comparison.rows]
    assert len(again.decisions) == len(comparison.rows)
    assert set(again.meta["limits"]) == {"short", "rough"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"rough"', '"short"', "limits = short, short: limits of different names"),
        ("rel_gap = 0.01", "rel_gap = 1", "limits[1].rel_gap = 1: relative gap at which a search ends, in [0"),
        ("rel_gap = 0.01", "threads = 0", "limits[1].threads = 0: threads of one solve"),
        ("rel_gap = 0.01", "nodes = -1", "limits[1].nodes = -1: nodes per search or MIP, 0 or more"),
        ("rel_gap = 0.01", "seeds = 0", "limits[1].seeds: unknown field"),
        ('name = "rough"', "", "limits[1].name: missing: label of the rows, in their column limits"),
    ],
)
def test_limits_that_cannot_be(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(written(tmp_path, LIMITS.replace(old, new)))
    assert f"mine.toml: {message}" in str(caught.value)


def test_several_names_of_one_content_are_one_instance_with_all_printed_numbers() -> None:
    """Several names of the same content are one instance, which has the published numbers of all of them.

    Expressions (1), (2) and (3) of OEF are about the same tenants.
    """
    names = ["paper/oef-eq1", "paper/oef-eq2", "paper/oef-eq3"]
    (instance,) = compare(names, ["oef.gavel?row_cap=true", "oef.cooperative"], jobs=1).instances.values()
    assert instance.name == names[0]
    for name in names:
        assert all(entry in instance.published for entry in load(name).published)


def test_a_sweep_that_grew_goes_on_where_it_was(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL.replace("[3, 4]", "[3]"))
    first = sweep(path, jobs=1, results=tmp_path)
    ran: list[int] = []
    grown = sweep(written(tmp_path, SMALL), jobs=1, resume=first.folder, on_start=ran.append)
    # Of the new instance: the heuristic that was asked for, then the model.
    assert (ran, len(grown.rows), grown.ok) == ([1, 1], 6, True)
    with pytest.raises(UsageError, match="only a run of at least these instances can be resumed there"):
        sweep(written(tmp_path, SMALL.replace("[3, 4]", "[4]")), jobs=1, resume=first.folder)


def test_a_sweep_whose_main_process_is_killed_is_completed_to_the_same_table(tmp_path: Path) -> None:
    """A sweep that is killed in the middle and resumed keeps finished rows, runs the others, and has no row twice."""
    path = written(
        tmp_path, SMALL.replace("[3, 4]", "[3, 4, 5, 6, 7, 8]").replace("time_limit_s = 20", "seeds = [0, 1]")
    )
    command = [sys.executable, "-m", "schedgap", "sweep", str(path), "--results", str(tmp_path / "runs")]
    process = subprocess.Popen(
        [*command, "--jobs", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        start_new_session=True,
    )

    def lines() -> list[str]:
        return [line for file in (tmp_path / "runs").glob("*/journal.jsonl") for line in file.read_text().splitlines()]

    wait_for(lambda: len(lines()) >= 5, process)
    (journal,) = (tmp_path / "runs").glob("*/journal.jsonl")
    process.kill()
    process.wait()
    kept = len([line for line in journal.read_text().splitlines() if line.endswith("}")])
    ran: list[int] = []
    resumed = sweep(path, jobs=1, resume=journal.parent, on_start=ran.append)
    every: list[int] = []
    whole = sweep(path, jobs=1, on_start=every.append)
    assert 0 < sum(ran) <= sum(every) - kept
    timeless = [[told(row) for row in comparison.rows] for comparison in (resumed, whole)]
    assert timeless[0] == timeless[1]
    keys = [json.loads(line)["row"]["key"] for line in journal.read_text().splitlines() if line.endswith("}")]
    assert len(keys) == len(set(keys)) == sum(every)


def told(row: Row) -> tuple[object, ...]:
    """Return what a row says, without its times."""
    return (*row.name, row.status, row.objective, row.best_bound, row.bound_from, row.ratio, row.verified, row.key)


# the sweeps that come with the project ------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_can_be_run(path: Path) -> None:
    asked: Sweep = read(path)
    assert asked.title
    assert asked.source
    references = asked.references
    assert len(set(references)) == len(references)
    names = {load(ref).name for ref in references}
    assert len(names) == len(references)


@pytest.mark.parametrize(
    ("methods", "more"),
    [
        (["hadar.fluid", "hadar.online"], 0),
        (["hadar.p2.columns?seeded=false"], 0),
        (["hadar.p2.columns", "hadar.online"], 15),
    ],
)
def test_what_a_sweep_names_runs_and_starts_of_searches(methods: list[str], more: int) -> None:
    """Heuristics that nobody named run only where a search starts from their decisions, and the command says so."""
    begun: list[int] = []
    told: list[str] = []
    file = {"title": "t", "methods": methods, "nodes": 2, "instances": ["gen/20jobs?jobs=2&slot_s=21600"]}
    found = sweep(file, jobs=1, on_start=begun.append, on_news=told.append)
    assert {row.method for row in found.rows} == set(methods)
    assert sum(begun) == len(methods) + more
    assert [f"{more} more methods run on each instance" in text for text in told if "beside" in text] == [True] * bool(
        more
    )
