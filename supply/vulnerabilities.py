"""Whether a library of the lock has a known hole, by pip-audit, which asks a service on the network.

pip-audit ends with 0 when it found a library nowhere and checked nothing, so what it skipped is counted here.
"""

import json
import subprocess
import sys
from typing import Any

from supply.lock import ROOT

SERVICES = ("pypi", "osv")


class UncheckedError(Exception):
    """The service was not reached, or did not know the libraries."""


def vulnerability_problems() -> list[str]:
    reasons = []
    for service in SERVICES:
        found = _asked(service)
        skipped = [each for each in found if "skip_reason" in each]
        if found and not skipped:
            return [
                f"{each['name']} {each['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version yet'}"
                for each in found
                for hole in each["vulns"]
            ]
        reasons.append(f"{service} answered for {len(found) - len(skipped)} of {len(found)} libraries")
    raise UncheckedError("; ".join(reasons) + ". Run it where the service can be reached.")


def _asked(service: str) -> list[dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "-r",
        str(ROOT / "requirements.lock"),
        "--require-hashes",
        "--disable-pip",
    ]
    done = subprocess.run(
        [*command, "-s", service, "-f", "json", "--progress-spinner", "off"], capture_output=True, text=True
    )
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return []
    return found
