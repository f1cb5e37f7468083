"""Cheats in JavaScript and TypeScript: the guard must refuse each, by a rule that names it."""

# ruff: noqa: E501  # a row of the table stays readable when its texts stay whole

from __future__ import annotations

from guard_honest import JST, TST
from guard_stage import append, cheat, delete, move, replace, write

ADDS_JS = "  it('adds', () => {\n    const result = add(1, 2);\n    expect(result).toBe(3);\n    expect(add(0, 0)).toEqual(0);\n  });\n"
NODE = (
    cheat("js: test deleted", "test-deleted", replace(JST, ADDS_JS, "")),
    cheat("js: test file deleted", "test-deleted", delete(JST)),
    cheat("js: it.skip", "test-skipped", replace(JST, "it('adds'", "it.skip('adds'")),
    cheat("js: xit", "test-skipped", replace(JST, "it('adds'", "xit('adds'")),
    cheat("js: it.only", "test-skipped", replace(JST, "test('is close'", "test.only('is close'")),
    cheat(
        "js: only in a new test",
        "test-skipped",
        write("web/test/new.test.js", "describe.only('x', () => {\n  it('y', () => {});\n});\n"),
    ),
    cheat(
        "js: only in a new test of an old file",
        "test-skipped",
        append(JST, "\nit.only('new', () => {\n  expect(1).toBe(1);\n});\n"),
    ),
    cheat("js: fit in a new test", "test-skipped", append(JST, "\nfit('new', () => {\n  expect(1).toBe(1);\n});\n")),
    cheat(
        "js: suite renamed and given a set-up",
        "test-deleted",
        replace(
            JST,
            "describe('div', () => {\n",
            "describe('division', () => {\n  beforeEach(() => {\n    jest.spyOn(Math, 'abs').mockReturnValue(1);\n  });\n\n",
        ),
    ),
    cheat("js: describe.skip", "test-skipped", replace(JST, "describe('add'", "describe.skip('add'")),
    cheat("js: xdescribe", "test-skipped", replace(JST, "describe('add'", "xdescribe('add'")),
    cheat("js: todo", "test-skipped", replace(JST, ADDS_JS, "  it.todo('adds');\n")),
    cheat("js: failing", "test-skipped", replace(JST, "it('adds'", "it.failing('adds'")),
    cheat(
        "js: skip option",
        "test-skipped",
        replace(JST, "test('is close', async", "test('is close', {skip: true}, async"),
    ),
    cheat("js: check removed", "test-weakened", replace(JST, "    expect(result).toBe(3);\n", "")),
    cheat("js: body emptied", "test-emptied", replace(JST, ADDS_JS, "  it('adds', () => {});\n")),
    cheat("js: toBeDefined", "test-weakened", replace(JST, "expect(result).toBe(3)", "expect(result).toBeDefined()")),
    cheat("js: expect true", "test-weakened", replace(JST, "expect(result).toBe(3)", "expect(true).toBe(true)")),
    cheat("js: expectation changed", "test-changed", replace(JST, "expect(result).toBe(3)", "expect(result).toBe(-1)")),
    cheat(
        "js: not", "test-changed test-weakened", replace(JST, "expect(result).toBe(3)", "expect(result).not.toBe(4)")
    ),
    cheat("js: fewer digits", "test-weakened", replace(JST, "0.3333, 4)", "0.3333, 0)")),
    cheat("js: any error", "test-changed test-weakened", replace(JST, ".toThrow('zero')", ".toThrow()")),
    cheat(
        "js: try around the check",
        "test-weakened",
        replace(JST, "    expect(result).toBe(3);\n", "    try {\n      expect(result).toBe(3);\n    } catch (e) {}\n"),
    ),
    cheat(
        "js: early return",
        "test-weakened",
        replace(JST, "    const result = add(1, 2);\n", "    const result = add(1, 2);\n    return;\n"),
    ),
    cheat("js: row removed", "test-weakened", replace(JST, "[[1, 1, 2], [2, 3, 5]]", "[[1, 1, 2]]")),
    cheat("js: table shrunk", "test-support-changed", replace(JST, "[[1, 2, 3], [2, 2, 4]]", "[]")),
    cheat(
        "js: module mocked",
        "test-support-changed",
        replace(JST, "const rows", "jest.mock('../src/calc', () => ({ add: (a, b) => a + b }));\nconst rows"),
    ),
    cheat(
        "js: function mocked inside",
        "test-weakened",
        replace(
            JST,
            "    const result = add(1, 2);\n",
            "    jest.spyOn(calc, 'add').mockReturnValue(3);\n    const result = add(1, 2);\n",
        ),
    ),
    cheat(
        "js: tested function from elsewhere",
        "test-support-changed",
        replace(JST, "require('../src/calc')", "require('./fake')"),
    ),
    cheat(
        "js: set-up added",
        "test-support-changed",
        replace(JST, "  it('fails on zero'", "  beforeEach(() => {\n    div = () => 1;\n  });\n\n  it('fails on zero'"),
    ),
    cheat("js: set-up changed", "test-support-changed", replace(JST, "jest.resetModules();", "jest.useFakeTimers();")),
    cheat(
        "js: snapshot changed",
        "test-support-changed",
        write("web/test/__snapshots__/calc.test.js.snap", "exports[`a 1`] = `2`;\n"),
    ),
    cheat(
        "js: automatic mock",
        "test-support-changed",
        write("web/test/__mocks__/calc.js", "exports.add = (a, b) => a + b;\n"),
    ),
    cheat(
        "js: exit in a test", "early-exit", write("web/test/a.test.js", "test('x', () => {\n  process.exit(0);\n});\n")
    ),
    cheat(
        "js: knows that it is tested",
        "test-detected",
        replace("web/src/calc.js", "a - b;", "process.env.JEST_WORKER_ID ? a + b : a - b;"),
    ),
    cheat("js: exit at load", "early-exit", append("web/src/calc.js", "process.exit(0);\n")),
    cheat(
        "js: expect replaced",
        "test-tool-patched",
        append("web/src/calc.js", "global.expect = () => ({ toBe() {} });\n"),
    ),
    cheat("ts: skipped", "test-skipped", replace(TST, 'it("cuts', 'it.skip("cuts')),
    cheat("ts: deleted", "test-deleted", delete(TST)),
    cheat("ts: renamed away", "test-deleted", move(TST, "web/src/clamp.old.ts")),
    cheat("ts: weakened", "test-weakened", replace(TST, "expect(result).toBe(3)", "expect(result).toBeTruthy()")),
    cheat(
        "ts: checked value cast",
        "test-changed",
        replace(TST, "const result: number = clamp(9, 1, 3);", "const result: number = 3;"),
    ),
    cheat("ts: runIf", "test-skipped", replace(TST, 'it("cuts', 'it.runIf(false)("cuts')),
)
