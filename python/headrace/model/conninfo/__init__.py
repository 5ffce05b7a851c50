"""How to reach a PostgreSQL server, by the rules of libpq: URLs, key=value texts, PG* variables, password and service
files, defaults. Everything outside the texts themselves comes through `Surroundings`.
"""

from headrace.model.conninfo.keywords import ConninfoError
from headrace.model.conninfo.parameters import (
    DEFAULT_CONNECT_TIMEOUT_SECONDS,
    ConnectionParameters,
    SslMode,
    resolve,
)
from headrace.model.conninfo.surroundings import Surroundings
from headrace.model.conninfo.text import ConninfoText, parse_conninfo

__all__ = [
    "DEFAULT_CONNECT_TIMEOUT_SECONDS",
    "ConnectionParameters",
    "ConninfoError",
    "ConninfoText",
    "SslMode",
    "Surroundings",
    "parse_conninfo",
    "resolve",
]
