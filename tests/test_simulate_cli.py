"""``harness simulate`` and ``schedgap.simulate``, used and misused as by a stranger."""

from __future__ import annotations

import csv
import gzip
import io
import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import HARNESS, PATIENCE_S, Command, wait_for

import schedgap as sg
from schedgap import certificates as proofs
from schedgap import instances
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.show.drawing import figures
from schedgap.harness.show.page import to_fragment
from schedgap.harness.show.page.simulate import blocks, headline
from schedgap.harness.show.table import to_csv, to_json, to_markdown
from schedgap.harness.studies.folders import reopen
from schedgap.harness.studies.simulate import bounds
from schedgap.harness.studies.simulate.bounds import BoundTask, compared
from schedgap.harness.studies.simulate.row import FIELDS, Bound, Simulation, SimulationRow
from schedgap.harness.studies.simulate.run import resolve
from schedgap.harness.studies.simulate.task import SimulationTask, history_file
from schedgap.heuristics.simulator import POLICIES, Assignment, PolicySpec, Rules, State, workload
from schedgap.heuristics.simulator.metrics import Window
from schedgap.instances.canonical import to_json as instance_json
from schedgap.instances.errors import NotApplicableError, UnknownNameError, UsageError
from schedgap.instances.schema import Instance, Published
from schedgap.models.simulated import SIMULATED, SimulationBound

TTD, JCT = SIMULATED["gavel.makespan_fluid"], SIMULATED["synergy.jct"]

TINY = "gen/20jobs"


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_as_the_readme_writes_it(command: Command, tmp_path: Path) -> None:
    result = command("simulate", "--instance", TINY, "--policy", "gavel", "tiresias", "yarn-cs", "--round-s", "360")
    assert result.returncode == 0, result.stderr
    out = " ".join(result.stdout.split())
    for text in ("hadar.gavel", "hadar.tiresias", "hadar.yarn_cs", "rounds of 360 s", "TTD ≥", "≤ 1.", "✓"):
        assert text in out
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name.endswith("-simulate")
    names = {path.name for path in folder.iterdir()}
    files = {
        "run.json",
        "journal.jsonl",
        "rows.jsonl",
        "rows.parquet",
        "instances",
        "certificates",
        "schedules",
        "figures",
        "report.html",
    }
    assert names == files
    assert {path.stem for path in (folder / "figures").iterdir()} == {
        "simulation-ttd",
        "simulation-gantt",
        "simulation-jct-cdf",
        "simulation-utilisation",
    }
    meta = json.loads((folder / "run.json").read_text())
    assert meta["command"] == f"harness simulate --instance {TINY} --policy gavel tiresias yarn-cs --round-s 360.0"
    assert meta["interrupted"] is False
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert [row["policy"] for row in rows] == ["hadar.gavel", "hadar.tiresias", "hadar.yarn_cs"]
    histories = sorted((folder / "schedules").iterdir())
    history = json.loads(gzip.decompress(histories[0].read_bytes()))
    assert history["rules"]["round_s"] == 360
    assert history["completion_s"]["shape"] == [20]
    page = (folder / "report.html").read_text()
    again = command("report", folder, "--output", "again.html")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.html").read_text() == page, "what is read back is what was run"
    assert "hadar.gavel finishes all jobs first, after" in page
    assert "gavel.makespan_fluid" in page


