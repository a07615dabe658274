"""Whether a command line only reads: such a one may run again when its first run's outcome is not known.

What is not known to be harmless is not; the parser's doubts (redirections, expansions, options that write or
run something) count as well.
"""

from __future__ import annotations

import shlex

from shared.guard.permissions import shell

_READERS = frozenset(
    """
    basename cat cmp cut df diff dirname du echo false file find grep head id ls md5sum nl od printf pwd readlink
    realpath rg seq sha1sum sha256sum sort stat tail test tr tree true uname uniq wc whoami
    """.split()  # noqa: SIM905 - forty quoted words read worse
)
_GIT = frozenset(
    """
    blame cat-file describe diff grep log ls-files ls-tree merge-base rev-list rev-parse shortlog show show-ref
    status version
    """.split()  # noqa: SIM905
)


def only_reads(command: str) -> bool:
    """True only where every part of it is known to change nothing."""
    seen = shell.read(command)
    return bool(seen.commands) and not seen.doubts and all(map(_reads, seen.commands))


def _reads(command: str) -> bool:
    name, *rest = shlex.split(command)
    if name == "uniq":  # its second name is written to
        return sum(not word.startswith("-") for word in rest) < 2
    return name in _READERS or (name == "git" and bool(rest) and rest[0] in _GIT)
