"""A patch for reading."""

from __future__ import annotations

from becket.app.record.report.diff import LONGEST_LINE, MOST_LINES, by_file, files_of, is_cut, lines_of, shortened

PATCH = """\
diff --git a/old name.txt b/new name.txt
similarity index 90%
rename from old name.txt
rename to new name.txt
--- a/old name.txt
+++ b/new name.txt
@@ -1,3 +1,3 @@
 same
--- a removed line that looks like a header
+++ an added one
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
\\ No newline at end of file
diff --git a/pic.bin b/pic.bin
Binary files a/pic.bin and b/pic.bin differ
"""


def test_lines_are_told_apart_by_position() -> None:
    kinds = [line.kind for line in lines_of(PATCH.rstrip("\n"))]
    assert kinds[:6] == ["file", *["about"] * 5]
    assert kinds[6:10] == ["hunk", "same", "remove", "add"]
    assert kinds[-3:] == ["about", "file", "about"]


def test_files_with_their_counts() -> None:
    assert [(file.path, file.added, file.removed) for file in files_of(PATCH)] == [
        ("new name.txt", 1, 1),
        ("gone.py", 0, 1),
        ("pic.bin", 0, 0),
    ]
    assert list(files_of("")) == []


def test_what_is_left_out_is_counted() -> None:
    text, left_out = shortened("x" * (LONGEST_LINE + 5) + "\n" + "y\n" * MOST_LINES)
    assert left_out == 1
    assert text.count("\n") == MOST_LINES - 1
    assert len(text.split("\n")[0]) == LONGEST_LINE + 1
    assert shortened("") == ("", 0)


def test_a_name_that_git_quotes_is_shown_as_it_is() -> None:
    patch = (
        'diff --git "a/na\\303\\257ve \\"x\\".py" "b/na\\303\\257ve \\"x\\".py"\nold mode 100644\nnew mode 100755\n'
        'diff --git "a/\\346\\235\\261.py" b/east.py\n--- "a/\\346\\235\\261.py"\n+++ b/east.py\n@@ -1 +1 @@\n-a\n+b\n'
        'diff --git "a/t\\tab" "b/t\\tab"\ndeleted file mode 100644\n--- "a/t\\tab"\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n'
    )
    assert [file.path for file in files_of(patch)] == ['naïve "x".py', "east.py", "t\tab"]


def test_below_a_files_name_stand_its_lines_and_no_encoded_data() -> None:
    data = "GIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n"
    text = PATCH + f"diff --git a/b.bin b/b.bin\nindex 1..2 100644\n{data}"
    told = [[line.text for line in lines] for lines in by_file(text.rstrip("\n"))]
    assert told[0][:3] == ["similarity index 90%", "rename from old name.txt", "rename to new name.txt"]
    assert told[0][-2:] == ["--- a removed line that looks like a header", "+++ an added one"]
    assert told[3] == ["GIT binary patch"]
    assert len(told) == len(list(files_of(text)))
    assert list(by_file("")) == []


def test_a_patch_that_was_cut_says_so_in_its_last_line_only() -> None:
    whole = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-# cut here: 1\n+# cut here: 2\n"
    assert not is_cut(whole)
    assert is_cut(f"{whole}# cut here: 10 of 20 bytes are left out; it does not apply\n")
