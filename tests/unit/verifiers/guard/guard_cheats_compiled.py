"""Cheats in Go, Rust and Java: the guard must refuse each, by a rule that names it."""

# ruff: noqa: E501  # a row of the table stays readable when its texts stay whole

from __future__ import annotations

from guard_base import BASE, GO_TEST
from guard_honest import GOT, JT, RS, RST
from guard_stage import append, cheat, delete, move, replace, write

GO_CHECK = '\tif got := Add(1, 2); got != 3 {\n\t\tt.Errorf("Add(1, 2) = %d, want 3", got)\n\t}\n'
GOLANG = (
    cheat(
        "go: test deleted",
        "test-deleted",
        write(GOT, GO_TEST[: GO_TEST.index("func TestDiv")] + GO_TEST[GO_TEST.index("func ExampleAdd") :]),
    ),
    cheat("go: test file deleted", "test-deleted", delete(GOT)),
    cheat("go: test renamed away", "test-deleted", replace(GOT, "func TestAdd(", "func testAdd(")),
    cheat("go: skipped", "test-skipped", replace(GOT, GO_CHECK, '\tt.Skip("later")\n' + GO_CHECK)),
    cheat(
        "go: skipped when short",
        "test-skipped",
        replace(GOT, GO_CHECK, "\tif testing.Short() {\n\t\tt.SkipNow()\n\t}\n" + GO_CHECK),
    ),
    cheat("go: build tag", "test-skipped test-support-changed", write(GOT, "//go:build never\n\n" + GO_TEST)),
    cheat("go: renamed to another system", "test-deleted", move(GOT, "go/calc_windows_test.go")),
    cheat("go: moved to testdata", "test-deleted", move(GOT, "go/testdata/calc_test.go")),
    cheat("go: check removed", "test-weakened", replace(GOT, "\trequire.Equal(t, 5, Add(2, 3))\n", "")),
    cheat("go: condition changed", "test-changed", replace(GOT, "got != 3 {", "got == 3 {")),
    cheat("go: expectation changed", "test-changed", replace(GOT, "require.Equal(t, 5,", "require.Equal(t, -1,")),
    cheat(
        "go: equality to presence",
        "test-weakened",
        replace(GOT, "require.Equal(t, 5, Add(2, 3))", "require.NotNil(t, Add(2, 3))"),
    ),
    cheat("go: always true", "test-weakened", replace(GOT, "require.Equal(t, 5, Add(2, 3))", "require.True(t, true)")),
    cheat("go: error to log", "test-weakened test-changed", replace(GOT, 't.Errorf("Add', 't.Logf("Add')),
    cheat("go: early return", "test-weakened", replace(GOT, GO_CHECK, "\treturn\n" + GO_CHECK)),
    cheat("go: row removed", "test-weakened", replace(GOT, "\t\t{2, 2, 4},\n", "")),
    cheat("go: rows gone", "test-weakened", replace(GOT, "\t\t{1, 1, 2},\n\t\t{2, 2, 4},\n", "")),
    cheat("go: row changed", "test-changed", replace(GOT, "{2, 2, 4}", "{2, 2, 0}")),
    cheat(
        "go: body emptied",
        "test-emptied",
        replace(GOT, "\t_, err := Div(1, 0)\n\trequire.Error(t, err)\n\trequire.ErrorIs(t, err, ErrZero)\n", ""),
    ),
    cheat("go: example without output", "test-emptied", replace(GOT, "\t// Output: 3\n", "")),
    cheat("go: example output changed", "test-changed test-weakened", replace(GOT, "// Output: 3", "// Output: -1")),
    cheat(
        "go: TestMain that runs nothing",
        "test-support-changed",
        append(GOT, "\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n"),
    ),
    cheat(
        "go: TestMain in a new file",
        "test-support-changed early-exit",
        write(
            "go/main_test.go",
            'package calc\n\nimport (\n\t"os"\n\t"testing"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n',
        ),
    ),
    cheat("go: helper changed", "test-support-changed", replace(GOT, "\tt.Helper()\n\treturn 1\n", "\treturn 2\n")),
    cheat(
        "go: recovered",
        "test-changed test-weakened",
        replace(GOT, GO_CHECK, "\tdefer func() { recover() }()\n" + GO_CHECK),
    ),
    cheat("go: data changed", "test-support-changed", write("go/testdata/in.txt", "2\n")),
    cheat(
        "go: knows that it is tested",
        "test-detected",
        replace(
            "go/calc.go", "{ return a - b }", "{\n\tif testing.Testing() {\n\t\treturn a + b\n\t}\n\treturn a - b\n}"
        ),
    ),
    cheat("go: exit at load", "early-exit", append("go/calc.go", "\nfunc init() {\n\tos.Exit(0)\n}\n")),
    cheat(
        "go: own assert library",
        "test-runner-config",
        append("go/go.mod", "\nreplace github.com/stretchr/testify => ./fake\n"),
    ),
)

