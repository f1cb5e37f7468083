"""Lines that blame the machine, and lines that only look like it (L13)."""

from __future__ import annotations

import pytest
from report_stage import all_names, stored

from becket.parts.gates.reports.environment import EnvironmentKind, mentions_environment

PACKAGES = {"package.json": b'{"dependencies": {"lodash": "^4", "@scope/pump": "1"}}', "calc/__init__.py": b""}

MACHINE = [
    ("sh: 1: pytest: not found", "tool", "pytest"),
    ("/bin/sh: 1: ruff: not found", "tool", "ruff"),
    ("bash: line 3: cargo: command not found", "tool", "cargo"),
    ("./run.sh: line 12: jq: command not found", "tool", "jq"),
    ("env: ‘node’: No such file or directory", "tool", "node"),
    ("make: gcc: No such file or directory", "tool", "gcc"),
    ('exec: "docker": executable file not found in $PATH', "tool", "docker"),
    ("Error: spawn git ENOENT", "tool", "git"),
    ("E   FileNotFoundError: [Errno 2] No such file or directory: 'git'", "tool", "git"),
    ("error: linker `cc` not found", "tool", "cc"),
    ("error: rustup could not choose a version of cargo to run, because one wasn't specified", "tool", "rustup"),
    (
        "error: could not create temp root /home/a/.rustup/tmp: Read-only file system (os error 30)",
        "tool",
        "/home/a/.rustup/tmp",
    ),
    ("pyenv: version `3.9.1' is not installed (set by /x/.python-version)", "tool", "3.9.1"),
    ("pyenv: pytest: command not found", "tool", "pytest"),
    ("No version is set for command node", "tool", "node"),
    ("mise ERROR No version is set for shim: node", "tool", "node"),
    ("/usr/bin/python3: No module named pytest", "tool", "pytest"),
    ("ImportError: libfoo.so.1: cannot open shared object file: No such file or directory", "library", "libfoo.so.1"),
    ("./app: error while loading shared libraries: libz.so: cannot open shared object file", "library", "libz.so"),
    ("PermissionError: [Errno 13] Permission denied: '/var/lib/pump'", "permission", "/var/lib/pump"),
    ("OSError: [Errno 30] Read-only file system: '/etc/pump'", "permission", "/etc/pump"),
    ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock", "service", "Docker"),
    ("dial tcp 127.0.0.1:5432: connect: connection refused", "service", "5432"),
    ("curl: (6) Could not resolve host: example.org", "network", "example.org"),
    ("Temporary failure in name resolution", "network", "Temporary failure in name resolution"),
    ("npm ERR! network request to https://example.org failed", "network", "request to https://example.org failed"),
    ("Error: getaddrinfo ENOTFOUND example.org", "network", "example.org"),
    ("go: dial tcp: lookup proxy.example.org on 10.0.0.1:53: no such host", "network", "proxy.example.org"),
    ("OSError: [Errno 28] No space left on device", "disk", "No space left on device"),
    ("OSError: [Errno 12] Cannot allocate memory", "memory", "Cannot allocate memory"),
    ("make: *** [Makefile:3: test] Killed", "memory", "Killed"),
    ("Error: listen EADDRINUSE: address already in use 127.0.0.1:8080", "port", ":8080"),
    ("listen tcp :8080: bind: address already in use", "port", "address already in use"),
    ("OSError: [Errno 98] Address already in use", "port", "Address already in use"),
    ("2026-07-29T09:31:11.1841963Z sh: 1: tox: not found", "tool", "tox"),
    ("\x1b[31msh: 1: tox: not found\x1b[0m", "tool", "tox"),
]

