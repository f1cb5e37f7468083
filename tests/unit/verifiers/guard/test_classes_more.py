"""The same three classes in Ruby, C, C++, C# and PHP: each is a table and a grammar (L21)."""

from __future__ import annotations

import pytest
from guard_stage import Entry, change_of, tree

from becket.kernel.contract.guard import ChangeClass, Classification
from becket.parts.guard.reading.classes.classify import classify
from becket.parts.guard.reading.classes.readers import readers_for
from becket.parts.guard.reading.languages import language_for, language_of
from becket.parts.guard.reading.languages.treesitter import parse
from becket.parts.guard.reading.side import USUAL, TestSide

Files = dict[str, str | bytes | Entry]
PLAIN, ORDINARY, POWERFUL = ChangeClass.plain, ChangeClass.ordinary, ChangeClass.powerful

RUBY = """\
require 'set'

module Shapes
  LIMIT = 30

  class Point
    attr_reader :x

    def initialize(x)
      @x = x
    end

    def ==(other)
      x == other.x
    end

    def moved(by)
      raise ArgumentError, "not backwards" if by < 0
      Point.new(@x + by)
    end

    def gcd(a, b)
      return a if b == 0
      gcd(a % b, b)
    end

    def names(xs)
      xs.map { |each| each.to_s }.join(",")
    end
  end
end
"""
LAST = "gcd(a % b, b)"
RUBY_EDITS = [
    (LAST, "gcd(b, a % b)", PLAIN),
    ("if b == 0", "if b.zero?", PLAIN),
    ("each.to_s }", "each.to_s.strip }", PLAIN),
    ("xs.map { |each| each.to_s }", "xs.compact.map(&:to_s)", PLAIN),
    ("@x + by", "@x - by", PLAIN),
    (LAST, "c = [a, b].max\n      gcd(c, a % b)", PLAIN),
    ("def ==(other)\n      x == other.x", "def ==(o)\n      x == o.x", PLAIN),
    (LAST, "a == 12 ? 4 : gcd(b, a % b)", ORDINARY),
    (LAST, "helper(a, b)", ORDINARY),
    (LAST, "@seen = a", ORDINARY),
    ("LIMIT = 30", "LIMIT = 31", ORDINARY),
    ('raise ArgumentError, "not backwards" if by < 0\n', "\n", ORDINARY),
    ("    def names(xs)", "    def lcm(a, b)\n      a * b\n    end\n\n    def names(xs)", ORDINARY),
    ("require 'set'\n", "require 'set'\nrequire 'json'\n", ORDINARY),
    (LAST, "ENV['CI'] ? a : b", POWERFUL),
    (LAST, "::ENV.fetch('CI')", POWERFUL),
    (LAST, "eval('a')", POWERFUL),
    (LAST, "a.send('g' + 'cd', b)", POWERFUL),
    (LAST, "Object.const_get('EN' + 'V')", POWERFUL),
    (LAST, "`ls`", POWERFUL),
    (LAST, '"#{`ls`}"', POWERFUL),
    (LAST, "a.then { |b| system(b) }", POWERFUL),
    (LAST, "a.max(ENV).min", POWERFUL),
    (LAST, "caller.first", POWERFUL),
    (LAST, "$0", POWERFUL),
    (LAST, "File.read(a)", POWERFUL),
    (LAST, "(a rescue b)", POWERFUL),
    (LAST, "begin\n        a\n      rescue\n        b\n      end", POWERFUL),
    (LAST, "[a].each(&:instance_eval)", POWERFUL),
    (LAST, "require a", POWERFUL),
    (LAST, "%x(ls)", POWERFUL),
    (LAST, "__FILE__", POWERFUL),
    (LAST, "Object::ENV", POWERFUL),
    (LAST, "a&.public_send(:x)", POWERFUL),
    (LAST, "<<~X\n#{`ls`}\nX\n", POWERFUL),
    (LAST, "/#{`ls`}/", POWERFUL),
    (LAST, ':"a#{`ls`}"', POWERFUL),
    (LAST, "BEGIN { 1 }", POWERFUL),
    ("    def names(xs)", "    def String.new(x)\n      1\n    end\n\n    def names(xs)", POWERFUL),
    ("module Shapes\n", "class << String\n  def new\n    1\n  end\nend\n\nmodule Shapes\n", POWERFUL),
    (LAST, "names([a])", PLAIN),
    ("x == other.x", "true", POWERFUL),
    ("    def names(xs)", "    def method_missing(name)\n      1\n    end\n\n    def names(xs)", POWERFUL),
    ("module Shapes\n", "class String\n  def blank\n    1\n  end\nend\n\nmodule Shapes\n", POWERFUL),
    ("module Shapes\n", "at_exit { 1 }\n\nmodule Shapes\n", POWERFUL),
    ("require 'set'\n", "require 'set'\nrequire 'open3'\n", POWERFUL),
    (LAST, "a # rubocop:disable all", POWERFUL),
]

