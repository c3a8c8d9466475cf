"""The files of a version in the editor, without scripts."""

import io
import re
import zipfile
from base64 import b64decode, b64encode

import pytest

from builder.model.names import Version
from builder.model.request_bodies import PUBLICATION_BYTES_MAX
from builder.model.version_files import BYTES_MAX, FILES_MAX
from builder.store import content
from publisher.accounts.saved_drafts import DRAFT_BYTES_MAX
from publisher.accounts.tokens import Accounts
from server.bodies import VISITOR_BYTES_MAX
from tests.publisher.web.pages.conftest import Page, People, Upload, Visitor
from tests.publisher.web.pages.editor import fields_of, open_story, publish, send, stored
from tests.support.folder_cases import CASES, REFUSED, told

RUN = {"path": "scripts/run.sh", "content": "#!/bin/sh\r\necho hi\r\n", "executable": True}
IMAGE = {"path": "image.png", "base64": b64encode(bytes(range(256))).decode()}


def files_of(people: People, writer: Visitor, version: str) -> dict[str, tuple[bytes, bool]]:
    """What is stored: bytes, and whether they are executable, by path."""
    record, _ = stored(people, writer, version)
    at = (people.settings.content, writer.handle, "story", Version.parse(version), record)
    both = zip(record.files or (), content.read_files(*at), strict=True)
    return {one.path: (raw, one.executable) for one, raw in both}


def upload(name: str, data: bytes, field: str = "upload") -> Upload:
    return field, (name, data)


def zipped(*files: tuple[str, bytes, bool]) -> Upload:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for path, data, executable in files:
            info = zipfile.ZipInfo(path)
            info.external_attr = (0o755 if executable else 0o644) << 16
            file.writestr(info, data)
    return upload("folder.zip", packed.getvalue(), "zip")


def place_of(visitor: Visitor, path: str) -> str:
    """The place of a file's row, which its checkboxes name."""
    paths = [value for name, value in fields_of(visitor) if name == "file-path"]
    return str(paths.index(path))


def check(visitor: Visitor, field: str, *paths: str) -> dict[str, list[str]]:
    return {field: [place_of(visitor, path) for path in paths]}


def folder(people: People, writer: Visitor) -> Page:
    people.publish_story(writer, "Run it.", files=[RUN, IMAGE])
    return open_story(writer)


def test_a_version_keeps_its_files(people: People, writer: Visitor) -> None:
    page = folder(people, writer)
    assert "2 files, 276 of 5,000,000 bytes" in page.words
    assert "Nothing changed since 1.0.0" in send(writer, "preview").words
    # As a draft of a release without this form, which has no rows.
    page = send(writer, "preview", **{"file-path": [], "file-data": [], "file-was": []})
    assert "Nothing changed since 1.0.0" in page.words and "2 files, 276 of" in page.words
    page = send(writer, "preview", content="Run it twice.")
    assert "2 files of 1.0.0 stay as they are" in page.words and "push a folder" not in page.words
    page = send(writer, "publish")
    assert "1.0.1 is published. It has the 2 files of 1.0.0." in page.words
    assert "Its text and its files never change" in page.words
    assert f"/{writer.handle}/story/versions/1.0.1/files/scripts/run.sh" in page.html
    assert files_of(people, writer, "1.0.1") == files_of(people, writer, "1.0.0")


