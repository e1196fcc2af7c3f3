"""Access control lists, indexed by resource. Immutable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import attrs
from rpds import HashTrieMap

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.kafka_names import PatternType
from kraftlake.records.uuid import Uuid

WILDCARD = "*"
"""Wildcard: as a literal resource name, all resources of the type; as a host, all hosts."""

_Place = tuple[int, int, str]
_Acls: TypeAlias = "HashTrieMap[Uuid, StandardAcl]"


@attrs.frozen
class AclCache:
    """ACLs by id, and by (resource type, pattern type, resource name) for requests.

    A lookup takes one step for each character of the resource's name, independent of the number of ACLs.
    Source: org.apache.kafka.metadata.authorizer.AclCache.
    """

    by_id: _Acls = HashTrieMap()
    _by_place: HashTrieMap[_Place, _Acls] = HashTrieMap()
    _longest_prefix: int = 0

    @classmethod
    def of(cls, acls: Mapping[Uuid, StandardAcl] | _Acls) -> AclCache:
        """Return the cache of all `acls`."""
        cache = cls()
        for acl_id, acl in acls.items():
            cache = cache.with_acl(acl_id, acl)
        return cache

    def with_acl(self, acl_id: Uuid, acl: StandardAcl) -> AclCache:
        """Return a cache with the ACL added, in place of one with the same id."""
        base = self.without(acl_id)
        place = _place_of(acl)
        at_place: _Acls = base._by_place.get(place) or HashTrieMap()
        longest = max(base._longest_prefix, len(acl.resource_name))
        return AclCache(
            base.by_id.insert(acl_id, acl), base._by_place.insert(place, at_place.insert(acl_id, acl)), longest
        )

    def without(self, acl_id: Uuid) -> AclCache:
        """Return a cache without an ACL; the same object if the id is unknown."""
        acl = self.by_id.get(acl_id)
        if acl is None:
            return self
        place = _place_of(acl)
        at_place = self._by_place[place].remove(acl_id)
        by_place = self._by_place.insert(place, at_place) if at_place else self._by_place.remove(place)
        return AclCache(self.by_id.remove(acl_id), by_place, self._longest_prefix)

    def matching(self, resource_type: int, resource_name: str) -> Iterator[_Acls]:
        """Return the ACLs that match a resource, place by place in the order in which Kafka searches them.

        These are its name, the prefixes of its name from the longest to the shortest, and the wildcard.
        """
        places = [(resource_type, int(PatternType.LITERAL), resource_name)]
        longest = min(len(resource_name), self._longest_prefix)
        prefixes = (resource_name[:length] for length in range(longest, -1, -1))
        places += [(resource_type, int(PatternType.PREFIXED), prefix) for prefix in prefixes]
        if resource_name != WILDCARD:
            places.append((resource_type, int(PatternType.LITERAL), WILDCARD))
        for place in places:
            at_place = self._by_place.get(place)
            if at_place is not None:
                yield at_place


def _place_of(acl: StandardAcl) -> _Place:
    return acl.resource_type, acl.pattern_type, acl.resource_name