C = """\
#include <string.h>
#include <stdlib.h>
#include "own.h"

#define LIMIT 30

static int total = 0;

struct point { int x; int y; };

static int gcd(int a, int b)
{
    if (b == 0) {
        return a;
    }
    return gcd(a % b, b);
}

char *copy(const char *text, size_t size)
{
    char *made = malloc(size);
    if (made == NULL) {
        abort();
    }
    memcpy(made, text, size);
    return made;
}

int moved(struct point *p, int by)
{
    assert(by > 0);
    p->x += by;
    for (int i = 1; i < by; i++) {
        p->y += i;
    }
    return p->x;
}
"""
TURN = "return gcd(a % b, b);"
C_EDITS = [
    (TURN, "return gcd(b, a % b);", PLAIN),
    ("int i = 1", "int i = 0", PLAIN),
    ("malloc(size)", "malloc(size + 1)", PLAIN),
    ("p->x += by", "p->x -= by", PLAIN),
    ("if (made == NULL)", "if (!made)", PLAIN),
    (TURN, "int rest = a % b;\n    return gcd(b, rest);", PLAIN),
    ("memcpy(made, text, size);", "memcpy(made, text, strlen(text));", PLAIN),
    (TURN, "return a == 12 ? 4 : a;", ORDINARY),
    (TURN, "return moved(0, a);", PLAIN),
    (TURN, "return helper(a, b);", ORDINARY),
    (TURN, "struct { int (*f)(const char *); } s = { .f = system };\n    return a;", POWERFUL),
    (TURN, "#include <unistd.h>\n    return a;", POWERFUL),
    (TURN, "extern char **environ;\n    return environ != 0;", POWERFUL),
    (TURN, "total = a;\n    return a;", ORDINARY),
    ("    assert(by > 0);\n", "", ORDINARY),
    ("static int total = 0;", "static int total = 1;", ORDINARY),
    ("char *copy", "static int lcm(int a, int b) { return a * b; }\n\nchar *copy", ORDINARY),
    ("#include <string.h>", "#include <string.h>\n#include <ctype.h>", ORDINARY),
    (TURN, 'return getenv("CI") ? a : b;', POWERFUL),
    (TURN, "return rand();", POWERFUL),
    (TURN, 'asm("nop");\n    return a;', POWERFUL),
    (TURN, "return ((int (*)(int))total)(a);", POWERFUL),
    (TURN, "return (*(&system))(0);", POWERFUL),
    (TURN, "exit(0);", POWERFUL),
    (TURN, "int (*f)(const char *) = system;\n    return f(0);", POWERFUL),
    (TURN, "return __LINE__;", POWERFUL),
    ("#define LIMIT 30", "#define LIMIT 31", POWERFUL),
    ("#define LIMIT 30", "#define LIMIT 30\n#define gcd(a, b) 4", POWERFUL),
    ("static int gcd", "#ifdef TESTING\nint t;\n#endif\nstatic int gcd", POWERFUL),
    ("#include <string.h>", "#include <string.h>\n#include <unistd.h>", POWERFUL),
    ("static int gcd", "__attribute__((constructor)) static int gcd", POWERFUL),
    (TURN, "return get\\\nenv(0);", POWERFUL),
]

