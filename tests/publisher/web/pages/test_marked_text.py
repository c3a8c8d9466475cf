"""The field that marks variables and Markdown, in a real browser."""

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from builder.text.prompts import parse_document, variable_names
from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.test_editor_browser import (
    FIELD,
    NEW,
    context,
    context_of,
    faults,
    open_variable,
    page,
    preview,
    shown,
    tab_to,
    text_of,
)
from tests.site.browser import DESKTOP, PHONE
from tests.site.test_axe import COLOUR_RULES, axe, violations

__all__ = ["axe", "context", "faults", "page"]  # fixtures

HOSTILE = (
    "</textarea></div><script>alert(1)</script><img src=x onerror=alert(1)>\n"
    "[x](javascript:alert(1)) {{<b>}} {{a}}\N{RIGHT-TO-LEFT OVERRIDE}b\n"
)
# More than the lines that fit on a screen, and less than those of a long text.
LINES_IN_SIGHT_MAX = 300


def marked(page: Page, kind: str = ".variable") -> list[str]:
    return page.locator(f"#content {kind}").all_text_contents()


def expect_marked(page: Page, *texts: str, kind: str = ".variable") -> None:
    expect(page.locator(f"#content {kind}")).to_have_text(list(texts))


def expect_text(page: Page, text: str) -> None:
    expect(page.locator(FIELD)).to_have_value(text)


def write(page: Page, text: str) -> None:
    """Write a text as scripts do."""
    page.locator(FIELD).evaluate(
        """(it, text) => {
          it.value = text;
          it.dispatchEvent(new Event("input", { bubbles: true }));
        }""",
        text,
    )


def test_what_is_typed_is_in_the_form(page: Page) -> None:
    text_of(page).click()
    page.keyboard.type("One {{a}}\n  two\n  three")
    page.keyboard.press("Enter")
    page.keyboard.type("four")
    # A new line begins without an indent, as in a textarea.
    expect_text(page, "One {{a}}\n  two\n  three\nfour")
    expect(shown(page)).to_contain_text("One {{a}}")
    page.keyboard.press("ControlOrMeta+z")
    expect(page.locator(FIELD)).not_to_have_value("One {{a}}\n  two\n  three\nfour")
    page.keyboard.press("ControlOrMeta+Shift+Z")
    expect_text(page, "One {{a}}\n  two\n  three\nfour")


def test_variables_are_marked_and_unknown_ones_underlined(page: Page) -> None:
    text_of(page).fill(
        "---\nlicense: '{{no}}'\n---\n# Head\n\n**{{a}}** \\{{b}} {{ c }} {{1}} {{d} }\n`{{a}}`"
    )
    expect_marked(page, "{{a}}", "{{ c }}", "{{a}}")
    expect_marked(page, "{{a}}", "{{ c }}", "{{a}}", kind=".unknown")
    hint = page.get_by_role("status").filter(has_text="Not described yet")
    expect(hint).to_contain_text("Not described yet: a, c. Describe them below")
    open_variable(page, "a")
    page.locator("#variable-a-example").fill("Ada")
    expect_marked(page, "{{ c }}", kind=".unknown")
    expect(hint).to_contain_text("Not described yet: c.")
    open_variable(page, "c")
    page.locator("#variable-c-type").select_option("integer")
    expect_marked(page, kind=".unknown")
    expect(page.locator("#unknown")).to_be_empty()


def test_what_the_page_came_with_is_known(
    people: People, owner: Visitor, context: BrowserContext
) -> None:
    people.publish_story(owner, "Tell {{hero}} a story.")
    page = context.new_page()
    page.goto(f"{people.url}/account/prompts/{owner.handle}/story")
    expect_marked(page, "{{hero}}")
    page.locator("#content .cm-content").press("ControlOrMeta+End")
    page.keyboard.type(" {{herro}}")
    expect_marked(page, "{{herro}}", kind=".unknown")
    preview(page)
    expect_marked(page, "{{herro}}", kind=".unknown")
    expect(page.locator("#unknown")).to_contain_text("Not described yet: herro.")


