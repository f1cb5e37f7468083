"""What the fake programs share: HTTP to the model, commands in sessions of their own, skills, files of a session."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class HttpError(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, body: str, headers: dict[str, str]) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body
        self.headers = headers

    @property
    def error(self) -> Json:
        try:
            found = json.loads(self.body)["error"]
        except (ValueError, KeyError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def message(self) -> str:
        return str(self.error.get("message", self.body))


class Dropped(Exception):
    """The connection ended too early. `begun` says whether an answer had begun."""

    def __init__(self, begun: bool) -> None:
        super().__init__("connection dropped")
        self.begun = begun


class Flight:
    """The request under way, which another thread may abort."""

    def __init__(self) -> None:
        self._response: Any = None
        self.aborted = False

    def began(self, response: Any) -> None:
        self._response = response
        if self.aborted:
            self.abort()

    def abort(self) -> None:
        self.aborted = True
        with contextlib.suppress(Exception):
            self._response.fp.raw._sock.shutdown(2)


def post(url: str, body: Json, headers: dict[str, str], flight: Flight | None = None) -> Any:
    """The open response. Proxies and certificate authorities are taken from the environment, as the real ones do."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request

    data = json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json", **headers})  # noqa: S310 - whatever is set
    try:
        response = _opener(url).open(request, timeout=600)
    except HTTPError as error:
        answer = {name.lower(): value for name, value in error.headers.items()}
        raise HttpError(error.code, error.read().decode(), answer) from None
    except (OSError, HTTPException):
        raise Dropped(begun=False) from None
    if flight is not None:
        flight.began(response)
    return response


def _opener(url: str) -> Any:
    """Without TLS no authorities are loaded, which takes a tenth of a second."""
    from urllib import request as web

    opener = web.OpenerDirector()
    kinds = (web.ProxyHandler, web.HTTPHandler, web.HTTPErrorProcessor, web.HTTPDefaultErrorHandler)
    for kind in kinds:
        opener.add_handler(kind())
    if url.startswith("https:"):
        import ssl

        context = ssl.create_default_context()
        for name in ("NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE"):
            if os.environ.get(name):
                context.load_verify_locations(os.environ[name])
        opener.add_handler(web.HTTPSHandler(context=context))
    return opener


def frames(response: Any) -> Iterator[Json]:
    """The server-sent events as they come."""
    from http.client import HTTPException

    try:
        for line in response:
            data = line.decode().strip()
            if data.startswith("data:") and data != "data: [DONE]":
                yield json.loads(data[5:])
    except (OSError, ValueError, HTTPException):
        raise Dropped(begun=True) from None


class Commands:
    """Command lines, each in a session of its own: who kills only the program's group does not reach them."""

    def __init__(self) -> None:
        self.hidden: list[str] = []  # patterns of variables that they do not get
        self._running: subprocess.Popen[str] | None = None

    def run(self, command: str, cwd: str) -> tuple[int, str]:
        self._running = subprocess.Popen(
            ["/bin/bash", "-c", command],
            cwd=cwd,
            env={name: value for name, value in os.environ.items() if not self._is_hidden(name)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        output, _ = self._running.communicate()
        code, self._running = self._running.returncode, None
        return code, output

    def _is_hidden(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in self.hidden)

    def kill(self) -> None:
        """The one in the foreground. What it sent to another session lives on."""
        if self._running is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)


def die_of(number: int) -> None:
    """By the signal itself, so that the parent sees it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def on_signal(number: int, commands: Commands, then: Any) -> None:
    def handle(*_: object) -> None:
        commands.kill()
        then()

    signal.signal(number, handle)


_PRINTING = threading.Lock()


def emit(event: Json) -> None:
    """One line of JSON, whole."""
    with _PRINTING:
        sys.stdout.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def skills(folder: Path) -> list[tuple[str, str, Path]]:
    """Name, description and file of each skill in a folder of skills."""
    found = []
    for file in sorted(folder.glob("*/SKILL.md")):
        head = re.match(r"---\n(.*?)\n---", file.read_text(), re.DOTALL)
        fields = dict(re.findall(r"^(name|description):[ \t]*(.+)$", head[1] if head else "", re.MULTILINE))
        if "name" in fields and "description" in fields:
            found.append((fields["name"], fields["description"], file))
    return found


def home() -> Path:
    return Path(os.environ.get("HOME") or "/")


def complain(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code
