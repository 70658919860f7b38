"""Fairness of realised service, against histories computed by hand and a plain program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command

import schedgap as sg
from schedgap.harness.check.served import Served, served, taken
from schedgap.harness.engine.sealed import KeptFile, digest
from schedgap.harness.show.page.simulate import harmed
from schedgap.harness.studies.folders import reopen
from schedgap.harness.studies.simulate.task import history_file, read_history
from schedgap.heuristics.simulator import Assignment, Rules, State, servers, simulate, workload
from schedgap.instances.canonical import validate
from schedgap.instances.random_instances.registry import cluster
from schedgap.instances.schema import Instance


def instance(
    jobs: list[dict[str, Any]], tenants: list[dict[str, Any]], gpus: dict[str, int], rates: tuple[float, ...] = (1.0,)
) -> Instance:
    by_type = dict(zip(gpus, rates, strict=True))
    content = {
        "name": "by hand",
        "cluster": cluster({"name": f"s-{kind}", "gpu_type": kind, "gpus": n} for kind, n in gpus.items()),
        "jobs": [{"id": f"j{i}", "submit_s": 0.0, "gpus": 1, "rates": by_type, **job} for i, job in enumerate(jobs)],
        "tenants": tenants,
    }
    return validate(content, "by hand")


def judged(made: Instance, policy: Any, **rules: Any) -> Served:
    trace = simulate(workload(made), servers(made), policy, **vars(Rules(round_s=10.0, **rules)))
    found = served(made, trace)
    assert found is not None
    return found


def in_order(state: State) -> Assignment:
    """Give each GPU to the first active jobs, one each."""
    return Assignment.of(np.array([(job, 0, 1) for job in state.jobs[: int(state.servers.gpus[0])].tolist()], np.int64))


TWO = [{"id": "a"}, {"id": "b"}]

SEVERAL = "gen/20jobs?jobs=5&tenants=3&slot_s=3600"


def test_one_tenant_waits_while_the_other_runs() -> None:
    """One GPU, two tenants with 20 s of work each: a runs for two rounds, then b.

    In each of the first two rounds the split gives both 5 s. Then b is alone and gets all. It is behind for all rounds
    but the last two: at 40 s it has 20 s of service, and splits of 5 + 5 + 10 + 10 would have been worth 5 + 5 + 10 +
    0, because at most its work is left: 10 s in the last round.
    """
    made = instance(
        [
            {"tenant": "a", "epochs": 20},
            {"tenant": "b", "epochs": 20},
        ],
        TWO,
        {"t": 1},
    )
    found = judged(made, in_order)
    assert found.tenants == ("a", "b")
    assert found.service == pytest.approx([20, 20])
    assert found.split == pytest.approx([10, 30])
    assert found.short == pytest.approx([0, 1 / 3])
    assert found.behind_s == pytest.approx([0, 40])
    # While both have jobs, a holds the GPU: 20 s for b, who gets nothing.
    assert found.envy == pytest.approx(np.array([[0, 0], [1, 0]]))
    # Alone on half a GPU, 20 s of work take 40 s.
    assert found.finish == pytest.approx([20 / 40, 40 / 40])
    assert found.numbers["served_harmed"] == 1


def test_weights_scale_splits_and_envy() -> None:
    """With weight 3, b may expect three times what a holds, but can use one GPU only."""
    tenants = [{"id": "a"}, {"id": "b", "weight": 3}]
    made = instance(
        [
            {"tenant": "a", "epochs": 10},
            {"tenant": "b", "epochs": 10},
        ],
        tenants,
        {"t": 1},
    )
    found = judged(made, in_order)
    assert found.split == pytest.approx([2.5, 7.5 + 10])
    assert found.envy[1, 0] == pytest.approx(1.0)
    assert found.finish == pytest.approx([10 / 40, 20 / (10 / 0.75)])


def swapping(state: State) -> Assignment:
    """Let two jobs change their servers in every round."""
    return Assignment.of(np.array([(job, (job + state.round) % 2, 1) for job in state.jobs.tolist()], np.int64))


def test_restarts_take_service_and_not_splits() -> None:
    """A job loses 4 s in all rounds but its first: it gets 10, 6 and 4 s, where its splits are worth 10, 10 and 4."""
    content = [{"tenant": "a", "epochs": 20}, {"tenant": "b", "epochs": 20}]
    made = instance(content, TWO, {"t": 1, "u": 1}, rates=(1.0, 1.0))
    found = judged(made, swapping, restart_s=4.0)
    assert found.service == pytest.approx([20, 20])
    assert found.split == pytest.approx([24, 24])
    assert found.short == pytest.approx([1 / 6, 1 / 6])
    assert found.behind_s == pytest.approx([20, 20])
    assert found.envy == pytest.approx(np.array([[0, 1 / 6], [1 / 6, 0]]))
    assert found.finish == pytest.approx([28 / 20, 28 / 20])


def plain(made: Instance, trace: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Return service and worth of splits by tenant, computed job by job with Python's numbers."""
    raw = made.plain
    kinds = sorted({group["gpu_type"] for group in raw["cluster"]["servers"]})
    has = {
        k: sum(g["gpus"] * g.get("count", 1) for g in raw["cluster"]["servers"] if g["gpu_type"] == k) for k in kinds
    }
    weight = {one["id"]: one.get("weight", 1.0) for one in raw["tenants"]}
    best = [max(job["rates"].get(k, 0.0) for k in kinds) for job in raw["jobs"]]
    left = [job.iterations / b for job, b in zip(made.jobs, best, strict=True)]
    whole = list(left)
    service, split = dict.fromkeys(weight, 0.0), dict.fromkeys(weight, 0.0)
    for r, start in enumerate(trace.start_s):
        active = [
            j for j, job in enumerate(raw["jobs"]) if job.get("submit_s", 0) <= start and left[j] > 1e-6 * whole[j]
        ]
        present = {raw["jobs"][j]["tenant"] for j in active}
        for tenant in present:
            mine = [j for j in active if raw["jobs"][j]["tenant"] == tenant]
            asked = sum(made.jobs[j].gpus for j in mine)
            speed = {
                k: sum(made.jobs[j].gpus * raw["jobs"][j]["rates"].get(k, 0.0) / best[j] for j in mine) / asked
                for k in kinds
            }
            part, need, worth = weight[tenant] / sum(weight[one] for one in present), float(asked), 0.0
            for k in sorted(kinds, key=lambda k: -speed[k]):
                take = min(part * has[k], need)
                worth, need = worth + take * speed[k] * trace.round_s, need - take
            split[tenant] += min(worth, sum(left[j] for j in mine))
        for (row, job, _), iterations in zip(trace.progress.tolist(), trace.iterations.tolist(), strict=True):
            if row == r:
                left[job] -= iterations / best[job]
                service[raw["jobs"][job]["tenant"]] += iterations / best[job]
    return service, split