@pytest.mark.parametrize(
    "declared",
    [
        "variables:\n  a:\n    type: string\n  b: 1",
        "variables:\n- a\n- name: b\n  default: x",
        "title: T\n'variables': {a: 1, \"b\": {}}\ntags: [c]",
    ],
)
def test_front_matter_declares_variables(page: Page, declared: str) -> None:
    text_of(page).fill(f"---\n{declared}\nlicense: MIT\n---\n{{{{a}}}} {{{{b}}}} {{{{c}}}}")
    expect_marked(page, "{{c}}", kind=".unknown")
    assert marked(page) == ["{{a}}", "{{b}}", "{{c}}"]


def test_variables_are_those_that_the_hub_finds(page: Page) -> None:
    texts = [
        "", "{{a}}", "{{ a\t}}", "{{a\n}}", "\\{{a}}", "\\\\{{a}}", "{{{a}}}", "{{é}}", "{{_1}}",
        "{{1}}", "{{" + "a" * 64 + "}}", "{{" + "a" * 65 + "}}", "{{a}}{{b}}{{a}}", "{{a\u00a0}}",
        "---\nx: '{{a}}'\n---\n{{b}}", "---\n---\n{{b}}", "--- \nx: 1\n---\t\n{{b}}",
        "---\nx: '{{a}}'\n", "\n---\nx: '{{a}}'\n---\n", "{{\\{{a}}",
    ]  # fmt: skip
    expect(text_of(page)).to_be_visible()
    for text in texts:
        write(page, text)
        found = [one.strip("{} \t") for one in marked(page)]
        assert [*dict.fromkeys(found)] == variable_names(parse_document(text).body)


def test_line_ends_are_those_of_the_first_line(
    people: People, owner: Visitor, context: BrowserContext
) -> None:
    text = "One {{a}}\r\nTwo\nThree\r\n"
    people.publish_story(owner, text)
    page = context.new_page()
    page.goto(f"{people.url}/account/prompts/{owner.handle}/story")
    expect_marked(page, "{{a}}")
    preview(page)
    expect(page.get_by_role("main")).to_contain_text("Nothing changed since 1.0.0")
    page.locator("#content .cm-content").press("ControlOrMeta+Home")
    page.keyboard.type("Now: ")
    preview(page)
    page.get_by_role("button", name="Publish 1.0.1").click()
    expect(page.locator(".lead")).to_contain_text("1.0.1 is published")
    raw = people.server.get(f"/api/v1/repos/{owner.handle}/story/raw?version=1.0.1")
    assert raw.content == b"Now: One {{a}}\r\nTwo\r\nThree\r\n", "those of the first line"


def test_hostile_texts_are_inert(page: Page) -> None:
    text_of(page).fill(HOSTILE)
    expect_text(page, HOSTILE)
    # CodeMirror has empty images beside what it draws in a character's place.
    image = "img:not(.cm-widgetBuffer)"
    assert page.locator(f"#content :is(script, {image}, a, b, textarea)").count() == 0
    # A character that reverses the order of others can be seen.
    expect(page.locator("#content .cm-specialChar")).to_have_count(1)
    page.get_by_label("Title", exact=True).fill("inert")
    open_variable(page, "a")
    page.locator("#variable-a-example").fill(HOSTILE)
    expect(shown(page)).to_contain_text("</textarea></div><script>alert(1)</script><img src=x")
    page.set_viewport_size(PHONE)
    preview(page)
    assert page.locator(f"main :is(script, {image})").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect_text(page, HOSTILE)
    expect_marked(page, "{{a}}")


def test_the_keyboard_leaves_it(page: Page) -> None:
    tab_to(page, "content")
    page.keyboard.type("Typed")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") != "content"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "other-field"
    expect_text(page, "Typed")


