"""The list of a user's prompts."""

import re

from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.editor import MINE, NEW, publish


def test_the_list_of_prompts(people: People, writer: Visitor) -> None:
    page = writer.get(MINE)
    assert "You have not published a prompt yet." in page.words
    for name, title in (("tea", "Brew tea"), ("cafe", "Café crème"), ("water", "Boil water")):
        writer.get(NEW)
        publish(writer, name=name, title=title, content=f"Make {name}.", new_labels="production")
    page = writer.get(MINE)
    assert "3 prompts" in page.words and "Label production 1.0.0 ·" in page.words
    assert f"/account/prompts/{writer.handle}/tea/labels" in page.html
    assert "Café crème" in page.words
    board = f"{MINE}/{writer.handle}/water/labels"
    for label in ("alpha", "staging", "zulu"):
        writer.get(f"{board}/move?label={label}&version=1.0.0")
        writer.submit("/labels/move")
    assert "Label production Label staging +2 labels 1.0.0" in writer.get(MINE).words
    shown = re.findall(r'aria-label="Remove ([a-z]+)"', writer.get(board).html)
    assert shown[:2] == ["production", "staging"] and sorted(shown[2:]) == ["alpha", "zulu"]
    for odd in ("?page=99", "?page=x", "?page=0"):
        assert "3 prompts" in writer.get(MINE + odd).words
