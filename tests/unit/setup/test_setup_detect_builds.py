"""Ruby, and what Meson, CMake, the autotools and make build."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from becket.kernel.contract.process import Network
from becket.parts.init.detect import Detected, detect
from becket.parts.init.ecosystem import Tools

Look = Callable[[Mapping[str, str]], Detected]

GEMS = 'BUNDLE_PATH="$PWD/.gems"'
RAKE = {"Rakefile": "Rake::TestTask.new do |t|\n  t.libs << 'test'\nend\n", "test/one_test.rb": ""}
CMAKE = "cmake -S . -B .becket-built && cmake --build .becket-built"
CTEST = " && ctest --test-dir .becket-built --output-on-failure --output-junit report.xml"


@pytest.mark.parametrize(
    ("rakefile", "task"),
    [
        ("Rake::TestTask.new\n", "test"),
        ("Rake::TestTask.new(:test) do |t|\nend\n", "test"),
        ("Rake::TestTask.new(:unit)\ntask test: :unit\n", "test"),
        ("RSpec::Core::RakeTask.new\ntask :default => :spec\n", "spec"),
        ("RSpec::Core::RakeTask.new(:spec)\n", "spec"),
        ("task 'test' do\nend\n", "test"),
        ("Minitest::TestTask.create\n", "test"),
        ("Minitest::TestTask.create(:test) do |t|\nend\n", "test"),
        ("Minitest::TestTask.create(:unit)\n", None),
        ("multitask :test => [:a, :b]\n", "test"),
        ("Rake::TestTask.new(:unit)\n", None),
        ("# task :test\ntask :deploy\n", None),
        ("puts 'test:'\n", None),
    ],
)
def test_the_task_of_a_rakefile(look: Look, rakefile: str, task: str | None) -> None:
    assert [step.run for step in look({"Rakefile": rakefile}).fast] == ([f"rake {task}"] if task else [])


HOE = {
    "Rakefile": 'require "hoe"\nHoe.spec "minitest" do\nend\n',
    "test/minitest/test_a.rb": 'require "minitest/autorun"\n',
}


RUBY_ALL = 'Dir["test/**/{test_*,*_test}.rb"].sort.each { |file| require File.expand_path(file) }'
RUBY = f"ruby -Ilib -Itest -e '{RUBY_ALL}'"


def test_hoes_tasks_are_there_where_hoe_is_or_where_a_gemfile_brings_it(look: Look) -> None:
    assert [step.run for step in look(HOE).fast] == [RUBY]
    assert [step.run for step in look({**HOE, "Gemfile": ""}).fast] == [f"{GEMS} bundle exec rake test"]


def test_without_a_task_the_test_files_are_run_themselves(look: Look) -> None:
    helped = {"test/helper.rb": "require 'test/unit'\n", "test/a_test.rb": "require_relative 'helper'\n"}
    assert [step.run for step in look(helped).fast] == [RUBY]


def test_specs_are_run_by_rspec_and_counted_where_the_project_has_the_gem_for_it(look: Look) -> None:
    specs = {".rspec": "--require spec_helper\n", "spec/x_spec.rb": ""}
    (alone,) = look(specs).ecosystems
    assert [(step.run, step.report) for step in alone.fast] == [("rspec", "plain")]
    assert (alone.evidence, alone.test_side) == (".rspec", ("spec/**",))
    assert [step.run for step in look({**specs, "Rakefile": "task :spec\n"}).fast] == ["rake spec"]
    (step,) = look({"Rakefile": "", "Gemfile": "gem 'rspec_junit_formatter'\n"}).fast
    assert step.run == f"{GEMS} bundle exec rspec --format RspecJunitFormatter --out rspec.xml"
    assert (step.report, step.min_tests) == ("junit:rspec.xml", 1)


def test_ruby_files_that_nothing_would_run_are_no_tests(look: Look) -> None:
    assert look({"test/a_test.rb": "puts 1\n"}).fast == ()


@pytest.mark.parametrize(
    ("files", "install", "network", "key", "notes"),
    [
        ({"Gemfile.lock": ""}, "bundle install", Network.full, ("Gemfile", "Gemfile.lock"), 0),
        (
            {"x.gemspec": "", "lib/x/version.rb": ""}, "bundle install", Network.full,
            ("Gemfile", "x.gemspec", "lib/x/version.rb"), 1,
        ),
        (
            {"Gemfile.lock": "", "vendor/cache/a-1.gem": ""}, "bundle install --local", Network.none,
            ("Gemfile", "Gemfile.lock", "vendor/cache/*.gem"), 0,
        ),
    ],
)  # fmt: skip
def test_a_gemfile_becomes_the_set_up(
    look: Look, files: Mapping[str, str], install: str, network: Network, key: tuple[str, ...], notes: int
) -> None:
    (found,) = look({**RAKE, "Gemfile": "", **files}).ecosystems
    assert found.setup is not None
    assert (found.setup.run, found.setup.network, found.setup.key) == (f"{GEMS} {install}", network, key)
    assert [step.run for step in found.fast] == [f"{GEMS} bundle exec rake test"]
    assert (found.test_side, len(found.notes)) == (("test/**",), notes)


@pytest.mark.parametrize(
    ("files", "name", "run", "report"),
    [
        (
            {"meson.build": "project('x', 'c')\nsubdir('tests')\n", "tests/meson.build": "  test('one', exe)\n"},
            "meson", "meson setup .becket-built && meson test -C .becket-built --print-errorlogs",
            "junit:.becket-built/meson-logs/testlog.junit.xml",
        ),
        ({"CMakeLists.txt": "enable_testing()\nadd_test(NAME a COMMAND a)\n"}, "cmake", CMAKE + CTEST, "junit:.becket-built/report.xml"),  # noqa: E501
        (
            {
                "CMakeLists.txt": 'option(X_BUILD_TESTS "Build them" OFF)\noption(TESTS "x" ON)\n',
                "tests/CMakeLists.txt": "gtest_discover_tests(x)\n",
                "Makefile": "test:\n\t./own\n",
            },
            "cmake", CMAKE.replace("built &&", "built -DX_BUILD_TESTS=ON &&") + CTEST, "junit:.becket-built/report.xml",
        ),
        ({"configure": "", "Makefile.in": "check: check-am\n"}, "autotools", "./configure && make check", "plain"),
        (
            {"configure.ac": "", "tests/Makefile.am": "TESTS = a\n"},
            "autotools", "autoreconf -fi && ./configure && make check", "plain",
        ),
        ({"Makefile": "check: a\n\t./a\n", "a.c": ""}, "make", "make check", "plain"),
        ({"Makefile": "check: a\n\t./a\ntest:\n\t./b\n"}, "make", "make test", "plain"),
    ],
)  # fmt: skip
def test_builds(look: Look, files: Mapping[str, str], name: str, run: str, report: str) -> None:
    (found,) = look(files).ecosystems
    (step,) = found.fast
    assert (found.name, step.run, step.report) == (name, run, report)
    assert step.min_tests == int(report != "plain")


@pytest.mark.parametrize(
    "files",
    [
        {"CMakeLists.txt": "project(x)\n# add_test(a)\n"},
        {"meson.build": "project('x')\nfoo_test = 1\n"},
        {"configure": "", "Makefile.in": "all:\n\tcc x.c\n"},
        {"Makefile": "check:\n\t@echo nothing\n"},
    ],
)
def test_a_build_without_tests_is_no_gate(look: Look, files: Mapping[str, str]) -> None:
    assert look(files).fast == ()


def test_a_build_gives_way_to_a_better_finding(look: Look) -> None:
    """An extension module of Python is tested by pytest."""
    cmake = {"CMakeLists.txt": "add_test(NAME a COMMAND a)\n"}
    assert [found.name for found in look({**cmake, "tests/test_a.py": ""}).ecosystems] == ["python"]


def test_a_build_speaks_for_its_folders(look: Look) -> None:
    files = {"CMakeLists.txt": "add_test(NAME a COMMAND a)\n", "lib/Makefile": "test:\n\t./t\n"}
    assert [found.name for found in look(files).ecosystems] == ["cmake"]


def test_a_build_in_a_folder(look: Look) -> None:
    (found,) = look({"core/CMakeLists.txt": "add_test(NAME a COMMAND a)\n"}).ecosystems
    assert found.fast[0].run.startswith("cd core && cmake ")
    assert found.fast[0].report == "junit:core/.becket-built/report.xml"


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        (RAKE, ["rake"]),
        ({**RAKE, "Gemfile": ""}, ["bundle"]),
        ({"CMakeLists.txt": "add_test(NAME a COMMAND a)\n"}, ["cmake"]),
        ({"meson.build": "test('a', a)\n"}, ["meson", "ninja"]),
    ],
)
def test_missing_tools_come_with_their_cure(
    tree: Callable[..., Path], tools: Callable[..., Tools], files: Mapping[str, str], missing: list[str]
) -> None:
    (found,) = detect(tree(files), tools()).ecosystems
    assert [item.tool for item in found.missing] == missing
    assert all(item.mend.startswith("sudo apt-get install") for item in found.missing)
