"""What the classes say to people, in plain words."""

from __future__ import annotations

from becket.parts.guard.reading.classes.facts import Construct, Size

POWERS = {
    "environment": "read or change the environment",
    "arguments": "see how the program was started",
    "clock": "read the clock",
    "randomness": "draw random values",
    "frames": "look into its callers",
    "modules": "look at loaded modules",
    "files": "reach files",
    "processes": "start or end processes",
    "threads": "run beside its caller",
    "network": "reach the network",
    "dynamic": "run or look up what is put together at run time",
    "patching": "change code that is not its own",
    "hooks": "decide equality, hashing, attributes or how classes are made",
    "exit": "end the program",
    "signals": "handle signals",
    "native": "run native code",
    "output": "write to the program's output",
    "memory": "look into the memory of the program",
    "unknown": "use what is not known to be pure",
}


def power(kind: str, name: str) -> str:
    return f"adds the power to {POWERS[kind]} ({name})"


def power_moved(kind: str, name: str) -> str:
    return f"gives a function the power to {POWERS[kind]} that only others of the file had ({name})"


def unresolved(name: str) -> str:
    return f"uses {name}, and where it comes from cannot be told"


def module_as_value(name: str) -> str:
    return f"hands the module {name} on as a value, so what is used of it cannot be told"


def of_the_package(name: str) -> str:
    return f"uses {name} from elsewhere in the project, which this file did not"


def new_import(name: str) -> str:
    return f"imports {name}"


def unknown_import(name: str) -> str:
    return f"imports {name}, which is not known to be pure"


def new_attribute(name: str) -> str:
    return f"uses .{name} of an object, which this file did not"


def patched(name: str) -> str:
    return f"changes {name}, which is not its own"


def new_state(name: str) -> str:
    return f"keeps something in {name}"


def new_value(value: str) -> str:
    return f"adds the constant {value}"


def check_gone(what: str) -> str:
    return f"takes a check away ({what})"


def function_gone(name: str) -> str:
    return f"takes {name} away"


def hook_changed(name: str) -> str:
    return f"changes {name}, which decides equality, hashing, attributes or how classes are made"


def sealed_changed(name: str) -> str:
    return f"changes {name}, which belongs to the language or to a test framework"


MARKS = {
    Construct.new_function: "adds a function",
    Construct.nested_function: "adds a function inside another",
    Construct.new_class: "adds a class",
    Construct.decorator: "adds a decorator",
    Construct.state: "keeps something between calls",
    Construct.generator: "makes a generator of a function",
    Construct.catch: "catches an error",
    Construct.catch_all: "swallows any error",
    Construct.leaves_finally: "leaves `finally` early, which swallows any error",
    Construct.dynamic: "looks up a name that is put together at run time",
    Construct.computed_call: "calls something that it looks up at run time",
    Construct.hook: "adds a hook that decides equality, hashing, attributes or how classes are made",
    Construct.sealed: "adds a function to what belongs to the language or to a test framework",
    Construct.arithmetic: "computes a constant out of others",
    Construct.named_literal: "computes with a constant under another name",
    Construct.not_a_number: "can answer not-a-number, with which every comparison fails",
    Construct.unreachable: "makes code unreachable",
    Construct.before_check: "returns before a check is reached",
    Construct.narrower: "refuses only under one more condition",
    Construct.native: "steps outside the language's own safety",
    Construct.directive: "adds a directive that a compiler or checker obeys",
    Construct.unreadable_macro: "adds a macro, which cannot be read",
    Construct.runs_at_load: "adds code that runs by itself when the file is loaded",
}

SIZES = {
    Size.statement: "is longer than a plain change",
    Size.branch: "adds more branches than a plain change",
    Size.literal: "adds more literals than a plain change",
    Size.equality: "compares with several literals",
}

RUNS_AT_LOAD = "changes what stands outside functions"
TOO_LARGE = "is too large to be read"
NOT_UTF8 = "is not plain UTF-8, or has control characters, so what it says cannot be told"
UNPARSABLE = "cannot be parsed"
WAS_UNPARSABLE = "could not be parsed before"
GENERATED = "is generated, and nobody reads it"
NOT_SOURCE = "is no product source"
TESTS_HELPER = "is a helper or data of the tests"
NEW_DOCUMENT = "is a new document"
DELETED = "is taken away"
MODE = "changes its mode or is no regular file"
NEW_FILE = "is a new source file"
NOT_REACHED = "is a new source file that no code of the change imports"
LANDS_IN_THE_WAY = "is a new source file where imports of another module would find it"


def no_table(suffix: str) -> str:
    return f"is in a language that the guard has no table for ({suffix or 'no suffix'})"


def many_files(count: int, most: int) -> str:
    return f"adds {count} files; a change that is read has at most {most}"
