"""The files of a Worker with each option. Starts no Worker."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from builder.hosts import cloudflare
from builder.hosts.rules import HostedSite
from builder.model.errors import OperatorError
from builder.model.routes import ROUTES
from tests.node import PROGRAMS


def files(**fields: Any) -> dict[str, str]:
    return cloudflare.files(HostedSite("/srv/site", "/srv/state")._replace(**fields))


@pytest.mark.usefixtures("installed_tools")
def test_the_worker_is_a_module_that_runs_nothing_but_itself(tmp_path: Path):
    text = files()["worker.js"]
    path = tmp_path / "worker.mjs"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([PROGRAMS / "node", "--check", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in ("eval(", "Function(", "import(", "import ", "require("):
        assert word not in text
    for route in ROUTES:
        assert json.dumps(route.file) in text


def test_the_configuration_of_wrangler():
    config = tomllib.loads(files(base_url="https://prompts.example.org")["wrangler.toml"])
    assert config["main"] == "worker.js"
    assert config["routes"] == [{"pattern": "prompts.example.org", "custom_domain": True}]
    assert config["r2_buckets"] == [{"binding": "SITE", "bucket_name": "hub"}]
    assert config["ratelimits"][0]["simple"] == {"limit": 120, "period": 60}
    assert "vars" not in config and "assets" not in config


def test_patterns_of_static_assets_without_the_signs_of_comments():
    folder = '/srv/a "site" #1\\ with\n\x7f é'
    text = files(out=folder)["wrangler.toml"]
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    start = lines.index("[assets]")
    config = tomllib.loads("\n".join(lines[start : lines.index("", start)]))
    assert config["assets"] == {
        "directory": folder, "binding": "ASSETS", "html_handling": "none",
        "not_found_handling": "none", "run_worker_first": True,
    }  # fmt: skip
    assert tomllib.loads(text)["main"] == "worker.js"


def test_a_base_url_with_a_path():
    config = tomllib.loads(files(base_url="https://example.org/some/prompts")["wrangler.toml"])
    assert [route["pattern"] for route in config["routes"]] == [
        "example.org/some/prompts", "example.org/some/prompts/*",
    ]  # fmt: skip


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:8000", "http://localhost", "http://[::1]"])
def test_a_site_that_only_this_machine_has_gets_no_route(base_url: str):
    assert "routes" not in tomllib.loads(files(base_url=base_url)["wrangler.toml"])


@pytest.mark.parametrize(
    "upstream, url",
    [("hub-origin.example.org", "https://hub-origin.example.org"),
     ("http://hub-origin.example.org:8080/", "http://hub-origin.example.org:8080"),
     ("127.0.0.1:8000", None), ("localhost:8000", None), ("10.0.0.3:8000", None)],
)  # fmt: skip
def test_an_upstream_is_one_that_cloudflare_reaches(upstream: str, url: str | None):
    config = tomllib.loads(files(upstream=upstream)["wrangler.toml"])
    assert config.get("vars") == ({"UPSTREAM": url} if url else None)


@pytest.mark.parametrize(
    "upstream", ["", "https://", "ftp://x.example", "x.example/path", "x.example:port", "a@b.c"]
)
def test_an_upstream_that_is_no_origin_is_refused(upstream: str):
    with pytest.raises(OperatorError, match="Invalid upstream"):
        files(upstream=upstream)


def test_a_folder_that_no_file_could_name_is_refused():
    with pytest.raises(OperatorError, match="not UTF-8"):
        files(out="/srv/\udcff")


def test_no_limit_of_reads():
    texts = files(reads_per_minute=0)
    assert "ratelimits" not in tomllib.loads(texts["wrangler.toml"])
    assert 'RATE_POLICY = "";' in texts["worker.js"]


def test_a_small_limit_of_reads():
    texts = files(reads_per_minute=7)
    assert tomllib.loads(texts["wrangler.toml"])["ratelimits"][0]["simple"]["limit"] == 7
    assert r'"\"read\";q=7;w=60"' in texts["worker.js"]
