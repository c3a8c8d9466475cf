"""Placeholders of other conventions: which become variables, which stay text, and the warnings."""

import jinja2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builder.model.answers import Message
from builder.model.errors import MESSAGE_CHARS_MAX
from builder.model.records import CONTENT_BYTES_MAX, VARIABLES_MAX, Variable
from builder.text.foreign import KEPT_MAX, find_foreign, find_single, tell_foreign
from builder.text.messages import parse_messages
from builder.text.prompts import fill, variable_names
from moving.importers.placeholders import CONVENTIONS, Turned, guess, turn, turn_messages
from tests.support.calls import few_steps


def optional(name: str, default: str, description: str = "") -> Variable:
    return Variable(name, description, required=False, default=default)


@pytest.mark.parametrize(
    ("text", "turned", "variables"),
    [
        ("Cook ${dish}.", "Cook {{dish}}.", []),
        ("${Dish:soup} ${Dish}", "{{Dish}} {{Dish}}", [optional("Dish", "soup")]),
        ("${dish}, ${dish: soup }", "{{dish}}, {{dish}}", [optional("dish", "soup")]),
        ("${Company Type: Big, old}", "{{company_type}}",
         [optional("company_type", "Big, old", "Company Type")]),
        ("${Chef's  dish}", "{{chefs_dish}}", [Variable("chefs_dish", "Chef's dish")]),
        ("${料理}", "{{liaoli}}", [Variable("liaoli", "料理")]),
        ("${नाम:x}", "{{nam}}", [optional("nam", "x", "नाम")]),
        ("${3D style}", "{{_3d_style}}", [Variable("_3d_style", "3D style")]),
        ("${a b} ${a_b}", "{{a_b_2}} {{a_b}}", [Variable("a_b_2", "a b")]),
        ("${a b} ${a-b}", "{{a_b}} {{a_b_2}}", [Variable("a_b", "a b"), Variable("a_b_2", "a-b")]),
        ("${\ue000}", "{{variable}}", [Variable("variable", "\ue000")]),
        ("${x:}", "{{x}}", [optional("x", "")]),
        ("${${goal:to win}}", "{{goal}}", [optional("goal", "to win")]),
        ("{${x}}", "{{{x}}}", []),
        ("{{ours}} and ${theirs}", "{{ours}} and {{theirs}}", []),
        (r"\${x} $${y} $z ${w}", r"\${x} $${y} $z {{w}}", []),
        ('{{role "user"}}\n${x}', '{{role "user"}}\n{{x}}', []),
    ],
)  # fmt: skip
def test_dollar(text, turned, variables):
    assert turn(text, "dollar") == Turned(turned, variables, [], [], True)


@pytest.mark.parametrize(
    ("text", "turned", "variables", "kept"),
    [
        ("${input:a} ${input:b:what\n it is: x}", "{{a}} {{b}}",
         [Variable("b", "what it is: x")], []),
        ("${input:a:first} ${input:a:second} ${a}", "{{a}} {{a}} {{a}}",
         [Variable("a", "first")], []),
        ("${input:Folder|docs/new} ${input:my-file: any }", "{{Folder}} {{my_file}}",
         [optional("Folder", "docs/new"), Variable("my_file", "any")], []),
        ("${file} ${env:HOME} ${a.b} ${c}", "{{file}} ${env:HOME} ${a.b} {{c}}",
         [], ["${env:HOME}", "${a.b}"]),
        ("```js\n${x} ${input:y}\n```\n${z}", "```js\n${x} {{y}}\n```\n{{z}}", [], []),
    ],
)  # fmt: skip
def test_vscode(text, turned, variables, kept):
    assert turn(text, "vscode") == Turned(turned, variables, kept, [], True)
    assert turn("$${a} \\${input:b}", "vscode").is_turned is False


@pytest.mark.parametrize(
    ("placeholder", "variable"),
    [
        ('{{x | select:options=["a","b: c"]}}', Variable("x", enum=["a", "b: c"])),
        ('{{x|select:options=["a"]:default="a"}}', optional("x", "a")),
        ("{{ x | number:min=1:default=5 }}", Variable("x", type="number", default=5)),
        ("{{x | number:default=many}}", Variable("x", type="number")),
        ("{{x | checkbox:default=true:label=\"Now?\"}}",
         Variable("x", "Now?", "boolean", default=True)),
        ('{{x | text:placeholder="e.g. \\"a\\"":required}}', Variable("x", 'e.g. "a"')),
        ("{{x | date}}", Variable("x")),
        ("{{x | textarea:default=a line}}", optional("x", "a line")),
    ],
)  # fmt: skip
def test_typed(placeholder, variable):
    if "options" in placeholder and variable.enum is None:
        variable.enum = ["a"]
    expected = Turned("Is {{x}}, {{y}}.", [variable], [], [], True)
    assert turn(f"Is {placeholder}, {{{{y}}}}.", "typed") == expected
    assert guess([f"Is {placeholder}."]) == "typed"


