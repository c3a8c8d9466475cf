"""A server with the tools, resources and prompts that the conformance suite asks for by name.

``python -m tests.mcp.fixture_server`` serves it at a free port behind the hub's own endpoint, so
the suite's scenarios about the transport try that. What the endpoint cannot do, as asking the
client while a call is running, is tried too: it must end in an answer.
"""

import base64
import json
import socket
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from mcp_app.endpoint import Endpoint
from server.access import Access
from server.app import Receive, Scope, Send
from server.lifespan import run_lifespan

_TEMPLATE_START, _TEMPLATE_END = "test://template/", "/data"
_DIALECT_TOOL = "json_schema_2020_12_tool"
_DIALECT_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def _png() -> str:
    """One red pixel, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + checksum

    header = (1).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b""))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def _wav() -> str:
    """A sound of no samples, in base64."""
    form = b"fmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0"
    return base64.b64encode(b"RIFF\x24\0\0\0WAVE" + form + b"data\0\0\0\0").decode()


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


def _embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(resource=resource)


_IMAGE = types.ImageContent(data=_png(), mime_type="image/png")
_CONTENTS = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [_IMAGE],
    "test_audio_content": [types.AudioContent(data=_wav(), mime_type="audio/wav")],
    "test_embedded_resource": [
        _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        _IMAGE,
        _embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ],
    _DIALECT_TOOL: [_text("It is the schema that is asked for.")],
}


async def _fail(context: Any) -> str:
    raise ValueError("This tool intentionally returns an error for testing")


async def _log(context: Any) -> str:
    for step in ("started", "processing", "completed"):
        await context.session.send_log_message("info", f"Tool execution {step}")
    return "Three messages were logged."


async def _progress(context: Any) -> str:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
    return "Done."


async def _sample(context: Any) -> str:
    message = types.SamplingMessage(role="user", content=_text("Say something."))
    answer = await context.session.create_message([message], max_tokens=100)
    return f"LLM response: {answer.content}"


async def _elicit(context: Any) -> str:
    answer = await context.session.elicit_form("Who are you?", {"type": "object", "properties": {}})
    return f"User response: {answer.action}"


_ACTIONS = {
    "test_error_handling": _fail,
    "test_tool_with_logging": _log,
    "test_tool_with_progress": _progress,
    "test_sampling": _sample,
    "test_elicitation": _elicit,
}


async def _list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                description=f"{name} of the conformance suite",
                input_schema=_DIALECT_SCHEMA if name == _DIALECT_TOOL else {"type": "object"},
            )
            for name in [*_CONTENTS, *_ACTIONS]
        ]
    )


async def _call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name in _CONTENTS:
        return types.CallToolResult(content=_CONTENTS[params.name])
    if params.name not in _ACTIONS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    try:
        return types.CallToolResult(content=[_text(await _ACTIONS[params.name](context))])
    except (ValueError, MCPError) as error:
        return types.CallToolResult(content=[_text(str(error))], is_error=True)


async def _list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(
                uri=f"test://{name}", name=name, description=f"A {name}", mime_type=mime_type
            )
            for name, mime_type in (("static-text", "text/plain"), ("static-binary", "image/png"))
        ]
    )


async def _list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template=f"{_TEMPLATE_START}{{id}}{_TEMPLATE_END}",
        name="template",
        description="Data for an id",
        mime_type="application/json",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(
    context: Any, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-text":
        text, kind = "This is the content of the static text resource.", "text/plain"
    elif uri == "test://static-binary":
        blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=_IMAGE.data)
        return types.ReadResourceResult(contents=[blob])
    elif uri.startswith(_TEMPLATE_START) and uri.endswith(_TEMPLATE_END):
        id_ = uri.removeprefix(_TEMPLATE_START).removesuffix(_TEMPLATE_END)
        data = {"id": id_, "templateTest": True, "data": f"Data for ID: {id_}"}
        text, kind = json.dumps(data), "application/json"
    else:
        raise MCPError(types.INVALID_PARAMS, f"Unknown resource: {uri}")
    contents = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.ReadResourceResult(contents=[contents])


_PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def _list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=f"{name} of the conformance suite",
                arguments=[types.PromptArgument(name=each, required=True) for each in arguments],
            )
            for name, arguments in _PROMPTS.items()
        ]
    )


async def _get_prompt(context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            contents = [_text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            filled = ", ".join(f"{name}='{given[name]}'" for name in _PROMPTS[params.name])
            contents = [_text(f"Prompt with arguments: {filled}")]
        case "test_prompt_with_embedded_resource":
            text = "Embedded resource content for testing."
            contents = [
                _embedded(given["resourceUri"], "text/plain", text),
                _text("Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            contents = [_IMAGE, _text("Please analyze the image above.")]
        case _:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    messages = [types.PromptMessage(role="user", content=content) for content in contents]
    return types.GetPromptResult(messages=messages)


async def _complete(context: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [word for word in ("paris", "park", "test") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values)))


def make_server() -> Server:
    """The suite's server, without a transport."""
    return Server(
        "conformance-fixture",
        version="1.0.0",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
    )


def make_app(base_url: str) -> Callable[..., Awaitable[None]]:
    """The server behind the hub's endpoint, which answers every path."""
    endpoint = Endpoint(make_server(), Access(base_url))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await run_lifespan(receive, send, endpoint.running())
        else:
            await endpoint(scope, receive, send)

    return app


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        print(f"Serving at {url}/mcp", flush=True)
        server = uvicorn.Server(uvicorn.Config(make_app(url), log_level="warning"))
        server.run(sockets=[listener])


if __name__ == "__main__":
    main()
