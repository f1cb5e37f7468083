"""Projects that are compiled by Meson, CMake or the autotools: configure, build and test in one step."""

from __future__ import annotations

import re
from dataclasses import dataclass

from becket.parts.gates.section import GateStep
from becket.parts.init.ecosystem import BUILT, TEST_TIMEOUT, Ecosystem, Folder, Tools, missing_tools


@dataclass(frozen=True, slots=True)
class _Build:
    """One way to build. `tests` is what one of its files says where the project has tests."""

    name: str
    marker: str
    files: tuple[str, ...]
    tests: re.Pattern[str]
    run: str
    report: str
    tools: tuple[str, ...]


_BUILDS = (
    _Build(
        "meson", "meson.build", ("meson.build",), re.compile(r"^\s*test\s*\(", re.MULTILINE),
        f"meson setup {BUILT} && meson test -C {BUILT} --print-errorlogs",
        f"junit:{BUILT}/meson-logs/testlog.junit.xml", ("meson", "ninja"),
    ),
    _Build(
        "cmake", "CMakeLists.txt", ("CMakeLists.txt", "*.cmake"),
        re.compile(r"^\s*(add_test|\w+_discover_tests)\s*\(", re.IGNORECASE | re.MULTILINE),
        f"cmake -S . -B {BUILT}{{options}} && cmake --build {BUILT}"
        f" && ctest --test-dir {BUILT} --output-on-failure --output-junit report.xml",
        f"junit:{BUILT}/report.xml", ("cmake",),
    ),
    _Build(
        "autotools", "configure", ("Makefile.in",), re.compile(r"^check(-am)?:", re.MULTILINE),
        "./configure && make check", "plain", ("make",),
    ),
    _Build(
        "autotools", "configure.ac", ("Makefile.am",), re.compile(r"^(TESTS|check-local)\b", re.MULTILINE),
        "autoreconf -fi && ./configure && make check", "plain", ("autoreconf", "make"),
    ),
)  # fmt: skip
_OFF = re.compile(r"^\s*option\s*\(\s*(\w*TEST\w*)\s+\"[^\"]*\"\s+OFF\s*\)", re.IGNORECASE | re.MULTILINE)


def propose(folder: Folder, tools: Tools) -> Ecosystem | None:
    """The first that fits: a project with two ways to build has the same tests in both."""
    build = next((one for one in _BUILDS if folder.has(one.marker) and _has_tests(folder, one)), None)
    if build is None:
        return None
    options = "".join(f" -D{name}=ON" for name in _OFF.findall(folder.text("CMakeLists.txt")))
    kind, _, place = build.report.partition(":")
    step = GateStep(
        name=folder.step_name(f"{build.name}_test"),
        run=folder.command(build.run.replace("{options}", options)),
        report=f"{kind}:{folder.below(place)}" if place else kind,
        timeout=3 * TEST_TIMEOUT,
        min_tests=1 if place else 0,
    )
    return Ecosystem(
        name=build.name,
        folder=folder.name,
        evidence=folder.below(build.marker),
        fast=(step,),
        test_side=tuple(folder.glob(f"{name}/**") for name in ("tests", "test") if folder.has_folder(name)),
        missing=missing_tools(tools, *build.tools),
    )


def _has_tests(folder: Folder, build: _Build) -> bool:
    return any(build.tests.search(folder.text(name)) for name in folder.named(*build.files))
