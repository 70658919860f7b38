"""Formatting of numbers and of untrusted text, the same on the terminal and in reports."""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Literal

ABSENT = "–"
NOISE = 1e-9
"""Relative size of floating-point noise, which does not count when a number is rounded up or down."""

ALLOWED = 1e-7
"""Gaps up to this size are shown as 0 %: a certified bound leaves room for the violations that checkers accept."""

Side = Literal["exactly", "at most", "at least"]
"""What a printed number says about the true one; estimates are rounded so that they stay true."""

DIRECTIONS = {"exactly": ROUND_HALF_EVEN, "at most": ROUND_CEILING, "at least": ROUND_FLOOR}
SIGNS = {"at least": "≥ ", "at most": "≤ "}
"""Signs before numbers that are limits."""

_DIRECTION = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def clean(text: object, limit: int | None = None) -> str:
    """Return `text` on one line without control and direction characters, cut to `limit` characters."""
    undirected = _DIRECTION.sub("", str(text))
    visible = "".join(c for c in undirected if c.isspace() or unicodedata.category(c) not in {"Cc", "Cs"})
    safe = re.sub(r"\s+", " ", visible).strip()
    return shorten(safe, limit) if limit else safe


def resuming(command: object, folder: object) -> str:
    """Return the command line that completes the run of a results folder."""
    return f"{clean(command)} --resume {shlex.quote(clean(folder))}".strip()


