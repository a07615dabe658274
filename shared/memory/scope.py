"""Whose memory it is: a person's in a project, and what people share there where the project's memory is shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared import people
from shared.store.base import Store, Where
from shared.store.records import Setting, derived, project_key
from shared.store.row import now

DEFAULT = "default"  # the project in which is kept what holds everywhere
_SHARED = "memory_shared"


@dataclass(frozen=True)
class MemoryScope:
    """What one person may recall: their own of the project and of everywhere, and what others share in it."""

    user_id: str
    project: str = DEFAULT
    shared: bool = False
    anywhere: bool = False  # of all projects: to look through, never for a prompt

    def conditions(self) -> list[dict[str, Any]]:
        """Conditions that together fit what may be recalled; no row fits two of them."""
        here, everywhere = project_key(self.project), project_key(DEFAULT)
        mine: dict[str, Any] = {"user_id": self.user_id, "project_id": ("in", sorted({here, everywhere}))}
        if self.anywhere:
            return [{"user_id": self.user_id}]
        if not self.shared or not people.signs(self.user_id):
            return [mine]
        return [mine, {"user_id": ("ne", self.user_id), "project_id": here, "scope": "project"}]


def kept_in(project: str, person: str = "") -> dict[str, Any]:
    """The columns that say where a row belongs; what nobody signed is shared with nobody."""
    shared = project != DEFAULT and people.signs(person)
    return {"project_id": project_key(project), "scope": "project" if shared else "global"}


async def of(store: Store, user_id: str, project: str) -> MemoryScope:
    """The scope of a person's question in a project."""
    return MemoryScope(user_id, project, await shared(store, project))


async def shared(store: Store, project: str) -> bool:
    """Whether what is remembered in a project is for all who work on it; never that of the default one."""
    if project == DEFAULT:
        return False
    where: Where = {"scope": f"project:{project}", "key": _SHARED}
    rows = await store.select(Setting, where, limit=1)
    return bool(rows and rows[0].value.get("shared"))


async def share(store: Store, project: str, on: bool, by: str) -> None:
    """A person says whether it is."""
    place = f"project:{project}"
    value = {"shared": on, "by": by, "at": now().isoformat()}
    await store.upsert(
        [Setting(id=derived("setting", place, _SHARED), scope=place, key=_SHARED, value=value)]
    )
