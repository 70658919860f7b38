r"""Formulas as plain text: the part of LaTeX that the statements use, read by a small parser.

>>> to_plain(r"\\sum_j w_{j,t,r} \\le C^r")
'Σ_j w[j,t,r] ≤ C^r'
>>> prose(r"at most $\\lceil W_j/2 \\rceil$ of them")
'at most ⌈W_j/2⌉ of them'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

RELATIONS = {
    r"\le": "≤", r"\ge": "≥", r"\ne": "≠", r"\in": "∈", r"\subseteq": "⊆", "=": "=", "<": "<", ">": ">",
}  # fmt: skip
"""Signs with a space on either side."""

QUAD = "\u2003"

SIGNS = {
    r"\cdot": "·", r"\max": "max", r"\min": "min", r"\log": "log", r"\ln": "ln", r"\forall": "∀", r"\ldots": "…",
    r"\infty": "∞", r"\lceil": "⌈", r"\rceil": "⌉", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\{": "{", r"\}": "}",
    r"\alpha": "α", r"\beta": "β", r"\gamma": "γ", r"\delta": "δ", r"\Delta": "Δ", r"\eta": "η", r"\theta": "θ",
    r"\lambda": "λ", r"\mu": "μ", r"\pi": "π", r"\rho": "ρ", r"\tau": "τ", r"\varphi": "φ", r"\omega": "ω",
    r"\Gamma": "Γ", r"\colon": ": ", r"\,": "", r"\;": " ", r"\quad": QUAD, r"\left": "", r"\right": "", r"\sum": "Σ",
}  # fmt: skip

ACCENTS = {r"\hat": "\u0302"}

RAISED = {"-": "⁻", "+": "⁺", "2": "²", "*": "*", "'": "'"}

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.")
_MATH = re.compile(r"\$([^$]*)\$")


class MathematicsError(ValueError):
    """A formula has unbalanced braces, or a command that is not known here."""


def to_plain(latex: str) -> str:
    r"""Return a formula as one line of text.

    Parameters
    ----------
    latex
        Formula, without dollars. Indices in braces become ``[…]``, other subscripts ``_…``; ``\frac`` becomes ``/``.

    Raises
    ------
    MathematicsError
        If braces do not balance, or a command is unknown.
    """
    parser = _Parser(_TOKEN.findall(latex))
    text = parser.sequence(end=None)
    bare = re.sub(r"([(\[⌈⌊]) +| +(?=[)\],⌉⌋])", r"\1", text)
    return re.sub(r" +", " ", bare).replace(f" {QUAD} ", "  ").strip()


def prose(text: str) -> str:
    """Return text with formulas between dollars as plain text."""
    return replace_formulas(text, to_plain)


def replace_formulas(text: str, change: Callable[[str], str], rest: Callable[[str], str] = str) -> str:
    """Return text with every formula between dollars changed, and everything else by `rest`.

    Raises
    ------
    MathematicsError
        If a dollar has no partner.
    """
    parts = _MATH.split(text)
    if any("$" in part for part in parts):
        raise MathematicsError(f"a dollar without its partner: {text}")
    return "".join(change(part) if i % 2 else rest(part) for i, part in enumerate(parts))


@dataclass
class _Parser:
    """Reads tokens from left to right; tight where there is no room, in indices."""

    tokens: list[str]
    at: int = 0
    tight: int = 0

    def sequence(self, end: str | None) -> str:
        """Return what comes until `end`, which is taken, or the last token."""
        found = ""
        while True:
            token = self._next()
            if token is None:
                if end is not None:
                    raise MathematicsError(f"unbalanced braces: {''.join(self.tokens)}")
                return found
            if token == end:
                return found
            found = self._joined(found, token)

    def _joined(self, before: str, token: str) -> str:
        """Return what was read before with the next token."""
        bare = before.rstrip()
        if token.isspace():
            return before if self.tight or before.endswith(" ") else f"{before} "
        if token in "_^":
            return bare + (self._lowered(before) if token == "_" else self._raised())
        if token in RELATIONS:
            return self._between(before, RELATIONS[token])
        if token in "+-":
            sign = token.replace("-", "−")
            # A sign after an opening bracket or another sign belongs to what follows.
            return f"{before}{sign}" if self._opens(before) else self._between(before, sign)
        if token in {r"\cdot", r"\colon"}:
            self._skip_spaces()
            return bare + SIGNS[token]
        return before + self._atom(token)

    def _atom(self, token: str) -> str:
        if token == "{":
            return self.sequence(end="}")
        if token == "}":
            raise MathematicsError(f"unbalanced braces: {''.join(self.tokens)}")
        if token == r"\frac":
            above, below = self._argument(), self._argument()
            return f"{_grouped(above)}/{_grouped(below)}"
        if token == r"\text":
            return f" {self._argument().strip()} "
        if token in ACCENTS:
            return self._argument() + ACCENTS[token]
        if token in SIGNS:
            if token in {r"\left", r"\right"}:
                self._skip_spaces()
            return SIGNS[token]
        if token.startswith("\\"):
            raise MathematicsError(f"unknown command {token}")
        return "," if token == "," and self.tight else token

    def _between(self, before: str, sign: str) -> str:
        self._skip_spaces()
        loose = not self.tight or sign in "∈⊆≠≤≥<>"
        return f"{before.rstrip()} {sign} " if loose else f"{before.rstrip()}{sign}"

    @staticmethod
    def _opens(before: str) -> bool:
        return not before.strip() or before.rstrip()[-1] in "([{=≤≥<>,−+·"

    def _lowered(self, before: str) -> str:
        operator = before.rstrip().endswith(("Σ", "max", "min"))
        group = self._peek() == "{"
        content = self._index()
        if operator:
            self._skip_spaces()
            return f"_{{{content}}} " if group and len(content) > 1 else f"_{content} "
        return f"[{content}]" if group and ("," in content or not content.isalnum()) else f"_{content}"

    def _raised(self) -> str:
        content = self._index()
        if content in RAISED or content == "−":
            return RAISED[content.replace("−", "-")]
        return f"^{content}" if len(content) == 1 else f"^({content})"

    def _index(self) -> str:
        self.tight += 1
        try:
            return self._argument().strip()
        finally:
            self.tight -= 1

    def _argument(self) -> str:
        """Return the next atom or group."""
        self._skip_spaces()
        token = self._next()
        if token is None:
            raise MathematicsError(f"something is missing at the end: {''.join(self.tokens)}")
        return token if token in "+-*'" else self._atom(token)

    def _skip_spaces(self) -> None:
        while (token := self._peek()) is not None and token.isspace():
            self.at += 1

    def _peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _next(self) -> str | None:
        token = self._peek()
        self.at += 1
        return token


def _grouped(text: str) -> str:
    return f"({text})" if re.search(r"[ ·+−/]", text) else text
