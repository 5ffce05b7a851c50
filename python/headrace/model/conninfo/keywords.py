"""The keywords of libpq's connection strings, and what Headrace does with each.

Source: "Parameter Key Words" and "Environment Variables" of the PostgreSQL 18 manual, chapter libpq.
"""

from __future__ import annotations

from typing import Final

from headrace.model.suggest import did_you_mean, one_of, show_name


class ConninfoError(ValueError):
    """A connection string, or what belongs to it, cannot be used. Its texts never hold a value that may be secret."""

    def __init__(
        self, what: str, *, found: str | None = None, expected: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(what)
        self.what = what
        self.found = found
        self.expected = expected
        self.hint = hint


# Keywords that are followed, and the environment variables that stand in for them.
VARIABLES: Final[dict[str, str | None]] = {
    "host": "PGHOST",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "service": "PGSERVICE",
    "servicefile": "PGSERVICEFILE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "options": "PGOPTIONS",
    "application_name": None,  # PGAPPNAME would name the sessions if nothing else did
    "fallback_application_name": None,
    "keepalives": None,
    "keepalives_idle": None,
    "keepalives_interval": None,
    "keepalives_count": None,
    "tcp_user_timeout": None,
}

# Keywords that are not followed: their environment variables, and the values (in small letters) that ask for what
# Headrace does anyway. Any other value is refused, because ignoring it could be less safe than what was asked for.
_NOT_FOLLOWED: Final[dict[str, tuple[str | None, frozenset[str]]]] = {
    "channel_binding": ("PGCHANNELBINDING", frozenset({"prefer"})),
    "client_encoding": ("PGCLIENTENCODING", frozenset({"auto", "utf8", "utf-8", "unicode"})),
    "gssdelegation": ("PGGSSDELEGATION", frozenset({"0"})),
    "gssencmode": ("PGGSSENCMODE", frozenset({"disable", "prefer"})),
    "gsslib": ("PGGSSLIB", frozenset()),
    "hostaddr": ("PGHOSTADDR", frozenset()),
    "krbsrvname": ("PGKRBSRVNAME", frozenset({"postgres"})),
    "load_balance_hosts": ("PGLOADBALANCEHOSTS", frozenset({"disable"})),
    "max_protocol_version": ("PGMAXPROTOCOLVERSION", frozenset({"3.0", "latest"})),
    "min_protocol_version": ("PGMINPROTOCOLVERSION", frozenset({"3.0"})),
    "replication": (None, frozenset({"false", "off", "no", "0"})),
    "require_auth": ("PGREQUIREAUTH", frozenset()),
    "requirepeer": ("PGREQUIREPEER", frozenset()),
    "requiressl": ("PGREQUIRESSL", frozenset({"0"})),
    "ssl_max_protocol_version": ("PGSSLMAXPROTOCOLVERSION", frozenset()),
    "ssl_min_protocol_version": ("PGSSLMINPROTOCOLVERSION", frozenset({"tlsv1", "tlsv1.1", "tlsv1.2"})),
    "sslcertmode": ("PGSSLCERTMODE", frozenset({"allow"})),
    "sslcompression": ("PGSSLCOMPRESSION", frozenset({"0"})),
    "sslcrl": ("PGSSLCRL", frozenset()),
    "sslcrldir": ("PGSSLCRLDIR", frozenset()),
    "sslkeylogfile": (None, frozenset()),
    "sslnegotiation": ("PGSSLNEGOTIATION", frozenset({"postgres"})),
    "sslpassword": (None, frozenset()),
    "sslsni": ("PGSSLSNI", frozenset({"1"})),
    "target_session_attrs": ("PGTARGETSESSIONATTRS", frozenset({"any"})),
}
_HINTS: Final = {
    "hostaddr": "Give the address as `host`.",
    "sslpassword": "Use a key file without a password.",
}


def check_keyword(keyword: str, value: str, *, is_after_password: bool) -> bool:
    """Whether the keyword is followed; False if it says what happens anyway. Raises ConninfoError for all others.

    `is_after_password`: what comes there may be the rest of a password, however much it looks like a keyword.
    """
    if keyword in VARIABLES:
        return True
    if keyword not in _NOT_FOLLOWED:
        hint = None if is_after_password else did_you_mean(keyword, VARIABLES)
        raise ConninfoError(
            "the connection string has an unknown keyword",
            # What is no misspelt keyword may be a part of a password.
            found=None if hint is None else f"`{show_name(keyword)}`",
            expected=one_of(VARIABLES),
            hint=hint or "Put a value with blanks between single quotes; in a URL write `&` as %26.",
        )
    _check_not_followed(keyword, value, f"`{keyword}`")
    return False


def check_environment(environ: dict[str, str]) -> None:
    """Raises ConninfoError if a PG* variable asks for what cannot be given."""
    for keyword, (variable, _) in _NOT_FOLLOWED.items():
        if variable is not None and variable in environ:
            _check_not_followed(keyword, environ[variable], f"the environment variable {variable}")


def _check_not_followed(keyword: str, value: str, found: str) -> None:
    accepted = _NOT_FOLLOWED[keyword][1]
    if value and value.lower() not in accepted:
        raise ConninfoError(
            f"Headrace cannot follow `{keyword}` of a connection string",
            found=found,
            expected=f"`{keyword}` left out" + (f", or {one_of(sorted(accepted))}" if accepted else ""),
            hint=_HINTS.get(keyword, f"Remove `{keyword}` if the connection does without it."),
        )
