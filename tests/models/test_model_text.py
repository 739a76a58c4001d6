"""The text of a model: what is JSON here and what is not."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import ModelError
from anydml.models.text import parse, plain
from support.seconds import refusal_of, result_within


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, 2]}',
        '{"a": [1, 2,]}',
        '{"a": [1, 2,],}',
        '{"a": [1, 2 , ] , }',
        '// first\n{"a": /* one, two, */ [1, // one\n 2, /* none */ ], // end\n}',
        '{"a": [1, 2]} // no newline at the end',
        '{"a": /**/ [1, 2]}/***/',
        '\ufeff{"a": [1, 2]}',
    ],
)
def test_comments_and_trailing_commas(text):
    assert parse(text.encode()) == {"a": [1, 2]}


@pytest.mark.parametrize("string", ["// no", "/* no */", ",]", ",}", 'say \\"//\\", ]', "\\\\"])
def test_strings_are_left_alone(string):
    text = f'{{"a": ["{string}", /* yes */],}}'
    assert parse(text.encode()) == {"a": [json.loads(f'"{string}"')]}


@pytest.mark.parametrize(
    "text",
    [
        "", "{", '{"a": [,]}', '{"a": [1,,]}', '{,}', '{"a": ,}', "{'a': 1}", "{a: 1}",
        '{"a": 0x10}', '{"a": +1}', '{"a": .5}', '{"a": "unclosed}', '{"a": 1 /* unclosed}',
        '{"a": 1} /*/', '{"a": NaN}', '{"a": -Infinity}', '{"a": 1} {}', '{"a": tru}', "[1]",
        '"text"', '{"a": "b\nc"}', '{"a": 1 # no\n}', '{"a": ' + "9" * 5000 + "}",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(ModelError):
        parse(text.encode())


def test_text_behind_a_model():
    with pytest.raises(ModelError, match="line 2, column 1: Extra data"):
        parse(b"{}\n}")


def test_an_error_keeps_its_place():
    with pytest.raises(ModelError, match="line 3, column 9"):
        parse(b'{ // one\n /* two\n*/ "a": ?}')


def test_duplicate_members_count_as_the_last():
    assert parse(b'{"a": 1, "a": 2}') == {"a": 2}


def test_not_utf_8():
    with pytest.raises(ModelError, match="UTF-8"):
        parse(b'{"a": "\xff"}')


@pytest.mark.parametrize("text", ["/*", '"', '"\\"', "//", ",", "[,", "/*/"])
def test_text_made_to_be_slow_is_not(text):
    assert result_within(5, lambda: refusal_of(parse, (text * 200_000).encode()))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='/*,"\\]}[{ \n\ta'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='/*,"\\]a'), inner),
)


@given(values, st.sampled_from([None, 1]))
def test_plain_changes_no_json(value, indent):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assert plain(text) == text


@given(values, st.sampled_from(["/* , ] */", "// }\n", " "]))
def test_plain_finds_what_is_not_json(value, comment):
    text = json.dumps([value, value], indent=1, ensure_ascii=False)
    assert text.endswith("\n]")
    loose = comment + text[:-2] + comment + "," + comment + "]" + comment
    assert json.loads(plain(loose)) == [value, value]


@pytest.mark.parametrize(
    ("text", "line"), [("/* a", 1), ("{\n/* a", 2), ("/* a\n\n*/ {\n\n/*/", 5)]
)
def test_a_comment_that_is_not_closed_is_said_where_it_begins(text, line):
    with pytest.raises(
        ModelError, match=rf"at line {line}, column \d+: a comment that is not closed"
    ):
        plain(text)


def test_a_place_is_counted_from_its_line():
    for text, line, column in ((b"?", 1, 1), (b"\n?", 2, 1), (b"\n\n ?", 3, 2), (b"{}\n ?", 2, 2)):
        with pytest.raises(ModelError, match=f"line {line}, column {column}:"):
            parse(text)


def test_which_integer_is_too_long():
    maximum = sys.get_int_max_str_digits()
    text = f"[{'1' * maximum},\n{'1' * (maximum + 1)}]"
    with pytest.raises(ModelError, match="line 2, column 1: an integer of more than"):
        parse(text.encode())
