"""Screening of SQL text before it is parsed.

Short plain text, one statement, no comments, no deep nesting. DuckDB's parser must agree with ours. Ours
repairs what it reads (an extra comma, an unclosed bracket, a misplaced keyword), and the meaning of such text
is a guess, so text that only one of the two parsers accepts is refused. Nothing is executed: the connection
has no table and reads no file.
"""

import os
from functools import cache

import duckdb
from sqlglot import Token, TokenType, exp, parse, tokenize
from sqlglot.errors import SqlglotError

from recordwise.errors import SqlError


@cache
def _parser(process: int) -> duckdb.DuckDBPyConnection:
    """One parser per process, because a fork must not use its parent's."""
    settings: dict[str, str | bool | int | float | list[str]] = {"threads": 1, "enable_external_access": False}
    return duckdb.connect(":memory:", config=settings)


def one_select(text: str) -> bool:
    """Whether DuckDB reads the text as exactly one SELECT statement."""
    try:
        found = _parser(os.getpid()).cursor().extract_statements(text)
    except duckdb.Error:
        return False
    return [statement.type for statement in found] == [duckdb.StatementType.SELECT]


UNKNOWN = "cannot parse the text as one SELECT statement"
LONGEST_TEXT = 100_000
DEEPEST_NESTING = 40
LONGEST_CHAIN = 2_000
_QUOTED = {TokenType.STRING, TokenType.IDENTIFIER}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_CHAINING = {TokenType.AND, TokenType.OR, TokenType.WHEN}
_PLAIN = _QUOTED | {TokenType.VAR, TokenType.NUMBER, TokenType.COMMA}


def read_statement(text: str) -> exp.Expr:
    """Return the tree of the one statement in screened text."""
    _check_tokens(text, _tokens(text))
    try:
        trees = parse(text, read="duckdb")
    except (SqlglotError, RecursionError, ValueError):
        raise SqlError(construct=UNKNOWN) from None
    statements = [tree for tree in trees if tree is not None]
    if len(statements) != 1:
        raise SqlError(construct=f"{len(statements)} statements in one text", advice="Give one SELECT.")
    if not one_select(text):
        raise SqlError(construct="DuckDB's parser does not accept the text as one SELECT statement")
    return statements[0]


def _tokens(text: str) -> list[Token]:
    if not isinstance(text, str):
        raise SqlError(construct=f"a {type(text).__name__} in place of text")
    if len(text) > LONGEST_TEXT:
        raise SqlError(construct=f"text longer than {LONGEST_TEXT:,} characters")
    if "\x00" in text:
        raise SqlError(construct="a NUL character")
    try:
        return list(tokenize(text, read="duckdb"))
    except (SqlglotError, RecursionError, ValueError):
        raise SqlError(construct="the text cannot be read as SQL tokens") from None


def _check_tokens(text: str, tokens: list[Token]) -> None:
    if any(token.comments for token in tokens):
        raise SqlError(construct="a comment", advice="Leave comments out of SQL text.")
    _check_outside_quotes(text, tokens)
    if tokens and tokens[0].token_type != TokenType.SELECT:
        # The parser would treat what it does not know as a command, and print a warning.
        raise SqlError(construct=UNKNOWN, advice="Give one SELECT.")
    if any(token.token_type == TokenType.NOT and token.text == "!" for token in tokens):
        raise SqlError(construct="! in place of NOT", advice="Write NOT.")
    if any(token.token_type == TokenType.SEMICOLON for token in tokens[:-1]):
        raise SqlError(construct="several statements in one text", advice="Give one SELECT.")
    if _deepest(tokens) > DEEPEST_NESTING:
        raise SqlError(construct=f"nesting deeper than {DEEPEST_NESTING}", advice="Write long lists as IN (...).")
    if sum(token.token_type in _CHAINING for token in tokens) > LONGEST_CHAIN:
        raise SqlError(construct=f"more than {LONGEST_CHAIN:,} conditions", advice="Write long lists as IN (...).")


def _deepest(tokens: list[Token]) -> int:
    """Return the nesting depth of brackets and consecutive operators."""
    depth = run = deepest = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        run = 0 if token.token_type in _PLAIN else run + 1
        deepest = max(deepest, depth, run)
    return deepest


def _check_outside_quotes(text: str, tokens: list[Token]) -> None:
    """Allow characters beyond ASCII only in quotes, against look-alikes."""
    outside, end = [], 0
    for token in tokens:
        if token.token_type in _QUOTED:
            outside.append(text[end : token.start])
            end = token.end + 1
    outside.append(text[end:])
    for part in outside:
        if "--" in part or "/*" in part or "*/" in part:
            raise SqlError(construct="a comment", advice="Leave comments out of SQL text.")
        if any(not (" " <= character <= "~" or character in "\t\r\n") for character in part):
            raise SqlError(
                construct="a character outside ASCII and outside quotes", advice="Quote the name or the text."
            )
