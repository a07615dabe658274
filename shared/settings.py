"""Settings: read once, in the composition roots, from the environment and from `.env`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
)

from shared import failpoints, folders
from shared.errors import ConfigurationError
from shared.folders import find_home as find_home
from shared.plain import complaint

Aged = Literal[
    "approvals", "audit_log", "deliveries", "hook_runs", "logs", "messages", "posts", "sessions", "task_events",
    "token_usage", "turn_steps", "turns",
]  # fmt: skip
Unsigned = Literal["all", "approve", "command", "force", "roles", "session", "shutdown", "speak", "task"]
_PASSWORD = 12  # characters
_REDIS = re.compile(r"(rediss?(\+(sentinel|cluster))?://[^/\s]+(/\S*)?|unix://\S+)", re.IGNORECASE)
_HTTP = re.compile(r"https?://[^/\s]+(/\S*)?", re.IGNORECASE)
_MODEL = re.compile(r"[A-Z][A-Z0-9_]*_MODEL")
_OPEN = re.compile(
    r"[a-z][a-z0-9+.-]*://[^/?#@]*([/?#][^@]*)?", re.IGNORECASE
)  # an address without a password


@dataclass(frozen=True)
class Wrong:
    """A variable whose value cannot be used; never the value itself."""

    name: str
    why: str
    place: str  # where it stands: `the environment` or a file

    @property
    def told(self) -> str:
        """In words."""
        return f"{self.name} has a value that cannot be used: {self.why}"

    @property
    def fix(self) -> str:
        """What to do."""
        return f"correct {self.name} in {self.place}"


class Settings(BaseModel):
    """Everything that can be set from outside; the alias is the variable's name (docs/configuration.md)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    anthropic_api_key: SecretStr | None = Field(None, alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(None, alias="ANTHROPIC_BASE_URL")
    openai_api_key: SecretStr | None = Field(None, alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(None, alias="OPENAI_BASE_URL")
    ollama_base_url: str | None = Field(None, alias="OLLAMA_BASE_URL")
    ollama_api_key: SecretStr | None = Field(None, alias="OLLAMA_API_KEY")
    ollama_context: int = Field(16_384, alias="OLLAMA_CONTEXT", ge=512)

    redis_url: SecretStr | None = Field(None, alias="REDIS_URL")
    secret: SecretStr | None = Field(None, alias="PROMPTDOCK_SECRET", min_length=32)
    unsigned_may: frozenset[Unsigned] = Field(frozenset(), alias="UNSIGNED_MAY")
    supabase_url: str | None = Field(None, alias="SUPABASE_URL")
    supabase_key: SecretStr | None = Field(
        None, validation_alias=AliasChoices("SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SECRET_KEY")
    )

    retention: dict[Aged, int] = Field({}, alias="RETENTION")  # days by table

    agent_name: str | None = Field(None, alias="AGENT_NAME")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", alias="LOG_LEVEL")
    conversation_timeout_ms: int = Field(3_600_000, alias="CONVERSATION_TIMEOUT", ge=1)
    session_idle_ms: int = Field(10_800_000, alias="SESSION_IDLE", ge=0)
    tool_call_timeout_ms: int = Field(300_000, alias="TOOL_CALL_TIMEOUT", ge=1)

    home: Path = Field(default_factory=find_home, alias="PROMPTDOCK_HOME")
    namespace: str = Field("", alias="PROMPTDOCK_NAMESPACE", pattern=r"^[A-Za-z0-9_.-]{0,64}$")
    env: Literal["development", "production"] = Field("development", alias="PROMPTDOCK_ENV")
    model: str | None = Field(None, alias="PROMPTDOCK_MODEL")
    chatter_model: str | None = Field(None, alias="CHATTER_MODEL")
    planner_model: str | None = Field(None, alias="PLANNER_MODEL")
    researcher_model: str | None = Field(None, alias="RESEARCHER_MODEL")
    frontend_model: str | None = Field(None, alias="FRONTEND_MODEL")
    backend_model: str | None = Field(None, alias="BACKEND_MODEL")

    executor: Literal["loop", "claude-code"] | None = Field(None, alias="PROMPTDOCK_EXECUTOR")
    tool_mode: Literal["tiered", "full"] = Field("tiered", alias="TOOL_MODE")
    permission_profile: str | None = Field(None, alias="PERMISSION_PROFILE")
    approver_roles: frozenset[str] = Field(frozenset(), alias="APPROVER_ROLES")
    sandbox: Literal["auto", "bwrap", "landlock", "none"] = Field("auto", alias="SANDBOX")
    model_silence_ms: int = Field(60_000, alias="MODEL_SILENCE", ge=100)
    model_patience_ms: int = Field(600_000, alias="MODEL_PATIENCE", ge=100)
    model_fallback_ms: int = Field(60_000, alias="MODEL_FALLBACK", ge=100)
    hook_hosts: frozenset[str] = Field(frozenset(), alias="HOOK_HOSTS")
    allowed_hosts: frozenset[str] = Field(frozenset(), alias="ALLOWED_HOSTS")
    package_hosts: frozenset[str] = Field(frozenset(), alias="PACKAGE_HOSTS")
    budget_turn: float | None = Field(None, alias="BUDGET_TURN", ge=0)
    budget_session: float | None = Field(None, alias="BUDGET_SESSION", ge=0)
    budget_day: float | None = Field(None, alias="BUDGET_DAY", ge=0)
    budget_memory: float = Field(0.5, alias="BUDGET_MEMORY", ge=0)
    budget_titles: float = Field(0.05, alias="BUDGET_TITLES", ge=0)
    memory_rest_ms: int = Field(120_000, alias="MEMORY_REST", ge=1000)

    web_host: str = Field("127.0.0.1", alias="PROMPTDOCK_WEB_HOST")
    web_port: int = Field(12319, alias="PROMPTDOCK_WEB_PORT")
    web_token: SecretStr | None = Field(None, alias="PROMPTDOCK_WEB_TOKEN")
    web_url: str | None = Field(None, alias="PROMPTDOCK_WEB_URL")
    discord_token: SecretStr | None = Field(None, alias="DISCORD_TOKEN")

    # Shrunk by tests, so that hundreds of faults fit in minutes; beat and watchdog follow from the lease.
    lease_ms: int = Field(12_000, alias="PROMPTDOCK_LEASE", ge=200)

    _models: dict[str, str] = PrivateAttr(default_factory=dict)  # of agents of one's own, by variable
    _wrong: tuple[Wrong, ...] = PrivateAttr(default=())

    @property
    def wrong(self) -> tuple[Wrong, ...]:
        """What was left out because it cannot be used; empty unless it was read leniently."""
        return self._wrong

    @field_validator("redis_url", mode="after")
    @classmethod
    def _redis_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _REDIS.fullmatch(value.get_secret_value()):
            raise ValueError("must be an address such as redis://host:6379/0")
        return value

    @field_validator(
        "anthropic_base_url", "openai_base_url", "ollama_base_url", "supabase_url", "web_url", mode="after"
    )
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and not _HTTP.fullmatch(value):
            raise ValueError("must be an address that begins with https:// or http://")
        return value

    @field_validator("home", mode="after")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().resolve()

    @field_validator(
        "approver_roles", "hook_hosts", "allowed_hosts", "package_hosts", "unsigned_may", mode="before"
    )
    @classmethod
    def _roles(cls, value: object) -> object:
        if isinstance(value, str):
            return frozenset(role.strip() for role in value.split(",") if role.strip())
        return value

    @field_validator("retention", mode="before")
    @classmethod
    def _days(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
        wrong = [name.strip() for name, _, days in pairs if not days.strip().isdecimal()]
        if wrong:
            raise ValueError(f"{wrong[0][:40]} needs a number of days, as in logs=30,audit_log=0")
        return {name.strip(): int(days) for name, _, days in pairs}

    def own_model(self, agent: str) -> str | None:
        """The model that is set for this agent alone, as `<NAME>_MODEL`."""
        named = re.sub(r"[^A-Z0-9]", "_", agent.upper()) + "_MODEL"
        return getattr(self, f"{agent}_model", None) or self._models.get(named)

    def own_models(self) -> dict[str, str]:
        """The models that are set for single agents of ours, by their settings."""
        fields = ((str(info.alias), getattr(self, name)) for name, info in type(self).model_fields.items())
        ours = {name: value for name, value in fields if name.endswith("_MODEL") and value}
        ours.pop("PROMPTDOCK_MODEL", None)
        return ours

    def model_for(self, agent: str) -> str | None:
        """The model that the environment names for this agent, else the default one, else None."""
        return self.own_model(agent) or self.model

    def secrets(self) -> list[str]:
        """The values that may never be logged or shown; of an address also a password that is no mere word.

        An address without a password is none: people write it into their code.
        """
        values = (getattr(self, name) for name in type(self).model_fields)
        found = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        found = [value for value in found if not _OPEN.fullmatch(value)]
        return found + [word for value in found for word in _passwords(value)]


def _passwords(value: str) -> set[str]:
    """The password in an address, as it stands there and as it is meant."""
    found = re.match(r"[a-z][a-z0-9+.-]*://[^/?#]*?:([^/?#]*)@", value, re.IGNORECASE)
    # A short one may be a word that paths and answers are full of; within its address it is hidden all the same.
    return {found[1], unquote(found[1])} if found and len(found[1]) >= _PASSWORD else set()


def load(file: Path | None = None, lenient: bool = False) -> Settings:
    """Read the settings; wrong ones are a ConfigurationError that names each variable, never its value.

    Where `lenient`, they are left out and stand in `wrong`: for what starts nothing.
    """
    failpoints.read()
    given, wrong = _found(file), tuple[Wrong, ...]()
    try:
        found = Settings.model_validate(given)
    except ValidationError as error:
        wrong = _wrong(error, file)
        if not lenient:
            raise _refusal(wrong) from None
        left_out = {one.name for one in wrong}
        found = Settings.model_validate({name: given[name] for name in given if name not in left_out})
    found._models.update({name: value for name, value in given.items() if _MODEL.fullmatch(name)})
    if found.env == "production" and (asked := failpoints.asked()):
        if not lenient:
            raise ConfigurationError(
                f"{' and '.join(asked)} {'is' if len(asked) == 1 else 'are'} set",
                "that is for tests, which kill workers and take guards away, and PROMPTDOCK_ENV is production",
                f"unset {' '.join(asked)}",
            )
        wrong += tuple(Wrong(one, "it is for tests, not for production", "the environment") for one in asked)
    found._wrong = wrong
    return found


def _wrong(error: ValidationError, file: Path | None) -> tuple[Wrong, ...]:
    """All that is wrong, each with where it stands."""
    items = error.errors(include_input=False, include_url=False)
    told = {str(item["loc"][0]) if item["loc"] else "a setting": complaint(item) for item in items}
    sources = [] if file else folders.sources(_home())
    places = {name: next((place for place, values in sources if values.get(name)), "") for name in told}
    return tuple(Wrong(name, words, _place(places[name])) for name, words in told.items())


def _place(place: str) -> str:
    return "the environment" if place == "environment" else place or "the environment or .env"


def _refusal(wrong: tuple[Wrong, ...]) -> ConfigurationError:
    given = [one.name for one in wrong]
    names = " and ".join(given) if len(given) < 3 else ", ".join(given)
    what = f"{names} {'have values' if len(given) > 1 else 'has a value'} that cannot be used"
    why = "; ".join(f"{one.name} {one.why}" if len(given) > 1 else one.why for one in wrong)
    where = dict.fromkeys(one.place for one in wrong)
    return ConfigurationError(what, why, f"correct {names} in {' and '.join(where)}")


def _home() -> Path:
    return Path(os.environ.get("PROMPTDOCK_HOME") or find_home()).expanduser().resolve()


def _found(file: Path | None) -> dict[str, str]:
    """The variables that are set to something: the environment's, the data folder's, then those of the folder."""
    if file is None:
        home = _home()
        given = [values for _, values in reversed(folders.sources(home))]
        return {name: value for values in given for name, value in values.items()} | {
            "PROMPTDOCK_HOME": str(home)
        }
    from dotenv import dotenv_values

    written: dict[str, str | None] = dotenv_values(file) if file.is_file() else {}
    return {name: value for source in (written, os.environ) for name, value in source.items() if value}
