"""The settings that builds take beside a service: known exactly as long as one runs."""

from concurrent.futures import ThreadPoolExecutor

from builder.model.settings import Settings
from builder.store.state.serving import service_settings, serving, site_settings
from tests.support.catalogues import build_files


def known(settings: Settings) -> Settings | None:
    return service_settings(*settings[:3])


def test_as_long_as_one_of_its_processes_runs(small):
    running = small._replace(site_name="Größe", queries=True)
    assert known(small) is None
    with serving(running):
        with serving(running):
            assert known(small) == running
        assert known(small) == running
        assert known(small._replace(out=f"{small.out}-other")) is None
    assert known(small) is None
    with serving(small._replace(site_name="Shorter")):
        assert known(small).site_name == "Shorter"


def test_those_of_the_last_build_count_without_a_service(small):
    assert site_settings(*small[:3]) is None
    build_files(small)
    with serving(small._replace(private=True)):
        assert site_settings(*small[:3]) == small._replace(private=True)
    assert site_settings(*small[:3]) == small


def test_looks_at_once_are_no_service_to_one_another(small):
    with serving(small):
        pass
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(known, [small] * 2000)] == [None] * 2000
