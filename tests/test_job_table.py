"""Jobs as columns are the same jobs: in memory, in files, for fingerprints and for certificates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from schedgap import certificates
from schedgap.certificates.files import instance_of
from schedgap.certificates.reading.rigid import fixed_gangs_of
from schedgap.certificates.rigid import merged
from schedgap.instances import canonical
from schedgap.instances.errors import InstanceError
from schedgap.instances.importers import Options, import_trace
from schedgap.instances.schema import Instance
from schedgap.instances.schema.columns import JobTable
from schedgap.instances.views import rigid

COLUMNS = {name: name for name in ("id", "submit", "start", "end", "gpus", "type", "user", "requested", "server")}
COLUMNS |= {"duration:K80": "k80"}

times = st.integers(0, 50) | st.floats(0, 50).map(lambda time: round(time, 6))
lines = st.tuples(
    st.sampled_from("abcdef"),
    *(times, times, times),
    st.sampled_from([1, 2, 4]),
    *(st.sampled_from(["V100", "K80"]), st.sampled_from(["", "ann", "bob"]), st.sampled_from(["", "30", "12.5"])),
    *(st.sampled_from(["", "n1"]), st.sampled_from(["", "9"])),
)


def a_log(rows: Any, folder: Path) -> Instance:
    """Return the instance of a log in which every job ends after it starts, and runs once at a time."""
    path, after = folder / "log.csv", dict[str, float]()
    text = ",".join(COLUMNS.values()) + "\n"
    for id, submit, wait, lasts, *rest in rows:
        start = max(submit + wait, after.get(id, 0.0))
        after[id] = start + lasts
        text += ",".join(map(str, (id, submit, f"{start:.6f}", f"{after[id] + 1e-9:.6f}", *rest))) + "\n"
    path.write_text(text)
    return import_trace("csv", path, Options(history=True, columns=COLUMNS))


@settings(deadline=None, max_examples=examples(20))
@given(rows=st.lists(lines, min_size=1, max_size=8))
def test_columns_and_lists_are_one_instance(rows: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("log")
    table = a_log(rows, folder)
    listed = table.model_copy(update={"jobs": tuple(table.jobs)})
    assert isinstance(table.jobs, JobTable)
    assert not isinstance(listed.jobs, JobTable)
    assert (table, table.plain, table.fingerprint) == (listed, listed.plain, listed.fingerprint)
    assert canonical.to_json(table) == canonical.to_json(listed)
    read = canonical.validate(json.loads(canonical.to_json(table)), "log")
    assert read == table
    assert read.fingerprint == table.fingerprint
    for one in (table, listed, read):
        view, facts = rigid.view(one), fixed_gangs_of(one.plain)
        for name in ("release", "duration", "gpus", "pool", "weight", "requested"):
            assert np.array_equal(getattr(view, name), getattr(rigid.view(listed), name)), name
        assert np.array_equal(facts.lasts, fixed_gangs_of(listed.plain).lasts)


@settings(deadline=None, max_examples=examples(20))
@given(rows=st.lists(lines, min_size=1, max_size=8))
def test_a_file_with_columns_is_read_by_programs_and_certificates(rows: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("log")
    table = a_log(rows, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "MOST_LISTED", 0)
        text = canonical.to_json(table)
    read = canonical.validate(json.loads(text), "log")
    assert isinstance(json.loads(text)["jobs"], dict)
    assert isinstance(read.jobs, JobTable)
    assert read == table
    assert read.fingerprint == table.fingerprint
    (folder / "instances").mkdir()
    (folder / "instances" / f"{table.fingerprint}.json").write_text(text)
    raw = instance_of({"instance": table.fingerprint}, folder / "certificates" / "x.json.gz")
    assert list(raw["jobs"]) == list(table.plain["jobs"])
    assert certificates.digest(raw, certificates.PRESENTATION) == table.fingerprint
    pools = len({*merged(fixed_gangs_of(raw))[1].tolist()})
    proof = {"problem": "rigid.makespan.preemptive", "pools": [{"share": ["area"]}] * pools}
    assert certificates.proved(proof, raw) == certificates.proved(proof, table.plain)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"id": ["a", "b"], "gpus": [1, 0], "epochs": [1, 1]}, "jobs[1].gpus = 0: a job needs at least one GPU"),
        ({"id": ["a", "b"], "gpus": [1, 9], "epochs": [1, 1]}, "jobs[1].gpus = 9: a gang fits on the 4 GPUs"),
        ({"id": ["a", "a"], "gpus": [1, 1], "epochs": [1, 1]}, "jobs[1].id = a: already used by jobs[0]; each id"),
        ({"id": ["a"], "gpus": [1, 1]}, "jobs = columns id, gpus: a list of jobs, or columns: lists of equal length"),
        ({"id": ["a"], "speed": [1]}, "jobs.speed = a column: known: id"),
        ({"id": "ab", "gpus": [1, 1]}, "jobs = columns id, gpus: a list of jobs, or columns: lists of equal length"),
    ],
)
def test_columns_of_a_file_are_validated(columns: Any, told: str) -> None:
    groups = [{"name": "s", "count": 1, "gpu_type": "V100", "gpus": 4}]
    cluster = {"gpu_types": [{"name": "V100"}], "servers": groups}
    with pytest.raises(InstanceError) as caught:
        canonical.validate({"name": "x", "cluster": cluster, "jobs": columns}, "x.json")
    assert str(caught.value).startswith(f"x.json: {told}")
