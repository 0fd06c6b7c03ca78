"""Checks, before anything is started, that pyspark and a suitable Java are installed."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from recordwise.errors import ExtraError, MissingPartError

OLDEST_JAVA = 17
OLDEST_PYSPARK = 4
INSTALL = "pip install 'recordwise[spark]'"


def pyspark_sql() -> Any:
    """The module ``pyspark.sql``, imported only when needed."""
    try:
        import pyspark
        import pyspark.sql
    except ImportError:
        raise ExtraError(what="engine 'spark'", extra="spark") from None
    if int(pyspark.__version__.partition(".")[0]) < OLDEST_PYSPARK:
        raise MissingPartError(
            needed_by="engine 'spark'",
            part=f"pyspark {OLDEST_PYSPARK}",
            found=f"pyspark {pyspark.__version__}",
            advice=f"Install it: {INSTALL}",
        )
    return pyspark.sql


def check_java() -> None:
    """Refuse to start without a Java version that Spark 4 supports; called only if a JVM has to be started here."""
    program = java_program()
    version = None if program is None else java_version(program)
    if version is None or version < OLDEST_JAVA:
        raise MissingPartError(
            needed_by="engine 'spark'",
            part=f"Java {OLDEST_JAVA} or newer",
            found="no working Java" if version is None else f"Java {version}",
            advice=f"Install a Java runtime (version {OLDEST_JAVA} or 21, for example) and put it on the PATH or set JAVA_HOME.",
        )


def java_program() -> str | None:
    """The Java program that Spark's own scripts would use."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def java_version(program: str) -> int | None:
    """The major version: 17 for ``openjdk version "17.0.15"``, 8 for ``java version "1.8.0_402"``."""
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found.group(1)) if found else None
