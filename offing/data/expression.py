"""Formulas over the columns of a table, as a schema writes them: `-cost - 0.1 * abs(next(temp) - temp)`.

    or    := and ("or" and)*          and  := not ("and" not)*        not := "not" not | compared
    compared := sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)?
    sum   := term (("+" | "-") term)*            term := sign (("*" | "/") sign)*
    sign  := "-" sign | atom
    atom  := number | "text" | name | `any name` | function "(" or ("," or)* ")" | "(" or ")"

Nothing is ever handed to Python's `eval`: a text becomes a tree of these forms, with limits on its size and depth,
and the tree is computed over whole columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from ..types import BadInput

LONGEST, MOST, DEEPEST = 2_000, 400, 40  # characters, tokens, levels of brackets
TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d][\w.]*)|`(?P<quoted>[^`]+)`"
    r"""|"(?P<text>[^"]*)"|'(?P<text2>[^']*)'|(?P<op><=|>=|==|!=|[-+*/(),<>]))"""
)
Arrays = tuple[np.ndarray, ...]
FUNCTIONS: dict[str, tuple[int, int, Callable[..., np.ndarray]]] = {  # fewest and most arguments
    "abs": (1, 1, np.abs),
    "min": (2, 16, lambda *parts: np.minimum.reduce(np.broadcast_arrays(*parts))),
    "max": (2, 16, lambda *parts: np.maximum.reduce(np.broadcast_arrays(*parts))),
    "clip": (3, 3, lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "if": (3, 3, lambda test, yes, no: np.where(np.isnan(test), np.nan, np.where(test != 0, yes, no))),
    "sqrt": (1, 1, np.sqrt),
    "exp": (1, 1, np.exp),
    "log": (1, 1, np.log),
    "next": (1, 1, lambda x: x),  # computed by the tree itself: it needs to know where rows go on
}
COMPARED: dict[str, Callable[..., np.ndarray]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
SUMS: dict[str, Callable[..., np.ndarray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


class Node(NamedTuple):
    """A form: what it is, its word or number, and its parts."""

    kind: str  # number, text, column, call, sum, compare, and, or, not
    word: str = ""
    parts: tuple[Node, ...] = ()


class Table(Protocol):
    """What a formula is computed over."""

    def numbers(self, name: str) -> np.ndarray: ...  # [N], nan where a cell is empty

    def equals(self, name: str, word: str) -> np.ndarray | None: ...  # [N] where the column holds words

    def after(self, column: np.ndarray) -> np.ndarray: ...  # the next row's, nan where there is none


def parse(text: str, key: str = "expression") -> Node:
    """The tree of a formula; BadInput says where it goes wrong. `key` is what messages call it."""
    if len(text) > LONGEST:
        raise BadInput(f"schema, '{key}': {len(text)} characters; {LONGEST} is the most")
    parser = _Parser(list(_tokens(text, key)), text, key)
    node = parser.either(0)
    if parser.at < len(parser.tokens):
        parser.refuse(f"{parser.tokens[parser.at][1]!r} was not expected")
    return node


def columns_in(node: Node) -> tuple[str, ...]:
    """Names of the columns that a formula reads, each once."""
    own = (node.word,) if node.kind == "column" else ()
    return tuple(dict.fromkeys((*own, *(name for part in node.parts for name in columns_in(part)))))


def looks_ahead(node: Node) -> bool:
    """Whether a formula reads the next row."""
    return (node.kind == "call" and node.word == "next") or any(map(looks_ahead, node.parts))


def reach(node: Node) -> int:
    """How many rows ahead a formula reads."""
    inner = max(map(reach, node.parts), default=0)
    return inner + (node.kind == "call" and node.word == "next")


def terms(node: Node) -> tuple[tuple[float, Node], ...]:
    """The parts that a formula adds up, each with its sign: what a reward consists of."""
    if node.kind == "sum" and node.word in "+-" and node.parts:
        first, second = node.parts
        sign = 1.0 if node.word == "+" else -1.0
        return (*terms(first), *((sign * s, part) for s, part in terms(second)))
    if node.kind == "negative":
        return tuple((-s, part) for s, part in terms(node.parts[0]))
    return ((1.0, node),)


def text_of(node: Node) -> str:
    """The formula as a text."""
    if node.kind == "call":
        return f"{node.word}({', '.join(map(text_of, node.parts))})"
    if node.kind in ("sum", "compare", "and", "or"):
        return f"({text_of(node.parts[0])} {node.word} {text_of(node.parts[1])})"
    if node.kind in ("negative", "not"):
        return f"{'-' if node.kind == 'negative' else 'not '}{text_of(node.parts[0])}"
    return repr(node.word) if node.kind == "text" else node.word


def compute(node: Node, table: Table, key: str) -> np.ndarray:
    """What a formula gives in every row, float64 [N] or one number; nan where a cell that it reads is empty."""
    if node.kind == "number":
        return np.float64(node.word)  # type: ignore[return-value]
    if node.kind == "column":
        return table.numbers(node.word)
    if node.kind == "text":
        raise BadInput(f"schema, '{key}': the text {node.word!r} can only be compared, with == or !=")
    if node.kind == "compare" and "text" in {part.kind for part in node.parts}:
        return _compare_words(node, table, key)
    parts = [compute(part, table, key) for part in node.parts]
    with np.errstate(all="ignore"):
        return _combined(node, parts, table)


def _combined(node: Node, parts: list[np.ndarray], table: Table) -> np.ndarray:
    if node.kind == "call" and node.word == "next":
        return table.after(np.asarray(parts[0], np.float64))
    if node.kind == "call":
        return FUNCTIONS[node.word][2](*parts)
    if node.kind == "sum":
        return SUMS[node.word](*parts)
    if node.kind == "negative":
        return np.negative(parts[0])
    empty = np.logical_or.reduce(np.broadcast_arrays(*map(np.isnan, parts)))
    if node.kind == "compare":
        truth = COMPARED[node.word](*parts)
    elif node.kind == "not":
        truth = parts[0] == 0
    else:
        truth = (np.logical_and if node.kind == "and" else np.logical_or)(*(part != 0 for part in parts))
    return np.where(empty, np.nan, truth.astype(np.float64))


def _compare_words(node: Node, table: Table, key: str) -> np.ndarray:
    one, other = node.parts if node.parts[1].kind == "text" else node.parts[::-1]
    ahead = one.kind == "call" and one.word == "next"
    column = one.parts[0] if ahead else one
    truth = table.equals(column.word, other.word) if column.kind == "column" else None
    if node.word not in ("==", "!=") or truth is None:
        raise BadInput(f"schema, '{key}': only a column of words can be compared with {other.word!r}, by == or !=")
    truth = truth if node.word == "==" else 1 - truth
    return table.after(truth) if ahead else truth


def _tokens(text: str, key: str) -> Iterator[tuple[str, str]]:
    at, count = 0, 0
    text = text.rstrip()
    while at < len(text):
        token = TOKEN.match(text, at)
        if token is None or (count := count + 1) > MOST:
            what = f"more than {MOST} words and signs" if token else f"{text[at:].strip()[:12]!r} was not expected"
            raise BadInput(f"schema, '{key}': {what}")
        kind = str(token.lastgroup)
        yield {"text2": "text", "quoted": "column"}.get(kind, kind), token[kind]
        at = token.end()


class _Parser:
    """Recursive descent through the tokens of a formula, one method per form."""

    def __init__(self, tokens: list[tuple[str, str]], text: str, key: str) -> None:
        self.tokens, self.text, self.key, self.at = tokens, text, key, 0

    def refuse(self, what: str) -> None:
        raise BadInput(f"schema, '{self.key}': {what} in {self.text[:80]!r}")

    def taken(self, *words: str) -> str:
        """The next sign or word, if it is one of these."""
        if self.at < len(self.tokens) and self.tokens[self.at] in [(k, w) for w in words for k in ("op", "name")]:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return ""

    def either(self, depth: int) -> Node:
        if depth > DEEPEST:
            self.refuse(f"more than {DEEPEST} brackets inside each other")
        node = self.both(depth)
        while self.taken("or"):
            node = Node("or", "or", (node, self.both(depth)))
        return node

    def both(self, depth: int) -> Node:
        node = self.negated(depth)
        while self.taken("and"):
            node = Node("and", "and", (node, self.negated(depth)))
        return node

    def negated(self, depth: int) -> Node:
        if self.taken("not"):
            if depth > DEEPEST:
                self.refuse("too many 'not'")
            return Node("not", "not", (self.negated(depth + 1),))
        node = self.added(depth)
        if word := self.taken(*COMPARED):
            return Node("compare", word, (node, self.added(depth)))
        return node

    def added(self, depth: int) -> Node:
        node = self.multiplied(depth)
        while word := self.taken("+", "-"):
            node = Node("sum", word, (node, self.multiplied(depth)))
        return node

    def multiplied(self, depth: int) -> Node:
        node = self.signed(depth)
        while word := self.taken("*", "/"):
            node = Node("sum", word, (node, self.signed(depth)))
        return node

    def signed(self, depth: int) -> Node:
        if self.taken("-"):
            if depth > DEEPEST:
                self.refuse("too many signs")
            return Node("negative", "-", (self.signed(depth + 1),))
        return self.atom(depth)

    def atom(self, depth: int) -> Node:
        if self.at >= len(self.tokens):
            self.refuse("something is missing at the end")
        kind, word = self.tokens[self.at]
        self.at += 1
        if kind in ("number", "text", "column"):
            return Node(kind, word)
        if kind == "name" and self.taken("("):
            return self.call(word, depth)
        if kind == "name" and word not in ("and", "or", "not"):
            return Node("column", word)
        if word != "(":
            self.refuse(f"{word!r} was not expected")
        node = self.either(depth + 1)
        if not self.taken(")"):
            self.refuse("a bracket is not closed")
        return node

    def call(self, word: str, depth: int) -> Node:
        if word not in FUNCTIONS:
            self.refuse(f"there is no function {word!r} ({', '.join(FUNCTIONS)} are known)")
        parts = [self.either(depth + 1)]
        while self.taken(","):
            parts.append(self.either(depth + 1))
        least, most, _ = FUNCTIONS[word]
        if not self.taken(")"):
            self.refuse("a bracket is not closed")
        if not least <= len(parts) <= most:
            self.refuse(f"{word}() takes {least if least == most else f'{least} to {most}'}, not {len(parts)}")
        return Node("call", word, tuple(parts))
