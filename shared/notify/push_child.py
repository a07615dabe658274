"""The process that hands one notification to apprise: the address comes on standard input, the outcome leaves."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any


def tell(asked: dict[str, Any]) -> dict[str, Any]:
    """Whether apprise could hand it on; its own words may hold the address, so that they stay here."""
    logging.disable(logging.CRITICAL)
    try:
        import apprise
    except ImportError:
        return {"ok": False, "error": 'apprise is not here: pip install "promptdock[notify]"'}
    asset = apprise.AppriseAsset(app_id="PromptDock", app_desc="PromptDock", secure_logging=True)
    service = apprise.Apprise(asset=asset)
    if not service.add(asked["address"]):
        return {"ok": False, "error": "apprise knows no service of this address"}
    if "text" not in asked:
        return {"ok": True}
    done = service.notify(body=asked["text"], title=asked["title"])
    return {"ok": True} if done else {"ok": False, "error": "the service did not take it"}


def main() -> None:
    """One notification."""
    try:
        told = tell(json.load(sys.stdin))
    except Exception as error:
        told = {"ok": False, "error": type(error).__name__}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