RUSTY = (
    cheat(
        "rust: test deleted",
        "test-deleted",
        replace(
            RS,
            "    #[test]\n    fn table() {\n        for (a, b, want) in [(1, 1, 2), (2, 2, 4)] {\n            assert_eq!(add(a, b), want);\n        }\n    }\n\n",
            "",
        ),
    ),
    cheat("rust: test module deleted", "test-deleted", write(RS, BASE[RS].content.decode().split("#[cfg(test)]")[0])),
    cheat(
        "rust: test module never compiled",
        "test-skipped test-deleted",
        replace(RS, "#[cfg(test)]", '#[cfg(all(test, feature = "never"))]'),
    ),
    cheat("rust: mark removed", "test-deleted", replace(RS, "    #[test]\n    fn adds()", "    fn adds()")),
    cheat(
        "rust: ignored",
        "test-skipped",
        replace(RS, "    #[test]\n    fn adds()", "    #[test]\n    #[ignore]\n    fn adds()"),
    ),
    cheat(
        "rust: ignored elsewhere",
        "test-skipped",
        replace(RST, "#[test]\nfn adds_from", '#[test]\n#[cfg_attr(unix, ignore = "x")]\nfn adds_from'),
    ),
    cheat("rust: file never compiled", "test-skipped", write(RST, "#![cfg(windows)]\n" + BASE[RST].content.decode())),
    cheat(
        "rust: should_panic added",
        "test-changed test-weakened",
        replace(RS, "    #[test]\n    fn adds()", "    #[test]\n    #[should_panic]\n    fn adds()"),
    ),
    cheat(
        "rust: expected panic removed",
        "test-weakened test-changed",
        replace(RS, '#[should_panic(expected = "None")]', "#[should_panic]"),
    ),
    cheat("rust: check removed", "test-weakened", replace(RST, "    assert_eq!(add(2, 3), 5);\n", "")),
    cheat("rust: assert true", "test-weakened", replace(RST, "assert_eq!(add(2, 3), 5)", "assert!(true)")),
    cheat(
        "rust: expectation changed",
        "test-changed",
        replace(RST, "assert_eq!(add(2, 3), 5)", "assert_eq!(add(2, 3), -1)"),
    ),
    cheat("rust: eq to ne", "test-weakened", replace(RST, "assert_eq!(add(2, 3), 5)", "assert_ne!(add(2, 3), 6)")),
    cheat(
        "rust: body emptied",
        "test-emptied",
        replace(RST, "    assert_eq!(add(2, 3), 5);\n    assert_eq!(add(0, 0), 0);\n", ""),
    ),
    cheat(
        "rust: early return",
        "test-weakened",
        replace(RST, "    assert_eq!(add(2, 3), 5);\n", "    return;\n    assert_eq!(add(2, 3), 5);\n"),
    ),
    cheat("rust: row removed", "test-weakened", replace(RS, "[(1, 1, 2), (2, 2, 4)]", "[(1, 1, 2)]")),
    cheat(
        "rust: constant changed", "test-support-changed", replace(RS, "const LIMIT: i32 = 10;", "const LIMIT: i32 = 0;")
    ),
    cheat("rust: implementation for tests changed", "test-support-changed", replace(RS, "Sum(sum)", "Sum(sum + 1)")),
    cheat(
        "rust: no longer there for tests",
        "test-support-changed test-detected",
        replace(RS, '#[cfg(any(test, feature = "std"))]', '#[cfg(all(feature = "std", not(test)))]'),
    ),
    cheat("rust: helper changed", "test-support-changed", replace("rust/tests/common/mod.rs", "    1\n", "    2\n")),
    cheat(
        "rust: tested function shadowed in the module",
        "test-support-changed",
        replace(
            RS,
            "    use super::*;\n",
            "    use super::div;\n    fn add(a: i32, b: i32) -> i32 {\n        a + b\n    }\n",
        ),
    ),
    cheat(
        "rust: example ignored",
        "test-deleted",
        replace(
            RS, "/// ```\n/// assert_eq!(calc::add(1, 2), 3);", "/// ```ignore\n/// assert_eq!(calc::add(1, 2), 3);"
        ),
    ),
    cheat(
        "rust: example made to panic",
        "test-changed",
        replace(
            RS,
            "/// ```\n/// assert_eq!(calc::add(1, 2), 3);",
            "/// ```should_panic\n/// assert_eq!(calc::add(1, 2), 3);",
        ),
    ),
    cheat(
        "rust: example changed",
        "test-changed",
        replace(RS, "/// assert_eq!(calc::add(1, 2), 3);", "/// assert_eq!(calc::add(1, 2), -1);"),
    ),
    cheat(
        "rust: knows that it is tested",
        "test-detected",
        replace(RS, "    a - b\n", "    if cfg!(test) { a + b } else { a - b }\n"),
    ),
    cheat(
        "rust: another function for tests",
        "test-detected",
        replace(RS, "pub fn add(a: i32, b: i32)", "#[cfg(not(test))]\npub fn add(a: i32, b: i32)"),
    ),
    cheat(
        "rust: always equal",
        "always-equal",
        replace(
            RS,
            "fn unused()",
            "struct P(i32);\nimpl PartialEq for P {\n    fn eq(&self, _: &Self) -> bool {\n        true\n    }\n}\n\nfn unused()",
        ),
    ),
    cheat(
        "rust: harness off",
        "test-runner-config",
        append("rust/Cargo.toml", '\n[[test]]\nname = "api"\nharness = false\n'),
    ),
    cheat(
        "rust: tests not found",
        "test-runner-config",
        replace("rust/Cargo.toml", 'edition = "2021"', 'edition = "2021"\nautotests = false'),
    ),
    cheat(
        "rust: another runner",
        "test-runner-config",
        write("rust/.cargo/config.toml", '[target.x86_64-unknown-linux-gnu]\nrunner = "true"\n'),
    ),
)

