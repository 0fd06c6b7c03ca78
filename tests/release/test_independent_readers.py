"""Published files in the hands of programs that know nothing of ours: pysdmx and frictionless, in an environment of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from build import generous, question, records, session

NEEDED = ("pysdmx[data]==1.21.0", "frictionless==5.21.0")
READ = """
import json, sys
from pathlib import Path
import frictionless
from pysdmx.io import read_sdmx

folder = Path(sys.argv[1])
package = frictionless.Package(str(folder / "datapackage.json"))
report = package.validate()
tables = {each.name: [row.to_dict(json=True) for row in each.read_rows()] for each in package.resources}
types = {each.name: {field.name: field.type for field in each.schema.fields} for each in package.resources}
sdmx = {}
for path in sorted(folder.glob("*.sdmx.csv")):
    message = read_sdmx(str(path), validate=False)
    data = message.data[0].data
    sdmx[path.name] = {"structure": str(message.data[0].structure), "rows": json.loads(data.to_json(orient="records"))}
print(json.dumps({"valid": report.valid, "tables": tables, "types": types, "sdmx": sdmx}))
"""


@pytest.fixture(scope="module")
def readers(tmp_path_factory) -> Path:
    """A Python with the readers alone."""
    folder = tmp_path_factory.mktemp("readers")
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDED]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        missing = "pysdmx and frictionless cannot be installed here: files are NOT read by an independent program"
        if os.environ.get("RECORDWISE_REQUIRE_ALL"):
            pytest.fail(missing)
        pytest.skip(missing)
    return python


@pytest.mark.slow
def test_pysdmx_and_frictionless_read_the_values_of_the_release(readers, tmp_path) -> None:
    with session(records(300), tmp_path / "l.ledger", generous()) as opened:
        release = opened.run(question()).with_labels(labels={"county": "County"}, units={"sum_emp": "employees"})
    folder = release.save(tmp_path / "out", formats=["parquet", "csv", "sdmx-csv"])
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [readers, "-c", READ, folder], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    found = json.loads(done.stdout)
    assert found["valid"] is True
    for table in release.tables:
        rows = table.data.to_pylist()
        types = found["types"][table.name]
        assert {types[key] for key in table.keys} == {"string"}
        for line, row in zip(found["tables"][table.name], rows, strict=True):
            assert [line[key] for key in table.keys] == [row[key] for key in table.keys]
            for name in table.variables:
                assert float(line[name]) == pytest.approx(row[name], abs=0.005 * row[f"{name}_sd"])
                assert float(line[f"{name}_sd"]) == pytest.approx(row[f"{name}_sd"], rel=1e-3)
        told = found["sdmx"][f"{table.name}.sdmx.csv"]
        assert told["structure"].endswith(f"{table.name.upper()}(1.0)")
        assert len(told["rows"]) == len(rows) * len(table.variables)
        indicators = {name.upper(): name for name in table.variables}
        seen = {
            name: [line for line in told["rows"] if indicators[line["INDICATOR"]] == name] for name in table.variables
        }
        for name, lines in seen.items():
            for line, row in zip(lines, rows, strict=True):
                assert float(line["OBS_VALUE"]) == pytest.approx(row[name], abs=0.005 * row[f"{name}_sd"])
                assert line["CONF_STATUS"] == "F"
