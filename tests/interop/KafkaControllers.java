import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.function.IntPredicate;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.controller.ClusterFeatureSupportDescriber;
import org.apache.kafka.controller.FeatureControlManager;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.controller.QuorumFeatures;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.DefaultDirProvider;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.TopicAssignment;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.FeatureVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;

/**
 * What Kafka's controller is made of behind a line protocol: a word and a JSON object a line on stdin (a tab between),
 * one JSON object a line on stdout.
 *
 *   errors    {}         every error by name, with its code
 *   synonyms  {}         the broker configs that each topic config falls back on
 *   features  {}         every feature's levels, and the metadata.versions
 *   change    {...}      the record of a partition change in base64, null for none (see test_partition_change.py)
 *   update    {...}      the error of a feature's update (see test_kafka_upgrade_check.py)
 *   place     {...}      the replicas that the striped placer chooses (see test_placement.py)
 *
 * The language is what Janino compiles.
 */
public class KafkaControllers {
    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] fields) throws Exception {
                return Collections.singletonMap("answer", KafkaControllers.answer(fields[0], Answers.JSON.readTree(fields[1])));
            }
        }.serve();
    }

    static Object answer(String what, JsonNode request) throws Exception {
        if (what.equals("errors")) {
            Map codes = new LinkedHashMap();
            Errors[] all = Errors.values();
            for (int i = 0; i < all.length; i++) {
                codes.put(all[i].name(), Integer.valueOf(all[i].code()));
            }
            return codes;
        }
        if (what.equals("synonyms")) {
            return synonyms();
        }
        if (what.equals("features")) {
            return features();
        }
        if (what.equals("change")) {
            return change(request);
        }
        if (what.equals("update")) {
            return update(request);
        }
        if (what.equals("place")) {
            return place(request);
        }
        throw new IllegalArgumentException("no such request: " + what);
    }

    static Object synonyms() {
        Map synonyms = new LinkedHashMap();
        for (Iterator s = ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.entrySet().iterator(); s.hasNext(); ) {
            Map.Entry entry = (Map.Entry) s.next();
            List names = new ArrayList();
            for (Iterator n = ((List) entry.getValue()).iterator(); n.hasNext(); ) {
                ConfigSynonym synonym = (ConfigSynonym) n.next();
                names.add(Arrays.asList(new Object[] {synonym.name(), synonym.converter().apply("1")}));
            }
            synonyms.put(entry.getKey(), names);
        }
        return synonyms;
    }

    static Object features() {
        Map json = new LinkedHashMap();
        Map defaults = new LinkedHashMap();
        Map needs = new LinkedHashMap();
        for (Iterator f = Feature.PRODUCTION_FEATURES.iterator(); f.hasNext(); ) {
            Feature feature = (Feature) f.next();
            Map ofVersions = new LinkedHashMap();
            for (int v = 0; v < MetadataVersion.VERSIONS.length; v++) {
                MetadataVersion version = MetadataVersion.VERSIONS[v];
                ofVersions.put(String.valueOf(version.featureLevel()), Integer.valueOf(feature.defaultLevel(version)));
            }
            defaults.put(feature.featureName(), ofVersions);
            Map ofLevels = new LinkedHashMap();
            FeatureVersion[] levels = feature.featureVersions();
            for (int l = 0; l < levels.length; l++) {
                ofLevels.put(String.valueOf(levels[l].featureLevel()), levels[l].dependencies());
            }
            needs.put(feature.featureName(), ofLevels);
        }
        List changed = new ArrayList();
        for (int v = 0; v < MetadataVersion.VERSIONS.length; v++) {
            if (MetadataVersion.VERSIONS[v].didMetadataChange()) {
                changed.add(Integer.valueOf(MetadataVersion.VERSIONS[v].featureLevel()));
            }
        }
        json.put("defaults", defaults);
        json.put("needs", needs);
        json.put("changed", changed);
        return json;
    }

    static Object update(JsonNode request) throws Exception {
        final Map brokers = nodes(at(request, "brokers"));
        final Map controllers = nodes(at(request, "controllers"));
        List quorum = new ArrayList();
        for (int i = 0; i < at(request, "quorum").size(); i++) {
            quorum.add(Integer.valueOf(at(at(request, "quorum"), i).asInt()));
        }
        FeatureControlManager.Builder builder = new FeatureControlManager.Builder();
        call(builder, "setQuorumFeatures", new Class[] {QuorumFeatures.class}, new Object[] {
            new QuorumFeatures(at(request, "leader").asInt(), ranges(at(request, "own")), quorum)});
        call(builder, "setClusterFeatureSupportDescriber", new Class[] {ClusterFeatureSupportDescriber.class},
            new Object[] {new ClusterFeatureSupportDescriber() {
                public Iterator brokerSupported() {
                    return brokers.entrySet().iterator();
                }
                public Iterator controllerSupported() {
                    return controllers.entrySet().iterator();
                }
            }});
        FeatureControlManager manager = builder.build();
        manager.replay(new FeatureLevelRecord().setName("metadata.version")
            .setFeatureLevel((short) at(request, "current").asInt()));
        short level = (short) at(request, "level").asInt();
        boolean isUpgrade = level >= at(request, "current").asInt();
        Object result = call(manager, "updateFeatures", new Class[] {Map.class, Map.class, boolean.class, int.class},
            new Object[] {
                Collections.singletonMap("metadata.version", Short.valueOf(level)),
                Collections.singletonMap("metadata.version", isUpgrade
                    ? FeatureUpdate.UpgradeType.UPGRADE : FeatureUpdate.UpgradeType.SAFE_DOWNGRADE),
                Boolean.TRUE, Integer.valueOf(1)});
        ApiError error = (ApiError) call(result, "response", new Class[0], new Object[0]);
        return Arrays.asList(new Object[] {error.error().name(), error.message()});
    }

    static Map nodes(JsonNode given) {
        Map made = new LinkedHashMap();
        for (Iterator n = given.fieldNames(); n.hasNext(); ) {
            String id = (String) n.next();
            made.put(Integer.valueOf(id), ranges(at(given, id)));
        }
        return made;
    }

    static Map ranges(JsonNode given) {
        Map made = new LinkedHashMap();
        for (Iterator n = given.fieldNames(); n.hasNext(); ) {
            String name = (String) n.next();
            JsonNode range = at(given, name);
            made.put(name, VersionRange.of((short) at(range, 0).asInt(), (short) at(range, 1).asInt()));
        }
        return made;
    }

    static Object call(Object target, String name, Class[] types, Object[] values) throws Exception {
        Method method = target.getClass().getDeclaredMethod(name, types);
        method.setAccessible(true);
        return method.invoke(target, values);
    }

    /** With the cast that Janino needs where a method narrows what its interface returns. */
    static JsonNode at(JsonNode node, String name) {
        return (JsonNode) node.get(name);
    }

    static JsonNode at(JsonNode node, int place) {
        return (JsonNode) node.get(place);
    }

    static List ints(JsonNode node) {
        List list = new ArrayList();
        for (int i = 0; i < node.size(); i++) {
            list.add(Integer.valueOf(at(node, i).asInt()));
        }
        return list;
    }

    static int[] array(JsonNode node) {
        int[] array = new int[node.size()];
        for (int i = 0; i < array.length; i++) {
            array[i] = at(node, i).asInt();
        }
        return array;
    }

    static Object change(final JsonNode request) throws Exception {
        JsonNode p = at(request, "partition");
        Uuid[] directories = new Uuid[at(p, "directories").size()];
        for (int i = 0; i < directories.length; i++) {
            directories[i] = Uuid.fromString(at(at(p, "directories"), i).asText());
        }
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(array(at(p, "replicas"))).setDirectories(directories).setIsr(array(at(p, "isr")))
            .setRemovingReplicas(array(at(p, "removing"))).setAddingReplicas(array(at(p, "adding")))
            .setElr(array(at(p, "elr"))).setLastKnownElr(array(at(p, "lastKnownElr")))
            .setLeader(Integer.valueOf(at(p, "leader").asInt()))
            .setLeaderRecoveryState(LeaderRecoveryState.of((byte) at(p, "recovery").asInt()))
            .setLeaderEpoch(Integer.valueOf(at(p, "leaderEpoch").asInt()))
            .setPartitionEpoch(Integer.valueOf(at(p, "partitionEpoch").asInt())).build();
        final List acceptable = ints(at(request, "acceptable"));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, Uuid.fromString(at(request, "topicId").asText()), at(request, "partitionId").asInt(),
            new IntPredicate() {
                public boolean test(int broker) {
                    return acceptable.contains(Integer.valueOf(broker));
                }
                public IntPredicate and(IntPredicate other) {
                    throw new UnsupportedOperationException();
                }
                public IntPredicate or(IntPredicate other) {
                    throw new UnsupportedOperationException();
                }
                public IntPredicate negate() {
                    throw new UnsupportedOperationException();
                }
            },
            MetadataVersion.fromFeatureLevel((short) at(request, "metadataVersion").asInt()),
            at(request, "minIsr").asInt(), at(request, "elrEnabled").asBoolean());
        builder.setDefaultDirProvider(new DefaultDirProvider() {
            public Uuid defaultDir(int broker) {
                return Uuid.fromString(at(at(request, "defaultDirs"), String.valueOf(broker)).asText());
            }
        });
        JsonNode target = at(request, "target");
        builder.setElection(PartitionChangeBuilder.Election.valueOf(at(target, "election").asText()));
        if (target.has("isr")) {
            builder.setTargetIsr(ints(at(target, "isr")));
        }
        if (target.has("replicas")) {
            builder.setTargetReplicas(ints(at(target, "replicas")));
        }
        if (target.has("removing")) {
            builder.setTargetRemoving(ints(at(target, "removing")));
        }
        if (target.has("adding")) {
            builder.setTargetAdding(ints(at(target, "adding")));
        }
        if (target.has("recovery")) {
            builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) at(target, "recovery").asInt()));
        }
        if (target.has("uncleanShutdown")) {
            List unclean = new ArrayList();
            unclean.add(Integer.valueOf(at(target, "uncleanShutdown").asInt()));
            builder.setUncleanShutdownReplicas(unclean);
        }
        for (Iterator d = at(target, "directories").fieldNames(); d.hasNext(); ) {
            String broker = (String) d.next();
            builder.setDirectory(Integer.parseInt(broker), Uuid.fromString(at(at(target, "directories"), broker).asText()));
        }
        Optional record = builder.build();
        return record.isPresent() ? bytes((ApiMessageAndVersion) record.get()) : null;
    }

    static String bytes(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(bytes));
        return Base64.getEncoder().encodeToString(bytes.array());
    }

    static Object place(JsonNode request) throws Exception {
        final List brokers = new ArrayList();
        for (Iterator b = at(request, "brokers").elements(); b.hasNext(); ) {
            JsonNode broker = (JsonNode) b.next();
            JsonNode rack = at(broker, "rack");
            brokers.add(new UsableBroker(at(broker, "id").asInt(),
                rack.isNull() ? Optional.empty() : Optional.of(rack.asText()), at(broker, "fenced").asBoolean()));
        }
        StripedReplicaPlacer placer = new StripedReplicaPlacer(new Random(at(request, "seed").asLong()));
        TopicAssignment placed = placer.place(
            new PlacementSpec(0, at(request, "partitions").asInt(), (short) at(request, "replicationFactor").asInt()),
            new ClusterDescriber() {
                public Iterator usableBrokers() {
                    return brokers.iterator();
                }
                public Uuid defaultDir(int broker) {
                    return Uuid.ZERO_UUID;
                }
            });
        List json = new ArrayList();
        for (Iterator a = placed.assignments().iterator(); a.hasNext(); ) {
            json.add(((PartitionAssignment) a.next()).replicas());
        }
        return json;
    }
}
