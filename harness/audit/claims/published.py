"""Printed numbers: those about a worked example are checked, those about unpublished data are not testable here."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from schedgap.harness.audit.lab import Lab, certified
from schedgap.harness.audit.registry import claim
from schedgap.harness.published import COMPARE, by_reason, commands, never_compared, not_shown
from schedgap.harness.text import numbers
from schedgap.instances import load
from schedgap.instances.schema import Published


def _with_numbers(folder: str) -> dict[str, list[Mapping[str, Any]]]:
    """Return the printed numbers of a folder's specs by name."""
    found = {}
    for file in sorted(resources.files("schedgap.instances").joinpath(folder).iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            entries = tomllib.loads(file.read_text("utf-8")).get("published", [])
            if printed := [entry for entry in entries if "value" in entry]:
                found[file.name.removesuffix(".toml")] = printed
    return found


def worked_example(lab: Lab, ref: str) -> str:
    """Run the methods that the paper printed numbers of on its own example.

    A number that we do not get is wrong where the exact value is known; otherwise nothing follows, since policies leave
    much open, and it is only listed.
    """
    instance = load(ref)
    methods = list(dict.fromkeys(entry.method for entry in instance.published if entry.value is not None))
    wrong, open_ = [], []
    rows = certified(instance, methods)
    for method, row in rows.items():
        for entry in row.published:
            if entry["value"] is None:
                continue
            what = f"{method} {entry['quantity']}: {numbers(entry['measured'])}, printed {numbers(entry['value'])}"
            if not entry["agrees"] and not entry["exact_agrees"]:
                open_.append(what)
            elif not lab.add(bool(entry["agrees"]), instance, methods, what):
                wrong.append(what)
    parts = [f"{lab.failed} of {lab.tested} numbers are wrong in their last place or before"]
    parts += [": " + "; ".join(wrong)] if wrong else []
    parts += ["; not reproduced, and no exact value is known: " + "; ".join(open_)] if open_ else []
    left = (pair for pair in not_shown(rows.values(), instance, COMPARE) if pair[0].value is not None)
    return "; ".join(["".join(parts), *_left_out(by_reason(left))])


def unpublished(lab: Lab, ref: str) -> str:
    """Say how to see each number beside ours, or why it is not compared; the data themselves are not published."""
    instance = load(ref)
    shown = [f"{len(entries)} in: {command}" for command, entries in commands(instance).items()]
    text = f"numbers about data that the paper does not publish; beside ours: {'; '.join(shown)}"
    return "; ".join([text, *_left_out(never_compared(instance))])


def _left_out(entries: Mapping[str, Sequence[Published]]) -> Iterator[str]:
    """Yield what is compared with nothing, and why."""
    for why, left in entries.items():
        listed = (f"{entry.method} {entry.quantity} {numbers(entry.value)}" for entry in left)
        yield f"not compared, {why}: {', '.join(listed)}"


for _folder, _kind, _text, _scope, _how, _check in (
    (
        "paper",
        "printed",
        "The printed numbers about paper/{} are right.",
        "to the last printed place",
        "every method on the worked example, decisions re-checked, against exact values where these are known",
        worked_example,
    ),
    (
        "gen",
        "measured",
        "The measured numbers that gen/{} is about are right.",
        "the paper's own traces and machines",
        "only with the paper's data",
        unpublished,
    ),
):
    for _name, _printed in _with_numbers(_folder).items():
        claim(
            f"{str(_printed[0]['method']).partition('.')[0]}.{_kind}.{_name}",
            str(_printed[0]["where"]),
            text=_text.format(_name),
            scope=_scope,
            how=_how,
            ref=f"{_folder}/{_name}",
        )(_check)
