"""A work tree, a HOME and the fake programs: what a test of them needs."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from becket.testing.model import ScriptedModel
from becket_lab.clis import install

Json = dict[str, Any]


class Stage:
    """With the fake programs, or with those of another folder."""

    def __init__(self, folder: Path, model: ScriptedModel, programs: Path | None = None) -> None:
        self.model = model
        self.tree = folder / "tree"
        self.home = folder / "home"
        self.programs = programs or folder / "programs"
        (self.tree / ".git").mkdir(parents=True)
        (self.tree / "calc.py").write_text("def add(a, b):\n    return a - b\n")
        self.home.mkdir()
        if programs is None:
            install(self.programs)

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "MODEL_KEY": "k",
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": self.model.url,
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "GEMINI_API_KEY": "k",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
        }

    def codex(self, *options: str, prompt: str = "fix it", model: str = "gpt-5.5", retries: int = 0) -> list[str]:
        provider = (
            f'{{name="s",base_url="{self.model.url}/v1",wire_api="responses",env_key="MODEL_KEY",'
            f"request_max_retries={retries},stream_max_retries={retries}}}"
        )
        fixed = ["exec", "--json", "-s", "danger-full-access", "-m", model]
        settings = ["-c", 'model_provider="s"', "-c", f"model_providers.s={provider}"]
        return [str(self.programs / "codex"), *fixed, *settings, *options, prompt]

    def claude(self, *options: str, prompt: str = "fix it", mode: str = "acceptEdits") -> list[str]:
        fixed = ["-p", prompt, "--output-format", "stream-json", "--verbose", "--permission-mode", mode]
        return [str(self.programs / "claude"), *fixed, *options]

    def log_in(self, **general: int) -> None:
        """What gemini wants below HOME before it loads a session."""
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": general}
        (self.home / ".gemini").mkdir(exist_ok=True)
        (self.home / ".gemini/settings.json").write_text(json.dumps(settings))

    def run(self, command: list[str], **env: str) -> Done:
        done = subprocess.run(
            command, cwd=self.tree, env=self.env | env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, command: list[str], **env: str) -> Iterator[subprocess.Popen[str]]:
        """Running, and surely gone afterwards."""
        running = subprocess.Popen(
            command, cwd=self.tree, env=self.env | env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, bufsize=1,
        )  # fmt: skip
        with running:
            try:
                yield running
            finally:
                running.kill()


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """For 127.0.0.1, with the context of its server. Made by the program `openssl`."""
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    key, public = folder / "key.pem", folder / "certificate.pem"
    subprocess.run([*made, *names, "-keyout", str(key), "-out", str(public)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, key)
    return public, context


class Done:
    def __init__(self, code: int, out: str, told: str) -> None:
        self.code = code
        self.told = told
        self.out = out

    @property
    def events(self) -> list[Json]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def last(self) -> Json:
        return self.events[-1]

    @property
    def kinds(self) -> list[str]:
        """The types of the events, with the item's or the subtype."""
        inner = [event.get("item", {}).get("type", event.get("subtype", "")) for event in self.events]
        return [f"{event['type']} {kind}".strip() for event, kind in zip(self.events, inner, strict=True)]
