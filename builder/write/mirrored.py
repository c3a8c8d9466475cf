"""The digest that shows mirrors if a repo has changed, over the files that they copy.

A mirror can compute it from its files, and so check them against the catalogue::

    sha256sum FILE… | LC_ALL=C sort -k 2 | sha256sum | cut -c 1-32

The files are the list of versions, the records of those that are not withdrawn, the list of labels
and the histories of those in it, by their paths below the site. All other files of a repo follow
from these, except for its pulls.
"""

import hashlib

from builder.model.answers import DIGEST_CHARS
from builder.model.labels import Labels
from builder.model.routes import BY_NAME
from builder.render.envelopes import whole_list


def sha256_of(data: bytes) -> str:
    """The SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_of(
    owner: str, name: str, versions: bytes, records: dict[str, str], labels: Labels
) -> str:
    """The digest of a repo. ``versions``: the bytes of its list of versions; ``records``: the
    SHA-256 of each version's record.
    """
    at = {"owner": owner, "name": name}
    before, after = BY_NAME["version"].file_for(**at, version="*").split("*")
    sums = {f"{before}{version}{after}": record for version, record in records.items()}
    sums[BY_NAME["versions"].file_for(**at)] = sha256_of(versions)
    if labels.history:
        sums[BY_NAME["labels"].file_for(**at)] = sha256_of(whole_list([*labels.current.values()]))
    for label in labels.current:
        file = BY_NAME["label_history"].file_for(**at, label=label)
        sums[file] = sha256_of(whole_list(labels.history[label]))
    return digest_of_files(sums)


def digest_of_files(sums: dict[str, str]) -> str:
    """The digest of a repo, from the SHA-256 of each of its files, by path."""
    listed = "".join(f"{sums[file]}  {file}\n" for file in sorted(sums))
    return sha256_of(listed.encode())[:DIGEST_CHARS]
