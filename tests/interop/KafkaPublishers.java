import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.message.DescribeClientQuotasRequestData;
import org.apache.kafka.common.message.DescribeClientQuotasResponseData;
import org.apache.kafka.common.message.DescribeTopicPartitionsResponseData;
import org.apache.kafka.common.message.DescribeUserScramCredentialsRequestData;
import org.apache.kafka.common.message.DescribeUserScramCredentialsResponseData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.Sanitizer;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.internals.CidrUtils;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * What a Kafka broker answers its requests from, behind a line protocol: a word and a JSON object, apart by a tab, a
 * line on stdin; one JSON object with "answer" a line on stdout.
 *
 *   authorize  decisions of StandardAuthorizer: its ACLs, its configuration, requests; with the deciding ACL's number
 *   quotas     limits of ClientQuotaManager: changes, then who asks
 *   cache      answers of KRaftMetadataCache: an image's records in base64, and what is asked
 *   ranges     for each host and pattern: whether CidrUtils takes the pattern, and whether the host lies in it
 *   addresses  the bytes in hex that InetAddress reads from each text, null for what it takes for no address
 *
 * The language used is what Janino compiles, as in KafkaImages.java.
 */
public class KafkaPublishers {
    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] fields) throws Exception {
                return Collections.singletonMap("answer", KafkaPublishers.answer(fields[0], Answers.JSON.readTree(fields[1])));
            }
        }.serve();
    }

    static Object answer(String what, JsonNode request) throws Exception {
        if (what.equals("authorize")) {
            return authorize(request);
        }
        if (what.equals("quotas")) {
            return quotas(request);
        }
        if (what.equals("cache")) {
            return cache(request);
        }
        if (what.equals("ranges")) {
            return ranges(request);
        }
        if (what.equals("addresses")) {
            return addresses(request);
        }
        throw new IllegalArgumentException("no such request: " + what);
    }

    static Object ranges(JsonNode request) {
        List answers = new ArrayList();
        for (Iterator asked = request.get("ranges").iterator(); asked.hasNext(); ) {
            JsonNode pair = (JsonNode) asked.next();
            String host = pair.get("host").asText();
            String pattern = pair.get("pattern").asText();
            boolean valid = true;
            try {
                CidrUtils.validate(pattern);
            } catch (IllegalArgumentException e) {
                valid = false;
            }
            boolean inside = CidrUtils.isInRange(host, pattern);
            answers.add(Arrays.asList(new Object[] {Boolean.valueOf(valid), Boolean.valueOf(inside)}));
        }
        return answers;
    }

    static Object addresses(JsonNode request) {
        List answers = new ArrayList();
        for (Iterator asked = request.get("texts").iterator(); asked.hasNext(); ) {
            JsonNode text = (JsonNode) asked.next();
            try {
                byte[] bytes = InetAddress.getByName(text.asText()).getAddress();
                StringBuilder hex = new StringBuilder();
                for (int i = 0; i < bytes.length; i++) {
                    hex.append(Integer.toHexString((bytes[i] & 0xff) + 0x100).substring(1));
                }
                answers.add(hex.toString());
            } catch (UnknownHostException e) {
                answers.add(null);
            }
        }
        return answers;
    }

    static class Context implements AuthorizableRequestContext {
        private final JsonNode request;

        Context(JsonNode request) {
            this.request = request;
        }

        public String listenerName() {
            return "PLAINTEXT";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public KafkaPrincipal principal() {
            String[] parts = request.get("principal").asText().split(":", 2);
            return new KafkaPrincipal(parts[0], parts[1]);
        }

        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(request.get("host").asText());
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }

        public int requestType() {
            return 3;
        }

        public int requestVersion() {
            return 0;
        }

        public String clientId() {
            return "test";
        }

        public int correlationId() {
            return 0;
        }
    }

    static Object authorize(JsonNode request) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), new LinkedHashMap()));
        Map configs = new HashMap();
        configs.put("super.users", request.get("superUsers").asText());
        configs.put("allow.everyone.if.no.acl.found", request.get("everyone").asText());
        authorizer.configure(configs);
        Map acls = new HashMap();
        Map numbers = new HashMap();
        int number = 0;
        for (Iterator a = request.get("acls").iterator(); a.hasNext(); ) {
            JsonNode acl = (JsonNode) a.next();
            StandardAcl made = new StandardAcl(
                ResourceType.fromCode((byte) acl.get("resourceType").asInt()),
                acl.get("resourceName").asText(),
                PatternType.fromCode((byte) acl.get("patternType").asInt()),
                acl.get("principal").asText(),
                acl.get("host").asText(),
                AclOperation.fromCode((byte) acl.get("operation").asInt()),
                AclPermissionType.fromCode((byte) acl.get("permissionType").asInt()));
            numbers.put(made, Integer.valueOf(number));
            acls.put(new Uuid(0L, 100 + number++), made);
        }
        authorizer.loadSnapshot(acls);
        authorizer.completeInitialLoad();
        List answers = new ArrayList();
        for (Iterator r = request.get("requests").iterator(); r.hasNext(); ) {
            JsonNode asked = (JsonNode) r.next();
            ResourcePattern pattern = new ResourcePattern(
                ResourceType.fromCode((byte) asked.get("resourceType").asInt()),
                asked.get("resourceName").asText(),
                PatternType.LITERAL);
            Action action = new Action(
                AclOperation.fromCode((byte) asked.get("operation").asInt()), pattern, 1, false, false);
            Context context = new Context(asked);
            List results = authorizer.authorize(context, Collections.singletonList(action));
            boolean allowed = results.get(0) == AuthorizationResult.ALLOWED;
            answers.add(Arrays.asList(new Object[] {Boolean.valueOf(allowed), numbers.get(rule(authorizer, context, action))}));
        }
        return answers;
    }

    /** The ACL that the log of the authorizer names for a decision; null where none decides. */
    static Object rule(StandardAuthorizer authorizer, Context context, Action action) throws Exception {
        Object data = accessible(StandardAuthorizer.class.getDeclaredField("data")).get(authorizer);
        java.util.Set superUsers = (java.util.Set) accessible(data.getClass().getDeclaredField("superUsers")).get(data);
        if (superUsers.contains(context.principal().toString())) {
            return null;
        }
        java.lang.reflect.Method find = data.getClass().getDeclaredMethod(
            "findAclRule", new Class[] {java.util.Set.class, String.class, Action.class});
        find.setAccessible(true);
        java.util.Set principals = new HashSet(
            Arrays.asList(new Object[] {context.principal(), new KafkaPrincipal("User", "*")}));
        Object found = find.invoke(data, new Object[] {principals, context.clientAddress().getHostAddress(), action});
        if (!found.getClass().getSimpleName().equals("MatchingAclRule")) {
            return null;
        }
        return accessible(found.getClass().getDeclaredField("acl")).get(found);
    }

    static java.lang.reflect.Field accessible(java.lang.reflect.Field field) {
        field.setAccessible(true);
        return field;
    }

    static Optional entity(JsonNode change, String field, boolean user) {
        if (!change.has(field)) {
            return Optional.empty();
        }
        if (change.get(field).isNull()) {
            return Optional.of(user ? ClientQuotaManager.DEFAULT_USER_ENTITY : ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
        }
        String name = change.get(field).asText();
        Object entity = user
            ? (Object) new ClientQuotaManager.UserEntity(Sanitizer.sanitize(name))
            : (Object) new ClientQuotaManager.ClientIdEntity(name);
        return Optional.of(entity);
    }

    static Object quotas(JsonNode request) throws Exception {
        Metrics metrics = new Metrics();
        ClientQuotaManager manager = new ClientQuotaManager(
            new ClientQuotaManagerConfig(), metrics, QuotaType.PRODUCE, Time.SYSTEM, "test");
        List answers = new ArrayList();
        for (Iterator s = request.get("steps").iterator(); s.hasNext(); ) {
            JsonNode step = (JsonNode) s.next();
            if (step.has("ask")) {
                double bound = manager.quota(((JsonNode) step.get("ask").get(0)).asText(), ((JsonNode) step.get("ask").get(1)).asText()).bound();
                answers.add(bound > 1e18 ? null : Double.valueOf(bound));
            } else {
                Optional quota = step.get("value").isNull()
                    ? Optional.empty()
                    : Optional.of(new Quota(step.get("value").asDouble(), true));
                manager.updateQuota(entity(step, "user", true), entity(step, "client-id", false), quota);
            }
        }
        manager.initiateShutdown();
        metrics.close();
        return answers;
    }

    static MetadataImage image(JsonNode records, long offset) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY)
            .setSupportedConfigChecker(new DefaultSupportedConfigChecker()).build();
        for (Iterator r = records.iterator(); r.hasNext(); ) {
            byte[] bytes = Base64.getDecoder().decode(((JsonNode) r.next()).asText());
            ApiMessageAndVersion record = (ApiMessageAndVersion) MetadataRecordSerde.INSTANCE.read(
                new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length);
            delta.replay(record.message());
        }
        return delta.apply(new MetadataProvenance(offset, 1, 1L, true));
    }

    static Object node(Node node) {
        if (node == null) {
            return null;
        }
        Map json = new LinkedHashMap();
        json.put("id", Integer.valueOf(node.id()));
        json.put("host", node.host());
        json.put("port", Integer.valueOf(node.port()));
        json.put("rack", node.rack());
        json.put("fenced", Boolean.valueOf(node.isFenced()));
        return json;
    }

    static Object node(Optional node) {
        return node((Node) node.orElse(null));
    }

    static List nodes(Collection nodes) {
        List json = new ArrayList();
        for (Iterator n = nodes.iterator(); n.hasNext(); ) {
            json.add(node((Node) n.next()));
        }
        return json;
    }

    static Map map(Object[] pairs) {
        Map json = new LinkedHashMap();
        for (int i = 0; i < pairs.length; i += 2) {
            json.put(pairs[i], pairs[i + 1]);
        }
        return json;
    }

    static List partitions(List partitions) {
        List json = new ArrayList();
        for (Iterator p = partitions.iterator(); p.hasNext(); ) {
            MetadataResponseData.MetadataResponsePartition partition =
                (MetadataResponseData.MetadataResponsePartition) p.next();
            json.add(map(new Object[] {
                "error", Integer.valueOf(partition.errorCode()), "partition", Integer.valueOf(partition.partitionIndex()),
                "leader", Integer.valueOf(partition.leaderId()), "epoch", Integer.valueOf(partition.leaderEpoch()),
                "replicas", partition.replicaNodes(), "isr", partition.isrNodes(),
                "offline", partition.offlineReplicas()}));
        }
        return json;
    }

    static Object topics(KRaftMetadataCache cache, LinkedHashSet names, ListenerName listener, boolean a, boolean b) {
        Map json = new LinkedHashMap();
        for (Iterator t = cache.getTopicMetadata(names, listener, a, b).iterator(); t.hasNext(); ) {
            MetadataResponseData.MetadataResponseTopic topic = (MetadataResponseData.MetadataResponseTopic) t.next();
            json.put(topic.name(), map(new Object[] {
                "error", Integer.valueOf(topic.errorCode()), "id", topic.topicId().toString(),
                "internal", Boolean.valueOf(topic.isInternal()), "partitions", partitions(topic.partitions())}));
        }
        return json;
    }

    static Object describe(KRaftMetadataCache cache, List names, ListenerName listener, final int start, int limit) {
        Function first = new Function() {
            public Object apply(Object topic) {
                return Integer.valueOf(start);
            }
        };
        DescribeTopicPartitionsResponseData answer =
            cache.describeTopicResponse(names.iterator(), listener, first, limit, false);
        List topics = new ArrayList();
        for (Iterator t = answer.topics().iterator(); t.hasNext(); ) {
            DescribeTopicPartitionsResponseData.DescribeTopicPartitionsResponseTopic topic =
                (DescribeTopicPartitionsResponseData.DescribeTopicPartitionsResponseTopic) t.next();
            List partitions = new ArrayList();
            for (Iterator p = topic.partitions().iterator(); p.hasNext(); ) {
                DescribeTopicPartitionsResponseData.DescribeTopicPartitionsResponsePartition partition =
                    (DescribeTopicPartitionsResponseData.DescribeTopicPartitionsResponsePartition) p.next();
                partitions.add(map(new Object[] {
                    "partition", Integer.valueOf(partition.partitionIndex()),
                    "leader", Integer.valueOf(partition.leaderId()), "epoch", Integer.valueOf(partition.leaderEpoch()),
                    "replicas", partition.replicaNodes(), "isr", partition.isrNodes(),
                    "offline", partition.offlineReplicas(), "elr", partition.eligibleLeaderReplicas(),
                    "lastKnownElr", partition.lastKnownElr()}));
            }
            topics.add(map(new Object[] {
                "name", topic.name(), "error", Integer.valueOf(topic.errorCode()), "id", topic.topicId().toString(),
                "partitions", partitions}));
        }
        Object cursor = answer.nextCursor() == null
            ? null
            : Arrays.asList(new Object[] {
                answer.nextCursor().topicName(), Integer.valueOf(answer.nextCursor().partitionIndex())});
        return map(new Object[] {"topics", topics, "cursor", cursor});
    }

    static Object quotas(KRaftMetadataCache cache, JsonNode filter) {
        DescribeClientQuotasRequestData request =
            new DescribeClientQuotasRequestData().setStrict(filter.get("strict").asBoolean());
        for (Iterator c = filter.get("components").iterator(); c.hasNext(); ) {
            JsonNode component = (JsonNode) c.next();
            request.components().add(new DescribeClientQuotasRequestData.ComponentData()
                .setEntityType(((JsonNode) component.get(0)).asText())
                .setMatchType((byte) ((JsonNode) component.get(1)).asInt())
                .setMatch(((JsonNode) component.get(2)).isNull() ? null : ((JsonNode) component.get(2)).asText()));
        }
        List json = new ArrayList();
        DescribeClientQuotasResponseData answer;
        try {
            answer = cache.describeClientQuotas(request);
        } catch (RuntimeException refused) {
            return "refused";
        }
        for (Iterator e = answer.entries().iterator(); e.hasNext(); ) {
            DescribeClientQuotasResponseData.EntryData entry = (DescribeClientQuotasResponseData.EntryData) e.next();
            Map entity = new LinkedHashMap();
            for (Iterator d = entry.entity().iterator(); d.hasNext(); ) {
                DescribeClientQuotasResponseData.EntityData data = (DescribeClientQuotasResponseData.EntityData) d.next();
                entity.put(data.entityType(), data.entityName());
            }
            Map values = new LinkedHashMap();
            for (Iterator v = entry.values().iterator(); v.hasNext(); ) {
                DescribeClientQuotasResponseData.ValueData value = (DescribeClientQuotasResponseData.ValueData) v.next();
                values.put(value.key(), Double.valueOf(value.value()));
            }
            json.add(map(new Object[] {"entity", entity, "values", values}));
        }
        return json;
    }

    static Object scram(KRaftMetadataCache cache, JsonNode users) {
        DescribeUserScramCredentialsRequestData request = new DescribeUserScramCredentialsRequestData();
        List names = new ArrayList();
        for (Iterator u = users.iterator(); u.hasNext(); ) {
            names.add(new DescribeUserScramCredentialsRequestData.UserName().setName(((JsonNode) u.next()).asText()));
        }
        request.setUsers(names);
        Map json = new LinkedHashMap();
        for (Iterator r = cache.describeScramCredentials(request).results().iterator(); r.hasNext(); ) {
            DescribeUserScramCredentialsResponseData.DescribeUserScramCredentialsResult result =
                (DescribeUserScramCredentialsResponseData.DescribeUserScramCredentialsResult) r.next();
            Map iterations = new LinkedHashMap();
            for (Iterator c = result.credentialInfos().iterator(); c.hasNext(); ) {
                DescribeUserScramCredentialsResponseData.CredentialInfo info =
                    (DescribeUserScramCredentialsResponseData.CredentialInfo) c.next();
                iterations.put(String.valueOf(info.mechanism()), Integer.valueOf(info.iterations()));
            }
            json.put(result.user(), map(new Object[] {"error", Integer.valueOf(result.errorCode()), "iterations", iterations}));
        }
        return json;
    }

    static Object cluster(MetadataImage image) throws Exception {
        Cluster cluster = (Cluster) MetadataCache.class
            .getMethod("toCluster", new Class[] {String.class, MetadataImage.class})
            .invoke(null, new Object[] {"cluster", image});
        List partitions = new ArrayList();
        for (Iterator t = cluster.topics().iterator(); t.hasNext(); ) {
            for (Iterator p = cluster.partitionsForTopic((String) t.next()).iterator(); p.hasNext(); ) {
                PartitionInfo info = (PartitionInfo) p.next();
                partitions.add(map(new Object[] {
                    "topic", info.topic(), "partition", Integer.valueOf(info.partition()), "leader", node(info.leader()),
                    "replicas", nodes(Arrays.asList(info.replicas())),
                    "isr", nodes(Arrays.asList(info.inSyncReplicas())),
                    "offline", nodes(Arrays.asList(info.offlineReplicas()))}));
            }
        }
        return map(new Object[] {
            "nodes", nodes(cluster.nodes()), "partitions", partitions, "internal", new ArrayList(cluster.internalTopics()),
            "controllerIsFenced", Boolean.valueOf(cluster.controller().isFenced()),
            "hasController", Boolean.valueOf(!cluster.controller().isEmpty())});
    }

    static Object cache(JsonNode request) throws Exception {
        KRaftMetadataCache cache = new KRaftMetadataCache(1, new Supplier() {
            public Object get() {
                return KRaftVersion.KRAFT_VERSION_1;
            }
        });
        cache.setImage(image(request.get("records"), request.get("offset").asLong()));
        Map json = new LinkedHashMap();
        json.put("cluster", cluster(cache.currentImage()));
        List names = new ArrayList();
        for (Iterator t = request.get("topics").iterator(); t.hasNext(); ) {
            names.add(((JsonNode) t.next()).asText());
        }
        json.put("features", map(new Object[] {
            "levels", cache.features().finalizedFeatures(), "epoch", Long.valueOf(cache.features().finalizedFeaturesEpoch())}));
        Map listeners = new LinkedHashMap();
        for (Iterator l = request.get("listeners").iterator(); l.hasNext(); ) {
            ListenerName listener = new ListenerName(((JsonNode) l.next()).asText());
            Map answers = new LinkedHashMap();
            answers.put("alive", nodes(cache.getAliveBrokerNodes(listener)));
            answers.put("all", nodes(cache.getBrokerNodes(listener)));
            List metadata = new ArrayList();
            for (int i = 0; i < 4; i++) {
                metadata.add(topics(cache, new LinkedHashSet(names), listener, (i & 1) != 0, (i & 2) != 0));
            }
            answers.put("metadata", metadata);
            answers.put("described", describe(cache, names, listener,
                request.get("start").asInt(), request.get("limit").asInt()));
            List endpoints = new ArrayList();
            for (Iterator t = names.iterator(); t.hasNext(); ) {
                String topic = (String) t.next();
                for (int partition = 0; partition < 3; partition++) {
                    endpoints.add(node(cache.getPartitionLeaderEndpoint(topic, partition, listener)));
                }
            }
            answers.put("endpoints", endpoints);
            listeners.put(listener.value(), answers);
        }
        json.put("listeners", listeners);
        List topics = new ArrayList();
        for (Iterator t = names.iterator(); t.hasNext(); ) {
            String topic = (String) t.next();
            LeaderAndIsr state = (LeaderAndIsr) cache.getLeaderAndIsr(topic, 0).orElse(null);
            topics.add(Arrays.asList(new Object[] {
                Boolean.valueOf(cache.contains(topic)),
                state == null ? null : Arrays.asList(new Object[] {
                    Integer.valueOf(state.leader()), Integer.valueOf(state.leaderEpoch()),
                    Integer.valueOf(state.partitionEpoch())})}));
        }
        json.put("topics", topics);
        json.put("names", new ArrayList(cache.getAllTopics()));
        List filters = new ArrayList();
        for (Iterator f = request.get("filters").iterator(); f.hasNext(); ) {
            filters.add(quotas(cache, (JsonNode) f.next()));
        }
        json.put("quotas", filters);
        json.put("scram", scram(cache, request.get("users")));
        return json;
    }
}
