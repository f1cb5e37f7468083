"""Files that decide what is run and judged: CI, hooks, gates, checkers, test runners. Most are refused as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

from becket.contract.guard import Change, ChangedFile, ChangeStatus, GuardRule, Refusal
from becket.verifiers.guard import words
from becket.verifiers.guard.gates import GatePrograms
from becket.verifiers.guard.languages.pyshape import parse
from becket.verifiers.guard.languages.shape import Unreadable
from becket.verifiers.guard.manifests import judge_manifest
from becket.verifiers.guard.paths import refused
from becket.verifiers.guard.side import SideReason, TestSide

_CONFIG = r"\.(?:config|conf)\.[cm]?[jt]sx?(?:on)?$"

_WHOLE: tuple[tuple[GuardRule, re.Pattern[str]], ...] = (
    (GuardRule.gate_definition, re.compile(r"^becket\.ya?ml$|^\.becket/")),
    (
        GuardRule.ci_config,
        re.compile(
            r"^\.(?:github|gitlab|gitea|forgejo|circleci|buildkite|teamcity|semaphore|ci|woodpecker|tekton)/"
            r"|(?:^|/)(?:\.gitlab-ci|\.travis|\.?appveyor|bitbucket-pipelines|\.drone|\.cirrus|\.woodpecker|codefresh"
            r"|buildspec|cloudbuild|azure-pipelines[\w.-]*)\.ya?ml$|(?:^|/)Jenkinsfile[\w.-]*$"
        ),
    ),
    (
        GuardRule.hooks,
        re.compile(
            r"(?:^|/)\.(?:githooks|git-hooks|husky|lefthook)/|(?:^|/)\.?lefthook(?:-local)?\.(?:ya?ml|toml|json)$"
            r"|(?:^|/)\.(?:pre-commit-(?:config|hooks)|overcommit)\.ya?ml$|(?:^|/)\.gitconfig$"
        ),
    ),
    (GuardRule.gitattributes, re.compile(r"(?:^|/)\.gitattributes$")),
    (GuardRule.submodule_changed, re.compile(r"(?:^|/)\.gitmodules$")),
    (GuardRule.lfs_pointer, re.compile(r"(?:^|/)\.lfsconfig$")),
    (
        GuardRule.test_runner_config,
        re.compile(
            r"(?:^|/)(?:\.?pytest\.(?:ini|toml)|noxfile\.py|nose\.cfg|\.noserc|\.rspec|phpunit\.xml(?:\.dist)?|testng\.xml"
            r"|babel\.config\.\w+|\.babelrc(?:\.\w+)?|\.swcrc|pip\.(?:conf|ini)|uv\.toml|mocha\.opts|\.mocharc(?:\.\w+)?|jasmine\.json|cypress\.json|bunfig\.toml|\.bazelrc|\.npmrc|\.yarnrc(?:\.yml)?"
            r"|junit-platform\.properties|nextest\.toml|mvnw(?:\.cmd)?|gradlew(?:\.bat)?)$"
            rf"|(?:^|/)(?:jest|vitest|karma|playwright|cypress|ava|wdio|nightwatch|web-test-runner|testcafe)[\w-]*{_CONFIG}"
            r"|(?:^|/)(?:jest|vitest)[.-](?:setup|workspace|preset|environment)[\w.-]*\.[cm]?[jt]s(?:on)?$"
            r"|(?:^|/)\.cargo/config(?:\.toml)?$|(?:^|/)\.mvn/|(?:^|/)gradle/wrapper/|(?:^|/)META-INF/services/org\.junit\."
        ),
    ),
    (
        GuardRule.check_config,
        re.compile(
            r"(?:^|/)(?:\.flake8|\.coveragerc|\.nycrc(?:\.\w+)?|\.c8rc(?:\.\w+)?|\.?codecov\.ya?ml|\.?pylintrc|\.?mypy\.ini|\.?ruff\.toml|pyrightconfig\.json|\.eslintrc(?:\.\w+)?|\.eslintignore"
            r"|eslint\.config\.[cm]?[jt]s|biome\.jsonc?|\.golangci\.\w+|\.?clippy\.toml|tslint\.json|\.stylelintrc(?:\.\w+)?"
            r"|\.rubocop\.ya?ml|checkstyle[\w-]*\.xml|spotbugs[\w-]*\.xml|pmd[\w-]*\.xml)$"
        ),
    ),
)
_CONFTEST = re.compile(r"(?:^|/)conftest\.py$")
_MESSAGES = {
    GuardRule.gate_definition: words.GATE_CHANGED,
    GuardRule.ci_config: words.CI_CHANGED,
    GuardRule.hooks: words.HOOKS_CHANGED,
    GuardRule.gitattributes: words.ATTRIBUTES_CHANGED,
    GuardRule.submodule_changed: words.SUBMODULE,
    GuardRule.lfs_pointer: words.LFS_CHANGED,
    GuardRule.test_runner_config: words.RUNNER_CHANGED,
    GuardRule.check_config: words.CHECKER_CHANGED,
}


def judge_settings(change: Change, side: TestSide, programs: GatePrograms) -> Iterator[Refusal]:
    for file in change.files:
        rule, path = _whole_file_rule(file)
        if rule is not None:
            asks = rule is GuardRule.test_runner_config and side.declared(path)
            yield refused(rule, path, _MESSAGES[rule], asks=asks)
        elif _CONFTEST.search(file.path) or _CONFTEST.search(file.old_path):
            yield from _conftest(file, side)
        elif programs.runs(file.old_path) and side.reason(file.old_path) in (None, SideReason.gate):
            yield refused(GuardRule.gate_definition, file.path, words.GATE_PROGRAM_CHANGED)
        else:
            yield from judge_manifest(file, programs, change.base_paths)


def _whole_file_rule(file: ChangedFile) -> tuple[GuardRule | None, str]:
    for path in dict.fromkeys((file.path, file.old_path)):
        for rule, pattern in _WHOLE:
            if pattern.search(path):
                return rule, path
    return None, file.path


def _conftest(file: ChangedFile, side: TestSide) -> Iterator[Refusal]:
    """Comments and formatting may change; what it does may not."""
    if file.status is ChangeStatus.modified and _same_code(file):
        return
    asks = side.declared(file.path) and side.declared(file.old_path)
    yield refused(GuardRule.test_runner_config, file.path, words.CONFTEST_CHANGED, asks=asks)


def _same_code(file: ChangedFile) -> bool:
    if file.same:
        return True
    try:
        return parse(file.old()) == parse(file.new())
    except (Unreadable, RecursionError):
        return False
