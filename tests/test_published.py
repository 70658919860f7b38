"""Published numbers: each one in the catalogue is measured by a study or says why not, and is beside its row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE_S

from schedgap.harness.engine.task import Limits
from schedgap.harness.show.page import blocks, to_fragment
from schedgap.harness.show.page.instance import published as shown_in_words
from schedgap.harness.show.table import to_markdown
from schedgap.harness.studies.compare.row import Comparison, Row
from schedgap.harness.studies.compare.run import compare_here
from schedgap.harness.studies.published import (
    COMPARE,
    SIMULATE,
    STUDIES,
    commands,
    evaluated,
    never_compared,
    not_shown,
    unmeasured,
    with_published,
)
from schedgap.harness.studies.reproduce.setting import elsewhere, known
from schedgap.harness.studies.simulate.bounds import compared
from schedgap.harness.studies.simulate.row import Simulation, SimulationRow
from schedgap.instances import load
from schedgap.instances.catalogue import references
from schedgap.instances.schema import Instance, Published

REFS = references()
AWS = "gen/hadar-aws"
EXAMPLES = [ref for ref in REFS if not ref.startswith("gen/") and load(ref).published]
"""Instances that are so small that all numbers published about them are measured here."""


def entry(quantity: str, method: str = "zhou.ps.online", value: Any = 1.0, **known: Any) -> Published:
    return Published(method=method, quantity=quantity, value=value, where="here", **known)


def about(ref: str, *entries: Published) -> Instance:
    return load(ref).model_copy(update={"published": entries})


# the catalogue ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ref", REFS)
def test_every_published_number_is_measured_by_a_study_or_is_not_about_one_instance(ref: str) -> None:
    for one in load(ref).published:
        why = unmeasured(one)
        assert (why is None) == (not one.scope), (one.method, one.quantity, why)


@pytest.mark.parametrize("ref", EXAMPLES)
def test_what_compare_measures_of_an_example_stands_beside_its_rows(ref: str) -> None:
    instance = load(ref)
    wanted = [one for one in instance.published if COMPARE.include(one)]
    assert wanted
    named = [name for one in wanted for name in (one.method, *one.quantity.split("_ratio:")[1:])]
    rows = compare_here(instance, list(dict.fromkeys(named)), limits=Limits(time_limit_s=PATIENCE_S)).rows
    assert all(row.verified for row in rows)
    found = [(row.method, one["quantity"]) for row in rows for one in row.published]
    assert sorted(found) == sorted((one.method, one.quantity) for one in wanted)
    assert not_shown(rows, instance, COMPARE) == []


def test_zhou_s_numbers_are_stated_for_the_range_that_the_paper_gives() -> None:
    for ref in ("gen/zhou-ps", "gen/zhou-ra"):
        printed = load(ref).published
        assert {one.relation for one in printed} == {"at least", "at most"}
        assert load(f"{ref}?capacity=0.5&slots=300&seed=3").published == printed
        for other in ("capacity=0.6", "slots=400", "jobs=199", "capacity=0.4&jobs=199"):
            assert load(f"{ref}?{other}").published == ()


def test_means_over_mixes_stand_beside_no_mix() -> None:
    for ref in (AWS, "gen/hadar-testbed"):
        instance = load(ref)
        means = [one for one in instance.published if one.scope]
        assert {(one.method, one.quantity.partition("_ratio")[0]) for one in means} == {
            (method, name) for method in ("hadar.online", "hadar.hadare") for name in ("cru", "ttd", "jct_mean")
        }
        assert never_compared(instance) == {"it is the mean over the seven mixes": means}
        rows = [SimulationRow("i", instance.fingerprint, p, round_s=360.0, status="done", verified=True,
                              numbers={"ttd_s": t, "jct_mean_s": t, "jct_min_s": t, "jct_max_s": t, "cru": 0.5})
                for p, t in (("hadar.online", 3600.0), ("hadar.hadare", 1800.0), ("hadar.gavel", 4320.0))]  # fmt: skip
        hadar, hadare, gavel = compared(rows, {instance.fingerprint: instance}, {})
        assert hadare.published == ()
        assert gavel.ttd_printed == (1.18 if ref == AWS else 1.15)
        assert [one["value"] for one in hadar.published if one["quantity"] == "ttd_ratio:hadar.gavel"] == [
            gavel.ttd_printed
        ]
        text = to_markdown(blocks(Simulation({}, [hadar, hadare, gavel], {instance.fingerprint: instance})))
        assert "and 3 more: it is the mean over the seven mixes" in text
        assert not_shown([hadar, hadare, gavel], instance, SIMULATE) == [(one, unmeasured(one)) for one in means]


# evaluation ---------------------------------------------------------------------------------------


def test_zhou_s_ratio_and_time_stand_beside_the_row() -> None:
    ratio, time = "objective_ratio:zhou.ra.fifo", "solve_s"
    small = load("gen/zhou-ra?jobs=8&servers=4")
    instance = small.model_copy(
        update={"published": (entry(ratio, "zhou.ra.online", 1.43), entry(time, "zhou.ra.online", 120.0))}
    )
    online, fifo = sorted(compare_here(instance, ["zhou.ra.online", "zhou.ra.fifo"]).rows, key=lambda row: row.method)[
        ::-1
    ]
    measured = {one["quantity"]: one["measured"] for one in online.published}
    assert online.objective
    assert fifo.objective
    assert measured == {ratio: pytest.approx(fifo.objective / online.objective), time: online.solve_s}
    (alone,) = compare_here(instance, ["zhou.ra.online"]).rows
    assert [one["quantity"] for one in alone.published] == [time]
    assert not_shown([alone], instance, COMPARE) == [(instance.published[0], "zhou.ra.fifo must also run")]


def values(*pairs: tuple[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return dict(pairs)


@pytest.mark.parametrize(
    ("quantity", "ours"),
    [
        ("objective_ratio:b", 2.0),
        ("ttd_ratio:b", 0.5),
        ("jct_ratio:b", None),
        ("gru_ratio:b", 3.0),
        ("gru_ratio:c", None),
        ("gru_ratio", None),
        ("gru:b", None),
        ("ttd_h", 2.0),
        ("ttd_s", 7200.0),
        ("gru_h", None),
    ],
)
def test_what_follows_from_measured_numbers(quantity: str, ours: float | None) -> None:
    a = {"objective": 5.0, "sense": "min", "ttd_s": 7200.0, "gru": 0.9, "jct_s": 1.0}
    b = {"objective": 10.0, "sense": "min", "ttd_s": 3600.0, "gru": 0.3, "jct_s": 0.0}
    found = evaluated([entry(quantity, "a")], "a", values(("a", a), ("b", b)))
    assert [one["measured"] for one in found] == ([] if ours is None else [pytest.approx(ours)])


@pytest.mark.parametrize(
    ("relation", "measured", "agrees"),
    [
        ("equal", 1.436, False),
        ("equal", 1.4349, True),
        ("at least", 1.426, True),
        ("at least", 9.0, True),
        ("at least", 1.42, False),
        ("at most", 0.1, True),
        ("at most", 1.44, False),
    ],
)
def test_a_limit_is_compared_as_a_limit(relation: Any, measured: float, agrees: bool) -> None:
    (found,) = evaluated([entry("gru", "a", 1.43, relation=relation)], "a", {"a": {"gru": measured}})
    assert found["agrees"] is agrees


def test_ratios_are_within_a_seed_and_a_wrong_row_has_none() -> None:
    instance = about("paper/oef-eq1", entry("objective_ratio:oef.gavel", "oef.maxmin"))
    rows = [
        Row("i", instance.fingerprint, "oef", method, "oef.allocation", "baseline", "max", seed, objective=value)
        for method, seed, value in (("oef.maxmin", 0, 6.0), ("oef.gavel", 0, 3.0), ("oef.maxmin", 1, 6.0))
    ]
    first, _, second = with_published(rows, {instance.fingerprint: instance})
    assert [one["measured"] for one in first.published] == [2.0]
    assert second.published == ()
    wrong = with_published([rows[0], rows[1].replace(verified=False)], {instance.fingerprint: instance})
    assert wrong[0].published == ()
    assert not_shown(wrong, instance, COMPARE) == [(instance.published[0], "this run does not measure it")]


# what nothing measures ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (entry("ttd_h", "hadar.onlin"), "unknown method 'hadar.onlin'; did you mean hadar.online"),
        (entry("ttd_ratio:gavel"), "unknown method 'gavel'; did you mean"),
        (entry("objectiv"), "unknown quantity of zhou.ps.online 'objectiv'; did you mean objective"),
        (entry("lp1_share", "hadar.online"), "unknown quantity of hadar.online 'lp1_share'"),
        (entry("objective_ratio"), "'objective_ratio': a ratio is <quantity>_ratio:<other method>"),
        (entry("objective:zhou.ps.fifo"), "'objective:zhou.ps.fifo': a ratio is"),
        (entry("ttd_ratio:zhou.ps.fifo"), "unknown quantity of zhou.ps.online 'ttd'"),
        (entry("objective", value=None), "no number is given, only words"),
        (entry("objective", scope="a mean"), "it is a mean"),
    ],
)
def test_why_a_number_is_not_compared(one: Published, why: str) -> None:
    assert (unmeasured(one) or "").startswith(why)
    assert not any(study.run(about("gen/zhou-ps", one)).endswith(one.method) for study in STUDIES)


def test_a_number_of_another_study_names_its_command() -> None:
    instance = load("gen/hadar-480")
    (command,) = commands(instance)
    assert command.startswith("harness simulate --instance gen/hadar-480 --policy hadar.online --policy hadar.yarn_cs")
    row = Row("i", instance.fingerprint, "hadar", "hadar.online", "hadar.utility", "online", "max", objective=1.0)
    assert {why for _, why in not_shown([row], instance, COMPARE)} == {f"measured by {command}"}
    assert not_shown([row.replace(method="hadar.hadare")], instance, COMPARE) == []


def test_a_file_of_ones_own_learns_what_is_wrong(tmp_path: Path) -> None:
    document = json.loads(load("paper/oef-eq1").model_dump_json(exclude_defaults=True))
    wrong = {"method": "oef.maxmin", "quantity": "eficiency", "value": 1, "where": "p. 3"}
    document["published"] = [{"method": "oef.maxmim", "value": 1, "where": "p. 3"}, wrong]
    (tmp_path / "mine.json").write_text(json.dumps(document))
    mine = load(tmp_path / "mine.json")
    run = Comparison({}, compare_here(mine, ["oef.maxmin"]).rows, {mine.fingerprint: mine})
    for text in (to_markdown(blocks(run)), to_fragment(run).replace("&#39;", "'")):
        assert "oef.maxmim objective" in text
        assert "unknown method 'oef.maxmim'; did you mean oef.maxmin" in text
        assert "unknown quantity of oef.maxmin 'eficiency'; did you mean efficiency" in text


def test_an_instance_in_words_says_which_command_measures_what() -> None:
    lines = shown_in_words(load("paper/oef-fig2"))
    assert lines[1].startswith("published; harness compare --instance paper/oef-fig2 --method oef.")
    aws = load(AWS).model_copy(update={"name": "mine"})
    assert "published; not compared: it is the mean over the seven mixes" in shown_in_words(aws)


def test_a_number_about_other_jobs_is_shown_under_the_figure_that_leads_to_it() -> None:
    """81 h are a mean over a window of the artefact's trace; the 2,000 jobs of the instance lead to 20 h."""
    lines = shown_in_words(load("gen/synergy-128"))
    under = lines.index("published; harness reproduce synergy/fig9")
    assert lines[under + 1] == "  synergy.proportional.fifo jct_mean_h: 81 h, section 5.3.2, Fig. 9"
    assert "published; harness simulate --instance gen/synergy-128 --policy synergy.tune.fifo" in lines
    assert "published; harness reproduce hadar/fig9" in shown_in_words(load(AWS))
    for ref in REFS:
        for figure in elsewhere(load(ref)):
            assert ref not in [name for run in known()[figure].runs for name in run.references]
