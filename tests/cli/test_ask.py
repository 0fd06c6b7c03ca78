"""``recordwise ask``: the sentence, the table and JSON."""

import json


def test_a_total_is_printed_with_its_error_and_citation(folder, run):
    assert run("release", folder / "plan.toml", "--out", folder / "out", "--yes").exit_code == 0
    done = run("ask", folder / "out", "emp", "--where", "county=06037", "--where", "naics3=441,722", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    (answer,) = found["answers"]
    assert answer["low"] < answer["value"] < answer["high"]
    assert found["release"]["digest"] in found["citation"]
    printed = run("ask", folder / "out", "emp", "--where", "county=06037", "--where", "naics3=441,722")
    assert "with a standard error of" in " ".join(printed.stdout.split())
    (folder / "zones.csv").write_text("county,region\n06037,west\n17031,east\n")
    table = run("ask", folder / "out", "count", "--by", folder / "zones.csv")
    assert table.exit_code == 0
    assert all(word in table.stdout for word in ("west", "east", "standard error"))
    assert run("ask", folder / "out", "emp", "--where", "county").exit_code == 2
    assert run("ask", folder / "out", "payann").exit_code == 2
