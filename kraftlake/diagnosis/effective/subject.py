"""What has configs or quotas in effect, and the paths that name it: `topic/orders`, `client/user/alice`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

import attrs

from kraftlake.diagnosis.things import DEFAULT
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import did_you_mean

FORMS: Final[Mapping[str, str]] = {
    "topic": "topic/NAME",
    "broker": "broker/ID",
    "group": "group/NAME",
    "client-metrics": "client-metrics/NAME",
    "client": "client/user/NAME[/client-id/NAME][/ip/ADDRESS]",
}
"""The form of the paths of each kind."""
_OF_CLIENTS: Final = ("user", "client-id", "ip")


@attrs.frozen(kw_only=True)
class Subject:
    """A topic, a broker, a group or a client metrics subscription by its name; or a client.

    The name of a broker is its id, empty for the defaults of all. A client has a `user`, a `client_id` and an address,
    `ip`; what is empty is not asked about.
    """

    kind: str
    name: str = ""
    user: str = ""
    client_id: str = ""
    ip: str = ""

    @classmethod
    def parse(cls, path: str, *, clients: bool = True) -> Subject:
        """The subject that a path names; `%2F` stands for a slash in a name, `%25` for a percent.

        Raises UsageError for any other text, and for a client unless `clients` are asked for, too.
        """
        kind, *parts = path.split("/")
        forms = {name: form for name, form in FORMS.items() if clients or name != "client"}
        if kind not in forms:
            hint = did_you_mean(kind, forms, most=1) or f"a path is one of {', '.join(forms.values())}."
            what = "configs or quotas" if clients else "configs"
            raise UsageError(f"{path!r} names nothing that has {what}: {hint}")
        names = [unquote(part) for part in parts]
        if kind == "client":
            return cls._client(path, names)
        if len(names) != 1 or not (names[0] or kind == "broker"):
            raise _malformed(path, kind)
        name = "" if parts[0] == DEFAULT and kind == "broker" else names[0]
        if kind == "broker" and name and not (name.isascii() and name.isdecimal() and int(name) < 1 << 31):
            raise UsageError(f"{path!r}: {name!r} is not a broker's id: give a whole number.")
        return cls(kind=kind, name=str(int(name)) if kind == "broker" and name else name)

    @classmethod
    def _client(cls, path: str, names: list[str]) -> Subject:
        given = dict(zip(names[::2], names[1::2], strict=False))
        if not names or len(names) != 2 * len(given) or not {*given} <= {*_OF_CLIENTS} or not all(given.values()):
            raise _malformed(path, "client")
        return cls(
            kind="client", user=given.get("user", ""), client_id=given.get("client-id", ""), ip=given.get("ip", "")
        )

    @property
    def words(self) -> str:
        """The subject in words: `topic orders`, `all brokers`."""
        if self.kind == "client":
            named = (("user", self.user), ("client id", self.client_id), ("address", self.ip))
            return ", ".join(f"{kind} {name}" for kind, name in named if name)
        kind = self.kind.replace("client-metrics", "client metrics subscription")
        return f"{kind} {self.name}" if self.name else "all brokers"


def _malformed(path: str, kind: str) -> UsageError:
    return UsageError(f"{path!r} names nothing: it reads {FORMS[kind]}.")
