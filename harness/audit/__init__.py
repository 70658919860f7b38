"""Audits of the papers' theorems, lines and numbers: each claim is data and a function that tries it."""

from __future__ import annotations

from typing import Any

from schedgap.instances.discovery import lazy_attributes


def __getattr__(name: str) -> Any:
    return lazy_attributes(__name__, {}, name)
