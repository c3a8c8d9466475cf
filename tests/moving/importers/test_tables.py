"""Tables, JSON Lines and JSON of other projects become prompts, and nothing goes missing."""

import json

import pytest

from builder.model.errors import OperatorError
from builder.model.records import CONTENT_BYTES_MAX, Variable
from moving.importers.items import Columns, PassedOver
from moving.importers.run import Outcome
from tests.moving.importers.bringing import bring_text, latest, reasons


def test_a_table(root):
    table = 'Act,Prompt,Tags,Contributor\r\nChef,"Cook\r\n{{dish}}.",Food;Fun,"@Ann, bob"\r\n'
    outcome = bring_text(root, "chefs.csv", "\ufeff" + table)
    assert outcome == Outcome(["ann/chef 1.0.0"], [], [], [], [], [])
    record, text = latest(root, "ann/chef")
    assert text == "Cook\r\n{{dish}}."
    assert (record.title, record.tags, record.publisher) == ("Chef", ["food", "fun"], "ann")
    assert record.changelog == "Imported from chefs.csv"
    assert record.variables == [Variable("dish")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(root, delimiter):
    table = f"title{delimiter}prompt\nA{delimiter}x y\n"
    assert bring_text(root, "a.csv", table).created == ["imported/a 1.0.0"]


def test_tsv(root):
    assert bring_text(root, "a.TSV", 'title\tprompt\nA\t"x, y"\n').created == ["imported/a 1.0.0"]
    assert latest(root, "imported/a")[1] == "x, y"


def test_every_fault_of_a_table_is_reported_with_its_row(root):
    table = (
        b"title,prompt\n"
        b"A,one\n"
        b"B,\xff\n"
        b"C,\n"
        b",two\n"
        b"A,one\n"
        b"D,a,b\n"
        b"\n"
        b"E,a\0b\n"
        b'F,"a" b\n'
        b"G\n"
        b"H,fine\n"
        b'I,"never closed\n'
    )
    outcome = bring_text(root, "a.csv", table)
    assert outcome.created == ["imported/a 1.0.0", "imported/h 1.0.0"]
    faults = reasons(outcome)
    assert "UTF-8" in faults["row 3"]
    assert "content: is empty" in faults["row 4"]
    assert "'title' is empty" in faults["row 5"]
    assert outcome.passed_over == [PassedOver("row 6", "the same as row 2")]
    assert faults["row 7"] == "it has 3 cells under 2 columns"
    assert "NUL" in faults["row 9"]
    assert "not CSV" in faults["row 10"]
    assert "content: is empty" in faults["row 11"]
    assert "never closed" in faults["row 13"]
    assert len(faults) == 8


def test_a_cell_may_be_huge(root):
    outcome = bring_text(
        root, "a.csv", f"title,prompt\nA,{'x' * CONTENT_BYTES_MAX}\nB,{'x' * 300_000}\n"
    )
    assert outcome.created == ["imported/a 1.0.0"]
    assert "larger than 262,144 bytes" in reasons(outcome)["row 3"]


def test_same_title_other_text(root):
    table = "title,prompt\nChef,one\nchef,two\nChef,\nChef,three\n"
    created = ["imported/chef 1.0.0", "imported/chef-2 1.0.0", "imported/chef-4 1.0.0"]
    assert bring_text(root, "a.csv", table).created == created
    # A corrected row renames no other.
    mended = bring_text(root, "a.csv", table.replace("Chef,\n", "Chef,more\n"))
    assert mended.created == ["imported/chef-3 1.0.0"] and len(mended.unchanged) == 3


def test_columns_by_option(root):
    table = "q,Text of it,kind,topic,author\nA,hello,TEXT,My Topic,ann\n"
    columns = Columns("Q", "text of it", ("kind", "topic"), "")
    assert bring_text(root, "a.csv", table, columns=columns).created == ["imported/a 1.0.0"]
    assert latest(root, "imported/a")[0].tags == ["text", "my", "topic"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(), "No column 'title' or 'name' or 'act'. The columns are: one, prompt."),
        (Columns(title="one", prompt="two"), "No column 'two'"),
        (Columns(title="one", tags=("t",)), "--tags-column"),
        (Columns(title="one", contributor="who"), "--contributor-column"),
    ],
)
def test_columns_that_are_not_there(root, columns, message):
    with pytest.raises(OperatorError) as caught:
        bring_text(root, "a.csv", "one,prompt\nA,x\n", columns=columns)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", [b"", "title,prompt\nA,x".encode("utf-16")[:-1], b'"title'])
def test_no_table(root, text):
    with pytest.raises(OperatorError):
        bring_text(root, "a.csv", text)


