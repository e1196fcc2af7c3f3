"""A source that answers which configs and quotas are in effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kraftlake.api.past_states import UndoableSource
from kraftlake.runtime.arguments import text, texts, whole_or_none
from kraftlake.runtime.moments import Moment

if TYPE_CHECKING:
    from kraftlake.diagnosis.effective.configs import EffectiveConfig
    from kraftlake.diagnosis.effective.quotas import EffectiveQuota


class EffectiveSource(UndoableSource):
    """A source with the questions of `kraftlake effective`; a moment is as in `Source`."""

    def effective_configs(
        self,
        subject: str,
        names: Iterable[str] = (),
        *,
        broker: int | None = None,
        static: Mapping[str, str] | None = None,
        at: Moment | None = None,
        at_time: Moment | None = None,
        lenient: bool = False,
    ) -> list[EffectiveConfig]:
        """The configs in effect for `topic/NAME`, `broker/ID`, `group/NAME` or `client-metrics/NAME` at a moment.

        `names` are shell patterns. `static` are the settings of a node's properties file; topics and groups are as
        `broker` describes them. Raises NoSuchThingError for what the cluster does not have, UsageError for a path of
        another form and for a setting that can't have its value, else as `image`.
        """
        from kraftlake.diagnosis.effective.configs import effective_configs
        from kraftlake.diagnosis.effective.subject import Subject

        wanted = Subject.parse(text(subject, "a path"), clients=False)
        image = self.replay(at, at_time=at_time, lenient=lenient).image
        node = whole_or_none(broker, "a broker's id", least=0)
        return effective_configs(image, wanted, broker=node, static=static, names=texts(names, "a name"))

    def effective_quotas(
        self,
        *,
        user: str = "",
        client_id: str = "",
        ip: str = "",
        at: Moment | None = None,
        at_time: Moment | None = None,
        lenient: bool = False,
    ) -> list[EffectiveQuota]:
        """The quotas in effect for a client at a moment, by its user, client id and address. As `image`."""
        from kraftlake.diagnosis.effective.quotas import effective_quotas
        from kraftlake.diagnosis.effective.subject import Subject

        client = Subject(
            kind="client",
            user=text(user, "a user"),
            client_id=text(client_id, "a client id"),
            ip=text(ip, "an address"),
        )
        return effective_quotas(self.replay(at, at_time=at_time, lenient=lenient).image, client)
