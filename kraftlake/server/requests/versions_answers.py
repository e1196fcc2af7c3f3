"""The answers to ApiVersions, with which each connection begins: kept in bytes while the features stay the same.

Source: org.apache.kafka.common.requests.ApiVersionsResponse, KIP-511, KIP-584.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import attrs

from kraftlake.image.endpoint import VersionRange
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.quotas.request_throttle import RequestThrottle
from kraftlake.server.requests.messages import (
    AT_ONCE,
    CORRELATION,
    encoded,
    module_of,
    of_version,
    request_type,
    response_type,
    versions_of,
)

API_VERSIONS: Final = "api_versions"
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_ZERO_IS_A_LEVEL: Final = 4
"""The first version of ApiVersions in which a client accepts 0 as a level (KIP-1022)."""


@attrs.frozen(kw_only=True)
class NodeFeatures:
    """The features in an ApiVersions response: the levels that the node supports, and the finalized levels."""

    supported: Mapping[str, VersionRange] = attrs.field(factory=dict, hash=False)
    finalized: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    epoch: int = -1
    """The offset of the image with the finalized levels; −1 while unknown."""


Served: TypeAlias = tuple[tuple[str, range], ...]
"""The names of APIs and their versions."""


class VersionsAnswers:
    """Answers with the `served` versions by API and the `features` of a node; for all threads.

    An unknown version of ApiVersions is answered in version 0 with UNSUPPORTED_VERSION, and the versions of ApiVersions
    alone.
    """

    def __init__(self, served: Mapping[str, range], features: Callable[[], NodeFeatures]) -> None:
        self._served: Served = tuple({**served, API_VERSIONS: versions_of(API_VERSIONS)}.items())
        self._features = features

    def encoded(self, version: int, asked: Any, correlation: int, throttle: RequestThrottle | None = None) -> bytes:
        """Encode the answer to the request `asked`, which is None in an unknown version."""
        if asked is not None and not _names_software(asked):
            response = response_type(API_VERSIONS, version)
            answer = of_version(response, error_code=ErrorCode.INVALID_REQUEST, api_keys=(), throttle_time=AT_ONCE)
            return _encoded(correlation, answer, throttle)
        if throttle is not None:
            return _encoded(correlation, _answer(self._served, self._features(), version), throttle)
        return CORRELATION.pack(correlation) + _body(self._served, self._features(), version)


@lru_cache(maxsize=64)
def _body(served: Served, features: NodeFeatures, version: int) -> bytes:
    """The answer after its correlation id; most connections get the same one."""
    return _encoded(0, _answer(served, features, version))[CORRELATION.size :]


def _answer(served: Served, features: NodeFeatures, version: int) -> Any:
    is_known = version in versions_of(API_VERSIONS)
    response = response_type(API_VERSIONS, version if is_known else 0)
    module = module_of(response)
    more: dict[str, Any] = {}
    if hasattr(module, "SupportedFeatureKey"):
        more = {
            "supported_features": tuple(
                module.SupportedFeatureKey(name=name, min_version=levels.min, max_version=levels.max)
                for name, levels in features.supported.items()
                if version >= _ZERO_IS_A_LEVEL or levels.min > 0
            ),
            "finalized_features": tuple(
                module.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in features.finalized.items()
            ),
            "finalized_features_epoch": features.epoch,
        }
    return of_version(
        response,
        error_code=ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION,
        api_keys=_api_keys(module.ApiVersion, served, is_known=is_known),
        throttle_time=AT_ONCE,
        **more,
    )


@lru_cache(maxsize=64)
def _api_keys(kind: Any, served: Served, *, is_known: bool) -> tuple[Any, ...]:
    """The versions of each API in kio's class, those of ApiVersions alone for an unknown version of the request."""
    keys = {
        int(request_type(name, versions[0]).__api_key__): versions
        for name, versions in served
        if is_known or name == API_VERSIONS
    }
    return tuple(kind(api_key=key, min_version=keys[key][0], max_version=keys[key][-1]) for key in sorted(keys))


def _encoded(correlation: int, answer: Any, throttle: RequestThrottle | None = None) -> bytes:
    answer = answer if throttle is None else throttle.throttled(answer)
    return encoded(correlation, answer, flexible_header=False)  # in every version


def _names_software(asked: Any) -> bool:
    """Whether an ApiVersions request names the client software as Kafka requires (KIP-511); old versions don't."""
    names = (getattr(asked, "client_software_name", "0"), getattr(asked, "client_software_version", "0"))
    return all(_SOFTWARE.fullmatch(name) for name in names)