def test_add_replace_remove_and_make_executable(people: People, writer: Visitor) -> None:
    folder(people, writer)
    page = send(writer, "files", upload("new.md", b"\r\nNew\0"), **{"upload-folder": "/docs/"})
    assert "The files are in the list" in page.words and "3 files" in page.words
    page = send(
        writer,
        "preview",
        upload("run.sh", b"echo ho\n"),
        **{"upload-folder": "scripts"},
        **check(writer, "file-executable", "docs/new.md", "scripts/run.sh"),
        **check(writer, "file-removed", "image.png"),
    )
    for words in (
        "docs/new.md added · executable Not text",
        "image.png removed Not text",
        "scripts/run.sh changed",
        "1 − #!/bin/sh 2 − echo hi 1 + echo ho",
    ):
        assert words in page.words
    send(writer, "publish")
    assert files_of(people, writer, "1.0.1") == {
        "docs/new.md": (b"\r\nNew\0", True),
        "scripts/run.sh": (b"echo ho\n", True),
    }
    open_story(writer)
    publish(writer, **check(writer, "file-removed", "docs/new.md", "scripts/run.sh"))
    assert files_of(people, writer, "1.0.2") == {}


def test_rename_files(people: People, writer: Visitor) -> None:
    folder(people, writer)
    page = send(writer, "preview", **{"file-path": ["scripts/run.sh", "bin/run.sh"]})
    assert page.status == 200 and "image.png removed" in page.words
    assert "scripts/run.sh changed" in page.words and "bin/run.sh added · executable" in page.words
    assert page.html.count(">renamed<") == 2
    send(writer, "save")
    open_story(writer)
    draft = re.search(r"\?draft=[\w-]+", writer.page.html)[0]
    writer.get(f"{writer.page.path}{draft}")
    page = send(writer, "preview", upload("image.png", b"new"))
    assert "3 files" in page.words
    publish(writer, **{"file-data": ["", "text,echo ho\n", "base64,bmV3"]})
    assert files_of(people, writer, "1.0.1") == {
        "scripts/run.sh": (b64decode(IMAGE["base64"]), False),
        "bin/run.sh": (b"echo ho\r\n", True),
        "image.png": (b"new", False),
    }
    for paths, says, wrong in (
        (["", "b", "c"], "“bin/run.sh” has no path: enter one, or remove it", [""]),
        (["b", "b", "c"], "“b” is the path of two files: give each", ["b", "b"]),
        (["SKILL.md", "b", "c"], "“SKILL.md” is the prompt's own text", ["SKILL.md"]),
    ):
        open_story(writer)
        page = send(writer, "preview", **{"file-path": paths})
        assert says in page.words
        marked = re.findall(r'value="([^"]*)" aria-label="Path" aria-invalid="true"', page.html)
        assert marked == wrong
        assert says in send(writer, "preview").words


def test_a_renamed_file_gets_the_changes_of_others(people: People, writer: Visitor) -> None:
    folder(people, writer)
    renamed = fields_of(writer, **{"file-path": ["scripts/run.sh", "image.png"]})
    other = {**RUN, "content": "echo theirs\n", "executable": False}
    people.publish_story(writer, "Run it.", files=[other, IMAGE])
    place = writer.page.path
    writer.post(place, [*renamed, ("action", "publish")])
    send(writer, "merge")
    publish(writer)
    assert files_of(people, writer, "1.0.2") == {
        "scripts/run.sh": (b64decode(IMAGE["base64"]), False),
        "image.png": (b"echo theirs\n", False),
    }


def test_only_the_bit_of_a_file_changes(people: People, writer: Visitor) -> None:
    folder(people, writer)
    page = send(writer, "preview", **{"file-executable": []})
    assert "scripts/run.sh executable bit · no longer executable" in page.words
    send(writer, "publish")
    assert files_of(people, writer, "1.0.1")["scripts/run.sh"] == (RUN["content"].encode(), False)


def test_the_text_of_a_file_keeps_its_line_ends(people: People, writer: Visitor) -> None:
    folder(people, writer)
    data = ["", "text,#!/bin/sh\r\necho hi\r\necho ho\r\n"]
    page = send(writer, "preview", **{"file-data": data})
    assert "3 + echo ho" in page.words
    send(writer, "publish")
    assert files_of(people, writer, "1.0.1")["scripts/run.sh"] == (
        b"#!/bin/sh\r\necho hi\r\necho ho\r\n",
        True,
    )
    open_story(writer)
    page = send(writer, "preview", **{"file-data": ["", f"text,{data[1][5:]}"]})
    assert "Nothing changed since 1.0.1" in page.words