def test_json_keeps_standard_output_clean(command: Command) -> None:
    result = command("simulate", "--instance", TINY, "--policy", "fifo,srtf", "--format", "json", "--jobs", "1")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [set(row) for row in rows] == [set(FIELDS)] * 2
    assert all(row["verified"] for row in rows)


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["--instance", TINY, "--policy", "gavl"], ["harness: unknown policy 'gavl'; did you mean gavel"]),
        (["--instance", TINY, "--policy", "gavel", "tiresia"], ["unknown policy 'tiresia'", "tiresias"]),
        (["--instance", TINY, "--policy", "hadar.x*"], ["unknown policy 'hadar.x*'"]),
        (["--instance", "gen/hadar-48"], ["gen/hadar-48", "did you mean gen/hadar-480"]),
        (["--instance", "paper/oef-eq1", "--policy", "fifo"], ["paper/oef-eq1: a simulation needs jobs"]),
        (["--instance", TINY, "--policy", "fifo", "--round-s", "0"], ["round_s = 0", "rounds are 0.001 to"]),
        (["--instance", TINY, "--policy", "fifo", "--round-s", "nan"], ["rounds are 0.001 to"]),
        (["--instance", TINY, "--policy", "fifo", "--round-s", "1e-300"], ["round_s = 1e-300", "rounds are 0.001 to"]),
        (["--instance", TINY, "--policy", "fifo", "--round-s", "1e300"], ["round_s = 1e+300", "rounds are 0.001 to"]),
        (
            ["--instance", TINY, "--policy", "fifo", "--round-s", "0.001"],
            ["at least", "at most 10,000,000 can"],
        ),
        (["--instance", TINY, "--policy", "fifo", "--time-limit", "0"], ["time limit = 0 s", "positive"]),
        (["--instance", TINY, "--policy", "fifo", "--time-limit", "nan"], ["time limit = nan s", "positive"]),
        (["--instance", TINY, "--policy", "xyz"], ["unknown policy 'xyz'; known: ", ", …"]),
        (["--instance", TINY, "--policy", "fifo", "--restart-s", "999"], ["restart_s = 999", "never advance"]),
        (["--instance", TINY, "--policy", "fifo", "--spread-factor", "2"], ["spread_factor = 2"]),
        (["--instance", TINY, "--policy", "fifo", "--until-h", "-1"], ["--until-h -1:", "a positive number of hours"]),
        (["--instance", TINY, "--policy", "fifo", "--results", "/proc/none"], ["/proc/none", "cannot be written"]),
        (["--instance", TINY, "--instance", TINY, "--policy", "fifo"], ["the same content"]),
        (["--instance", TINY, "--policy", "fifo", "--window", "5"], ["window = '5'", "FIRST:COUNT"]),
        (["--instance", TINY, "--policy", "fifo", "--window", "3:0"], ["window = '3:0'", "FIRST:COUNT"]),
        (["--instance", TINY, "--policy", "fifo", "--window", "20:5"], ["beyond the 20 jobs"]),
        (["--instance", TINY, "--policy", "fifo", "--profiling-min", "-1"], ["profiling_s = -60"]),
        (
            ["--instance", "gen/hadar-480", "--policy", "fifo", "--network"],
            ["gradient_mb of every gang", "not given for"],
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    command: Command, args: Sequence[str], parts: Sequence[str], tmp_path: Path
) -> None:
    result = command("simulate", *args)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("harness: ")
    assert len(result.stderr.splitlines()) == 1
    for part in parts:
        assert part in result.stderr
    assert not list(tmp_path.iterdir())


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    words = [HARNESS, "simulate", "--instance", "gen/20jobs?jobs=40", "--policy", "fifo", "--round-s", "0.05"]
    process = subprocess.Popen(
        [*words, "--restart-s", "0"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: list(tmp_path.glob("results/*-simulate/run.json")), process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    (folder,) = (tmp_path / "results").iterdir()
    assert json.loads((folder / "run.json").read_text())["interrupted"] is True


def test_kill_9_and_resume_give_the_same_table(tmp_path: Path, found: sg.Simulation) -> None:
    words = [HARNESS, "simulate", "--instance", TINY, "--policy", "fifo", "hadare", "hadar", "--jobs", "1"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: _journal(tmp_path), process)
    process.kill()
    process.wait(PATIENCE_S)
    (folder,) = (tmp_path / "results").iterdir()
    with open(folder / "journal.jsonl", "ab") as journal:
        journal.write(b'{"instance": "torn')
    before = [line["row"] for line in _journal(tmp_path) if line["record"] == "simulation"]
    again = sg.simulate(TINY, ["fifo", "hadare", "hadar"], jobs=1, resume=folder)
    assert [row.policy for row in again.rows] == ["hadar.fifo", "hadar.hadare", "hadar.online"]
    assert set(again.traces) == {row.policy for row in again.rows}
    for row in again.rows:
        (fresh,) = (one for one in found.rows if one.policy == row.policy)
        assert _timeless(row) == _timeless(fresh)
    times = {row.policy: row.simulate_s for row in again.rows}
    assert {row["policy"]: row["simulate_s"] for row in before}.items() <= times.items(), "kept, not run again"
    stored = reopen(folder)
    assert [_timeless(row) for row in stored.rows] == [_timeless(row) for row in again.rows]
    history = folder / history_file(again.rows[0])
    parts = json.loads(gzip.decompress(history.read_bytes()))
    parts["completion_s"]["data"][0] += 1.0
    history.write_bytes(gzip.compress(json.dumps(parts).encode()))
    (damaged,) = reopen(folder).meta["damaged"]
    assert f"{history.name} is not as it was written" in damaged
    ran: list[str] = []
    sg.simulate(
        TINY, ["fifo", "hadare", "hadar"], jobs=1, resume=folder, on_result=lambda result: ran.append(result.row.policy)
    )
    assert ran == [again.rows[0].policy]


def _journal(folder: Path) -> list[dict[str, Any]]:
    (path, *_) = [*folder.glob("results/*-simulate/journal.jsonl"), None]
    lines = path.read_text().splitlines() if path else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def _timeless(row: SimulationRow) -> dict[str, Any]:
    """Return the fields of a row that do not depend on measured time or on which policy is the reference."""
    clocks = {"decision_mean_s", "decision_max_s", "simulate_s", "check_s"}
    # whom ratios refer to is the policy of its paper or the first one
    ratios = {"reference", "ttd_ratio", "jct_ratio"}
    return {name: value for name, value in row.as_dict().items() if name not in clocks | ratios}


def test_only_a_simulation_of_the_same_instances_is_resumed(tmp_path: Path) -> None:
    first = sg.simulate(TINY, ["fifo"], jobs=1, results=tmp_path)
    assert first.folder is not None
    with pytest.raises(UsageError, match="only a run of at least these instances"):
        sg.simulate("gen/20jobs?seed=9", ["fifo"], jobs=1, resume=first.folder)
    with pytest.raises(UsageError, match="not a results folder"):
        sg.simulate(TINY, ["fifo"], jobs=1, resume=tmp_path)
    with pytest.raises(UsageError, match="results of harness simulate, not of harness audit"):
        sg.audit(claims="oef.slip.coefficient", jobs=1, resume=first.folder)


def test_list_policies(command: Command) -> None:
    result = command("list", "policies", "--format", "json")
    listed = {line["policy"]: line for line in json.loads(result.stdout)}
    assert set(listed) == set(POLICIES.ids())
    assert listed["hadar.hadare"]["copies"] == "forks jobs"


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("hadar", "hadar.online"),
        ("yarn-cs", "hadar.yarn_cs"),
        ("YARN-CS", "hadar.yarn_cs"),
        ("gavel", "hadar.gavel"),
        ("allox", "hadar.allox"),
        ("hadare", "hadar.hadare"),
        ("oef.gavel", "oef.gavel"),
        ("cooperative", "oef.cooperative"),
        ("hadar.online?beam=1", "hadar.online?beam=1"),
        ("synergy.tune.srtf", "synergy.tune.srtf"),
        ("tune.srtf", "synergy.tune.srtf"),
        ("srtf", "hadar.srtf"),
    ],
)
def test_names_mean(name: str, found: str) -> None:
    assert [spec.id for spec in resolve([name])] == [found]


