"""Inputs are read by their type, as a file and as `--with` would have them."""

from __future__ import annotations

import pytest

from becket.kernel.contract.spec import InputSpec, InputType


@pytest.mark.parametrize("path", ["a", "src/a.py", "./x", ".env", "a b/c", "a..b"])
def test_a_path_below_the_repository_is_one(path: str) -> None:
    assert InputSpec(type=InputType.path).read(path) == path


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "~/x", "", ".", "a\nb", "-rf", 7, ["a"]])
def test_what_leads_elsewhere_or_looks_like_an_option_is_no_path(path: object) -> None:
    with pytest.raises(ValueError, match="is not a relative path without"):
        InputSpec(type=InputType.path).read(path)