@pytest.mark.parametrize(
    "text", ["{{x | upper}}", '{{x | date: "%Y"}}', "{{a.b | text}}", "{{x | text:a=[{}]}}"]
)
def test_no_typed_placeholder(text):
    assert turn(text, "typed") == Turned(text, [], [], [], False)
    assert guess([text]) == "none"


@pytest.mark.parametrize(
    ("text", "turned", "kept"),
    [
        ("${env:HOME} ${file:a.md} ${env}", "${env:HOME} ${file:a.md} {{env}}", 2),
        ("${a} ${b} ${c} ${d.e}", "{{a}} {{b}} {{c}} ${d.e}", 1),
        ("`${a} is ${b.c()}`", "`${a} is ${b.c()}`", 2),
        ("${#list[@]} ${PORT:-80} ${x}", "${#list[@]} ${PORT:-80} ${x}", 3),
        ("${n - 1} ${1} ${a ? b : c}", "${n - 1} ${1} ${a ? b : c}", 3),
        # A fence with an expression is code, and one without is a template.
        (
            "${a} ${b} ${c}\n```js\n${d} ${e.f}\n```\n  ~~~~\n${g}\n```\n~~~~\n${h}",
            "{{a}} {{b}} {{c}}\n```js\n${d} ${e.f}\n```\n  ~~~~\n{{g}}\n```\n~~~~\n{{h}}",
            2,
        ),
        (r"C:\{${x} ${y}", r"C:\{${x} {{y}}", 1),
        ("${" + "a " * 200 + "} ${b} ${c} ${d}", "${" + "a " * 200 + "} {{b}} {{c}} {{d}}", 1),
    ],
)
def test_code_stays_text(text, turned, kept):
    found = turn(text, "dollar")
    assert (found.text, len(found.kept)) == (turned, kept)


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("{{{a}}} `{{{a}}}`", "{{{a}}} `{{{a}}}`"),
        ("```\n{{{a}}} {{b}} {{{{c}}}} \\{{{d}}}\n```",
         "```\n\\{{{a}}} {{b}} {{{{c}}}} \\{{{d}}}\n```"),
    ],
)  # fmt: skip
def test_three_braces_in_a_fence_of_a_file_are_code(text, turned):
    assert turn(text, "files").text == turned == turn(turned, "files").text


def test_the_first_of_several_defaults_wins_and_the_rest_are_reported():
    found = turn("${tone:warm}, ${tone:cool}, ${tone:warm} or ${tone:dry}", "dollar")
    assert found.variables == [optional("tone", "warm")]
    assert found.notes == [
        "{{tone}} has several defaults in the source. It gets 'warm', not 'cool', 'dry'."
    ]


@pytest.mark.parametrize(
    ("text", "turned", "kept"),
    [
        ("{x} {y_1} {{z}} {{{w}}}", "{{x}} {{y_1}} {{z}} {{{w}}}", []),
        ('{"a": {x}} { y } {} {a: b}', '{"a": {{x}}} { y } {} {a: b}', []),
        ("{a.b} {c[0]} {d!r} {e:.2f} {my name} {0}", None, 6),
        (r"C:\{user}", None, ["{user}"]),
        ("{Имя}", "{{imya}}", []),
    ],
)
def test_single(text, turned, kept):
    found = turn(text, "single")
    assert found.text == (turned or text)
    assert kept in (found.kept, len(found.kept))


def test_f_string_keeps_what_is_no_bare_name():
    found = turn("{x!r} {x:{w}} {{y}} {{{{z}}}} {x}", "f-string")
    assert found == Turned(r"{x!r} {x:{w}} {y} \{{z}} {{x}}", [], ["{x!r}", "{x:{w}}"], [], True)


@given(st.lists(st.sampled_from(["{x}", "{y}", "{{", "}}", "x", " ", "\\", "$"]), max_size=12))
def test_f_string_filled_in_is_what_python_makes_of_it(pieces):
    text = "".join(pieces)
    found = turn(text, "f-string")
    assume(not found.kept)
    values = {"x": "{{y}}", "y": "1"}
    assert fill(found.text, values) == text.format(**values)


