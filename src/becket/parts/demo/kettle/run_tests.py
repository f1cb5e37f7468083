"""Run the tests and write what came of each to report.xml (JUnit)."""

import sys
import time
import unittest
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr


class Report(unittest.TextTestResult):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.cases = []

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def tell(self, test, wrong=""):
        name, place = test._testMethodName, type(test).__module__ + "." + type(test).__qualname__
        head = (
            f"<testcase classname={quoteattr(place)} name={quoteattr(name)} time='{time.monotonic() - self.began:.4f}'>"
        )
        self.cases.append(
            head + (f"<failure message='failed'>{escape(wrong)}</failure>" if wrong else "") + "</testcase>"
        )

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell(test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.tell(test, self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self.tell(test, self.errors[-1][1])


if __name__ == "__main__":
    sys.path[:0] = [".", "tests"]
    found = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:] or ["test_temperature"])
    result = unittest.TextTestRunner(resultclass=Report, verbosity=2).run(found)
    Path("report.xml").write_text(f"<testsuite tests='{result.testsRun}'>{''.join(result.cases)}</testsuite>")
    sys.exit(not result.wasSuccessful())
