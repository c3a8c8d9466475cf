"""The words for a disk that refuses."""

import errno

import pytest

from builder.model.errors import RequestError
from publisher.write import synced_files


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (errno.ENOSPC, "No space left on device. Free disk space, or tell"),
        (errno.EROFS, "Read-only file system. Make its disk writable, or tell"),
        (errno.EIO, "Input/output error. Check the disk, or tell"),
        (None, "Input/output error. Check the disk, or tell"),
    ],
)
def test_a_disk_that_refuses(number: int | None, step: str):
    """Its readers may be the operator, or a visitor, who cannot fix the disk."""
    with pytest.raises(RequestError) as caught, synced_files.telling("store it again"):
        raise OSError(number, "x") if number else OSError("x")
    assert caught.value.code == "storage_unavailable"
    assert str(caught.value) == (
        f"Cannot write to the content folder: {step} the operator of this hub. Then store it again."
    )
