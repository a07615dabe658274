"""The models that the provider has, and whether those that the settings name are among them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from shared.client import connect
from shared.client.local import key
from shared.settings import Settings

_NEAR = 3  # names that are proposed
_DATED = r"(-\d{8}|-latest)?"  # a name without a date means the newest of its kind


@dataclass(frozen=True)
class MissingModel:
    """A name that the provider does not list, the setting that has it, and names that may be meant."""

    name: str
    setting: str
    near: tuple[str, ...]

    @property
    def told(self) -> str:
        """What is wrong."""
        return f"the provider does not list the model {self.name} ({self.setting})"

    @property
    def fix(self) -> str:
        """What to do."""
        near = f", e.g. {' or '.join(self.near)}" if self.near else ""
        setting = self.setting.removesuffix(" by default")
        return f"set {setting} to one that promptdock models lists{near}"


async def listed(settings: Settings) -> list[str]:
    """What the provider lists, the newest first; ConfigurationError where there is no key."""
    provider = connect.make_model(settings, key.current(settings))
    try:
        return await provider.models()
    finally:
        await provider.close()


def chosen(settings: Settings) -> dict[str, str]:
    """The names that the settings choose, by the setting: the default one, and those of single agents."""
    setting = "PROMPTDOCK_MODEL" if settings.model else "PROMPTDOCK_MODEL by default"
    default = settings.model or connect.meant_provider(settings).recommended
    return {setting: default} | settings.own_models()


def missing(settings: Settings, names: Sequence[str]) -> list[MissingModel]:
    """Those that are not among these names. A provider that lists nothing says nothing."""
    if not names:
        return []
    return [
        MissingModel(
            name, setting, tuple(difflib.get_close_matches(name, names, _NEAR, 0.4) or names[:_NEAR])
        )
        for setting, name in chosen(settings).items()
        if not _lists(names, name)
    ]


def _lists(names: Sequence[str], name: str) -> bool:
    meant = re.compile(re.escape(name.removesuffix("-latest")) + _DATED)
    return any(meant.fullmatch(one) for one in names)
