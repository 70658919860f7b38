"""What becomes of the rows of a file: kept, left out for a reason, or bad.

Every row has one fate, the first that applies, so that the rows read are those kept and those left out, by reason.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from schedgap.instances.canonical import shown, write_atomically
from schedgap.instances.errors import InstanceError
from schedgap.instances.text import counted

REPEATED = "they repeat another line"
REPEATED_HEADER = "they repeat the header"

BAD_ROWS = "bad-rows.csv"
"""File in the results folder of a log with its bad rows, if it has any."""

FIRST = 3
"""Bad rows that a message names."""


class BadRow(NamedTuple):
    """A row that cannot be read or is impossible: its file, line number, what is wrong, and its content."""

    file: str
    line: int
    problem: str
    content: str


@dataclass(eq=False)
class FileRows:
    """The fates of the rows of a file, by line number.

    Parameters
    ----------
    path
        The file.
    max_bad
        Largest percentage of bad rows; one bad row is accepted unless it is 0. ``None`` for files that have to be
        right: their first bad row raises `InstanceError`.
    at
        The word for a row's number in messages: ``line``, ``row`` or ``record``.

    Attributes
    ----------
    content
        ``content(number)`` returns a row as it stands in the file.
    continued
        Number of lines that continue the row of the line before them.
    beside
        Rows of further files that belong to this one.
    """

    path: Path
    max_bad: float | None = None
    at: str = "line"
    content: Callable[[int], str] = field(default=lambda number: "", repr=False)
    continued: int = 0
    beside: list[FileRows] = field(default_factory=list)
    _numbers: np.ndarray[Any, np.dtype[np.int64]] = field(default_factory=lambda: np.empty(0, np.int64))
    _fate: np.ndarray[Any, np.dtype[np.int32]] = field(default_factory=lambda: np.empty(0, np.int32))
    _reasons: dict[str, int] = field(default_factory=dict)
    _bad: dict[int, str] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """Number of rows in the file, without the header."""
        return len(self._numbers)

    @property
    def left_out(self) -> dict[str, int]:
        """Number of rows left out, bad ones among them, by reason."""
        counts = np.bincount(self._fate[self._numbers], minlength=len(self._reasons) + 1).tolist()
        return {reason: counts[at] for reason, at in self._reasons.items() if counts[at]}

    @property
    def bad(self) -> list[BadRow]:
        """The bad rows of this file and of those beside it."""
        own = [BadRow(self.path.name, n, self._bad[n], self.content(n)) for n in sorted(self._bad)]
        return own + [row for rows in self.beside for row in rows.bad]

    def also(self, path: Path) -> FileRows:
        """Return the rows of a further file, to which the same limit applies."""
        self.beside.append(FileRows(path, self.max_bad))
        return self.beside[-1]

    def begin(self, numbers: Sequence[int] | np.ndarray[Any, Any], content: Callable[[int], str]) -> None:
        """Note the numbers of all rows of the file, in increasing order, and how to show one."""
        self._numbers, self.content = np.asarray(numbers, np.int64), content
        self._fate = np.zeros(int(self._numbers[-1]) + 1 if len(self._numbers) else 1, np.int32)

    def leave(self, frame: pd.DataFrame, reasons: Mapping[str, Any]) -> pd.DataFrame:
        """Return the rows that no reason excludes and that are not bad; the first reason that applies counts.

        `reasons` maps each reason, in words, to the mask of the rows that it excludes, by line number.
        """
        for reason, applies in reasons.items():
            self._assign(reason, np.asarray(applies.index)[applies.to_numpy(bool)])
        return self.kept(frame)

    def kept(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that are not left out."""
        left = self._fate[frame.index.to_numpy()] == 0
        return frame if left.all() else frame[left]

    def positions(self, frame: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the place of each row of `frame` among the rows of the file, from 0."""
        return np.searchsorted(self._numbers, frame.index.to_numpy()).astype(np.int64)

    def refuse(self, wrong: Any, raw: pd.Series, right: str | pd.Series, reason: str = "") -> None:
        """Make the rows bad in which `wrong` holds; the index of `raw` has the line numbers.

        Parameters
        ----------
        raw
            Values to show, named like their column.
        right
            What would be right, or what is wrong, for the message about a row; or that for each row.
        reason
            What is wrong, in words that suit all these rows; by default, that the column has no valid value.

        Raises
        ------
        InstanceError
            If the file has to be right, or nothing else is left of it.
        """
        wrong = np.asarray(wrong, bool)
        if not wrong.any():
            return
        numbers, values = raw.index.to_numpy()[wrong].tolist(), raw.to_numpy(object)[wrong].tolist()
        rights = [right] * len(numbers) if isinstance(right, str) else right.to_numpy(object)[wrong].tolist()
        told = {n: f"{raw.name} = {shown(value)}: {why}" for n, value, why in zip(numbers, values, rights, strict=True)}
        self.spoil(told, reason or f"no valid {raw.name} ({right})")

    def spoil(self, told: Mapping[int, str], reason: str) -> None:
        """Make rows bad for one `reason`; `told` says by line number what is wrong with each. See :meth:`refuse`."""
        if not told:
            return
        if self.max_bad is None:
            number, problem = next(iter(told.items()))
            raise InstanceError(f"{self.path}: {self.at} {number}: {problem}")
        fresh = self._assign(reason, np.fromiter(told, np.int64, len(told)))
        self._bad |= {number: told[number] for number in fresh.tolist()}
        if len(self._bad) == self.read:
            self.check()

    def check(self) -> None:
        """Raise `InstanceError` if there are more bad rows than are accepted."""
        for rows in self.beside:
            rows.check()
        most = max(1.0, self.read * (self.max_bad or 0) / 100) if self.max_bad else 0
        if len(self._bad) > most or 0 < len(self._bad) == self.read:
            first = "; ".join(self._first())
            more = "; …" if len(self._bad) > FIRST else ""
            are = "is" if self.read == 1 else "are"
            share = f"{len(self._bad)} of {counted(self.read, self.at)} {are} bad ({len(self._bad) / self.read:.0%})"
            if len(self._bad) > most:
                share += f", more than the {self.max_bad or 0:g} % of --max-bad"
            raise InstanceError(f"{self.path}: {share}: {first}{more}")

    def _first(self) -> list[str]:
        """Return the first bad rows for a message, in which what would be right stands once."""
        said, rights = [], set()
        for number in sorted(self._bad)[:FIRST]:
            value, colon, right = self._bad[number].partition(": ")
            said.append(f"{self.at} {number}: {value if right in rights else value + colon + right}")
            rights.add(right)
        return said

    def close(self) -> None:
        """Keep the contents of the bad rows, but no longer the file's."""
        contents = {number: self.content(number) for number in self._bad}
        self.content = contents.__getitem__
        for rows in self.beside:
            rows.close()

    def notes(self, noun: str = "") -> list[str]:
        """Return a sentence for each reason: ``1 of 3 lines left out: …``; `noun` is another word for a row."""
        own = left_out_notes(self.left_out, counted(self.read, noun or self.at))
        if self.continued:
            own.append(f"{counted(self.continued, 'line')} without the fields of a row continue the one before")
        further = ((rows, f"{counted(rows.read, rows.at)} of {rows.path.name}") for rows in self.beside)
        return own + [note for rows, total in further for note in left_out_notes(rows.left_out, total)]

    def _assign(self, reason: str, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Give rows without a fate this one, and return their numbers."""
        fresh: np.ndarray[Any, Any] = numbers[self._fate[numbers] == 0]
        if len(fresh):
            self._fate[fresh] = self._reasons.setdefault(reason, len(self._reasons) + 1)
        return fresh


def left_out_notes(left_out: Mapping[str, int], total: str) -> list[str]:
    """Return a note for each reason why rows or jobs were left out (``1 of 3 jobs left out: …``)."""
    return [f"{n} of {total} left out: {reason}" for reason, n in left_out.items() if n > 0]


def save_bad(bad: Sequence[BadRow], path: Path) -> None:
    """Write bad rows as CSV with the columns ``file,line,problem,content``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(BadRow._fields)
    writer.writerows(bad)
    write_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def list_bad(rows: FileRows, folder: Path | None) -> None:
    """Write the bad rows of a log into its results folder, if there are any."""
    if folder and rows.bad:
        save_bad(rows.bad, folder / BAD_ROWS)
