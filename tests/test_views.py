"""Within a process, the view of an instance is built only once per paper."""

from __future__ import annotations

from typing import Any

import pytest

from schedgap import instances
from schedgap.harness.engine.task import sent
from schedgap.harness.studies.compare.task import MethodTask
from schedgap.instances.registry import CACHED_VIEWS, PAPERS, PaperSpec
from schedgap.instances.views import hadar


def test_all_methods_of_a_paper_and_its_caption_share_one_view(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    read = hadar.workload
    monkeypatch.setattr(hadar, "workload", lambda instance: built.append(instance.name) or read(instance))
    instance = instances.load("paper/hadar-fig1").model_copy(update={"name": "seen once"})
    for method in ("hadar.online", "hadar.srtf", "hadar.p1", "gavel.makespan_fluid"):
        row = MethodTask(*sent(instance), method).run().row
        assert row.verified is not False
        assert row.status != "error"
    PAPERS.get("hadar").describe(PAPERS.get("hadar").view(instance))
    assert built == ["seen once"]


def test_the_last_views_are_kept_by_content_and_name() -> None:
    built: list[str] = []

    def view(instance: Any) -> str:
        built.append(instance.name)
        return f"view {len(built)}"

    spec = PaperSpec("any", "", view, (), dict, str)
    first = instances.load("paper/oef-eq1")
    assert spec.view(first) == spec.view(first.model_copy(update={"title": "another"})) == "view 1"
    others = [first.model_copy(update={"name": f"other {i}"}) for i in range(CACHED_VIEWS)]
    assert [spec.view(other) for other in others] == [f"view {i + 2}" for i in range(CACHED_VIEWS)]
    assert spec.view(first) == f"view {CACHED_VIEWS + 2}"
    assert built == ["paper/oef-eq1", *(other.name for other in others), "paper/oef-eq1"]
