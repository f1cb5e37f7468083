"""The repository that the deeds are done to."""

# ruff: noqa: E501  # a file of the repository stays one text

from __future__ import annotations

from guard_stage import EXECUTABLE, Entry, tree

CORE = '''"""Sums and quotients."""

import math


def add(a, b):
    """Add two numbers.

    >>> add(1, 2)
    3
    >>> add(-1, 1)
    0
    """
    return a - b


def div(a, b):
    if b == 0:
        raise ZeroDivisionError("no")
    return a / b


def root(x):
    return math.sqrt(x)


def _unused(x):
    return x * 2
'''

TEST_CORE = '''"""Tests of the core."""

import json
import unittest

import pytest

from calc.core import add, div, root
from helpers import load

LIMIT = 10
CASES = [(1, 2, 3), (2, 2, 4)]


@pytest.fixture
def numbers():
    return [1, 2, 3]


def check_sum(values, total):
    assert sum(values) == total


def test_add():
    """Adding works."""
    result = add(1, 2)
    assert result == 3
    assert add(0, 0) == 0


@pytest.mark.parametrize(("a", "b", "total"), [(1, 1, 2), (2, 3, 5), (10, -1, 9)])
def test_add_table(a, b, total):
    assert add(a, b) == total


def test_cases():
    for a, b, total in CASES:
        assert add(a, b) == total


def test_div_by_zero():
    with pytest.raises(ZeroDivisionError, match="no"):
        div(1, 0)


def test_root(numbers):
    assert root(2) == pytest.approx(1.41421356, abs=1e-6)
    check_sum(numbers, 6)


class TestDivision(unittest.TestCase):
    def setUp(self):
        self.one = 1

    def test_half(self):
        self.assertEqual(div(self.one, 2), 0.5)
        self.assertAlmostEqual(div(1, 3), 0.333333, places=5)

    def test_names(self):
        names = load("names")
        self.assertEqual(names, ["a", "b"])
        self.assertIn("a", names)


if __name__ == "__main__":
    unittest.main()
'''

GO = """package calc

// Add adds.
func Add(a, b int) int { return a - b }

// Div divides.
func Div(a, b int) (int, error) {
	if b == 0 {
		return 0, ErrZero
	}
	return a / b, nil
}
"""

GO_TEST = """package calc

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdd(t *testing.T) {
	if got := Add(1, 2); got != 3 {
		t.Errorf("Add(1, 2) = %d, want 3", got)
	}
	require.Equal(t, 5, Add(2, 3))
}

func TestTable(t *testing.T) {
	cases := []struct {
		a, b, want int
	}{
		{1, 1, 2},
		{2, 2, 4},
	}
	for _, c := range cases {
		if got := Add(c.a, c.b); got != c.want {
			t.Fatalf("got %d, want %d", got, c.want)
		}
	}
}

func TestDiv(t *testing.T) {
	_, err := Div(1, 0)
	require.Error(t, err)
	require.ErrorIs(t, err, ErrZero)
}

func ExampleAdd() {
	fmt.Println(Add(1, 2))
	// Output: 3
}

func helper(t *testing.T) int {
	t.Helper()
	return 1
}
"""

JS = """const add = (a, b) => a - b;

function div(a, b) {
  if (b === 0) throw new Error('zero');
  return a / b;
}

module.exports = { add, div };
"""

JS_TEST = """const { add, div } = require('../src/calc');
const names = require('./names.json');

const rows = [[1, 2, 3], [2, 2, 4]];

describe('add', () => {
  beforeEach(() => {
    jest.resetModules();
  });

  it('adds', () => {
    const result = add(1, 2);
    expect(result).toBe(3);
    expect(add(0, 0)).toEqual(0);
  });

  it.each([[1, 1, 2], [2, 3, 5]])('adds %d and %d', (a, b, total) => {
    expect(add(a, b)).toBe(total);
  });

  rows.forEach(([a, b, total]) => {
    it(`row ${a}`, () => {
      expect(add(a, b)).toBe(total);
    });
  });
});

describe('div', () => {
  it('fails on zero', () => {
    expect(() => div(1, 0)).toThrow('zero');
  });

  test('is close', async () => {
    expect(div(1, 3)).toBeCloseTo(0.3333, 4);
    expect(names).toHaveLength(2);
  });
});
"""

TS = """export function clamp(x: number, low: number, high: number): number {
  return x < low ? low : x;
}
"""

TS_TEST = """import { clamp } from "./clamp";
import { describe, expect, it } from "vitest";

describe("clamp", () => {
  it("keeps what is inside", () => {
    expect(clamp(2, 1, 3)).toBe(2);
  });

  it("cuts what is above", () => {
    const result: number = clamp(9, 1, 3);
    expect(result).toBe(3);
  });
});
"""