def test_a_zip_is_the_whole_folder(people: People, writer: Visitor) -> None:
    folder(people, writer)
    packed = zipped(
        ("story/SKILL.md", b"From the ZIP.\r\n", False),
        ("story/image.png", b"\x89", False),
        ("story/bin/go", b"go", True),
    )
    page = send(writer, "preview", packed)
    assert "scripts/run.sh removed" in page.words
    send(writer, "publish")
    assert stored(people, writer, "1.0.1")[1] == "From the ZIP.\n"
    assert files_of(people, writer, "1.0.1") == {
        "bin/go": (b"go", True),
        "image.png": (b"\x89", False),
    }


@pytest.mark.parametrize("case", CASES)
def test_what_of_a_zip_is_taken_and_left_out(people: People, writer: Visitor, case: str) -> None:
    one = CASES[case]
    page = send(writer, "files", upload("x.zip", one.pack("x/"), "zip"), name="story")
    notes = page.words.partition("Nothing is published yet. ")[2]
    assert told(re.findall(r"Left out [^:]*: [^:]*?\.(?= |$)", notes)) == one.whole
    publish(writer)
    assert files_of(people, writer, "1.0.0") == {path: (b"x", False) for path in one.kept}


@pytest.mark.parametrize("case", REFUSED)
def test_a_zip_is_refused_with_all_its_faults(writer: Visitor, case: str) -> None:
    one = REFUSED[case]
    page = send(writer, "files", upload("x.zip", one.pack(), "zip"), name="story")
    if "pointer" in case:  # the file is in the form, and the preview refuses it
        page = send(writer, "preview")
    assert page.status in (413, 422) and one.not_told(page.words) == []


def test_a_first_version_with_files(people: People, writer: Visitor) -> None:
    page = send(writer, "preview", upload("a.py", b"1\n"), name="story", content="Run a.py.")
    assert "a.py added" in page.words
    send(writer, "publish")
    assert files_of(people, writer, "1.0.0") == {"a.py": (b"1\n", False)}


def test_the_preview_says_what_the_version_can_do(people: People, writer: Visitor) -> None:
    page = send(writer, "preview", name="story", content="Say hi.")
    assert "What it can do" not in page.words
    script = b"#!/bin/sh\ncurl https://example.org/x\n"
    page = send(writer, "preview", upload("run.sh", script))
    found = page.words.partition("What it can do: new and gone")[2]
    for words in ("Runs run.sh new", "Commands curl new", "example.org new"):
        assert words in found
    publish(writer)
    open_story(writer)
    page = send(writer, "preview", **check(writer, "file-removed", "run.sh"))
    assert "Commands curl gone" in page.words
    page = send(writer, "preview", content="Say hello.", **{"file-removed": []})
    assert "The rules find nothing that is new or gone." in page.words


WRONG = [
    ([upload("a b.sh", b"")], "“a b.sh” cannot be a path"),
    ([upload("../a.sh", b"")], "“../a.sh” cannot be a path"),
    ([upload("SKILL.md", b"")], "“SKILL.md” is the prompt's own text"),
    ([upload("a", b""), upload("A", b"")], "“A” differs from another path in capitals only"),
    ([upload("big.bin", b"x" * (BYTES_MAX + 1))], "5,000,000 at most"),
    (
        [upload(f"{n}", b"") for n in range(FILES_MAX + 1)],
        "This version has 201 files, 200 at most",
    ),
    ([upload("no.zip", b"no", "zip")], "ZIP: send a ZIP of the folder"),
    ([zipped(("../a", b"", False))], "“../a” "),
]


