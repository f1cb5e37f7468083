"""Go, cargo, node, Maven, Gradle and make: what is proposed, and what only looks like a test command."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import Network
from becket.parts.init.detect import Detected, detect
from becket.parts.init.ecosystem import Tools

Look = Callable[[Mapping[str, str]], Detected]

GO_CACHE = 'GOMODCACHE="$PWD/.gomodcache"'
CARGO_HOME = 'CARGO_HOME="$PWD/.cargo-home"'
CARGO_STUBS = "find . -name Cargo.toml -execdir sh -c 'mkdir -p src && touch src/lib.rs' ';'"
CARGO_NO_STUBS = "find . -path ./.cargo-home -prune -o -name src -prune -exec rm -r {} +"
CRATE = "[package]\nname = 'x'\n"

OWN_PNPM = "NPM_CONFIG_MANAGE_PACKAGE_MANAGER_VERSIONS=false pnpm_config_pm_on_fail=ignore "


def package(test: str | None = None, **more: object) -> str:
    """A package.json with this test script."""
    return json.dumps({"scripts": {"test": test} if test is not None else {}, **more})


@pytest.mark.parametrize(
    ("files", "prefix", "setup"),
    [
        ({}, "", None),
        ({"go.sum": "x v1 h1:\n", "vendor/modules.txt": "# x\n"}, "", None),
        ({"go.sum": "x v1 h1:\n"}, f"{GO_CACHE} ", f"GOFLAGS=-modcacherw {GO_CACHE} go mod download"),
    ],
)
def test_go(look: Look, files: Mapping[str, str], prefix: str, setup: str | None) -> None:
    (found,) = look({"go.mod": "module x\n", "a_test.go": "", **files}).ecosystems
    assert (found.name, found.evidence) == ("go", "go.mod")
    assert [(step.name, step.run, step.report) for step in found.fast] == [
        ("go_test", f"{prefix}go test -json ./...", "go")
    ]
    assert [step.run for step in found.slow] == [f"{prefix}go vet ./..."]
    assert (found.setup and found.setup.run) == setup
    assert "**/*_test.go" in found.test_side
    assert found.notes == ()


def test_go_without_tests_is_said(look: Look) -> None:
    assert "red until" in look({"go.mod": "module x\n", "main.go": ""}).ecosystems[0].notes[0]


@pytest.mark.parametrize(
    ("files", "run", "setup"),
    [
        ({"Cargo.toml": CRATE}, "cargo test --no-fail-fast", None),
        ({"Cargo.toml": CRATE + "[workspace]\n"}, "cargo test --no-fail-fast --workspace", None),
        ({"Cargo.toml": "[workspace]\nmembers = ['a']\n"}, "cargo test --no-fail-fast", None),
        ({"Cargo.toml": CRATE, "Cargo.lock": '[[package]]\nname = "x"\n'}, "cargo test --no-fail-fast", None),
        (
            {"Cargo.toml": CRATE, "Cargo.lock": '[[package]]\nname = "y"\nsource = "registry"\n'},
            f"{CARGO_HOME} cargo test --no-fail-fast",
            f"{CARGO_STUBS} && {CARGO_HOME} cargo fetch --locked && {CARGO_NO_STUBS}",
        ),
    ],
)
def test_cargo(look: Look, files: Mapping[str, str], run: str, setup: str | None) -> None:
    (found,) = look(files).ecosystems
    assert [(step.run, step.report) for step in found.fast] == [(run, "cargo")]
    assert (found.setup and found.setup.run) == setup


def test_a_cargo_file_that_is_no_crate_and_a_crate_without_its_lock(look: Look) -> None:
    assert look({"Cargo.toml": "[profile.release]\n"}).ecosystems == ()
    (found,) = look({"Cargo.toml": CRATE + "[dependencies]\nserde = '1'\n"}).ecosystems
    assert "cargo generate-lockfile" in found.notes[0]


@pytest.mark.parametrize(
    ("script", "name", "run", "report"),
    [
        ("mocha", "npm_test", "npm test", "plain"),
        ("jest --coverage", "npm_test", "CI=true npm test", "plain"),
        ("react-scripts test", "npm_test", "CI=true npm test", "plain"),
        ("node --test", "node_test", "node --test --test-reporter=tap", "tap"),
        ("node --test test/*.js", "node_test", "node --test --test-reporter=tap test/*.js", "tap"),
        ("node --import=tsx --test src", "node_test", "node --import=tsx --test --test-reporter=tap src", "tap"),
        ("node --test --test-reporter=tap", "node_test", "node --test --test-reporter=tap", "tap"),
        ("node --test --test-reporter=spec", "npm_test", "npm test", "plain"),
        ("npm run build && node --test", "npm_test", "npm test", "plain"),
        ("node --test-only x.js", "npm_test", "npm test", "plain"),
    ],
)
def test_node_scripts(look: Look, script: str, name: str, run: str, report: str) -> None:
    (found,) = look({"package.json": package(script)}).ecosystems
    (step,) = found.fast
    assert (found.name, step.name, step.run, step.report) == ("npm", name, run, report)
    assert step.min_tests == int(report == "tap")


@pytest.mark.parametrize(
    ("scripts", "run"),
    [
        ({"posttest": "npx aud --production", "test": "npm run tests-only"}, "npm run tests-only"),
        ({"posttest": "npx npm@'>= 10.2' audit", "test": "npm run a && npm run b"}, "npm test --ignore-scripts"),
        ({"pretest": "npm run lint", "posttest": "npx aud", "test": "npm run tests-only"}, "npm run tests-only"),
        ({"pretest": "tsc", "posttest": "npm audit", "test": "tape"}, "npm run pretest && npm test --ignore-scripts"),
        ({"posttest": "npm run check", "check": "snyk test", "test": "npm run t"}, "npm run t"),
        ({"posttest": "npx aud", "test": "npm run t", "pret": "x"}, "npm run t --ignore-scripts"),
    ],
)  # fmt: skip
def test_scripts_around_the_tests_that_need_the_network_are_left_out_and_said(
    look: Look, scripts: dict[str, str], run: str
) -> None:
    scripts = {"tests-only": "tape t.js", "t": "tape t.js", **scripts}
    found = look({"package.json": json.dumps({"scripts": scripts})})
    assert [step.run for step in found.fast] == [run]
    (said,) = found.ecosystems[0].comments.values()
    assert f"`posttest` ({scripts['posttest']}) of package.json" in said


def test_a_pinned_pnpm_is_not_fetched_at_each_gate(look: Look) -> None:
    """In capitals: pnpm takes variables that begin with `npm_` away from the scripts, which may call it again."""
    files = {"packageManager": "pnpm@9.1.0+sha512.1", "scripts": {"test": "pnpm run a", "a": "tape", "lint": "x"}}
    found = look({"package.json": json.dumps(files)})
    assert [step.run for step in found.fast + found.slow] == [f"{OWN_PNPM}pnpm test", f"{OWN_PNPM}pnpm run lint"]
    assert "The project names pnpm@9.1.0:" in found.ecosystems[0].comments[found.fast[0].run]


@pytest.mark.parametrize("script", ["npx eslint .", "npm run lint", "npx --no-install x", "npx tsc", "node x.js"])
def test_scripts_around_the_tests_that_need_no_network_stay(look: Look, script: str) -> None:
    files = {"scripts": {"posttest": script, "test": "tape x", "lint": "eslint"}, "devDependencies": {"eslint": "9"}}
    found = look({"package.json": json.dumps(files)})
    assert [step.run for step in found.fast] == ["npm test"]
    assert found.ecosystems[0].comments == {}


def test_a_pretest_script_is_not_lost(look: Look) -> None:
    files = {"package.json": json.dumps({"scripts": {"pretest": "tsc", "test": "node --test"}})}
    assert look(files).fast[0].run == "npm test"


@pytest.mark.parametrize(
    "script",
    [
        None,
        "",
        'echo "Error: no test specified" && exit 1',
        'echo "no tests yet"',
        "exit 0",
        "true",
        "jest || true",
        "jest; exit 0",
        "mocha | tee test.log",
        "jest --watch",
        "nodemon --exec mocha",
    ],
)
def test_scripts_that_are_no_gate(look: Look, script: str | None) -> None:
    """L11: npm's default, a script that cannot fail and one that never ends prove nothing."""
    (found,) = look({"package.json": package(script)}).ecosystems
    assert found.fast == ()
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("lock", "more", "manager", "setup"),
    [
        ({"package-lock.json": "{}"}, {}, "npm", "npm ci"),
        ({"npm-shrinkwrap.json": "{}"}, {}, "npm", "npm ci"),
        ({"pnpm-lock.yaml": ""}, {}, "pnpm", "pnpm install --frozen-lockfile"),
        ({"yarn.lock": "# yarn lockfile v1\n"}, {}, "yarn", "yarn install --frozen-lockfile"),
        ({"yarn.lock": "__metadata:\n  version: 8\n"}, {}, "yarn", "yarn install --immutable"),
        ({}, {}, "npm", "npm install --no-package-lock"),
        ({}, {"packageManager": "pnpm@9.1.0"}, "pnpm", "pnpm install --no-lockfile"),
        ({"package-lock.json": "{}"}, {"packageManager": "yarn@4.0.0"}, "yarn", None),
    ],
)
def test_node_managers(
    look: Look, lock: Mapping[str, str], more: dict[str, str], manager: str, setup: str | None
) -> None:
    manifest = package("mocha", devDependencies={"mocha": "1"}, **more)
    (found,) = look({"package.json": manifest, **lock}).ecosystems
    ours = OWN_PNPM if "pnpm@" in str(more) else ""
    assert (found.name, found.fast[0].run) == (manager, f"{ours}{manager} test")
    assert (found.setup and found.setup.run) == setup
    if found.setup:
        assert found.setup.key == (*lock, "package.json")


