"""What the guard says to people."""

from __future__ import annotations

from becket.kernel.contract.guard import GuardRule

_ASK = "leave the test as it is, or ask a person to approve the change of the test"
_PERSON = "take the change of this file out of the repair; a person makes it, if it is needed"

FIXES: dict[GuardRule, str] = {
    GuardRule.protected_path: "leave the file as it is; becket.yaml of the base commit protects it",
    GuardRule.path_oddity: "give the file another name",
    GuardRule.symlink_escape: "link to a file inside the repository, by a relative path",
    GuardRule.submodule_changed: _PERSON,
    GuardRule.gitattributes: _PERSON,
    GuardRule.lfs_pointer: _PERSON,
    GuardRule.gate_definition: "repair the code; what the gates run is changed by a person, on the base branch",
    GuardRule.setup_files: "leave what the set-up installs as it is, or let a person decide before it is built",
    GuardRule.compiled_file: "leave compiled files out of the commit",
    GuardRule.mass_deletion: "put back what the repair does not need to remove",
    GuardRule.binary_added: "leave the binary out, or let a person add it",
    GuardRule.large_file: "leave the file out; `guard.max_file` in becket.yaml is the limit",
    GuardRule.conflict_markers: "finish the merge and remove the markers",
    GuardRule.secret_added: "remove the secret and read it from the environment; treat it as known to others",
    GuardRule.hidden_text: "remove the invisible characters",
    GuardRule.test_deleted: "put the test back, or ask a person to approve its removal",
    GuardRule.test_skipped: "remove the skip and repair the code, or ask a person to approve it",
    GuardRule.test_weakened: _ASK,
    GuardRule.test_emptied: _ASK,
    GuardRule.test_changed: _ASK,
    GuardRule.test_support_changed: "leave what the tests stand on as it is, or ask a person to approve the change",
    GuardRule.early_exit: "let the program end where it is started, not where it is loaded or tested",
}

SKIPPED = "the test is now skipped, expected to fail, or crowds out the others"
CROWDS_OUT = "the test keeps all others out of the run"
NO_CHECK_LEFT = "the test no longer checks anything"
NO_STEP_LEFT = "the test no longer does anything"
PATCHED = "the test now replaces code that it is to prove"
EXPECTATION_CHANGED = "a check of the test expects something else now"
STEPS_CHANGED = "the steps of the test changed"
ALWAYS_TRUE = "a check can no longer fail"
WIDER_EXCEPTION = "a check now accepts nearly any error"
LOOSER_COMPARISON = "a check compared exactly and no longer does"
LESS_EXACT = "a check demands less than before"
TOLERANCE_ADDED = "a check was exact and now allows a tolerance"
TOLERANCE_WIDER = "the tolerance of a check is wider"
GUARDED = "a check now stands where it may not run, or may fail unseen"
LEFT_EARLY = "the test can now end before its checks"
UNREADABLE = "the file cannot be parsed, and as text it is not only longer"
TYPE_CHANGED = "a test file became a link, or a link a file"


def checks_removed(count: int) -> str:
    return "a check is gone" if count == 1 else f"{count} checks are gone"


def rows_removed(count: int) -> str:
    return "a row of the test's table is gone" if count == 1 else f"{count} rows of the test's table are gone"


def test_gone(name: str) -> str:
    return f"the test {name!r} is gone, and not found elsewhere in the change"


def test_not_run(name: str, place: str) -> str:
    return f"the test {name!r} moved to {place}, where no runner takes it"


def tests_gone(count: int) -> str:
    return f"the file is gone with {'its test' if count == 1 else f'its {count} tests'}"


def more_tests_gone(count: int) -> str:
    return f"{count} more tests are gone"


def of_test(name: str, message: str) -> str:
    return f"{name}: {message}"


PATCHED_AT_LOAD = "loading this file changes other code, also for the other tests"
EXITS = "this ends the whole test run"
STATEMENT_ADDED = "a statement was added that runs when the tests are loaded"
DATA_CHANGED = "a file that tests read changed"
SUPPORT_DELETED = "a file of the test side is gone"
SUPPORT_MOVED = "a file of the test side moved to another folder"
INIT_ADDED = "this file runs before the tests of its folder"
MOCKS_ADDED = "a runner may put this file in the place of the real module"


def setup_added(name: str) -> str:
    return f"{name or 'set-up'} was added and runs around tests that were there before"


def import_changed(name: str) -> str:
    return f"{name} comes from elsewhere now"


def redefined(name: str) -> str:
    return f"{name} is defined anew and hides what the tests used"


def pragma_changed(name: str) -> str:
    return f"whether or as what the file is compiled changed: {name}"


def support_changed(kind: str, name: str) -> str:
    return f"the {kind} {name} changed"


def support_removed(kind: str, name: str) -> str:
    return f"the {kind} {name} is gone".replace("  ", " ")


UNPARSED_CHANGED = "a test in a language that is compared as text changed"


PROTECTED = "the path is protected"
NAMED_LIKE_GIT = "a part of the path is named like git's own folder"
NAME_CLIMBS = "the path leads upwards or has an empty part"
NAME_INVISIBLE = "the path holds characters that cannot be seen or are no text"
NAME_ENDS_ODDLY = "a part of the path begins or ends with a blank, or ends with a dot"
NAME_BACKSLASH = "the path holds a backslash"
SUBMODULE = "a submodule was added, removed or moved to another commit"
LINK_ABSOLUTE = "the link leads to an absolute path"
LINK_CLIMBS = "the link leads out of the repository, or may"
LINK_TO_GIT = "the link leads into git's own folder"


def name_collides(other: str) -> str:
    return f"on some file systems the path is the same as {other}"


GATE_CHANGED = "this defines the gates and rules; it counts as committed in base"
GATE_PROGRAM_CHANGED = "this change rewrites what the gate runs"
SETUP_CHANGED = "the set-up is built from this file, with the variables and the network of the base's set-up"
MAY_CHANGE_TESTS = "May this repair change the tests?"
MAY_CHANGE_GATE = "May this repair change what the gate runs?"
MAY_CHANGE_SETUP = "May the set-up be built from the files that this repair changes?"
ATTRIBUTES_CHANGED = "this decides which filters git runs over files and how it merges them"
LFS_CHANGED = "a pointer to a large file, or where it leads, changed; its content cannot be seen here"
CONFTEST_CHANGED = "conftest.py decides which tests are run and on what they stand"


COMPILED = "compiled code cannot be read, and a stale one may run instead of its source"
BINARY = "a binary file that is neither a picture nor a font cannot be judged"
CONFLICT = "a merge was left unfinished"
TOO_MUCH = "the change as a whole is too large to be read"
HIDDEN = "characters that turn the reading direction make code look other than it is"
FILE_EMPTIED = "the file was emptied"


def too_large(size: int, limit: int) -> str:
    return f"the file has {size:,} bytes; the limit is {limit:,}"


def grows_much(size: int, limit: int) -> str:
    return f"the change adds {size:,} bytes in all; the limit is {limit:,}"


def secret(kind: str) -> str:
    return f"{kind} stands in the line"


def named_by_secret(kind: str) -> str:
    return f"the name of the file holds {kind}"


def much_deleted(count: int, total: int, share: float, limit: float) -> str:
    return f"{count} of {total} files are deleted or emptied ({share:.0%}; the limit is {limit:.0%})"


def more_refusals(count: int) -> str:
    return f"{count} more refusals of this rule are not listed"
