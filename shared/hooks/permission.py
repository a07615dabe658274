"""What a person allowed of a hook: exactly the steps that it had then, in its project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.hooks import steps
from shared.store.records import Hook
from shared.store.row import now


def grant(person: str, looks: Sequence[Mapping[str, Any]], project: str) -> dict[str, Any]:
    """As a hook's row keeps it; {} where no person allowed anything."""
    if not person:
        return {}
    return {"by": person, "at": now().isoformat(), "digest": steps.digest(looks, project)}


def granted_by(hook: Hook, project: str) -> str:
    """The person who allowed the steps as they are now; "" where nobody did."""
    same = hook.allowed.get("digest") == steps.digest(hook.context_steps, project)
    return str(hook.allowed.get("by") or "") if same else ""
