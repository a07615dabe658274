"""Pull requests and gists by GitHub's command line `gh`, which keeps the person's login itself.

It runs outside of any repository, so that nothing which a repository configures can act, and with our
arguments alone.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from shared.errors import ToolError
from shared.guard.git.commands import check_ref
from shared.guard.processes import starts
from shared.guard.processes.process import Finished, environment, run

SECONDS = 60.0
# Where gh finds the person's login.
_PASSED = (
    "GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_CONFIG_DIR",
    "XDG_CONFIG_HOME", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE",
)  # fmt: skip
_SCP = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(.+)")
_THERE = re.compile(r"already exists:\s*(https://\S+)")


def repository(url: str) -> str:
    """`host/owner/name` of a remote, as gh takes it; ToolError where it is not one of a hosting service."""
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    else:
        match = _SCP.fullmatch(url)
        host, path = (match[1], match[2]) if match else ("", "")
    names = path.strip("/").removesuffix(".git").split("/")
    if not host or len(names) != 2 or not all(re.fullmatch(r"[\w.-]+", name) for name in names):
        raise ToolError(
            "no pull request can be made for this repository",
            "its remote is none of GitHub's" if url else "it has no remote",
            "push the branch and make the pull request where the repository is hosted",
        )
    return f"{host}/{names[0]}/{names[1]}"


async def create(url: str, title: str, body: str, head: str, base: str) -> str:
    """Make the pull request; its address. One that is there already for these branches is that one."""
    target = repository(url)
    words = ["--head", check_ref(head), "--base", check_ref(base), f"--title={title}", f"--body={body}"]
    done = await gh("pr", "create", "--repo", target, *words)
    if found := _THERE.search(done.stderr):
        return found[1]
    return _address(done, "the pull request was not made")


async def gist(name: str, text: str) -> str:
    """Put a text into a secret gist of the person; its address."""
    done = await gh("gist", "create", "--filename", name, "-", stdin=text.encode())
    return _address(done, "the gist was not made")


def _address(done: Finished, failed: str) -> str:
    match = re.search(r"https://\S+", done.stdout)
    if not done.ok or match is None:
        why = done.stderr.strip()[-500:] or f"gh ended with {done.exit_code}"
        raise ToolError(failed, why, "see gh auth status on the machine of the worker")
    return match[0]


async def gh(*arguments: str, stdin: bytes | None = None) -> Finished:
    """Run gh in an empty folder; ToolError where it is not installed."""
    program = starts.program("gh")
    if program is None:
        raise ToolError(
            "GitHub's command line gh is not installed here",
            "pull requests and gists are made with it",
            "install gh on the worker's machine and run: gh auth login",
        )
    passed = {name: os.environ[name] for name in (*_PASSED, "HOME") if name in os.environ}
    extra = {**passed, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1", "GH_NO_UPDATE_NOTIFIER": "1"}
    with tempfile.TemporaryDirectory(prefix="promptdock-gh-") as folder:
        env = environment(extra=extra)
        return await run([program, *arguments], cwd=Path(folder), env=env, timeout=SECONDS, stdin=stdin)
