"""The security of `cluster up --secure`: TLS by an authority of its own, logins by SCRAM-SHA-512, ACLs.

All of it lies in a folder below the nodes' data, for its owner alone, and is used again by the next start.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs
from rpds import HashTrieMap

from kraftlake.controller.access.scram import ScramUpsertion
from kraftlake.image.scram_image import ScramImage
from kraftlake.protocol.client_config import ClientConfig, parse_client_config
from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.extras import require
from kraftlake.runtime.java_properties import format_properties, parse_properties
from kraftlake.runtime.whole_file import write_whole
from kraftlake.server.node_config import STANDARD_AUTHORIZER

ADMIN: Final = "admin"
"""The user of people and tools, who may do everything."""
NODES: Final = "node"
"""The user of the nodes, as which they log in at each other."""
PROTOCOL: Final = "SASL_SSL"
"""The security protocol of all listeners, and the name of the brokers' listener."""
MECHANISM: Final = "SCRAM-SHA-512"
_MECHANISM_NUMBER: Final = 2
_ITERATIONS: Final = 4_096
_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PASSWORDS: Final = "passwords.properties"
_SUPER_USERS: Final = "super.users"


@attrs.frozen(kw_only=True)
class ClusterSecurity:
    """The folder with the certificates, passwords and clients' files of a cluster, and what is in it.

    `is_new` if the passwords were generated at this start.
    """

    folder: Path
    passwords: Mapping[str, str] = attrs.field(repr=False)
    is_new: bool
    protocol: ClassVar[str] = PROTOCOL
    mechanism: ClassVar[str] = MECHANISM
    user: ClassVar[str] = ADMIN

    @classmethod
    def at(cls, folder: Path) -> ClusterSecurity:
        """Read the passwords in a folder; generate them if there are none. Nothing is written yet.

        Raises EnvironmentFaultError if the passwords can't be read, or the package for certificates is missing.
        """
        require("cryptography", "The certificates of a secure cluster")
        file = folder / _PASSWORDS
        try:
            found = parse_properties(file.read_bytes()) if file.exists() else {}
        except OSError as fault:
            raise EnvironmentFaultError(f"{file} can't be read: {fault.strerror}.") from None
        except ValueError as fault:
            raise EnvironmentFaultError(f"{file} is no properties file: {fault}.") from None
        is_new = not {ADMIN, NODES} <= found.keys()
        if is_new:
            found = {user: secrets.token_urlsafe(24) for user in (ADMIN, NODES)}
        return cls(folder=folder, passwords={user: found[user] for user in (ADMIN, NODES)}, is_new=is_new)

    @property
    def client_properties(self) -> Path:
        """The properties of Java's clients and tools, and of the commands of kraftlake."""
        return self.folder / "client.properties"

    @property
    def librdkafka_properties(self) -> Path:
        """The properties of clients with librdkafka."""
        return self.folder / "librdkafka.properties"

    @property
    def python_arguments(self) -> Path:
        """The arguments of kafka-python's clients, as JSON."""
        return self.folder / "kafka-python.json"

    def write(self, keystores: Mapping[str, Path], bootstrap: str, now: datetime) -> None:
        """Write the passwords, the authority, the nodes' keystores by their names, and the files of clients.

        Passwords and good certificates stay. Raises EnvironmentFaultError.
        """
        from kraftlake.server.cluster_up.certificates import Authority  # imports cryptography, 45 ms

        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.is_new:
                write_whole(self.folder / _PASSWORDS, [format_properties(self.passwords)])
            authority = Authority.at(self.folder, now)
            for name, file in keystores.items():
                file.parent.mkdir(parents=True, exist_ok=True)
                authority.keystore(file, name, now)
            self._write_client_files(bootstrap)
        except OSError as fault:
            raise EnvironmentFaultError(f"{fault.filename or self.folder} can't be used: {fault.strerror}.") from None

    def node_settings(self, keystore: Path, given: Mapping[str, str]) -> dict[str, str]:
        """The settings of a node with a keystore, over which those of the user go, except that more users are super."""
        login = self._jaas(NODES)
        names = (f"User:{ADMIN}", f"User:{NODES}", given.get(_SUPER_USERS))
        jaas = f"{MECHANISM.lower()}.sasl.jaas.config"
        return {
            "listener.security.protocol.map": f"CONTROLLER:{PROTOCOL},{PROTOCOL}:{PROTOCOL}",
            "controller.listener.names": "CONTROLLER",
            "security.inter.broker.protocol": PROTOCOL,
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "sasl.mechanism.controller.protocol": MECHANISM,
            f"listener.name.controller.{jaas}": login,
            f"listener.name.{PROTOCOL.lower()}.{jaas}": login,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._authority,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            **given,
            _SUPER_USERS: ";".join(filter(None, names)),
        }

    def _write_client_files(self, bootstrap: str) -> None:
        librdkafka = {
            "bootstrap.servers": bootstrap, "security.protocol": PROTOCOL, "sasl.mechanism": MECHANISM,
            "sasl.username": ADMIN, "sasl.password": self.passwords[ADMIN], "ssl.ca.location": self._authority,
        }  # fmt: skip
        python: dict[str, Any] = {
            "bootstrap_servers": bootstrap.split(","), "security_protocol": PROTOCOL, "sasl_mechanism": MECHANISM,
            "sasl_plain_username": ADMIN, "sasl_plain_password": self.passwords[ADMIN], "ssl_cafile": self._authority,
        }  # fmt: skip
        write_whole(self.client_properties, [format_properties(self._client(bootstrap))])
        write_whole(self.librdkafka_properties, [format_properties(librdkafka)])
        write_whole(self.python_arguments, [json.dumps(python, indent=2).encode()])

    @property
    def client(self) -> ClientConfig:
        """The configuration of a client that logs in as the nodes do: their password is never changed by others."""
        return parse_client_config(self._client("", NODES), str(self.client_properties))

    def credentials(self, image: ScramImage) -> tuple[list[ScramUpsertion], str | None]:
        """The credentials that a lake lacks, and a warning where it has another password of the admin.

        Another password of the nodes is replaced; the admin's is not, since people may have changed it, unless the
        known one is new.
        """
        missing, warning = [], None
        known = image.mechanisms.get(_MECHANISM_NUMBER, HashTrieMap())
        for user, password in self.passwords.items():
            found = known.get(user)
            if found is not None:
                same = ScramUpsertion.of_password(user, _MECHANISM_NUMBER, password, found.salt, found.iterations)
                if same.to_record() == found.to_record(user, _MECHANISM_NUMBER):
                    continue
                if user == ADMIN and not self.is_new:
                    warning = (
                        f"The password of {ADMIN} was changed: write it into {self.folder / _PASSWORDS}, "
                        f"from which clients' files are made"
                    )
                    continue
            salt = secrets.token_bytes(24)
            missing.append(ScramUpsertion.of_password(user, _MECHANISM_NUMBER, password, salt, _ITERATIONS))
        return missing, warning

    @property
    def _authority(self) -> str:
        return str(self.folder / "ca.pem")

    def _jaas(self, user: str) -> str:
        return f'{_MODULE} required username="{user}" password="{_quoted(self.passwords[user])}";'

    def _client(self, bootstrap: str, user: str = ADMIN) -> dict[str, str]:
        return {
            "bootstrap.servers": bootstrap, "security.protocol": PROTOCOL, "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": self._jaas(user), "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._authority,
        }  # fmt: skip


def _quoted(password: str) -> str:
    return password.replace("\\", "\\\\").replace('"', '\\"')
