"""Maven and Gradle builds."""

from __future__ import annotations

import re

from becket.kernel.checks import words
from becket.kernel.contract.process import Network
from becket.parts.gates.section import GateStep
from becket.parts.init.ecosystem import TEST_TIMEOUT, Ecosystem, Folder, Tools, missing_tools

_BUILD = ("build.gradle", "build.gradle.kts")
_SETTINGS = ("settings.gradle", "settings.gradle.kts")
_MODULE = re.compile(r"<module>\s*([^<]+?)\s*</module>")
_XML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def propose_maven(folder: Folder, tools: Tools) -> Ecosystem | None:
    if not folder.has("pom.xml"):
        return None
    program = _wrapper(folder, "mvnw") or "mvn"
    reports = "**/target/surefire-reports/*.xml" if _modules(folder) else "target/surefire-reports"
    needed = missing_tools(tools, "java" if program != "mvn" else "mvn")
    # Java takes the home of the password file, which is hidden, for the place of its repository.
    step = _step(folder, "maven_test", f"{program} -q -Duser.home=$HOME test", reports)
    return _found("maven", folder, "pom.xml", step).model_copy(update={"missing": needed})


def covers_maven(root: Folder, sub: Folder) -> bool:
    return sub.name in {module.split("/")[0] for module in _modules(root)}


def propose_gradle(folder: Folder, tools: Tools) -> Ecosystem | None:
    evidence = next((name for name in (*_BUILD, *_SETTINGS) if folder.has(name)), None)
    if evidence is None:
        return None
    program = _wrapper(folder, "gradlew") or "gradle"
    many = any(folder.has(name) for name in _SETTINGS) and "include" in "".join(map(folder.text, _SETTINGS))
    reports = "**/build/test-results/**/*.xml" if many else "build/test-results/test"
    needed = missing_tools(tools, "java" if program != "gradle" else "gradle")
    # A daemon would outlive the step, and what a step leaves running is killed.
    step = _step(folder, "gradle_test", f"{program} test --no-daemon", reports)
    return _found("gradle", folder, evidence, step).model_copy(update={"missing": needed})


def covers_gradle(root: Folder, sub: Folder) -> bool:
    """The root's settings speak for every folder that has none of its own."""
    return any(map(root.has, _SETTINGS)) and not any(map(sub.has, _SETTINGS))


def _modules(folder: Folder) -> list[str]:
    return _MODULE.findall(_XML_COMMENT.sub("", folder.text("pom.xml")))


def _wrapper(folder: Folder, name: str) -> str | None:
    if not folder.has(name):
        return None
    return f"./{name}" if (folder.path / name).stat().st_mode & 0o100 else f"sh ./{name}"


def _step(folder: Folder, name: str, run: str, reports: str) -> GateStep:
    """With the network: both tools fetch plugins while they test, and a contained step has no home with a cache."""
    return GateStep(
        name=folder.step_name(name),
        run=folder.command(run),
        report=f"junit:{folder.below(reports)}",
        timeout=3 * TEST_TIMEOUT,
        network=Network.full,
        min_tests=1,
    )


def _found(name: str, folder: Folder, evidence: str, step: GateStep) -> Ecosystem:
    has_tests = any(re.search(r"(^|/)src/test/.", file) for file in folder.files())
    notes = (words.NETWORK_IN_GATE.format(tool=name),)
    return Ecosystem(
        name=name,
        folder=folder.name,
        evidence=folder.below(evidence),
        fast=(step,),
        test_side=tuple(folder.glob(pattern) for pattern in ("src/test/**", "**/src/test/**")),
        notes=notes if has_tests else (*notes, words.NO_TESTS_YET),
    )