@pytest.mark.parametrize(("uploads", "says"), WRONG)
def test_wrong_files_are_refused_and_the_form_is_kept(
    writer: Visitor, uploads: list[Upload], says: str
) -> None:
    page = send(writer, "preview", *uploads, name="story", content="My text.", title="Mine")
    assert page.status in (413, 422)
    assert says in page.words
    sent = dict(fields_of(writer))
    assert (sent["content"], sent["title"]) == ("My text.", "Mine")
    assert ("file-path", "a b.sh") in fields_of(writer) or "a b.sh" not in says


def test_hostile_rows(people: People, writer: Visitor) -> None:
    folder(people, writer)
    for path, data, says in (
        ("gone.md", "", "“gone.md” is not in the version that you began with"),
        ("a.bin", "base64,é", "“a.bin” "),
        ("<script>", "text,x", "“<script>” cannot be a path"),
        ("x" * 10_000, "text,x", "10,000 characters"),
    ):
        rows = {"file-path": [path], "file-data": [data], "file-was": []}
        page = send(writer, "preview", **rows)
        assert page.status == 422 and says in page.words
        assert "<script>:" not in page.html
        open_story(writer)


def test_a_secret_in_a_file_is_refused(people: People, writer: Visitor) -> None:
    token, _ = Accounts(people.database).create_token(writer.handle, "leak")
    page = send(writer, "preview", upload("env", token.encode()), name="story", content="Hi.")
    assert page.status == 422
    assert "The file env contains an access token" in page.words
    assert "1 file," in page.words


def test_a_draft_keeps_files_up_to_its_limit(people: People, writer: Visitor) -> None:
    folder(people, writer)
    page = send(writer, "save", upload("a.md", b"Draft"))
    assert "The draft is saved" in page.words and "3 files" in page.words
    publish(writer)
    assert files_of(people, writer, "1.0.1")["a.md"] == (b"Draft", False)
    open_story(writer)
    page = send(writer, "save", upload("b.bin", b"\0" * DRAFT_BYTES_MAX))
    assert page.status == 413 and "remove changed files" in page.words
    assert "4 files" in page.words


def test_files_of_two_people_are_merged_by_path(people: People, writer: Visitor) -> None:
    folder(people, writer)
    mine = fields_of(writer)
    form = next(form for form in writer.page.forms if "content" in form.names)
    theirs = [
        RUN | {"content": "theirs"}, IMAGE | {"executable": True},
        {"path": "theirs.md", "content": "T"},
    ]  # fmt: skip
    people.publish_story(writer, "Run it.", files=theirs)
    uploads = [upload("mine.md", b"M"), upload("image.png", b"\0mine")]
    page = writer.post(form.action, [*mine, ("action", "preview")], uploads)
    assert page.status == 412
    assert "Files that they changed: image.png, scripts/run.sh, theirs.md" in page.words
    page = send(writer, "mine")
    assert "mine.md added" in page.words and "theirs.md" not in page.words.split("Preview")[0]
    send(writer, "publish")
    kept = files_of(people, writer, "1.0.2")
    assert kept.keys() == {"image.png", "mine.md", "scripts/run.sh", "theirs.md"}
    assert kept["scripts/run.sh"] == (b"theirs", True)
    # One changed the bytes, the other the executable bit.
    assert kept["image.png"] == (b"\0mine", True)


def test_nothing_large_is_read_of_a_stranger(people: People, writer: Visitor) -> None:
    page = send(writer, "preview", upload("a", b"x" * PUBLICATION_BYTES_MAX), name="story")
    assert page.status == 413
    writer.get("/account/prompts/new")
    action, sent = writer.form("/new", "content").action, fields_of(writer)
    writer.session.cookies.clear()
    page = writer.post(action, [*sent, ("content", "My text.")], [upload("a.md", b"x")])
    assert page.status == 401 and "Choose your files again" in page.words
    page = writer.post(action, sent, [upload("a", b"x" * VISITOR_BYTES_MAX)])
    assert page.status in (401, 413) and "x" * 1000 not in page.html
