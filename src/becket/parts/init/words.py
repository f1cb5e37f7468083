"""What init says to people."""

from __future__ import annotations

INIT_FOUND = "Found {name}{where}: {evidence}"
INIT_NOTHING = "Found no test suite that Becket knows."
INIT_WROTE = "Wrote {path}"
INIT_KEPT = "Kept the old file as {path}"
INIT_NEXT = """\
Next:
  git add {paths} && git commit -m "Set up Becket"
  becket doctor"""
INIT_NEXT_NOTHING = """\
Next: write in becket.yaml what runs your tests, and try it:
  gates: {{fast: [{{name: unit, run: "YOUR TEST COMMAND"}}]}}
  becket gates try
  git add {paths} && git commit -m "Set up Becket"
  becket doctor"""
INIT_NEXT_GREEN = """\
Next:
  git add {paths} && git commit -m "Set up Becket"
  becket run heal          # proves the new commit; `becket up --detach` watches every one after it"""
INIT_NEXT_RED = """\
becket.yaml is written and nothing is lost. Change what is named above, then:
  becket gates try"""
INIT_NOT_TRIED = "The gates were not tried: there is no commit yet. Commit something, then: becket gates try"
INIT_LEFT_OUT = "Left out {step}, as a comment in becket.yaml: {why}"