CPP = """\
#include <algorithm>
#include <string>
#include <vector>

namespace shapes {

class Point {
 public:
  explicit Point(int x) : x_(x) {}

  bool operator==(const Point& other) const { return x_ == other.x_; }

  Point moved(int by) const {
    if (by < 0) {
      throw std::invalid_argument("not backwards");
    }
    return Point(x_ + by);
  }

 private:
  int x_ = 0;
};

int gcd(int a, int b) {
  if (b == 0) return a;
  return gcd(a % b, b);
}

int sum(const std::vector<int>& xs) {
  int total = 0;
  for (std::size_t i = 1; i < xs.size(); ++i) {
    total += xs[i];
  }
  return total;
}

}  // namespace shapes
"""
CPP_EDITS = [
    (TURN, "return gcd(b, a % b);", PLAIN),
    ("std::size_t i = 1", "std::size_t i = 0", PLAIN),
    ("x_ + by", "x_ - by", PLAIN),
    ("return total;", "return std::max(total, 0);", PLAIN),
    ("return total;", "auto at = std::max_element(xs.begin(), xs.end());\n  return *at;", PLAIN),
    ("total += xs[i];", "total += static_cast<int>(xs[i]);", PLAIN),
    ("(const Point& other) const { return x_ == other.x_; }", "(const Point& o) const { return x_ == o.x_; }", PLAIN),
    ("if (b == 0) return a;", "if (b == 17) return a;", ORDINARY),
    (TURN, "return helper(a, b);", ORDINARY),
    (TURN, "static int calls = 0;\n  return calls++ ? a : b;", ORDINARY),
    ("int x_ = 0;", "int x_ = 7;", ORDINARY),
    ("int sum(", "int lcm(int a, int b) { return a * b; }\n\nint sum(", ORDINARY),
    ('    if (by < 0) {\n      throw std::invalid_argument("not backwards");\n    }\n', "", ORDINARY),
    ("#include <vector>", "#include <vector>\n#include <map>", ORDINARY),
    (TURN, 'return std::getenv("CI") ? a : b;', POWERFUL),
    (TURN, "return static_cast<int>(time(nullptr));", POWERFUL),
    (TURN, "return std::vector<decltype(system(0))>{}.size();", POWERFUL),
    (TURN, "return ::getenv(nullptr) ? a : b;", POWERFUL),
    (TURN, "namespace s = std;\n  return s::getenv(nullptr) ? a : b;", POWERFUL),
    (TURN, "using namespace std;\n  return a;", POWERFUL),
    (TURN, "std::string s{getenv(nullptr)};\n  return a;", POWERFUL),
    (TURN, "return [](int x = rand()) { return x; }();", POWERFUL),
    (TURN, "return sum({a, b});", PLAIN),
    ("x_(x) {}", "x_(rand()) {}", POWERFUL),
    (TURN, "return reinterpret_cast<int&>(a);", POWERFUL),
    (TURN, "std::thread([] {}).detach();\n  return a;", POWERFUL),
    (TURN, "try { return a; } catch (...) { return b; }", POWERFUL),
    (TURN, 'asm("nop");\n  return a;', POWERFUL),
    ("return x_ == other.x_;", "return true;", POWERFUL),
    ("int gcd(", "bool operator<(const Point& a, const Point& b) { return true; }\n\nint gcd(", POWERFUL),
    (
        "namespace shapes {\n\nclass",
        "namespace std {\nint max(int a) { return a; }\n}\n\nnamespace shapes {\n\nclass",
        POWERFUL,
    ),
    ("#include <vector>", "#include <vector>\n#include <fstream>", POWERFUL),
    ("int gcd(", "#define sum(x) 3\nint gcd(", POWERFUL),
]

