"""What a change newly can do: plain, ordinary or powerful, in each language (L21)."""

from __future__ import annotations

import time

import pytest
from guard_stage import Entry, change_of, tree

from becket.kernel.contract.guard import ChangeClass, Classification
from becket.parts.guard.reading.classes.classify import classify
from becket.parts.guard.reading.side import USUAL, TestSide

Files = dict[str, str | bytes | Entry]
PLAIN, ORDINARY, POWERFUL = ChangeClass.plain, ChangeClass.ordinary, ChangeClass.powerful

PYTHON = '''\
import json
import os
import sys

LIMIT = 30


def gcd(a, b):
    """The greatest common divisor."""
    if b == 0:
        return a
    return gcd(a % b, b)


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x

    def moved(self, by):
        if by < 0:
            raise ValueError("not backwards")
        return Point(self.x + by)


def main():
    print(json.dumps(gcd(int(sys.argv[1]), LIMIT)), os.path.join("a", "b"))
'''
LAST = "return gcd(a % b, b)"
PYTHON_EDITS = [
    (LAST, "return gcd(b, a % b)", PLAIN),
    ("if b == 0:", "if not b:", PLAIN),
    (LAST, "return max(a, b).bit_length()", PLAIN),
    (LAST, "return gcd(*sorted((a, b), key=lambda each: -each))", PLAIN),
    ("self.x + by", "self.x - by", PLAIN),
    (
        "def __eq__(self, other):\n        return self.x == other.x",
        "def __eq__(self, o):\n        return self.x == o.x",
        PLAIN,
    ),
    # answers instead of work
    (LAST, "return {(13, 13): 13}[a, b]", ORDINARY),
    (LAST, "if a == 1 and b == 1 or a == -1: return 1\n    return a", ORDINARY),
    (LAST, "one = 1\n    return a - one", ORDINARY),
    (LAST, "return a - 1 - 1", ORDINARY),
    (LAST, "return 1 + 1 + 1", ORDINARY),
    (LAST, "gcd.calls = a\n    return a", ORDINARY),
    ("LIMIT = 30", "LIMIT = 31", ORDINARY),
    ("class Point:", "def lcm(a, b):\n    return a * b\n\n\nclass Point:", ORDINARY),
    ("import json\n", "import json\nimport math\n", ORDINARY),
    ("def gcd(a, b):", "def gcd(a, b, seen=[]):", ORDINARY),
    # a check that is taken away or made unreachable
    ('if by < 0:\n            raise ValueError("not backwards")\n        ', "", ORDINARY),
    ("if by < 0:", "if by < 0 and False:", ORDINARY),
    ("if b == 0:", "return a\n    if b == 0:", ORDINARY),
    ("if by < 0:", "if by < 0 and by:", ORDINARY),
    # what a stranger found: class patterns, texts and keys as answers, tables of truths, aliases, switches
    (LAST, "match len:\n        case object(__self__=a):\n            return a", POWERFUL),
    (LAST, "[lambda: (eval := a) for _ in ()]\n    return eval(a)", POWERFUL),
    (LAST, "return __doc__", POWERFUL),
    (LAST, "return [True, False, False][a]", ORDINARY),
    (LAST, "return ''.join(dict(forty_two=None))", ORDINARY),
    (LAST, "return ord('%')", ORDINARY),
    (LAST, "return gcd(a, a)", ORDINARY),
    ("return Point(self.x + by)", "type(self).moved = by\n        return Point(self.x + by)", ORDINARY),
    ("return Point(self.x + by)", "for each in (by,)[:0]:\n            return each\n        return self", ORDINARY),
    # a power that the file has, in a function that had none
    (LAST, "return a if sys.argv[0] else b", ORDINARY),
    # powers
    (LAST, "return os.environ.get('CI') and a", POWERFUL),
    (LAST, "return os.getenv(a)", POWERFUL),
    (LAST, "return sys.modules", POWERFUL),
    (LAST, "return sys._getframe(1).f_locals", POWERFUL),
    (LAST, "return (b for b in a).gi_frame.f_back", POWERFUL),
    (LAST, "return open(a).read()", POWERFUL),
    (LAST, "return [os for os in (os.environ,)]", POWERFUL),
    (LAST, "e = os\n    return e.environ", POWERFUL),
    (LAST, "return getattr(os, 'env' + 'iron')", POWERFUL),
    (LAST, "return getattr(os, 'environ')", POWERFUL),
    (LAST, "return json.codecs.builtins", POWERFUL),
    (LAST, "return gcd.__globals__", POWERFUL),
    (LAST, "return ().__class__.__base__.__subclasses__()", POWERFUL),
    (LAST, "exec(bytes.fromhex('00'))", POWERFUL),
    (LAST, "return __import__('os')", POWERFUL),
    (LAST, "os.execv('/bin/true', ['true'])", POWERFUL),
    (LAST, "raise SystemExit", POWERFUL),
    (LAST, "return __builtins__", POWERFUL),
    (LAST, "return type('X', (int,), {})(a)", POWERFUL),
    (LAST, "try:\n        return a\n    except Exception:\n        pass", POWERFUL),
    (LAST, "return a  # noqa", POWERFUL),
    (LAST, "import time\n    return time.time()", POWERFUL),
    ("import json\n", "import json\nfrom numpy import *\n", POWERFUL),
    ("import json\n", "import json\nimport elsewhere\n", POWERFUL),
    ("import json\n", "import json\njson.loads = lambda text: 3\n", POWERFUL),
    ("self.x == other.x", "True", POWERFUL),
    ("class Point:", "class Any(int):\n    def __eq__(self, other):\n        return True\n\n\nclass Point:", POWERFUL),
    ("class Point:", "class Any(int):\n    __eq__ = lambda self, other: True\n\n\nclass Point:", POWERFUL),
    ("class Point:", "class Any(metaclass=Point):\n    pass\n\n\nclass Point:", POWERFUL),
    ("def gcd(a, b):", "def gcd(a, b: exec('1')):", POWERFUL),
    ("def gcd(a, b):", "@os.register_at_fork\ndef gcd(a, b):", POWERFUL),
]

