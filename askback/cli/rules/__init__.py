"""The rules of `askback check`: each reads a loaded server and yields its findings."""

from collections.abc import Callable, Iterator

from askback.cli.findings import Finding
from askback.cli.rules.agreement import doubtful_types
from askback.cli.rules.forms import unaskable_forms
from askback.cli.rules.keys import colliding_keys
from askback.cli.rules.reach import unreached_resolvers
from askback.cli.rules.secrecy import secrets_in_forms
from askback.cli.servers import LoadedServer

Rule = Callable[[LoadedServer], Iterator[Finding]]

RULES: tuple[Rule, ...] = (secrets_in_forms, unreached_resolvers, colliding_keys, unaskable_forms, doubtful_types)
