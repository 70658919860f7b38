"""``harness certify --what-if``: what changes of a cluster save, by hand, in theory, and as a command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap

import schedgap as sg
from schedgap.harness.engine.study import Finished
from schedgap.harness.engine.task import Limits
from schedgap.harness.show.page import blocks
from schedgap.harness.show.page.whatif import headline
from schedgap.harness.studies.resampling import RESAMPLES, interval, interval_of_sums
from schedgap.harness.studies.whatif.change import UNCHANGED, Change, of_cluster
from schedgap.harness.studies.whatif.row import BASE, CLUSTER, EXECUTED, LIMITS, ChangeRow, WhatIf
from schedgap.harness.studies.whatif.run import base_of, collected, limiting, policies, stages, what_if
from schedgap.harness.studies.whatif.task import ChangedResult, Waits, waits
from schedgap.instances.canonical import to_json, validate
from schedgap.instances.importers import Options
from schedgap.instances.registry import PAPERS
from schedgap.instances.rigid import RigidView, starts_of
from schedgap.instances.schema import Cluster, GpuType, History, Instance, Job, ServerGroup

HOUR = 3600

Line = tuple[float, float, int, float | None]
"""A job as (release, duration, GPUs, limit), times in hours."""


def log(
    lines: list[Line], starts: list[float] | None = None, gpus: int = 2, pools: tuple[str, ...] = ("G",)
) -> Instance:
    """Return the instance of a log; the jobs take turns among the pools."""
    jobs = [
        Job(
            id=f"J{j}",
            submit_s=release * HOUR,
            gpus=size,
            epochs=1,
            rates={pools[j % len(pools)]: 1.0},
            duration_s=lasts * HOUR,
            history=History(
                gpu_type=pools[j % len(pools)],
                runs=() if starts is None else ((starts[j] * HOUR, (starts[j] + lasts) * HOUR),),
                requested_s=None if limit is None else limit * HOUR,
            ),
        )
        for j, (release, lasts, size, limit) in enumerate(lines)
    ]
    servers = tuple(ServerGroup(name=pool, count=1, gpu_type=pool, gpus=gpus) for pool in pools)
    cluster = Cluster(gpu_types=tuple(GpuType(name=pool) for pool in pools), servers=servers)
    return Instance(name="log", cluster=cluster, jobs=tuple(jobs))


def here(instance: Instance, wanted: str = "") -> tuple[WhatIf, list[ChangedResult]]:
    """Run all changes in this process."""
    done: list[ChangedResult] = []
    for stage in stages(instance, wanted, limits=Limits()):
        done += [task.run() for task in stage(done)]
    meta = {"instances": {instance.fingerprint: instance.name}, "base": wanted, "interrupted": False}
    return collected(Finished(meta, {instance.fingerprint: instance}, done)), done


def by_change(found: WhatIf) -> dict[str, ChangeRow]:
    return {row.change: row for row in found.rows}


# A long job on one of two GPUs, a gang of two that has to wait for it, and a short one that could run beside the first.
QUEUE: list[Line] = [(0, 10, 1, 20), (1, 1, 2, 2), (2, 2, 1, 3)]
FIRST_COME = [0.0, 10.0, 11.0]


def test_waits_and_savings_by_hand() -> None:
    found, _ = here(log(QUEUE, FIRST_COME))
    rows = by_change(found)
    assert found.ok
    assert [row.kind for row in found.rows[:2]] == [EXECUTED, BASE]
    assert rows["fcfs"].kind == BASE  # exactly what ran
    assert found.apart_h == 0
    assert rows["as executed"].wait_h == rows["fcfs"].wait_h == (9 + 9) / 3
    assert rows["fcfs"].saved_h == rows["as executed"].saved_h == 0
    assert rows["easy with the users' limits"].saved_h == 9
    assert rows["1 more G"].saved_h == 18  # nobody waits
    assert rows["1 more G"].wait_h == 0
    assert rows["1 fewer G"].status == "skipped"
    assert rows["1 fewer G"].reason == "the gang of job J1 does not fit in pool G"


def test_a_change_never_saves_more_than_its_cluster_allows() -> None:
    found, _ = here(log(QUEUE, FIRST_COME))
    compared = [row for row in found.rows if row.saved_h is not None]
    assert compared
    for row in compared:
        assert row.least_wait_h is not None
        assert row.most_saved_h is not None
        assert row.best_wait_h is not None
        assert row.saved_h is not None
        assert row.saved_h <= row.most_saved_h + 1e-9
        assert row.least_wait_h <= row.best_wait_h + 1e-9


def test_limits_that_let_a_job_overtake() -> None:
    # At 20 hours, the first job seems to block the gang until then; once exact, its end leaves no room for the third.
    lines: list[Line] = [(0, 10, 1, 20), (1, 1, 2, 2), (2, 9, 1, 15)]
    rows = by_change(here(log(lines, [0.0, 11.0, 2.0]))[0])
    assert rows["easy with the users' limits"].kind == BASE
    assert rows["easy with the users' limits"].wait_h == 10 / 3
    assert rows["exact time limits"].saved_h == 10 - (9 + 9)
    # Half of 20 hours is the run time, half of 15 is below it.
    assert rows["time limits × 0.5"].saved_h == rows["exact time limits"].saved_h
    assert rows["time limits × 0.5"].most_saved_h == rows["exact time limits"].most_saved_h


def test_a_log_without_limits_says_so() -> None:
    found, _ = here(log([(r, p, g, None) for r, p, g, _ in QUEUE], FIRST_COME))
    limits = found.of(LIMITS)
    assert len(limits) == 2
    assert all(row.status == "skipped" and row.reason == "the instance has no requested times" for row in limits)
    assert "easy that knows run times" in by_change(found)
    assert "not run: time limits × 0.5" in str(blocks(found))
    names = [row.change for row in found.rows]
    assert len(set(names)) == len(names)  # rules with hindsight are no changes
    assert "sjf that knows run times" in names


def test_without_a_history_the_usual_policy_is_the_base() -> None:
    found, _ = here(log(QUEUE))
    assert found.apart_h is None
    assert not found.of(EXECUTED)
    assert by_change(found)["easy with the users' limits"].kind == BASE
    assert "does not say when all of its jobs ran" in str(blocks(found))


def test_the_base_can_be_chosen() -> None:
    found, _ = here(log(QUEUE, FIRST_COME), "rigid.easy?estimates=requested")
    rows = by_change(found)
    assert found.chosen
    assert rows["fcfs"].saved_h == -9
    assert rows["1 more G"].saved_h == 9
    assert "It was asked for" in str(blocks(found))


def test_a_gpu_that_makes_a_policy_worse_is_shown_as_it_is() -> None:
    # With three GPUs the gang of three waits, and the last job overtakes it. With a fourth one it starts at once.
    lines: list[Line] = [(1, 5, 1, 5), (3, 4, 3, 4), (3, 2, 2, 2)]
    found, _ = here(log(lines, [1.0, 6.0, 3.0], gpus=3), "rigid.easy?estimates=requested")
    rows = by_change(found)
    more, base = rows["1 more G"], rows["easy with the users' limits"]
    assert found.ok
    assert base.wait_h == 3 / 3
    assert more.saved_h == 3 - 4
    assert more.most_saved_h is not None
    assert base.most_saved_h is not None
    assert more.most_saved_h >= base.most_saved_h  # what is possible never gets worse


def test_waits_are_those_of_the_checker() -> None:
    _, done = here(log(QUEUE, FIRST_COME))
    measured = [one for one in done if one.waits]
    assert len(measured) > 5
    for one in measured:
        assert one.waits is not None
        assert one.waits.mean == pytest.approx(one.row.metrics["wait_h"])


# ---------------------------------------------------------------- changed instances


def test_changed_instances_are_valid_and_lose_nothing() -> None:
    instance = log(QUEUE, FIRST_COME, 3, ("G@a", "G@b", "H@a"))
    changes = of_cluster(instance, {"G@a": 1.0, "H@a": 2.0})
    assert [change.words for change in changes] == [
        *("1 more H@a", "1 fewer H@a", "1 more G@a", "1 fewer G@a", "1 more G@b", "1 fewer G@b"),
        "one pool of G@a and G@b",
    ]
    for change in (*changes, Change(limits=0.5), Change(limits=0.0)):
        other = change.applied(instance)
        assert validate(json.loads(to_json(other)), "changed").fingerprint == other.fingerprint
        assert other.fingerprint != instance.fingerprint
        assert other.cluster.gpus == instance.cluster.gpus + change.gpus
        assert [job.id for job in other.jobs] == [job.id for job in instance.jobs]
    merged = changes[-1].applied(instance)
    assert merged.cluster.gpus_by_type == {"G@a+G@b": 6, "H@a": 3}
    assert [job.history and job.history.gpu_type for job in merged.jobs] == ["G@a+G@b", "G@a+G@b", "H@a"]


def test_three_partitions_become_one_or_two() -> None:
    instance = log(QUEUE, FIRST_COME, pools=("G@a", "G@b", "G@c"))
    merged = [change for change in of_cluster(instance, {}) if change.merged]
    assert [change.words for change in merged] == [
        *("one pool of all G", "one pool of G@a and G@b", "one pool of G@a and G@c", "one pool of G@b and G@c")
    ]
    assert merged[0].applied(instance).cluster.gpus_by_type == {"G@a+G@b+G@c": 6}


def test_jobs_that_may_move_keep_their_pools() -> None:
    instance = log(QUEUE, FIRST_COME, pools=("G@a", "G@b"))
    first, *rest = instance.jobs
    assert first.history is not None
    history = first.history.model_copy(update={"durations_s": {"G@b": 5.0}})
    moving = instance.model_copy(update={"jobs": (first.model_copy(update={"history": history}), *rest)})
    assert not any(change.merged for change in of_cluster(moving, {}))


@pytest.mark.parametrize("gpus", [-7, -4, -1, 1, 8])
def test_gpus_leave_servers_one_by_one(gpus: int) -> None:
    groups = (
        ServerGroup(name="big", count=3, gpu_type="G", gpus=4),
        ServerGroup(name="other", count=1, gpu_type="H", gpus=4),
        ServerGroup(name="G added", count=1, gpu_type="G", gpus=2),
    )
    cluster = Cluster(gpu_types=(GpuType(name="G"), GpuType(name="H")), servers=groups)
    instance = log(QUEUE).model_copy(update={"cluster": cluster})
    other = Change("G", gpus).applied(instance)
    assert other.cluster.gpus_by_type == {"G": 14 + gpus, "H": 4}
    assert validate(json.loads(to_json(other)), "changed").cluster.gpus == 18 + gpus


def test_a_server_more_where_servers_are_known() -> None:
    groups = (
        ServerGroup(name="node", count=3, gpu_type="G", gpus=4),
        ServerGroup(name="x", count=1, gpu_type="G", gpus=2),
    )
    instance = log(QUEUE).model_copy(update={"cluster": Cluster(gpu_types=(GpuType(name="G"),), servers=groups)})
    assert Change("G", 4, server=True) in of_cluster(instance, {})
    assert Change("G", 4, server=True).words == "1 more server with 4 G"
    assert not any(change.server for change in of_cluster(log(QUEUE), {}))


# ---------------------------------------------------------------- theory


lines_of = st.lists(
    st.tuples(
        st.integers(0, 12).map(float),
        st.integers(0, 6).map(float),
        st.integers(1, 3),
        st.integers(1, 20).map(float),
    ),
    min_size=1,
    max_size=7,
)


@given(lines_of, st.sampled_from([("G",), ("G@a", "G@b")]))
@settings(max_examples=examples(3))
def test_bounds_follow_clusters_and_the_base_saves_nothing(lines: list[Any], pools: tuple[str, ...]) -> None:
    found, done = here(log(lines, gpus=3, pools=pools))
    assert found.ok, [row.violations or row.reason for row in found.rows if not row.ok]
    (base,) = found.of(BASE)
    assert base.saved_h == 0
    assert base.least_wait_h is not None
    for row in found.of(CLUSTER):
        if row.least_wait_h is None:
            assert row.status == "skipped"
            continue
        if row.change.startswith("1 fewer"):
            assert row.least_wait_h >= base.least_wait_h
        else:  # more GPUs, or pools that are one: what was possible still is
            assert row.least_wait_h <= base.least_wait_h
    for one in done:
        cluster = next((row for row in found.rows if row.fingerprint == one.row.fingerprint), None)
        if cluster is not None and one.waits and not one.row.problem.endswith(".preemptive"):
            assert (cluster.least_wait_h or 0.0) <= one.waits.mean + 1e-9


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.integers(1, 9)), min_size=2, max_size=9),
)
@settings(max_examples=20)
def test_the_interval_is_that_of_scipy(groups: list[tuple[float, int]]) -> None:
    sums, counts = np.array([s for s, _ in groups]), np.array([n for _, n in groups], float)
    found = interval_of_sums(sums.tolist(), [int(n) for n in counts])
    if np.all(sums * counts[0] == sums[0] * counts):
        assert found[0] == found[1] == pytest.approx(sums.sum() / counts.sum())
        return
    theirs = bootstrap(
        (sums, counts),
        lambda s, n, axis: s.sum(axis) / n.sum(axis),
        paired=True,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert found == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-9)


def test_sums_of_groups_give_the_interval_of_their_observations() -> None:
    rng = np.random.default_rng(3)
    groups = [rng.exponential(size=size).tolist() for size in (3, 1, 7, 4, 4)]
    assert interval_of_sums([sum(group) for group in groups], [len(group) for group in groups]) == pytest.approx(
        interval(groups)
    )


# ---------------------------------------------------------------- weeks and days


def test_weeks_are_resampled_or_days_or_nothing() -> None:
    def unit(days: list[int]) -> tuple[str, tuple[int, ...]]:
        view: RigidView = PAPERS.get("rigid").view(log([(24.0 * day, 1.0, 1, None) for day in days]))
        found = waits(view, starts_of(view, view.release))
        return found.unit, found.jobs

    assert unit([0, 1, 7, 14, 21, 28]) == ("week", (2, 1, 1, 1, 1))
    assert unit([0, 7, 14, 21]) == ("week", (1, 1, 1, 1))
    assert unit([0, 2, 2, 3, 8]) == ("day", (1, 2, 1, 1))
    assert unit([0, 1, 2, 2]) == ("", (4,))
    assert unit([3, 3]) == ("", (2,))


def test_intervals_are_paired() -> None:
    # The same hour is saved in every week, however different the weeks are.
    lines: list[Line] = [(168.0 * week + i / 10, 1.0 + week, 1, None) for week in range(5) for i in range(3)]
    found, _ = here(log(lines, gpus=1))
    row = by_change(found)["1 more G"]
    assert (row.unit, row.units) == ("week", 5)
    assert row.saved_low_h is not None
    assert row.saved_high_h is not None
    assert row.saved_low_h <= (row.saved_h or 0.0) <= row.saved_high_h
    (base,) = found.of(BASE)
    assert base.saved_low_h == base.saved_high_h == 0


# ---------------------------------------------------------------- the command


CSV = """id,submit,start,end,gpus,limit,partition
a,1700000000,1700000000,1700036000,1,72000,x
b,1700003600,1700036000,1700039600,2,7200,x
c,1700007200,1700039600,1700046800,1,10800,x
d,1700086400,1700086400,1700090000,1,10800,y
e,1700172800,1700172800,1700176400,1,10800,y
f,1700259200,1700259200,1700262800,2,10800,y
"""
MAP = "id=id,submit=submit,start=start,end=end,gpus=gpus,requested=limit,partition=partition"


def test_the_command_prints_what_it_saves_and_verifies(command: Command, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV)
    words = ("certify", "csv", "log.csv", "--map", MAP, "--what-if", "--jobs", 1)
    ran = command(*words, width=80)
    assert ran.returncode == 0, ran.stderr
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "1 more GPU saves most: 18 " in ran.stdout
    assert "The base is fcfs: 18 h of waiting in total, 3 h per job." in " ".join(ran.stdout.split())
    folder = next((tmp_path / "results").iterdir())
    assert (folder / "report.html").stat().st_size > 10_000
    assert (folder / "figures" / "changes-saved.svg").is_file()
    assert command("verify", folder).returncode == 0
    again = json.loads(command("table", folder, "--format", "json").stdout)
    assert {row["change"]: row["saved_h"] for row in again}["1 more GPU"] == 18
    # Nothing runs again, and the answer is the same.
    resumed = command(*words, "--resume", folder, "--format", "csv")
    assert resumed.returncode == 0
    assert len(resumed.stdout.splitlines()) == len(again) + 1


def test_partitions_as_pools_are_merged(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(CSV)
    columns = {name: name for name in ("id", "submit", "start", "end", "gpus", "partition")}
    found = what_if("csv", path, Options(columns=columns, by_partition=True), jobs=1)
    assert "one pool of GPU@x and GPU@y" in by_change(found)
    assert list(sg.what_if.__annotations__)[:2] == ["format", "log"]
    assert "saves" in headline(found)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--base", "easy"), "--base: the policy that --what-if changes; add that option"),
        (("--what-if", "--base", "esay"), "unknown policy of logs 'esay'; did you mean easy?"),
        (("--what-if", "--objective", "makespan"), "--what-if compares hours of waiting"),
    ],
)
def test_mistakes_are_told_in_a_line(command: Command, tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    (tmp_path / "log.csv").write_text(CSV)
    ran = command("certify", "csv", "log.csv", "--map", MAP, *words)
    assert ran.returncode == 2
    assert reason in ran.stderr
    assert not (tmp_path / "results").exists()


def test_a_result_with_other_waits_does_not_hold() -> None:
    instance = log(QUEUE, FIRST_COME)
    _, done = here(instance)
    one = next(result for result in done if result.waits and result.change == UNCHANGED)
    assert one.waits is not None
    told = replace(one, waits=replace(one.waits, hours=(1.0,)), instance=instance)
    with pytest.raises(ValueError, match="other waits"):
        told.holds()
    assert "re-checked" in replace(one, instance=instance).holds()


def test_policies_and_limits() -> None:
    with_limits, without = log(QUEUE), log([(0, 1, 1, None)])
    assert {"rigid.fcfs", "rigid.easy?estimates=requested"} <= set(policies(with_limits))
    assert {"rigid.fcfs", "rigid.easy"} <= set(policies(without))
    assert limiting("rigid.fcfs") == "rigid.easy?estimates=requested"
    assert limiting("rigid.conservative?estimates=requested") == "rigid.conservative?estimates=requested"
    assert base_of([], ["rigid.fcfs"]) is None
    assert Waits("", (), (), {}).mean == 0
