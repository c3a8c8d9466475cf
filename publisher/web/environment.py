"""Secrets from environment variables; ``cli`` reads all other settings."""

from collections.abc import Mapping

from builder.model.errors import OperatorError


def secret_from(environ: Mapping[str, str], variable: str) -> str | None:
    """Returns a secret from the environment variable, or from the file that the variable with
    ``_FILE`` names, as service managers pass them. Raises OperatorError.
    """
    secret, path = environ.get(variable), environ.get(f"{variable}_FILE")
    if secret and path:
        raise OperatorError(f"Set {variable} or {variable}_FILE, not both.")
    if not path:
        return secret or None
    try:
        with open(path, encoding="utf-8") as file:
            secret = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OperatorError(
            f"Cannot read {path}, which {variable}_FILE names: {reason}."
        ) from error
    if not secret:
        raise OperatorError(
            f"{path}, which {variable}_FILE names, is empty. Write the secret into it."
        )
    return secret
