"""The publish service that the tests of this package ask."""

from tests.support.hubs import hub, log, make_hub  # noqa: F401
