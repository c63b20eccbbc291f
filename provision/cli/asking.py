"""Putting questions to a person, where one is there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from provision.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Callable


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str, *, yes: bool) -> bool:
    """Whether the person agrees. Raises Usage where nobody can be asked and --yes was not given."""
    if yes:
        return True
    if not can_ask():
        raise Usage("there is no terminal to ask on", do="give --yes to go on without being asked")
    return click.confirm(question, err=True, default=False)


def password_question() -> Callable[[str], str] | None:
    """How to ask for a password, which is not shown as it is typed; None where nobody can be asked."""
    if not can_ask():
        return None
    return lambda question: str(
        click.prompt(question, hide_input=True, err=True, default="", show_default=False)
    )


def host_key_question() -> Callable[[str], bool] | None:
    """How to ask about an unknown host key; None where nobody can be asked."""
    return (lambda question: click.confirm(question, err=True, default=False)) if can_ask() else None
