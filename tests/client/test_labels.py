"""References: what OWNER/NAME@REF names; labels listed and moved."""

import json
from pathlib import Path

import pytest

from builder.pipeline.build import build
from tests.client.fake import Fake, answer, error
from tests.client.shells import TOKEN, Client, share
from tests.client.site import MOVED, ONE, THREE, TWO, Site, compact
from tests.client.test_terminal import NOISE, on_a_terminal
from tests.support.catalogues import settings_in, write_owner, write_version
from tests.support.servers import file_host, nginx

LINES = (
    'production\t1.1.0\t2026-10-01T09:30:00Z\tann\tPassed "all" checks \\o/ ü\n'
    "sha256\t1.0.0\t2026-08-01T00:00:00Z\tann\t\n"
)
LABELS = "/api/v1/repos/ann/review/labels"


REFS = {
    ("ann/review",): THREE, ("ann/review@latest",): THREE, ("ann/review@1.0.0",): ONE,
    ("ann/review@production",): TWO, ("ann/review@sha256",): ONE,
    ("ann/review", "--version", "1.1.0"): TWO, ("--version=1.0.0", "ann/review"): ONE,
}  # fmt: skip


def test_what_a_reference_names(each: Client, host: Fake) -> None:
    for words, text in share(each.shell, [*REFS.items()]):
        assert each.to(host.url).run("cat", *words) == (0, text, ""), words
    done = each.to(host.url).run("pull", "ann/review@production")
    assert done.err == "saved ann/review 1.1.0 as PROMPT.md\n"
    assert (each.work / "PROMPT.md").read_bytes() == TWO


def test_under_each_awk(awk: Client, host: Fake) -> None:
    for words, text in [*REFS.items()][::4]:
        assert awk.to(host.url).run("cat", *words) == (0, text, ""), words
    assert awk.to(host.url).run("labels", "ann/review").text == LINES


@pytest.mark.parametrize("kind", ["python", "nginx"])
def test_on_hosts_of_files(kind: str, client: Client, site: Site, tmp_path: Path) -> None:
    """Label files beside those that a build writes."""
    settings = settings_in(tmp_path / "hub")
    write_owner(settings.content, "ann")
    for version, text in (("1.0.0", ONE), ("1.1.0", TWO), ("2.0.0", THREE)):
        write_version(settings.content, "ann", "review", version, text)
    write_version(settings.content, "ann", "story", "1.0.0", b"Tell a story.\n")
    build(settings)
    out = Path(settings.out)
    for path, body in site.files.items():
        if "/labels" not in path:
            assert (out / f"api/v1/repos/{path}".rpartition("//")[2]).exists(), path
        else:
            target = out / "api/v1/repos" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)
    (tmp_path / "nginx").mkdir()
    serve = nginx(tmp_path / "nginx", f"root {out.resolve()};")
    with file_host(out) if kind == "python" else serve as found:
        url = found if isinstance(found, str) else found[0]
        to = client.to(url)
        for words, text in [*REFS.items()][::4]:
            assert to.run("cat", *words) == (0, text, ""), words
        assert to.run("labels", "ann/review").text == LINES
        assert to.run("labels", "ann/story") == (0, b"", "ann/story has no labels\n")
        assert to.run("lock", "ann/review@production", "a.md").status == 0
        assert to.run("sync").status == 0 and (to.work / "a.md").read_bytes() == TWO
        assert to.run("sync", "--check").status == 0
        assert to.run("label", "ann/review", "production", "2.0.0").status == 4
        moved = client.to(url, HUB_TOKEN=TOKEN).run("label", "ann/review", "production", "2.0.0")
        assert moved.status in (1, 3, 6) and "does not move labels" in moved.err


