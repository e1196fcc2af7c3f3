"""The brokers and controllers that have registered."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from rpds import HashTrieMap

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.controller_registration import ControllerRegistration
from kraftlake.image.image_part import ImagePart
from kraftlake.image.short_repr import short_repr
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.serde import ApiMessageAndVersion


@attrs.frozen(kw_only=True)
class ClusterImage(ImagePart):
    """Registrations by node id. Source: org.apache.kafka.image.ClusterImage."""

    brokers: HashTrieMap[int, BrokerRegistration] = HashTrieMap()
    controllers: HashTrieMap[int, ControllerRegistration] = HashTrieMap()

    def __repr__(self) -> str:
        return short_repr(self, brokers=len(self.brokers), controllers=len(self.controllers))

    def write(self, options: ImageWriterOptions) -> Iterator[ApiMessageAndVersion]:
        """The records of the brokers by id, then those of the controllers by id."""
        for _, broker in sorted(self.brokers.items()):
            yield broker.to_record(options)
        if self.controllers and not options.metadata_version.is_controller_registration_supported:
            options.handle_loss("the registrations of controllers")
            return
        for _, controller in sorted(self.controllers.items()):
            yield controller.to_record()