def test_a_package_that_needs_nothing_has_no_set_up(look: Look) -> None:
    """`npm ci` makes nothing there, and a set-up that makes nothing has failed."""
    (found,) = look({"package.json": package("mocha"), "package-lock.json": "{}"}).ecosystems
    assert (found.setup, found.notes) == (None, ())


def test_the_key_holds_all_that_an_install_reads(look: Look) -> None:
    """A set-up sees its key files and nothing else."""
    manifest = {
        "workspaces": ["packages/*"],
        "dependencies": {"a": "file:./libs/a", "b": "file:vendor/b.tgz", "c": "1"},
        "scripts": {"test": "mocha", "postinstall": "patch-package"},
    }
    files = {
        "package.json": json.dumps(manifest), "package-lock.json": "{}", ".npmrc": "", "libs/a/package.json": "{}",
        "vendor/b.tgz": "", "patches/c.patch": "", "packages/x/package.json": "{}", "packages/y/README": "",
    }  # fmt: skip
    detected = look(files)
    assert detected.setup is not None
    assert detected.setup.run == "npm ci"
    assert detected.setup.key == (
        "package-lock.json", "package.json", "packages/x/package.json", "libs/a/package.json", "vendor/b.tgz",
        ".npmrc", "patches/**",
    )  # fmt: skip


