"""Changes to bytes and to trees of JSON: flips, cuts, repeats, splices, edge values, and words of a dictionary."""

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

EDGES = ["0", "-1", "1", "255", "65536", "9007199254740993", "18446744073709551616", "1e308", "1e-400", "-0", "1/0",
         "1/3", "0x10", "NaN", "Infinity", "1_000", "\u0663", "9" * 30, "0." + "3" * 30]  # fmt: skip
PIECES = [b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\n", b"\r", b'"', b"'", b"\\", b",", b";", b"(", b")", b"[",
          b"]", b"{", b"}", b"=", b"#", b"--", b"/*", "é".encode(), "\u202e".encode(),
          "\ud83d\ude00".encode("utf-16", "surrogatepass"),
          b"\xed\xa0\x80", b"\x1a", b"\t", b" " * 40, b"A" * 300]  # fmt: skip


def mutated(rng: Random, data: bytes, other: bytes, words: Sequence[bytes] = ()) -> bytes:
    """One to four changes in a row."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        data = rng.choice(CHANGES)(rng, data, other, words)
    return data


def _place(rng: Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def _span(rng: Random, data: bytes) -> tuple[int, int]:
    start = _place(rng, data)
    return start, min(len(data), start + rng.choice((1, 2, 4, 8, 30, 200)))


def flip(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    if not data:
        return data
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]


def overwrite(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + rng.choice((b"\x00", b"\xff", b"\x7f", rng.randbytes(1))) * (end - start) + data[end:]


def cut(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def truncate(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    return data[: _place(rng, data)]


def repeat(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    start, end = _span(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 50)) + data[end:]


def splice(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    start, end = _span(rng, other)
    at, until = _span(rng, data)
    return data[:at] + other[start:end] + data[rng.choice((at, until)) :]


def insert_piece(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    place = _place(rng, data)
    return data[:place] + rng.choice(PIECES) + data[place:]


def insert_word(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    place = _place(rng, data)
    return data[:place] + (rng.choice(words) if words else b"") + data[place:]


def edge_number(rng: Random, data: bytes, other: bytes, words: Sequence[bytes]) -> bytes:
    """Put an edge value in the place of a run of digits."""
    digits = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if not digits:
        return data
    start = rng.choice(digits)
    end = start
    while end < len(data) and 48 <= data[end] <= 57:
        end += 1
    return data[:start] + rng.choice(EDGES).encode() + data[end:]


CHANGES: list[Callable[[Random, bytes, bytes, Sequence[bytes]], bytes]] = [
    flip,
    overwrite,
    cut,
    truncate,
    repeat,
    splice,
    insert_piece,
    insert_word,
    edge_number,
]


def mutated_tree(rng: Random, data: bytes, other: bytes) -> bytes:
    """Change a node of a JSON text: another value, a node of another text, a node twice, a node less, a key renamed."""
    try:
        tree, donor = json.loads(data), json.loads(other)
    except (ValueError, RecursionError):
        return mutated(rng, data, other)
    for _ in range(rng.choice((1, 1, 2, 3))):
        holders = [node for node in nodes(tree) if isinstance(node, (dict, list)) and node]
        if not holders:
            break
        _change(rng, rng.choice(holders), rng.choice(nodes(donor)))
    return json.dumps(tree, ensure_ascii=False).encode("utf-8", "surrogatepass")


def nodes(tree: Any) -> list[Any]:
    """Every node, parents first."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        if isinstance(node, (dict, list)):
            waiting.extend(node.values() if isinstance(node, dict) else node)
    return found


def _change(rng: Random, holder: Any, donor: Any) -> None:
    places = list(holder) if isinstance(holder, dict) else range(len(holder))
    place = rng.choice(places)
    match rng.randrange(6):
        case 0:
            holder[place] = copy.deepcopy(donor)
        case 1:
            del holder[place]
        case 2 if isinstance(holder, list):
            holder.insert(place, copy.deepcopy(holder[place]))
        case 2:
            holder[str(place) + rng.choice(("", "_", "s", "\u0000"))] = holder.pop(place)
        case 3 if isinstance(holder, list):
            rng.shuffle(holder)
        case _:
            holder[place] = _other_value(rng, holder[place])


def _other_value(rng: Random, value: Any) -> Any:
    if isinstance(value, str) and rng.random() < 0.5:
        return edge_number(rng, value.encode("utf-8", "surrogatepass"), b"", ()).decode("utf-8", "replace")
    return rng.choice([None, True, False, 0, -1, 2**70, 1e300, 0.1, float("nan"), "", "x", [], {}, *EDGES])