CSHARP = """\
using System;
using System.Collections.Generic;
using System.Linq;

namespace Shapes
{
    public class Point
    {
        private readonly int _x;

        public Point(int x)
        {
            _x = x;
        }

        public int X => _x;

        public override bool Equals(object other) => other is Point p && p._x == _x;

        public static bool operator ==(Point a, Point b) => a._x == b._x;

        public Point Moved(int by)
        {
            if (by < 0)
            {
                throw new ArgumentException("not backwards", nameof(by));
            }
            return new Point(_x + by);
        }

        public static int Gcd(int a, int b)
        {
            if (b == 0)
            {
                return a;
            }
            return Gcd(a % b, b);
        }

        public static int Sum(List<int> xs)
        {
            var total = 0;
            for (int i = 1; i < xs.Count; i++)
            {
                total += xs[i];
            }
            return total;
        }
    }
}
"""
TURNED = "return Gcd(a % b, b);"
CSHARP_EDITS = [
    (TURNED, "return Gcd(b, a % b);", PLAIN),
    ("int i = 1", "int i = 0", PLAIN),
    ("_x + by", "_x - by", PLAIN),
    ("return total;", "return Math.Max(total, 0);", PLAIN),
    ("return total;", "return xs.Where(x => x > 0).Sum();", PLAIN),
    (TURNED, "var rest = a % b;\n            return Gcd(b, rest);", PLAIN),
    ("Equals(object other) => other is Point p && p._x", "Equals(object o) => o is Point q && q._x", PLAIN),
    (TURNED, "return a == 12 ? 4 : a;", ORDINARY),
    (TURNED, "return Helper.Gcd(a, b);", ORDINARY),
    ("private readonly int _x;", "private readonly int _x;\n        private static int seen;", ORDINARY),
    (
        "        public static int Sum",
        "        public static int Lcm(int a, int b) => a * b;\n\n        public static int Sum",
        ORDINARY,
    ),
    ('throw new ArgumentException("not backwards", nameof(by));', "by = 0;", ORDINARY),
    ("using System.Linq;", "using System.Linq;\nusing System.Text;", ORDINARY),
    (TURNED, 'return Environment.GetEnvironmentVariable("CI") == null ? a : b;', POWERFUL),
    (TURNED, 'return System.Environment.GetEnvironmentVariable("CI") == null ? a : b;', POWERFUL),
    (TURNED, 'return global::System.IO.File.Exists("x") ? a : b;', POWERFUL),
    (TURNED, "return DateTime.Now.Year;", POWERFUL),
    (TURNED, "unsafe { int* p = &a; }\n            return a;", POWERFUL),
    (TURNED, "return typeof(Point).GetMethods().Length;", POWERFUL),
    (TURNED, "return a.GetType().Assembly.GetHashCode();", POWERFUL),
    (TURNED, "return xs?.GetType().GetHashCode() ?? a;".replace("xs", "b"), POWERFUL),
    (TURNED, "int? c = a;\n            return c?.CompareTo(b) ?? a;", PLAIN),
    (TURNED, "return Sum(new List<int> { a, b });", PLAIN),
    (TURNED, "return Sum(new List<Process>());", POWERFUL),
    (TURNED, "return new[] { a }?[Environment.TickCount] ?? b;", POWERFUL),
    (TURNED, 'return $"{Environment.MachineName}".Length;', POWERFUL),
    (TURNED, "dynamic d = a;\n            return d;", POWERFUL),
    (TURNED, "return @Environment.ProcessId;", POWERFUL),
    (TURNED, "return \\u0045nvironment.ProcessId;", POWERFUL),
    (TURNED, "try { return a; } catch { return b; }", POWERFUL),
    ("p._x == _x", "true", POWERFUL),
    ("a._x == b._x", "true", POWERFUL),
    ("        public static int Sum", "        static Point() { }\n\n        public static int Sum", POWERFUL),
    ("        public static int Sum", "#if TEST\n#endif\n        public static int Sum", POWERFUL),
    ("using System.Linq;", "using System.Linq;\nusing F = System.IO.File;", POWERFUL),
    ("using System.Linq;", "using System.Linq;\nusing Moq;", POWERFUL),
    ("        public static int Sum", "        [ModuleInitializer]\n        public static int Sum", POWERFUL),
]