def test_a_package_below_may_stand_on_the_one_above_it(look: Look) -> None:
    above = {"name": "a", "scripts": {"test": "mocha"}, "devDependencies": {"mocha": "1"}}
    below = {"name": "bench", "scripts": {"test": "mocha"}, "devDependencies": {"a": "file:../"}}
    detected = look({"package.json": json.dumps(above), "bench/package.json": json.dumps(below)})
    assert not [name for found in detected.ecosystems if found.setup for name in found.setup.key if ".." in name]


def test_a_projects_own_install_scripts_are_left_out_and_said(look: Look) -> None:
    """They need the sources, which a set-up does not have."""
    manifest = {"dependencies": {"c": "1"}, "scripts": {"test": "mocha", "prepare": "tsc", "postinstall": "node x.js"}}
    (found,) = look({"package.json": json.dumps(manifest), "package-lock.json": "{}"}).ecosystems
    assert found.setup is not None
    assert found.setup.run == "npm pkg delete scripts.postinstall scripts.prepare && npm ci"
    assert "install scripts" in found.notes[0]


@pytest.mark.parametrize(("settings", "said"), [("", True), ("nodeLinker: node-modules\n", False)])
def test_plug_and_play_is_warned_of(look: Look, settings: str, said: bool) -> None:
    files = {"package.json": package("mocha", dependencies={"c": "1"}), "yarn.lock": "", ".yarnrc.yml": settings}
    (found,) = look(files).ecosystems
    assert any("Plug'n'Play" in note for note in found.notes) is said


