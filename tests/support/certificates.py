"""A certificate of this machine's own."""

import subprocess
from pathlib import Path


def make_certificate(folder: Path) -> tuple[str, str]:
    """The files of a certificate for 127.0.0.1, and of its key."""
    certificate, key = f"{folder}/cert.pem", f"{folder}/key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key