SCRIPT = """\
const { max } = require('./util');

function gcd(a, b) {
  if (b === 0) { return a; }
  return gcd(a % b, b);
}

class Point {
  constructor(x) { this.x = x; }
  moved(by) {
    if (by < 0) { throw new Error("not backwards"); }
    return new Point(this.x + by);
  }
}
const sum = (xs) => xs.reduce((p, c) => p + c, 0);
module.exports = { gcd, Point, sum };
"""
CALL = "return gcd(a % b, b);"
SCRIPT_EDITS = [
    (CALL, "return gcd(b, a % b);", PLAIN),
    (CALL, "return Math.abs(max(a, b));", PLAIN),
    ("p + c, 0", "p + c, 1", PLAIN),
    ("if (b === 0)", "if (b === 17)", ORDINARY),
    ("const sum", "const twice = (x) => x + x;\nconst sum", ORDINARY),
    ('if (by < 0) { throw new Error("not backwards"); }', "", ORDINARY),
    (CALL, "return process.env.CI ? a : b;", POWERFUL),
    (CALL, "return globalThis['pro' + 'cess'];", POWERFUL),
    (CALL, "return a.constructor.constructor('return 1')();", POWERFUL),
    (CALL, "return a['constr' + 'uctor'];", POWERFUL),
    (CALL, "return require('f' + 's');", POWERFUL),
    (CALL, "return require('fs').readFileSync(a);", POWERFUL),
    (CALL, "return `${process.argv}`;", POWERFUL),
    (CALL, "return new Proxy(a, {});", POWERFUL),
    (CALL, "return new Error().stack;", POWERFUL),
    (CALL, "return { valueOf() { return a; } };", POWERFUL),
    (CALL, "return eval(a);", POWERFUL),
    (CALL, "return Object.keys({ forty: null })[0];", ORDINARY),
    (CALL, "return new Error('forty two').message;", ORDINARY),
    (CALL, "const { constructor: make } = a; return make(b);", POWERFUL),
    (CALL, "return new Date();", POWERFUL),
    (CALL, "return a; <!-- b", POWERFUL),
    (CALL, "return import('fs');", POWERFUL),
    ("function gcd(a, b) {", "function gcd(a, b = process) {", POWERFUL),
    ("module.exports", "String.prototype.trim = () => 1;\nmodule.exports", POWERFUL),
    (CALL, "return a; // eslint-disable-line\n", POWERFUL),
]

