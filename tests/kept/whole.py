"""Whole answers as they were kept: every number, name and sentence of them, in a file beside the module that asks.

``PYTHONPATH=tests python tests/kept/whole.py reader.kept_answers`` writes ``tests/reader/kept_answers.json`` anew, with more words
only those subjects. Read its difference before it is committed. Of a long answer the beginning is kept, and a digest of all of it,
its numbers to six digits.
"""

import hashlib
import importlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from kept.steady import told

Subjects = Mapping[str, Callable[[], Iterator[tuple[str, Any]]]]
PASSING = re.compile(
    r"(?<![\w.])[0-9a-f]{12,}…?|\d(?:\.\d+)?e-1\d|\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|\+[\d:]+)?)?|\b\d+\.\d+\.\d+(?:\.\w+)?|(?:/[\w.-]+)*/(?=[\w.-])"
)
"""Digests, roundings, days and times, versions and folders."""
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
CLOSE = 2e-6
LONG, BEGINNING = 800, 160
"""Characters of an answer that is kept as a digest, and of what is kept of it for a reader."""
SMALL = 1e-6
ANEW = "If it was meant to: PYTHONPATH=tests python tests/kept/whole.py {}"


def whole(value: Any) -> Any:
    """An answer as JSON, with nothing left out but what passes."""
    if isinstance(value, str | Path):
        return PASSING.sub("#", str(value))
    if isinstance(value, bool | np.bool_ | Enum) or value is None:
        return str(value)
    if isinstance(value, int | float | Fraction | np.number):
        return plain(float(value))
    if isinstance(value, pa.Table):
        return {name: whole(value[name].to_pylist()) for name in value.column_names}
    if isinstance(value, Mapping):
        return {str(whole(name)): whole(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return whole(value.tolist())
    if isinstance(value, list | tuple | set | frozenset | range):
        held = [whole(part) for part in value]
        return sorted(held, key=str) if isinstance(value, set | frozenset) else held
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: whole(getattr(value, field.name)) for field in fields(value)}
    return type(value).__name__ if callable(value) or isinstance(value, type) else PASSING.sub("#", str(value))


def plain(value: float) -> float | str:
    """To nine digits; JSON has no number that is none."""
    return float(f"{value:.9g}") if math.isfinite(value) else str(value)


def rough(value: Any) -> Any:
    """With numbers to six digits, and those that are nearly 0 as 0."""
    if isinstance(value, dict):
        return {name: rough(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rough(part) for part in value]
    if isinstance(value, str):
        return NUMBER.sub(lambda found: rough(float(found[0].replace(",", ""))), value)
    return f"{value:.6g}" if abs(value) >= SMALL else "0"


def shortened(value: Any) -> Any:
    """An answer, or the beginning and the digest of a long one."""
    text = json.dumps(value)
    if len(text) <= LONG:
        return value
    return {"digest": hashlib.sha256(json.dumps(rough(value)).encode()).hexdigest()[:24], "begins": text[:BEGINNING]}


def same(found: Any, kept: Any) -> bool:
    """Alike in all words, and in all numbers within what solvers and libraries differ by.

    The beginning of a long answer is for a reader: it ends where a number may be one digit longer.
    """
    if isinstance(kept, dict):
        if "digest" in kept and isinstance(found, dict) and "digest" in found:
            return bool(found["digest"] == kept["digest"])
        return (
            isinstance(found, dict)
            and list(found) == list(kept)
            and all(same(found[name], kept[name]) for name in kept)
        )
    if isinstance(kept, list):
        return isinstance(found, list) and len(found) == len(kept) and all(map(same, found, kept))
    if isinstance(kept, str):
        return isinstance(found, str) and (found == kept or _same_text(found, kept))
    return isinstance(found, int | float) and math.isclose(found, kept, rel_tol=CLOSE, abs_tol=1e-7)


def _same_text(found: str, kept: str) -> bool:
    if NUMBER.sub("#", found) != NUMBER.sub("#", kept):
        return False
    pairs = zip(NUMBER.findall(found), NUMBER.findall(kept))
    return all(same(float(one.replace(",", "")), float(other.replace(",", ""))) for one, other in pairs)


def kept_file(module: ModuleType) -> Path:
    return Path(module.__file__ or "").with_suffix(".json")


def asked(subjects: Subjects, name: str) -> dict[str, Any]:
    """What a subject tells now."""
    return json.loads(json.dumps(told(subjects[name], lambda value: shortened(whole(value)))))


def moved(module: ModuleType, subject: str) -> dict[str, tuple[Any, Any]]:
    """The parts that are no longer what was kept, as found and as kept."""
    kept = json.loads(kept_file(module).read_text(encoding="utf-8"))[subject]
    found = asked(module.SUBJECTS, subject)
    names = [*kept, *(name for name in found if name not in kept)]
    return {
        name: (found.get(name), kept.get(name))
        for name in names
        if name not in kept or not same(found.get(name), kept[name])
    }


def main(name: str, *chosen: str) -> None:
    module = importlib.import_module(name)
    path = kept_file(module)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for subject in module.SUBJECTS:
        if not chosen or subject in chosen:
            begun = process_time()
            kept[subject] = asked(module.SUBJECTS, subject)
            print(f"{subject}: {process_time() - begun:.1f} s, {len(kept[subject])} parts")
    parts = []
    for subject in (each for each in module.SUBJECTS if each in kept):
        held = ",\n".join(f"  {json.dumps(part)}: {json.dumps(value)}" for part, value in kept[subject].items())
        parts.append(f" {json.dumps(subject)}: {{\n{held}\n }}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
