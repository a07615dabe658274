"""The model provider's key: checked where the provider can be reached, kept in `.env`, never shown."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from shared import log
from shared.client import connect
from shared.errors import ConfigurationError, ModelError, ModelRefused, UsageError
from shared.guard.files import atomic
from shared.settings import Settings

_SHAPE = re.compile(r"[!-~]{8,500}")
_UNSAFE = frozenset("\"'`$\\#")

KeyVerdict = Literal["taken", "unknown"]


async def check(settings: Settings, key: str, provider: str = "") -> tuple[KeyVerdict, str]:
    """Ask the provider: taken, or unknown and why. ConfigurationError where it refuses the key."""
    log.hide(key)
    meant = connect.provider(settings, provider)
    model = connect.make_model(settings, meant, key)
    try:
        await model.check()
    except ModelRefused as error:
        why, command = log.redact(error.why or error.what), f"promptdock key set {provider}".rstrip()
        raise ConfigurationError("the key is not taken", why, f"set another one: {command}") from error
    except ModelError as error:
        return "unknown", log.redact(error.told())
    finally:
        await model.close()
    return "taken", ""


async def keep(
    settings: Settings, key: str, provider: str, file: Path, unchecked: bool = False
) -> tuple[KeyVerdict, str]:
    """Check a key, and write it; one that nobody can say anything of only where that is wanted, else ModelError."""
    needed = still_needs(settings, provider)
    verdict: KeyVerdict
    verdict, why = (
        ("unknown", f"nobody knows where {company(settings, provider)} is: {needed} is not set")
        if needed
        else await check(settings, key, provider)
    )
    if verdict == "unknown" and not unchecked:
        first = f"set {needed} first" if needed else "try again later"
        command = f"promptdock key set {provider}".rstrip()
        fix = f"{first}, or keep it as it is: {command} --unchecked"
        raise ModelError("the key could not be checked, and is not kept", why, fix)
    write(key, name(settings, provider), file)
    return verdict, why


def current(settings: Settings, provider: str = "") -> str:
    """The key in force, "" for a server that needs none; ConfigurationError where nothing is set."""
    meant = connect.provider(settings, provider)
    if not meant.configured(settings):
        demo = not connect.providers(settings)
        why = "the demo model answers, which is scripted" if demo else f"{meant.called} is not asked"
        command = f"promptdock key set {provider}".rstrip()
        if meant.needs == "address":
            raise ConfigurationError(f"no address of {meant.called} is set", why, f"set {meant.address_name}")
        raise ConfigurationError("no key is set", why, f"set one with: {command}")
    return meant.key(settings) or ""


def is_set(settings: Settings) -> bool:
    """Whether a provider answers; else the demo model does."""
    return bool(connect.providers(settings))


def name_is_set(settings: Settings, name: str) -> bool:
    """Whether the variable of a key is set somewhere."""
    return any(one.key_name == name and one.key(settings) for one in connect.known_providers())


def configured(settings: Settings) -> list[str]:
    """The names of the providers that are configured, in their order."""
    return [one.name for one in connect.providers(settings)]


def name(settings: Settings, provider: str = "") -> str:
    """The variable that holds the key."""
    return connect.provider(settings, provider).key_name


def company(settings: Settings, provider: str = "") -> str:
    """Whose key it is, for people."""
    return connect.provider(settings, provider).called


def still_needs(settings: Settings, provider: str) -> str:
    """The variable without which the key of this provider means nothing; "" where none is missing."""
    meant = connect.provider(settings, provider)
    return meant.address_name if meant.needs == "address" and not meant.address(settings) else ""


def clean(typed: str, name: str) -> str:
    """What was typed or pasted, also behind `name=`, as a key; UsageError for what cannot be one."""
    key = typed.strip().removeprefix(f"{name}=").strip().strip("\"'")
    if not _SHAPE.fullmatch(key) or not _UNSAFE.isdisjoint(key):
        raise UsageError(
            "that is no key",
            "it is too short, or holds blanks or quotes",
            "copy it once more from the provider",
        )
    return key


def write(key: str, name: str, file: Path) -> None:
    """Put the key into `.env`; all its other lines stay, and nobody else may read it from now on."""
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = file.read_text("utf-8") if file.exists() else ""
    fresh, place = f"{name}={key}", _line(name)
    if place.search(text):
        # The last one counts when the file is read, so that none of an earlier key may stay behind it.
        text = place.sub(lambda _found: fresh, text)
    else:
        text = f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{fresh}\n"
    atomic.put(file, text)


def remove(name: str, file: Path) -> bool:
    """Take the key out of `.env`, whose other lines stay; whether one stood there."""
    file = file.resolve()
    text = file.read_text("utf-8") if file.exists() else ""
    rest = re.sub(rf"{_line(name).pattern}\n?", "", text, flags=re.MULTILINE)
    if rest != text:
        atomic.put(file, rest)
    return rest != text


def _line(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*(?:export[ \t]+)?{name}[ \t]*=.*$", re.MULTILINE)


def shadowed(name: str) -> bool:
    """Whether the environment holds another key, which wins over `.env`."""
    return bool(os.environ.get(name))
