"""Rules that the modules of several vendors share."""

from moving.vendors.reading import read_parameters


def test_parameters_in_our_names():
    warnings: list[str] = []
    assert read_parameters({"maxTokens": 5, "seed": 0, "stop": [], "x": None}, warnings) == {
        "max_tokens": 5, "seed": 0,
    }  # fmt: skip
    assert read_parameters({"stop": None}, warnings) is None
    assert warnings == []


def test_keys_of_tools_are_left_out():
    """For every vendor, since published prompts have many readers."""
    warnings: list[str] = []
    tool = {"type": "mcp", "server_url": "https://example.com"}
    tools = [tool | {"headers": {"Authorization": "sk"}}, tool | {"authorization": "sk"}, 5]
    assert read_parameters({"tools": tools}, warnings) == {"tools": [tool, tool, 5]}
    assert warnings == ["Left out authorization and headers of tools, which can have keys."]