WRONG = {
    ("cat", "ann/review@"): "'' is not a label",
    ("cat", "ann/review@1.0"): "'1.0' is not a version",
    ("cat", "ann/review@a@b"): "'a@b' is not a label",
    ("cat", "ann/review@../x"): "'../x' is not a label",
    ("cat", "ann/review@a/b"): "'a/b' is not a label",
    ("cat", "ann/review@*"): "'*' is not a label",
    ("cat", "ann/review@a\nb"): "is not a label",
    ("cat", "ann/review@$(id)"): "'$(id)' is not a label",
    ("cat", "ann/review@Production"): "'Production' is not a label",
    ("cat", "ann/review@-x"): "'-x' is not a label",
    ("cat", "ann/review@x-"): "'x-' is not a label",
    ("cat", "ann/review@" + "x" * 37): "A label has at most 36 of a-z",
    ("cat", "ann/review@17"): "'17' is not a version",
    ("cat", "ann/review", "--label", "a"): "unknown option --label",
    ("cat", "ann/review@a", "--version", "1.0.0"): "name one version: with @",
    ("pull", "ann/review@latest", "--version", "1.0.0"): "name one version: with @",
    ("versions", "ann/review@a"): "'ann/review@a' is not OWNER/NAME",
    ("labels", "ann/review@a"): "'ann/review@a' is not OWNER/NAME",
    ("labels",): "too few arguments for hub labels OWNER/NAME",
    ("labels", "ann/review", "--json"): "unknown option --json",
    ("push", "ann/review@a", "f"): "'ann/review@a' is not OWNER/NAME",
    ("label", "ann/review"): "too few arguments for hub label OWNER/NAME LABEL VERSION",
    ("label", "ann/review", "a"): "too few arguments for hub label OWNER/NAME LABEL VERSION",
    ("label", "ann/review", "a", "1.0.0", "n", "m"): "Put quotes around a text",
    ("label", "ann/review", "a", "1.0"): "'1.0' is not a version",
    ("label", "ann/review", "a", "latest"): "'latest' is not a version",
    ("label", "ann/review", "latest", "1.0.0"): "'latest' is not a label",
    ("label", "ann/review", "2.0.0", "1.0.0"): "neither latest nor a number",
    ("label", "ann/review", "a", "1.0.0", "--expected", "b"): "'b' is not a version",
    ("label", "ann/review", "a", "1.0.0", "--expected"): "--expected needs a value",
    ("label", "ann/review", "a", "1.0.0", "-n"): "unknown option -n. Put -- before a word",
    ("label", "ann/review", "a", "--", "-n"): "'-n' is not a version",
    ("label", "ann/review", "a", "1.0.0", "--remove"): "--remove takes OWNER/NAME and LABEL only",
    ("label", "ann/review", "a", "--remove", "--expected", "1.0.0"): "--remove takes",
}  # fmt: skip


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_uses_ask_nobody(words: tuple[str, ...], client: Client) -> None:
    with Fake(lambda _: error(500)) as fake:
        done = client.to(fake.url, HUB_TOKEN=TOKEN).run(*words)
        assert (done.status, done.out, fake.requests) == (2, b"", [])
        assert WRONG[words] in done.err and "Run `hub help" in done.err


def test_wrong_references_under_each_shell(each: Client) -> None:
    for words in [*WRONG][:17:2]:
        done = each.to("http://127.0.0.1:9").run(*words)
        assert done.status == 2 and WRONG[words] in done.err, words


def test_labels_that_there_are_not(client: Client, host: Fake) -> None:
    to = client.to(host.url)
    done = to.run("cat", "ann/review@staging")
    assert (done.status, done.out) == (3, b"")
    assert done.err.startswith(f"no ann/review@staging at {host.url}")
    assert to.run("cat", "ann/story@production").status == 3
    assert to.run("labels", "ann/nothing").status == 3


def test_a_label_offline_is_what_it_was(client: Client, site: Site, host: Fake) -> None:
    to = client.to(host.url)
    assert to.run("cat", "ann/review@production").out == TWO
    assert to.run("labels", "ann/review").text == LINES
    site.move("ann/review", "production", "2.0.0")
    assert to.run("cat", "ann/review@production", "--offline").out == TWO
    assert to.run("cat", "ann/review@production").out == THREE
    site.is_up = False
    done = to.run("cat", "ann/review@production")
    assert (done.status, done.out) == (0, THREE) and "using the last fetched copy" in done.err
    assert to.run("labels", "ann/review").text == LINES


def test_a_text_that_is_not_the_label_s(client: Client, site: Site, host: Fake) -> None:
    site.files["ann/review/versions/1.1.0.txt"] = b"Another.\n"
    done = client.to(host.url).run("cat", "ann/review@production")
    assert (done.status, done.out) == (6, b"") and "its SHA-256 differs" in done.err


@pytest.mark.parametrize("record", [
    {}, {"version": None}, {"version": "1.0.0"}, {"version": "1.0.0", "sha256": "0" * 63},
    {"version": "../x", "sha256": "0" * 64}, {"version": "1.0.0", "sha256": "/" * 64},
    {"more": {"version": "1.0.0", "sha256": "0" * 64}}, [],
], ids=str)  # fmt: skip
def test_records_that_are_none(record: object, client: Client) -> None:
    with Fake(lambda _: answer(compact(record))) as fake:
        done = client.to(fake.url).run("cat", "ann/review@production")
        assert (done.status, done.out) == (6, b"") and "is not from a hub" in done.err


