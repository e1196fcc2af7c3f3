"""The answers to ApiVersions, with which each connection begins: kept in bytes while the features stay the same.

Source: org.apache.kafka.common.requests.ApiVersionsResponse, KIP-511, KIP-584.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
from kio.static.constants import EntityType

from kraftlake.image.endpoint import VersionRange
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.quotas.request_throttle import RequestThrottle
from kraftlake.server.requests.messages import AT_ONCE, CORRELATION, encoded, entity, module_of, of_version, versions_of

API_VERSIONS: Final = "api_versions"
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_ZERO_IS_A_LEVEL: Final = 4
"""The first version of ApiVersions in which a client accepts 0 as a level (KIP-1022)."""


@attrs.frozen(kw_only=True)
class NodeFeatures:
    """The features in an ApiVersions response: the levels that the node supports, and the finalized levels."""

    supported: Mapping[str, VersionRange] = attrs.field(factory=dict)
    finalized: Mapping[str, int] = attrs.field(factory=dict)
    epoch: int = -1
    """The offset of the image with the finalized levels; −1 while unknown."""


class VersionsAnswers:
    """Answers with the `served` versions by API and the `features` of a node; for all threads.

    An unknown version of ApiVersions is answered in version 0 with UNSUPPORTED_VERSION, and the versions of ApiVersions
    alone.
    """

    def __init__(self, served: Mapping[str, range], features: Callable[[], NodeFeatures]) -> None:
        self._served = {**served, API_VERSIONS: versions_of(API_VERSIONS)}
        self._features = features
        self._kept: dict[int, tuple[NodeFeatures, bytes]] = {}
        """By version: the features of the last answer, and its bytes after the correlation id."""

    def encoded(self, version: int, asked: Any, correlation: int, throttle: RequestThrottle | None = None) -> bytes:
        """Encode the answer to the request `asked`, which is None in an unknown version."""
        if asked is not None and not _names_software(asked):
            response = entity(API_VERSIONS, version, EntityType.response)
            answer = of_version(response, error_code=ErrorCode.INVALID_REQUEST, api_keys=(), throttle_time=AT_ONCE)
            return _encoded(correlation, answer, throttle)
        features = self._features()
        if throttle is not None:
            return _encoded(correlation, self._of_features(version, features), throttle)
        kept = self._kept.get(version)
        if kept is None or kept[0] != features:
            body = _encoded(0, self._of_features(version, features))[CORRELATION.size :]
            kept = self._kept[version] = (features, body)
        return CORRELATION.pack(correlation) + kept[1]

    def _of_features(self, version: int, features: NodeFeatures) -> Any:
        is_known = version in versions_of(API_VERSIONS)
        response = entity(API_VERSIONS, version if is_known else 0, EntityType.response)
        module = module_of(response)
        served = self._served if is_known else {API_VERSIONS: self._served[API_VERSIONS]}
        keys = {
            name: int(entity(name, versions[0], EntityType.request).__api_key__) for name, versions in served.items()
        }
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
            api_keys=tuple(
                module.ApiVersion(api_key=keys[name], min_version=served[name][0], max_version=served[name][-1])
                for name in sorted(served, key=keys.__getitem__)
            ),
            throttle_time=AT_ONCE,
            **more,
        )


def _encoded(correlation: int, answer: Any, throttle: RequestThrottle | None = None) -> bytes:
    answer = answer if throttle is None else throttle.throttled(answer)
    return encoded(correlation, answer, flexible_header=False)  # in every version


def _names_software(asked: Any) -> bool:
    """Whether an ApiVersions request names the client software as Kafka requires (KIP-511); old versions don't."""
    names = (getattr(asked, "client_software_name", "0"), getattr(asked, "client_software_version", "0"))
    return all(_SOFTWARE.fullmatch(name) for name in names)
