"""The SQL statements that the product sends to SQLite."""

import sqlite3
from typing import Any

import pytest


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of connections that are opened from here on, with their parameters."""
    noted: list[str] = []
    connect = sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(noted.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    return noted
