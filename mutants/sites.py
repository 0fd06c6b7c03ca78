"""Every place of the package where a small slip of the hand could be, and what it would make of it.

A site is found by the syntax tree and written by replacing its exact span, so the rest of the file stays as it is byte by byte.
Docstrings, messages, types and decorators are left out. A site is named by its function, its operator and its statement, not by its
file and line: judgments outlive files that move.
"""

import ast
import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mutants.catalogue import PACKAGE, ROOT

COMPARISONS: dict[type[ast.cmpop], tuple[str, str, str]] = {
    ast.Lt: ("boundary", "<", "<="),
    ast.LtE: ("boundary", "<=", "<"),
    ast.Gt: ("boundary", ">", ">="),
    ast.GtE: ("boundary", ">=", ">"),
    ast.Eq: ("comparison", "==", "!="),
    ast.NotEq: ("comparison", "!=", "=="),
    ast.In: ("comparison", "in", "not in"),
    ast.NotIn: ("comparison", r"not\s+in", "in"),
    ast.Is: ("comparison", "is", "is not"),
    ast.IsNot: ("comparison", r"is\s+not", "is"),
}
SIGNS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
}
PAIRS = {
    "extreme": (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all")),
    "rounding": (
        ("floor", "ceil"),
        ("ROUND_FLOOR", "ROUND_CEILING"),
        ("ROUND_DOWN", "ROUND_UP"),
        ("lower", "upper"),
        ("floor_divide", "divide"),
    ),
    "spread": (("sd", "variance"), ("standard_error", "variance"), ("sigma", "variance"), ("std", "var")),
}
LIBRARY = {"min", "max", "any", "all", "minimum", "maximum", "argmin", "argmax", "floor", "ceil", "std", "var"}
"""Names that have their counterpart wherever they are used; others only if it is named in the file."""
UNWRAPPED = {"sqrt": "spread", "isqrt": "spread", "square": "spread", "abs": "absolute", "fabs": "absolute"}
SYMMETRIC = {
    "min",
    "max",
    "gcd",
    "lcm",
    "minimum",
    "maximum",
    "isinstance",
    "issubclass",
    "getattr",
    "setattr",
    "hasattr",
}
TALK = {"print", "echo", "warn", "secho", "log", "debug", "info", "tell"}


@dataclass(frozen=True)
class Site:
    """One bug at one place."""

    file: str
    """Below ``src/recordwise``."""
    function: str
    """Its qualified name; that of a class, or empty, outside functions."""
    operator: str
    statement: str
    """The statement it is in, as Python would write it; of a statement with a body, its head."""
    change: str
    span: tuple[int, int]
    """In bytes."""
    new: str
    line: int
    header: bool
    """Whether it stands in the head of its function, as a default does."""
    ordinal: int = 0

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """Its name, wherever its file goes."""
        return self.function, self.operator, self.statement, self.change, self.ordinal

    def applied(self, text: str) -> str:
        """The file with the bug in it."""
        data = text.encode()
        return (data[: self.span[0]] + self.new.encode() + data[self.span[1] :]).decode()


class Finder(ast.NodeVisitor):
    """Walks through one file."""

    def __init__(self, text: str, file: str) -> None:
        self._data, self._file, self._text = text.encode(), file, text
        self._lines = [0]
        for line in self._data.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._names: list[str] = []
        self._statement, self._header = "", False
        self.sites: list[Site] = []

    @cached_property
    def _words(self) -> set[str]:
        return set(re.findall(r"\w+", self._text))

    def _at(self, node: ast.AST) -> tuple[int, int]:
        return (
            self._lines[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            self._lines[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def _source(self, node: ast.AST) -> str:
        start, end = self._at(node)
        return self._data[start:end].decode()

    def _add(self, operator: str, span: tuple[int, int], new: str, line: int) -> None:
        old = self._data[span[0] : span[1]].decode()
        change = f"{' '.join(old.split())} -> {' '.join(new.split())}"
        function = ".".join(self._names).removesuffix(".<locals>")
        self.sites.append(Site(self._file, function, operator, self._statement, change, span, new, line, self._header))

    def _replace(self, operator: str, node: ast.expr | ast.stmt, new: str) -> None:
        self._add(operator, self._at(node), new, node.lineno)

    # Statements

    def visit(self, node: ast.AST) -> None:
        """Remember the statement, and leave out what is no code."""
        if not isinstance(node, ast.stmt):
            super().visit(node)
        elif not left_out(node):
            before, self._statement = self._statement, head(node)
            super().visit(node)
            self._statement = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._names.append(node.name)
        self._header = True
        for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each)):
            self._default(default)
        self._header = False
        self._names.append("<locals>")
        self._body(node)
        del self._names[-2:]

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        self._body(node)
        self._names.pop()

    def _body(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        for statement in node.body[int(ast.get_docstring(node, clean=False) is not None) :]:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if not node.orelse and isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break):
            self._replace("guard", node.test, "False")
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if "lock" in self._source(item.context_expr).lower() and item.optional_vars is None:
                self._replace("lock", item.context_expr, '__import__("contextlib").nullcontext()')
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Constant):
            return
        if isinstance(call, ast.Call) and name_of(call.func) not in TALK:
            self._replace("call", node, "...")
        self.generic_visit(node)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for kind, right in zip(node.ops, node.comparators):
            operator, symbol, new = COMPARISONS[type(kind)]
            start, end = self._at(left)[1], self._at(right)[0]
            between = self._data[start:end].decode()
            pattern = symbol if symbol[0] in "in" or "\\" in symbol else re.escape(symbol)
            if found := re.search(pattern, between):
                self._add(operator, (start + found.start(), start + found.end()), new, left.lineno)
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for place in range(len(node.values)):
            others = node.values[:place] + node.values[place + 1 :]
            if place in (0, len(node.values) - 1):
                span = self._at(others[0])[0], self._at(others[-1])[1]
                self._replace("term", node, self._whole(span))
            else:
                word = " and " if isinstance(node.op, ast.And) else " or "
                self._replace("term", node, word.join(map(self._wrapped, others)))
        self.generic_visit(node)

    def _whole(self, span: tuple[int, int]) -> str:
        text = self._data[span[0] : span[1]].decode()
        return text if balanced(text) else f"({text})"

    def _wrapped(self, node: ast.expr) -> str:
        return f"({self._source(node)})"

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not (is_text(node.left) or is_text(node.right)):
            self._binary(node)
        self.generic_visit(node)

    def _binary(self, node: ast.BinOp) -> None:
        if type(node.op) in SIGNS:
            old, new = SIGNS[type(node.op)]
            start, end = self._at(node.left)[1], self._at(node.right)[0]
            place = self._data[start:end].decode().find(old)
            self._add("sign", (start + place, start + place + len(old)), new, node.lineno)
            self._replace("term", node, self._wrapped(node.left))
        elif isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            self._replace("spread", node, self._wrapped(node.left))
        elif isinstance(node.op, ast.BitAnd | ast.BitOr) and not is_type(node.right):
            self._replace("term", node, self._wrapped(node.left))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub | ast.Not | ast.Invert):
            self._replace("sign" if isinstance(node.op, ast.USub) else "not", node, self._wrapped(node.operand))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = name_of(node.func)
        if name in ("cast", "TypeVar", "NewType", "overload"):
            return
        if name in UNWRAPPED and len(node.args) == 1 and not node.keywords:
            self._replace(UNWRAPPED[name], node, self._wrapped(node.args[0]))
        first = node.args[:2]
        if len(first) == 2 and name not in SYMMETRIC and all(is_plain(each) for each in first):
            one, other = map(self._source, first)
            if one != other:
                begin, end = self._at(first[0]), self._at(first[1])
                between = self._data[begin[1] : end[0]].decode()
                self._add("swapped", (begin[0], end[1]), f"{other}{between}{one}", node.lineno)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._paired(node, node.id, self._at(node))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        end = self._at(node)[1]
        self._paired(node, node.attr, (end - len(node.attr.encode()), end))
        if node.attr == "inf" and isinstance(node.ctx, ast.Load):
            self._replace("constant", node, f"(-{self._source(node)})")
        self.generic_visit(node)

    def _paired(self, node: ast.expr, name: str, span: tuple[int, int]) -> None:
        for operator, pairs in PAIRS.items():
            for pair in pairs:
                for one, other in (pair, pair[::-1]):
                    if name == one:
                        new = other
                    elif len(one) > 3 and name.endswith(f"_{one}"):
                        new = name.removesuffix(one) + other
                    else:
                        continue
                    if name in LIBRARY or new in self._words:
                        self._add(operator, span, new, node.lineno)
                        return

    def visit_Constant(self, node: ast.Constant) -> None:
        if (new := changed(node.value)) is not None:
            self._replace("constant", node, new)

    def _default(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and (new := changed(node.value)) is not None:
            self._replace("default", node, new)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A message, or a statement put together; not looked into."""

    def visit_arguments(self, node: ast.arguments) -> None:
        """Of a lambda: its defaults bind names."""


def changed(value: object) -> str | None:
    """Another constant of its kind; none for texts."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    if isinstance(value, float):
        return repr(1.5 * value) if value else "1.0"
    return None


def left_out(node: ast.stmt) -> bool:
    """Messages, types, and what only a reader of the code sees."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.Assert):
        return True
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test) or "__name__" in ast.unparse(node.test)
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return any(isinstance(each, ast.Name) and each.id.startswith("__") for each in targets)


def head(node: ast.stmt) -> str:
    """A statement without the statements in it."""
    if isinstance(node, ast.FunctionDef):
        return f"def {node.name}({ast.unparse(node.args)})"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    if isinstance(node, ast.For):
        return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    if isinstance(node, ast.With):
        return f"with {', '.join(map(ast.unparse, node.items))}"
    if isinstance(node, ast.Match):
        return f"match {ast.unparse(node.subject)}"
    if isinstance(node, ast.Try):
        return "try"
    return ast.unparse(node)


def name_of(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_type(node: ast.expr) -> bool:
    """By its name: a union of types is none of bits."""
    name = name_of(node)
    return (
        (isinstance(node, ast.Constant) and node.value is None) or name[:1].isupper() or name in {"str", "int", "float"}
    )


def is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or (
        isinstance(node, ast.Constant) and not isinstance(node.value, str)
    )


def balanced(text: str) -> bool:
    """Whether it can stand by itself on one line."""
    return "\n" not in text


def sites_of(text: str, file: str) -> list[Site]:
    """All sites of one file, in its order."""
    finder = Finder(text, file)
    finder.visit(ast.parse(text))
    return finder.sites


def all_sites(root: Path = ROOT) -> list[Site]:
    """All sites of the package, in an order that does not depend on where its files are."""
    package = root / PACKAGE
    found = [
        site
        for path in sorted(package.rglob("*.py"))
        for site in sites_of(path.read_bytes().decode(), path.relative_to(package).as_posix())
    ]
    seen: Counter[tuple[str, str, str, str, int]] = Counter()
    numbered = []
    for site in found:
        numbered.append(Site(**{**site.__dict__, "ordinal": seen[site.key]}))
        seen[site.key] += 1
    return sorted(numbered, key=lambda site: site.key)


def is_python(site: Site, text: str) -> bool:
    """Whether the file with the bug is Python, and another program."""
    try:
        return ast.dump(ast.parse(site.applied(text))) != ast.dump(ast.parse(text))
    except SyntaxError:
        return False


def drawn(sites: list[Site], *, seed: int, count: int, root: Path = ROOT) -> list[Site]:
    """So many of them, each as likely as any other; equal seeds draw the same."""
    found: list[Site] = []
    for site in random.Random(seed).sample(sites, len(sites)):
        if len(found) == count:
            break
        if is_python(site, (root / PACKAGE / site.file).read_bytes().decode()):
            found.append(site)
    return found
