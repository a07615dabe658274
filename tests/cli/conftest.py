"""One cluster on the demo model, brought up and down by the command line itself."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.person import Person
from tests.support.valkey import valkey

__all__ = ["valkey"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Somebody whose cluster runs, though another program listens on the usual port; `up` is what they saw."""
    person = Person(tmp_path_factory.mktemp("person"))
    with socket.socket() as other:
        with suppress(OSError):  # it may be taken anyhow
            other.bind(("127.0.0.1", 6379))
            other.listen()
        up = person.types("up", "--detach")
        try:
            assert up.returncode == 0, up.stdout + up.stderr
            (person.folder / "up.txt").write_text(up.stdout)
            yield person
        finally:
            person.types("down")


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with nothing running."""
    return Person(tmp_path)
