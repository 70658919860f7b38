"""The errors a user can cause. Each carries one line: what is wrong, and what would be right."""

from __future__ import annotations


class UsageError(ValueError):
    """Something the user named, wrote or asked for cannot be used.

    The command line prints the message as one line and exits with code 2.
    """


class InstanceError(UsageError):
    """An instance, a generator spec or a trace is malformed or impossible."""


class UnknownNameError(UsageError):
    """A reference, method, paper or model is not known; the message names the nearest known ones."""


class NotApplicableError(UsageError):
    """A method or a paper's view cannot take this instance; the message is the reason for a ``skipped`` row."""
