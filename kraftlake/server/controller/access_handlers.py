"""Handlers of changes of ACLs, client quotas, SCRAM credentials and feature levels.

Source: kafka.server.ControllerApis, kafka.server.AclApis.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Final

from kraftlake.controller.access.acls import DeletedAcls, create_acls, delete_acls
from kraftlake.controller.access.client_quotas import QuotaAlteration, alter_client_quotas
from kraftlake.controller.access.scram import ScramDeletion, ScramUpsertion, alter_user_scram_credentials
from kraftlake.controller.cluster.features import FeatureUpdate, UpgradeType, update_features
from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.controller.controller_node import ControllerNode, Handlers
from kraftlake.server.requests.acls import acl_in, authorizer_of, describe_acls, filter_in, is_unreadable
from kraftlake.server.requests.dispatcher import Answering, Request
from kraftlake.server.requests.handlers import response_to


def _create_acls(node: ControllerNode, request: Request) -> Answering:
    if any(map(is_unreadable, request.body.creations)):
        request.close()
        return None
    node.check_cluster(request, AclOperation.ALTER)
    authorizer_of(node.authorization)
    acls = [acl_in(one) for one in request.body.creations]

    def answer(errors: list[ApiError]) -> Any:
        result = request.module.AclCreationResult
        return response_to(
            request,
            results=tuple(result(error_code=one.error, error_message=one.message) for one in errors),
        )

    return node.run(lambda state: create_acls(state, acls), answer)


def _delete_acls(node: ControllerNode, request: Request) -> Answering:
    if any(map(is_unreadable, request.body.filters)):
        request.close()
        return None
    node.check_cluster(request, AclOperation.ALTER)
    authorizer_of(node.authorization)
    filters, module = [filter_in(one) for one in request.body.filters], request.module

    def deleted(acl: StandardAcl) -> Any:
        return module.DeleteAclsMatchingAcl(
            error_code=ErrorCode.NONE, error_message=None, resource_type=acl.resource_type,
            resource_name=acl.resource_name, pattern_type=acl.pattern_type, principal=acl.principal, host=acl.host,
            operation=acl.operation, permission_type=acl.permission_type,
        )  # fmt: skip

    def answer(answers: list[DeletedAcls]) -> Any:
        return response_to(
            request,
            filter_results=tuple(
                module.DeleteAclsFilterResult(
                    error_code=one.error.error, error_message=one.error.message,
                    matching_acls=tuple(map(deleted, one.acls)),
                )
                for one in answers
            ),
        )  # fmt: skip

    return node.run(lambda state: delete_acls(state, filters), answer)


def _alter_quotas(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.ALTER_CONFIGS)
    asked, module = request.body, request.module
    alterations = [
        QuotaAlteration(
            # of a type that is named twice, the last name counts
            entity=tuple({part.entity_type: part.entity_name for part in entry.entity}.items()),
            ops=[(op.key, None if op.remove else float(op.value)) for op in entry.ops],
        )
        for entry in asked.entries
    ]

    def answer(answers: dict[ClientQuotaEntity, ApiError]) -> Any:
        return response_to(
            request,
            entries=tuple(
                module.EntryData(
                    error_code=one.error, error_message=one.message,
                    entity=tuple(
                        module.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.entries
                    ),
                )
                for entity, one in answers.items()
            ),
        )  # fmt: skip

    validate_only = asked.validate_only
    return node.run(lambda state: alter_client_quotas(state, alterations, validate_only=validate_only), answer)


def _alter_scram(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.ALTER)
    deletions = [ScramDeletion(name=one.name, mechanism=int(one.mechanism)) for one in request.body.deletions]
    upsertions = [
        ScramUpsertion(
            name=one.name, mechanism=int(one.mechanism), iterations=int(one.iterations), salt=bytes(one.salt),
            salted_password=bytes(one.salted_password),
        )
        for one in request.body.upsertions
    ]  # fmt: skip

    def answer(answers: dict[str, ApiError]) -> Any:
        result = request.module.AlterUserScramCredentialsResult
        return response_to(
            request,
            results=tuple(
                result(user=user, error_code=one.error, error_message=one.message) for user, one in answers.items()
            ),
        )

    return node.run(lambda state: alter_user_scram_credentials(state, deletions, upsertions), answer)


def _update_features(node: ControllerNode, request: Request) -> Future[Any]:
    node.check_cluster(request, AclOperation.ALTER)
    asked, module = request.body, request.module
    updates = {
        one.feature: FeatureUpdate(int(one.max_version_level), _upgrade_type(one)) for one in asked.feature_updates
    }

    def answer(error: ApiError) -> Any:
        if error.is_failure:
            raise ControllerApiError(error.error, f"No feature is changed: {error.message}")
        results: tuple[Any, ...] = ()
        if hasattr(module, "UpdatableFeatureResult"):
            results = tuple(
                module.UpdatableFeatureResult(feature=one.feature, error_code=ErrorCode.NONE, error_message=None)
                for one in asked.feature_updates
            )
        return response_to(request, error_message=None, results=results)

    validate_only = bool(getattr(asked, "validate_only", False))
    return node.run(lambda state: update_features(state, updates, validate_only=validate_only), answer)


def _upgrade_type(update: Any) -> UpgradeType:
    """The allowed direction of a change; version 0 knows none but the upgrade."""
    code = int(getattr(update, "upgrade_type", UpgradeType.UPGRADE.value))
    return UpgradeType(code) if code in {one.value for one in UpgradeType} else UpgradeType.UNKNOWN


ACCESS_HANDLERS: Final[Handlers] = {
    "create_acls": _create_acls,
    "delete_acls": _delete_acls,
    "describe_acls": lambda node, request: describe_acls(node.authorization, request),
    "alter_client_quotas": _alter_quotas,
    "alter_user_scram_credentials": _alter_scram,
    "update_features": _update_features,
}
"""The handlers of requests about ACLs, and of changes of client quotas, SCRAM credentials and features."""
