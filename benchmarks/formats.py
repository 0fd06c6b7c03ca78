"""Each output format beside Parquet, in one run: ratios of time, and the peak of memory above the table that is written.

    python -m benchmarks.formats [--cells 1000000] [--formats csv,xlsx]

The table has two keys and four statistics, each with its sd, cv and interval: 22 columns. Every format is written by its own
process. Formats that are written piece by piece are also measured with a quarter of the cells: their memory hardly grows.
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.goals import record

CELLS = 1_000_000
STATISTICS = {"est": 5.0, "emp": 120.0, "payqtr1": 1_500.5, "payann": 6_000.25}
FORMATS = ("parquet", "csv", "sdmx-csv", "cbp", "stata", "sas8", "sas", "xlsx")
STREAMED = ("parquet", "csv", "sdmx-csv", "xlsx")


def write(name: str, cells: int, folder: Path) -> dict[str, float]:
    """Write one format and measure it."""
    import numpy as np
    import pyarrow as pa

    from recordwise.plan.publication import Labels
    from recordwise.release.content import content_of
    from recordwise.release.formats import known_formats
    from recordwise.release.published import Published
    from recordwise.release.tables import PRIVATE, ReleasedTable

    chance = np.random.default_rng(1)
    places = np.arange(cells)
    columns = {
        "county": pa.array(np.char.zfill((places % 3_000).astype(str), 5)),
        "naics": pa.array((100_000 + places // 3_000).astype(str)),
    }
    for each, sd in STATISTICS.items():
        value = chance.exponential(100 * sd, cells) + chance.normal(0, sd, cells)
        whole = each == "est"
        columns[each] = pa.array(np.rint(value).astype(np.int64) if whole else value)
        columns |= {f"{each}_sd": pa.array(np.full(cells, sd)), f"{each}_cv": pa.array(sd / np.abs(value))}
        columns |= {f"{each}_low": pa.array(value - 1.96 * sd), f"{each}_high": pa.array(value + 1.96 * sd)}
    table = ReleasedTable(name="table", keys=("county", "naics"), variables=tuple(STATISTICS), data=pa.table(columns))
    content = content_of(Published({"dataset": "bench"}), [table], Labels(), privacy_label=PRIVATE)
    del columns
    path = folder / "file"
    before, started, used = _reset(), time.perf_counter(), time.process_time()
    known_formats()[name].write(content, path)
    return {
        "seconds": time.perf_counter() - started,
        "processor": time.process_time() - used,
        "megabytes": _peak() - before,
        "file": path.stat().st_size / 1e6,
    }


def _reset() -> float:
    """Forget the peak of memory so far; what is in use now."""
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _peak() -> float:
    return _memory("VmHWM")


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def measured(name: str, cells: int) -> dict[str, float]:
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [sys.executable, "-m", "benchmarks.formats", "--write", name, "--cells", str(cells), "--folder", folder]
        done = subprocess.run(asked, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--cells", type=int, default=CELLS)
    reader.add_argument("--formats", default=",".join(FORMATS))
    reader.add_argument("--write")
    reader.add_argument("--folder", type=Path)
    given = reader.parse_args()
    if given.write:
        print(json.dumps(write(given.write, given.cells, given.folder)))
        return
    base = measured("parquet", given.cells)
    print(f"{given.cells:,} cells; parquet: {base['seconds']:.2f} s, {base['processor']:.2f} s of processor time")
    print(
        "format, seconds and processor as multiples of parquet's, peak MB above the table, of a quarter of the cells, file MB"
    )
    for name in given.formats.split(","):
        found = base if name == "parquet" else measured(name, given.cells)
        ratios = [found[each] / base[each] for each in ("seconds", "processor")]
        small = measured(name, given.cells // 4)["megabytes"] if name in STREAMED else float("nan")
        print(
            f"{name:9} {ratios[0]:6.1f} {ratios[1]:6.1f} {found['megabytes']:7.0f} {small:7.0f} {found['file']:7.0f}",
            flush=True,
        )
        if name == "csv":
            record("csv_file", ratios[0])
        if name in STREAMED:
            record(f"{name}_memory", found["megabytes"] / small)


if __name__ == "__main__":
    main()
