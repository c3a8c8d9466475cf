"""The Python client as the build releases it."""

from pathlib import Path

from builder.render.clients import SHELL_CLIENT
from tests.support.catalogues import build_files
from tests.support.servers import PROJECT


def test_the_release_is_the_package_s_module_with_the_address_of_its_site(small):
    source = Path(SHELL_CLIENT).with_name("hub_prompts.py").read_bytes()
    assert source == (PROJECT / "clients/python/hub_prompts/__init__.py").read_bytes()
    released = build_files(small)["clients/hub_prompts.py"]
    assert released == source.replace(
        b'\nBAKED_URL = ""\n', b'\nBAKED_URL = "https://hub.example"\n'
    )
    assert released != source
