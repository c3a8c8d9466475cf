"""What the other tests of pages rest on sees what it is to see."""

import pytest

from tests.site.markup import Markup
from tests.site.test_links import Links
from tests.site.test_pages import FOCUS, STICKING_OUT
from tests.support.servers import wait_until


@pytest.mark.parametrize(
    "kind, script",
    [
        ("console", "console.log('said')"),
        ("error", "setTimeout(() => { throw new Error('thrown'); })"),
        ("dialog", "alert('shown')"),
        # The policy refuses these, and the browser says so.
        ("console", "document.body.setAttribute('onclick', 'void 0')"),
        ("console", "document.body.setAttribute('style', 'color: red')"),
        ("console", "fetch('https://127.0.0.1:1/').catch(() => null)"),
        ("console", "document.body.append(Object.assign(new Image(), { src: 'data:x' }))"),
    ],
)
def test_what_a_page_should_not_do_is_noticed(tabs, hub, kind, script):
    visits = tabs(hub.url)
    page = visits.open("/tags")
    page.evaluate(script)

    def faults() -> list[str]:
        page.title()  # what the browser has to tell comes with its next answer
        return visits.faults

    wait_until(faults, kind)
    assert {fault.partition(":")[0] for fault in visits.end()} == {kind}


def test_a_request_elsewhere_is_noticed(tabs, hub):
    visits = tabs(hub.url)
    page = visits.open("/tags")
    page.goto(f"http://localhost:{hub.port}/tags")
    assert any(fault.startswith("elsewhere:") for fault in visits.end())


def test_what_sticks_out_is_noticed(visits):
    page = visits.open("/tags")
    page.evaluate("document.querySelector('h1').style.width = '1300px'")
    told, element = page.evaluate(STICKING_OUT)
    assert told == "the page scrolls" and element.startswith("<h1")
    page.evaluate("document.querySelector('main').style.overflowX = 'auto'")
    assert page.evaluate(STICKING_OUT) == []


def test_focus_that_cannot_be_seen_is_noticed(visits):
    page = visits.open("/tags")
    page.evaluate(
        """() => {
          const plain = new CSSStyleSheet();
          plain.replaceSync("a:focus { outline: none !important; }");
          document.adoptedStyleSheets = [plain];
        }"""
    )
    page.locator("main a").first.focus()
    assert not page.evaluate(FOCUS)["isMarked"]
    page.locator("#q").focus()
    assert page.evaluate(FOCUS)["isMarked"]


def test_what_is_inline_is_noticed(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<script>1</script><script src=x></script><style></style><p style=x><b onclick=x>"
        '<script type="application/ld+json">{}</script><a href=javascript:x>'
    )
    markup = Markup.read(page)
    assert markup.inline == ["<script>", "<style>", "<p style=x>", "<b onclick=x>"]
    assert markup.links == ["x", "javascript:x"]
    assert markup.data == ["{}"]


@pytest.mark.parametrize(
    "link, fault",
    [
        ("javascript:alert(1)", "not an address of the web"),
        ("/top", "outside of the base URL"),
        ("/prompts/no-such-owner", "nothing there"),
        ("/prompts/api/v1/repos/lin/review/raw?version=1.0.0", "a host of files ignores queries"),
        ("/prompts/top?page=2", "a host of files ignores queries"),
        ("/prompts/top#no-such-id", "no such fragment"),
        ("top#main", None),
        ("https://example.org/else", None),
        ("https://elsewhere.example/", None),
    ],
)
def test_faults_of_links_are_noticed(golden, link, fault):
    assert Links(golden).fault(link, f"{golden.base_url}/new") == fault
