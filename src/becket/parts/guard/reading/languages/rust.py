"""Rust: tests in their own files, tests inside source, and examples in documentation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from becket.parts.guard.reading.languages import treesitter
from becket.parts.guard.reading.languages.shape import (
    Import,
    Language,
    Outline,
    PartKind,
    Shape,
    SourceTest,
    SupportPart,
    says_success,
)
from becket.parts.guard.reading.languages.treesitter import bare, call_name, dotted

_TEST_MARK = re.compile(r"^(?:\w+\.)*(?:test|rstest|test_case|quickcheck|wasm_bindgen_test|proptest|case|sqlx_test)$")
_SKIP_MARK = re.compile(r"^(?:ignore|cfg|cfg_attr)$")
_TEST_CFG = frozenset({"test", "doctest", "miri", "loom", "kani", "fuzzing"})
_TEST_FEATURE = re.compile(r"test|mock|fake|bench|fuzz")
_QUIET_MARK = re.compile(r"^(?:allow|warn|deny|expect|doc|inline|must_use|rustfmt|clippy)\b")
_CHECK = re.compile(r"(?:^|\.)(?:debug_)?(?:assert\w*|panic|unreachable|prop_assert\w*|ensure|bail|unimplemented)!$")
_HARD_EXIT = re.compile(r"(?:^|\.)process\.(?:exit|abort)$|^exit$")
_TYPES = frozenset(
    {"struct_item", "enum_item", "trait_item", "impl_item", "type_item", "union_item", "macro_definition"}
)
_FENCE = re.compile(r"^\s*(?:```|~~~)(?P<info>[^`]*)$")
_RUST_INFO = frozenset({"should_panic", "edition2015", "edition2018", "edition2021", "edition2024"})
_DOC = re.compile(r"^\s*(?://[/!]|/\*[*!])")
_DOC_LEAD = re.compile(r"^\s*(?://[/!]|/\*[*!]|\*/|\*(?!/))? ?")
_ITEM = re.compile(r"\b(?:fn|struct|enum|trait|mod|type|const|static|macro_rules!)\s+(\w+)")
_ARGUMENTS = frozenset({"type_arguments"})
_FUNCTIONS = frozenset({"function_item", "closure_expression"})


def parse(source: bytes) -> Shape:
    return treesitter.parse("rust", source).root


def read(source: bytes) -> Outline:
    """A file of the test side: everything in it counts."""
    return _read(source, inside=True)


def read_embedded(source: bytes) -> Outline:
    """A source file: only its tests, its test modules and the examples in its documentation."""
    return _read(source, inside=False)


def _read(source: bytes, *, inside: bool) -> Outline:
    parsed = treesitter.parse("rust", source)
    reader = _Reader()
    reader.items(parsed.root.children, "", inside=inside)
    examples = _examples(parsed.lines)
    return Outline((*reader.cases, *examples), tuple(reader.parts), tuple(reader.imports), parsed.broken)


def may_have_changed(old: bytes, new: bytes) -> bool:
    return b"test" in old or b"```" in old or b"~~~" in old


def _mark_name(attribute: Shape) -> str:
    inner = next((child for child in attribute.children if child.kind == "attribute"), None)
    return dotted(inner.children[0]) if inner is not None and inner.children else ""


def _is_plain_test_cfg(attribute: Shape) -> bool:
    """Exactly `#[cfg(test)]`."""
    return [part.text for part in attribute.walk() if part.text and part.kind == "identifier"] == ["cfg", "test"]


def _is_test_cfg(attribute: Shape) -> bool:
    """Is what it marks there for tests alone? `any(test, feature = "std")` is the product too."""
    inner = [part.children[-1] for part in attribute.walk() if part.kind == "attribute"]
    return _names_test(attribute) and any(_for_tests(one) for tree in inner for one in _predicates(tree))


def _names_test(attribute: Shape) -> bool:
    return _mark_name(attribute) == "cfg" and "test" in _texts(attribute)


def _texts(shape: Shape) -> set[str]:
    return {part.text for part in shape.walk() if part.text}


def _predicates(tree: Shape) -> Iterator[list[Shape]]:
    """What stands between the commas."""
    found: list[Shape] = []
    for token in (*tree.children, None):
        if token is not None and token.kind != ",":
            found.append(token)
        elif found:
            yield found
            found = []


def _for_tests(predicate: list[Shape]) -> bool:
    head, last = predicate[0].text, predicate[-1]
    if head == "feature":
        return bool(_TEST_FEATURE.search(last.text))
    if last.kind != "token_tree":
        return head in _TEST_CFG
    inner = [_for_tests(one) for one in _predicates(last)]
    return (head == "any" and bool(inner) and all(inner)) or (head == "all" and any(inner))


class _Reader:
    def __init__(self) -> None:
        self.cases: list[SourceTest] = []
        self.parts: list[SupportPart] = []
        self.imports: list[Import] = []

    def items(self, items: Sequence[Shape], scope: str, *, inside: bool) -> None:
        """`inside`: within code that exists only for tests."""
        marks: list[Shape] = []
        for item in items:
            if item.kind == "attribute_item":
                marks.append(item)
                continue
            self._item(item, [mark for mark in marks if not _QUIET_MARK.match(_mark_name(mark))], scope, inside=inside)
            marks = []

    def _item(self, item: Shape, marks: list[Shape], scope: str, *, inside: bool) -> None:
        name = dotted(item.part("name"))
        path = f"{scope}::{name}" if scope else name
        tested = any(_is_test_cfg(mark) for mark in marks)
        shared = not inside and not tested and any(_names_test(mark) and "not" not in _texts(mark) for mark in marks)
        body = () if shared else item.without("name")  # that it is there for tests too may not change; what it does may
        shape = Shape(item.kind, "", (*marks, *body), item.line)
        if item.kind == "function_item" and any(_TEST_MARK.match(_mark_name(mark)) for mark in marks):
            self.cases.append(SourceTest(path, shape, item.line, scope))
        elif item.kind == "mod_item":
            self._module(item, marks, path, scope, inside=inside or tested, shared=shared)
        elif item.kind == "inner_attribute_item":
            if not _QUIET_MARK.match(_mark_name(item)) and (inside or _mark_name(item) == "cfg"):
                self.parts.append(SupportPart(PartKind.pragma, _mark_name(item), scope, item))
        elif item.kind == "use_declaration":
            if inside:
                self.imports.extend(_imported(item, scope))
        elif inside or tested or shared:
            self._part(item, name, shape, scope)

    def _module(self, item: Shape, marks: list[Shape], path: str, scope: str, *, inside: bool, shared: bool) -> None:
        body = item.part("body")
        if inside or shared:
            head = Shape("mod", "" if body is not None else "file", tuple(marks), item.line)
            self.parts.append(SupportPart(PartKind.holder, path, scope, head))
        if body is not None:
            self.items(body.children, path, inside=inside)

    def _part(self, item: Shape, name: str, shape: Shape, scope: str) -> None:
        if item.kind in {"const_item", "static_item"}:
            self.parts.append(SupportPart(PartKind.constant, name, scope, shape))
        elif item.kind == "function_item" or item.kind in _TYPES:
            self.parts.append(SupportPart(PartKind.helper, name or _head(item), scope, shape))
        else:
            self.parts.append(SupportPart(PartKind.statement, "", scope, shape))


def _head(item: Shape) -> str:
    """`impl Read for Either`: an implementation has no name of its own."""
    ends = (item.part("trait"), item.part("type"))
    named = [[part.text for part in end.walk_outside(_ARGUMENTS) if part.text] for end in ends if end is not None]
    return f"impl {' for '.join(texts[-1] for texts in named if texts)}"


def _imported(item: Shape, scope: str) -> Iterator[Import]:
    argument = item.part("argument")
    if argument is not None:
        for name, origin in _used(argument, ""):
            yield Import(f"{scope}::{name}" if scope else name, origin, item.line)


def _used(shape: Shape, prefix: str) -> Iterator[tuple[str, str]]:
    if shape.kind in {"use_list", "scoped_use_list"}:
        path = dotted(shape.part("path"))
        head = ".".join(filter(None, (prefix, path)))
        listed = shape.part("list")
        for child in listed.children if listed is not None else shape.children:
            yield from _used(child, head)
        return
    alias = dotted(shape.part("alias"))
    names = shape.part("path") if shape.kind == "use_as_clause" else shape
    name = dotted(names) or "".join(part.text for part in shape.walk() if part.text)
    origin = ".".join(filter(None, (prefix, name)))
    yield (alias or (origin if shape.kind == "use_wildcard" else name.rpartition(".")[2])), origin


def _examples(lines: Sequence[str]) -> Iterator[SourceTest]:
    counts: dict[str, int] = {}
    for first, text in _documents(lines):
        owner = _owner(lines, first + len(text) - 1)
        for offset, example in _fenced(text):
            counts[owner] = counts.get(owner, 0) + 1
            line = first + offset
            shape = Shape("document", "", (Shape("example", example, (), line),), line)
            yield SourceTest(f"{owner} (example {counts[owner]})", shape, line)


def _documents(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Documentation comments, those that follow each other as one text, each with its first line."""
    group: list[str] = []
    in_block = False
    for number, line in enumerate((*lines, ""), 1):
        marked = _DOC.match(line)
        if marked or in_block:
            group.append(_DOC_LEAD.sub("", line, count=1))
            in_block = (in_block or "/*" in line[: marked.end()] if marked else in_block) and "*/" not in line
        elif group:
            yield number - len(group), group
            group = []


