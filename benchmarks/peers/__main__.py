"""Run the peers' job everywhere and print ratios: ``make bench-peers``, or

    python -m benchmarks.peers [--rows 8000000] [--only duckdb recordwise opendp tumult]

The job: a count and three sums by county x 3-digit industry at all public cells, from a Parquet file to a Parquet file, whole
process, imports included. Environments are made once, in .venv-peers; Tumult Analytics also needs Java. What cannot be installed or
run is named and left out.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ENVIRONMENTS = ROOT / ".venv-peers"
NEEDS = {
    "duckdb": ["duckdb"],
    "recordwise": [str(ROOT)],
    "opendp": ["opendp[polars]>=0.14"],
    "tumult": ["tmlt.analytics>=0.20"],
}
REPEATS = {"duckdb": 3, "recordwise": 3, "opendp": 1, "tumult": 1}
LONGEST = 900
ELSEWHERE = {"tumult"}
"""Peers whose work is done by processes that are not ours to count."""


def environment(peer: str) -> Path:
    """A virtual environment with this peer and nothing of the others."""
    folder = ENVIRONMENTS / peer
    ready = folder / ".ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *NEEDS[peer]], check=True, timeout=LONGEST)
        ready.touch()
    return folder / "bin" / "python"


def measure(peer: str, records: Path, keys: Path) -> dict[str, float]:
    """The best of several runs of the whole process: seconds by the clock and of the processor."""
    python, runs = environment(peer), []
    for _ in range(REPEATS[peer]):
        folder = Path(tempfile.mkdtemp())
        command = [python, HERE / f"peer_{peer}.py", records, keys, folder / "out"]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, timeout=LONGEST, capture_output=True)
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        runs.append({"seconds": seconds, "processor": used})
        shutil.rmtree(folder)
    return {name: min(run[name] for run in runs) for name in ("seconds", "processor")}


def write_data(folder: Path, rows: int, *, python: Path | None = None) -> tuple[Path, Path]:
    """Records and public keys, made by recordwise, in its own environment unless another ``python`` is given."""
    records, keys = folder / "records.parquet", folder / "keys.parquet"
    script = f"""
import pyarrow as pa, pyarrow.parquet as pq, recordwise as rw
from recordwise.synthetic import public_keys, write_establishments
write_establishments({str(records)!r}, {rows})
pairs = public_keys()
industries = sorted({{code[:3] for code in pairs["naics"].to_pylist()}})
table = rw.Keys.product(county=sorted(set(pairs["county"].to_pylist())), naics3=industries).table
text = pa.schema([("county", pa.string()), ("naics3", pa.string())])
pq.write_table(table.cast(text), {str(keys)!r}, store_schema=False)
"""
    subprocess.run([python or environment("recordwise"), "-c", script], check=True)
    return records, keys


def attempted(peer: str, records: Path, keys: Path) -> dict[str, float] | None:
    try:
        return measure(peer, records, keys)
    except (subprocess.SubprocessError, OSError) as error:
        last = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()[-1:]
        print(f"{peer}: LEFT OUT, {type(error).__name__} {' '.join(last)[:200]}")
        return None


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--only", nargs="+", choices=list(NEEDS), default=list(NEEDS))
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        data = write_data(Path(folder), chosen.rows)
        found = {peer: figures for peer in chosen.only if (figures := attempted(peer, *data)) is not None}
    base = found.get("recordwise") or found.get("duckdb")
    for peer, figures in found.items():
        ratios = {name: figures[name] / base[name] for name in figures} if base else figures
        processor = "not counted" if peer in ELSEWHERE else f"{ratios['processor']:.2f}"
        print(f"{peer:12} {ratios['seconds']:7.2f} by the clock, {processor} of processor time", end=" ")
        print(f"({figures['seconds']:.1f} s here, {os.cpu_count()} cores)")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
