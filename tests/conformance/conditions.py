"""Conditional requests, of files as of searches."""

from tests.conformance.checks import Check
from tests.conformance.client import Client, header_list


def check_conditions(check: Check, client: Client, url: str) -> None:
    """Check conditional requests (RFC 9110, 13.1): 304 for the current ETag, else the answer."""
    plain = client.get(url)
    etag = plain.headers.get("ETag")
    if not check.that(plain, etag, "an ETag"):
        return
    opaque = etag.removeprefix("W/")
    again = client.ask("GET", url)
    check.header(again, "ETag", etag)
    for condition in (etag, f"W/{opaque}", f'"x", {etag}', f'W/"y", W/{opaque} ,"z"', "*"):
        answer = client.ask("GET", url, {"If-None-Match": condition})
        if check.status(answer, 304):
            check.empty_body(answer)
            came = answer.headers.get("ETag", "").removeprefix("W/")
            check.equal(answer, "ETag:", came, opaque)
            for header in ("Cache-Control", "Vary"):
                came, wanted = header_list(answer, header), header_list(plain, header)
                check.equal(answer, f"{header} as in the 200:", came, wanted)
            check.cors(answer)
    head = client.ask("HEAD", url, {"If-None-Match": etag})
    check.status(head, 304)
    for condition in ('"conformance-another"', f'"conformance-{opaque[1:]}'):
        answer = client.ask("GET", url, {"If-None-Match": condition})
        check.same_body(answer, plain, "without the condition, as the ETag is another")
    # A date says less than an ETag (RFC 9110, 13.1.3).
    both = {
        "If-None-Match": '"conformance-another"',
        "If-Modified-Since": "Tue, 01 Jan 2036 00:00:00 GMT",
    }
    check.status(client.ask("GET", url, both), 200)
