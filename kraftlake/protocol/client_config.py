"""How a client reaches a node: the security of the connection and the client's name."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class ClientConfig:
    """What `read_client_config` makes of a properties file; the default speaks PLAINTEXT."""

    client_id: str = "kraftlake"
