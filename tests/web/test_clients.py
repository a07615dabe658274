"""Clients of others at the doors: AG-UI's own for JavaScript, and curl."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.web.test_ag_ui import BUDGET

PACKAGE = "@ag-ui/client@1.0.0"
RULES: list[dict[str, Any]] = [
    {
        "user": "ask leave",
        "steps": [{"text": "May I?", "tools": [BUDGET]}, {"text": "It came to: {{result}}"}],
    },
    {"user": "refused", "steps": [{"status": 401}]},
    {"user": "slowly", "steps": [{"text": "One word after the other. " * 5, "pace": 0.1}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]

pytestmark = pytest.mark.usefixtures("chatter")


@pytest.fixture(scope="module")
def program(pytestconfig: pytest.Config) -> Path:
    """The program beside its package, which is installed once and kept."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("no node and npm are here")
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir("ag-ui-client")
    if not (folder / "installed").exists():
        words = [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
            str(folder),
            PACKAGE,
        ]
        try:
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=90, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm could not install {PACKAGE} within 90 s")
        if done.returncode != 0:
            pytest.skip(f"npm could not install {PACKAGE}: {done.stderr.strip()[-200:]}")
        (folder / "installed").touch()
    return Path(shutil.copy(Path(__file__).with_name("ag_ui_client.mjs"), folder))


def told(program: Path, url: str, *words: str) -> dict[str, Any]:
    """What the program heard."""
    done = subprocess.run(
        ["node", str(program), f"{url}/ag-ui", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_its_client_gets_an_answer_as_a_message(program: Path, url: str) -> None:
    heard = told(program, url, "of-js", "Hello")
    assert heard["failed"] == ""
    assert heard["events"][0] == "RUN_STARTED" and heard["events"][-1] == "RUN_FINISHED"
    assert heard["text"].endswith("Hello")
    assert heard["messages"][-1] == {"role": "assistant", "content": heard["text"]}


def test_its_client_answers_a_request_for_permission(program: Path, url: str) -> None:
    heard = told(program, url, "of-js-leave", "ask leave", "deny")
    assert heard["failed"] == "", heard
    assert heard["events"].count("RUN_FINISHED") == 2 and "It came to" in heard["text"]


def test_its_client_is_told_what_went_wrong(program: Path, url: str) -> None:
    heard = told(program, url, "of-js-error", "refused")
    assert "RUN_ERROR" in heard["events"] and heard["failed"]


def test_curl_reads_a_stream_as_it_comes(url: str) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl is here")
    words = [curl, "-sN", f"{url}/api/agent/chat/stream", "-H", "Content-Type: application/json"]
    body = '{"message": "slowly"}'
    first, kinds = 0.0, []
    with subprocess.Popen([*words, "-d", body], stdout=subprocess.PIPE, text=True) as asked:
        assert asked.stdout is not None
        for line in asked.stdout:
            if line.startswith("event: "):
                kinds.append(line.strip().removeprefix("event: "))
                first = first or (time.monotonic() if kinds[-1] == "chunk" else 0.0)
        assert asked.wait(20) == 0
    assert kinds[0] == "accepted" and kinds[-1] == "done" and kinds.count("chunk") > 5
    assert time.monotonic() - first > 0.5  # piece by piece, not gathered
