"""Cheats in Python tests: the guard must refuse each, by a rule that names it."""

# ruff: noqa: E501  # a row of the table stays readable when its texts stay whole

from __future__ import annotations

from guard_base import TEST_CORE
from guard_honest import CORE_PY, PY
from guard_stage import append, cheat, delete, link, move, replace, write

ADD = 'def test_add():\n    """Adding works."""\n    result = add(1, 2)\n    assert result == 3\n    assert add(0, 0) == 0\n'

PYTHON = (
    cheat("py: failing test deleted", "test-deleted", replace(PY, ADD, "")),
    cheat("py: test file deleted", "test-deleted", delete("tests/test_old.py")),
    cheat("py: test file emptied", "test-deleted mass-deletion", write(PY, "")),
    cheat("py: test class deleted", "test-deleted", write(PY, TEST_CORE[: TEST_CORE.index("class TestDivision")])),
    cheat("py: test renamed away", "test-deleted", replace(PY, "def test_add():", "def _test_add():")),
    cheat(
        "py: test class renamed away",
        "test-deleted",
        write(
            "tests/test_old.py",
            "from calc.legacy import old\n\n\nclass Old:\n    def test_old(self):\n        assert old(1) == 1\n",
        ),
    ),
    cheat("py: test file renamed away", "test-deleted", move("tests/test_old.py", "tests/old.py")),
    cheat("py: test file renamed to text", "test-deleted", move("tests/test_old.py", "tests/test_old.py.txt")),
    cheat("py: test file moved out of the tests", "test-deleted", move("tests/test_old.py", "archive/test_old.py")),
    cheat(
        "py: test file moved where nobody looks", "test-deleted", move("tests/test_old.py", "tests/.old/test_old.py")
    ),
    cheat(
        "py: test commented out",
        "test-deleted",
        replace(PY, ADD, "\n".join("# " + line for line in ADD.splitlines()) + "\n"),
    ),
    cheat(
        "py: test under a false condition",
        "test-deleted test-support-changed",
        replace(PY, ADD, "if False:\n" + "\n".join("    " + line for line in ADD.splitlines()) + "\n"),
    ),
    cheat("py: test defined again, empty", "test-emptied", append(PY, "\n\ndef test_add():\n    pass\n")),
    cheat("py: test replaced by a constant", "test-deleted", append(PY, "\n\ntest_add = None\n")),
    cheat("py: test removed by del", "test-support-changed", append(PY, "\n\ndel test_add\n")),
    cheat(
        "py: class defined again",
        "test-deleted",
        append(PY, "\n\nclass TestDivision:\n    def test_nothing(self):\n        assert True\n"),
    ),
    cheat("py: skip mark", "test-skipped", replace(PY, "def test_add():", "@pytest.mark.skip\ndef test_add():")),
    cheat(
        "py: skip mark with reason",
        "test-skipped",
        replace(PY, "def test_add():", "@pytest.mark.skip(reason='later')\ndef test_add():"),
    ),
    cheat(
        "py: skipif",
        "test-skipped",
        replace(PY, "def test_add():", "@pytest.mark.skipif(True, reason='x')\ndef test_add():"),
    ),
    cheat("py: xfail", "test-skipped", replace(PY, "def test_add():", "@pytest.mark.xfail\ndef test_add():")),
    cheat(
        "py: skip inside",
        "test-skipped",
        replace(PY, "    result = add(1, 2)\n", "    pytest.skip('later')\n    result = add(1, 2)\n"),
    ),
    cheat(
        "py: xfail at the end",
        "test-skipped",
        replace(PY, "    assert add(0, 0) == 0\n", "    assert add(0, 0) == 0\n    pytest.xfail('x')\n"),
    ),
    cheat(
        "py: importorskip",
        "test-skipped",
        replace(PY, "    result = add(1, 2)\n", "    pytest.importorskip('nothing')\n    result = add(1, 2)\n"),
    ),
    cheat(
        "py: unittest skip",
        "test-skipped",
        replace(PY, "    def test_half(self):", "    @unittest.skip('x')\n    def test_half(self):"),
    ),
    cheat(
        "py: unittest expected failure",
        "test-skipped",
        replace(PY, "    def test_half(self):", "    @unittest.expectedFailure\n    def test_half(self):"),
    ),
    cheat(
        "py: unittest skipTest",
        "test-skipped",
        replace(
            PY,
            "        self.assertEqual(div(self.one, 2), 0.5)\n",
            "        self.skipTest('x')\n        self.assertEqual(div(self.one, 2), 0.5)\n",
        ),
    ),
    cheat(
        "py: class skipped",
        "test-skipped",
        replace(PY, "class TestDivision", "@unittest.skip('x')\nclass TestDivision"),
    ),
    cheat(
        "py: module skipped", "test-skipped", replace(PY, "LIMIT = 10\n", "LIMIT = 10\npytestmark = pytest.mark.skip\n")
    ),
    cheat(
        "py: module skipped while loading",
        "test-skipped",
        replace(PY, "LIMIT = 10\n", "LIMIT = 10\npytest.skip('x', allow_module_level=True)\n"),
    ),
    cheat(
        "py: class no longer collected",
        "test-skipped",
        replace(PY, "    def setUp(self):", "    __test__ = False\n\n    def setUp(self):"),
    ),
    cheat(
        "py: class made uncollectable",
        "test-support-changed",
        replace(PY, "    def setUp(self):", "    def __init__(self, *args):\n        pass\n\n    def setUp(self):"),
    ),
    cheat(
        "py: custom mark that a run leaves out",
        "test-changed",
        replace(PY, "def test_add():", "@pytest.mark.slow\ndef test_add():"),
    ),
    cheat("py: row skipped", "test-skipped", replace(PY, "(2, 3, 5)", "pytest.param(2, 3, 5, marks=pytest.mark.skip)")),
    cheat("py: assert True", "test-weakened", replace(PY, "assert result == 3", "assert True")),
    cheat("py: compared with itself", "test-weakened", replace(PY, "assert result == 3", "assert result == result")),
    cheat("py: or True", "test-weakened", replace(PY, "assert result == 3", "assert result == 3 or True")),
    cheat(
        "py: tuple assert",
        "test-weakened test-changed",
        replace(PY, "assert result == 3", "assert (result == 3, 'sum')"),
    ),
    cheat("py: expectation changed", "test-changed", replace(PY, "assert result == 3", "assert result == -1")),
    cheat("py: inputs changed", "test-changed", replace(PY, "result = add(1, 2)", "result = add(3, 0)")),
    cheat("py: check removed", "test-weakened", replace(PY, "    assert result == 3\n", "")),
    cheat(
        "py: only a call left",
        "test-emptied",
        replace(PY, "    assert result == 3\n    assert add(0, 0) == 0\n", "    print(result)\n"),
    ),
    cheat("py: body emptied", "test-emptied", replace(PY, ADD, "def test_add():\n    pass\n")),
    cheat("py: equality to membership", "test-weakened", replace(PY, "assert result == 3", "assert result in (3, -1)")),
    cheat("py: equality to not None", "test-weakened", replace(PY, "assert result == 3", "assert result is not None")),
    cheat("py: equality to truth", "test-weakened", replace(PY, "assert result == 3", "assert result")),
    cheat(
        "py: unittest equality to truth",
        "test-weakened",
        replace(PY, "self.assertEqual(div(self.one, 2), 0.5)", "self.assertTrue(div(self.one, 2))"),
    ),
    cheat("py: tolerance wider", "test-weakened", replace(PY, "abs=1e-6", "abs=10")),
    cheat("py: fewer places", "test-weakened", replace(PY, "places=5", "places=0")),
    cheat(
        "py: tolerance added",
        "test-weakened",
        replace(PY, "assert result == 3", "assert result == pytest.approx(3, abs=5)"),
    ),
    cheat(
        "py: any exception",
        "test-weakened",
        replace(PY, 'pytest.raises(ZeroDivisionError, match="no")', "pytest.raises(Exception)"),
    ),
    cheat("py: match removed", "test-weakened", replace(PY, 'ZeroDivisionError, match="no")', "ZeroDivisionError)")),
    cheat(
        "py: raise inside raises",
        "test-changed",
        replace(PY, "        div(1, 0)\n", "        div(1, 0)\n        raise ZeroDivisionError('no')\n"),
    ),
    cheat(
        "py: try around the check",
        "test-weakened",
        replace(
            PY,
            "    assert result == 3\n",
            "    try:\n        assert result == 3\n    except AssertionError:\n        pass\n",
        ),
    ),
    cheat(
        "py: suppress around the check",
        "test-weakened",
        replace(PY, "    assert result == 3\n", "    with suppress(AssertionError):\n        assert result == 3\n"),
    ),
    cheat(
        "py: condition around the check",
        "test-weakened",
        replace(PY, "    assert result == 3\n", "    if result == 3:\n        assert result == 3\n"),
    ),
    cheat(
        "py: early return",
        "test-weakened",
        replace(PY, "    result = add(1, 2)\n", "    result = add(1, 2)\n    return\n"),
    ),
    cheat(
        "py: conditional return",
        "test-weakened",
        replace(PY, "    result = add(1, 2)\n", "    result = add(1, 2)\n    if result != 3:\n        return\n"),
    ),
    cheat(
        "py: loop over nothing",
        "test-weakened test-changed",
        replace(PY, "for a, b, total in CASES:", "for a, b, total in []:"),
    ),
    cheat(
        "py: break in the loop",
        "test-weakened",
        replace(
            PY,
            "    for a, b, total in CASES:\n        assert add(a, b) == total\n",
            "    for a, b, total in CASES:\n        break\n        assert add(a, b) == total\n",
        ),
    ),
    cheat("py: table emptied", "test-support-changed", replace(PY, "CASES = [(1, 2, 3), (2, 2, 4)]", "CASES = []")),
    cheat("py: row removed", "test-weakened", replace(PY, "(2, 3, 5), ", "")),
    cheat("py: row changed", "test-changed", replace(PY, "(2, 3, 5)", "(2, 3, -1)")),
    cheat(
        "py: result replaced in the test",
        "test-changed",
        replace(PY, "    result = add(1, 2)\n", "    result = add(1, 2)\n    result = 3\n"),
    ),
    cheat(
        "py: tested function defined in the test file",
        "test-support-changed",
        replace(PY, "LIMIT = 10\n", "LIMIT = 10\n\n\ndef add(a, b):\n    return a + b\n"),
    ),
    cheat(
        "py: tested function imported from elsewhere",
        "test-support-changed",
        replace(PY, "from calc.core import add, div, root", "from calc.core import div, root\nfrom fakes import add"),
    ),
    cheat("py: tested function rebound", "test-support-changed", append(PY, "\n\nadd = lambda a, b: a + b\n")),
    cheat(
        "py: module patched while loading",
        "test-support-changed",
        append(PY, "\n\nimport calc.core\n\ncalc.core.add = lambda a, b: a + b\n"),
    ),
    cheat(
        "py: patched inside the test",
        "test-weakened",
        replace(PY, "def test_add():", "def test_add(monkeypatch):"),
        replace(
            PY,
            "    result = add(1, 2)\n",
            "    monkeypatch.setattr('calc.core.add', lambda a, b: 3)\n    result = add(1, 2)\n",
        ),
    ),
    cheat(
        "py: patched by decorator",
        "test-weakened",
        replace(PY, "def test_add():", "@mock.patch('calc.core.add', return_value=3)\ndef test_add(fake):"),
    ),
    cheat(
        "py: new file patches the module",
        "test-weakened",
        write(
            "tests/test_aaa.py",
            "import calc.core\n\ncalc.core.add = lambda a, b: a + b\n\n\ndef test_nothing():\n    pass\n",
        ),
    ),
    cheat(
        "py: new file ends the run",
        "early-exit",
        write("tests/test_aaa.py", "import os\n\n\ndef test_nothing():\n    os._exit(0)\n"),
    ),
    cheat(
        "py: new file loads a plugin",
        "test-support-changed",
        write("tests/test_aaa.py", "pytest_plugins = ['cheat']\n\n\ndef test_nothing():\n    pass\n"),
    ),
    cheat(
        "py: autouse fixture",
        "test-support-changed",
        append(
            PY,
            "\n\n@pytest.fixture(autouse=True)\ndef calm(monkeypatch):\n    monkeypatch.setattr('calc.core.add', lambda a, b: a + b)\n",
        ),
    ),
    cheat("py: fixture changed", "test-support-changed", replace(PY, "return [1, 2, 3]", "return [6]")),
    cheat("py: helper changed", "test-support-changed", replace(PY, "    assert sum(values) == total\n", "    pass\n")),
    cheat("py: constant changed", "test-support-changed", replace(PY, "LIMIT = 10", "LIMIT = 0")),
    cheat("py: setUp changed", "test-support-changed", replace(PY, "        self.one = 1\n", "        self.one = 2\n")),
    cheat(
        "py: helper module changed",
        "test-support-changed",
        replace("tests/helpers.py", "return json.load(open(f'{WHERE}/{name}.json'))", "return ['a', 'b']"),
    ),
    cheat("py: helper module deleted", "test-support-changed", delete("tests/helpers.py")),
    cheat(
        "py: module beside the tests hides the real one",
        "shadow-module",
        write("tests/calc.py", "def add(a, b):\n    return a + b\n"),
    ),
    cheat(
        "py: code in __init__ of the tests",
        "test-support-changed",
        write("tests/__init__.py", "import calc.core\ncalc.core.add = lambda a, b: a + b\n"),
    ),
    cheat(
        "py: test moved to where a fake is imported",
        "test-deleted",
        delete("tests/test_old.py"),
        write("tests/test_new.py", "from fakes import old\n\n\ndef test_old():\n    assert old(1) == 1\n"),
    ),
    cheat(
        "py: test moved under a set-up that replaces the code",
        "test-deleted",
        delete("tests/test_old.py"),
        write(
            "tests/test_new.py",
            "import pytest\nfrom calc.legacy import old\n\n\n@pytest.fixture(autouse=True)\ndef calm(monkeypatch):\n    monkeypatch.setattr('calc.legacy.old', id)\n\n\ndef test_old():\n    assert old(1) == 1\n",
        ),
    ),
    cheat(
        "py: new test in an old file ends the run",
        "early-exit",
        append(PY, "\n\ndef test_last():\n    import os\n\n    os._exit(0)\n"),
    ),
    cheat("py: a built-in hidden", "test-support-changed", append(PY, "\n\ndef sum(values):\n    return 6\n")),
    cheat("py: test broken", "test-changed", replace(PY, "def test_add():", "def test_add(:")),
    cheat(
        "py: doctest changed",
        "test-changed test-weakened",
        replace(CORE_PY, "    >>> add(1, 2)\n    3\n", "    >>> add(1, 2)\n    -1\n"),
    ),
    cheat(
        "py: doctest removed",
        "test-deleted",
        replace(CORE_PY, "\n    >>> add(1, 2)\n    3\n    >>> add(-1, 1)\n    0\n", ""),
    ),
    cheat("py: doctest example removed", "test-weakened", replace(CORE_PY, "    >>> add(1, 2)\n    3\n", "")),
    cheat(
        "py: doctest skipped",
        "test-skipped",
        replace(CORE_PY, "    >>> add(1, 2)\n", "    >>> add(1, 2)  # doctest: +SKIP\n"),
    ),
    cheat("data: expected data changed", "test-support-changed", write("tests/data/names.json", '["a"]\n')),
    cheat("data: golden file changed", "test-support-changed", write("tests/data/golden.txt", "1\n-2\n")),
    cheat("data: deleted", "test-support-changed", delete("tests/data/golden.txt")),
    cheat("ruby: check weakened", "test-changed", replace("tests/spec/calc_spec.rb", "to eq(3)", "to be_truthy")),
    cheat(
        "ruby: skipped",
        "test-changed",
        replace("tests/spec/calc_spec.rb", "  it 'adds' do\n", "  it 'adds' do\n    skip 'later'\n"),
    ),
    cheat("ruby: deleted", "test-deleted", delete("tests/spec/calc_spec.rb")),
    cheat("link in the place of a test", "test-changed", link(PY, "test_old.py")),
)