RUST = """//! Sums.

/// Adds two numbers.
///
/// ```
/// assert_eq!(calc::add(1, 2), 3);
/// ```
pub fn add(a: i32, b: i32) -> i32 {
    a - b
}

pub fn div(a: i32, b: i32) -> Option<i32> {
    if b == 0 { None } else { Some(a / b) }
}

fn unused() -> i32 {
    7
}

pub struct Sum(pub i32);

#[cfg(any(test, feature = "std"))]
impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}", self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl From<i32> for Sum {
        fn from(sum: i32) -> Self {
            Sum(sum)
        }
    }

    const LIMIT: i32 = 10;

    fn sample() -> Vec<i32> {
        vec![1, 2, 3]
    }

    #[test]
    fn adds() {
        let result = add(1, 2);
        assert_eq!(result, 3);
        assert!(add(1, 1) == 2);
    }

    #[test]
    fn table() {
        for (a, b, want) in [(1, 1, 2), (2, 2, 4)] {
            assert_eq!(add(a, b), want);
        }
    }

    #[test]
    #[should_panic(expected = "None")]
    fn panics() {
        div(1, 0).expect("None");
    }
}
"""

RUST_TEST = """use calc::{add, div};

mod common;

#[test]
fn adds_from_outside() {
    assert_eq!(add(2, 3), 5);
    assert_eq!(add(0, 0), 0);
}

#[test]
fn divides() -> Result<(), String> {
    let half = div(4, 2).ok_or("zero")?;
    assert_eq!(half, 2);
    Ok(())
}
"""

JAVA = """package app;

public class Calc {
    public static int add(int a, int b) {
        return a - b;
    }

    public static int div(int a, int b) {
        return a / b;
    }
}
"""

JAVA_TEST = """package app;

import static org.junit.jupiter.api.Assertions.*;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CalcTest {
    private int one;

    @BeforeEach
    void prepare() {
        one = 1;
    }

    @Test
    void adds() {
        int result = Calc.add(one, 2);
        assertEquals(3, result);
        assertEquals(0, Calc.add(0, 0), "zero");
    }

    @Test
    void failsOnZero() {
        assertThrows(ArithmeticException.class, () -> Calc.div(1, 0));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void addsZero(int x) {
        assertEquals(x, Calc.add(x, 0));
    }

    private int helper() {
        return 1;
    }
}
"""

PYPROJECT = """[project]
name = "calc"
version = "1.0.0"
dependencies = ["requests>=2.0"]

[project.optional-dependencies]
test = ["pytest>=8"]

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "--strict-markers"

[tool.ruff]
line-length = 100
"""

PACKAGE = """{
  "name": "calc",
  "version": "1.0.0",
  "scripts": {
    "test": "jest",
    "build": "tsc",
    "verify-all": "jest && tsc"
  },
  "jest": {
    "testEnvironment": "node"
  },
  "dependencies": {
    "left-pad": "^1.0.0"
  },
  "devDependencies": {
    "jest": "^29.0.0"
  }
}
"""

CARGO = """[package]
name = "calc"
version = "1.0.0"
edition = "2021"

[dependencies]
libc = "0.2"
"""

POM = """<project>
  <version>1.0.0</version>
  <properties>
    <java.version>17</java.version>
    <junit.version>5.9.0</junit.version>
  </properties>
  <dependencies>
    <dependency><groupId>a</groupId><artifactId>b</artifactId><version>1.0</version></dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.0.0</version></plugin>
    </plugins>
  </build>
</project>
"""

GRADLE = """plugins {
    id 'java'
}

dependencies {
    testImplementation 'org.junit.jupiter:junit-jupiter:5.9.0'
}

test {
    useJUnitPlatform()
}
"""

MAKEFILE = """PYTEST = pytest -q
IMAGE = calc:1

check: lint
	$(PYTEST) tests

lint:
	ruff check .

image:
	docker build -t $(IMAGE) .
"""

VITE = """import { defineConfig } from "vite";

export default defineConfig({
  build: { target: "es2020" },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
"""

SHOP_TEST = """import asyncio
import unittest

import numpy as np
import pytest

from calc import core

SLOW = pytest.mark.slow
ROWS = {"one": (1, 1), "two": (2, 2)}


class Base:
    wanted = 3

    def answer(self):
        return core.add(1, 2)


class TestShop(Base):
    def test_answer(self):
        assert self.answer() == self.wanted


class ShopCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = dict(ROWS)

    def test_rows(self):
        for name, (left, right) in self.rows.items():
            with self.subTest(name=name):
                self.assertEqual(left, right)


@pytest.mark.parametrize("value", [pytest.param(1, id="one"), pytest.param(2, id="two")])
def test_values(value):
    np.testing.assert_allclose(core.root(value * value), value, rtol=1e-9)


def test_later():
    async def run():
        return core.add(2, 2)

    assert asyncio.run(run()) == 4
"""

