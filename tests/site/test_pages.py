"""Every kind of page: no sideways scrolling, dark mode, print, and use by keyboard.

Each visit also checks that the page logs nothing on the console and requests nothing from other
hosts.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.site.browser import DESKTOP, PHONE
from tests.site.catalogue import HOSTILE, PAGES, SQL_REVIEW
from tests.support.depth import rotating

TABS_MAX = 400
# They take as much room as other kinds of pages.
AS_WIDE = {
    "next page", "tag in an order", "first version", "chat version", "versions with labels",
    "labels compared", "nothing to compare", "hostile owner", "hostile markup, versions",
    "hostile markup, compared", "runs", "cut", "cut, compared", "invisible characters, compared",
}  # fmt: skip
HAS_RUN = "document.documentElement.classList.contains('js')"

# Elements that overflow the page to the right, except inside boxes that scroll.
STICKING_OUT = """() => {
  const width = document.documentElement.clientWidth;
  const found = document.scrollingElement.scrollWidth > width ? ["the page scrolls"] : [];
  const inBox = (one) => {
    for (let box = one.parentElement; box && box !== document.body; box = box.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return true;
    }
    return false;
  };
  for (const one of document.body.querySelectorAll("*")) {
    const place = one.getBoundingClientRect();
    if (place.width > 1 && place.right > width + 1 && !inBox(one)) {
      found.push(one.outerHTML.slice(0, 120));
    }
  }
  return found;
}"""

# The focused element, and whether it looks otherwise than without focus.
FOCUS = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const look = () => {
    const { outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor } =
      getComputedStyle(one);
    const outline = outlineStyle === "none" ? "none" : outlineWidth;
    return JSON.stringify([outline, boxShadow, borderColor, backgroundColor]);
  };
  const place = one.getBoundingClientRect();
  const focused = look();
  one.blur();
  const plain = look();
  one.focus({ preventScroll: true, focusVisible: true });
  return {
    what: one.outerHTML.slice(0, 120),
    isMarked: focused !== plain,
    isSeen: place.width > 1 && place.height > 1 && place.right > 0 && place.bottom > 0,
  };
}"""


def colours(page: Page) -> list[str]:
    return page.evaluate(
        """() => {
          const { color, backgroundColor } = getComputedStyle(document.body);
          return [color, backgroundColor];
        }"""
    )


@pytest.mark.parametrize("kind", rotating(kind for kind in PAGES if kind not in AS_WIDE))
def test_it_fits_any_width(visits, kind):
    page = visits.open(PAGES[kind], viewport=PHONE)
    assert page.evaluate(STICKING_OUT) == []
    for details in page.locator("details > summary:visible").all():
        details.click()
    page.set_viewport_size({"width": 320, "height": 600})
    assert page.evaluate(STICKING_OUT) == []
    page.set_viewport_size(DESKTOP)
    assert page.evaluate(STICKING_OUT) == []


@pytest.mark.parametrize("kind", ["home", "list"])
def test_a_long_name_of_the_hub_leaves_room_for_the_sign_and_the_links(visits, kind):
    page = visits.open(PAGES[kind], viewport={"width": 320, "height": 600})
    name = page.locator(".brand span")
    name.evaluate("(one) => { one.textContent = 'Prompts of the departments of Harbor'; }")
    assert page.evaluate(STICKING_OUT) == []
    assert page.locator(".brand img").bounding_box()["width"] == 26


@pytest.mark.parametrize("kind", ["home", "repo", "version", "api"])
def test_it_prints(visits, kind):
    page = visits.open(PAGES[kind], dark=True)
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Site")).to_be_hidden()
    expect(page.locator("#q")).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for prompt in page.locator("#prompt").all():
        expect(prompt).to_be_visible()
    expect(page.locator("button:visible")).to_have_count(0)
    page.set_viewport_size({"width": 640, "height": 900})  # about what A4 leaves
    assert page.evaluate(STICKING_OUT) == []
    # Dark ground would be printed as ink, and pale text on white as nothing.
    _, ground = colours(page)
    assert ground in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")


@pytest.mark.parametrize("kind", ["home", "repo"])
def test_dark_is_dark(visits, kind):
    light = colours(visits.open(PAGES[kind]))
    dark = colours(visits.open(PAGES[kind], dark=True))
    text, ground = (sum(map(int, one[4:-1].split(","))) for one in light)
    assert text < ground
    text, ground = (sum(map(int, one[4:-1].split(","))) for one in dark)
    assert text > ground


@pytest.mark.parametrize("kind", ["repo", "version", "search", "kinds"])
def test_focus_is_seen_all_the_way(visits, kind):
    page = visits.open(PAGES[kind])
    page.wait_for_function(HAS_RUN)
    stops = []
    for _ in range(TABS_MAX):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop is None:
            break
        stops.append(stop)
    assert 10 < len(stops) < TABS_MAX
    assert [stop["what"] for stop in stops if not (stop["isMarked"] and stop["isSeen"])] == []


# https://web.dev/articles/cls
SHIFT_MAX = 0.1
SHIFT = """() => {
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type: "layout-shift", buffered: true });
  return observer.takeRecords().reduce((sum, one) => sum + one.value, 0);
}"""


@pytest.mark.parametrize("kind", ["search", "compare", "not found", "withdrawn prompt", "repo"])
def test_nothing_in_sight_moves_while_scripts_fill_a_page(visits, kind):
    page = visits.open(PAGES[kind], viewport=PHONE, fresh=True)
    page.wait_for_load_state("networkidle")
    assert page.evaluate(SHIFT) < SHIFT_MAX


def test_the_first_stop_skips_to_the_content(visits):
    page = visits.open(f"/{SQL_REVIEW}")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.getElementById('main').contains(document.activeElement)")


@pytest.mark.parametrize("kind", rotating(HOSTILE))
def test_what_others_write_does_nothing(visits, kind):
    # Dialogs, errors, refusals of the policy and requests elsewhere are faults of any visit.
    page = visits.open(PAGES[kind])
    page.wait_for_function(HAS_RUN)
    for control in page.locator("#fill :is(textarea, input):visible").all():
        control.fill("<img src=x onerror=alert(6)>")
    for element in ("script:not([src])", "main img", "iframe"):
        expect(page.locator(element)).to_have_count(0)
    hrefs = page.eval_on_selector_all("[href]", "all => all.map((one) => one.protocol)")
    assert set(hrefs) <= {"http:", "https:", None}
