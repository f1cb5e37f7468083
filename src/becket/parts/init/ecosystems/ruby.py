"""Ruby: the test task of a Rakefile, or the test files themselves, with Bundler where there is a Gemfile."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import NamedTuple

from becket.kernel.checks import words
from becket.kernel.contract.process import Network
from becket.parts.gates.section import GateStep, SetupConfig
from becket.parts.init.ecosystem import TEST_TIMEOUT, Ecosystem, Folder, Tools, missing_tools

_FILES = ("rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb")  # the order in which rake looks
_TASKS = {
    "test": re.compile(r"\bTestTask\.(?:new|create)\b(?!\s*\(?\s*[:\"'])|[:\"']test\b|\btest:|\bHoe\.spec\b"),
    "spec": re.compile(r"\bRakeTask\.new\b(?!\s*\(?\s*[:\"'])|[:\"']spec\b|\bspec:"),
}
_TASK_LINE = re.compile(
    r"^\s*(?:(?:multi)?task\b|.*\b(?:TestTask|RakeTask)\.(?:new|create)\b|.*\bHoe\.spec\b).*$", re.MULTILINE
)
_HOE = "sow"  # the program that comes with Hoe: without it the Rakefile cannot be loaded
_NAMED = ("test_*.rb", "*_test.rb")
_RUNS_ITSELF = re.compile(r"minitest/autorun|test/unit\b|\bautorun\b")
_ALL = (
    """ruby -Ilib -Itest -e 'Dir["test/**/{test_*,*_test}.rb"].sort.each { |file| require File.expand_path(file) }'"""
)
_REPORTS, _REPORT = "rspec_junit_formatter", "rspec.xml"
_GEMS = 'BUNDLE_PATH="$PWD/.gems"'


def propose(folder: Folder, tools: Tools) -> Ecosystem | None:
    """By the Rakefile's task; where it has none that can run here, by rspec, else every test file in one process."""
    file = next((name for name in _FILES if folder.has(name)), None)
    task = _task(folder.text(file)) if file else None
    setup = _setup(folder) if folder.has("Gemfile") else None
    if task and file and setup is None and re.search(r"\bHoe\.spec\b", folder.text(file)) and not tools.has(_HOE):
        task = None
    chosen = _by_task(file, task) or _by_rspec(folder) or _by_files(folder)
    if chosen is None:
        return None
    name, command, evidence, report = chosen
    step = GateStep(
        name=folder.step_name(name),
        run=folder.command(f"{_GEMS} bundle exec {command}" if setup else command),
        report=f"junit:{folder.below(report)}" if report else "plain",
        timeout=TEST_TIMEOUT,
        min_tests=1 if report else 0,
    )
    unlocked = setup is not None and not folder.has("Gemfile.lock")
    return Ecosystem(
        name="ruby",
        folder=folder.name,
        evidence=folder.below(evidence),
        fast=(step,),
        test_side=tuple(folder.glob(f"{name}/**") for name in ("test", "spec") if folder.has_folder(name)),
        setup=setup,
        missing=missing_tools(tools, "bundle" if setup else command.split()[0]),
        notes=(words.UNLOCKED.format(file=folder.below("Gemfile"), command="bundle lock"),) if unlocked else (),
    )


def covers(root: Folder, sub: Folder) -> bool:
    """A gem in a folder of its own is tested by its own Rakefile."""
    del root
    return not sub.names("*.gemspec") and not sub.has("Gemfile")


class _Chosen(NamedTuple):
    """How the tests are run, what told so, and the report that the command writes."""

    name: str
    command: str
    evidence: str
    report: str = ""


def _by_task(file: str | None, task: str | None) -> _Chosen | None:
    return _Chosen(f"rake_{task}", f"rake {task}", file) if file and task else None


def _by_rspec(folder: Folder) -> _Chosen | None:
    """It counts its tests where the project has the gem that writes reports."""
    specs = [name for name in folder.named("*_spec.rb") if name.startswith("spec/")]
    if not specs:
        return None
    evidence = ".rspec" if folder.has(".rspec") else specs[0]
    if _REPORTS not in folder.text("Gemfile") + folder.text("Gemfile.lock"):
        return _Chosen("rspec", "rspec", evidence)
    return _Chosen("rspec", f"rspec --format RspecJunitFormatter --out {_REPORT}", evidence, _REPORT)


def _by_files(folder: Folder) -> _Chosen | None:
    first = next(iter(_tests(folder)), None)
    return _Chosen("ruby_test", _ALL, first) if first else None


def _tests(folder: Folder) -> tuple[str, ...]:
    """The test files below `test`; none where nothing would run what they define."""
    below = [name for name in folder.named("*.rb") if name.startswith("test/")]
    named = [name for name in below if any(fnmatch(name.rpartition("/")[2], one) for one in _NAMED)]
    return tuple(named) if any(_RUNS_ITSELF.search(folder.text(name)) for name in below) else ()


def _task(text: str) -> str | None:
    """By the lines that define a task; a Rakefile that only loads others says nothing that could be read."""
    lines = "\n".join(line for line in _TASK_LINE.findall(text) if not line.lstrip().startswith("#"))
    return next((name for name, defined in _TASKS.items() if defined.search(lines)), None)


def _setup(folder: Folder) -> SetupConfig:
    """Gems go to a folder of the tree; those that the project brings along are installed from there alone."""
    brought = bool(folder.names("vendor/cache/*.gem"))
    key = ["Gemfile", *(name for name in ("Gemfile.lock", ".ruby-version") if folder.has(name))]
    key += [*folder.names("*.gemspec"), *folder.names("lib/**/version.rb")]
    key += ["vendor/cache/*.gem"] if brought else []
    return SetupConfig(
        run=folder.command(f"{_GEMS} bundle install{' --local' if brought else ''}"),
        key=tuple(map(folder.below, key)),
        network=Network.none if brought else Network.full,
    )