def test_patterns_and_lists() -> None:
    assert {spec.id for spec in resolve(["hadar.*"])} == {spec.id for spec in POLICIES if spec.paper == "hadar"}
    assert [spec.id for spec in resolve(["srtf, fifo", "srtf"])] == ["hadar.srtf", "hadar.fifo"]
    ends = {"synergy.proportional.srtf", "synergy.greedy.srtf", "synergy.tune.srtf", "synergy.opt.srtf"}
    assert ends <= {spec.id for spec in resolve(["synergy.*.srtf"])}
    with pytest.raises(UnknownNameError, match="unknown policy ''"):
        resolve([""])


# --- the library -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> sg.Simulation:
    return sg.simulate(TINY, ["hadar", "hadare", "fifo"], jobs=1)


def test_a_notebook_gets_a_table_and_histories(found: sg.Simulation) -> None:
    assert found.ok
    assert found.table["policy"].tolist() == ["hadar.online", "hadar.hadare", "hadar.fifo"]
    assert found.table["ttd_ratio"][0] == 1
    assert set(found.traces) == {"hadar.online", "hadar.hadare", "hadar.fifo"}
    assert np.isfinite(found.traces["hadar.fifo"].completion_s).all()
    gangs, forks = found.rows[2], found.rows[1]
    assert gangs.ttd_bound_ratio is not None
    assert gangs.ttd_bound_ratio >= 1
    assert forks.ttd_bound_from == "gavel.makespan_copies", "copies are not bound by what gangs can do"
    assert (gangs.jct_bound_from, forks.jct_bound_from) == ("gavel.jct", "gavel.jct_copies")
    assert all(one.jct_bound_ratio is not None and one.jct_bound_ratio >= 1 for one in (gangs, forks))
    assert found.rows[0].round_s == 900
    assert "hadar.fifo" in to_fragment(found)


