"""What Supabase's refusals mean to us: a wrong key, missing tables, a conflict, or a service that is down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shared.errors import ConfigurationError, Conflict, PromptDockError, StoreUnavailable

if TYPE_CHECKING:
    import httpx
    from postgrest import APIError

_MISSING = ("42P01", "42703", "PGRST106", "PGRST204", "PGRST205", "404")
# Classes of SQLSTATE that pass by themselves: connection, rollback, resources, locks, operator, system.
_PASSING = ("08", "40", "53", "55P03", "57", "58", "PGRST00")


class Down(Exception):
    """What answered cannot serve now (429 or 5xx), or is something else that stands between."""


async def check(response: httpx.Response) -> None:
    """Hook of the HTTP client: errors that the status tells, whatever the body is."""
    if response.status_code in (401, 403):
        await response.aread()
        raise key(_message(response))
    if response.status_code == 429 or response.status_code >= 500:
        raise Down(f"it answered {response.status_code}")
    if response.is_success and "html" in response.headers.get("content-type", ""):
        # Else a write that a proxy answered with its login page would count as done.
        raise Down("it answered with a web page")


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["message"])[:200]
    except (ValueError, KeyError, TypeError):
        return f"it answered {response.status_code}"


def key(why: str) -> ConfigurationError:
    return ConfigurationError(
        "SUPABASE_SERVICE_ROLE_KEY is not accepted",
        why,
        "set it to the service role key or an sb_secret_ key: anon and publishable keys may not write",
    )


def tables(why: str) -> ConfigurationError:
    return ConfigurationError(
        "the Supabase project lacks tables that PromptDock needs",
        why,
        "run the migrations in supabase/migrations (supabase db push), and see that SUPABASE_URL is right",
    )


def address(url: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"SUPABASE_URL {url!r} does not lead to a Supabase project",
        why,
        "set it to https://<project>.supabase.co",
    )


def passing(error: BaseException, again: bool) -> bool:
    """Whether to try again: always where the request cannot have arrived, else if it may arrive twice."""
    import httpx
    from postgrest import APIError

    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return True
    if isinstance(error, APIError):
        return again and _passes(str(error.code))
    return again and isinstance(error, httpx.TransportError | Down)


@contextmanager
def explained(url: str, limit: float) -> Iterator[None]:
    """Let the errors of a call come out as ours."""
    import httpx
    from postgrest import APIError

    try:
        yield
    except TimeoutError:
        raise _unavailable(url, f"no answer in {limit:g} s") from None
    except (httpx.TransportError, Down) as error:
        raise _unavailable(url, str(error) or type(error).__name__) from error
    except httpx.InvalidURL as error:
        raise address(url, str(error)) from error
    except APIError as error:
        raise _translated(error, url) from error


def _unavailable(url: str, why: str) -> StoreUnavailable:
    fix = "try again; see whether the project is paused, and SUPABASE_URL is right"
    return StoreUnavailable(f"the Store at {url} cannot be asked", why, fix)


def _passes(code: str) -> bool:
    # An answer without a code of its own has its status as code, which is no SQLSTATE.
    return len(code) > 3 and code.startswith(_PASSING)


def _translated(error: APIError, url: str) -> PromptDockError:
    code, message = str(error.code), str(error.message)[:300]
    if code == "23505":
        return Conflict(
            "the row exists already", message, "choose another name, or change the row that is there"
        )
    if code == "23503":
        return Conflict("the row belongs to one that does not exist", message, "write that one first")
    if code in _MISSING:
        return tables(message)
    if _passes(code):
        return _unavailable(url, message)
    return PromptDockError("the Store refused a request", f"{message} ({code})")
