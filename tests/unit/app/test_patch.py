"""Lines of a patch have addresses, and comments are about lines that there are."""

from __future__ import annotations

import pytest

from becket.app.record.patch import Comment, place_of, read_patch, written
from becket.kernel.contract.errors import UsageError
from becket.parts.promote.verbs.proposals import _comment

PATCH = b"""diff --git a/calc.py b/calc.py
index 1..2 100644
--- a/calc.py
+++ b/calc.py
@@ -2,3 +2,4 @@ import os
 def add(left, right):
--- left
+    # plus
+    return left + right
 # end
@@ -40 +41 @@
-old
+new
"""


def test_every_line_has_the_number_that_people_know_it_by() -> None:
    (file,) = read_patch(PATCH).files
    assert (file.path, file.added, file.removed) == ("calc.py", 3, 2)
    assert [line.at for line in file.lines] == [0, 2, -3, 3, 4, 5, 0, -40, 41]
    assert read_patch(b"").files == ()


def test_what_is_said_names_the_line_and_shows_it() -> None:
    patch = read_patch(PATCH)
    said = written(
        patch, [Comment(text=" all of it "), Comment(path="calc.py", line=-3, text="why?"), Comment(text="")]
    )
    assert said == "all of it\n\ncalc.py, line 3 before `--- left`\nwhy?"
    assert place_of("calc.py", 4) == "calc.py:4"
    for nowhere in (Comment(path="calc.py", line=0, text="x"), Comment(path="other.py", line=3, text="x")):
        with pytest.raises(UsageError, match="is no line of the change"):
            written(patch, [nowhere])
    with pytest.raises(UsageError, match="51 comments"):
        written(patch, [Comment(text="x")] * 51)


def test_the_command_line_reads_a_comment_on_a_line() -> None:
    assert _comment("a:b/c.py:-12=say = more") == Comment(path="a:b/c.py", line=-12, text="say = more")
    for wrong in ("calc.py=x", "calc.py:x=y", "calc.py:3", ":3=x", "calc.py:3= "):
        with pytest.raises(UsageError, match="PATH:LINE=TEXT"):
            _comment(wrong)
