"""Files that other programs obey without being asked: the one list, for file tools and for commands.

Whoever writes one of them decides what an editor, a shell, a package manager, a CI system or another agent does
when a person merely opens, enters or pushes the folder. So writing one is asked for.

What is not here, on purpose: the files in which a project says how it is built and tested, such as `Makefile`,
`package.json`, `pyproject.toml`, `conftest.py`, `Dockerfile` or `promptdock.toml`. Changing them is ordinary
work; they do nothing until somebody runs the project, and a review shows them. Nor is whatever git ignores asked
for as such: what counts are the folders from which tools run things that no diff shows.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import unicodedata
from collections.abc import Iterator
from functools import cache

from shared.guard.permissions import shell

# One group a kind of program. A name that ends in `/` is a folder with all that is in it, any other one a file;
# both count wherever they lie. `*` is any text without `/`. Case does not matter.
GROUPS: dict[str, str] = {
    "agents": """
        CLAUDE.md CLAUDE.local.md AGENTS.md AGENTS.override.md AGENT.md GEMINI.md QWEN.md .mcp.json .claude/
        .claude.json .codex/ .gemini/ .qwen/ .opencode/ opencode.json opencode.jsonc .cursor/ .cursorrules
        .windsurf/ .windsurfrules .clinerules
        .clinerules/ .roo/ .roorules* .roomodes .kilocode/ .continue/ .continuerc.json .amazonq/ .kiro/
        .junie/ .trae/ .goosehints .goose/ .aider* .augment/ .augment-guidelines .agents/ .agent/ .rules .promptdock/
    """,
    "editors": """
        .vscode/ *.code-workspace .idea/ .run/ .zed/ .fleet/ .vs/ .helix/ .nova/ .theia/ *.sublime-project
        .exrc .vimrc _vimrc .gvimrc .nvimrc .nvim.lua .lvimrc .vim/ .ycm_extra_conf.py
        .dir-locals.el .dir-locals-2.el .emacs .emacs.d/
        .devcontainer/ .devcontainer.json .gitpod.yml .gitpod.dockerfile .replit replit.nix .codesandbox/
    """,
    "ci": """
        .github/ .gitea/ .forgejo/ .gitlab/ .gitlab-ci.yml .gitlab-ci/ .circleci/ Jenkinsfile Jenkinsfile.*
        .travis.yml azure-pipelines.yml azure-pipelines.yaml azure-pipelines*.yml .azure-pipelines/ .buildkite/
        .woodpecker/ .woodpecker* .drone.yml .drone.yaml .drone.jsonnet .drone.star .cirrus.yml .cirrus.star
        appveyor.yml .appveyor.yml bitbucket-pipelines.yml .teamcity/ .semaphore/ cloudbuild.yaml cloudbuild.yml
        buildspec.yml .builds/ .build.yml codemagic.yaml bitrise.yml .tekton/
    """,
    "git": """
        .gitconfig .gitmodules .gitattributes .config/git/ .hgrc .husky/ .githooks/ .git-hooks/ .git/hooks/
        .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .overcommit.yml
        lefthook*.yml lefthook*.yaml lefthook*.toml lefthook*.json .lefthook*.yml .lefthook*.yaml .lefthook*.toml
        .lefthook/ .lefthook-local/ .lintstagedrc* .simple-git-hooks.*
    """,
    "shells": """
        .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin
        .zlogout .kshrc .cshrc .tcshrc .login .logout .inputrc .xinitrc .xprofile .xsession .screenrc .tmux.conf
        .config/fish/ .config/nvim/ .config/autostart/ .config/systemd/ .local/bin/ .ssh/ .gnupg/ .aws/ .kube/
        .docker/ .wgetrc .curlrc .psqlrc .sqliterc .my.cnf .gdbinit .lldbinit .irbrc .pryrc .pythonrc .pythonrc.py
        .Rprofile .Renviron .ghci
    """,
    "environments": """
        .env .env.* .envrc .flaskenv .autoenv .autoenv.zsh mise.toml mise.*.toml .mise.toml .mise.*.toml .mise/
        mise/config.toml .config/mise.toml .config/mise/ .tool-versions .sdkmanrc .rtx.toml
    """,
    "packages": """
        .npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.cjs .pnpmfile.mjs .pnpmrc bunfig.toml .netrc _netrc .pypirc
        pip.conf pip.ini .pip/ .config/pip/ .pydistutils.cfg uv.toml poetry.toml .pdm.toml .condarc
        .cargo/ .bundle/ .gemrc .m2/ .mvn/ gradle/wrapper/ init.gradle init.gradle.kts nuget.config
        .bazelrc bazelrc *.bazelrc .bazeliskrc .buckconfig .composer/ .cabal/
    """,
    # What is run, and what no diff shows.
    "programs": """
        .venv/bin/ venv/bin/ env/bin/ .virtualenv/bin/ .venv/scripts/ venv/scripts/ .tox/ .nox/ .direnv/
        node_modules/.bin/ site-packages/*.pth dist-packages/*.pth sitecustomize.py usercustomize.py
    """,
    "installed": """
        .venv/ site-packages/ dist-packages/ node_modules/ bower_components/ __pycache__/ .eggs/ .pnp.cjs .pnp.js
        .pnp.loader.mjs
    """,
}
# Commands install and remove these by themselves all day, so that only file tools are asked here.
_FILES_ONLY = frozenset({"installed"})

# Programs that only read, and what of git does: with nothing in the command that cannot be judged by reading it.
_READERS = frozenset(
    """
    [ basename cat cd cmp cut diff dirname du echo egrep fgrep file find grep head ls nl printf pwd realpath rg
    sha256sum stat tail test tree true uniq wc
    """.split()  # noqa: SIM905 - so many quoted words read worse
)
_GIT_READS = frozenset({"blame", "diff", "grep", "log", "ls-files", "show", "status"})

_APART = re.compile(r"[^\s'\"=<>|;&()`,:{}\[\]]+|[|;&(\n<>`]")
_BEFORE = frozenset(
    ". ! command do else env exec if nohup source sudo then time timeout until while".split()  # noqa: SIM905
)
_NUMBER = re.compile(r"[\d.]+[smhd]?|-\S+")


def plain(path: str) -> str:
    """A path as the file systems that forgive most would take it."""
    kept = "".join(c for c in unicodedata.normalize("NFKC", path) if unicodedata.category(c) != "Cf")
    parts = posixpath.normpath(kept.replace("\\", "/").casefold()).split("/")
    return "/".join(part.rstrip(". ") or part for part in parts)


def path(text: str) -> str:
    """The group whose programs obey the file of that path; "" where none does."""
    found = plain(text)
    return next((group for group in GROUPS if _pattern(group).fullmatch(found)), "")


def named(command: str) -> str:
    """The first word of a command's text that names such a file; "" where there is none.

    A program that is only run (`.venv/bin/pytest`) is not named.
    """
    for text in dict.fromkeys((command, re.sub(r"[\\'\"]", "", command))):
        for word, runs in _words(text):
            found = plain(word)
            for group in GROUPS:
                if group in _FILES_ONLY or (runs and group == "programs"):
                    continue
                if _pattern(group).fullmatch(found):
                    return word
    return ""


def only_reads(command: str) -> bool:
    """Whether a command certainly writes nothing, so that what it names is only looked at."""
    reading = shell.read(command)
    return bool(reading.commands) and not reading.doubts and all(map(_reads, reading.commands))


def _reads(command: str) -> bool:
    program, *words = shlex.split(command)
    if program == "git":
        writes = any(word.startswith(("--o", "--ext", "-O", "-o", "-c")) for word in words)
        return not writes and bool(words) and words[0] in _GIT_READS
    return program in _READERS


def _words(command: str) -> Iterator[tuple[str, bool]]:
    """The words of a shell text, and whether each stands where a program is named that is to be run."""
    runs, last = True, ""
    for word in _APART.findall(command):
        if word == "(":  # of a subshell or a substitution, not of a call in some program's text
            runs = runs or last.endswith("$")
        elif len(word) == 1 and word in "|;&\n`":
            runs = True
        elif word in "<>":
            runs = False
        else:
            yield word, runs
            runs = word in _BEFORE or (runs and _NUMBER.fullmatch(word) is not None)
        last = word


@cache
def _pattern(group: str) -> re.Pattern[str]:
    # Of the folders from which things are run only what is in them: they are made and removed as a whole.
    below = "/.*" if group in ("programs", "installed") else "(?:/.*)?"
    return re.compile("|".join(f"(?:.*/)?{_entry(name, below)}" for name in GROUPS[group].split()), re.S)


def _entry(name: str, below: str) -> str:
    text = re.escape(name.rstrip("/").casefold()).replace(r"\*", "[^/]*")
    return text + below if name.endswith("/") else text