@pytest.mark.parametrize(
    ("text", "turned", "kept"),
    [
        ("{{a}} {{ b }} {{{c}}} {{&d}} {{{ e }}}", "{{a}} {{ b }} {{c}} {{d}} {{e}}", []),
        ("{{user-name}} {{\nx\n}}", "{{user_name}} {{x}}", []),
        (r"\{{a}} \{{#b}}", r"\{{a}} \{{#b}}", []),
        (r"\{{{!a}} \{{{user-name}}}", None, []),
        ('{"a": {{{b}}}} {{}}', '{"a": {{b}}} {{}}', []),
        ("{{#a}}{{b}}{{/a}}{{^a}}{{/a}}", None, ["{{#a}}", "{{/a}}", "{{^a}}"]),
        ("{{>p}} {{!c}} {{a.b}} {{.}}", None, ["{{>p}}", "{{!c}}", "{{a.b}}", "{{.}}"]),
        ("{{#if a}}x{{else}}y{{/if}}", r"{{#if a}}x\{{else}}y{{/if}}", 3),
        ("{{else}} {{this}}", None, []),
        ('{{role "user"}}\n{{media url=photo}}', None, ["{{media url=photo}}"]),
        (r"{ {{~!}}{{a}}{{!}}} {{this.[if]}} \\{{!}}\{{b}}", r"{{{a}}} {{if}} \\{{b}}", []),
    ],
)
def test_mustache(text, turned, kept):
    found = turn(text, "mustache")
    assert found.text == (turned or text)
    assert kept in (found.kept, len(found.kept))


@pytest.mark.parametrize(
    ("text", "turned", "kept", "filled"),
    [
        ("{{ a }}{{b}}", "{{ a }}{{b}}", 0, True), ("{{ a | default('x') }}", "{{a}}", 0, True),
        ('{{a|d("", true)}} {{ b | default(1.5) }}', "{{a}} {{b}}", 0, True),
        ("{% raw %}{{ a }} {% if %}{% endraw %}", None, 2, False),
        ("{{ a | upper }} {{ a.b }} {{ 'x' }} {{- a }}", None, 4, False),
        ("{% if a %}{{ a }}{% endif %}{# no #}{#id", None, 3, False),
        ("""{{ "{{" }}a}} {{'{%'}} b %} {{ "{" }}{{ a }}}""", r"\{{a}} {% b %} {{{ a }}}", 0, True),
        (r"""\{{ "{{" }}a{{ '}}' }}""", r"\\{{a}}", 0, True),
        ("""{{ "{{" }}role "user"}}""", r"""\{{role "user"}}""", 0, True),
        ("{{ größe }}", "{{grosse}}", 0, False), (r"\{{ a }}", None, 1, False),
        ('{{role "user"}}\n{{ a }}', None, 0, False),
    ],
)  # fmt: skip
def test_jinja(text, turned, kept, filled):
    found = turn(text, "jinja")
    if "raw" in text:
        turned = r"{% raw %}\{{ a }} {% if %}{% endraw %}"
    assert (found.text, len(found.kept)) == (turned or text, kept)
    if filled:
        defaults = {variable.name: variable.default for variable in found.variables}
        for values in ({}, {"a": "1", "b": "2"}):
            ours = fill(found.text, {"a": "", "b": ""} | defaults | values)
            assert ours == jinja2.Template(text).render(values)


def test_messages_share_their_names():
    messages = [Message("system", "${x y} ${x-y}"), Message("user", '{{role "tool"}}\n${x-y}')]
    found = turn_messages(messages, "dollar")
    assert parse_messages(found.text) == [
        Message("system", "{{x_y}} {{x_y_2}}"),
        Message("user", '\\{{role "tool"}}\n{{x_y_2}}'),
    ]
    found = turn_messages([Message("user", "{a}\n{{b}}")], "f-string")
    assert parse_messages(found.text) == [Message("user", "{{a}}\n{b}")]


def test_more_placeholders_than_a_record_can_hold_stay_text():
    text = " ".join(f"${{name {number}}}" for number in range(VARIABLES_MAX + 1))
    found = turn(text, "dollar")
    assert (found.text, found.variables, len(found.kept)) == (text, [], KEPT_MAX)
    assert not found.is_turned
    assert found.notes == ["201 placeholders stay text: a prompt has at most 200 variables."]
    fits = turn(text.rpartition(" ")[0].rpartition(" ")[0], "dollar")
    assert len(fits.variables) == len(variable_names(fits.text)) == VARIABLES_MAX


def test_long_names_stay_apart():
    found = turn("${" + "word " * 39 + "} ${" + "word " * 38 + "}", "dollar")
    names = variable_names(found.text)
    assert len(set(names)) == 2 and all(len(name) <= 64 for name in names)