def shorten(text: str, limit: int) -> str:
    """Return `text` in at most `limit` characters, with … in place of some words in its middle if it is too long."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[len(text) - (limit - limit // 2 - 1) :]
    return f"{head[: head.rfind(' ') + 1] or head}…{tail[max(tail.find(' '), 0) :]}"


def number(value: float | None, digits: int = 4, side: Side = "exactly") -> str:
    """Return `value` with `digits` significant digits: ``4.154``, ``12,346``, ``1e-05``; ``–`` if absent."""
    if value is None or math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if side != "exactly" and value:
        magnitude = Decimal(value).adjusted()
        value = float(rounded(value, max(digits - 1 - magnitude, 0) if abs(value) < 1e12 else 0, side))
    size = abs(value)
    if size >= 10**digits - 0.5 and size < 1e12:
        return f"{value:,.0f}"
    text = f"{value + 0.0:.{digits}g}"
    return "0" if text == "-0" else text


def limit(value: float, side: Side, digits: int = 4) -> str:
    """Return a number that limits another one, with its sign: ``≥ 335.6``, ``≤ 12.9``."""
    return SIGNS.get(side, "") + number(value, digits, side)


def rounded(value: float, decimals: int, side: Side = "exactly") -> Decimal:
    """Return `value` rounded to `decimals` places, or to four significant digits if it is 1e12 or larger.

    An upper estimate (``at most``) is rounded up and a lower estimate (``at least``) down; floating-point noise does
    not count. Every number that limits another one passes through here.
    """
    direction = DIRECTIONS[side]
    noise = {"exactly": 0.0, "at most": -NOISE, "at least": NOISE}[side]
    exact = Decimal(value + abs(value) * noise)
    if abs(value) >= 1e12:
        return Context(4, direction).create_decimal(exact)
    return exact.quantize(Decimal(1).scaleb(-decimals), direction)


def percent(fraction: float | None, side: Side = "exactly") -> str:
    """Return a fraction in per cent, rounded to its `side`: ``12.9 %``, ``0.05 %``, ``< 0.01 %``."""
    if fraction is None or not math.isfinite(fraction):
        return number(fraction)
    value = 100.0 * fraction
    size = abs(value)
    if size <= 100 * ALLOWED:
        return "0 %"
    if size < 0.005:
        return "< 0.01 %" if value > 0 else "> −0.01 %"
    return f"{rounded(value, 0 if size >= 100 else 1 if size >= 1 else 2, side):,} %"


def ratio(value: float | None, is_upper: bool | None) -> str:
    """Return a performance ratio: ``1.07`` if the optimum is certified, otherwise ``≤ 1.07``, rounded up."""
    if value is None or not math.isfinite(value):
        return number(value)
    side = estimate(is_upper)
    text = f"{rounded(value, 3 if value < 10 else 1, side):,}"
    if value < 10 and text.endswith("0"):
        text = text[:-1]
    return SIGNS.get(side, "") + text


def estimate(is_upper: bool | None) -> Side:
    """Return the side of a gap or ratio: ``at most`` unless it is known to be exact (`is_upper` is ``False``)."""
    return "exactly" if is_upper is False else "at most"


def at_most(fraction: float) -> str:
    """Return an upper estimate in per cent: ``at most 12.9 %``, ``less than 0.01 %``."""
    text = percent(fraction, "at most")
    return f"less than {text[2:]}" if text.startswith("<") else f"at most {text}"


def amount(fraction: float, is_upper: bool | None) -> str:
    """Return a gap in words, with the digits that tables show: ``12.9 %``, or ``at most 12.9 %``."""
    return percent(fraction).replace("<", "less than") if is_upper is False else at_most(fraction)


def between(least: float, most: float) -> str:
    """Return a share that lies between two values: ``32.5 %``, ``at most 2.6 %``, ``25.7 % to 29.4 %``."""
    if most - least <= NOISE * abs(most):
        return percent(most)
    return at_most(most) if least < 0.0001 else f"{percent(least, 'at least')} to {percent(most, 'at most')}"


def within(ends: tuple[float | None, float | None], text: Callable[[float], str] = percent) -> str:
    """Return a 95 % interval after a number, `` [3.1 %, 4.8 %]``; it is empty if it is unknown or a point."""
    low, high = ends
    return f" [{text(low)}, {text(high)}]" if low is not None and high is not None and low < high else ""


def at_least(fraction: float) -> str:
    """Return a lower estimate in per cent: ``at least 12.8 %``, ``more than 0 %``."""
    return f"at least {percent(fraction, 'at least')}" if fraction >= 0.0001 else "more than 0 %"


def seconds(value: float | None) -> str:
    """Return a duration: ``< 0.001 s``, ``0.012 s``, ``45.3 s``, ``5 min 12 s``, ``3 h 05 min``."""
    if value is None or not math.isfinite(value):
        return number(value)
    if value < 0.001:
        return "< 0.001 s"
    if value < 119.95:
        return f"{value:.{3 if value >= 1 else 2}g} s"
    if value < 7199.5:
        return f"{round(value) // 60} min {round(value) % 60:02d} s"
    return f"{round(value / 60) // 60} h {round(value / 60) % 60:02d} min"


def plain(value: Any) -> Any:
    """Convert numpy scalars and arrays, tuples and mappings to plain Python; infinities and NaN become ``None``."""
    if hasattr(value, "tolist"):
        items, kind = value.tolist(), value.dtype.kind
        if kind in "iub" or (kind == "f" and math.isfinite(value.sum())):
            return items  # checking each of the millions of numbers in a history would take half a minute
        value = items
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def numbers(value: Any, digits: int = 5) -> str:
    """Return a number, a vector (``1, 1.5, 2``), a matrix (``1, 0; 0, 0.5``) or a Boolean as text."""
    value = plain(value)
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "✓" if value else "✗"
    if isinstance(value, int | float):
        return number(value, digits)
    if isinstance(value, list):
        separator = "; " if any(isinstance(item, list) for item in value) else ", "
        return shorten(separator.join(numbers(item, digits) for item in value), 160)
    return clean(value, 60)


def in_words(metric: str) -> str:
    """Return the name of a metric in words: ``envy free`` for ``envy_free``."""
    return clean(metric, 40).replace("_", " ")


MARKS = {True: "✓", False: "≠", None: ""}


def published_cells(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return three cells about a published number: printed value with ✓ or ≠, measured value, and exact value.

    The exact value is replaced by ✓ if the measured value equals it and does not contradict the printed one.
    """
    mark = MARKS[entry.get("agrees")]
    in_full = f"{numbers(entry.get('exact'))} {MARKS[entry.get('exact_agrees')]}"
    exact = "✓" if entry.get("exact_agrees") and not differs(entry) else in_full
    printed = SIGNS.get(entry.get("relation", ""), "") + numbers(entry.get("value"))
    return f"{printed} {mark}".strip(), numbers(entry.get("measured")), exact.strip()


def differs(entry: Mapping[str, Any]) -> bool:
    """Return whether the measured value contradicts a printed number."""
    return entry.get("value") is not None and entry.get("agrees") is False
