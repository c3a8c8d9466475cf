"""The time that the editor blocks the browser for a key, in a long prompt: plain and marked.

Each key is typed in the middle of a text in Chromium, one after the other. The time of a key is
that from the keydown event to the end of the frame that shows it: immediate work of scripts, layout
and the start of the paint. Other load on the machine adds to that, so the processor time of the
page's thread for a key is printed as well. Work that scripts do when typing stops (forms of
variables, live preview, the copy in the browser) is the longest task after the last key, or 0 if
none takes 50 ms. Each round types into each field once, in turn. Needs Chromium.
"""

import argparse
import os
import shutil
import time
from typing import NamedTuple

from playwright.sync_api import BrowserContext, CDPSession, Page, sync_playwright
from report import median, print_machine, print_table, scratch_folder
from servers import hub

TEXT_BYTES = 200_000
AIM_MS = 50
PASSWORD = "seven quiet herons over Bergen"
_LINE = "A line of a *long* prompt for {{reader}}, with `code` and more.\n"
TEXTS = {
    "paragraphs": f"{_LINE * 5}\n",
    # One paragraph, which Markdown parses as a whole.
    "lines": _LINE,
    "one line": "Words of **one** line for {{reader}}. ",
}
FIELDS = {"plain": "textarea#content", "marked": "#content .cm-content"}
# The time from a key to the frame after it, and long tasks.
WATCH = """() => {
  window.keys = [];
  window.tasks = [];
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map((it) => it.duration)))
    .observe({ type: "longtask" });
  document.addEventListener("keydown", ({ timeStamp }) => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => keys.push(performance.now() - timeStamp);
      port2.postMessage(null);
    });
  }, { capture: true });
}"""
PUT = """(it, text) => {
  it.value = text;
  it.dispatchEvent(new Event("input", { bubbles: true }));
}"""
# A caret in the middle, by the field's own means.
MIDDLE = "it => { it.setSelectionRange(it.value.length / 2, it.value.length / 2) }"


class Round(NamedTuple):
    """The times of keys: each from keydown to frame, processor time of one, and the longest task
    after the last one.
    """

    keys_ms: list[float]
    processor_ms: float
    task_after_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=60, metavar="N", help="keys a round [60]")
    parser.add_argument("--rounds", type=int, default=3, metavar="K")
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if not chromium:
        parser.exit(1, "Install Chromium first: sh tests/install-tools\n")
    with scratch_folder(options.scratch) as folder:
        os.mkdir(f"{folder}/content")
        with hub(folder, None, 0, ["--open-signup"]) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium)
            context = browser.new_context()
            _sign_up(context, server.url)
            seen: dict[tuple[str, str], list[Round]] = {}
            for _ in range(options.rounds):
                for text in TEXTS:
                    for field in FIELDS:
                        done = _type(context, server.url, text, field, options.keys)
                        seen.setdefault((text, field), []).append(done)
            browser.close()
        print_table(
            f"A key in {TEXT_BYTES:,} bytes, {options.rounds} × {options.keys} keys, ms",
            ("", "processor", "median", "19 of 20", "longest", "task after"),
            [_row(f"{text}, {field}", rounds) for (text, field), rounds in seen.items()],
        )
        print(f"\nThe aim is {AIM_MS} ms. Load average: {os.getloadavg()[0]:.1f}")
        print_machine(folder)


def _sign_up(context: BrowserContext, url: str) -> None:
    page = context.new_page()
    page.goto(f"{url}/account/signup")
    page.fill("#handle", "typist")
    page.fill("#password", PASSWORD)
    page.fill("#again", PASSWORD)
    page.get_by_role("main").get_by_role("button").first.click()
    page.wait_for_url("**/account/prompts")
    page.close()


def _type(context: BrowserContext, url: str, text: str, field: str, keys: int) -> Round:
    """Type keys into a new prompt."""
    page = context.new_page()
    page.goto(f"{url}/account/prompts/new")
    page.evaluate("field => localStorage.setItem('hub-text-field', field)", field)
    page.reload()
    page.wait_for_selector(FIELDS[field])
    whole = (TEXTS[text] * (TEXT_BYTES // len(TEXTS[text]) + 1))[:TEXT_BYTES]
    place = page.locator("textarea[name=content]")
    place.evaluate(PUT, whole)
    page.wait_for_timeout(1500)
    _go_to_middle(page, field)
    page.wait_for_timeout(1500)
    page.evaluate(WATCH)
    clock = page.context.new_cdp_session(page)
    clock.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _busy_ms(clock)
    for at in range(keys):
        page.keyboard.press("abcde "[at % 6])
        time.sleep(0.02)
    page.wait_for_function("count => keys.length === count", arg=keys)
    busy = _busy_ms(clock) - before
    page.evaluate("tasks.length = 0")
    page.wait_for_timeout(1500)
    done = Round(page.evaluate("keys"), busy / keys, max(page.evaluate("tasks"), default=0.0))
    assert len(place.input_value()) == TEXT_BYTES + keys
    page.evaluate("localStorage.clear()")
    page.close()
    return done


def _busy_ms(clock: CDPSession) -> float:
    """Processor time of the page's main thread."""
    metrics = clock.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration") * 1000


def _go_to_middle(page: Page, field: str) -> None:
    place = page.locator(FIELDS[field])
    place.focus()
    if field == "plain":
        place.evaluate(MIDDLE)
        return
    place.press("ControlOrMeta+Home")
    # CodeMirror draws only the visible part, so the mouse sets the caret.
    scroller = page.locator("#content .cm-scroller")
    scroller.evaluate("it => { it.scrollTop = it.scrollHeight / 2 }")
    page.wait_for_timeout(500)
    box = scroller.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 3, box["y"] + min(box["height"], 300) / 2)


def _row(name: str, rounds: list[Round]) -> tuple[str, float, float, float, float, float]:
    keys = sorted(one for done in rounds for one in done.keys_ms)
    return (
        name, median([done.processor_ms for done in rounds]), median(keys),
        keys[len(keys) * 19 // 20], keys[-1], max(done.task_after_ms for done in rounds),
    )  # fmt: skip


if __name__ == "__main__":
    main()
