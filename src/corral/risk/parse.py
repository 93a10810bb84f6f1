"""From text to simple commands, by tree-sitter-bash. One loop over the tree, no recursion, every byte accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from corral.risk import trust
from corral.risk.marks import HOLE, Doubt
from corral.risk.script import FILE, HEREDOC, PIPE, Redirection, Script, Simple
from corral.risk.tree import children, root_of
from corral.risk.values import Values
from corral.risk.words import resolve

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NESTING = 400

_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
_STRAIGHT = frozenset({"program", "compound_statement", "redirected_statement", "declaration_command"})
_REDIRECTIONS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_QUIET = frozenset(
    {"comment", "word", "variable_name", "number", "string", "raw_string", "heredoc_start", "heredoc_end"}
)
_MAYBE_ARITHMETIC = frozenset({"test_command", "compound_statement"})
_DECLARATIONS = frozenset({"declaration_command", "unset_command"})
_IN_LINE = frozenset({"command", "file_redirect", "herestring_redirect", *_DECLARATIONS})


def parse(command: str) -> Script:
    """The simple commands of a line. Offsets and words are in Latin-1 characters, one a byte of the UTF-8 text."""
    source = command.encode("utf-8", "surrogatepass")
    if b"\\\n" in source:
        source = trust.join_lines(source)
    script = Script(source.decode("latin-1"))
    for why in trust.textual_doubts(script.text):
        script.doubt(why)
    root = root_of(source)
    if root.has_error:
        script.doubt("the parser could not read all of it")
    script.self_feeding = trust.is_fork_bomb(script.text)
    _Walk(script).run(root)
    script.commands.sort(key=_start)
    return script


def _start(command: Simple) -> int:
    return command.span[0]


class _Place:
    """Where a node stands: what feeds its standard input, and whether it runs exactly once and in order."""

    __slots__ = ("depth", "fed", "function", "straight")

    def __init__(self, fed: str, function: str, straight: bool, depth: int) -> None:
        self.fed = fed
        self.function = function
        self.straight = straight
        self.depth = depth


class _Walk:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.text = script.text
        self.variables = Values(script.text)
        self.stack: list[tuple[Node, _Place]] = []

    def run(self, root: Node) -> None:
        self.stack.append((root, _Place("", "", True, 0)))
        while self.stack:
            node, place = self.stack.pop()
            kind = node.type
            if kind == "command":
                self._command(node, place)
            elif kind in _QUIET and not (kind == "string" and node.child_count):
                if kind == "raw_string" and "[" in self._slice(node):
                    self._words(node.start_byte, node.end_byte, node, [], place)
            elif place.depth > MAX_NESTING:
                self.script.too_deep = True
            elif kind == "variable_assignment":
                self._assignment(node, place, None)
            elif kind == "redirected_statement":
                self._redirected(node, place)
            elif kind in _DECLARATIONS:
                self._declaration(node, place)
            elif kind == "heredoc_redirect":
                self._heredoc(node, place)
            elif kind == "file_redirect" or kind == "herestring_redirect":
                simple = self._bare(node, place)
                self._redirection(node, simple, place)
            else:
                self._container(node, kind, place)

    def _bare(self, node: Node, place: _Place) -> Simple:
        simple = Simple((node.start_byte, node.end_byte), place.fed)
        self.script.commands.append(simple)
        return simple

    def _container(self, node: Node, kind: str, place: _Place) -> None:
        straight = place.straight and kind in _STRAIGHT
        function = place.function
        if kind == "arithmetic_expansion" or (
            kind in _MAYBE_ARITHMETIC and self.text.startswith("((", node.start_byte)
        ):
            self._arithmetic(node, place)
        elif kind == "test_command":
            self._bare(node, place).words.append("[")
            if not trust.is_one_test(self._slice(node)):
                self.script.doubt("a test over several lines")
            self.script.calculates = self.script.calculates or trust.compares_numbers(self._slice(node))
        elif kind == "c_style_for_statement":
            self.script.calculates = True
        elif kind == "compound_statement" and not trust.opens_group(self.text, node.start_byte):
            self.script.doubt("a brace that opens no group")
        elif kind == "function_definition":
            named = node.child_by_field_name("name")
            function = self._slice(named) if named is not None else ""
        inner = _Place(place.fed, function, straight, place.depth + 1)
        fed = inner if kind != "pipeline" else _Place(PIPE, function, False, place.depth + 1)
        after_pipe = False
        deeper = len(self.stack)
        for child in self._children(node):
            name = child.type
            where = fed if after_pipe else inner
            # The commonest kinds at once: a line of a million commands would otherwise be a stack of a million nodes.
            if name == "command":
                self._command(child, where)
            elif name == "variable_assignment":
                self._assignment(child, where, None)
            elif name == "|" or name == "|&":
                after_pipe = kind == "pipeline"
            elif name == "&":
                self.script.background = True
            elif child.is_named:
                self.stack.append((child, where))
        self.stack[deeper:] = self.stack[: deeper - 1 : -1] if deeper else self.stack[::-1]

    def _arithmetic(self, node: Node, place: _Place) -> None:
        text = self._slice(node)
        if text.startswith("(("):
            self._bare(node, place).words.append("((")
        if "((" in text[:3] and not trust.is_arithmetic(text):
            self.script.doubt("(( … )) that is no arithmetic")
        self.script.calculates = self.script.calculates or trust.calculates(text.lstrip("$"))

    def _command(self, node: Node, place: _Place, extra: Sequence[Node] = ()) -> Simple:
        simple = self._bare(node, place)
        held: Node | None = None
        for child in chain(self._children(node), extra):
            kind = child.type
            if kind == "variable_assignment" and held is None:
                self._assignment(child, place, simple)
            elif kind in _REDIRECTIONS:
                if kind == "heredoc_redirect":
                    self.stack.append((child, place))
                    simple.fed = HEREDOC
                    continue
                for word in self._redirection(child, simple, place):
                    self._held(held, simple, place)
                    held = word
            elif kind == "subshell" or kind == "ERROR":
                self.script.doubt("the parser could not read all of it")
                self.stack.append((child, place))
            else:
                if held is not None and held.end_byte == child.start_byte:
                    self.script.doubt("two words without a blank between them")
                self._held(held, simple, place)
                held = child
        self._held(held, simple, place)
        if extra:
            simple.span = (node.start_byte, extra[-1].end_byte)
        if place.function and simple.words and simple.words[0] == place.function and place.fed == PIPE:
            self.script.self_feeding = True
        return simple

    def _held(self, node: Node | None, simple: Simple, place: _Place) -> None:
        """Adds a word once the next one has shown that it is whole."""
        if node is None:
            return
        start, end = node.start_byte, node.end_byte
        text = self.text[start:end]
        if text in trust.UNREAD_WORDS:
            self.script.doubt(f"the word {text}")
        if not simple.words:
            if text in trust.UNREAD_NAMES:
                self.script.doubt("a reserved word where a program should be")
            simple.indirect = simple.indirect or "$" in text or "{" in text
        self._words(start, end, node, simple.words, place)

    def _words(self, start: int, end: int, node: Node, into: list[str], place: _Place) -> None:
        text = self.text[start:end]
        spans: list[tuple[int, int]] = []
        if "(" in text or "`" in text or "$[" in text:
            spans = [(a - start, b - start) for a, b in self._substitutions(node, place)]
        try:
            into.extend(resolve(text, self.variables.known, spans))
        except Doubt as doubt:
            self.script.doubt(str(doubt))
            into.append(HOLE)

    def _substitutions(self, node: Node, place: _Place) -> list[tuple[int, int]]:
        """Spans of the outermost substitutions below a word; each is walked later for the commands inside."""
        found: list[tuple[int, int]] = []
        inner = _Place("", place.function, False, place.depth + 1)
        todo = [node]
        while todo:
            here = todo.pop()
            if here.type in _SUBSTITUTIONS:
                found.append((here.start_byte, here.end_byte))
                self.stack.append((here, inner))
            else:
                todo.extend(here.children)
        return found

    def _value(self, node: Node, place: _Place) -> str:
        words: list[str] = []
        self._words(node.start_byte, node.end_byte, node, words, place)
        return " ".join(words)

    def _assignment(self, node: Node, place: _Place, owner: Simple | None) -> None:
        pieces = node.children
        name = self._slice(pieces[0]) if pieces else ""
        value = ""
        for child in pieces[1:]:
            if child.type == "array":
                self.stack.append((child, place))
                value = HOLE
            elif child.is_named:
                value = self._value(child, place)
        if pieces and pieces[0].type == "subscript":
            self.script.calculates = self.script.calculates or trust.calculates(name.partition("[")[2])
            self.stack.append((pieces[0], place))
        if owner is not None:
            owner.assign(name, value)
            return
        self._bare(node, place).assign(name, value)
        self.variables.remember(name, value, straight=place.straight)

    def _declaration(self, node: Node, place: _Place) -> None:
        simple = self._bare(node, place)
        for child in self._children(node):
            if child.type == "variable_assignment":
                self._assignment(child, place, simple)
                self.variables.remember(*simple.assignments[-1], straight=place.straight)
            else:
                self._words(child.start_byte, child.end_byte, child, simple.words, place)

    def _redirected(self, node: Node, place: _Place) -> None:
        pieces = list(self._children(node))
        body = pieces[0] if pieces and pieces[0].type not in _REDIRECTIONS else None
        redirections = [child for child in pieces if child.type in _REDIRECTIONS]
        simple = self._bare(node, place)
        fed, extra = place.fed, []
        for child in redirections:
            if child.type == "heredoc_redirect":
                fed = HEREDOC
                self.stack.append((child, place))
            else:
                extra.extend(self._redirection(child, simple, place))
                fed = simple.fed or fed
        inner = _Place(fed, place.function, place.straight, place.depth + 1)
        if body is not None and body.type == "command":
            self.script.commands.pop()
            found = self._command(body, inner, extra)
            for redirection in simple.redirections:
                found.redirect(redirection)
            found.span = simple.span if not any(c.type == "heredoc_redirect" for c in pieces) else found.span
        elif body is not None:
            simple.span = (redirections[0].start_byte, node.end_byte) if redirections else simple.span
            if extra:
                self.script.doubt("words after a redirection of a group")
            self.stack.append((body, inner))
        elif extra:
            for word in extra:
                self._words(word.start_byte, word.end_byte, word, simple.words, place)

    def _redirection(self, node: Node, simple: Simple, place: _Place) -> list[Node]:
        """Notes one redirection; gives back the words after its target, which bash reads as arguments."""
        operator, target, extra = "", None, []
        for child in self._children(node):
            kind = child.type
            if not child.is_named:
                operator = kind
            elif kind == "file_descriptor":
                continue
            elif target is None:
                target = child
            else:
                extra.append(child)
        value = self._value(target, place) if target is not None else ""
        if operator.startswith("<"):
            simple.fed = FILE
        simple.redirect(Redirection(operator, value))
        return extra

    def _heredoc(self, node: Node, place: _Place) -> None:
        self.script.heredoc = True
        start = body = ending = ""
        dashed = after_pipe = False
        for child in self._children(node):
            kind = child.type
            if kind == "<<-":
                dashed = True
            elif kind == "heredoc_start":
                start = self._slice(child)
            elif kind == "heredoc_body":
                body = self._slice(child)
                inner = _Place("", place.function, False, place.depth + 1)
                self.stack.extend((part, inner) for part in child.children if part.is_named)
            elif kind == "heredoc_end":
                ending = self._slice(child)
            elif kind == "|" or kind == "|&":
                after_pipe = True
            elif kind == "&":
                self.script.background = True
            elif child.is_named:
                first = child.children[0].type if child.child_count else ""
                piped = after_pipe or first in ("|", "|&")
                self.stack.append(
                    (child, _Place(PIPE if piped else place.fed, place.function, False, place.depth + 1))
                )
        if not trust.heredoc_is_whole(start, body, ending, tabs_dropped=dashed):
            self.script.doubt("a here-document that may end elsewhere")

    def _children(self, node: Node) -> Iterator[Node]:
        """The children of a node. Between them may stand only what bash skips, too."""
        text, previous = self.text, -1
        skipped = trust.skipped_in_line if node.type in _IN_LINE else trust.skipped
        for child in children(node):
            if previous >= 0 and not skipped(text[previous : child.start_byte]):
                self.script.doubt("characters that the parser skipped")
            yield child
            previous = child.end_byte

    def _slice(self, node: Node) -> str:
        return self.text[node.start_byte : node.end_byte]
