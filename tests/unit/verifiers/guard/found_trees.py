"""Small repositories in which the tests stand at unusual places, with what should be found there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from becket.parts.guard.reading.found.find import NOTHING_RAN, ExecutedTests
from becket.parts.guard.reading.side import USUAL


@dataclass(frozen=True)
class Found:
    """`tests`: path to reason; `product`: what must not be among them; `new`: paths that would come to the tests."""

    files: Mapping[str, str]
    tests: Mapping[str, str]
    product: tuple[str, ...]
    globs: tuple[str, ...] = USUAL
    commands: tuple[str, ...] = ()
    ran: ExecutedTests = NOTHING_RAN
    new: tuple[str, ...] = ()
    not_new: tuple[str, ...] = field(default=())


PYTEST = "import pytest\nfrom load_testdata import load\nfrom programs.gcd import gcd\n"
LOADER = "def load(name):\n    with open(ROOT / f'json_testcases/{name}.json') as file:\n        return read(file)\n"

PROGRAMS = Found(
    files={
        "programs/gcd.py": "def gcd(a, b):\n    return a\n",
        "programs/node.py": "class Node:\n    pass\n",
        "python_testcases/test_gcd.py": PYTEST,
        "python_testcases/load_testdata.py": LOADER,
        "python_testcases/node.py": "class Node:\n    pass\n",
        "json_testcases/gcd.json": "[[1, 2], 1]\n",
        "json_testcases/lcm.json": "[[1, 2], 2]\n",
        "tester.py": "from programs.gcd import gcd\n",
        "README.md": "Programs\n",
    },
    globs=("python_testcases/test_*.py",),
    tests={
        "python_testcases/test_gcd.py": "declared",
        "python_testcases/load_testdata.py": "only-from-tests",
        "python_testcases/node.py": "sits-with",
        "json_testcases/gcd.json": "only-from-tests",
        "json_testcases/lcm.json": "only-from-tests",
    },
    product=("programs/gcd.py", "programs/node.py", "tester.py", "README.md"),
    new=("json_testcases/new.json", "python_testcases/helper.py", "python_testcases/deep/x.txt"),
    not_new=("programs/lcm.py", "notes.json", "load_testdata.py"),
)
FLAT = Found(
    files={
        "calc.py": "def add(a, b):\n    return a - b\n",
        "helpers.py": "from calc import add\n",
        "load_testdata.py": "ROWS = open('rows.csv')\n",
        "test_calc.py": "from calc import add\nfrom load_testdata import ROWS\nimport helpers\n",
        "rows.csv": "1,2,3\n",
        "pyproject.toml": "[project]\n",
    },
    tests={"test_calc.py": "declared", "load_testdata.py": "only-from-tests", "rows.csv": "only-from-tests"},
    product=("calc.py", "helpers.py", "pyproject.toml"),
    not_new=("more.py", "more.csv"),
)
PACKAGES = Found(
    files={
        "shop/__init__.py": "",
        "shop/models.py": "class Cart:\n    pass\n",
        "shop/views.py": "from shop.models import Cart\nfrom . import testing\n",
        "shop/tests.py": "from django.test import TestCase\nfrom shop.models import Cart\n",
        "shop/testing.py": "import unittest\n\ndef cart_for_tests():\n    return 1\n",
        "shop/test_support.py": "from unittest import mock\nfrom shop.models import Cart\n",
        "shop/rates.json": "{}",
        "shop/money.py": "RATES = load('rates.json')\n",
        "manage.py": "import shop\n",
    },
    globs=("tests/**",),
    tests={"shop/tests.py": "framework", "shop/test_support.py": "framework"},
    product=("shop/models.py", "shop/views.py", "shop/testing.py", "shop/rates.json", "shop/money.py", "manage.py"),
    not_new=("shop/new.py", "shop/new.json"),
)
DOCTESTS = Found(
    files={
        "sort.py": "import doctest\n\ndef sort(x):\n    '''\n    >>> sort([])\n    []\n    '''\n    return x\n",
        "search.py": "def search(x):\n    return x\n",
        "suite/run_them.py": "from sort import sort\n",
    },
    ran=ExecutedTests(
        frozenset({"sort.py::sort.sort", "suite/run_them.py::check", "suite/run_them.py"}),
        frozenset({("sort.py::sort.sort", "sort.py"), ("suite/run_them.py::check", "suite/run_them.py")}),
    ),
    tests={"suite/run_them.py": "ran"},
    product=("sort.py", "search.py"),
    new=("suite/rows.json",),
)
OWN_FRAMEWORK = Found(
    files={
        "src/hypothesis/__init__.py": "from hypothesis.core import given\n",
        "src/hypothesis/core.py": "import hypothesis.settings\n",
        "src/hypothesis/settings.py": "",
        "tests/test_core.py": "from hypothesis import given\n",
    },
    tests={"tests/test_core.py": "declared"},
    product=("src/hypothesis/__init__.py", "src/hypothesis/core.py", "src/hypothesis/settings.py"),
)
ABS = "import pytest\n\ndef absolute(x):\n    return x\n\ndef test_abs():\n    assert absolute(1) == 1\n"
LCM = "import unittest\n\ndef lcm(a, b):\n    return a\n\nclass TestLcm(unittest.TestCase):\n    pass\n"
WITHIN = Found(
    files={
        "maths/abs.py": ABS,
        "maths/gcd.py": ABS.replace("import pytest", ""),
        "maths/lcm.py": LCM,
        "maths/sums.js": "export const add = 1;\nif (import.meta.vitest) {\n  it('adds', () => {});\n}\n",
        "quality/sums.py": "import unittest\n\nclass SumsHold(unittest.TestCase):\n    pass\n",
    },
    ran=ExecutedTests(frozenset({"maths/abs.py::test_abs"})),
    tests={"maths/abs.py": "ran", "quality/sums.py": "framework"},
    product=("maths/gcd.py", "maths/lcm.py", "maths/sums.js"),
)
PLUGIN = Found(
    files={
        "src/pytest_tidy/plugin.py": "import pytest\n\ndef pytest_addoption(parser):\n    pass\n",
        "lib/rack/mock_request.rb": "class MockRequest; end\n",
        "tests/test_plugin.py": "import pytest_tidy.plugin\nfrom helping.rooms import room\n",
        "helping/rooms.py": "import pytest\n\n@pytest.fixture\ndef room():\n    return 1\n",
        "bin/tidy": "#!/bin/sh\n",
        "tests/test_bin.py": "run('bin/tidy', '../lib/rack/mock_request')\n",
    },
    tests={
        "tests/test_plugin.py": "declared",
        "tests/test_bin.py": "declared",
        "helping/rooms.py": "only-from-tests",
    },
    product=("src/pytest_tidy/plugin.py", "lib/rack/mock_request.rb", "bin/tidy"),
)
NODE = Found(
    files={
        "index.js": "export default x => x;\n",
        "test.js": "import test from 'ava';\nimport slug from './index.js';\nimport rows from './rows.mjs';\n",
        "lib/clamp.js": "exports.clamp = x => x;\n",
        "lib/clamp_checks.js": "describe('clamp', () => {\n  it('cuts', () => {});\n});\n",
        "lib/words.json": '["a"]',
        "lib/words.js": "module.exports = require('./words.json');\n",
        "cases/one.json": "{}",
        "e2e/run.js": "const assert = require('assert');\nfs.readFileSync('cases/one.json');\n",
        "package.json": "{}",
    },
    tests={
        "test.js": "framework",
        "lib/clamp_checks.js": "framework",
        "e2e/run.js": "framework",
        "cases/one.json": "only-from-tests",
    },
    product=("index.js", "lib/clamp.js", "lib/words.json", "lib/words.js", "package.json"),
    new=("e2e/two.js", "cases/two.json"),
    not_new=("rows.mjs", "lib/new.js"),
)
TYPESCRIPT = Found(
    files={
        "src/index.ts": "export * from './clamp.js';\n",
        "src/clamp.ts": "export const clamp = 1;\n",
        "src/clamp.test.ts": "import { it } from 'vitest';\nimport { rows } from './testRows.js';\n",
        "src/testRows.ts": "export const rows = [];\n",
        "src/testServer.ts": "export const serve = 1;\n",
        "src/main.ts": "import { serve } from './testServer';\n",
    },
    globs=("nowhere/**",),
    tests={"src/clamp.test.ts": "named", "src/testRows.ts": "only-from-tests"},
    product=("src/index.ts", "src/clamp.ts", "src/testServer.ts", "src/main.ts"),
)
GO = Found(
    files={
        "go.mod": "module example.org/m\n",
        "calc.go": 'package calc\n\nimport "fmt"\n',
        "bench.go": 'package calc\n\nimport "testing"\n\nfunc Bench(b *testing.B) {}\n',
        "calc_test.go": 'package calc\n\nimport "testing"\nimport "example.org/m/internal/testutil"\n',
        "testdata/rows.txt": "1\n",
        "internal/testutil/rows.go": 'package testutil\n\nimport "testing"\n',
        "internal/testutil/more.go": "package testutil\n",
        "internal/clock/clock.go": "package clock\n",
        "cmd/m/main.go": 'package main\n\nimport "example.org/m/internal/clock"\n',
    },
    globs=("*_test.go",),
    tests={
        "calc_test.go": "declared",
        "testdata/rows.txt": "sits-with",
        "internal/testutil/rows.go": "framework",
        "internal/testutil/more.go": "only-from-tests",
    },
    product=("go.mod", "calc.go", "bench.go", "internal/clock/clock.go", "cmd/m/main.go"),
    new=("internal/testutil/new.go",),
)
CARGO = Found(
    files={
        "Cargo.toml": "[package]\n",
        "src/lib.rs": 'pub mod shape;\n#[cfg(any(test, feature = "std"))]\nmod io;\n#[cfg(test)]\nmod checks;\n'
        "#[cfg(test)]\nmod tests {\n#[test]\nfn a() { assert!(true) }\n}\n",
        "src/io.rs": "pub fn read() {}\n",
        "src/shape.rs": "#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n",
        "src/checks.rs": "mod rows;\n#[test]\nfn c() {}\n",
        "src/checks/rows.rs": "pub const ROWS: u8 = 1;\n",
        "tests/api.rs": "mod common;\n#[test]\nfn d() {}\n",
        "tests/common/mod.rs": "pub fn rows() {}\n",
    },
    ran=ExecutedTests(frozenset({"calc:src/lib.rs::shape::tests::b", "calc:src/lib.rs::tests::a"})),
    tests={
        "src/checks.rs": "framework",
        "src/checks/rows.rs": "framework",
        "tests/api.rs": "declared",
        "tests/common/mod.rs": "declared",
    },
    product=("src/lib.rs", "src/io.rs", "src/shape.rs", "Cargo.toml"),
    commands=("touch src/lib.rs && cargo test",),
)
JAVA = Found(
    files={
        "pom.xml": "<project/>",
        "src/main/java/app/Calc.java": "package app;\n",
        "src/main/java/app/JUnitRule.java": "package app;\nimport org.junit.Rule;\n",
        "src/test/java/app/CalcTest.java": "package app;\nimport org.junit.Test;\n",
        "src/test/resources/rows.txt": "1\n",
        "checks/app/CalcChecks.java": "package app;\nimport org.junit.jupiter.api.Test;\n",
    },
    globs=("src/test/java/**",),
    tests={
        "src/test/java/app/CalcTest.java": "declared",
        "src/test/resources/rows.txt": "named",
        "checks/app/CalcChecks.java": "framework",
    },
    product=("src/main/java/app/Calc.java", "src/main/java/app/JUnitRule.java", "pom.xml"),
    new=("checks/app/Rows.java", "checks/rows.csv"),
)
RUBY = Found(
    files={
        "lib/calc.rb": "class Calc; end\n",
        "spec/calc_spec.rb": "require 'spec_helper'\nRSpec.describe Calc do\nend\n",
        "spec/spec_helper.rb": "require 'calc'\n",
        "checks/calc_checks.rb": "require 'minitest/autorun'\n",
    },
    globs=("spec/*_spec.rb",),
    tests={
        "spec/calc_spec.rb": "declared",
        "spec/spec_helper.rb": "only-from-tests",
        "checks/calc_checks.rb": "framework",
    },
    product=("lib/calc.rb",),
    new=("spec/fixtures/a.yml",),
)
OTHERS = Found(
    files={
        "src/Calc.php": "<?php class Calc {}\n",
        "checks/Calc.php": "<?php use PHPUnit\\Framework\\TestCase;\n",
        "bin/tool.sh": "echo 1\n",
        "bin/tool.bats": '@test "says one" {\n  run bin/tool.sh\n}\n',
        "src/calc.c": "int add(int a, int b) { return a; }\n",
        "verify/calc.cc": '#include <gtest/gtest.h>\n#include "calc.h"\n',
    },
    tests={"checks/Calc.php": "framework", "bin/tool.bats": "framework", "verify/calc.cc": "framework"},
    product=("src/Calc.php", "bin/tool.sh", "src/calc.c"),
)
MAKE = Found(
    files={
        "Makefile": "check: build\n\tpython3 verify_all.py\n\t./app < in.txt | diff - expected.txt\n"
        "\tpython3 app.py --check\n"
        "build:\n\tcc -o app app.c\nrelease:\n\tsh ship.sh\n",
        "verify_all.py": "from app import run\nassert run() == 1\n",
        "app.py": "def run():\n    return 1\n",
        "app.c": "int main() { return 0; }\n",
        "in.txt": "1\n",
        "expected.txt": "1\n",
        "ship.sh": "exit 1\n",
    },
    commands=("make check",),
    tests={"verify_all.py": "gate", "in.txt": "gate", "expected.txt": "gate"},
    product=("app.py", "app.c", "ship.sh", "Makefile"),
)
TITLES = Found(
    files={
        "src/calc.js": "exports.add = (a, b) => a;\n",
        "verify.js": "check('adds two small numbers', () => 1);\ncheck('takes away', () => 2);\n",
    },
    ran=ExecutedTests(frozenset({"numbers > adds two small numbers", "numbers > takes away", "src/calc.js"})),
    tests={"verify.js": "ran"},
    product=("src/calc.js",),
)
REPORTED = Found(
    files={"src/calc.js": "exports.add = 1;\n", "quality/one.js": "go(1)\n"},
    ran=ExecutedTests(frozenset({"adds"}), frozenset({("adds", "quality/one.js"), ("gone", "not/there.js")})),
    tests={"quality/one.js": "ran"},
    product=("src/calc.js",),
)
VENDORED = Found(
    files={
        "app.js": "x",
        "node_modules/ava/test.js": "const test = require('ava');\n",
        "vendor/x/x.go": 'package x\nimport "testing"\n',
    },
    tests={},
    product=("node_modules/ava/test.js", "vendor/x/x.go"),
)

TREES = {
    name.lower(): tree
    for name, tree in {
        "PROGRAMS": PROGRAMS,
        "FLAT": FLAT,
        "PACKAGES": PACKAGES,
        "DOCTESTS": DOCTESTS,
        "OWN_FRAMEWORK": OWN_FRAMEWORK,
        "WITHIN": WITHIN,
        "PLUGIN": PLUGIN,
        "NODE": NODE,
        "TYPESCRIPT": TYPESCRIPT,
        "GO": GO,
        "CARGO": CARGO,
        "JAVA": JAVA,
        "RUBY": RUBY,
        "OTHERS": OTHERS,
        "MAKE": MAKE,
        "TITLES": TITLES,
        "REPORTED": REPORTED,
        "VENDORED": VENDORED,
    }.items()
}
