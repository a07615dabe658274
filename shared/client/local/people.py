"""People who sign in at the page: their names, roles and projects, and the digests of what only they know.

They lie in `<home>/web/people.json`, for its owner alone. `promptdock web user` writes it, the page reads it anew
whenever it changed, so that somebody who was removed is out at once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from shared.errors import ConfigurationError, UsageError
from shared.guard.files import atomic

OWNER = "owner"  # the role that sees everything
LEAST = 8  # characters of a password
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_ROLE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_TOKEN = "pdp_"  # how a token of a person begins


@dataclass(frozen=True)
class NamedPerson:
    """One who may sign in. `epoch` grows when all that they hold shall no longer count."""

    name: str
    password: str  # as argon2 writes it
    roles: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    epoch: int = 0
    tokens: tuple[str, ...] = field(default=())  # SHA-256 of each: they are long and random


class People:
    """The named people of one home."""

    def __init__(self, home: Path) -> None:
        self._file = home / "web" / "people.json"
        self._stamp: tuple[int, int] | None = None
        self._known: dict[str, NamedPerson] = {}

    def all(self) -> list[NamedPerson]:
        """By name; ConfigurationError where the file cannot be read, which lets nobody in."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            self._stamp, self._known = None, {}
            return []
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp != self._stamp:
            self._known, self._stamp = self._read(), stamp
        return [self._known[name] for name in sorted(self._known)]

    def find(self, name: str) -> NamedPerson | None:
        """Who is called so."""
        return next((one for one in self.all() if one.name == name), None)

    def of_token(self, token: str) -> NamedPerson | None:
        """Whose token this is."""
        if not token.startswith(_TOKEN):
            return None
        digest = _digest(token)
        return next((one for one in self.all() if _among(digest, one.tokens)), None)

    def check(self, name: str, password: str) -> NamedPerson | None:
        """Who that is, where the password is theirs. It takes as long for a name that nobody has."""
        from argon2 import PasswordHasher
        from argon2.exceptions import Argon2Error, InvalidHashError

        found = self.find(name)
        try:
            PasswordHasher().verify(found.password if found else _NOBODY, password)
        except (Argon2Error, InvalidHashError):
            return None
        return found

    def add(
        self, name: str, password: str, roles: tuple[str, ...] = (), projects: tuple[str, ...] = ()
    ) -> NamedPerson:
        """A new one; UsageError where the name is taken or something cannot be used."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"nobody can be called {name[:80]!r}", "letters, digits and . _ @ - are taken", "name another"
            )
        if self.find(name):
            raise UsageError(f"{name} is there already", "", f"promptdock web user password {name}")
        wrong = [role for role in roles if not _ROLE.fullmatch(role)]
        if wrong:
            raise UsageError(
                f"{wrong[0][:80]!r} is no role", "lower case letters, digits and . _ - are taken"
            )
        person = NamedPerson(name, hashed(password), roles, projects)
        self._write([*self.all(), person])
        return person

    def remove(self, name: str) -> None:
        """Nobody signs in by this name any more."""
        self.there(name)
        self._write([one for one in self.all() if one.name != name])

    def change(self, name: str, password: str) -> None:
        """Another password; whoever is signed in by this name is not any more, and their tokens end."""
        person = self.there(name)
        changed = replace(person, password=hashed(password), epoch=person.epoch + 1, tokens=())
        self._write([changed if one.name == name else one for one in self.all()])

    def token(self, name: str) -> str:
        """A token for this person's programs, shown once: only its digest is kept."""
        person, made = self.there(name), _TOKEN + secrets.token_urlsafe(32)
        changed = replace(person, tokens=(*person.tokens, _digest(made)))
        self._write([changed if one.name == name else one for one in self.all()])
        return made

    def there(self, name: str) -> NamedPerson:
        """Who is called so; UsageError where nobody is."""
        if found := self.find(name):
            return found
        known = ", ".join(one.name for one in self.all()) or "nobody"
        raise UsageError(f"there is no person called {name[:80]!r}", f"there are: {known}", "")

    def _read(self) -> dict[str, NamedPerson]:
        try:
            rows = json.loads(self._file.read_text("utf-8"))["people"]
            found = [
                NamedPerson(
                    str(row["name"]),
                    str(row["password"]),
                    tuple(map(str, row["roles"])),
                    tuple(map(str, row["projects"])),
                    int(row["epoch"]),
                    tuple(map(str, row["tokens"])),
                )
                for row in rows
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"{self._file} cannot be read",
                str(error)[:200],
                "put it back, or remove it and add people anew",
            ) from error
        return {one.name: one for one in found}

    def _write(self, people: list[NamedPerson]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic.put(self._file, json.dumps({"people": [asdict(one) for one in people]}, indent=1))
        self._stamp = None


def hashed(password: str) -> str:
    """A password as argon2 keeps it; UsageError for one that is too short."""
    from argon2 import PasswordHasher

    if len(password) < LEAST:
        raise UsageError(
            "the password is too short", f"{LEAST} characters are the least", "take a longer one"
        )
    return PasswordHasher().hash(password)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _among(digest: str, tokens: tuple[str, ...]) -> bool:
    return any(hmac.compare_digest(digest, one) for one in tokens)


# Of a password that nobody has: what checking a name that is not there takes as long with.
_NOBODY = "$argon2id$v=19$m=65536,t=3,p=4$bm9ib2R5bm9ib2R5bm8$YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU"