def _fenced(text: Sequence[str]) -> Iterator[tuple[int, str]]:
    inside: list[str] | None = None
    start, runs, how = 0, False, ""
    for number, line in enumerate(text):
        fence = _FENCE.match(line)
        if inside is None and fence:
            words = set(re.split(r"[,\s]+", fence["info"].strip())) - {"", "rust"}
            inside, start, runs = [], number, words <= _RUST_INFO
            how = " ".join(sorted(words))  # `should_panic` turns what an example says into its opposite
        elif inside is not None and fence and not fence["info"].strip():
            if runs:
                yield start, "\n".join([how, *(line.strip() for line in inside if line.strip())])
            inside = None
        elif inside is not None:
            inside.append(line)


def _owner(lines: Sequence[str], after: int) -> str:
    for line in lines[after : after + 12]:
        if found := _ITEM.search(line):
            return found[1]
    return "crate"


def _is_check(shape: Shape) -> bool:
    if shape.kind == "example":
        return True
    if shape.kind == "attribute_item":
        return _mark_name(shape) == "should_panic"
    inner = bare(shape)
    return inner.kind == "macro_invocation" and bool(_CHECK.search(call_name(inner)))


def _bound_names(shape: Shape) -> Collection[str]:
    pattern = shape.part("pattern") if shape.kind == "let_declaration" else None
    return [part.text for part in pattern.walk() if part.kind == "identifier"] if pattern is not None else []


RUST = Language(
    name="Rust",
    read=read,
    parse=parse,
    name_of_call=call_name,
    is_check=_is_check,
    is_skip=lambda shape: (
        shape.kind in {"attribute_item", "inner_attribute_item"}
        and bool(_SKIP_MARK.match(_mark_name(shape)))
        and not _is_plain_test_cfg(shape)
    ),
    is_patch=lambda shape: False,
    is_hard_exit=lambda shape: bool(_HARD_EXIT.search(call_name(shape))) and says_success(shape),
    bound_names=_bound_names,
    blocks=frozenset({"block"}),
    tables=frozenset({"array_expression", "token_tree"}),
    loops=frozenset({"for_expression"}),
    guards=frozenset({"if_expression", "match_expression", "for_expression", "while_expression", "closure_expression"}),
    exits=frozenset({"return_expression", "break_expression", "continue_expression"}),
    functions=_FUNCTIONS,
    is_table_call=lambda shape: shape.kind == "attribute_item" and _mark_name(shape) in {"case", "test_case", "values"},
    embedded=read_embedded,
    may_have_changed=may_have_changed,
)
