"""How git is run: hardened, in the sandbox, bounded, and only where its configuration may be trusted.

Hooks, drivers, helpers, pagers and editors are off on each command line. What that does not reach (filters,
for one) is refused by the check of the repository's own configuration, and confined by the sandbox.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from shared import failpoints
from shared.errors import ToolError
from shared.guard.files.git_folder import Layout, layout
from shared.guard.git import config, leftovers
from shared.guard.git.batch import Batch, BatchCommand
from shared.guard.git.route import GitRoute
from shared.guard.git.staging import Left
from shared.guard.processes.process import Finished, Lock, environment, run
from shared.guard.sandbox.sandbox import Sandbox

SECONDS, NETWORK_SECONDS = 60.0, 300.0
OUTPUT = 256 * 1024
BATCH = 32 * 1024 * 1024  # of all commands of a batch together
_KILLED = 137  # how the shell in the sandbox tells of SIGKILL
_REMEMBERED = 10_000
_COMPLAINTS = ("error:", "fatal:", "remote: error:", "CONFLICT")
_TOLD = 6  # lines of a complaint: it may list all files of a repository
_trusted: set[str] = (
    set()
)  # digests of configurations that were looked at: the same text says the same anywhere

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=ssh -oBatchMode=yes",
    "core.alternateRefsCommand=false",
    "core.attributesFile=/dev/null",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.quotePath=false",
    "credential.helper=",
    "diff.external=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "gpg.program=false",
    "sequence.editor=false",
    "uploadpack.packObjectsHook=",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "diff.ignoreSubmodules=dirty",  # looking for changes in a submodule would run git in it
    "gc.auto=0",
    "maintenance.auto=false",
    "http.followRedirects=false",
    "safe.bareRepository=explicit",
    "advice.detachedHead=false",
)


@dataclass
class GitRunner:
    """One repository or checkout at `path`, found when this object is made.

    With a `lock`, no command starts once a successor has taken the checkout over (Fenced).
    """

    path: Path
    sandbox: Sandbox
    lock: Lock | None = None
    where: Layout | None = None
    known: set[str] = field(default_factory=set, repr=False)  # ids of commits that were seen here
    left_out: Left = field(default_factory=Left, repr=False)  # what the last commit of ours did not take

    def __post_init__(self) -> None:
        self.path = Path(self.path).resolve()
        # Found once, here: a command that changes .git later does not lead us elsewhere.
        self.where = self.where or layout(self.path)

    def is_repo(self) -> bool:
        """Whether `path` itself is a checkout, a worktree or a bare repository."""
        return self.where is not None

    async def _git(
        self,
        *arguments: str,
        options: Sequence[str] = (),
        check: bool = True,
        stdin: bytes | None = None,
        limit: int = OUTPUT,
        way: GitRoute | None = None,
        write: Sequence[Path] = (),
        errors: str = "replace",
    ) -> Finished:
        """Run one command in this repository, after its configuration was looked at; with a `way`, to a remote."""
        where = await self._trusted()
        before = way.options if way else ()
        with _secret(way) as (folder, first):
            argv = [*first, *_command(), *_places(where), *before, *options, *arguments]
            argv = self._wrapped(argv, write, way, read=folder)
            done = await run(
                argv, cwd=where.tree or where.folder, env=_surroundings(way), stdin=stdin, limit=limit,
                lock=self.lock, errors=errors, timeout=NETWORK_SECONDS if way else SECONDS,
            )  # fmt: skip
        await self._lived(done, arguments[0])
        return checked(done, arguments[0]) if check or done.timed_out else done

    async def _lived(self, done: Finished, name: str) -> None:
        """One that was killed has answered nothing, neither yes nor no: by a successor, or by the system."""
        if not done.timed_out and (done.exit_code < 0 or done.exit_code == _KILLED):
            async with self._held():
                raise ToolError(f"git {name} was ended", "by a signal", "try again")

    async def _gits(self, *commands: BatchCommand) -> list[Finished]:
        """Run commands that need no network, one after the other in one sandbox; how each ended that was run.

        Only for commands that belong together: a successor who takes the checkout over ends all of them.
        """
        where = await self._trusted()
        batch = Batch.of([*_command(), *_places(where)], commands)
        with tempfile.TemporaryDirectory(prefix="promptdock-git-") as folder:
            batch.write(folder)
            argv = self._wrapped(batch.argv(folder), read=[folder])
            done = await run(
                argv, cwd=where.tree or where.folder, env=_surroundings(), limit=BATCH,
                lock=self.lock, errors="surrogateescape", timeout=SECONDS * len(commands),
            )  # fmt: skip
        name = commands[0].arguments[0]
        if done.timed_out:
            raise _late(done, name)
        if done.truncated:
            raise ToolError(f"git {name} printed too much", "", "let git ignore what is generated")
        ran, broken = batch.parted(done)
        for end in (*ran, *([broken] if broken else [])):
            await self._lived(end, name)
        if broken:
            checked(broken, name)
        return ran

    def _held(self) -> AbstractAsyncContextManager[None]:
        """Around what we do in the repository ourselves: no successor takes it over meanwhile."""
        return self.lock.held() if self.lock else contextlib.nullcontext()

    async def _trusted(self) -> Layout:
        """Where git's things are, after its configuration was looked at."""
        if self.where is None:
            raise ToolError("this folder is no git repository", "", "name one that is, or make it one")
        await self._trust(self.where)
        return self.where

    def _wrapped(
        self,
        argv: list[str],
        write: Sequence[Path] = (),
        way: GitRoute | None = None,
        read: Sequence[str] = (),
    ) -> list[str]:
        """The command in the sandbox, where there is one that can hold it."""
        where = self.where
        if where is None or not self.sandbox.confines or (way and not way.confined(self.sandbox)):
            return argv
        more = way.variables() if way else {}
        argv = ["/usr/bin/env", *(f"{k}={v}" for k, v in {**_variables(way), **more}.items()), *argv]
        # Nothing of the repository's runs in it (see above), so that it starts no processes without end.
        return self.sandbox.wrap(
            argv, where.tree or where.folder, True, network=way is not None,
            extra_read=[leftovers.file(), *read, *(way.reads() if way else [])], extra_write=[where.common, *write],
            protect=_protected(where), bounded=False, sockets=way.sockets() if way else (),
        )  # fmt: skip

    async def _raw(self, *arguments: str) -> Finished:
        """Run a command that makes or sets up a repository of ours, where no configuration is read yet."""
        where = self.path if self.path.is_dir() else self.path.parent
        done = await run([*_command(), *arguments], cwd=where, env=_surroundings(), timeout=SECONDS)
        return checked(done, arguments[0])

    async def _trust(self, where: Layout) -> None:
        """Check the configuration, once for each content that it has."""
        if failpoints.without("git-config"):
            return
        for file in (
            where.common / "config",
            where.folder / "config.worktree",
            where.common / "config.worktree",
        ):
            if file.is_symlink():
                raise ToolError("this repository's git configuration is not trusted", "it is a link", "")
            if not file.is_file():
                continue
            seen = hashlib.sha256(file.read_bytes()).hexdigest()
            if seen not in _trusted:
                listing = await self._raw("config", "--file", str(file), "--no-includes", "--list", "-z")
                if listing.truncated:
                    raise ToolError(
                        "this repository's git configuration is not trusted", "it is too long", ""
                    )
                config.check(config.parse(listing.stdout))
                if len(_trusted) >= _REMEMBERED:
                    _trusted.clear()
                _trusted.add(seen)