CODE = [
    "AssertionError: expected 'No space left on device'",
    ">       raise OSError('No space left on device')",
    "    # Address already in use is handled below",
    "E   AssertionError: assert 'sh: 1: x: not found' == ''",
    "E   FileNotFoundError: [Errno 2] No such file or directory: 'data.json'",
    "E   FileNotFoundError: [Errno 2] No such file or directory: 'tests/data/pump.json'",
    "error[E0425]: cannot find value `pump` in this scope",
    "error: could not find `pump` in `calc`",
    "src/a.c:3:10: fatal error: pump.h: No such file or directory",
    "PermissionError: [Errno 13] Permission denied: 'out.txt'",
    "ConnectionRefusedError: [Errno 111] Connection refused",
    "dial tcp 127.0.0.1:8080: connect: connection refused",
    "404 page not found",
    "KeyError: 'not found'",
    "Cannot find module './pump'",
    "Cannot find module '../src/pump.js'",
    "user not found",
    "worker Killed by its parent in test_kill",
    "mock server: API rate limit exceeded",
    "no required module provides package example.org/pump; to add it: go get",
]


@pytest.mark.parametrize(("line", "kind", "what"), MACHINE)
def test_lines_that_blame_the_machine(line: str, kind: str, what: str) -> None:
    reason = mentions_environment(f"collecting\n{line}\nmore\n".encode())
    assert reason is not None
    assert (reason.kind, reason.what) == (EnvironmentKind(kind), what)


@pytest.mark.parametrize("line", CODE)
def test_lines_that_do_not(line: str) -> None:
    assert mentions_environment(f"collecting\n{line}\nmore\n", PACKAGES.get) is None


def test_a_missing_module_counts_only_if_the_repository_should_not_have_it() -> None:
    foreign = "E   ModuleNotFoundError: No module named 'requests'"
    own = "E   ModuleNotFoundError: No module named 'calc.shelf'"
    assert mentions_environment(foreign) is None  # nobody can tell
    assert mentions_environment(own, PACKAGES.get) is None
    reason = mentions_environment(foreign, PACKAGES.get)
    assert reason is not None
    assert (reason.kind, reason.what) == (EnvironmentKind.module, "requests")


@pytest.mark.parametrize(
    ("name", "is_machine"), [("lodash", True), ("lodash/fp", True), ("@scope/pump", True), ("left-pad", False)]
)
def test_a_node_package_counts_only_if_it_is_declared(name: str, is_machine: bool) -> None:
    assert (mentions_environment(f"Error: Cannot find module '{name}'", PACKAGES.get) is not None) == is_machine


HELD = "/state/setups/ab/tree/node_modules"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (
            f"error TS5033: Could not write file '{HELD}/.pnpm/@vitest+expect@3/x.tmp': EROFS: read-only file system.",
            f"{HELD}/.pnpm/@vitest+expect@3/x.tmp",
        ),
        (f"Error: EACCES: permission denied, mkdir '{HELD}/x/.cache'", f"{HELD}/x/.cache"),
        (f"touch: cannot touch '{HELD}/x': Read-only file system", f"{HELD}/x"),
        (f"sh: 1: cannot create {HELD}/x: Permission denied", f"{HELD}/x"),
    ],
)
def test_a_write_where_a_step_may_only_read_blames_the_machine(line: str, what: str) -> None:
    reason = mentions_environment(f"collecting\n{line}\n", held=lambda path: path.startswith(HELD))
    assert reason is not None
    assert (reason.kind, reason.what) == (EnvironmentKind.held, what)
    assert mentions_environment(f"collecting\n{line}\n") is None


@pytest.mark.parametrize(
    "line",
    [
        "Error: EACCES: permission denied, open '/srv/pump/out.txt'",
        f"expect(write).toThrow('EROFS: read-only file system, open {HELD}/x')",
        f"AssertionError: {HELD}/x is not there",
    ],
)
def test_a_refusal_elsewhere_and_an_assertion_of_one_do_not(line: str) -> None:
    assert mentions_environment(line, held=lambda path: path.startswith(HELD)) is None


def test_real_failures_of_code_are_not_blamed_on_the_machine() -> None:
    """The stored reports all come from a machine in order."""
    blamed = {name: reason for name in all_names() if (reason := mentions_environment(stored(name)))}
    assert blamed == {}


def test_a_large_output_is_scanned_to_its_end() -> None:
    output = b"all is well in line after line\n" * 400_000 + b"sh: 1: tox: not found\n"
    reason = mentions_environment(output)
    assert reason is not None
    assert reason.what == "tox"


def test_it_reads_as_a_short_sentence() -> None:
    assert str(mentions_environment("sh: 1: tox: not found")) == "tool: tox"
