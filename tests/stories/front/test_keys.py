"""L41: nobody makes a key that can do more than they can, and a hook's secret opens one hook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from becket.app.sections import load_config
from becket.kernel.contract.errors import UsageError
from becket.testing.world import commit_all, make_repository

HOOKS = "version: 1\nweb: {hooks: {ci: {secret: SECRET, event: ci.failed}, cd: {secret: OTHER, event: cd.failed}}}\n"


@pytest.mark.parametrize(
    "words",
    [("user", "add", "evil", "--role", "owner"), ("token", "new", "evil", "--role", "owner"), ("user", "remove", "x")],
)
def test_a_member_makes_and_takes_away_no_key_of_an_owner(words: tuple[str, ...], tmp_path: Path) -> None:
    make_repository(tmp_path)
    people = 'version: 1\npeople: {me: {role: member, os_user: "${USER}"}, boss: {role: owner}}\n'
    (tmp_path / "becket.yaml").write_text(people)
    commit_all(tmp_path, "People")
    program = (
        "import os, pwd, sys; os.environ['USER'] = pwd.getpwuid(os.getuid()).pw_name; "
        "from becket.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "-C", str(tmp_path), *words], input="a long password\n", capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "you are member" in done.stderr) == (2, True), done.stderr


def test_two_hooks_do_not_share_a_secret() -> None:
    same = HOOKS.replace("SECRET", "0123456789abcdef").replace("OTHER", "0123456789abcdef")
    with pytest.raises(UsageError, match="have the same `secret`") as told:
        load_config(same, "becket.yaml", {})
    assert "0123456789abcdef" not in str(told.value)
    load_config(same.replace("0123456789abcdef", "another-0123456789", 1), "becket.yaml", {})
