"""Several git commands as one: the sandbox, which takes far longer to start than git runs, is started once."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shared.guard.processes.process import Finished


@dataclass(frozen=True)
class BatchCommand:
    """One of them. What it reads stands in a file, since all of them share one standard input."""

    arguments: tuple[str, ...]
    options: tuple[str, ...] = ()  # before git's own command
    stdin: bytes | None = None
    then: int | None = None  # the exit code after which the next one is run; None: whatever it is
    errors: str = "replace"  # what becomes of bytes that are no UTF-8; "surrogateescape" keeps names of files


@dataclass(frozen=True)
class Batch:
    """A script that runs them, and the mark that it prints behind each: nothing that they print can hold it."""

    git: Sequence[str]
    commands: Sequence[BatchCommand]
    mark: str

    @classmethod
    def of(cls, git: Sequence[str], commands: Sequence[BatchCommand]) -> Batch:
        """With a new mark."""
        return cls(git, commands, f"\n{secrets.token_hex(16)} ")

    def write(self, folder: str) -> None:
        """Write what they read into a folder of ours."""
        for at, one in enumerate(self.commands):
            if one.stdin is not None:
                Path(folder, str(at)).write_bytes(one.stdin)

    def argv(self, folder: str) -> list[str]:
        """The shell's command line; `folder` holds the files."""
        lines = [f"m={shlex.quote(self.mark)}", f'git_() {{ {shlex.join(self.git)} "$@"; }}']
        for at, one in enumerate(self.commands):
            given = shlex.quote(f"{folder}/{at}") if one.stdin is not None else "/dev/null"
            words = shlex.join([*one.options, *one.arguments])
            lines.append(f'git_ {words} < {given}; c=$?; printf "%s" "$m"; printf "%s%d\\n" "$m" $c >&2')
            if one.then is not None:
                lines.append(f'[ "$c" -eq {one.then} ] || exit 0')
        return ["/bin/sh", "-c", "\n".join(lines)]

    def parted(self, done: Finished) -> tuple[list[Finished], Finished | None]:
        """How each ended that was run; and how all of it did, where that was before its time.

        Then there was no sandbox to run it in, or it was killed.
        """
        outs, errs = done.stdout.split(self.mark), done.stderr.split(self.mark)
        found: list[Finished] = []
        said = errs[0]
        for out, err in zip(outs[:-1], errs[1:], strict=False):
            code, _, rest = err.partition("\n")
            text = os.fsencode(out).decode("utf-8", self.commands[len(found)].errors)
            found.append(replace(done, exit_code=int(code), stdout=text, stderr=said))
            said = rest
        whole = len(found) == len(self.commands) or bool(found and self._ends(found))
        return found, None if whole else replace(done, exit_code=done.exit_code or -9, stderr=said)

    def _ends(self, found: list[Finished]) -> bool:
        then = self.commands[len(found) - 1].then
        return then is not None and found[-1].exit_code != then
