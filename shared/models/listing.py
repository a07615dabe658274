"""What each provider said when it was asked which models it has: kept where all workers and surfaces read it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

ModelListState = Literal["ok", "refused", "away"]
KeyState = Literal["checked", "unchecked", "refused", "none"]

_NEAR = 3  # names that are proposed
_DATED = r"(-\d{8}|-\d{4}-\d\d-\d\d|-latest|:latest)?"  # a name without a date means the newest of its kind


class ModelList(BaseModel):
    """One provider: whether it takes the key and answers, and its models, the newest first."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    provider: str
    state: ModelListState
    models: tuple[str, ...] = ()
    why: str = ""
    address: str = ""  # where it was asked; "" is the provider's own
    keyed: bool = False  # whether it was asked with a key
    at: float = Field(default_factory=time.time)

    @property
    def key(self) -> KeyState:
        """Whether its key is known to be taken."""
        if self.state == "refused":
            return "refused"
        if not self.keyed:
            return "none"
        return "checked" if self.state == "ok" else "unchecked"

    def age(self) -> float:
        """Seconds."""
        return time.time() - self.at

    def has(self, name: str) -> bool:
        """Whether it lists this model, or a dated one of that name."""
        return lists(self.models, name)


class ModelListCache(Protocol):
    """Where listings are kept for all."""

    async def read(self) -> Mapping[str, bytes]:
        """All of them as JSON, by provider."""

    async def write(self, provider: str, data: str) -> None:
        """Keep one."""

    async def claim(self, provider: str, seconds: int) -> bool:
        """Whether we are to ask this provider; for so long nobody else does."""


def read(data: Mapping[str, bytes]) -> dict[str, ModelList]:
    """The listings that can be read."""
    found = {}
    for name, text in data.items():
        try:
            found[name] = ModelList.model_validate_json(text)
        except ValidationError:
            continue  # of a release to come, or of somebody else: the provider is asked again
    return found


def lists(names: Iterable[str], name: str) -> bool:
    """Whether `name` is among these, or means one of them that has a date."""
    meant = re.compile(re.escape(name.removesuffix("-latest")) + _DATED)
    return any(meant.fullmatch(one) for one in names)


def near(names: Sequence[str], name: str) -> tuple[str, ...]:
    """Those that may be meant."""
    import difflib

    lower = {one.lower(): one for one in reversed(names)}
    found = difflib.get_close_matches(name.lower(), lower, _NEAR, 0.4)
    return tuple(lower[one] for one in found) or tuple(names[:_NEAR])


def words(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def chain(model: str) -> list[str]:
    """The names in `a,b`: those behind the first answer where it does not."""
    return [name.strip() for name in model.split(",") if name.strip()]
