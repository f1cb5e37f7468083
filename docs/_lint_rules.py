"""What each rule of `becket loops lint` means. A test holds that no rule of the spec room is missing here."""

from __future__ import annotations

RULES: dict[str, dict[str, str]] = {
    "File": {
        "unreadable": "The entry cannot be read: a link to nowhere, a folder, or a file without permission.",
        "duplicate-loop": "Another file says the same `loop_id`. The first one by name counts, this one is not used.",
        "built-in-loop": "A loop of that name comes with Becket, and only `replaces_built_in: true` stands in for it.",
        "too-large": "The file is larger than a spec can sensibly be.",
        "not-utf8": "The file is not UTF-8. The finding says which byte.",
        "bad-yaml": "The text is not YAML, or holds a character that is not allowed.",
        "bad-character": "A text holds a NUL or half of a surrogate pair, which no program can be given, or the file "
        "holds a character that breaks a line for YAML only: a lone CR, U+0085, U+2028 or U+2029.",
        "empty-document": "The file says nothing.",
        "many-documents": "There is more than one document in the file.",
        "tab": "A tab stands where spaces belong.",
        "anchor": "An anchor or alias (`&name`, `*name`) is used. What you read must be what runs.",
        "tag": "A tag such as `!!python/object` is used.",
        "too-deep": "The nesting is too deep.",
        "bad-key": "A key is not a plain text.",
        "duplicate-key": "The same key stands twice in one mapping.",
    },
    "Keys and values": {
        "unknown-key": "There is no such key here. The finding names the one you probably meant.",
        "missing-key": "A key that must be there is not.",
        "missing-bound": "A bound is missing: `max_iterations`, `deadline`, a wait's `for`, or the budget of an agent.",
        "bad-value": "The value does not fit the key.",
        "bad-duration": "The text is no duration. Write it like `300ms`, `30s`, `10m`, `2h` or `7d`.",
        "bad-size": "The text is no size. Write it like `500KB` or `5MB`.",
        "bad-variable": "`${` does not begin a variable (becket.yaml only).",
        "undefined-variable": "The variable is not set (becket.yaml only).",
    },
    "Triggers and inputs": {
        "bad-cron": "The cron expression cannot be read, or never fires.",
        "bad-timezone": "There is no such time zone.",
        "unknown-loop": "An `after` trigger or a `run.start` names a loop that does not exist.",
        "unfilled-input": "A commit, a schedule or a `run.start` starts a loop without an input that it must have.",
        "unknown-input": "A `run.start` gives an input that the loop it starts does not have.",
        "bad-default": "A default, or a choice, does not fit the type or the choices of its input.",
        "unknown-fact": "Nothing records what `unless` asks for: `completed`, `proven` and `moved` are recorded.",
        "self-feeding": "Runs can start one another without end: by `run.start`, events, ended runs or commits. "
        "Add `max_chain`, or `unless` to a trigger of a loop whose subject can come again.",
    },
    "Steps": {
        "unknown-action": "There is no such action.",
        "unknown-verifier": "There is no such verifier.",
        "unknown-gate": "becket.yaml has no gate of this name.",
        "unknown-agent": "becket.yaml has no agent of this name.",
        "unknown-service": "becket.yaml has no service of this name.",
        "unknown-parameter": "The action or verifier has no such parameter.",
        "missing-parameter": "A required parameter is missing, and no earlier step makes what it could take.",
        "bad-parameter": "The value does not fit the parameter.",
        "duplicate-id": "Two actions of the loop, or two verifiers of a phase, have the same id.",
        "verifier-id-clash": "A verifier has the id of an action.",
        "reserved-id": "The id of a step (`run`, `data`, `decision`), or the name of an input (`sha`, `subject` and "
        "others), already means something else.",
        "bad-output": "An output's source is not `stdout`, `json:PATH` or `file:PATH`.",
        "bad-parse": "`parse` is not `json` or `junit:FILE`.",
        "bad-raises": "A key of `raises` is no exit code, range, `*` or `json:PATH=VALUE`, ranges overlap, or a "
        "condition is called `and`, `or` or `not`.",
        "unknown-effect-class": "There is no such class of effects.",
        "effect-above-autonomy": "The step's effect needs more autonomy than the loop has.",
        "exit-code-lost": "A verifier's command ends in a pipe, `|| true`, `|| echo` or `&` that hides how its check "
        "ended.",
        "network-without-effects": "An action asks for `network: full` and declares no effect.",
        "verify-without-verifier": "The verify phase has no verifier, so nothing would be proven.",
    },
    "Conditions": {
        "bad-when": "The `when` is not an expression.",
        "unknown-object": "Nothing in the loop says anything about this object.",
        "unknown-condition": "Nobody raises this condition.",
        "unreachable": "The `when` can never hold where it stands.",
        "unraisable-stop": "No step raises this stop condition, so the loop could never complete.",
        "unraisable-handoff": "No step raises this handoff condition.",
        "unraisable-wait": "No step raises this wait condition.",
        "contradiction": "A condition would end a run in two ways, the stop conditions cannot hold together, or one "
        "only says how an iteration went, such as `check.fail` or `action_error`, or a wait ends before its `poll`.",
        "claimed-verdict": "An action raises a verifier's verdict. Only the verifier says how it ended.",
        "unknown-signal": "Nothing sends the signal that the wait names: neither the runtime (`clock`, "
        "`worktree_changed`) nor what an installed action leads to (`approval`, `child`).",
        "unknown-state": "A state ref is of no known kind: `git:REF`, `file:PATH` and `journal` are.",
        "bad-state": "A state ref can be nowhere: no such ref is possible, or the path leads out of the repository.",
        "wait-without-ask": "The loop waits for an approval and asks for none, or for children and never looks at any.",
    },
    "Templates and outputs": {
        "bad-template": "A field is not known for every trigger, or a lone brace stands in the text.",
        "unknown-output": "No action makes this output.",
        "output-used-before-made": "The output is made only later, and no phase keeps it for the next iteration.",
        "field-in-single-quotes": "A field in single quotes is not filled in by the shell. Use double quotes.",
    },
}
"""Theme -> rule -> meaning."""
