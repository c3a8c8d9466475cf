"""Converts conversations of other conventions to the hub's role markers. Pure."""

import re
from typing import Any, get_args

from builder.model.answers import Message, MessageRole
from builder.text.messages import parse_messages, write_messages

_ROLES = {role: role for role in get_args(MessageRole)} | {
    "developer": "system",
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "function": "tool",
}
_TEXT_PARTS = ("text", "input_text", "output_text")
# A line such as "user:", with which prompty begins a message. The quantifiers are possessive, so no
# text causes backtracking.
_prompty_role = re.compile(
    r"^[ \t]*+(?:#[ \t]*+)?(system|developer|user|assistant|function|tool)[ \t]*:[ \t]*(?=\r*$)",
    re.MULTILINE | re.IGNORECASE | re.ASCII,
)
_dotprompt_model = re.compile(
    r"""^([ \t]*\{\{[ \t]*role[ \t]+)(?:"model"|'model')([ \t]*\}\}[ \t]*\r*)$""", re.MULTILINE
)


def from_list(messages: Any) -> tuple[str, list[str]]:
    """The body for messages as ``read_list`` takes them, and warnings. A single message of the user
    becomes its content. Raises ValueError if it is no such list.
    """
    found, warnings = read_list(messages)
    prompt = as_prompt(found)
    return prompt if isinstance(prompt, str) else write_messages(prompt), warnings


def read_list(messages: Any) -> tuple[list[Message], list[str]]:
    """As ``from_parts``, for messages as people write them. Instead of `role` they may have `type`,
    as LangChain's have, or neither, which makes them the user's.
    """
    if isinstance(messages, list):
        messages = [
            one | {"role": one.get("role") or one.get("type") or "user"}
            if isinstance(one, dict)
            else one
            for one in messages
        ]
    return from_parts(messages)


def as_prompt(messages: list[Message]) -> str | list[Message]:
    """The messages, or the content of a single message of the user."""
    return messages[0].content if [one.role for one in messages] == ["user"] else messages


def to_role(name: str) -> MessageRole:
    """The hub's role for a role of another convention, in any case. Raises ValueError if there is
    none.
    """
    role = _ROLES.get(name.lower())
    if role is None:
        raise ValueError(
            f"has a message of the unknown role {name[:40]!r}. Roles are "
            f"{', '.join(get_args(MessageRole))}"
        )
    return role


def from_parts(messages: Any) -> tuple[list[Message], list[str]]:
    """The messages of APIs in which a content is text, a list of parts, or missing. With a warning
    for each kind of content that is no text. Raises ValueError if it is no such list.
    """
    if not isinstance(messages, list) or not messages:
        raise ValueError("has no list of messages")
    found, warnings = [], []
    for number, one in enumerate(messages, start=1):
        if not isinstance(one, dict) or not isinstance(one.get("role"), str):
            raise ValueError(f"has a message {number} without a role")
        calls = [key for key in ("tool_calls", "function_call") if one.get(key)]
        if "content" not in one and not calls:
            raise ValueError(f"has a message {number} without content")
        text, notes = text_of_parts(one.get("content"))
        found.append(Message(to_role(one["role"]), text))
        warnings += [*notes, *map(left_out, calls)]
    return found, list(dict.fromkeys(warnings))


def text_of_parts(content: Any) -> tuple[str, list[str]]:
    """The text of a content, each part on lines of its own, and warnings. Raises ValueError if it
    is no such content.
    """
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ValueError("has a content that is neither text nor a list of parts")
    texts, warnings = [], []
    for part in content:
        kind = part.get("type", "text")
        if kind not in _TEXT_PARTS:
            warnings.append(left_out(str(kind)))
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            raise ValueError("has a part whose text is not text")
    return "\n".join(texts), warnings


def left_out(kind: str) -> str:
    """A warning that a message contains something that is no text. ``kind``: its name in the
    source.
    """
    shown = "".join(char if char.isprintable() else "?" for char in kind[:40].replace("_", " "))
    return f"Left out {shown}: messages are text here."


def tell_placeholder(name: str) -> str:
    """A warning that a placeholder for a list of messages became the variable ``name``."""
    return (
        f"The placeholder {name} became a message of the user with the variable {name}, which "
        "takes text, not messages."
    )


def from_prompty(body: str) -> str:
    """The body of a prompty file, in which lines such as "user:" begin messages."""
    return _prompty_role.sub(lambda found: _marker(_ROLES[found[1].lower()]), body)


def from_dotprompt(body: str) -> str:
    """The body of a dotprompt file, in which "model" is the assistant, and text before the first
    marker is the user's.
    """
    body = _dotprompt_model.sub(r'\1"assistant"\2', body)
    messages = parse_messages(body)
    if not messages or messages[0].role != "system":
        return body
    # A marker before text at the start would change whose message it is.
    body = body.removeprefix("\ufeff")
    is_text = parse_messages(f"{_marker('tool')}\n{body}")[0].role == "tool"
    return f"{_marker('user')}\n{body}" if is_text else body


def _marker(role: str) -> str:
    return f'{{{{role "{role}"}}}}'


BY_SUFFIX = {".prompty": from_prompty, ".prompt": from_dotprompt}
