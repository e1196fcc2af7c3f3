"""One epoch of a controller: pending and committed images, and the limit of one batch."""

from __future__ import annotations

import pytest

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.quorum.active_controller import ActiveController
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import Command
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.records.serde import ApiMessageAndVersion
from tests.controller.controlled_cluster import ControlledCluster


def configs(count: int, *, atomic: bool) -> Command[int]:
    records = [
        ApiMessageAndVersion(ConfigRecord(resource_type=4, resource_name="", name=f"c{n}", value="1"), 0)
        for n in range(count)
    ]
    return lambda _: ControllerResult(records, count, atomic)


@pytest.fixture
def controller() -> ActiveController:
    return ControlledCluster().controller


def set_configs(controller: ActiveController) -> tuple[int, int]:
    """The numbers of configs in the committed and in the pending image."""
    from kraftlake.image.configurations_image import ConfigResource

    resource = ConfigResource(4, "")
    committed, pending = (
        image.configs.config_map(resource) for image in (controller.committed, controller.state.image)
    )
    return len(committed), len(pending)


def test_a_command_sees_the_pending_image_and_a_reader_the_committed_one(controller: ActiveController) -> None:
    (before, _), base = set_configs(controller), controller.state.next_offset
    first = controller.execute(configs(2, atomic=True))
    assert (first.base_offset, first.answer_at, set_configs(controller)) == (base, base + 1, (before, before + 2))
    looked = controller.execute(lambda state: ControllerResult((), len(state.image.configs.resource_data)))
    assert (looked.response, looked.answer_at) == (1, base + 1), "it waits for the records that it has seen"
    second = controller.execute(configs(3, atomic=True))
    controller.committed_up_to(first.answer_at)
    assert set_configs(controller) == (before + 2, before + 3)
    controller.committed_up_to(second.answer_at)
    assert set_configs(controller) == (before + 3, before + 3)
    assert controller.execute(lambda _: ControllerResult((), None)).answer_at == -1


def test_a_result_that_is_not_atomic_is_split_and_one_that_is_and_too_large_is_refused(
    controller: ActiveController,
) -> None:
    end = controller.state.next_offset
    with pytest.raises(ControllerApiError) as refused:
        controller.execute(configs(10_001, atomic=True))
    assert refused.value.error is ErrorCode.POLICY_VIOLATION
    assert controller.state.next_offset == end
    split = controller.execute(configs(25_000, atomic=False))
    assert [len(batch) for batch in split.batches] == [10_000, 10_000, 5_000]
    assert split.answer_at == end + 24_999
    controller.committed_up_to(end + 9_999)
    assert set_configs(controller)[0] == 10_001, "with min.insync.replicas"


def test_a_new_epoch_of_a_complete_log_writes_no_bootstrap_records(controller: ActiveController) -> None:
    executed = controller.activate(BootstrapMetadata.of)
    assert list(executed.batches) == []