@pytest.mark.parametrize("policy", ["hadar.online", "gavel", "oef.maxmin"])
def test_a_plain_program_finds_the_same(policy: str) -> None:
    made = sg.load("gen/20jobs?jobs=12&tenants=4&slot_s=3600")
    run = sg.simulate(made, [policy], round_s=3600.0, restart_s=60.0, jobs=1)
    (row,) = run.rows
    assert row.verified, row.reason
    trace = run.traces[row.policy]
    found = served(made, trace)
    assert found is not None
    service, split = plain(made, trace)
    assert dict(zip(found.tenants, found.service, strict=True)) == pytest.approx({k: service[k] for k in found.tenants})
    assert dict(zip(found.tenants, found.split, strict=True)) == pytest.approx({k: split[k] for k in found.tenants})
    for name, value in found.numbers.items():
        assert getattr(row, name) == pytest.approx(value)
    told = harmed(run.rows)
    assert row.lacking == found.lacking
    assert [one.short for one in told] == sorted((one.short for one in told), reverse=True)
    assert told[0].short == pytest.approx(found.short.max())
    assert "Served, not promised" in sg.to_html(run)


def test_the_best_gpus_come_first() -> None:
    speed = np.array([[0.5, 1.0]])
    assert taken(speed, np.array([[[4.0, 1.0], [1.0, 0.0]]]), np.array([3.0])) == pytest.approx(np.array([[2.0, 0.5]]))


def test_who_is_not_judged() -> None:
    made = instance([{"tenant": "a", "epochs": 20}], TWO[:1], {"t": 1})
    trace = simulate(workload(made), servers(made), in_order, **vars(Rules(round_s=10.0)))
    assert served(made, trace) is None


def test_the_page_reads_what_the_row_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Service is judged once, where the policy ran; a page takes it from the row, also after a run was stored."""
    run = sg.simulate(SEVERAL, ["hadar.online"], round_s=3600.0, jobs=1, results=tmp_path)
    monkeypatch.setattr("schedgap.harness.studies.simulate.task.served", lambda *_: pytest.fail("judged again"))
    assert run.folder is not None
    for found in (run, reopen(run.folder)):
        page = sg.to_html(replace(found, traces={}, rounds={}))
        assert "Served, not promised: the tenants that lack most" in page
        assert harmed(found.rows)[0].tenant in page


def test_a_row_that_tells_of_another_tenant_does_not_verify(tmp_path: Path) -> None:
    """The history of the row is read and judged again, so nobody can blame another tenant."""
    run = sg.simulate(SEVERAL, ["hadar.fifo"], round_s=3600.0, jobs=1, results=tmp_path)
    (row,), (instance,) = run.rows, run.instances.values()
    assert run.folder is not None
    content = (run.folder / history_file(row)).read_bytes()
    file = KeptFile(run.folder, history_file(row), digest(content))
    assert read_history(file, row, instance)[0].rounds == row.rounds
    first, *others = row.lacking
    for wrong in ((*others, first), (first | {"tenant": "nobody"}, *others), (first | {"short": 0.9}, *others)):
        with pytest.raises(ValueError, match="has another lacking than its row"):
            read_history(file, row.replace(lacking=wrong), instance)


@pytest.mark.parametrize(
    ("policy", "why"),
    [("hadar.hadare", "copies of a job hold more GPUs"), ("synergy.proportional.fifo", "jobs with more CPUs")],
)
def test_policies_that_are_not_judged_say_why(policy: str, why: str, command: Command, tmp_path: Path) -> None:
    """On the page, and on a terminal if these columns are asked for; with one tenant there is nothing to say."""
    columns = ["--columns", "policy,served_short"]
    run = sg.simulate(SEVERAL, [policy, "hadar.fifo"], round_s=3600.0, jobs=1, results=tmp_path)
    assert run.folder is not None
    told = f"service to tenants is not judged: {why}"
    assert told in sg.to_html(run)
    assert told in " ".join(command("table", str(run.folder), *columns).stdout.split())
    assert told not in " ".join(command("table", str(run.folder)).stdout.split())
    alone = sg.simulate("gen/20jobs?jobs=3&tenants=1&slot_s=3600", [policy], round_s=3600.0, jobs=1)
    assert "not judged" not in sg.to_html(alone)