def test_rows_as_text(found: sg.Simulation) -> None:
    records = list(csv.DictReader(io.StringIO(to_csv(FIELDS, [row.as_dict() for row in found.rows]))))
    assert [record["policy"] for record in records] == [row.policy for row in found.rows]
    assert float(records[0]["ttd_s"]) == found.rows[0].ttd_s
    assert [row["ttd_s"] for row in json.loads(to_json(row.as_dict() for row in found.rows))] == [
        row.ttd_s for row in found.rows
    ]
    assert "| hadar.hadare |" in to_markdown(blocks(found))


def test_jobs_that_are_left_are_counted_and_no_ttd_is_claimed() -> None:
    (row,) = sg.simulate(TINY, ["fifo"], until_s=4 * 3600, jobs=1).rows
    assert row.status == "unfinished"
    assert row.ok
    assert row.ttd_s is None
    assert sum(row.unfinished.values()) == row.jobs - row.finished  # type: ignore[operator]
    assert "jobs unfinished" in to_markdown(blocks(Simulation({}, [row])))


def task(policy: str, instance: Instance | None = None) -> SimulationTask:
    instance = instance or instances.load(TINY)
    return SimulationTask(*sent(instance), policy, 0, Rules(900.0, 10.0))


@pytest.fixture
def rogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register policies that decline, fail, break a rule, or claim to run faster than their GPUs can."""
    monkeypatch.setattr(POLICIES, "_entries", dict(POLICIES._entries))

    def decline(instance: Instance, oracle: Any) -> Any:
        raise NotApplicableError("not today")

    def fail(state: State) -> Assignment:
        raise ZeroDivisionError("oops")

    def boost(state: State) -> Assignment:
        job = state.jobs[:1]
        one = Assignment(job, np.zeros(1, np.int64), state.gpus[:1], np.array([2.0]))
        return one if state.gpus[0] <= 4 else Assignment.of(())

    built = {
        "decline": decline,
        "fail": lambda instance, oracle: fail,
        "boost": lambda instance, oracle: boost,
        "grab": lambda instance, oracle: lambda state: Assignment.of([(state.jobs[0], 0, 99)]),
    }
    for name, build in built.items():
        POLICIES.register(PolicySpec(f"hadar.{name}", "hadar", build, source="made up"))


@pytest.mark.usefixtures("rogue")
@pytest.mark.parametrize(
    ("name", "status", "verified", "reason"),
    [
        ("decline", "skipped", None, "not today"),
        ("fail", "error", None, "ZeroDivisionError: oops"),
        ("grab", "error", None, "more GPUs than server"),
        ("boost", "unfinished", False, "at most 1"),
    ],
)
def test_whatever_a_policy_does_is_a_row(name: str, status: str, verified: bool | None, reason: str) -> None:
    row = task(f"hadar.{name}").run().row
    assert (row.status, row.verified) == (status, verified) or name == "boost"
    assert row.verified == verified
    assert reason in " ".join([row.reason or "", *row.violations])
    assert row.ok is (status == "skipped")
    if verified is False:
        assert row.ttd_s is None, "nothing unverified enters the table"
        assert "WRONG" in to_markdown(blocks(Simulation({}, [row])))


def test_a_simulation_that_takes_too_long_is_one_failed_row() -> None:
    found = sg.simulate(TINY, ["fifo"], round_s=0.1, restart_s=0.0, jobs=1, limits=Limits(time_limit_s=1.0))
    (row,) = found.rows
    assert row.status == "time limit"
    assert "killed after 1 s" in (row.reason or "")
    assert not found.ok


# --- beside each other -----------------------------------------------------------------------------------------------


def row(policy: str, ttd_s: float | None, **known: Any) -> SimulationRow:
    plain = SimulationRow("i", "f", policy, round_s=100.0, status="done", verified=True)
    return plain.knowing(ttd_s=ttd_s, **known)


def printed(*entries: tuple[str, str, float]) -> Instance:
    loaded = instances.load(TINY)
    numbers = tuple(Published(method=m, quantity=q, value=v, where="here") for m, q, v in entries)
    return loaded.model_copy(update={"published": numbers})


def test_ratios_refer_to_hadar_and_published_numbers_stand_beside_ours() -> None:
    instance = printed(
        ("hadar.online", "ttd_ratio:hadar.gavel", 1.21),
        ("hadar.online", "cru_ratio:hadar.gavel", 2.0),
        ("hadar.online", "ttd_h", 1.0),
        ("hadar.online", "jct_mean_ratio:hadar.fifo", 9.0),
        ("hadar.gavel", "ttd_rounds", 44.0),
        ("hadar.online", "prices", 1.0),
    )
    ours = [row("hadar.gavel", 4320.0, cru=0.4), row("hadar.online", 3600.0, cru=0.8)]
    ours = [one.replace(fingerprint=instance.fingerprint) for one in ours]
    gavel, hadar = compared(ours, {instance.fingerprint: instance}, [])
    assert (gavel.reference, gavel.ttd_ratio, gavel.ttd_printed) == ("hadar.online", pytest.approx(1.2), 1.21)
    assert (hadar.ttd_ratio, hadar.ttd_printed) == (1, None)
    found = {entry["quantity"]: (entry["measured"], entry["agrees"]) for entry in hadar.published}
    assert found["ttd_ratio:hadar.gavel"] == (pytest.approx(1.2), False)
    assert found["cru_ratio:hadar.gavel"] == (pytest.approx(2.0), True)
    assert found["ttd_h"] == (1.0, True)
    assert set(found) == {"ttd_ratio:hadar.gavel", "cru_ratio:hadar.gavel", "ttd_h"}
    assert [entry["measured"] for entry in gavel.published] == [44.0]


def test_a_ttd_below_its_lower_bound_is_wrong() -> None:
    instance = printed()
    ours = [row(name, 100.0).replace(fingerprint=instance.fingerprint) for name in ("hadar.fifo", "hadar.hadare")]
    bound = [Bound(instance.fingerprint, "ttd_s", model=TTD.model, seconds=200.0, round_s=100.0)]
    fifo, hadare = compared(ours, {instance.fingerprint: instance}, bound)
    assert fifo.verified is False
    assert "below the lower bound" in fifo.violations[0]
    assert hadare.verified
    near = compared([ours[0].knowing(ttd_s=200.0)], {instance.fingerprint: instance}, bound)[0]
    assert near.ttd_bound_ratio == 1


def bound_of(instance: Instance, metric: str, sensitive: bool = False) -> Bound:
    """Compute the bound on a metric in rounds of 900 s."""
    return BoundTask(*sent(instance), 900.0, metric, sensitive).run()


@pytest.mark.parametrize(
    ("first", "second", "model", "seconds"),
    [
        (5.0, None, "gavel.makespan_fluid", 5.0),
        (5.0, 9.0, "hadar.fluid", 9.0),
        (None, None, "gavel.makespan_fluid", None),
    ],
)
def test_of_several_models_the_largest_bound_counts(
    first: float | None, second: float | None, model: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evidence(bound: SimulationBound, *_: object) -> dict[str, Any]:
        value = {TTD.model: first, "hadar.fluid": second}[bound.model]
        if value is None:
            raise NotApplicableError(f"{bound.model} does not apply")
        since = float(workload(instances.load(TINY)).arrival_s.min()) if bound.from_arrival else 0.0
        return {"bound": value + since}

    monkeypatch.setitem(SIMULATED, "second", SimulationBound("hadar.fluid", "ttd_s"))
    monkeypatch.setattr(bounds, "evidence", evidence)
    monkeypatch.setattr(bounds, "certificate", lambda about, multipliers, raw: multipliers)
    found = bound_of(instances.load(TINY), "ttd_s")
    assert (found.model, found.seconds) == (model, seconds)
    assert found.reason == (None if seconds else "skipped: gavel.makespan_fluid does not apply")


def test_the_bound_counts_from_the_first_arrival() -> None:
    loaded = instances.load(TINY)
    later = loaded.model_copy(
        update={"jobs": tuple(job.model_copy(update={"submit_s": job.submit_s + 9000}) for job in loaded.jobs)}
    )
    assert bound_of(later, "ttd_s").seconds == pytest.approx(bound_of(loaded, "ttd_s").seconds, rel=1e-6)


def test_a_network_slows_gangs_over_several_servers_down(tmp_path: Path) -> None:
    """The rows say which rules they ran under, and the kept histories pass the checker again."""
    free, network = (
        sg.simulate(
            "gen/oef-4", ["oef.maxmin"], until_s=7200.0, network=network, jobs=1, results=tmp_path / str(network)
        )
        for network in (False, True)
    )
    assert [found.rows[0].network for found in (free, network)] == [False, True]
    assert network.rows[0].actual_throughput < free.rows[0].actual_throughput
    assert "exchange gradients over the network" in to_markdown(blocks(network))
    assert "--network" in network.meta["command"]
    assert network.folder
    assert reopen(network.folder).rows[0].verified


def test_options_have_defaults_that_fit_the_instance() -> None:
    from schedgap.harness.studies.simulate.run import SimulationOptions, rules_for

    fig1 = instances.load("paper/hadar-fig1")
    assert rules_for(fig1, SimulationOptions(until_s=1e9)) == Rules(1.0, 0.0, 1.0, 1e9)
    endless = fig1.model_copy(update={"horizon": None})
    assert rules_for(endless, SimulationOptions(spread_factor=0.5, until_s=1e9)) == Rules(360.0, 10.0, 0.5, 1e9)
    with pytest.raises(UsageError, match="never advance"):
        rules_for(fig1, SimulationOptions(restart_s=1.0, until_s=1e9))


# --- CPUs and memory -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared() -> sg.Simulation:
    """Return a simulation of three policies on TINY; a mechanism that must profile jobs sees them after ten minutes."""
    names = ["hadar.fifo", "synergy.proportional.fifo", "synergy.tune.fifo"]
    return sg.simulate(TINY, names, jobs=1, restart_s=0.0, profiling_s=600.0)


def test_policies_that_give_out_cpus_have_numbers_of_their_own(shared: sg.Simulation) -> None:
    assert shared.ok
    other, proportional, tune = shared.rows
    for one in (proportional, tune):
        assert one.lp1_share is not None
        assert one.lp1_worst is not None
        assert 0 < one.lp1_worst <= one.lp1_share <= 1 + 1e-9
        assert one.cpu_needed is not None
        assert one.cpu_given is not None
        assert one.cpu_needed <= one.cpu_given <= 1
        assert one.jct_bound_ratio is not None
        assert one.jct_bound_from == "synergy.jct"
        assert one.jct_bound_ratio >= 1
        assert one.ttd_bound_from == "synergy.makespan_fluid", "Gavel's bound knows rates without CPUs only"
    assert (other.lp1_share, other.cpu_given, other.jct_bound_from) == (None, None, "gavel.jct")
    assert other.ttd_bound_ratio is not None
    assert [one.profiling_s for one in shared.rows] == [0.0, 0.0, 600.0]
    assert set(shared.rounds) == {"synergy.proportional.fifo", "synergy.tune.fifo"}
    text = to_markdown(blocks(shared))
    for part in ("10 min of profiling", "mean JCT ≥", "| LP1 |", "| &lt; 4 h |"):
        assert part in text


def test_columns_of_cpus_are_there_only_for_them(found: sg.Simulation) -> None:
    text = to_markdown(blocks(found))
    assert not [header for header in ("| LP1 |", "| CPUs |", "| &lt; 4 h |", "| ref |") if header in text]


def test_the_window_says_whose_completion_times_count() -> None:
    (row,) = sg.simulate(TINY, ["fifo"], window=Window.parse("5:10"), jobs=1).rows
    (everybody,) = sg.simulate(TINY, ["fifo"], jobs=1).rows
    assert (row.window, row.window_jobs, everybody.window, everybody.window_jobs) == ("5:10", 10, None, 20)
    assert row.ttd_s == everybody.ttd_s
    assert row.jct_mean_s != everybody.jct_mean_s
    assert "JCT of 10 jobs (window 5:10)" in to_markdown(blocks(Simulation({}, [row])))


def test_bounds_are_about_the_jobs_of_the_window(tmp_path: Path) -> None:
    """Bounds on completion times are about the jobs of the window, the bound on the total time about all jobs."""
    found = sg.simulate(TINY, ["fifo", "tune.srtf"], window=Window(5, 10), jobs=1, results=tmp_path)
    everybody = sg.simulate(TINY, ["fifo", "tune.srtf"], jobs=1)
    for row, other in zip(found.rows, everybody.rows, strict=True):
        assert row.ttd_bound_s == other.ttd_bound_s
        assert {row.jct_bound_s, row.p99_bound_s}.isdisjoint({other.jct_bound_s, other.p99_bound_s})
        assert row.jct_bound_ratio is not None
        assert row.p99_bound_ratio is not None
        assert min(row.jct_bound_ratio, row.p99_bound_ratio) >= 1
    instance = json.loads(instance_json(instances.load(TINY)))
    about = {bound.model: bound.window for bound in found.bounds}
    assert {model for model, window in about.items() if window is None} == {TTD.model, "synergy.makespan_fluid"}
    assert {window for window in about.values() if window} == {"5:10"}
    for bound in found.bounds:
        proof = dict(bound.certificate)
        assert float(proofs.check(proof, instance)) == pytest.approx(bound.proved)
        with pytest.raises(proofs.RefusedError, match="it was changed"):
            proofs.check(proof | {"window": "4:10"}, instance)


def test_bounds_of_jobs_that_are_not_in_the_order_of_arrival_are_certified() -> None:
    """Bounds are certified although the instance does not list jobs by arrival.

    Multipliers of single jobs are in the instance's order.
    """
    made = instances.load(TINY)
    turned = made.model_copy(update={"jobs": made.jobs[::-1]})
    found = sg.simulate(turned, ["fifo"], jobs=1)
    assert {bound.certificate is not None for bound in found.bounds} == {True}
    for bound in found.bounds:
        proofs.check(dict(bound.certificate), json.loads(instance_json(turned)))


def test_the_command_repeats_with_all_its_options(tmp_path: Path) -> None:
    found = sg.simulate(TINY, ["synergy.tune.las"], window=Window(2, 9), profiling_s=90.0, jobs=1, results=tmp_path)
    assert found.folder is not None
    meta = json.loads((found.folder / "run.json").read_text())
    assert meta["command"].endswith("--policy synergy.tune.las --profiling-min 1.5 --window 2:9")
    history = json.loads(gzip.decompress(next((found.folder / "schedules").iterdir()).read_bytes()))
    rows = {name: history[name]["shape"][0] for name in ("cpus", "memory_gb", "allocation", "offered")}
    assert rows["cpus"] == rows["memory_gb"] == rows["allocation"]
    assert rows["offered"] > 0
    assert history["rules"]["profiling_s"] == 90


@pytest.fixture
def related(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a policy that names another policy as its reference."""
    monkeypatch.setattr(POLICIES, "_entries", dict(POLICIES._entries))
    spec = POLICIES.get("hadar.fifo")
    POLICIES.register(PolicySpec("synergy.mine", "synergy", spec.build, True, source="made up", reference="hadar.fifo"))


