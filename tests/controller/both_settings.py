"""Commands on configs, quotas, ACLs, SCRAM and features for a real Kafka controller and for ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kio.schema.alter_client_quotas.v1 import request as quotas
from kio.schema.alter_configs.v1 import request as old_configs_rpc
from kio.schema.alter_user_scram_credentials.v0 import request as scram_rpc
from kio.schema.create_acls.v3 import request as new_acls
from kio.schema.delete_acls.v3 import request as old_acls
from kio.schema.incremental_alter_configs.v1 import request as configs_rpc
from kio.schema.update_features.v1 import request as features_rpc

from kraftlake.controller.access.acls import AclFilter, create_acls, delete_acls
from kraftlake.controller.access.client_quotas import QuotaAlteration, alter_client_quotas
from kraftlake.controller.access.scram import ScramDeletion, ScramUpsertion, alter_user_scram_credentials
from kraftlake.controller.cluster.features import FeatureUpdate, UpgradeType, update_features
from kraftlake.controller.configs.alter_configs import (
    ConfigOperation,
    OpType,
    incremental_alter_configs,
    legacy_alter_configs,
)
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.configurations_image import ConfigResource
from tests.controller.both_sides import MINUTE, BothSides


class SettingCommands(BothSides):
    """Each method is one command at both."""

    def configure(self, kind: int, resource: str, name: str, op: OpType, value: str | None = None) -> None:
        self.configure_all(kind, resource, [(name, op.value, value)])

    def configure_all(self, kind: int, resource: str, changes: Sequence[tuple[str, int, str | None]]) -> None:
        """Changes of one resource: the name, the number of the operation and the value of each config."""
        request = configs_rpc.IncrementalAlterConfigsRequest(
            resources=(
                configs_rpc.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=resource,
                    configs=tuple(
                        configs_rpc.AlterableConfig(name=name, config_operation=op, value=value)
                        for name, op, value in changes
                    ),
                ),
            ),
            validate_only=False,
        )
        wanted = {ConfigResource(kind, resource): {n: ConfigOperation(OpType(op), value) for n, op, value in changes}}
        self._step(
            f"config {kind}:{resource} {changes}",
            lambda: [int(answer.error_code) for answer in self.rpc.ask(request).responses],
            lambda: [
                int(error.error)
                for error in self.ours.run(
                    lambda state: incremental_alter_configs(state, wanted, forwarded=False)
                ).values()
            ],
        )

    def replace_configs(self, kind: int, resource: str, configs: Mapping[str, str | None]) -> None:
        request = old_configs_rpc.AlterConfigsRequest(
            resources=(
                old_configs_rpc.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=resource,
                    configs=tuple(old_configs_rpc.AlterableConfig(name=n, value=v) for n, v in configs.items()),
                ),
            ),
            validate_only=False,
        )
        wanted = {ConfigResource(kind, resource): configs}
        self._step(
            f"configs {kind}:{resource} {configs}",
            lambda: [int(answer.error_code) for answer in self.rpc.ask(request).responses],
            lambda: [
                int(error.error)
                for error in self.ours.run(lambda state: legacy_alter_configs(state, wanted, forwarded=False)).values()
            ],
        )

    def quota(self, entity: Mapping[str, str | None], **ops: float | None) -> None:
        self.quotas([QuotaAlteration(entity=tuple(entity.items()), ops=list(ops.items()))])

    def quotas(self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False) -> None:
        """One request for all of them."""
        request = quotas.AlterClientQuotasRequest(
            entries=tuple(
                quotas.EntryData(
                    entity=tuple(quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in each.entity),
                    ops=tuple(
                        quotas.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in each.ops
                    ),
                )
                for each in alterations
            ),
            validate_only=validate_only,
        )

        def theirs() -> Any:
            return {
                tuple(sorted((part.entity_type, part.entity_name) for part in answer.entity)): int(answer.error_code)
                for answer in self.rpc.ask(request).entries
            }

        def ours() -> Any:
            answers = self.ours.run(lambda state: alter_client_quotas(state, alterations, validate_only=validate_only))
            return {entity.entries: int(error.error) for entity, error in answers.items()}

        self._step(f"quotas {alterations}", theirs, ours)

    def add_acl(self, *acls: StandardAcl) -> None:
        creations = tuple(
            new_acls.AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in acls
        )
        request = new_acls.CreateAclsRequest(creations=creations)
        self._step(
            f"add {', '.join(map(str, acls))}",
            lambda: [int(answer.error_code) for answer in self.rpc.ask(request).results],
            lambda: [int(error.error) for error in self.ours.run(lambda state: create_acls(state, acls))],
        )

    def remove_acls(self, wanted: AclFilter) -> None:
        filter_ = old_acls.DeleteAclsFilter(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission_type,
        )
        request = old_acls.DeleteAclsRequest(filters=(filter_,))

        def theirs() -> Any:
            return [(int(a.error_code), len(a.matching_acls)) for a in self.rpc.ask(request).filter_results]

        def ours() -> Any:
            answers = self.ours.run(lambda state: delete_acls(state, [wanted]))
            return [(int(answer.error.error), len(answer.acls)) for answer in answers]

        self._step(f"remove {wanted}", theirs, ours)

    def scram(self, *changes: ScramUpsertion | ScramDeletion) -> None:
        upsertions = [change for change in changes if isinstance(change, ScramUpsertion)]
        deletions = [change for change in changes if isinstance(change, ScramDeletion)]
        request = scram_rpc.AlterUserScramCredentialsRequest(
            deletions=tuple(scram_rpc.ScramCredentialDeletion(name=d.name, mechanism=d.mechanism) for d in deletions),
            upsertions=tuple(
                scram_rpc.ScramCredentialUpsertion(
                    name=u.name, mechanism=u.mechanism, iterations=u.iterations, salt=u.salt,
                    salted_password=u.salted_password,
                )
                for u in upsertions
            ),
        )  # fmt: skip
        self._step(
            f"scram {changes}",
            lambda: sorted(int(answer.error_code) for answer in self.rpc.ask(request).results),
            lambda: sorted(
                int(error.error)
                for error in self.ours.run(
                    lambda state: alter_user_scram_credentials(state, deletions, upsertions)
                ).values()
            ),
        )

    def feature(self, kind: UpgradeType = UpgradeType.UPGRADE, **levels: int) -> None:
        named = {name.replace("_", "."): level for name, level in levels.items()}
        request = features_rpc.UpdateFeaturesRequest(
            timeout=MINUTE,
            feature_updates=tuple(
                features_rpc.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind.value)
                for name, level in named.items()
            ),
        )
        updates = {name: FeatureUpdate(level, kind) for name, level in named.items()}
        self._step(
            f"features {named} {kind.name}",
            lambda: int(self.rpc.ask(request).error_code),
            lambda: int(self.ours.run(lambda state: update_features(state, updates)).error),
        )
