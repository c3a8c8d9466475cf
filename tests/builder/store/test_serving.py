"""The settings that builds take beside a service: known exactly as long as it runs."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from builder.model.errors import OperatorError
from builder.model.settings import Settings
from builder.store.state import serving
from builder.store.state.serving import Service, service_settings, site_settings
from tests.support.catalogues import build_files


def known(settings: Settings) -> Settings | None:
    return service_settings(*settings[:3])


def held(settings: Settings) -> contextlib.AbstractContextManager[None]:
    return Service(settings, "http://127.0.0.1:8123/").held()


def test_as_long_as_it_runs_and_no_second_one(small, monkeypatch):
    monkeypatch.setattr(serving, "STOP_SECONDS", 0.1)
    running = small._replace(site_name="Größe", queries=True)
    assert known(small) is None
    with held(running):
        assert known(small) == running
        second = held(small)
        with pytest.raises(OperatorError, match=r"already, at http://127\.0\.0\.1:8123/\. Stop"):
            second.__enter__()
        assert known(small) == running
        assert known(small._replace(out=f"{small.out}-other")) is None
    assert known(small) is None
    with held(small._replace(site_name="Shorter")):
        assert known(small).site_name == "Shorter"


def test_those_of_the_last_build_count_without_a_service(small):
    assert site_settings(*small[:3]) is None
    build_files(small)
    with held(small._replace(private=True)):
        assert site_settings(*small[:3]) == small._replace(private=True)
    assert site_settings(*small[:3]) == small


def test_looks_at_once_are_no_service_to_one_another(small):
    with held(small):
        pass
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(known, [small] * 2000)] == [None] * 2000
