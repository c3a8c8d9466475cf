"""The client as a hub serves it: to Deno and to web pages, by its URL."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from builder.model.settings import Settings
from tests.clients.typescript.conftest import CLIENT, HERE, RUNTIMES, Run
from tests.clients.typescript.test_vectors import check_vectors
from tests.clients.vectors import VECTORS
from tests.site.browser import TIMEOUT_MS, chromium
from tests.support.catalogues import build_files
from tests.support.servers import Server, file_host

ID = "mara-okafor/sql-review"


def test_it_has_the_address_of_its_hub(small: Settings):
    site = build_files(small._replace(base_url="https://hub.example/prompts"))
    source = (CLIENT / "hub.js").read_text(encoding="utf-8")
    assert source.count('const BUILT_FOR = "";\n') == 1
    told = source.replace('"";', '"https://hub.example/prompts";', 1)
    assert site["clients/hub.js"].decode() == told
    assert site["clients/hub.d.ts"] == (CLIENT / "hub.d.ts").read_bytes()


def test_any_page_may_import_it(live: Server):
    for name, media in (("hub.js", "text/javascript"), ("hub.d.ts", "text/plain")):
        answer = live.get(f"/clients/{name}")
        assert answer.headers["Content-Type"] == f"{media}; charset=utf-8"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_deno_imports_it_with_its_types(run: Run, tmp_path: Path, live: Server):
    program = tmp_path / "program.ts"
    program.write_text(
        f'import {{ Hub }} from "{live.url}/clients/hub.js";\n'
        f'const hub: Hub = new Hub("{live.url}", {{ timeout: 60 }});\n'
        f'const version: string | null = (await hub.get("{ID}")).version;\n'
        "console.log(version);\n",
        encoding="utf-8",
    )
    deno, *_ = RUNTIMES["deno"]
    host = f"{live.host}:{live.port}"
    command = (
        deno, "run", "--check", "--no-prompt", "--no-lock",
        f"--allow-net={host}", f"--allow-import={host}", program,
    )  # fmt: skip
    printed = run(*command)
    assert printed.strip() == live.get(f"/api/v1/repos/{ID}").json()["data"]["latest_version"]

    program.write_text(program.read_text(encoding="utf-8").replace("string | null", "number"))
    with pytest.raises(AssertionError, match="TS2322"):
        run(*command)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_prompt_of_a_team_is_read_like_any(
    run: Run, tmp_path: Path, team_hub: Server, runtime: str
):
    (tmp_path / "hub.mjs").write_bytes(team_hub.get("/clients/hub.js").content)
    program = tmp_path / "program.mjs"
    program.write_text(
        'import { Hub } from "./hub.mjs";\n'
        "const hub = new Hub();\n"
        'for (const ref of ["", "@latest", "@1.0.0", "@staging"]) {\n'
        "  const prompt = await hub.get(`support/triage${ref}`);\n"
        '  console.log(prompt.version, prompt.fill({ ticket: "a late parcel" }));\n'
        "}\n",
        encoding="utf-8",
    )
    assert run(*RUNTIMES[runtime], program) == "1.0.0 Sort a late parcel.\n" * 4


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, installed_tools: None) -> Iterator[Page]:
    """A page of another origin than the hub's."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text("<!doctype html><title>Theirs</title>", encoding="utf-8")
    (folder / "vectors.mjs").write_bytes((HERE / "vectors.mjs").read_bytes())
    with file_host(str(folder)) as url, chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(url)
        yield page


def test_a_page_of_another_origin_reads_prompts(page: Page, live: Server):
    methods = []
    page.on("request", lambda request: methods.append((request.method, request.url)))
    seen = page.evaluate(
        """async ([url, id]) => {
          const { Hub, NotFound } = await import(`${url}/clients/hub.js`);
          const told = [];
          const hub = new Hub(url, { timeout: 60, onGet: ({ source }) => told.push(source) });
          const now = Date.now;
          const { version, sha256 } = await hub.get(id);
          await hub.get(id);
          Date.now = () => now() + 3_600_000;  // too old: it is asked for again
          await hub.get(id);
          const gone = await hub.get(`${id}@9.9.9`).catch((error) => error instanceof NotFound);
          Date.now = now;
          return { version, sha256, told, gone };
        }""",
        [live.url, ID],
    )
    known = live.get(f"/api/v1/repos/{ID}").json()["data"]
    assert seen == {
        "version": known["latest_version"], "sha256": known["sha256"], "gone": True,
        "told": ["network", "memory", "network"],
    }  # fmt: skip
    # The browser asks for no permission first, so the client has sent no headers of its own.
    assert {method for method, _ in methods} == {"GET"}
    record = f"{live.url}/api/v1/repos/{ID}.json"
    assert [url for _, url in methods].count(record) == 2


def test_vectors_in_a_page(page: Page, live: Server):
    found = page.evaluate(
        """async ([url, cases]) => {
          const client = await import(`${url}/clients/hub.js`);
          const { outcomesOf } = await import("/vectors.mjs");
          return JSON.stringify(outcomesOf(JSON.parse(cases), client));
        }""",
        [live.url, VECTORS.read_text(encoding="utf-8")],
    )
    check_vectors(json.loads(found))