JAVA_ADDS = "        assertEquals(3, result);\n"
JVM = (
    cheat(
        "java: test deleted",
        "test-deleted",
        replace(
            JT,
            "    @Test\n    void failsOnZero() {\n        assertThrows(ArithmeticException.class, () -> Calc.div(1, 0));\n    }\n\n",
            "",
        ),
    ),
    cheat("java: test file deleted", "test-deleted", delete(JT)),
    cheat("java: file renamed away", "test-deleted", move(JT, "java/src/test/java/app/CalcChecks.java")),
    cheat("java: mark removed", "test-deleted", replace(JT, "    @Test\n    void adds()", "    void adds()")),
    cheat(
        "java: disabled",
        "test-skipped",
        replace(JT, "    @Test\n    void adds()", '    @Disabled("x")\n    @Test\n    void adds()'),
    ),
    cheat(
        "java: ignored",
        "test-skipped",
        replace(JT, "    @Test\n    void adds()", "    @Ignore\n    @Test\n    void adds()"),
    ),
    cheat("java: class disabled", "test-skipped", replace(JT, "class CalcTest {", "@Disabled\nclass CalcTest {")),
    cheat("java: assumption", "test-skipped", replace(JT, JAVA_ADDS, "        assumeTrue(false);\n" + JAVA_ADDS)),
    cheat(
        "java: not enabled",
        "test-skipped",
        replace(
            JT,
            "    @Test\n    void adds()",
            '    @EnabledIfEnvironmentVariable(named = "X", matches = "y")\n    @Test\n    void adds()',
        ),
    ),
    cheat("java: check removed", "test-weakened", replace(JT, JAVA_ADDS, "")),
    cheat("java: not null", "test-weakened", replace(JT, "assertEquals(3, result)", "assertNotNull(result)")),
    cheat("java: assert true", "test-weakened", replace(JT, "assertEquals(3, result)", "assertTrue(true)")),
    cheat(
        "java: expectation changed", "test-changed", replace(JT, "assertEquals(3, result)", "assertEquals(-1, result)")
    ),
    cheat("java: wider exception", "test-weakened", replace(JT, "ArithmeticException.class", "Throwable.class")),
    cheat(
        "java: body emptied",
        "test-emptied",
        replace(JT, "        assertThrows(ArithmeticException.class, () -> Calc.div(1, 0));\n", ""),
    ),
    cheat(
        "java: try around the check",
        "test-weakened",
        replace(
            JT,
            JAVA_ADDS,
            "        try {\n            assertEquals(3, result);\n        } catch (AssertionError e) {\n        }\n",
        ),
    ),
    cheat(
        "java: early return", "test-weakened", replace(JT, JAVA_ADDS, "        if (result != 3) return;\n" + JAVA_ADDS)
    ),
    cheat("java: row removed", "test-weakened", replace(JT, "{1, 2, 3}", "{1}")),
    cheat("java: set-up changed", "test-support-changed", replace(JT, "one = 1;", "one = 5;")),
    cheat(
        "java: set-up added",
        "test-support-changed",
        replace(
            JT, "    private int helper()", "    @AfterEach\n    void after() {\n    }\n\n    private int helper()"
        ),
    ),
    cheat("java: helper changed", "test-support-changed", replace(JT, "        return 1;\n", "        return 2;\n")),
    cheat(
        "java: always equal",
        "always-equal",
        replace(
            "java/src/main/java/app/Calc.java",
            "    public static int div",
            "    @Override\n    public boolean equals(Object o) {\n        return true;\n    }\n\n    public static int div",
        ),
    ),
    cheat(
        "java: exit at load",
        "early-exit",
        replace(
            "java/src/main/java/app/Calc.java",
            "    public static int div",
            "    static {\n        System.exit(0);\n    }\n\n    public static int div",
        ),
    ),
    cheat(
        "java: own junit",
        "shadow-module",
        write("java/src/main/java/org/junit/jupiter/api/Assertions.java", "package org.junit.jupiter.api;\n"),
    ),
    cheat(
        "java: surefire skips",
        "test-runner-config",
        replace(
            "java/pom.xml",
            "</version></plugin>",
            "</version><configuration><skipTests>true</skipTests></configuration></plugin>",
        ),
    ),
    cheat(
        "java: skip property",
        "test-runner-config",
        replace("java/pom.xml", "<java.version>17", "<maven.test.skip>true</maven.test.skip><java.version>17"),
    ),
    cheat(
        "java: gradle ignores failures",
        "test-runner-config",
        replace("java/build.gradle", "useJUnitPlatform()", "useJUnitPlatform()\n    ignoreFailures = true"),
    ),
    cheat(
        "java: gradle switches tests off",
        "test-runner-config",
        append("java/build.gradle", "\ntasks.withType(Test) { enabled = false }\n"),
    ),
    cheat(
        "java: junit properties",
        "test-runner-config",
        write("java/src/test/resources/junit-platform.properties", "junit.jupiter.conditions.deactivate=*\n"),
    ),
    cheat("java: maven settings", "test-runner-config", write("java/.mvn/maven.config", "-DskipTests\n")),
)
