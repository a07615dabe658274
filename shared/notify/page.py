"""Where what is told outside can be looked at."""

from __future__ import annotations

from shared.settings import Settings

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # what listens everywhere is here too


def address(settings: Settings) -> str:
    """Where people open the page: the address that is set, else that of this machine."""
    if settings.web_url:
        return settings.web_url.rstrip("/")
    host = _ANYWHERE.get(settings.web_host, settings.web_host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.web_port}"
