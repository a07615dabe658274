"""What is known of programs: which run other programs or code, and with which options the others do.

A rule that allows a program does not mean what it can be made to run. The lists can never be complete: they
catch what is known, rules should name whole commands, and the sandbox is the boundary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# They run other commands, or change what the rest of the line means.
_RUNNERS = frozenset(
    """
    . alias ash at awk bash batch bind builtin busybox bwrap capsh chroot chrt command complete compgen coproc
    crontab csh dash declare dmsetup doas ed elvish emacs enable entr env eval ex exec expect export
    fakeroot fc fish flock gawk gdb gdbserver hash history ionice jrunscript jshell ksh ld.so ldconfig less let local
    logsave lldb ltrace mail mailx man mapfile mawk mksh more nano nawk nc ncat netcat newgrp nice nohup npx nsenter
    numactl openvt parallel perl perf pg pkexec pnpx prlimit proot pwsh rbash read readarray readonly rc rlwrap rsync
    run-parts runcon runuser rvim scp screen script scriptreplay select set setarch setpriv setsid sftp sg
    sh shopt slsh socat source ssh sshpass start-stop-daemon stdbuf strace su sudo systemd-run systemctl taskset
    tclsh tcsh telnet time timeout tmux toybox trap typeset udevadm uncompyle unalias unbuffer unset unshare uvx
    valgrind vi view vim vimdiff wait watch wish xargs xdg-open xterm yash zsh
    """.split()  # noqa: SIM905 - two hundred quoted words read worse
)
_LOADER = re.compile(r"ld(-linux|-musl)?[-.\w]*\.so[.\d]*")

# Interpreters: a script by its name is one thing, code on the line or from standard input another.
_INTERPRETERS = re.compile(
    r"(python|pypy|node|nodejs|deno|bun|ruby|php|lua|luajit|julia|Rscript|osascript)[\d.]*"
)
_HARMLESS = frozenset({"--version", "-V", "--help", "-h"})

# Options with which a program runs something or writes somewhere; a long one also where it is cut short.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "curl": ("-K", "--config", "-o", "--output", "-O", "--remote-name", "-T", "--upload-file"),
    "date": ("-s", "--set"),
    "diff": ("--to-file",),
    "diff3": ("--diff-program",),
    "sdiff": ("--diff-program", "-o", "--output"),
    "fd": ("-x", "--exec", "-X", "--exec-batch"),
    "fdfind": ("-x", "--exec", "-X", "--exec-batch"),
    "cargo": ("--config",),
    "cc": ("-wrapper", "-B", "-fplugin", "-specs"),
    "g++": ("-wrapper", "-B", "-fplugin", "-specs"),
    "gcc": ("-wrapper", "-B", "-fplugin", "-specs"),
    "clang": ("-wrapper", "-B", "-fplugin", "-load"),
    "go": ("-exec", "-toolexec", "-vettool", "-overlay"),
    "make": ("--eval", "-f", "--file", "--makefile", "-C", "--directory", "-I", "--include-dir", "-E"),
    "rg": ("--pre", "--hostname-bin"),
    "shuf": ("-o", "--output"),
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "split": ("--filter",),
    "tar": (
        *("-I", "--use-compress-program", "--to-command", "--checkpoint-action", "-F", "--info-script"),
        *("--new-volume-script", "--rsh-command", "--rmt-command", "--absolute-names", "-P"),
    ),
    "bsdtar": ("--use-compress-program", "-P"),
    "tree": ("-o",),
    "wget": ("--use-askpass", "-O", "--output-document", "-e", "--execute", "--config", "-o", "-i", "--input-file"),
    "xxd": ("-r", "-revert"),
    "yq": ("-i", "--inplace"),
    "zip": ("-T", "-TT", "--test", "--unzip-command"),
}  # fmt: skip
_FIND = re.compile(r"-(exec|execdir|ok|okdir|delete|fprint.*|fprintf|fls|files0-from)")
_SED = re.compile(r"(\d+|\$)(,(\d+|\$))?p")

# Subcommands of git that are git's own and do not hand over to another program; others may be an alias.
_GIT = frozenset(
    """
    add blame branch cat-file checkout cherry-pick clean commit describe diff fetch grep init log ls-files
    ls-tree merge merge-base mv name-rev pull push rebase reflog remote reset restore rev-list rev-parse revert rm
    shortlog show show-ref stash status switch tag version whatchanged worktree
    """.split()  # noqa: SIM905
)
_GIT_OPTIONS = (
    *(
        "--output",
        "--output-directory",
        "--open-files-in-pager",
        "-O",
        "-o",
        "--upload-pack",
        "--receive-pack",
    ),
    *(
        "--exec",
        "-x",
        "--ext-diff",
        "--textconv",
        "--filters",
        "--config",
        "--config-env",
        "-c",
        "--template",
    ),
    *(
        "--separate-git-dir",
        "--edit",
        "-e",
        "--interactive",
        "-i",
        "--patch",
        "-p",
        "--gpg-sign",
        "-S",
        "--strategy",
    ),
    *("-s", "-X", "--git-dir", "--work-tree", "--no-index", "--file", "-F", "--pathspec-from-file"),
)
# Of these the short ones mean something harmless: `git log -p`, `git commit -s`, `git ls-files -o`, …
_GIT_HARMLESS = {
    "log": {"-p", "-i", "-s", "-c", "-S", "--patch"},
    "show": {"-p", "-s", "-c", "-S", "--patch"},
    "diff": {"-p", "-s", "-c", "-S", "--patch"},
    "status": {"-s"},
    "grep": {"-i", "-e", "-o", "-p", "-c"},
    "blame": {"-e", "-p", "-s", "-c"},
    "commit": {"-s"},
    "shortlog": {"-e", "-s", "-c"},
    "ls-files": {"-o", "-i", "-s", "-c"},
    "switch": {"-c"},
    "cat-file": {"-p", "-s", "-e"},
}


def doubt(name: str, arguments: Sequence[str]) -> str:
    """Why a program with these arguments is not what it seems; "" where nothing is known against it."""
    if name in _RUNNERS or _LOADER.fullmatch(name):
        return "runs other commands, or changes what the line means"
    if _INTERPRETERS.fullmatch(name):
        return _interpreter(arguments)
    if name == "find":
        found = next((word for word in arguments if _FIND.fullmatch(word)), "")
        return f"with {found} runs or changes something" if found else ""
    if name == "sed":
        plain = len(arguments) > 1 and arguments[0] == "-n" and _SED.fullmatch(arguments[1])
        safe = plain and not any(word.startswith("-") for word in arguments[2:])
        return "" if safe else "may write files and run commands"
    if name == "git":
        return _git(arguments)
    if name in ("test", "[", "printf") and "-v" in arguments:
        return "with -v evaluates its argument"
    if name == "make" and any("=" in word for word in arguments):
        return "with a variable may run anything"
    if (
        name in ("npm", "pnpm", "yarn", "bun")
        and arguments[:1]
        and arguments[0] in ("exec", "x", "dlx", "explore")
    ):
        return f"{arguments[0]} runs other commands"
    found = _option(arguments, _OPTIONS.get(name, ()))
    return f"with {found} runs or writes something" if found else ""


def _interpreter(arguments: Sequence[str]) -> str:
    first = arguments[0] if arguments else ""
    module = first == "-m" and len(arguments) > 1
    if module or first in _HARMLESS or (first and not first.startswith("-")):
        return ""
    return "runs code from the line or from its input"


def _git(arguments: Sequence[str]) -> str:
    words = list(arguments)
    while words and words[0] == "--no-pager":
        words.pop(0)
    command = words[0] if words else ""
    if command in ("--version", "--help"):
        return ""
    if command not in _GIT:
        return f"{command} sets or runs something else"
    if any("::" in word for word in words):
        return "with a remote helper runs other commands"
    harmless = _GIT_HARMLESS.get(command, set())
    risky = tuple(option for option in _GIT_OPTIONS if option not in harmless)
    if command in ("log", "show", "diff", "whatchanged"):
        # Their clusters of letters are formats; the one that writes is long, and -o, -O take a value at once.
        risky = tuple(option for option in risky if option.startswith("--") or option in ("-o", "-O"))
    found = _option(words[1:], risky)
    return f"with {found} runs or writes something" if found else ""


def _option(arguments: Sequence[str], risky: Sequence[str]) -> str:
    """The first argument that is one of these options: cut short (`--outp`), with a value, in a cluster."""
    long = [option for option in risky if option.startswith("--")]
    short = {option[1] for option in risky if len(option) == 2}
    single = [option for option in risky if len(option) > 2 and not option.startswith("--")]  # -exec, -TT
    for word in arguments:
        name = word.partition("=")[0]
        if word == "--":
            return ""
        if word.startswith("--"):
            if any(option.startswith(name) or name == option for option in long):
                return word
        elif word.startswith("-") and len(word) > 1:
            if any(word.startswith(option) for option in single):
                return word
            letters = re.match(r"-([A-Za-z0-9]*)", word)
            if letters and short & set(letters.group(1)):
                return word
    return ""
