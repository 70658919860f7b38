"""Certificates that a stranger wrote are refused in one line, without a Python error."""

from __future__ import annotations

import copy
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certified import EXAMPLES, checker, plain, signed
from conftest import examples

from schedgap import instances
from schedgap.harness.engine.task import Limits, sent
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances.canonical import to_json

FIG1 = "paper/hadar-fig1"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a folder like a run's, with the instance of Fig. 1 and without certificates."""
    instance = instances.load(FIG1)
    for name in ("certificates", "instances"):
        (tmp_path / name).mkdir()
    (tmp_path / "instances" / f"{instance.fingerprint}.json").write_text(to_json(instance))
    return tmp_path


def told(run: Path, name: str, content: bytes) -> str:
    """Run the checking script on a file with this content; return the one line with which it refuses the file."""
    path = run / "certificates" / name
    path.write_bytes(content)
    command = [sys.executable, str(EXAMPLES / "check_certificate.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip("\n").isprintable()
    return done.stderr


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("window0", "hadar.utility has no 'window'"),
        ("flip", "it is not a gzip file, or it was damaged"),
        ("trunc", "it is cut off, or unpacks to more than 200 MB"),
        ("problem_ansi", r"there is no rule for hadar.utility\x1b[31m"),
    ],
)
def test_files_that_failed_are_refused_in_one_line(case: str, reason: str, run: Path, data_dir: Path) -> None:
    name = f"{case}.json.gz"
    content = (data_dir / "cases" / "certificates" / name).read_bytes()
    assert told(run, name, content) == f"{name}: refused: {reason}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[" * 10**5, "nested too deeply"),
        (b"[" + b"[]," * 21_000_000 + b"[]]", "values"),
        (b'{"bound": NaN}', "NaN is not a number"),
        (b'{"bound": 1e999}', "too large"),
        (b'{"bound": 1, "bound": 2}', "twice"),
        (b"[1]", "not an object"),
        (b"{}", "names no instance"),
        (b'{"instance": "../../../etc/passwd"}', "64 hexadecimal digits"),
        (bytes(210_000_000), "cut off, or unpacks to more"),
    ],
    ids=["deep", "many", "nan", "inf", "twice", "list", "empty", "path", "bomb"],
)
def test_what_is_no_certificate_is_refused_in_one_line(text: bytes, reason: str, run: Path) -> None:
    assert reason in told(run, "a.json.gz", gzip.compress(text, 1))


@pytest.mark.parametrize("name", ["bound", "unit", "envy"])
def test_numbers_are_no_texts(name: str) -> None:
    """A text in place of a number is refused at once; to read 1e99999999 as a fraction would take minutes."""
    instance = instances.load("paper/oef-eq1")
    about = sent(instance)
    proof = plain(MethodTask(*about, "oef.cooperative").run().certificate)
    text: Any = [[0, 2, "1e99999999"]] if name == "envy" else "1e99999999"
    raw = json.loads(to_json(instance))
    with pytest.raises(checker.RefusedError, match="must be numbers"):
        checker.check(signed(proof | {name: text}, raw), raw)


WRONG = (None, True, -1, 0, 10**13, -(10**30), 0.5, 1e300, 5e-324, "x", "", [], [[]], {}, [None], [-1], ["x"], [10**40])
METHODS = (
    *("hadar.p2.columns", "hadar.fluid", "hadar.forked_bound", "gavel.makespan_fluid", "gavel.jct", "gavel.jct_p99"),
    "rigid.bound",
)


def proofs() -> Iterator[tuple[dict[str, Any], float | None]]:
    """Yield certificates, each with the objective of a verified decision, if its method makes one."""
    instance = instances.load(FIG1)
    for method in METHODS:
        task = MethodTask(*sent(instance), method, limits=Limits(time_limit_s=1.0))
        if (found := task.run()).certificate is not None:
            yield plain(found.certificate), found.row.objective


def test_every_field_may_have_any_value() -> None:
    """A certificate with a changed field is refused, or its bound does not exclude a verified decision."""
    instance, tried = json.loads(to_json(instances.load(FIG1))), 0
    rng = np.random.default_rng(1)
    for proof, objective in proofs():
        sense, _ = checker.proved(proof, instance)
        for name in proof.keys() - {"digest", "instance", "method", "problem"}:
            for wrong in WRONG:
                tried += 1
                try:
                    value = checker.check(signed(proof | {name: wrong}, instance), instance)
                except checker.REFUSED:
                    continue
                if objective is not None:
                    assert sense * (float(value) - objective) >= -1e-6 * abs(objective), (name, wrong)
        extra = str(rng.choice(["window", "round_s", "starts", "machines", "anything"]))
        if extra not in proof and not proof["problem"].startswith(("gavel", "rigid")):
            with pytest.raises(checker.RefusedError, match="has no"):
                checker.proved(proof | {extra: "0:1"}, instance)
    assert tried > 500


PAPERS = (
    *(("paper/oef-eq1", method) for method in ("oef.cooperative", "oef.noncooperative", "oef.sharing_incentive")),
    *(("paper/oef-multi", method) for method in ("oef.nash", "oef.least_gain")),
    *(("paper/synergy-example", f"synergy.{name}") for name in ("lp1.free", "lp1.queue", "jct", "servers")),
    *(("paper/synergy-example", f"synergy.{name}") for name in ("makespan_fluid", "servers.queue")),
    *(("gen/20jobs?jobs=3&servers_per_type=1&slot_s=21600", f"zhou.{kind}.columns") for kind in ("ps", "ra")),
    ("gen/20jobs?jobs=3&servers_per_type=1&slot_s=21600", "zhou.ps.fluid"),
    ("paper/walkthrough", "admission.columns"),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of all parts of a certificate, at any depth."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from places(item)


@pytest.mark.parametrize(("ref", "method"), PAPERS)
def test_every_part_may_have_any_value(ref: str, method: str) -> None:
    """A certificate with one to three changed parts is refused, or does not exclude a verified decision."""
    source = instances.load(ref)
    instance, rng = json.loads(to_json(source)), np.random.default_rng(7)
    task = MethodTask(*sent(source), method, limits=Limits(nodes=1))
    found = task.run()
    sense, _ = checker.proved(proof := plain(found.certificate), instance)
    refused, tries = 0, examples(50)
    for _ in range(tries):
        hostile = json.loads(json.dumps(proof))
        for _ in range(int(rng.integers(1, 4))):
            where = [place for place in places(hostile) if place[1] not in {"digest", "instance", "method", "problem"}]
            holder, key = where[int(rng.integers(len(where)))]
            holder[key] = copy.deepcopy(WRONG[int(rng.integers(len(WRONG)))])
        try:
            _, value = checker.proved(hostile, instance)
        except checker.REFUSED:
            refused += 1
            continue
        if (objective := found.row.objective) is not None:
            assert sense * (value - Fraction(objective)) >= -1e-6 * abs(objective), hostile
    assert refused >= tries / 5
