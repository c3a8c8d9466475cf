"""The list of a user's prompts."""

from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.editor import MINE, NEW, publish, send


def test_the_list_of_prompts(people: People, writer: Visitor) -> None:
    page = writer.get(MINE)
    assert "You have not published a prompt yet." in page.words
    for name, title in (("tea", "Brew tea"), ("cafe", "Café crème"), ("water", "Boil water")):
        writer.get(NEW)
        publish(writer, name=name, title=title, content=f"Make {name}.", new_labels="production")
    page = writer.get(MINE)
    assert "3 prompts" in page.words and "Label production Edit" in page.words
    assert f"/account/prompts/{writer.handle}/tea/labels" in page.html
    assert "Café crème" in page.words
    for odd in ("?page=99", "?page=x", "?page=0"):
        assert "3 prompts" in writer.get(MINE + odd).words


def test_the_first_prompt_takes_two_steps(writer: Visitor) -> None:
    page = send(writer, "preview", title="Reply To Customer", content="Answer {{message}}.")
    assert f"{writer.handle}/reply-to-customer 1.0.0 will be published" in page.words
    page = send(writer, "publish")
    assert page.path.endswith("/reply-to-customer/published")
    assert "You have not published" not in writer.get(MINE).words
