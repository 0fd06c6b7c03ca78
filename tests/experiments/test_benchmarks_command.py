"""``python -m benchmarks``: one name runs one benchmark, an unknown one is refused before anything runs."""

import pytest

from benchmarks.__main__ import run


def test_an_unknown_benchmark_is_refused_with_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"nonsense: no such benchmark; there are .*noise.*queries.*release"):
        run(["startup", "nonsense"])
    assert capsys.readouterr().out == ""