def test_utf_16_with_a_byte_order_mark(root):
    table = "title,prompt\nCafé,Préparez\nB,two\n"
    for number, codec in enumerate(("utf-16-le", "utf-16-be")):
        raw = f"\ufeff{table}".encode(codec)
        assert len(bring_text(root, f"{number}.csv", raw, owner=f"a{number}").created) == 2
    assert latest(root, "a1/cafe")[1] == "Préparez"
    long = table + "".join(f"Title {number},text {number}\n" for number in range(20_000))
    half = f"\ufeff{long}C,".encode("utf-16-le") + b"\x00\xd8\n\x00D"
    outcome = bring_text(root, "half.csv", half, owner="bob", dry_run=True)
    assert len(outcome.created) == 20_002
    assert outcome.rejected and "Save the table as UTF-8" in outcome.rejected[-1].reason
    latin = bring_text(root, "latin.csv", table.encode("latin-1"))
    assert latin.created == ["imported/b 1.0.0"]
    assert reasons(latin) == {"row 2": "it is not UTF-8. Save the table as UTF-8"}


def test_titles_are_tidied(root):
    bring_text(root, "a.csv", f'title,prompt\n" A\n\u200bB ",x\nC{"c" * 300},x\n')
    assert latest(root, "imported/a-b")[0].title == "A B"
    assert len(latest(root, "imported/" + "c" * 64)[0].title) == 200


def test_lines(root):
    rows = [
        {"name": "A", "content": "x", "tags": ["One Two"], "author": "Ann", "license": "MIT",
         "parameters": {"model": "m"}},
        {"title": "B", "text": "y {{v}}", "variables": {"v": 1}, "tags": "p q", "id": 7},
        {"title": "C"}, {"title": 5, "text": "x"}, ["x"],
    ]  # fmt: skip
    lines = "\ufeff" + "\n\n".join(map(json.dumps, rows)) + "\n{\n"
    outcome = bring_text(root, "a.jsonl", lines)
    assert outcome.created == ["ann/a 1.0.0", "imported/b 1.0.0"]
    record = latest(root, "ann/a")[0]
    assert (record.tags, record.license, record.parameters) == (["one-two"], "MIT", {"model": "m"})
    assert latest(root, "imported/b")[0].variables == [Variable("v", type="integer", default=1)]
    faults = reasons(outcome)
    assert list(faults) == ["line 5", "line 7", "line 9", "line 10"]
    assert "The columns are: title." in faults["line 5"]


FRONT_END = [
    {"command": "/tidy-up", "title": "Tidy a text", "tags": ["Writing"], "timestamp": 1760000000,
     "content": 'Tidy {{CLIPBOARD}}, {{tone | select:options=["kind","brief"]:default="kind"}}.'},
    {"command": "plan_sql", "name": "", "content": "Plan {{n | number:min=1:default=3}} queries."},
]  # fmt: skip


@pytest.mark.parametrize("wrap", [list, lambda rows: {"version": 2, "of": [1], "prompts": rows}])
def test_a_chat_front_ends_export(root, wrap):
    outcome = bring_text(root, "export.json", "\ufeff" + json.dumps(wrap(FRONT_END)))
    assert outcome.created == ["imported/tidy-up 1.0.0"]
    assert reasons(outcome) == {"entry 2": "its 'name' is empty. Give each prompt a title"}
    record, text = latest(root, "imported/tidy-up")
    assert text == "Tidy {{CLIPBOARD}}, {{tone}}."
    assert (record.title, record.tags) == ("Tidy a text", ["writing"])
    assert record.variables == [
        Variable("tone", default="kind", enum=["kind", "brief"]), Variable("CLIPBOARD"),
    ]  # fmt: skip


def test_a_command_is_a_name_and_a_title_where_there_is_none(root):
    row = {key: value for key, value in FRONT_END[1].items() if key != "name"}
    bring_text(root, "export.json", json.dumps([row]).encode("utf-16"))
    record, text = latest(root, "imported/plan-sql")
    assert (record.title, text) == ("Plan SQL", "Plan {{n}} queries.")
    assert record.variables == [Variable("n", type="number", default=3)]


@pytest.mark.parametrize("file", ["a.json", "a.jsonl"])
def test_a_key_that_is_given_twice_is_a_warning(root, file):
    twice = '{"title": "A", "prompt": "one", "prompt": "two", "parameters": {"n": 1, "n": 2}}'
    other = '{"title": "B", "prompt": "one"}'
    outcome = bring_text(
        root, file, f"[{twice},{other}]" if file == "a.json" else f"{twice}\n{other}"
    )
    assert latest(root, "imported/a")[1] == "two"
    told = [one for one in outcome.warnings if "Repeated keys" in str(one)]
    assert len(told) == 1 and "the last one counts: 'prompt', 'n'." in str(told[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"), ("[" * 100_000, "is not JSON"), ("[]", "has 0 lists of objects"),
        ('{"a": [{}], "b": [{}]}', "has 2 lists of objects"), ('["x"]', "has 0 lists"),
        ('"x"', "has 0 lists"), ('{"a": [1]}', "has 0 lists"),
        ('{"a": [{}], "a": [{}]}', "has the key 'a' twice"),
    ],
)  # fmt: skip
def test_json_without_a_list_of_prompts(root, text, message):
    with pytest.raises(OperatorError) as caught:
        bring_text(root, "a.json", text)
    assert message in str(caught.value)


def test_a_column_without_a_name_is_no_contributor(root):
    table = ",title,prompt\nann,A,x\n"
    assert bring_text(root, "a.csv", table).created == ["imported/a 1.0.0"]
