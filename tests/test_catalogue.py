"""The catalogue of instances: references, overrides, inheritance, and worked examples with their printed numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import instances
from schedgap.instances import canonical, catalogue
from schedgap.instances.catalogue import KINDS, known, load
from schedgap.instances.errors import InstanceError, UnknownNameError, UsageError
from schedgap.instances.schema import Instance, Published
from schedgap.instances.schema.summary import describe
from schedgap.instances.views.oef import OefView
from schedgap.instances.views.oef import view as oef_view

REFS = [entry.ref for entry in known()]
OEF = [ref for ref in REFS if ref.startswith("paper/oef")]

LOAD = "a load is positive and at most 1000 (0.9 fills 90 % of the cluster)"
SLOT = "a slot has a positive length in seconds"
LIMIT = "at most 1000000; to raise it, set schedgap.instances.schema.limits.MAX_ITEMS in Python"

SPEC = """
title = "mine"
[generator]
family = "speedups"
tenants = 3
types = 2
devices = 1
step = 0.5
"""


# references ---------------------------------------------------------------------------------------


def test_known_instances_have_a_kind_and_a_title() -> None:
    assert {entry.kind for entry in known()} == set(KINDS)
    assert all(entry.ref.startswith(f"{entry.kind}/") and entry.title for entry in known())
    assert REFS[:5] == ["gen/20jobs", "gen/50jobs", "gen/200jobs", "gen/1000jobs", "gen/2000jobs"]


@pytest.mark.parametrize("ref", REFS)
def test_every_known_instance_loads_and_survives_the_round_trip(ref: str, tmp_path: Path) -> None:
    instance = load(ref)
    assert instance.name == ref
    assert dict(describe(instance))["fingerprint"] == instance.fingerprint
    canonical.write(instance, tmp_path / "a.json")
    again = load(tmp_path / "a.json")
    assert again == instance
    assert again.fingerprint == instance.fingerprint


def test_an_instance_in_words() -> None:
    facts = dict(describe(load("gen/200jobs")))
    assert facts["cluster"] == "60 GPUs: 20 V100, 20 P100, 20 K80"
    assert facts["servers"] == "15: 15 x 4 GPU / 16 CPU / 250 GB / 25 Gbit/s / 2 PS"
    assert facts["load"] == "0.90 of the average GPUs, from the start to the last arrival"
    assert facts["horizon"] == "288 slots of 900 s (3 days)"
    assert facts["gangs"].startswith("1")
    lie = dict(describe(load("paper/oef-eq1-lie")))
    assert lie["tenants"] == "3, job types: 3, 1 reporting other rates than the true ones"
    assert lie["published"] == "2 x oef.gandiva_fair"
    assert "load" not in lie


def test_golden_fingerprint() -> None:
    """The fingerprint of an example changes only if its content or the canonical form changes."""
    assert load("paper/oef-eq1").fingerprint == GOLDEN


GOLDEN = "193b3cb2cd3197f7647dfeb0d056e237105a8c81ba85e5386b2a453a1de896bc"


def test_an_instance_passes_through() -> None:
    instance = load("paper/oef-eq6")
    assert load(instance) is instance


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        (
            "gen/200job",
            "unknown instance 'gen/200job'; did you mean gen/200jobs or gen/2000jobs or gen/20jobs?",
        ),
        ("200jobs", "unknown instance '200jobs'; did you mean gen/200jobs or gen/2000jobs or gen/20jobs?"),
        (
            "paper/walktrough",
            "unknown instance 'paper/walktrough'; did you mean paper/walkthrough or paper/rigid-hpc or paper/oef-fig2?",
        ),
        ("gen/../../x", "'gen/../../x': a reference must not contain '..'; begin a path with ./ or /"),
        (
            "paper/../x.toml",
            "'paper/../x.toml': a reference must not contain '..'; begin a path with ./ or /",
        ),
        ("gen/x\ny", "'gen/x\\ny': a reference is one line of at most 4096 characters"),
        ("g" * 5000, f"'{'g' * 60}': a reference is one line of at most 4096 characters"),
    ],
)
def test_unknown_references(ref: str, message: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load(ref)
    assert str(caught.value) == message


@pytest.mark.parametrize("ref", ["", "?", "zzzz", "?load=1"])
def test_nothing_near_lists_what_there_is(ref: str) -> None:
    with pytest.raises(UnknownNameError, match="known: gen/20jobs, gen/50jobs, gen/200jobs"):
        load(ref)


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("none.json", "none.json: no such file"),
        ("./gen/../none.toml", "gen/../none.toml: no such file"),
        ("gen/none.toml", "gen/none.toml: no such file"),
        (
            "some/trace.csv",
            "some/trace.csv: an instance file ends in .json or .toml; import traces with: harness import",
        ),
    ],
)
def test_paths_that_cannot_be_read(ref: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InstanceError) as caught:
        load(ref)
    assert str(caught.value) == message


def test_a_folder_is_no_instance(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="a folder, not a file"):
        load(tmp_path)


def test_a_path_is_named_by_its_stem_unless_it_names_itself(tmp_path: Path) -> None:
    data = load("paper/oef-eq6").model_dump(mode="json", exclude_defaults=True)
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({k: v for k, v in data.items() if k != "name"}))
    assert load(path).name == "mine"
    assert load(str(path)).fingerprint == load("paper/oef-eq6").fingerprint


@settings(max_examples=200)
@given(st.text(alphabet="genpaprol/.?=&-0123456789jbs%\n\x00 ", max_size=30))
def test_any_reference_is_an_instance_or_one_line(ref: str) -> None:
    try:
        assert isinstance(load(ref), Instance)
    except UsageError as error:
        message = str(error)
        assert message.isprintable()


# overrides ----------------------------------------------------------------------------------------


def test_overrides_in_the_reference_and_beside_it() -> None:
    instance = load("gen/20jobs?seed=7&load=1.2")
    assert instance.name == "gen/20jobs?load=1.2&seed=7"
    assert instance.fingerprint == load("gen/20jobs?load=1.2", {"seed": 7}).fingerprint
    assert instance.fingerprint != load("gen/20jobs").fingerprint
    assert load("gen/20jobs?seed=1", {"seed": 7}).name == "gen/20jobs?seed=7"


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("gen/200jobs?laod=1", "gen/200jobs?laod=1: unknown parameter 'laod'; did you mean load?"),
        ("gen/200jobs?load=x", f'gen/200jobs?load=x: load = "x": {LOAD}'),
        ("gen/200jobs?load=-1", f"gen/200jobs?load=-1: load = -1: {LOAD}"),
        ("gen/200jobs?load=nan", f"gen/200jobs?load=nan: load = nan: {LOAD}"),
        ("gen/200jobs?jobs=1.5", "gen/200jobs?jobs=1.5: jobs = 1.5: a whole number of jobs, 1 or more"),
        ("gen/200jobs?jobs=1000000000", f"gen/200jobs?jobs=1000000000: jobs = 1000000000: {LIMIT}"),
        (
            "gen/oef-scale?tenants=1000000",
            f"gen/oef-scale?tenants=1000000: tenants · types = 10000000: {LIMIT}",
        ),
        ("gen/200jobs?slot_s=1e-9", f"gen/200jobs?slot_s=1e-9: horizon.slots = 259200000000000: {LIMIT}"),
        ("gen/200jobs?seed=-1", "gen/200jobs?seed=-1: seed = -1: a seed is a whole number, 0 or more"),
        (
            "gen/oef-20?arrivals=x",
            "gen/oef-20?arrivals=x: arrivals = \"x\": input should be 'start', 'poisson', 'bursty', ",
        ),
        ("gen/200jobs?load=%0A", f'gen/200jobs?load=%0A: load = "\\n": {LOAD}'),
        ("gen/200jobs?%0A=1", "gen/200jobs?%0A=1: unknown parameter '\\n'; known: seed, jobs, jobs_per_day, load, "),
        (  # what the file sets comes first, then what its family adds
            "gen/oef-20?nope=3",
            "gen/oef-20?nope=3: unknown parameter 'nope'; known: seed, arrivals, tenants, jobs, jobs_per_day, load, "
            "size_spread, tail_h, slot_s, variation, gangs, gang_probabilities, … (harness show gen/oef-20 lists all)",
        ),
        (
            "gen/oef-scale?nope=3",
            "gen/oef-scale?nope=3: unknown parameter 'nope'; known: seed, tenants, types, devices, step, ",
        ),
        ("gen/200jobs?=1", "'gen/200jobs?=1': '=1' is not key=value (write ?load=1.2&seed=7)"),
        ("gen/200jobs?load", "'gen/200jobs?load': 'load' is not key=value (write ?load=1.2&seed=7)"),
        ("gen/200jobs?load=1&", "'gen/200jobs?load=1&': '' is not key=value (write ?load=1.2&seed=7)"),
        ("gen/200jobs?load=1&load=2", "'gen/200jobs?load=1&load=2': 'load' is given twice"),
        (
            "paper/walkthrough?seed=1",
            "paper/walkthrough: 'seed' cannot be overridden; an instance without a generator takes only slot_s",
        ),
        ("paper/walkthrough?slot_s=0", f"paper/walkthrough: slot_s = 0: {SLOT}"),
        ("paper/walkthrough?slot_s=x", f"paper/walkthrough: slot_s = x: {SLOT}"),
        ("paper/oef-eq1?slot_s=5", "paper/oef-eq1: slot_s cannot be overridden: the instance has no horizon"),
    ],
)
def test_overrides_that_cannot_be(ref: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(ref)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("slot_s", "slots"), [(360, 720), (900, 288), (3600, 72), (7000, 38)])
def test_slot_length_keeps_the_end(slot_s: int, slots: int) -> None:
    horizon = load(f"gen/200jobs?slot_s={slot_s}").horizon
    assert horizon is not None
    assert (horizon.slot_s, horizon.slots) == (slot_s, slots)
    assert horizon.end_s >= 288 * 900


def test_slot_length_of_data(tmp_path: Path) -> None:
    instance = load("paper/walkthrough?slot_s=3")
    assert instance.horizon is not None
    assert (instance.horizon.slots, instance.name) == (3, "paper/walkthrough?slot_s=3")
    assert instance.fingerprint != load("paper/walkthrough").fingerprint
    same = load(load("paper/walkthrough"), {"slot_s": 3})
    assert same.fingerprint == instance.fingerprint


# specs and bases of one's own ---------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_generator_spec_of_ones_own(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.toml", SPEC)
    instance = load(f"{path}?tenants=5")
    assert (instance.name, instance.title, len(instance.tenants)) == ("mine?tenants=5", "mine; tenants = 5", 5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"speedups"', '"speedup"', "unknown generator family 'speedup'; did you mean speedups?"),
        ('family = "speedups"', "", "unknown generator family 'None'"),
        ("tenants = 3", "", "tenants: missing: a whole number of tenants, 1 or more"),
        ("step = 0.5", "stepp = 0.5", "step: missing: each type is at most this share faster"),
        ("step = 0.5", "step = 0.5\nx = 1", "x: unknown field"),
        ('title = "mine"', "jobs = []", "jobs: unknown field"),
        ("[generator]", "generator = 5\n[other]", "generator = 5: a table of parameters, with the family"),
    ],
)
def test_specs_that_cannot_be(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write(tmp_path / "mine.toml", SPEC.replace(old, new))
    with pytest.raises(UsageError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_base_is_inherited_without_its_published_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.toml", 'base = "paper/walkthrough"\ntitle = "mine"\n[horizon]\nslots = 9\n')
    mine, base = load(path), load("paper/walkthrough")
    assert mine.jobs == base.jobs
    assert mine.horizon is not None
    assert (mine.horizon.slot_s, mine.horizon.slots) == (1.0, 9)
    assert mine.published == ()


def test_a_spec_may_have_a_generator_as_base(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.toml", 'base = "gen/200jobs"\n[generator]\njobs = 3\n')
    assert load(path).jobs == load("gen/200jobs").jobs[:3]


@pytest.mark.parametrize("base", ["paper/oef-eq", "oef-eq1", "../x", "5"])
def test_unknown_bases(tmp_path: Path, base: str) -> None:
    path = write(tmp_path / "mine.toml", f'base = "{base}"\n')
    with pytest.raises(UnknownNameError, match="unknown base"):
        load(path)


def test_a_circle_of_bases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = {"a": write(tmp_path / "a.toml", 'base = "b"\n'), "b": write(tmp_path / "b.toml", 'base = "a"\n')}
    monkeypatch.setattr(catalogue, "_files", lambda kind: files)
    with pytest.raises(InstanceError, match=r"gen/a: a chain of more than 8 bases"):
        load("gen/a")


# what the papers printed --------------------------------------------------------------------------


def published(ref: str) -> list[tuple[OefView, Published]]:
    view = oef_view(load(ref))
    return [(view, entry) for entry in load(ref).published]


def array(numbers: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.asarray(numbers, float)


@pytest.mark.parametrize("ref", OEF)
def test_published_allocations_have_the_shape_of_the_view_and_fit(ref: str) -> None:
    for view, entry in published(ref):
        for devices in (entry.value, entry.exact):
            if entry.quantity == "devices" and devices is not None:
                assert array(devices).shape == view.speedups.shape
                assert (array(devices).sum(axis=0) <= view.capacity + 1e-12).all()


@pytest.mark.parametrize("ref", OEF)
def test_exact_efficiencies_and_totals_follow_from_exact_allocations(ref: str) -> None:
    entries = {(e.method, e.quantity): e for _, e in published(ref)}
    view = oef_view(load(ref))
    for (method, quantity), entry in entries.items():
        if quantity != "devices" or entry.exact is None:
            continue
        reported = (view.speedups * array(entry.exact)).sum(axis=1)
        true = (view.true_speedups * array(entry.exact)).sum(axis=1)
        follows = {
            "efficiency": reported,
            "objective": reported.sum(),
            "true_efficiency": true,
            "true_total": true.sum(),
        }
        for name, expected in follows.items():
            if (other := entries.get((method, name))) is not None:
                assert array(other.exact) == pytest.approx(expected)


@pytest.mark.parametrize("ref", OEF)
def test_where_print_and_truth_differ_there_is_a_note(ref: str) -> None:
    for _, entry in published(ref):
        if entry.value is not None:
            error = np.abs(array(entry.value) - array(entry.exact)).max()
            assert error <= entry.tolerance * (1 + 1e-9) or entry.note


def test_oef_variants_share_the_content_of_their_base() -> None:
    same = {load(f"paper/{name}").fingerprint for name in ("oef-eq1", "oef-eq2", "oef-eq3")}
    assert len(same) == 1
    view = oef_view(load("paper/oef-eq6-lie"))
    assert view.speedups.tolist() == [[1, 4], [1, 5]]
    assert view.true_speedups.tolist() == [[1, 2], [1, 5]]


def test_hadar_fig1_rates_are_those_of_the_whole_job() -> None:
    instance = load("paper/hadar-fig1")
    rates = [[job.gpus * rate for rate in job.rates.values()] for job in instance.jobs]
    assert rates == [[40, 20, 30], [5, 15, 5], [10, 2, 20]]
    utility = sum(job.iterations / rounds for job, rounds in zip(instance.jobs, (3, 2, 7), strict=True))
    assert instance.published[0].exact == pytest.approx(utility)


def test_walkthrough_utilities() -> None:
    instance = load("paper/walkthrough")
    exact = {entry.method: entry.exact for entry in instance.published}

    def f(delay: int) -> float:
        return 300 / (1 + math.exp(0.02 * delay))

    assert exact["admission.online"] == pytest.approx(f(3) + f(4) + f(5))
    assert exact["admission.offline"] == pytest.approx(2 * f(3) + f(4))


def test_synergy_example_speeds_up_the_sensitive_jobs_only() -> None:
    instance = load("paper/synergy-example")
    proportional = [rate(instance, i, 12, 250) for i in range(4)]
    sensitive = [rate(instance, i, c, m) for i, (c, m) in enumerate([(23, 400), (12, 450), (1, 100), (12, 50)])]
    speedups = [b / a for a, b in zip(proportional, sensitive, strict=True)]
    assert speedups == pytest.approx([1.917, 1.385, 1, 1], abs=1e-3)
    hours = [job.iterations / r / 3600 for job, r in zip(instance.jobs, proportional, strict=True)]
    assert hours == pytest.approx([1, 1, 1, 1], rel=0.01)


def rate(instance: Instance, i: int, cpus: float, memory_gb: float) -> float:
    """Return a job's iterations per second by the pipeline model: the least of GPU, preparation and fetching."""
    job = instance.jobs[i]
    model = job.sensitivity
    assert model is not None
    assert model.kind == "pipeline"
    missed = 1 - min(1, (memory_gb - model.process_memory_gb) / model.dataset_gb)
    fetch = model.storage_mb_per_s / (model.item_mb_per_iteration * missed) if missed else math.inf
    return min(job.gpus * job.rates["V100"], cpus * model.prep_rate_per_cpu, fetch)


def test_package_doctest() -> None:
    assert instances.load("paper/oef-eq1").cluster.gpus == 2
    assert set(KINDS) == {"gen", "paper", "worst", "family"}