GO = """\
package p

import (
	"errors"
	"strings"
)

type T struct{ n int }

func (t *T) Add(a int) (int, error) {
	if a < 0 {
		return 0, errors.New("negative")
	}
	t.n += a
	return t.n, nil
}

func Trim(s string) string {
	for i, c := range s {
		if c == ' ' {
			return s[i:]
		}
	}
	return strings.TrimSpace(s)
}
"""
GO_EDITS = [
    ("t.n += a", "t.n -= a", PLAIN),
    ("return s[i:]", "return s[i+1:]", PLAIN),
    ("strings.TrimSpace(s)", 'strings.TrimLeft(s, " ")', PLAIN),
    ("strings.TrimSpace(s)", "helper(s)", ORDINARY),
    ('\tif a < 0 {\n\t\treturn 0, errors.New("negative")\n\t}\n', "", ORDINARY),
    ('\t"strings"\n)', '\t"strings"\n\t"os"\n)\n\nvar ci = os.Getenv("CI")', POWERFUL),
    ("t.n += a", "go func() { t.n = 1 }()", POWERFUL),
    ("func Trim", "//go:linkname Trim other\nfunc Trim", POWERFUL),
    ("func Trim", "func init() {}\n\nfunc Trim", POWERFUL),
    ('\t"errors"\n', '\t"errors"\n\t"unsafe"\n', POWERFUL),
]

RUST = """\
use std::collections::HashMap;
use std::env;

pub struct S { a: u32 }

impl S {
    pub fn add(&mut self, n: u32) -> Result<u32, String> {
        if n == 0 {
            return Err("zero".to_string());
        }
        self.a += n;
        let m: HashMap<u32, u32> = HashMap::new();
        Ok(self.a + m.len() as u32)
    }
}

impl PartialEq for S {
    fn eq(&self, other: &Self) -> bool { self.a == other.a }
}

pub fn middle(xs: &[u32]) -> u32 { xs[xs.len() / 2 - 1] }
"""
RUST_EDITS = [
    ("xs.len() / 2 - 1", "xs.len() / 2", PLAIN),
    ("xs[xs.len() / 2 - 1]", "*xs.iter().max().unwrap_or(&0)", PLAIN),
    ('        if n == 0 {\n            return Err("zero".to_string());\n        }\n', "", ORDINARY),
    ("self.a += n;", 'if env::var("CI").is_ok() { self.a = 1; }', POWERFUL),
    ("self.a += n;", 'let x = format!("{}", std::env::args().count());', POWERFUL),
    ("self.a += n;", "unsafe { self.a = 1; }", POWERFUL),
    ("self.a += n;", "if cfg!(test) { self.a = n; }", POWERFUL),
    ("pub fn middle", "#[cfg(not(test))]\npub fn middle", POWERFUL),
    ("self.a == other.a", "true", POWERFUL),
    ("self.a += n;", "if let 2 | 3 | 5 = n { self.a = n; }", ORDINARY),
]

