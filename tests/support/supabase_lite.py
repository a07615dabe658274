"""Supabase's own REST endpoint for tests: npm @supabase/lite before a real Postgres, on loopback.

The packages are installed once into a cache folder outside of the repository. What differs from the hosted
service is listed in docs/store.md.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.support.npm import node, packages
from tests.support.postgres import LIMIT, Postgres, free_port

PINNED = {"@supabase/lite": "0.10.0", "postgres": "3.4.9"}

ROOT = Path(__file__).parents[2]
SECRET = "sb_secret_" + "promptdock-tests-0000000"
PUBLISHABLE = "sb_publishable_" + "promptdock-tests-0000"

_CONFIG = """
project_id = "promptdock"
[api]
enabled = true
port = {port}
schemas = ["public"]
max_rows = 1000
[db]
driver = "postgres"
url = "{url}"
[auth]
enabled = false
jwt_secret = "promptdock-tests-only-promptdock-tests-only"
publishable_key = "{publishable}"
secret_key = "{secret}"
"""


class SupabaseLite:
    """The endpoint before one database of `postgres`; killed and started again, it keeps its port."""

    def __init__(self, postgres: Postgres, folder: Path, database: str = "postgres") -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "lite.log"
        self._command = [*node(), str(packages(PINNED) / "node_modules/@supabase/lite/dist/cli/index.js")]
        self._process: subprocess.Popen[bytes] | None = None
        supabase = folder / "supabase"
        shutil.copytree(ROOT / "supabase" / "migrations", supabase / "migrations")
        url = postgres.url(database)
        values = {"port": self.port, "url": url, "publishable": PUBLISHABLE, "secret": SECRET}
        (supabase / "config.toml").write_text(_CONFIG.format(**values))

    def migrate(self) -> None:
        """Apply `supabase/migrations`."""
        arguments = [*self._command, "migration", "up"]
        done = subprocess.run(
            arguments, cwd=self.folder, env=_environment(), capture_output=True, text=True, timeout=LIMIT
        )
        if done.returncode:
            raise RuntimeError(f"migration up failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, "start", "--no-admin"],
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + LIMIT
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the endpoint did not start: {self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End the endpoint at once, as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(LIMIT)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP, to the running endpoint."""
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/rest/v1/", timeout=5):
                return True
        except urllib.error.HTTPError as error:
            error.close()
            return True
        except OSError:
            return False


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "DO_NOT_TRACK": "1", "LITE_TELEMETRY": "0", "NO_COLOR": "1"}
