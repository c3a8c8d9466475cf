"""Rules that the modules of several vendors share."""

from moving.vendors.reading import leave_out_keys


def test_keys_of_tools_are_left_out():
    """For every vendor, since published prompts have many readers."""
    warnings: list[str] = []
    tool = {"type": "mcp", "server_url": "https://example.com"}
    tools = [tool | {"headers": {"Authorization": "sk"}}, tool | {"authorization": "sk"}, 5]
    assert leave_out_keys(tools, warnings) == [tool, tool, 5]
    assert warnings == ["Left out authorization and headers of tools, which can have keys."]