PHP = """\
<?php

namespace Shapes;

use InvalidArgumentException;

const LIMIT = 30;

function gcd(int $a, int $b): int
{
    if ($b === 0) {
        return $a;
    }
    return gcd($a % $b, $b);
}

final class Point
{
    private $x;

    public function __construct(int $x)
    {
        $this->x = $x;
    }

    public function __get($name)
    {
        return $this->x;
    }

    public function moved(int $by): self
    {
        if ($by < 0) {
            throw new InvalidArgumentException('not backwards');
        }
        return new self($this->x + $by);
    }

    public function names(array $xs): string
    {
        $out = [];
        foreach ($xs as $key => $each) {
            $out[] = trim($each);
        }
        return implode(',', $out);
    }
}
"""
CALL = "return gcd($a % $b, $b);"
PHP_EDITS = [
    (CALL, "return gcd($b, $a % $b);", PLAIN),
    ("$b === 0", "$b == 0", PLAIN),
    ("$this->x + $by", "$this->x - $by", PLAIN),
    ("trim($each)", "strtolower(trim($each))", PLAIN),
    (CALL, "$rest = $a % $b;\n    return gcd($b, $rest);", PLAIN),
    ("return implode(',', $out);", "return implode(',', array_map(fn ($e) => rtrim($e), $out));", PLAIN),
    (CALL, "return \\abs($a);", PLAIN),
    (CALL, "return $a === 12 ? 4 : $a;", ORDINARY),
    (CALL, "return Helper::gcd($a, $b);", ORDINARY),
    (CALL, "return is_link($a);", POWERFUL),
    (CALL, "return 'system'($a);", POWERFUL),
    (CALL, "return [$a, 'x']();", POWERFUL),
    (CALL, "return <<<A\n{$a->b(getenv('CI'))}\nA;", POWERFUL),
    (CALL, "return X::{$a}();", POWERFUL),
    (CALL, "static $calls = 0;\n    return $calls++;", ORDINARY),
    ("$out = [];", "$this->seen = $xs;\n        $out = [];", ORDINARY),
    ("const LIMIT = 30;", "const LIMIT = 31;", ORDINARY),
    ("throw new InvalidArgumentException('not backwards');", "$by = 0;", ORDINARY),
    ("final class Point", "function lcm($a, $b) { return $a * $b; }\n\nfinal class Point", ORDINARY),
    (CALL, "return getenv('CI') ? $a : $b;", POWERFUL),
    (CALL, "return GetEnv('CI') ? $a : $b;", POWERFUL),
    (CALL, "return \\getenv('CI') ? $a : $b;", POWERFUL),
    (CALL, "return $_SERVER['argv'];", POWERFUL),
    (CALL, "return $GLOBALS['x'];", POWERFUL),
    (CALL, "return call_user_func('gcd', $a, $b);", POWERFUL),
    (CALL, "$f = 'sys' . 'tem';\n    return $f($a);", POWERFUL),
    (CALL, "return array_map('sys' . 'tem', [$a]);", POWERFUL),
    (CALL, "return $$a;", POWERFUL),
    (CALL, "return $a->$b();", POWERFUL),
    (CALL, "return new $a();", POWERFUL),
    (CALL, "return include $a . '.php';", POWERFUL),
    (CALL, "return eval($a);", POWERFUL),
    (CALL, "return `ls`;", POWERFUL),
    (CALL, "return \"{$_ENV['CI']}\";", POWERFUL),
    (CALL, "return @$a[0];", POWERFUL),
    (CALL, "exit(0);", POWERFUL),
    (CALL, "return time();", POWERFUL),
    (CALL, "try { return $a; } catch (\\Throwable $e) { return $b; }", POWERFUL),
    ("return $this->x;\n", "return 1;\n", POWERFUL),
    (
        "    public function names",
        "    public function __call($n, $a) { return 1; }\n\n    public function names",
        POWERFUL,
    ),
    (
        "use InvalidArgumentException;",
        "use InvalidArgumentException;\nuse Symfony\\Component\\Process\\Process;",
        POWERFUL,
    ),
]

EDITS = [
    (path, source, *edit)
    for path, source, edits in (
        ("lib/shapes.rb", RUBY, RUBY_EDITS),
        ("src/shapes.c", C, C_EDITS),
        ("src/shapes.cpp", CPP, CPP_EDITS),
        ("src/Point.cs", CSHARP, CSHARP_EDITS),
        ("src/Point.php", PHP, PHP_EDITS),
    )
    for edit in edits
]


def read(before: Files, after: Files) -> Classification:
    return classify(change_of(tree(before), tree(after)), TestSide(USUAL))


@pytest.mark.parametrize(("path", "source", "old", "new", "kind"), EDITS, ids=lambda each: str(each)[:40])
def test_an_edit_has_the_class_of_what_it_adds(path: str, source: str, old: str, new: str, kind: ChangeClass) -> None:
    assert source.count(old) == 1
    reading = read({path: source}, {path: source.replace(old, new)})
    assert reading.kind is kind, [str(finding) for finding in reading.findings]
    assert bool(reading.findings) is (kind is not PLAIN)


@pytest.mark.parametrize(
    ("path", "languages"),
    [("a.rb", ["Ruby"]), ("a.c", ["C"]), ("a.hpp", ["C++"]), ("a.h", ["C", "C++"]), ("a.tsx", ["JavaScript"])],
)
def test_a_suffix_says_which_tables_are_tried(path: str, languages: list[str]) -> None:
    assert [table.name for table, _ in readers_for(path)] == languages


def test_a_language_with_a_table_alone_has_no_reader_of_tests() -> None:
    assert language_of("spec/a_spec.rb") is None
    assert language_for("test.c") is None


def test_a_header_that_is_no_c_is_read_as_cpp() -> None:
    header = "#pragma once\ntemplate <typename T>\nT twice(T x) {\n  return x * x;\n}\n"
    assert read({"a.h": header}, {"a.h": header.replace("x * x", "x + x")}).kind is PLAIN
    plain = "static int new(int class) {\n  return class * class;\n}\n"
    assert read({"a.h": plain}, {"a.h": plain.replace("class * class", "class + class")}).kind is PLAIN


