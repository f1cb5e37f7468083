"""Templates: fields are found and filled, braces are escaped by doubling, and shell text never takes a value in."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becket.kernel.contract.template import (
    Field,
    TemplateError,
    fields,
    fill,
    in_shell,
    in_single_quotes,
    is_field,
    read_back,
    shell_fields,
)

names = st.from_regex(r"[a-z][a-z0-9_]{0,5}(\.[A-Za-z0-9_-]{1,5})?", fullmatch=True)
literals = st.text(max_size=8)


@given(st.lists(st.tuples(literals, names), max_size=5), literals, st.dictionaries(names, st.text(max_size=8)))
@settings(deadline=None)
def test_filling_puts_each_value_where_its_field_was(
    parts: list[tuple[str, str]], tail: str, values: dict[str, str]
) -> None:
    def value(name: str) -> str:
        return values.get(name, "{not} {{read}} again")

    def escaped(text: str) -> str:
        return text.replace("{", "{{").replace("}", "}}")

    template = "".join(f"{escaped(text)}{{{name}}}" for text, name in parts) + escaped(tail)
    assert fill(template, value) == "".join(text + value(name) for text, name in parts) + tail
    found = fields(template)
    assert [field.name for field in found] == [name for _, name in parts]
    assert all(template[field.column - 1 :].startswith(f"{{{field.name}}}") for field in found)


@given(st.text(alphabet=st.sampled_from("{}ab.$ "), max_size=20))
@settings(deadline=None)
def test_any_text_is_a_template_or_an_error_that_points_at_a_brace(text: str) -> None:
    try:
        fill(text, lambda name: name)
    except TemplateError as caught:
        column = caught.column
    else:
        return
    assert text[column - 1] in "{}"


@pytest.mark.parametrize(("text", "column"), [("{", 1), ("a}", 2), ("{a}{B}", 4), ("{}", 1), ("{a b}", 1), ("{{}", 3)])
def test_a_lone_brace_is_an_error_at_its_column(text: str, column: int) -> None:
    with pytest.raises(TemplateError) as caught:
        fields(text)
    assert caught.value.column == column


def test_only_one_field_and_nothing_else_stands_for_a_value_of_any_type() -> None:
    assert is_field("{base.count}")
    assert not any(is_field(text) for text in ("", "{a}{b}", " {a}", "{{a}}", "{a", "a"))


def test_the_braces_of_the_shell_are_its_own() -> None:
    text = "awk '{print $1}' ${home} ${HOME} {a,b} { ls; } '{{.Id}}' {{name}} {base.sha}"
    assert shell_fields(text) == (Field("base.sha", text.index("{base.sha}") + 1),)
    assert in_shell(text).text == text.replace("{{name}}", "{name}").replace("{base.sha}", "${BECKET_FIELD_1}")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("f() { echo in f; }; f", "in f"),
        ('echo \'{"a": {"b": 1}}\'', '{"a": {"b": 1}}'),
        ("echo '{{\"t\": 1}}' '{{ .Id }}'", '{{"t": 1}} {{ .Id }}'),
        ("echo ${A:-${B:-c}}", "c"),
        ("echo '{{name}}' '{{{name}}}'", "{name} {{name}}"),
    ],
)
def test_no_command_needs_its_braces_doubled(command: str, said: str) -> None:
    done = subprocess.run(["sh", "-euc", in_shell(command).text], env={}, capture_output=True, check=True, text=True)
    assert done.stdout == f"{said}\n"


@pytest.mark.parametrize(
    "value", ["$(touch owned)", "'; touch owned; '", "`touch owned`", '"; touch owned; "', "-n a\nb"]
)
def test_a_value_in_a_command_is_never_executed(value: str, tmp_path) -> None:
    """L24: text from outside never chooses a command."""
    shell = in_shell('printf \'%s|%s\' "{fix.summary}" "a {fix.summary}"')
    env = {variable: {"fix.summary": value}[field] for variable, field in shell.variables.items()}
    done = subprocess.run(
        ["sh", "-euc", shell.text], env=env | {"PATH": "/usr/bin:/bin"}, cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout.decode() == f"{value}|a {value}"
    assert list(tmp_path.iterdir()) == []


def test_one_field_is_one_variable_however_often_it_is_used() -> None:
    shell = in_shell("{a} {b.c} {a}")
    assert shell.text == "${BECKET_FIELD_1} ${BECKET_FIELD_2} ${BECKET_FIELD_1}"
    assert dict(shell.variables) == {"BECKET_FIELD_1": "a", "BECKET_FIELD_2": "b.c"}


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("echo '{a}'", ["a"]),
        ("echo \"'{a}'\"", []),
        ("echo \\'{a}\\'", []),
        ("# don't\necho {a} '{b}'", ["b"]),
        ("echo it#s '{a}'", ["a"]),
        ('echo "don\'t" {a}', []),
        ("cat <<END\ndon't {a}\nEND", []),
        ("echo 'unclosed {a}", ["a"]),
    ],
)
def test_fields_in_single_quotes_are_found(text: str, quoted: list[str]) -> None:
    assert [field.name for field in in_single_quotes(text)] == quoted


@pytest.mark.parametrize(
    ("template", "text", "said"),
    [
        ("{branch}@{sha}", "feature/a@b@12ab", {"branch": "feature/a@b", "sha": "12ab"}),
        ("{branch}@{sha}", "main@HEAD", None),
        ("{branch}@{sha}", "main@12ab\n", None),
        ("{branch}@{sha}", "@12ab", None),
        ("a.c/{sha}", "abc/12ab", None),
        ("{{{sha}}}", "{12ab}", {"sha": "12ab"}),
        ("{sha}..{sha}", "12ab..12ab", {"sha": "12ab"}),
        ("{sha}..{sha}", "12ab..12ac", None),
        ("{data.issue-id}: {sha}", "7: 12ab", {"data.issue-id": "7", "sha": "12ab"}),
        ("no field", "no field", {}),
        ("{branch}", "x" * 501, None),
    ],
)
def test_a_text_is_read_back_into_the_fields_that_give_it(
    template: str, text: str, said: dict[str, str] | None
) -> None:
    assert read_back(text, template, {"sha": "[0-9a-f]{4,64}"}) == said
    if said is not None:
        assert fill(template, said.__getitem__) == text


@given(st.lists(st.tuples(st.sampled_from(["", "/", "@", "("]), names), min_size=1, max_size=4), st.data())
@settings(deadline=None)
def test_what_was_filled_can_be_read_back(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    """Perhaps into other fields, where a text can be cut in several ways; never into ones that give another text."""
    values = {name: data.draw(st.text(alphabet="ab/@(", min_size=1, max_size=4)) for _, name in parts}
    template = "".join(f"{text}{{{name}}}" for text, name in parts)
    text = fill(template, values.__getitem__)
    said = read_back(text, template, {})
    assert said is not None
    assert fill(template, said.__getitem__) == text
