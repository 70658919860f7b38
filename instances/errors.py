"""Errors that a user can cause. Each message is one line: what is wrong, and what would be right."""

from __future__ import annotations


class UsageError(ValueError):
    """The user gave a name, file or option that cannot be used.

    The command line prints the message as one line and exits with status 2.
    """


class InstanceError(UsageError):
    """An instance, a generator spec or a trace is malformed or contradicts itself."""


class UnknownNameError(UsageError):
    """A reference, method, paper or model does not exist; the message suggests the closest names."""


class NotApplicableError(UsageError):
    """A method or view does not apply to this instance; the message becomes the reason in a ``skipped`` row."""


class TooManyError(NotApplicableError):
    """There are too many schedules to list, or too many ways to form one."""