def test_the_manifests_of_members_and_replacements_are_part_of_the_key(look: Look) -> None:
    workspace = "[workspace]\nmembers = ['crates/*', 'a**b', '/etc']\n[dependencies]\nm = {path = 'libs/m'}\n"
    detected = look(
        {
            "Cargo.toml": CRATE + workspace, "Cargo.lock": '[[package]]\nname = "y"\nsource = "registry"\n',
            "crates/x/Cargo.toml": CRATE, "libs/m/Cargo.toml": CRATE, ".cargo/config.toml": "",
            "go.mod": "module x\nreplace y => ./libs/y\nreplace z => ../z\n", "go.sum": "x v1 h1:\n", "a_test.go": "",
            "libs/y/go.mod": "module y\n",
        }
    )  # fmt: skip
    by_name = {found.name: found.setup.key for found in detected.ecosystems if found.setup}
    assert by_name["cargo"] == (
        "Cargo.lock", "Cargo.toml", "crates/*/Cargo.toml", "libs/m/Cargo.toml", ".cargo/config.toml",
    )  # fmt: skip
    assert by_name["go"] == ("go.sum", "go.mod", "libs/y/go.mod")


def test_modules_without_a_lock_are_said(look: Look) -> None:
    (found,) = look({"package.json": package("mocha", devDependencies={"mocha": "1"})}).ecosystems
    assert "lock file" in found.notes[0]


@pytest.mark.parametrize(("lint", "slow"), [("eslint .", ["npm run lint"]), ("eslint --fix .", []), ("true", [])])
def test_lint_is_a_slow_step_unless_it_edits_files(look: Look, lint: str, slow: list[str]) -> None:
    """L17: a step that changes tracked files would make every tree unclean."""
    files = {"package.json": json.dumps({"scripts": {"test": "mocha", "lint": lint}})}
    assert [step.run for step in look(files).slow] == slow


@pytest.mark.parametrize("text", ["[]", "{", '"x"', '{"scripts": []}', '{"scripts": {"test": 5}}'])
def test_odd_package_files_propose_nothing(look: Look, text: str) -> None:
    assert look({"package.json": text}).fast == ()


@pytest.mark.parametrize(
    ("files", "executable", "run", "report"),
    [
        ({"pom.xml": "<project/>"}, (), "mvn -q -Duser.home=$HOME test", "junit:target/surefire-reports"),
        (
            {"pom.xml": "<project/>", "mvnw": ""},
            ("mvnw",),
            "./mvnw -q -Duser.home=$HOME test",
            "junit:target/surefire-reports",
        ),
        (
            {"pom.xml": "<project/>", "mvnw": ""},
            (),
            "sh ./mvnw -q -Duser.home=$HOME test",
            "junit:target/surefire-reports",
        ),
        (
            {"pom.xml": "<modules><module> a </module></modules>"},
            (),
            "mvn -q -Duser.home=$HOME test",
            "junit:**/target/surefire-reports/*.xml",
        ),
        ({"build.gradle": ""}, (), "gradle test --no-daemon", "junit:build/test-results/test"),
        (
            {"build.gradle.kts": "", "gradlew": ""},
            ("gradlew",),
            "./gradlew test --no-daemon",
            "junit:build/test-results/test",
        ),
        (
            {"settings.gradle": "include 'a'", "gradlew": ""},
            ("gradlew",),
            "./gradlew test --no-daemon",
            "junit:**/build/test-results/**/*.xml",
        ),
    ],
)
def test_maven_and_gradle(
    tree: Callable[..., Path],
    tools: Callable[..., Tools],
    files: Mapping[str, str],
    executable: tuple[str, ...],
    run: str,
    report: str,
) -> None:
    root = tree({**files, "src/test/java/ATest.java": ""})
    for name in executable:
        (root / name).chmod(0o755)
    (found,) = detect(root, tools("mvn", "gradle", "java")).ecosystems
    (step,) = found.fast
    assert (step.run, step.report, step.network) == (run, report, Network.full)
    assert "src/test/**" in found.test_side
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("makefile", "found"),
    [
        ("test:\n\t./run-tests\n", True),
        ("check test: build\n\t./run-tests\n", True),
        (".PHONY: test\ntest: unit integration\n", True),
        ("test: ; ./run-tests\n", True),
        ("test: MODE = debug\ntest:\n\t./run-tests\n", True),
        ("test::\n\t# hello\n\t./run-tests\n", True),
        (".PHONY: test\nbuild:\n\tcc x.c\n", False),
        ("test = 5\ntest := 6\ntest ::= 7\n", False),
        ("tests:\n\t./run-tests\n", False),
        ("# test:\n#\t./run\n", False),
        ("test:\n", False),
        ("test: MODE = debug\n", False),
        ("build:\n\techo test:\n", False),
        ("test:\n\t@echo no tests\n", False),
        ("test:\n\t-./run-tests\n", False),
        ("test:\n\t./run-tests || true\n", False),
    ],
)
def test_make_is_the_fallback(look: Look, makefile: str, found: bool) -> None:
    """L11: a target that cannot fail is none."""
    assert [step.run for step in look({"Makefile": makefile}).fast] == ["make test"] * found