@pytest.mark.usefixtures("related")
def test_policies_are_measured_against_their_reference() -> None:
    instance = printed(("synergy.mine", "jct_p99_h", 2.0), ("synergy.mine", "makespan_ratio:hadar.fifo", 2.0))
    ours = [
        row(name, 100.0 * (i + 1), jct_mean_s=10.0 * (3 - i), jct_p99_s=7200.0)
        for i, name in enumerate(["hadar.srtf", "hadar.fifo", "synergy.mine"])
    ]
    srtf, fifo, mine = compared(
        [one.replace(fingerprint=instance.fingerprint) for one in ours], {instance.fingerprint: instance}, []
    )
    assert [one.reference for one in (srtf, fifo, mine)] == ["hadar.srtf", "hadar.srtf", "hadar.fifo"]
    assert (mine.ttd_ratio, mine.jct_ratio) == (pytest.approx(1.5), pytest.approx(0.5))
    assert "| ref |" in to_markdown(blocks(Simulation({}, [srtf, fifo, mine])))
    measured = {entry["quantity"]: entry["measured"] for entry in mine.published}
    assert measured == {"jct_p99_h": 2.0, "makespan_ratio:hadar.fifo": pytest.approx(2 / 3)}


def test_a_bound_on_mean_times_is_about_all_jobs() -> None:
    instance = printed()
    bound = [Bound(instance.fingerprint, "jct_mean_s", True, model=JCT.model, seconds=50.0, round_s=100.0)]
    names = ("synergy.tune.fifo", "hadar.fifo", "synergy.tune.las", "synergy.tune.ftf")
    ours = [row(name, 9e9, jct_mean_s=40.0).replace(fingerprint=instance.fingerprint) for name in names]
    ours[2] = ours[2].replace(window="3:4")
    ours[3] = ours[3].replace(unfinished={"horizon": 1})
    wrong, *others = compared(ours, {instance.fingerprint: instance}, bound)
    assert wrong.verified is False
    assert "mean JCT 40 s is below the lower bound 50 s of synergy.jct" in wrong.violations
    assert all(one.verified and one.jct_bound_s is None for one in others)


