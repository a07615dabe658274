"""A diff as a page shows it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gateways.web.render.diff import files

CHANGED = """\
diff --git a/api/auth.py b/api/auth.py
index 1111111..2222222 100644
--- a/api/auth.py
+++ b/api/auth.py
@@ -1,4 +1,5 @@ def login():
 import os
-SECRET = "x"
+SECRET = settings.secret
+TTL = 60
 # the door
 def login():
"""


def test_each_line_has_its_number_on_both_sides() -> None:
    [found] = files(CHANGED)
    assert (found.path, found.how, found.added, found.removed) == ("api/auth.py", "changed", 2, 1)
    assert [(line.kind, line.old, line.new) for line in found.hunks[0].lines] == [
        ("same", 1, 1), ("gone", 2, 0), ("new", 0, 2), ("new", 0, 3), ("same", 3, 4), ("same", 4, 5),
    ]  # fmt: skip


def test_within_a_line_the_words_that_changed_are_told() -> None:
    [found] = files("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-total = price * 2\n+total = price * 3\n")
    gone, new = found.hunks[0].lines
    assert gone.pieces == (("total = price * ", False), ("2", True))
    assert new.pieces == (("total = price * ", False), ("3", True))


def test_side_by_side_a_line_stands_beside_what_came_in_its_place() -> None:
    pairs = files(CHANGED)[0].hunks[0].pairs
    assert [(left and left.text, right and right.text) for left, right in pairs[1:3]] == [
        ('SECRET = "x"', "SECRET = settings.secret"),
        (None, "TTL = 60"),
    ]


def test_what_git_says_of_new_gone_moved_and_binary_files_is_read(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        return subprocess.run(
            ["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q")
    (tmp_path / "gone.txt").write_text("a\n")
    (tmp_path / "old name.txt").write_text("one\ntwo\nthree\nfour\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    (tmp_path / "gone.txt").unlink()
    (tmp_path / "old name.txt").rename(tmp_path / "new näme.txt")
    (tmp_path / "new.txt").write_text("b\n")
    (tmp_path / "picture.bin").write_bytes(bytes(range(256)))
    git("add", "-A")
    found = {one.path: one for one in files(git("-c", "core.quotePath=false", "diff", "--cached", "-M"))}
    assert {path: one.how for path, one in found.items() if not one.binary} == {
        "gone.txt": "gone",
        "new.txt": "new",
        "new näme.txt": "moved",
    }
    assert found["new näme.txt"].before == "old name.txt"
    assert found["picture.bin"].binary


def test_what_is_no_diff_has_no_files_and_a_long_one_is_cut() -> None:
    assert files("nothing of the kind") == [] and files("") == []
    assert files("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n+cut off") == []
    many = 4000
    body = "".join(f"+line {number}\n" for number in range(many))
    [found] = files(f"--- /dev/null\n+++ b/x\n@@ -0,0 +1,{many} @@\n{body}")
    assert found.folded and found.cut == 1000


def test_what_turns_the_direction_of_a_line_is_taken_out() -> None:
    [found] = files("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+if admin\u202e: pass\n")
    assert found.hunks[0].lines[0].text == "if admin: pass"
