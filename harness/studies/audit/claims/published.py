"""Printed numbers: those about worked examples are checked; those about unpublished data are not testable here."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources

from schedgap.harness.show.text import numbers
from schedgap.harness.studies.audit.lab import ClaimLab, certified
from schedgap.harness.studies.audit.row import claim
from schedgap.harness.studies.published import COMPARE, by_reason, commands, never_compared, not_shown, split
from schedgap.instances import load
from schedgap.instances.schema import Published


def worked_example(lab: ClaimLab, ref: str) -> str:
    """Run the methods for which the paper prints numbers on its own example.

    A number that we do not reproduce counts as wrong if the exact value is known. Otherwise it is only listed, because
    papers leave much about their policies open.
    """
    instance = load(ref)
    printed = [entry for entry in instance.published if entry.value is not None]
    named = [name for entry in printed for name in (entry.method, split(entry.quantity)[1]) if name]
    methods = list(dict.fromkeys(named))
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
    parts = [f"{lab} numbers are wrong in their last place or before"]
    parts += [": " + "; ".join(wrong)] if wrong else []
    parts += ["; not reproduced, and no exact value is known: " + "; ".join(open_)] if open_ else []
    left = (pair for pair in not_shown(rows.values(), instance, COMPARE) if pair[0].value is not None)
    return "; ".join(["".join(parts), *_left_out(by_reason(left))])


def unpublished(lab: ClaimLab, ref: str) -> str:
    """Describe how to compare each number with ours, or why it is not compared; the data are not published."""
    instance = load(ref)
    shown = [f"{len(entries)} in: {command}" for command, entries in commands(instance).items()]
    text = f"numbers about data that the paper does not publish; compared with ours: {'; '.join(shown)}"
    return "; ".join([text, *_left_out(never_compared(instance))])


def _left_out(entries: Mapping[str, Sequence[Published]]) -> Iterator[str]:
    """Yield, for each reason, the numbers that are not compared."""
    for why, left in entries.items():
        listed = (f"{entry.method} {entry.quantity} {numbers(entry.value)}" for entry in left)
        yield f"not compared, {why}: {', '.join(listed)}"


def register(folder: str, kind: str, check: Callable[..., str], text: str, scope: str, how: str) -> None:
    """Register a claim for each spec in a folder that has printed numbers."""
    for file in sorted(resources.files("schedgap.instances").joinpath(folder).iterdir(), key=lambda f: f.name):
        ref = f"{folder}/{file.name.removesuffix('.toml')}"
        entries = tomllib.loads(file.read_text("utf-8")).get("published", []) if file.name.endswith(".toml") else []
        if printed := [entry for entry in entries if "value" in entry]:
            paper, where = printed[0]["method"].partition(".")[0], printed[0]["where"]
            words = {"text": text.format(ref), "scope": scope, "how": how}
            claim(f"{paper}.{kind}.{ref.rpartition('/')[2]}", where, ref=ref, **words)(check)


register(
    "paper",
    "printed",
    worked_example,
    text="The printed numbers about {} are right.",
    scope="to the last printed place",
    how="every method on the worked example, with checked decisions, against exact values if they are known",
)
register(
    "gen",
    "measured",
    unpublished,
    text="The measured numbers about {} are right.",
    scope="the paper's own traces and machines",
    how="testable only with the paper's data",
)