def test_its_label_and_links_lead_to_it(page: Page, faults: list[str]) -> None:
    page.locator("label[for=content]").click()
    page.keyboard.type("x" * 10)
    expect_text(page, "x" * 10)
    text_of(page).fill("")
    page.get_by_label("Title", exact=True).fill("empty")
    page.locator("[value=preview]").first.evaluate("it => it.click()")
    page.get_by_role("alert").locator("a[href='#content']").click()
    expect(text_of(page)).to_be_in_viewport()
    field = page.get_by_role("textbox", name="Prompt", exact=True)
    wrong = page.locator("#content-wrong").inner_text()
    about = page.locator("#content-about").inner_text()
    expect(field).to_have_accessible_description(f"{about} {wrong}")
    expect(field).to_have_attribute("aria-invalid", "true")
    faults[:] = [fault for fault in faults if "422" not in fault]


def test_axe_finds_nothing(page: Page, axe: str) -> None:
    text_of(page).fill(
        "---\ntags: [a]\n---\n# Head\n\n> *Quote* **{{a}}** [x](https://example.org) `{{b}}`\n"
    )
    open_variable(page, "a")
    page.locator("#variable-a-example").fill("Ada")
    expect_marked(page, "{{b}}", kind=".unknown")
    page.evaluate(axe)
    for viewport in (DESKTOP, PHONE):
        page.set_viewport_size(viewport)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert violations(page, *([] if scheme == "light" else COLOUR_RULES)) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    "text", ["A line of a *long* prompt {{a}}.\n" * 6_000, "Words of one {{line}}. " * 9_000]
)
def test_a_long_text_is_drawn_as_far_as_it_is_in_sight(page: Page, text: str) -> None:
    expect(text_of(page)).to_be_visible()
    write(page, text)
    text_of(page).press("ControlOrMeta+End")
    page.keyboard.type("The {{end}}")
    expect_text(page, text + "The {{end}}")
    expect(page.locator("#content .variable").last).to_have_text("{{end}}")
    assert page.locator("#content .cm-line").count() < LINES_IN_SIGHT_MAX
    assert text_of(page).evaluate("it => it.textContent.length") < len(text) / 4


def test_a_touch_screen_has_the_plain_field(
    browser: Browser, people: People, owner: Visitor, faults: list[str]
) -> None:
    context = context_of(
        browser, people, owner, faults, viewport=PHONE, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(people.url + NEW)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("By {{thumb}}")
    expect(shown(page)).to_have_text("By {{thumb}}")
    expect(page.locator("#unknown")).to_contain_text("thumb")
    assert not any("codemirror" in url for url in urls)
    page.get_by_role("button", name="Mark variables").tap()
    expect_marked(page, "{{thumb}}", kind=".unknown")
    context.close()


def test_one_chooses_the_field(page: Page) -> None:
    text_of(page).fill("One {{a}}")
    page.get_by_role("button", name="Use a plain text field").click()
    plain = page.get_by_role("textbox", name="Prompt", exact=True)
    expect(plain).to_have_value("One {{a}}")
    expect(page.locator("textarea#content")).to_be_visible()
    plain.fill("Two {{a}}")
    page.get_by_label("Title", exact=True).fill("chosen")
    preview(page)
    expect(page.locator("textarea#content")).to_have_value("Two {{a}}")
    page.get_by_role("button", name="Mark variables and Markdown").click()
    expect_marked(page, "{{a}}")
    text_of(page).press("ControlOrMeta+End")
    page.keyboard.type("!")
    expect_text(page, "Two {{a}}!")


def test_the_editor_works_where_the_library_does_not_load(
    browser: Browser, people: People, owner: Visitor
) -> None:
    # The browser logs files that it could not load, so faults are ignored here.
    context = context_of(browser, people, owner, [])
    page = context.new_page()

    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/codemirror.js", refuse)
    page.goto(people.url + NEW)
    page.locator("textarea#content").fill("Still {{here}}")
    page.get_by_label("Title", exact=True).fill("still")
    expect(shown(page)).to_have_text("Still {{here}}")
    preview(page)
    page.get_by_role("button", name="Publish 1.0.0").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("still")
    context.close()
