"""Audits of the papers' theorems, lines and numbers: each claim is data plus a function that tests it."""

from __future__ import annotations

from typing import Any

from schedgap.instances.discovery import lazy_attributes


def __getattr__(name: str) -> Any:
    return lazy_attributes(__name__, {}, name)
