"""The script that checks certificates, imported as a module, and ways to spoil a certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schedgap import certificates as checker

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def plain(content: Any) -> dict[str, Any]:
    """Return a copy of plain data as it comes back from a JSON file."""
    copy: dict[str, Any] = json.loads(json.dumps(content))
    return copy


def signed(proof: dict[str, Any], instance: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate with the right digests of its own content and of an instance."""
    proof = proof | {"instance": checker.digest(instance, checker.PRESENTATION)}
    return proof | {"digest": checker.digest(proof, {"digest"})}


def spoiled(proof: dict[str, Any]) -> dict[str, Any]:  # noqa: PLR0911 -- one line for each kind of certificate
    """Return a certificate whose multipliers are changed so that they no longer show its bound."""
    if "times" in proof:
        return proof | {"times": [time * 1.001 for time in proof["times"]]}
    if "base" in proof:
        return proof | {"base": proof["base"] / 2}
    if "charges" in proof:
        return proof | {"charges": [proof["charges"][0] + round(9 / proof["unit"]), *proof["charges"][1:]]}
    if proof.keys() & {"slots", "edges", "rounds"}:
        return proof | {"prices": [[0 for _ in prices] for prices in proof["prices"]]}
    if "pools" in proof:
        return proof | {"pools": [pool | {"parts": [0 for _ in pool["parts"]]} for pool in proof["pools"]]}
    if "parts" in proof:
        return proof | {"parts": [1.0 - part for part in proof["parts"]]}
    parts = {name: proof[name] for name in ("prices", "jobs", "tenants", "envy") if proof.get(name)}
    largest = max(_numbers(parts))
    return proof | {name: _without(part, largest) for name, part in parts.items()}


def _numbers(content: Any) -> list[int]:
    if isinstance(content, dict | list):
        return [n for part in (content.values() if isinstance(content, dict) else content) for n in _numbers(part)]
    return [content]


def _without(content: Any, number: int) -> Any:
    return [_without(part, number) for part in content] if isinstance(content, list) else content * (content != number)
