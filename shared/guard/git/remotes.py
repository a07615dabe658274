"""git and other places: mirrors, fetches and pushes, and the addresses to which they lead."""

from __future__ import annotations

from shared.errors import ToolError
from shared.guard.files.git_folder import layout
from shared.guard.git.history import GitHistory
from shared.guard.git.refs import check_ref, check_remote
from shared.guard.git.route import GitRoute, lead
from shared.guard.sandbox.addresses import PUBLIC, Reach


class GitRemotes(GitHistory):
    """What reaches a remote goes to the address that was looked up and judged."""

    async def mirror(self, url: str, reach: Reach = PUBLIC) -> None:
        """Make `path` a bare repository of what `url` has; its branches are under `refs/remotes/origin`.

        So our own branches, under `refs/heads`, are never overwritten by a fetch.
        """
        way = await lead([url], reach)
        if self.where is None:
            self.path.mkdir(parents=True, exist_ok=True)
            await self._raw(
                "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(self.path)
            )
            self.where = layout(self.path)
        entries = {"remote.origin.url": url, "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*"}
        for key, value in entries.items():
            await self._raw("config", "--file", str(self.path / "config"), "--replace-all", key, value)
        await self.fetch(way=way)

    async def fetch(self, remote: str = "origin", reach: Reach = PUBLIC, way: GitRoute | None = None) -> None:
        """Bring the remote's branches here, and learn which one is its default. `way`: it was looked up before."""
        way = way or await lead(await self._urls(remote, reach), reach)
        arguments = (
            "fetch",
            "--quiet",
            "--prune",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
        )
        await self._git(*arguments, check_ref(remote), way=way)
        await self._git("remote", "set-head", check_ref(remote), "--auto", way=way, check=False)

    async def can_push(self, branch: str, remote: str = "origin", reach: Reach = PUBLIC) -> None:
        """ToolError for a push that must fail, as far as that can be known without the network, names included."""
        await self._urls(remote, reach, push=True)
        if not await self.commit_of(f"refs/heads/{check_ref(branch)}"):
            raise ToolError(f"there is no branch {branch!r}", "", "look at git_log, or make it first")

    async def push(
        self,
        branch: str,
        remote: str = "origin",
        reach: Reach = PUBLIC,
        commit: str = "",
        address: str = "",
    ) -> None:
        """Send a branch under its own name; never by force. `commit` of it, and to `address`, where they are given."""
        await self.can_push(branch, remote, reach)
        if address and address != await self.push_address(remote):
            raise ToolError(
                "nothing was pushed", f"{remote} does not lead to {address} any more", "ask again"
            )
        way = await lead(await self._urls(remote, reach, push=True), reach)
        spec = f"{commit or f'refs/heads/{check_ref(branch)}'}:refs/heads/{check_ref(branch)}"
        arguments = ("push", "--quiet", "--no-verify", "--no-signed", "--no-recurse-submodules")
        await self._git(*arguments, check_ref(remote), spec, way=way)

    async def remote_url(self, remote: str = "origin") -> str:
        """The remote's address; "" where there is none of that name."""
        done = await self._git("config", "--get", f"remote.{check_ref(remote)}.url", check=False)
        return done.stdout.strip()

    async def fetch_address(self, remote: str = "origin") -> str:
        """Where a fetch really goes; ToolError where there is no such remote."""
        return (await self._led(remote))[0]

    async def push_address(self, remote: str = "origin") -> str:
        """Where a push really goes; ToolError where there is no such remote."""
        return " and ".join(await self._led(remote, push=True))

    async def _led(self, remote: str, push: bool = False) -> list[str]:
        """The addresses that git itself takes for a remote."""
        which = ("--push", "--all") if push else ("--all",)
        done = await self._git("remote", "get-url", *which, check_ref(remote), check=False)
        found = [url for url in done.stdout.split("\n") if url] if done.ok else []
        if not found:
            raise ToolError(f"there is no remote called {remote!r}", "", "ask the person to add one")
        return found

    async def _urls(self, remote: str, reach: Reach, push: bool = False) -> list[str]:
        """The same, each checked by its text."""
        return [check_remote(url, reach) for url in await self._led(remote, push)]