OTHERS = {f"src/calc/part{number}.py": f"def part{number}(x):\n    return x + {number}\n" for number in range(12)}

BASE = tree(
    {
        "README.md": "# Calc\n\nIt calculates.\n",
        "LICENSE": "free\n",
        "CHANGELOG.md": "## 1.0.0\n",
        "becket.yaml": "version: 1\n",
        ".gitignore": "*.pyc\n",
        ".gitattributes": "*.png binary\n",
        ".github/workflows/ci.yml": "on: push\n",
        ".pre-commit-config.yaml": "repos: []\n",
        "Makefile": MAKEFILE,
        "pyproject.toml": PYPROJECT,
        "requirements.lock": "requests==2.31.0\n",
        "requirements-dev.txt": "pytest==8.0.0\n",
        "tox.ini": "[tox]\nenvlist = py311\n\n[testenv]\ndeps = pytest\ncommands = pytest\n\n[isort]\nprofile = black\n",
        "setup.cfg": "[metadata]\nname = calc\n\n[flake8]\nmax-line-length = 100\n",
        "scripts/gate.sh": Entry(b"#!/bin/sh\nset -e\npytest -q\n", EXECUTABLE),
        "scripts/smoke.py": "import calc\nprint(calc)\n",
        "scripts/tool.py": "import sys\n\n\ndef main():\n    return 0\n\n\nsys.exit(main())\n",
        "src/calc/__init__.py": "from calc.core import add\n",
        "src/calc/core.py": CORE,
        "src/calc/legacy.py": "def old(x):\n    return x\n",
        "src/calc/model_pb2.py": "# generated\nVERSION = 1\nFIELDS = ['a']\n",
        "src/calc/logo.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "src/calc/table.bin": b"\0\1\2\3" * 10,
        **OTHERS,
        "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef client():\n    return 1\n",
        "tests/test_core.py": TEST_CORE,
        "tests/test_old.py": "from calc.legacy import old\n\n\ndef test_old():\n    assert old(1) == 1\n",
        "tests/helpers.py": "import json\n\nWHERE = 'data'\n\n\ndef load(name):\n    return json.load(open(f'{WHERE}/{name}.json'))\n",
        "tests/data/names.json": '["a", "b"]\n',
        "tests/data/golden.txt": "1\n2\n",
        "tests/README.md": "How to test.\n",
        "tests/spec/calc_spec.rb": "describe Calc do\n  it 'adds' do\n    expect(Calc.add(1, 2)).to eq(3)\n  end\nend\n",
        "tests/test_shop.py": SHOP_TEST,
        ".coveragerc": "[report]\nfail_under = 90\n",
        "ci/pytest-ci.ini": "[pytest]\naddopts = -q\n",
        "rust/all/Cargo.toml": '[workspace]\nmembers = ["one", "two"]\n',
        "java/settings.gradle": "rootProject.name = 'calc'\ninclude ':core'\ninclude ':web'\n",
        "java/all/pom.xml": "<project><modules><module>core</module><module>web</module></modules></project>\n",
        "web/vite.config.ts": VITE,
        "web/pnpm-workspace.yaml": "packages:\n  - core\n  - shop\n",
        "locale/ar.po": 'msgid "a"\nmsgstr "b"\n',
        "go/calc.go": GO,
        "go/calc_test.go": GO_TEST,
        "go/go.mod": "module calc\n\nrequire github.com/stretchr/testify v1.8.0\n",
        "go/go.sum": "github.com/stretchr/testify v1.8.0 h1:abc\n",
        "go/testdata/in.txt": "1\n",
        "web/package.json": PACKAGE,
        "web/package-lock.json": '{"name": "calc", "version": "1.0.0"}\n',
        "web/tsconfig.json": '{\n  // strictness\n  "compilerOptions": {"strict": true, "target": "es2020"},\n}\n',
        "web/src/calc.js": JS,
        "web/src/clamp.ts": TS,
        "web/src/clamp.test.ts": TS_TEST,
        "web/test/calc.test.js": JS_TEST,
        "web/test/names.json": '["a", "b"]\n',
        "web/test/__snapshots__/calc.test.js.snap": "exports[`a 1`] = `1`;\n",
        "rust/Cargo.toml": CARGO,
        "rust/Cargo.lock": '[[package]]\nname = "calc"\nversion = "1.0.0"\n',
        "rust/src/lib.rs": RUST,
        "rust/tests/api.rs": RUST_TEST,
        "rust/tests/common/mod.rs": "pub fn sample() -> i32 {\n    1\n}\n",
        "java/pom.xml": POM,
        "java/build.gradle": GRADLE,
        "java/src/main/java/app/Calc.java": JAVA,
        "java/src/test/java/app/CalcTest.java": JAVA_TEST,
    }
)
