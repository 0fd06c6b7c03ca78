"""Write ``supply/recordwise.cdx.json``, the bill of materials that the wheel carries (CycloneDX 1.6, in .dist-info/sboms).

    python -m supply.sbom

It lists what ``pip install recordwise`` brings along, at the versions of requirements.lock, with which the tests run. The wheel
itself contains nothing but recordwise.
"""

import json
import re
import tomllib
import uuid
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from supply.lock import ROOT, entries

OUT = Path(__file__).parent / "recordwise.cdx.json"
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": ""}
Graph = dict[str, list[str]]


def normal(name: str) -> str:
    """A name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def needed(requirements: list[str]) -> list[str]:
    """The names that apply on Linux without extras."""
    read = [Requirement(text) for text in requirements]
    return sorted({normal(each.name) for each in read if each.marker is None or each.marker.evaluate(LINUX)})


def graph() -> Graph:
    """Every library of a plain install with what it needs itself."""
    found: Graph = {}
    waiting = needed(project()["dependencies"])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = needed(list(distribution(name).requires or []))
            waiting += found[name]
    return dict(sorted(found.items()))


def locked(name: str) -> str:
    """The version that the lock pins."""
    lines = {normal(key): line for key, line in entries((ROOT / "requirements.lock").read_text()).items()}
    pinned = re.match(r"[^=]+==([^\s;]+)", lines[name])
    assert pinned is not None
    return pinned[1]


def license_of(name: str) -> str | None:
    """What its metadata state, if they state it as an expression."""
    stated = distribution(name).metadata.json.get("license_expression")
    return str(stated) if stated else None


def component(name: str, kind: str, version: str, license_: str | None) -> dict[str, Any]:
    known = {"licenses": [{"expression": license_}]} if license_ else {}
    purl = f"pkg:pypi/{name}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, **known}


def bill() -> dict[str, Any]:
    """The document. Its serial number follows from its content, so that the same wheel is built from the same commit."""
    own, needs = project(), graph()
    parts = {name: component(name, "library", locked(name), license_of(name)) for name in needs}
    whole = component(own["name"], "library", own["version"], own["license"])
    edges = {whole["bom-ref"]: needed(own["dependencies"])} | {parts[name]["bom-ref"]: needs[name] for name in needs}
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": whole},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": ref, "dependsOn": [parts[each]["bom-ref"] for each in names]} for ref, names in edges.items()
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(found, sort_keys=True))
    return {**found, "serialNumber": f"urn:uuid:{serial}"}


def main() -> None:
    OUT.write_text(json.dumps(bill(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
