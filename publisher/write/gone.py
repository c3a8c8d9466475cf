"""Refuses what a withdrawal forbids, so that nothing withdrawn comes back unnoticed."""

from msgspec import UNSET, UnsetType

from builder.model.content_tree import WHOLE
from builder.model.errors import RequestError
from builder.model.names import Version
from builder.model.records import WithdrawalFile
from builder.model.withdrawn import WithdrawnVersion, tell
from builder.store.content import RepoListing
from builder.store.withdrawn_files import read_withdrawn


def check_open(root: str, owner: str, name: str, listing: RepoListing) -> None:
    """Raises RequestError ``version_withdrawn`` where the whole repo is withdrawn; ContentError."""
    if listing.withdrawn.is_whole:
        stored = read_withdrawn(root, f"{owner}/{name}", WHOLE)
        raise _refusal(
            f"{owner}/{name}", stored.withdrawn, "Its name is not given again. Use another name."
        )


def check_label_target(
    root: str, owner: str, name: str, listing: RepoListing, version: Version
) -> None:
    """Raises RequestError ``version_withdrawn`` or ``version_not_found`` where no label can name
    the version; ContentError.
    """
    if version in listing.versions:
        return
    if str(version) in listing.withdrawn.versions:
        stored = read_withdrawn(root, f"{owner}/{name}", str(version))
        latest = f"The latest is {listing.versions[-1]}." if listing.versions else ""
        raise _refusal(
            f"{owner}/{name} {version}", stored.withdrawn, f"Choose another version. {latest}"
        )
    raise no_version(owner, name, listing, version)


def no_version(owner: str, name: str, listing: RepoListing, version: Version) -> RequestError:
    """The error for a version that does not exist."""
    there_is = (
        f"Its latest version is {listing.versions[-1]}."
        if listing.versions
        else "It has none left."
    )
    message = f"{owner}/{name} has no version {version}. {there_is}"
    return RequestError("version_not_found", message)


def check_text(
    owner: str,
    name: str,
    withdrawn: list[WithdrawnVersion],
    sha256: str,
    content_sha256: str | UnsetType = UNSET,
) -> None:
    """Raises RequestError ``version_withdrawn`` if a version without files was withdrawn with the
    text of this hash, or one with files with the text and files of ``content_sha256``.
    """
    for one in withdrawn:
        whole = one.remains.content_sha256
        if (content_sha256 == whole) if whole else (sha256 == one.remains.sha256):
            what = "text with these files" if whole else "text"
            raise _refusal(
                f"This very {what}, {owner}/{name} {one.version},",
                one.withdrawal,
                "Remove the cause of the withdrawal, and publish again.",
            )


def _refusal(what: str, withdrawal: WithdrawalFile, then: str) -> RequestError:
    return RequestError("version_withdrawn", f"{tell(what, withdrawal)} {then}".rstrip())