def test_the_bound_on_mean_times_is_that_of_the_model() -> None:
    found = bound_of(instances.load(TINY), "jct_mean_s", sensitive=True)
    assert found.model == JCT.model
    assert found.seconds is not None
    assert found.seconds > 0


def test_the_first_sentence_says_who_is_best_and_how_far_from_the_bound() -> None:
    ours = [
        row("hadar.gavel", 7200.0, jct_mean_s=3600.0, ttd_bound_ratio=1.064),
        row("hadar.fifo", 9000.0, jct_mean_s=1800.0, ttd_bound_ratio=1.33),
    ]
    assert headline(Simulation({}, ours)) == (
        "On i, hadar.gavel finishes all jobs first, after 2 h, at most 6.4 % more than the least that any schedule can "
        "reach; hadar.fifo has the least mean completion time, 0.5 h."
    )
    wrong = ours[0].replace(verified=False, violations=("job a runs twice",))
    told = headline(Simulation({}, [wrong, ours[1]]))
    assert told.startswith("1 of 2 policies is WRONG: hadar.gavel (job a runs twice). On i,")
    both = [*ours, *(one.replace(fingerprint="g", instance="j") for one in ours)]
    told = headline(Simulation({}, both))
    assert told.startswith("Over 2 instances, the total time of hadar.gavel is at most 6.4 % more than")
    assert headline(Simulation({}, [])) == "No policy was simulated."


def test_figures_of_histories_with_cpus(shared: sg.Simulation) -> None:
    names = {figure.name for figure in figures(shared)}
    assert {f"simulation-{name}" for name in ("lp1", "resources", "jct-mean")} <= names
    assert "simulation-load" not in names
