"""A plain Python search, run as a child process where neither ripgrep nor git can do it.

It is a program of its own (standard library only), so that a pattern that would run for ever can be
killed without harm. `scan.py lines|count|files PATTERN IGNORE_CASE PER_FILE GLOB…` walks the current folder,
or reads one file from standard input where the first glob is `-`. It prints lines `path NUL line:text` or
`path NUL count`, or, without line ends, `path NUL`. Links are never followed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 4 * 1024 * 1024  # bytes of a file; larger ones are hardly source
SKIPPED = (".git", "node_modules", "__pycache__", ".venv")


def translate(glob: str) -> re.Pattern[str]:
    """A glob as gitignore means it: without a slash it is matched at any depth, `**` spans folders."""
    glob = glob.strip("/") if "/" in glob.strip("/") else f"**/{glob.strip('/')}"
    out, i = "", 0
    while i < len(glob):
        if glob.startswith("**/", i):
            out, i = out + "(?:.*/)?", i + 3
        elif glob.startswith("**", i):
            out, i = out + ".*", i + 2
        elif glob[i] == "{" and "}" in glob[i:]:
            end = glob.index("}", i)
            out, i = out + "(?:" + "|".join(map(re.escape, glob[i + 1 : end].split(","))) + ")", end + 1
        else:
            out, i = out + {"*": "[^/]*", "?": "[^/]"}.get(glob[i], re.escape(glob[i])), i + 1
    return re.compile(out)


def walk(folder: str = ".") -> Iterator[str]:
    """Paths of the regular files below `folder`, sorted, relative."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = entry.path.removeprefix("./")
        if entry.name in SKIPPED:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from walk(entry.path)
        elif entry.is_file(follow_symlinks=False):
            yield path


def wanted(path: str, globs: list[str]) -> bool:
    """True where a positive glob (if there is any) matches and no negative one (`!…`) does."""
    positive = [glob for glob in globs if not glob.startswith("!")]
    if any(translate(glob[1:]).fullmatch(path) for glob in globs if glob.startswith("!")):
        return False
    return not positive or any(translate(glob).fullmatch(path) for glob in positive)


def hits(data: bytes, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """(line number, text) of the lines that match; nothing for what looks binary."""
    if b"\0" in data[:8192]:
        return
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if pattern.search(line):
            yield number, line.rstrip("\r")


def tell(mode: str, path: str, data: bytes, pattern: re.Pattern[str], most: int) -> None:
    found = 0
    for number, text in hits(data, pattern):
        found += 1
        if mode == "lines":
            sys.stdout.write(f"{path}\0{number}:{text[:400]}\n")
            if found == most:
                return
    if mode == "count" and found:
        sys.stdout.write(f"{path}\0{found}\n")


def main(arguments: list[str]) -> int:
    mode, text, ignore_case, most, *globs = arguments
    text = text.removeprefix("(?-u)")  # ripgrep's word for bytes; here all is Unicode
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        pattern = re.compile(text, re.IGNORECASE if ignore_case == "1" else 0)
    except re.error as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        return 2
    if globs[:1] == ["-"]:
        tell(mode, "-", sys.stdin.buffer.read(), pattern, int(most))
        return 0
    for path in walk():
        if not wanted(path, globs):
            continue
        if mode == "files":
            sys.stdout.write(f"{path}\0")
        elif Path(path).lstat().st_size <= LONGEST:
            tell(mode, path, Path(path).read_bytes(), pattern, int(most))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