@pytest.mark.parametrize(
    ("texts", "convention"),
    [
        ([], "none"), (["Say hello."], "none"), (["About ${topic:cats}."], "dollar"),
        (["${a:b}", "${a:b}", "${a:b}"] + ["{{c}}"] * 9, "dollar"),
        (["${a:b}"] + ["{{c}}"] * 2, "none"), (["${a}"] * 5, "dollar"), (["${a}"] * 4, "none"),
        (["${a}"] * 5 + ["{{a}}"] * 5, "none"), (["`${a}`", "```\n${a}\n```"] * 5, "none"),
        (["```\n${a:b}\n```"] * 5, "none"), (["${a.b} ${c:d}"] * 5, "none"),
        (["${env:HOME} ${PORT:-80}"] * 5, "none"), (["{a} {b}"] * 9, "none"),
    ],
)  # fmt: skip
def test_guess(texts, convention):
    assert guess(texts) == convention


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ('{{role "user"}}\n{{a}} {{{b}}} {{ "x" }} {{}} {% x', []),
        (r"\frac{a}{b} x^{n} {1} {a b} /users/{id} `{c}` ${ {d}} {}", []),
        (r"\{{#if x}} \{{a.b}}", []),
        ("```\n{{#if x}} ${a}\n```\n`{{a.b}} ${b}` {% raised", []),
        ("`${a}${b.c}` ${d}", []),
        ("{{x^2}} {{(1, 2)}}", None),
        (
            "{{#if x}}{{y.z}}{{/if}}{% for a in b %}{{ c | d }}",
            [
                "These stay text, because prompts have no logic: {{#if x}}, {{y.z}}, {{/if}}, "
                "{% for a in b %} and others. Write {{name}} for a variable."
            ],
        ),
        (
            "${Your Name:Ada} ${b}",
            [
                "Write {{name}} for what is to be filled in: ${Your Name:Ada}, ${b}. `hubctl "
                "import --placeholders dollar` does so."
            ],
        ),
        (
            "Tell {name} of '{größe}'.",
            [
                "Write {{name}} for what is to be filled in: {name}, {größe}. `hubctl import "
                "--placeholders single` does so."
            ],
        ),
        (
            "{{質問}} {{ my-var }} {{1a}} {{first name}} {{else if x}}",
            [
                "These stay text: {{質問}}, {{ my-var }}, {{1a}}, {{first name}}. The name of a "
                "variable has at most 64 of a-z, A-Z, 0-9 and _, and begins with no digit.",
                "These stay text, because prompts have no logic: {{else if x}}. Write {{name}} for "
                "a variable.",
            ],
        ),
    ],
)
def test_foreign(text, warnings):
    found = tell_foreign(find_foreign(text) + find_single(text))
    assert found == warnings if warnings is not None else len(found) == 1


def test_a_warning_is_no_longer_than_a_message():
    logic = "".join(f"{{{{#{number}{'x' * 99}}}}}" for number in range(20))
    dollars = "".join(f"${{{chr(97 + number)}{'y' * 99}}}" for number in range(5))
    assert len(find_foreign(logic)) == KEPT_MAX
    found = find_foreign(logic)[:5] + find_foreign(dollars)
    assert len(found) == 10
    assert all(len(one) <= MESSAGE_CHARS_MAX for one in tell_foreign(found))


FULL = CONTENT_BYTES_MAX // 4  # enough that more than linear time does not end
HOSTILE_TEXTS = {
    "dollars": "${" * (FULL // 2),
    "braces": "{" * FULL,
    "open tags": "{{a" * (FULL // 3),
    "open logic": "{% if " * (FULL // 6),
    "raw": "{% raw %}" * (FULL // 9),
    "blank tags": ("{%" + " " * 1000) * (FULL // 1002),
    "open default": "{{ a | default(" + " " * (FULL - 20),
    "one name often": "${a}" * (FULL // 4),
    "many names": "".join(f"${{a{number}}}" for number in range(FULL // 10)),
    "many defaults": "".join(f"${{a:{number}}}" for number in range(FULL // 11)),
    "names that come to one": "".join(
        f"${{{''.join('-/'[number >> bit & 1] + 'x' for bit in range(13))}}}"
        for number in range(FULL // 34)
    ).replace("${-", "${x-").replace("${/", "${x/"),
    "codes in fences": "```\n${a.b}\n```\n${c} ${c} ${c} ${c}\n" * (FULL // 40),
    "backticks": "`" * FULL,
    "fences": "```\n" * (FULL // 4),
    "blank lines": " \t" * (FULL // 2),
    "nested": "{a{b" * (FULL // 4),
    "backslashes": "\\" * FULL + "{{a}}",
    "logic": "".join(f"{{{{#a{number}}}}}" for number in range(FULL // 11)),
    "markers": '{{role "user"}}\n' * (FULL // 16),
    "one long name": "{{" + "a" * FULL + "}}",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_hostile_texts_of_full_size_take_few_steps(text):
    with few_steps(100 * len(text)):
        for convention in CONVENTIONS:
            turn(text, convention)
        find_foreign(text)
        guess([text])