def test_a_long_text_of_quotes(awk: Client, site: Site, host: Fake) -> None:
    site.publish("ann/large", "1.0.0", b'"' * 100_000 + b"\\" * 100_000)
    assert awk.to(host.url).run("cat", "ann/large").out == b'"' * 100_000 + b"\\" * 100_000


def test_labels_on_a_terminal(each: Client, site: Site, host: Fake) -> None:
    note = f"N{NOISE[:-1].decode(errors='replace')}"
    site.files["ann/review/labels.json"] = compact(
        [{"label": "a", "version": "1.0.0", "moved_at": MOVED, "moved_by": "ann", "note": note},
         {"label": "long", "version": "10.0.0", "moved_at": MOVED, "moved_by": "bob", "note": ""}]
    )  # fmt: skip
    shown = on_a_terminal(each.to(host.url), "labels", "ann/review")
    assert shown.startswith(f"a\t1.0.0\t{MOVED}\tann\tN")
    assert shown.endswith(f"\nlong\t10.0.0\t{MOVED}\tbob\t\n") and shown.count("\n") == 2
    assert "\x1b" not in shown and "\u202e" not in shown
    assert each.to(host.url).run("labels", "ann/review").text == shown


# Moving ------------------------------------------------------------------------------------------


def moved(label: str, version: str | None, status: int = 200, **more: object) -> bytes:
    return answer(compact({"label": label, "version": version, "previous": None} | more), status)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"previous": "1.0.0", "bump": "patch", "reasons": ["As before."]}, ""),
        ({"previous": "1.0.0", "bump": "major", "reasons": ["x is new."]}, " (major: x is new)"),
        ({"previous": "1.0.0"}, ""),  # of an older hub
        ({"bump": "patch", "reasons": []}, ""),
    ],
)  # fmt: skip
def test_a_move_says_what_changes(more: dict, said: str, client: Client) -> None:
    with Fake(lambda _: moved("a", "2.0.0", **more)) as fake:
        done = client.to(fake.url, HUB_TOKEN=TOKEN).run("label", "ann/x", "a", "2.0.0")
    assert done == (0, b"ann/x@a 2.0.0\n", said and f"ann/x 1.0.0 → 2.0.0{said}\n")


def test_what_a_move_sends(each: Client) -> None:
    note = 'It\'s "fine" \\ new\nline\t\x01 👩'
    for status, more, body in (
        (201, ["--expected", "none"], {"expected": None}),
        (200, ["--expected", "1.1.0"], {"expected": "1.1.0"}),
        (200, [], {}),
    ):
        with Fake(lambda _, status=status: moved("production", "1.2.0", status)) as fake:
            to = each.to(fake.url, HUB_TOKEN=TOKEN)
            done = to.run("label", *more, "ann/review", "production", "1.2.0", note)
        assert done == (0, b"ann/review@production 1.2.0\n", "")
        (request,) = fake.requests
        assert (request.method, request.path) == ("PUT", f"{LABELS}/production")
        assert json.loads(request.body) == {"version": "1.2.0", "note": note} | body
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        assert request.headers["content-type"] == "application/json"
        assert request.headers["idempotency-key"].startswith("hub-")


@pytest.mark.parametrize("words", [["--", "-n"], ["-n"]])
def test_notes_that_start_with_a_hyphen(words: list[str], client: Client) -> None:
    with Fake(lambda _: moved("a", "1.0.0")) as fake:
        done = client.to(fake.url, HUB_TOKEN=TOKEN).run("label", "ann/x", "a", "1.0.0", *words)
    assert [json.loads(asked.body)["note"] for asked in fake.requests] == words[1:]
    assert done.status == (0 if words[1:] else 2)


def test_what_a_removal_sends(each: Client) -> None:
    for gone in (answer(status=204), moved("production", None)):
        with Fake(lambda _, gone=gone: gone) as fake:
            to = each.to(fake.url, HUB_TOKEN=TOKEN)
            done = to.run("label", "ann/review", "production", "--remove")
        assert done == (0, b"ann/review@production removed\n", "")
        (request,) = fake.requests
        assert (request.method, request.path) == ("DELETE", f"{LABELS}/production")
        assert request.body == b"" and request.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("page", [
    answer("<h1>Hi</h1>"), answer("{}", 201), moved("b", "1.0.0"), moved("a", "1.0.1"),
], ids=repr)  # fmt: skip
def test_what_is_no_answer_to_a_move(page: bytes, client: Client) -> None:
    with Fake(lambda _: page) as fake:
        done = client.to(fake.url, HUB_TOKEN=TOKEN).run("label", "ann/x", "a", "1.0.0")
    assert (done.status, done.out) == (6, b"") and "is not from a hub" in done.err
