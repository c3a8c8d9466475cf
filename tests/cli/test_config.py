"""``hub.toml``: the effect and the precedence of its settings, and the messages for its
mistakes.
"""

import json
import os
from pathlib import Path

import click
import pytest

from cli.config import (
    BYTES_MAX,
    SHOWN_FAULTS,
    Schema,
    find_file,
    is_path,
    read_config,
    schema_of,
    variable_of,
)
from cli.hubctl import main
from tests.cli.test_hubctl import hubctl
from tests.support.catalogues import write_small_catalogue


@pytest.fixture(scope="module")
def schema() -> Schema:
    return schema_of(main)


def told(folder: Path, text: str | bytes) -> str:
    """The message of a command that rejects this file."""
    (folder / "hub.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    done = hubctl("check", cwd=folder)
    assert (done.exit_code, done.stdout) == (1, "")
    return done.stderr


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """The folder of a hub whose folders have names of their own."""
    write_small_catalogue(tmp_path / "prompts")
    (tmp_path / "hub.toml").write_text(
        'content = "prompts"\nout = "site"\nsite-name = "Of the file"\n'
        'base-url = "https://file.example/"\nsearch = "whoosh"\n[build]\nqueries = true\n'
    )
    (tmp_path / "below/deeper").mkdir(parents=True)
    return tmp_path


def read_hub(folder: Path) -> dict[str, object]:
    return json.loads((folder / "api/v1/hub.json").read_text())["data"]


def test_commands_find_the_file_from_folders_below(hub: Path) -> None:
    done = hubctl("build", cwd=hub / "below/deeper")
    assert done.exit_code == 0, done.stderr
    assert sorted(os.listdir(hub)) == ["below", "hub.toml", "prompts", "site", "var"]
    assert os.listdir(hub / "below/deeper") == []
    built = read_hub(hub / "site")
    assert (built["name"], built["base_url"]) == ("Of the file", "https://file.example")
    assert (built["search"], built["queries"]) == ("whoosh", True)
    checked = hubctl("check", cwd=hub / "below")
    assert checked.stderr.startswith("No faults in ../prompts: 3 prompts")
    assert hubctl("owner", "list", cwd=hub / "below").exit_code == 0


def test_a_flag_wins_over_the_environment_and_that_over_the_file(hub: Path) -> None:
    environment = {"HUB_SITE_NAME": "Of the environment", "HUB_BASE_URL": "https://env.example"}
    arguments = ("--site-name", "Of the flag", "--out", "here", "--no-queries")
    done = hubctl("build", *arguments, cwd=hub / "below", **environment)
    assert done.exit_code == 0, done.stderr
    built = read_hub(hub / "below/here")
    assert (built["name"], built["base_url"]) == ("Of the flag", "https://env.example")
    assert (built["search"], built["queries"]) == ("whoosh", False)


def test_another_file_and_none(hub: Path) -> None:
    (hub / "below/other.toml").write_text('content = "../prompts"\n')
    named = hubctl("--config", "below/other.toml", "check", cwd=hub)
    assert named.stderr.startswith("No faults in prompts: 3 prompts")
    by_variable = hubctl("check", cwd=hub, HUB_CONFIG="below/other.toml")
    assert by_variable.exit_code == 0
    assert "No content folder content" in hubctl("--config", "", "check", cwd=hub).stderr
    missing = hubctl("--config", "nowhere.toml", "check", cwd=hub)
    assert missing.exit_code == 1 and "No file nowhere.toml" in missing.stderr
    folder = hubctl("--config", "below", "check", cwd=hub)
    assert folder.exit_code == 1 and "Cannot read below: Is a directory" in folder.stderr


def test_help_needs_no_sound_file(hub: Path) -> None:
    (hub / "hub.toml").write_text("=")
    assert hubctl("--help", cwd=hub).exit_code == 0
    assert hubctl("--config", "", "build", "--help", cwd=hub).exit_code == 0


def test_a_folder_that_may_not_be_looked_into(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = os.stat

    def refuse(path, **options):
        if str(path) == f"{hub}/hub.toml":
            raise PermissionError(13, "Permission denied", path)
        return stat(path, **options)

    monkeypatch.setattr("os.stat", refuse)
    assert find_file(str(hub)) is None


def test_a_file_of_another_user_above(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: os.stat(hub).st_uid + 1)
    if os.stat(hub).st_uid:
        refused = hubctl("check", cwd=hub / "below")
        assert refused.exit_code == 1 and "belongs to another user" in refused.stderr
    else:
        # Files of root are accepted, from any user.
        assert hubctl("check", cwd=hub / "below").exit_code == 0
        os.chown(hub / "hub.toml", 12345, -1)
        refused = hubctl("check", cwd=hub / "below")
        assert refused.exit_code == 1 and "belongs to another user" in refused.stderr
    assert hubctl("check", cwd=hub).exit_code == 0
    assert hubctl("--config", "../hub.toml", "check", cwd=hub / "below").exit_code == 0


def test_no_file_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hub.toml").mkdir()
    assert find_file(str(tmp_path)) is None
    write_small_catalogue(tmp_path / "content")
    assert hubctl("check", cwd=tmp_path).exit_code == 0

    def removed() -> str:
        raise FileNotFoundError

    monkeypatch.setattr("os.getcwd", removed)
    assert find_file(os.curdir) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base_url = 'x'", "line 1: Unknown key `base_url` at the top of the file. Did you mean "
         "`base-url`?"),
        ("\n[serve]\nprot = 1", "line 3: Unknown key `prot` in [serve]. Did you mean `port`?"),
        ("xyzzy = 1", "line 1: Unknown key `xyzzy` at the top of the file. Remove it."),
        ("listen = 'x'", "line 1: `listen` does not belong at the top of the file. Move it to "
         "[hosts]."),
        ("[build]\nport = 1", "line 2: `port` does not belong in [build]. Move it to the top of "
         "the file."),
        ("[serv]\nport = 1", "line 1: Unknown table [serv]. Did you mean `serve`?"),
        ("[owner.invit]\nbase-url = 'x'", "line 1: Unknown table [owner.invit]. Did you mean "
         "`invite`?"),
        ("serve = 1", "line 1: serve is a table. Write [serve] on a line"),
        ("[[serve]]", "line 1: serve is a table."),
        ("dry-run = true", "line 1: Unknown key `dry-run` at the top of the file."),
        ("openid-client-secret = 'x'", "line 1: `openid-client-secret` is unknown, and secrets do "
         "not belong in hub.toml"),
        ("a = 1\n[serve]\nhost = 1", "line 3: `host` must be a text, in \"double quotes\"."),
        ("port = '80'", "line 1: `port` must be a whole number."),
        ("port = true", "line 1: `port` must be a whole number."),
        ("port = 70000", "line 1: `port`: 70000 is not in the range 0<=x<=65535."),
        ("langfuse = 'no'", "line 1: `langfuse` must be true or false."),
        ("trusted-proxy = '::1'", "line 1: `trusted-proxy` must be a list of texts, like "
         "[\"ADDRESS\"]."),
        ("search = 'sphinx'", "line 1: `search`: 'sphinx' is not one of 'tantivy', 'whoosh'."),
        ("base-url = 'hub'", "line 1: `base-url`: Invalid base URL 'hub'."),
        ("host = 'a'\nhost.name = 1", "line 2: "),
        ("[hosts]\ncertificate = ['a']", "line 2: `certificate`: Takes 2 values but 1 was given."),
        ("[hosts]\nlisten = 'a b'", "line 2: `listen`: 'a b' is not HOST:PORT."),
        ("port = {a = 1}", "line 1: `port` must be a whole number."),
        ("site-name", "line 1: Expected '='"),
        ("site-name = 'a'\nmcp-origin = [\n'*',", "line 3: "),
        ("mcp-origin = [" + "\n" * 300 + "]\nwrong = 1", "line 302: Unknown key `wrong`"),
        ("serve = { hots = 1 }", "hub.toml: Unknown key `hots` in [serve]. Did you mean `host`?"),
        (f"port = {'9' * 5000}", "line 1: Exceeds the limit"),
        ("port = " + "[" * 5000, "nests lists too deeply"),
        (b"\xff", "is not UTF-8 at byte 0. Save it as UTF-8."),
        (b"#" * (BYTES_MAX + 1), "has more than 65,536 bytes."),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_line(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    assert message in told(tmp_path, text)


def test_lines_are_those_of_the_keys(tmp_path: Path) -> None:
    """Also after texts and lists of several lines, in which keys and tables only seem to be."""
    text = (
        '# first\n\nsite-name = """\nwrong = 1\n[serve]\n"""\nmcp-origin = [ # ]\n  "*",\n'
        '  "x]",\n]\nport = 1\r\n  [ "serve" ]  # table\n"host" = 5\nquota.a = 1\n'
    )
    lines = told(tmp_path, text).removeprefix("Error: ").splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "hub.toml, line 7", "hub.toml, line 13", "hub.toml, line 14",
    ]  # fmt: skip


def test_all_tables_are_checked_and_the_number_of_mistakes_is_bounded(tmp_path: Path) -> None:
    lines = told(tmp_path, "[deploy]\ndeploy-files-only = 0\n[hosts]\nlisten = 'x'\n").splitlines()
    assert len(lines) == 2
    many = told(tmp_path, "".join(f"wrong-{number} = 1\n" for number in range(500)))
    assert len(many.splitlines()) == SHOWN_FAULTS + 1 and "… and 480 more" in many


def test_every_option_of_serve_is_a_setting() -> None:
    serve = main.get_command(click.Context(main), "serve")
    for option in serve.params:
        if option.name == "new_accounts":
            continue  # for one start: a setting would replace accounts that are lost later
        assert variable_of(option).startswith("HUB_"), option.name
        assert option.show_envvar


def test_settings_have_one_meaning(schema: Schema) -> None:
    """A variable is of one key; a key at the top is of one variable, and is no table."""
    keys: dict[str, set[str]] = {}
    for setting in schema.settings:
        keys.setdefault(variable_of(setting.option), set()).add(setting.key)
    assert all(len(of_one) == 1 for of_one in keys.values()), keys
    for where, settings in schema.known.items():
        if len(where) == 1:
            assert len({variable_of(one.option) for one in settings}) == 1, where
            assert where not in schema.tables
    paths = {one.key for one in schema.settings if is_path(one.option)}
    assert {"content", "out", "state", "access-log", "certificate"} <= paths


def test_paths_in_the_file_start_at_its_folder(hub: Path) -> None:
    (hub / "hub.toml").write_text(
        f'content = "{hub}/prompts"\nout = "site"\nbase-url = "https://file.example"\n'
        '[hosts]\ncertificate = ["pem", "key"]\nlisten = "127.0.0.1:8443"\n'
    )
    assert hubctl("build", cwd=hub / "below").exit_code == 0
    done = hubctl("hosts", "nginx", cwd=hub / "below")
    assert done.exit_code == 0, done.stderr
    configuration = done.stdout
    assert f"{hub}/pem" in configuration and f"{hub}/key" in configuration
    assert f"{hub}/site" in configuration and "127.0.0.1:8443" in configuration


def test_what_serve_sets_for_the_site_is_so_for_all_commands(tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "hub.toml").write_text(
        "[serve]\nhost = '0.0.0.0'\nport = 7119\nprivate = true\nsite-name = 'Ours'\n"
    )
    built = hubctl("build", cwd=tmp_path)
    assert built.exit_code == 0 and "point to http://127.0.0.1:7119." in built.stderr
    hub = read_hub(tmp_path / "site_out")
    assert (hub["name"], hub["private"]) == ("Ours", True)
    hosts = ("hosts", "nginx")
    assert "proxy_pass http://127.0.0.1:7119;" in hubctl(*hosts, cwd=tmp_path).stdout
    printed = hubctl(*hosts, cwd=tmp_path, HUB_PORT="7123", HUB_HOST="::").stdout
    assert "proxy_pass http://[::1]:7123;" in printed
    printed = hubctl(*hosts, "--upstream", "hub:80", cwd=tmp_path).stdout
    assert "proxy_pass http://hub:80;" in printed
    # Each command has its own address.
    assert "port" not in read_config(f"{tmp_path}/hub.toml", main).get("mcp", {})


def test_a_file_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "hub.toml").write_text(
        'base-url = "https://hub.example"\n[mcp]\nport = 8001\n[publish-service]\n'
        '[hosts]\ntarget = "conf"\nstate = "var"\n[serve]\ngit = "here"\n'
    )
    done = hubctl("build", cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    for name in ("mcp", "publish-service", "hosts.target", "hosts.state", "serve.git"):
        assert f"hub.toml: `{name}` is ignored: this release has no such setting." in done.stderr
    assert read_hub(tmp_path / "site_out")["base_url"] == "https://hub.example"