def test_make_gives_way_to_a_better_finding(look: Look) -> None:
    files = {"Makefile": "test:\n\tpytest\n", "tests/test_a.py": ""}
    assert [found.name for found in look(files).ecosystems] == ["python"]


@pytest.mark.parametrize(
    ("files", "tool", "mend"),
    [
        ({"go.mod": ""}, "go", "sudo apt-get install -y golang-go"),
        ({"Cargo.toml": CRATE}, "cargo", "sudo apt-get install -y cargo"),
        ({"pom.xml": ""}, "mvn", "sudo apt-get install -y maven"),
        ({"pom.xml": "", "mvnw": ""}, "java", "sudo apt-get install -y default-jdk-headless"),
        ({"build.gradle": ""}, "gradle", "sudo apt-get install -y gradle"),
        ({"package.json": package("node --test")}, "node", "sudo apt-get install -y nodejs"),
        ({"Makefile": "test:\n\t./x\n"}, "make", "sudo apt-get install -y make"),
    ],
)
def test_a_missing_tool_comes_with_its_cure(
    tree: Callable[..., Path], tools: Callable[..., Tools], files: Mapping[str, str], tool: str, mend: str
) -> None:
    """L13."""
    (found,) = detect(tree(files), tools()).ecosystems
    assert [(item.tool, item.mend) for item in found.missing] == [(tool, mend)]


def test_a_path_that_is_no_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        detect(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("files", "lock"),
    [
        ({"Cargo.toml": CRATE, "src/lib.rs": ""}, '[[package]]\nname = "y"\nsource = "registry"\n'),
        ({"package.json": '{"scripts": {"test": "mocha"}, "devDependencies": {"mocha": "1"}}'}, "{}"),
        ({"Gemfile": "gem 'rake'", "Rakefile": "task :test\n"}, "GEM\n"),
        ({"pyproject.toml": '[project]\nname = "x"\n[tool.pytest.ini_options]\n'}, "version = 1\n"),
        ({"go.mod": "module x\n", "a_test.go": ""}, "example.org/y v1 h1:x\n"),
    ],
)
def test_a_lock_file_that_git_does_not_track_is_none(
    tree: Callable[[Mapping[str, str]], Path], tools: Callable[..., Tools], files: dict[str, str], lock: str
) -> None:
    names = {
        "Cargo.toml": "Cargo.lock", "package.json": "package-lock.json", "Gemfile": "Gemfile.lock",
        "pyproject.toml": "uv.lock", "go.mod": "go.sum",
    }  # fmt: skip
    name = names[next(iter(files))]
    root = tree({**files, name: lock})
    every = tools("cargo", "npm", "node", "bundle", "python3", "uv", "go")
    with_lock, without = detect(root, every), detect(root, every, frozenset(files))
    assert with_lock.setup is not None
    assert name in with_lock.setup.key
    assert without.setup is None or name not in without.setup.key
    assert "--locked" not in (without.setup.run if without.setup else "")


def test_go_files_without_a_module_are_told_the_command_that_makes_one(look: Look) -> None:
    assert look({"tool/main.go": ""}).notes == ()
    detected = look({"main.go": "", "main_test.go": ""})
    assert detected.ecosystems == ()
    assert "`go mod init NAME`" in detected.notes[0]
