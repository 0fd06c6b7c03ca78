"""A field of CSV is one text on every engine and in every encoding, or the table is refused: quotes are read in one way only."""

import pytest

import recordwise as rw
from engines.plain_mechanism import Plain
from recordwise.engines.sources import files
from recordwise.engines.sources.files import check_quotes
from recordwise.errors import SourceError
from recordwise.plan import Plan, Schema
from recordwise.plan.query import query
from recordwise.plan.sources import CsvFiles

SCHEMA = Schema.of(unit="id", measures={"emp": 1}, columns={"town": "text"})
CLEAR = {
    "none": "a,b\n1,2\n",
    "some": 'a,b\n"1",2\n',
    "no end": 'a,b\n"1","2"',
    "empty": 'a,b\n1,""\n',
    "within": 'a,b\n1,a"b\n',
    "doubled": 'a,b\n1,"a""b"\n2,"""x"\n3,"x"""\n',
    "over lines": 'a,b\n\n1,"\n"\n2,"x\r\ny"\r\n',
    "nothing": "",
}
UNCLEAR = {
    "text after": ('a,b\n"1"x,"2"', 2),
    "text after nothing": ('a,b\n1,""x\n', 2),
    "a blank before": ('a,b\n1, "2"\n', 2),
    "blanks after": ('a,b\n1,"2"  \n', 2),
    "text after a delimiter": ('a,b\r\n1,"x\r\ny"\r\n3,"x,"y\r\n', 4),
    "not closed": ('a,b\n1,"open\n2,3\n', 2),
    "three and no end": ('a,b\n1,"""x\n', 2),
    "ends of one kind": ('a\r"1"\r"2" x', 3),
}


def written(tmp_path, text, delimiter=","):
    (tmp_path / "t.csv").write_bytes(text.replace(",", delimiter).encode())
    return CsvFiles((tmp_path / "t.csv",), delimiter)


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
@pytest.mark.parametrize("delimiter", [",", "\t", "|", "]", "^"])
def test_unclear_quotes_are_found_by_their_line_and_clear_ones_are_not(tmp_path, monkeypatch, block, delimiter):
    monkeypatch.setattr(files, "BLOCK", block)
    for text in CLEAR.values():
        check_quotes(written(tmp_path, text, delimiter))
    for text, line in UNCLEAR.values():
        with pytest.raises(SourceError, match=f"line {line} has a quote"):
            check_quotes(written(tmp_path, text, delimiter))


def test_a_record_without_an_end_is_not_kept_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", 10)
    monkeypatch.setattr(files, "LONGEST", 50)
    with pytest.raises(SourceError, match="line 2 has a quote"):
        check_quotes(written(tmp_path, 'a,b\n1,"' + "x" * 100 + '"\n'))


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize("field", ['"Zq"b', ' "Zq"', '"Zq" ', '""Zq', 'Z"q'])
def test_a_field_is_one_text_on_every_engine_or_refused(opens, tmp_path, field, encoding):
    (tmp_path / "t.csv").write_text(f"id,emp,town\n1,5,{field}\n", encoding=encoding)
    asked = query().group_by("town", keys=['Z"q', "Zq"]).sum("emp", Plain())
    plan = Plan(schema=SCHEMA, queries=(asked,))
    with opens(rw.sources.Csv(tmp_path / "t.csv", encoding=encoding), SCHEMA) as engine:
        if field != 'Z"q':
            with pytest.raises(SourceError, match="line 2 has a quote") as refusal:
                engine.totals(plan)
            assert "Zq" not in str(refusal.value)
            return
        (found,) = engine.totals(plan)
    assert [each.tolist() for each in found.exact.reveal().totals.values()] == [[5, 0]]
