"""The metrics of what people do on the account pages."""

from pathlib import Path

import requests

from tests.publisher.web.pages import editor, test_release, test_withdraw
from tests.publisher.web.pages.conftest import People
from tests.publisher.web.pages.test_sign_in import sign_in
from tests.server.test_metrics_port import values
from tests.support.catalogues import settings_in
from tests.support.servers import DEADLINE_SECONDS, serving


def test_what_people_do_is_counted(tmp_path: Path) -> None:
    options = ("--open-signup", "--publish-limit", "1", "--metrics", "127.0.0.1:0")
    with serving(settings_in(tmp_path), *options) as server:
        people = People(server)
        owner = people.guest()
        people.database.close()
        for name in ("story", "second"):
            owner.get(editor.NEW)
            editor.send(owner, "preview", name=name, content=f"The {name}.")
            page = editor.send(owner, "publish")
        assert page.status == 429
        test_release.move(owner)
        test_withdraw.ask(owner, version="1.0.0")
        assert "is withdrawn" in owner.submit("/confirm").words
        assert sign_in(people.visitor(), owner.handle, "not this one").status == 422
        address = server.process.wait_for_line("Metrics at").split()[-1]
        found = values(requests.get(address, timeout=DEADLINE_SECONDS).text)
    expected = {
        "hub_publications_total,version,done": 1, "hub_publications_total,version,limited": 1,
        "hub_publications_total,label,done": 1, "hub_publications_total,withdrawal,done": 1,
        "hub_publications_late_total": 0, "hub_limits_hit_total,publish": 1,
        "hub_failed_sign_ins_total,password": 1, "hub_failed_sign_ins_total,token": 0,
        "hub_requests_total,account,4xx": 2, "hub_requests_total,account,5xx": 0,
        "hub_requests_total,publish,2xx": 0,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