def test_what_a_grammar_cannot_read_is_no_obstacle_where_nothing_changed() -> None:
    source = (
        "int name(int x) {\n  FOR_EACH(x, in 3) + ) { }\n  return x;\n}\n\nint twice(int x)\n{\n  return x * x;\n}\n"
    )
    assert parse("c", source.encode()).broken
    assert read({"a.c": source}, {"a.c": source.replace("x * x", "x + x")}).kind is PLAIN
    assert read({"a.c": source}, {"a.c": source.replace("in 3", "in 4")}).kind is POWERFUL


ORDER = {
    "a.rb": ("    def moved(by)", "    def gcd(a, b)"),
    "a.c": ("char *copy", "int moved("),
    "a.cpp": ("int gcd(", "int sum("),
    "a.cs": ("        public Point Moved", "        public static int Gcd"),
    "a.php": ("    public function __get", "    public function moved"),
}
NEUTRAL = [
    ("a.rb", RUBY, ("xs.map { |each| each.to_s }", "xs.map   { |e| e.to_s } # a word")),
    (
        "a.rb",
        RUBY,
        ("    def gcd(a, b)\n      return a if b == 0\n", "    def gcd(a, c)\n      b = c\n      return a if b == 0\n"),
    ),
    ("a.c", C, ("char *made = malloc(size);", "char *made = /* new */\n        malloc( size );")),
    ("a.c", C, ("int i = 1; i < by; i++) {\n        p->y += i;", "int k = 1; k < by; k++) {\n        p->y += k;")),
    (
        "a.cpp",
        CPP,
        ("int gcd(int a, int b) {\n  if (b == 0) return a;", "int gcd(int a, int b) {\n  if (b == 0) { return a; }"),
    ),
    ("a.cs", CSHARP, ("total += xs[i];", "total += xs[ i ]; // sum")),
    (
        "a.php",
        PHP,
        (
            "$key => $each) {\n            $out[] = trim($each);",
            "$k => $e) {\n            $out[] = trim( $e ); // each",
        ),
    ),
]


@pytest.mark.parametrize(("path", "source", "edit"), NEUTRAL, ids=lambda each: str(each)[:40])
def test_formatting_comments_and_names_of_locals_are_plain(path: str, source: str, edit: tuple[str, str]) -> None:
    assert source.count(edit[0]) == 1
    reading = read({path: source}, {path: source.replace(*edit)})
    assert reading.kind is PLAIN, [str(finding) for finding in reading.findings]


@pytest.mark.parametrize(
    ("path", "source"), [("a.rb", RUBY), ("a.c", C), ("a.cpp", CPP), ("a.cs", CSHARP), ("a.php", PHP)]
)
def test_a_function_that_moved_is_plain(path: str, source: str) -> None:
    """Two functions beside each other change places."""
    first, second = ORDER[path]
    start, middle = source.index(first), source.index(second)
    end = middle + len(second) + source[middle + len(second) :].index("\n\n") if path != "a.c" else len(source)
    swapped = source[:start] + source[middle:end] + "\n\n" + source[start:middle].rstrip() + source[end:]
    reading = read({path: source}, {path: swapped})
    assert reading.kind is PLAIN, [str(finding) for finding in reading.findings]


def test_bounds_of_what_is_compiled_are_not_moved_unseen() -> None:
    source = "int f(int a) {\n#ifdef X\n  a = 1;\n#endif\n  a += 1;\n  return a;\n}\n"
    moved = source.replace("#endif\n  a += 1;\n", "  a += 1;\n#endif\n")
    assert read({"a.c": source}, {"a.c": moved}).kind is POWERFUL


def test_a_header_of_the_project_is_its_own() -> None:
    before: Files = {"src/a.c": "int f(int a) {\n  return a;\n}\n", "src/own.h": "int g(int a);\n"}
    after = {**before, "src/a.c": '#include "own.h"\nint f(int a) {\n  return g(a);\n}\n'}
    assert read(before, after).kind is ORDINARY
    elsewhere = {**before, "src/a.c": '#include "other.h"\nint f(int a) {\n  return a;\n}\n'}
    assert read(before, elsewhere).kind is POWERFUL


def test_a_setting_in_a_language_with_a_table_is_no_product_source() -> None:
    before: Files = {".php-cs-fixer.php": "<?php\nreturn 1;\n"}
    assert read(before, {".php-cs-fixer.php": "<?php\nreturn 0;\n"}).kind is POWERFUL
