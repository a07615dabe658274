"""Which keys a repository's own git configuration may hold before we let git read it.

Hardening on the command line does not reach everything: filters, drivers and helpers have names that only
the configuration knows. So what is not known to be harmless is refused, and the error names the key.
"""

from __future__ import annotations

import re

from shared.errors import ToolError

_CORE = (
    "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf "
    "eol safecrlf quotepath sharedrepository compression loosecompression bigfilethreshold untrackedcache "
    "preloadindex longpaths protecthfs protectntfs commentchar abbrev fscache trustctime checkstat "
    "deltabasecachelimit packedgitlimit packedgitwindowsize multipackindex commitgraph splitindex "
    "sparsecheckout sparsecheckoutcone warnambiguousrefs whitespace hidedotfiles fsyncobjectfiles "
    # Runs something, but is switched off on our command line: husky and others set it.
    "hookspath"
)

# Sections in which no key names a program, a file to include, or another place to work in.
_SECTIONS = (
    "user author committer color column advice gui init pull rerere status log index pack gc maintenance "
    "repack extensions rebase branch tag push fetch apply blame checkout clean commitgraph fastimport "
    "feature format grep i18n merge notes receive revert safe stash submodule transfer trailer "
    "versionsort worktree diff commit gitflow vscode-merge-base github gitlab"
)
_REMOTE = (
    "url pushurl fetch push mirror prune prunetags tagopt skipdefaultupdate skipfetchall gh-resolved promisor"
)
# Sizes and patience alone. All else of http says where to go, whom to believe there, or what to tell them.
_HTTP = "postbuffer lowspeedlimit lowspeedtime maxrequests minsessions maxretries"

# Of those sections, what runs a program or reads a file all the same.
_EXECUTES = re.compile(
    r"diff\.(external|tool|guitool|(.*\.)?(command|textconv|cachetextconv|trustexitcode))"
    r"|merge\.(tool|guitool|(.*\.)?(driver|recursive|name))"
    r"|(gui|grep|rebase|stash|commit|tag|i18n|notes)\..*(tool|editor|command|cmd|pager|program).*"
    r"|guitool\..*|trailer\..*\.(command|cmd)|format\.(pretty|.*cmd.*)|log\.showsignature"
    r"|receive\.(procreceiverefs|.*hook.*)|tag\.gpgsign|push\.gpgsign"
    r"|fetch\.(uri.*|bundleuri)|transfer\.bundleuri"
)
_VALUES = {
    # Booleans are git's own watcher (switched off by us); anything else is a command.
    "core.fsmonitor": re.compile(r"true|false|yes|no|on|off|0|1|", re.I),
    "submodule.update": re.compile(r"(?!!).*", re.S),
}


def parse(listing: str) -> list[tuple[str, str]]:
    """The entries of `git config --list -z`: key (section and name in lower case) and value."""
    entries = [entry.partition("\n") for entry in listing.split("\0") if entry]
    return [(key, value) for key, _, value in entries]


def check(entries: list[tuple[str, str]]) -> None:
    """ToolError for the first key that is not known to be harmless."""
    for key, value in entries:
        if not _harmless(key, value):
            raise ToolError(
                "this repository's git configuration is not trusted",
                f"it sets {key[:100]!a}, which could run a command or lead elsewhere",
                f"if you do not need it there, a person can remove it: git config --unset-all {key[:100]!a}",
            )


def _harmless(key: str, value: str) -> bool:
    section, _, rest = key.partition(".")
    section, name = section.lower(), rest.rpartition(".")[2].lower()
    folded = f"{section}.{rest}".lower()
    special = "submodule.update" if section == "submodule" and name == "update" else folded
    if special in _VALUES:
        return _VALUES[special].fullmatch(value) is not None
    if section == "core":
        return "." not in rest and name in _CORE.split()
    if section == "remote":
        return name in _REMOTE.split()
    if section == "http":
        return name in _HTTP.split() and "." not in rest
    if section == "lfs":
        return name in ("url", "repositoryformatversion", "access", "locksverify")
    return section in _SECTIONS.split() and not _EXECUTES.fullmatch(folded)
