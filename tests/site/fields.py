"""Types into every field of a page, as a user does."""

from urllib.parse import urlsplit

from playwright.sync_api import Page

TYPED = "a/b"
FIELDS = ":is(input, textarea, select, [contenteditable=true]):not(:disabled):visible"
# The element that has the focus, also inside a shadow root.
_STATE = """() => {
  let one = document.activeElement;
  while (one.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  const takesText = one.isContentEditable || one.tagName === "TEXTAREA" ||
    one.matches("input:not([type]), [type=text], [type=search], [type=url], [type=password]");
  return { takesText: takesText && !one.readOnly, text: one.value ?? one.textContent,
    // A fault goes once its field changes.
    what: one.cloneNode().outerHTML.replace(' aria-invalid="true"', "").slice(0, 160) };
}"""


def lost_keys(page: Page) -> list[str]:
    """Types TYPED into each field; returns those that lost the focus or the text."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    path = urlsplit(page.url).path
    lost = []
    for field in page.locator(FIELDS).all():
        if not field.is_visible():
            continue  # the choice before has hidden it
        field.focus()
        before = page.evaluate(_STATE)
        if "cm-content" in before["what"]:
            page.locator(".cm-focused").wait_for()  # its script has noticed the focus
        page.keyboard.type(TYPED)
        after = page.evaluate(_STATE)
        if after["what"] != before["what"] or (after["takesText"] and TYPED not in after["text"]):
            lost.append(f"{before['what']} → {after['what']}: {after['text'][:80]!r}")
    assert urlsplit(page.url).path == path
    return lost