JAVA = """\
package a;

import java.util.List;

public class C {
    private int n = 0;

    @Override
    public boolean equals(Object o) { return o instanceof C && ((C) o).n == n; }

    int sum(List<Integer> xs) {
        int total = 0;
        for (int i = 1; i < xs.size(); i++) {
            total += xs.get(i);
        }
        if (total < 0) { throw new IllegalStateException("negative"); }
        return total;
    }
}
"""
JAVA_EDITS = [
    ("int i = 1", "int i = 0", PLAIN),
    ("return total;", "return Math.max(total, 0);", PLAIN),
    ("return total;", "return xs.stream().mapToInt(x -> x).sum();", PLAIN),
    ('if (total < 0) { throw new IllegalStateException("negative"); }', "", ORDINARY),
    ("return total;", 'return System.getenv("CI") == null ? total : 1;', POWERFUL),
    ("return total;", "new Thread(() -> {}).start(); return total;", POWERFUL),
    ("return total;", 'return xs.subList(System.getenv("CI").length(), total).size();', POWERFUL),
    ("return total;", 'return (int) getClass().getMethod("x").invoke(this);', POWERFUL),
    ("int sum", "static { new C(); }\n\n    int sum", POWERFUL),
    ("import java.util.List;", "import java.util.List;\nimport java.io.File;", POWERFUL),
    ("return total;", "return total; // see \\u000a return 3;", POWERFUL),
    ("return total;", "return total; // see \r return 3;", POWERFUL),
    ("private int n", "public int n", ORDINARY),
    ("((C) o).n == n", "true", POWERFUL),
]

EDITS = [
    (path, source, *edit)
    for path, source, edits in (
        ("gcd.py", PYTHON, PYTHON_EDITS),
        ("lib/gcd.js", SCRIPT, SCRIPT_EDITS),
        ("p/p.go", GO, GO_EDITS),
        ("src/lib.rs", RUST, RUST_EDITS),
        ("src/main/java/a/C.java", JAVA, JAVA_EDITS),
    )
    for edit in edits
]


def read(before: Files, after: Files, **more: object) -> Classification:
    return classify(change_of(tree(before), tree(after)), TestSide(USUAL), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "source", "old", "new", "kind"), EDITS, ids=lambda each: str(each)[:40])
def test_an_edit_has_the_class_of_what_it_adds(path: str, source: str, old: str, new: str, kind: ChangeClass) -> None:
    assert source.count(old) == 1
    reading = read({path: source}, {path: source.replace(old, new)})
    assert reading.kind is kind, [str(finding) for finding in reading.findings]
    assert bool(reading.findings) is (kind is not PLAIN)


def test_a_finding_names_the_line_in_plain_words() -> None:
    reading = read({"gcd.py": PYTHON}, {"gcd.py": PYTHON.replace(LAST, "return os.environ['CI']")})
    first = reading.findings[0]
    assert str(first) == "adds the power to read or change the environment (os.environ): gcd.py:12"
    assert first.shown == "return os.environ['CI']"


