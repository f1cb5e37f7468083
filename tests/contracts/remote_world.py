"""A shared repository, a person's clone of it, and a colleague with another one."""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from git_repos import commit, git, new_repository

from becket.kernel.contract.effect import door_mint
from becket.kernel.contract.remote import Fetched, NotPushed, Pushed, PushRequest, push_call
from becket.kernel.git.refs import Refs
from becket.kernel.git.remote import GitRemote
from becket.kernel.git.repository import GitRepository, discover


class World:
    """`home` and `hub` begin at the same commit of main."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = new_repository(folder / "home")
        self.hub = folder / "hub.git"
        git(folder, "clone", "--quiet", "--bare", str(self.home), str(self.hub))
        git(self.home, "remote", "add", "origin", str(self.hub))
        git(folder, "clone", "--quiet", str(self.hub), "other")
        self.other = folder / "other"
        self.base = git(self.home, "rev-parse", "HEAD")

    @property
    def git(self) -> GitRepository:
        return discover(self.home)

    def at(self, url: str) -> None:
        git(self.home, "remote", "set-url", "origin", url)

    def theirs(self, files: dict[str, str] | None = None) -> str:
        """A colleague commits and pushes."""
        git(self.other, "pull", "--quiet", "--ff-only")
        sha = commit(self.other, files or {"their.txt": "t\n"})
        git(self.other, "push", "--quiet", "origin", "main")
        return sha

    def mine(self, files: dict[str, str] | None = None) -> str:
        return commit(self.home, files or {"mine.txt": "m\n"})

    def there(self, branch: str = "main") -> str:
        return git(self.hub, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", ok=(0, 1))

    def refs(self) -> str:
        return git(self.home, "for-each-ref")

    def hook(self, name: str, script: str) -> None:
        path = self.hub / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def fetch(self, remote: str = "origin", branch: str = "main", timeout: float = 20.0) -> Fetched:
        return asyncio.run(self.remote(timeout).fetch(remote, branch))

    def push(self, new: str, expected: str | None = None, branch: str = "main") -> Pushed | NotPushed:
        request = PushRequest(remote="origin", branch=branch, new=new, expected=expected)
        return asyncio.run(self.remote().push(request, door_mint()("key", push_call(request))))

    def remote(self, timeout: float = 20.0) -> GitRemote:
        place = self.git.place
        return GitRemote(Refs(place, self.home / ".git"), timeout)


@contextmanager
def silent_port() -> Iterator[int]:
    """Somebody listens and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def web(answer: int) -> Iterator[tuple[int, list[str]]]:
    """A web server that wants a login and answers one with `answer`; tells who came."""
    came: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            login = self.headers.get("Authorization", "")
            came.append(login)
            self.send_response(answer if login else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="hub"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, came
        finally:
            server.shutdown()
            thread.join()
