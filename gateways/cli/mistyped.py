"""What was typed wrongly, in words for people: the library of the command line says it in its own."""

from __future__ import annotations

import re

import typer

from shared.errors import UsageError

_CHOICES = re.compile(r"(?:Value error, )?'(?P<given>.*)' is not one of (?P<choices>.+?)\.?", re.DOTALL)
_NUMBERS = re.compile(r"Input should be a valid (?:number|integer)\b.*", re.DOTALL)
_BOUND = re.compile(r"Input should be (?P<bound>(?:greater|less) than .+)")
_BELOW_ZERO = re.compile(r"-\d[\d.]*")


def worded(error: typer.TyperException) -> UsageError:
    """What is wrong, why, and what to type instead."""
    told, where = error.format_message(), _place(error)
    fix = f"{_command(error)} -h lists what it takes"
    option = str(getattr(error, "option_name", "") or "")
    if _BELOW_ZERO.fullmatch(option):
        why = "what begins with - is an option, and none is a number"
        return UsageError(f"{option} cannot be given here", why, "give a number that is not below zero")
    message = str(getattr(error, "message", told))
    if choice := _CHOICES.fullmatch(message):
        choices = choice["choices"].replace("'", "")
        return UsageError(f"{where} cannot be {choice['given']!r}", "", f"give one of: {choices}")
    if where and _NUMBERS.fullmatch(message):
        return UsageError(f"{where} is not a number", "it takes a number", "give one, as 2 or 0.5")
    if where and (bound := _BOUND.fullmatch(message)):
        return UsageError(f"{where} is out of its bounds", f"it must be {bound['bound']}", fix)
    told = told.replace("Value error, ", "").rstrip(".")
    return UsageError(told[:1].lower() + told[1:], "", fix)


def _place(error: typer.TyperException) -> str:
    """The option or argument that has the wrong value."""
    param = getattr(error, "param", None)
    return str(param.get_error_hint()).replace("'", "") if param is not None else ""


def _command(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context else "promptdock"