def _command() -> list[str]:
    without = failpoints.without("git-hooks")
    kept = [setting for setting in _SETTINGS if not (without and "hooksPath" in setting)]
    kept.append(f"core.excludesFile={leftovers.file()}")
    settings = [word for setting in kept for word in ("-c", setting)]
    return ["git", "--no-pager", "--no-replace-objects", "--literal-pathspecs", *settings]


def _places(where: Layout) -> list[str]:
    return [f"--git-dir={where.folder}", *([f"--work-tree={where.tree}"] if where.tree else [])]


def _protected(where: Layout) -> list[Path]:
    names = ("config", "config.worktree", "hooks", "info/attributes")
    dot = [where.tree / ".git"] if where.tree and where.folder != where.tree / ".git" else []
    return [*(where.common / name for name in names), where.folder / "config.worktree", *dot]


def _variables(way: GitRoute | None = None) -> dict[str, str]:
    return {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_EDITOR": "false",
        "GIT_PAGER": "cat",
        "GIT_ALLOW_PROTOCOL": "https:http:ssh:git" + (":file" if way and way.local else ""),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C.UTF-8",
    }


def _surroundings(way: GitRoute | None = None) -> dict[str, str]:
    """The environment; on a way also the person's ssh agent and proxy, as remotes may need them."""
    proxy = way.proxy() if way else ""
    passed = {**way.variables(), **({"HTTPS_PROXY": proxy} if proxy else {})} if way else {}
    return environment(extra={**passed, **_variables(way)})


@contextlib.contextmanager
def _secret(way: GitRoute | None) -> Iterator[tuple[list[str], list[str]]]:
    """The proxy with its password in a file of ours, as everybody may read arguments; and the words that read it."""
    if way is None or not way.proxy():
        yield [], []
        return
    with tempfile.TemporaryDirectory(prefix="promptdock-git-") as folder:
        file = Path(folder, "proxy")
        file.write_text(way.proxy())
        script = 'HTTPS_PROXY=$(cat "$1") && export HTTPS_PROXY && shift && exec "$@"'
        yield [folder], ["/bin/sh", "-c", script, "sh", str(file)]


def checked(done: Finished, command: str) -> Finished:
    """What it came to; ToolError where git says no."""
    if done.timed_out:
        raise _late(done, command)
    if done.exit_code != 0:
        why, fix = _reason(done.stderr)
        raise ToolError(f"git {command} failed", why or f"exit code {done.exit_code}", fix)
    return done


def _late(done: Finished, command: str) -> ToolError:
    return ToolError(
        f"git {command} took too long", f"it was ended after {done.ms // 1000} s", "try less at once"
    )


def _reason(stderr: str) -> tuple[str, str]:
    """Why git failed, and what it asks for: from its first complaint on, as what comes before is progress."""
    lines = [" ".join(line.split()) for line in stderr.splitlines() if not line.startswith("hint:")]
    lines = [line for line in lines if line and line != "Aborting"]
    first = next(
        (at for at, line in enumerate(lines) if line.startswith(_COMPLAINTS)), max(0, len(lines) - 3)
    )
    told = [line for line in lines[first:] if not line.startswith("Please ")]
    asked = [line.removeprefix("Please ").rstrip(".") for line in lines[first:] if line.startswith("Please ")]
    more = f" / and {len(told) - _TOLD} lines more" if len(told) > _TOLD else ""
    return (" / ".join(told[:_TOLD])[:600] + more).replace(": / ", ": "), " / ".join(asked)[:300]
