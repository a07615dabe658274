"""git for a checkout that somebody works in: clone, pull, merge, branches; what it says is data, never run."""

from __future__ import annotations

from shared.errors import ToolError
from shared.guard.files.git_folder import layout
from shared.guard.git.commands import Git, check_commit, check_ref
from shared.guard.git.route import lead
from shared.guard.sandbox.addresses import PUBLIC, Reach

_SEARCHED = 50  # branches that are tried for conflicts


class Checkout(Git):
    """A working copy. Nothing is ever forced, and no change that is not committed is lost."""

    async def clone(self, url: str, branch: str = "", reach: Reach = PUBLIC) -> None:
        """Make `path` a clone of `url` with `branch` (by default the remote's) checked out."""
        way = await lead([url], reach)
        if self.where is not None or (self.path.exists() and any(self.path.iterdir())):
            raise ToolError(f"{self.path.name!r} cannot be cloned into", "the folder is not empty", "")
        await self.init(branch or "main")
        entries = {"remote.origin.url": url, "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*"}
        for key, value in entries.items():
            await self._raw("config", "--file", str(self.path / ".git" / "config"), key, value)
        self.where = layout(self.path)
        await self.fetch(way=way)
        name = branch or await self._remote_default()
        await self._git(
            "switch", "--quiet", "--no-track", "-C", check_ref(name), f"refs/remotes/origin/{name}"
        )

    async def _remote_default(self) -> str:
        done = await self._git("symbolic-ref", "--short", "-q", "refs/remotes/origin/HEAD", check=False)
        if done.ok:
            return done.stdout.strip().partition("/")[2]
        raise ToolError("the remote has no branch yet", "", "make a first commit there, then try again")

    async def start(self, name: str, base: str = "HEAD") -> None:
        """Make a branch and switch to it, with the changes that are not committed."""
        await self._need_commit(base)
        await self._git("switch", "--quiet", "--no-track", "-c", check_ref(name), base)

    async def merge(self, ref: str, agent: str) -> list[str]:
        """Merge into the branch that is checked out; the files in conflict, and then nothing was changed."""
        await self._need_commit(ref)
        await self.need_clean()
        who = await self.identity(agent)
        flags = ("--quiet", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-stat", "--no-autostash")
        done = await self._git("merge", *flags, check_commit(ref), options=who, check=False)
        if done.ok:
            return []
        found = await self._names("diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff", "--")
        await self._git("merge", "--abort", check=False)
        if not found:
            raise ToolError(f"{ref!r} was not merged", done.stderr.strip()[:400] or done.stdout[:400], "")
        return found

    async def pull(self, branch: str, agent: str, reach: Reach = PUBLIC) -> list[str]:
        """Fetch, then merge the remote's `branch` into the one that is checked out; see `merge`."""
        await self.need_clean()
        await self.fetch(reach=reach)
        return await self.merge(f"refs/remotes/origin/{check_ref(branch)}", agent)

    async def forward(self, branch: str) -> str:
        """Bring the local `branch` to what was fetched of it, where no commit gets lost; what came of it."""
        remote = await self.commit_of(f"refs/remotes/origin/{check_ref(branch)}")
        local = await self.commit_of(f"refs/heads/{branch}")
        if not remote or remote == local:
            return "up to date" if remote else "not on the remote"
        if local and await self.merge_base(local, remote) != local:
            return "diverged"
        if await self.branch() == branch:
            await self.need_clean()
            await self._git("merge", "--quiet", "--ff-only", "--no-stat", remote)
        else:
            await self._git("update-ref", f"refs/heads/{branch}", remote, *([local] if local else []))
        return "updated"

    async def merge_base(self, one: str, other: str) -> str:
        """The commit where two histories part; "" where they have nothing in common."""
        for ref in (one, other):
            await self._need_commit(ref)
        if one == other:
            return one
        done = await self._git("merge-base", check_commit(one), check_commit(other), check=False)
        return done.stdout.strip() if done.ok else ""

    async def clashes(self, base: str) -> dict[str, list[str]]:
        """The branches that cannot be merged with `base` without conflicts, and the files these are in."""
        found: dict[str, list[str]] = {}
        for branch in [name for name in await self.branches() if name != base][:_SEARCHED]:
            words = ("--write-tree", "--name-only", "--no-messages", "-z", base, f"refs/heads/{branch}")
            done = await self._git("merge-tree", *words, check=False, errors="surrogateescape")
            if done.exit_code == 1:
                found[branch] = [name for name in done.stdout.split("\0")[1:] if name]
        return found

    async def unpushed(self) -> int:
        """How many commits of local branches no remote branch has."""
        done = await self._git("rev-list", "--count", "--branches", "--not", "--remotes", "--")
        return int(done.stdout.strip() or 0)

    async def need_clean(self) -> None:
        """ToolError where there are changes that are not committed."""
        changes = [change for change in await self.status() if change.code != "??"]
        if changes:
            raise ToolError(
                "there are changes that are not committed",
                ", ".join(change.path for change in changes[:5]),
                "commit them first",
            )