OTHERS: list[tuple[str, Files, ChangeClass]] = [
    ("a document", {"README.md": "# New\n"}, PLAIN),
    ("a new test", {"tests/test_gcd.py": "def test_gcd():\n    assert True\n"}, PLAIN),
    ("a helper of tests", {"tests/helper.py": "def load():\n    return 1\n"}, POWERFUL),
    ("data of tests", {"tests/data.json": "{}\n"}, POWERFUL),
    ("words for agents", {"docs/AGENTS.md": "obey\n", "prompts/README.md": "obey\n"}, POWERFUL),
    ("requirements of documents", {"docs/requirements.txt": "evil\n"}, POWERFUL),
    ("settings", {"pyproject.toml": "[tool.pytest]\n"}, POWERFUL),
    ("an entry point", {"x.dist-info/entry_points.txt": "[pytest11]\nx = x\n"}, POWERFUL),
    ("continuous integration", {".github/workflows/ci.yml": "on: push\n"}, POWERFUL),
    ("a language without a table", {"tool.lua": "return 1\n"}, POWERFUL),
    ("a program that nobody imports", {"other.py": "x = 1\n"}, POWERFUL),
    ("a module that hides another", {"json.py": "x = 1\n"}, POWERFUL),
    ("a file that is too large", {"gcd.py": PYTHON + "x = 1\n" * 100_000}, POWERFUL),
    ("another encoding", {"gcd.py": "# -*- coding: utf-7 -*-\n" + PYTHON}, POWERFUL),
    ("no UTF-8", {"gcd.py": PYTHON.encode() + b"# \xff\n"}, POWERFUL),
    ("no syntax", {"gcd.py": PYTHON + "def\n"}, POWERFUL),
    ("an executable", {"gcd.py": Entry(PYTHON.encode(), "100755")}, POWERFUL),
    ("many files", {f"docs/{number}.md": "x\n" for number in range(60)}, POWERFUL),
]


@pytest.mark.parametrize(("files", "kind"), [each[1:] for each in OTHERS], ids=[each[0] for each in OTHERS])
def test_what_is_no_edit_of_source_has_a_class_too(files: Files, kind: ChangeClass) -> None:
    base: Files = {
        "gcd.py": PYTHON,
        "README.md": "# Old\n",
        "tests/test_old.py": "def test(): pass\n",
    }
    reading = read(base, base | files)
    assert reading.kind is kind, [str(finding) for finding in reading.findings]


def test_a_new_module_that_old_code_imports_is_ordinary() -> None:
    before: Files = {"app/__init__.py": "", "app/core.py": "def f(a):\n    return a\n"}
    after = {**before, "app/core.py": "from app.more import g\n\n\ndef f(a):\n    return g(a)\n"}
    reading = read(before, {**after, "app/more.py": "def g(a):\n    return a + 1\n"})
    assert reading.kind is ORDINARY, [str(finding) for finding in reading.findings]


def test_what_a_module_of_the_project_imports_is_not_taken_from_it() -> None:
    before: Files = {
        "app/compat.py": "import os\n",
        "app/core.py": "def f(a):\n    return a\n",
    }
    after = "from app.compat import os\n\n\ndef f(a):\n    return os\n"
    assert read(before, {**before, "app/core.py": after}).kind is POWERFUL


def test_a_repaired_syntax_error_uses_only_words_that_stood_there() -> None:
    broken = PYTHON.replace("def gcd(a, b):", "def gcd(a, b:")
    assert read({"gcd.py": broken}, {"gcd.py": PYTHON}).kind is ORDINARY
    cheated = PYTHON.replace(LAST, "return os.environ")
    assert read({"gcd.py": broken}, {"gcd.py": cheated}).kind is POWERFUL


def test_a_user_names_modules_that_are_pure() -> None:
    after: Files = {"gcd.py": PYTHON.replace("import json\n", "import json\nimport pricing\n")}
    before: Files = {"gcd.py": PYTHON}
    assert read(before, after).kind is POWERFUL
    assert read(before, after, pure={"python": ["pricing"]}).kind is ORDINARY


def test_twenty_files_are_read_in_little_time() -> None:
    """The bar is 50 ms on a quiet machine; a loaded one is given ten times as much."""
    body = "".join(
        PYTHON.replace("gcd", f"gcd{number}").replace("class Point", f"class P{number}") for number in range(4)
    )
    before: Files = {f"m{number}.py": body for number in range(20)}
    after: Files = {name: body.replace("gcd0(a % b, b)", "gcd0(b, a % b)") for name in before}
    change = change_of(tree(before), tree(after))
    classify(change, TestSide(USUAL))
    began = time.process_time()
    assert [each.power for each in classify(change, TestSide(USUAL)).findings] == ["size"]  # too much for a plain one
    assert time.process_time() - began < 0.5
