import java.lang.reflect.Constructor;
import java.util.Collections;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

import com.fasterxml.jackson.databind.JsonNode;
import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.errors.BrokerIdNotRegisteredException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.controller.ConfigurationControlManager;
import org.apache.kafka.controller.FeatureControlManager;
import org.apache.kafka.controller.QuorumFeatures;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Kafka's ConfigurationControlManager and its definitions of configs behind a line protocol: a word and a JSON object a
 * line on stdin (a tab between), one JSON object a line on stdout.
 *
 *   definitions {}                              each config's type and default: of topics, groups, client metrics, brokers;
 *                                               and the update modes of brokers' dynamic configs
 *   parse   {"kind", "name", "values"}          what ConfigDef.parse makes of each value, null where it throws
 *   patterns {"values"}                         whether each value is a regular expression
 *   start   {"static", "topics", "brokers", "elr"}   a new manager for that property file, topics and brokers
 *   replay  {"records"}                         records [type, name, key, value] that are in the log already
 *   alter   {"legacy", "forwarded", "created", "resources": [[type, name, [[key, op, value]]]]}
 *           the error of each resource, and the records in base64, which are replayed
 *   topics  {"names"}                           the effective configs of topics, by name
 *   nodes   {"files"}                           what KafkaConfig throws at each file of a broker's settings, or null
 *
 * The language is what Janino compiles.
 */
public class KafkaConfigs {
    static Object manager;

    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] fields) throws Exception {
                return Collections.singletonMap("answer", KafkaConfigs.answer(fields[0], Answers.JSON.readTree(fields[1])));
            }
        }.serve();
    }

    static Object answer(String what, JsonNode request) throws Exception {
        if (what.equals("definitions")) {
            Map all = new LinkedHashMap();
            String[] kinds = {"topic", "group", "client-metrics", "broker"};
            for (int i = 0; i < kinds.length; i++) {
                all.put(kinds[i], definitions(definition(kinds[i])));
            }
            all.put("update modes", DynamicBrokerConfig.dynamicConfigUpdateModes());
            return all;
        }
        if (what.equals("parse")) {
            return parse(request);
        }
        if (what.equals("patterns")) {
            List valid = new ArrayList();
            for (Iterator v = at(request, "values").elements(); v.hasNext(); ) {
                valid.add(Boolean.valueOf(isPattern(((JsonNode) v.next()).asText())));
            }
            return valid;
        }
        if (what.equals("start")) {
            start(request);
            return null;
        }
        if (what.equals("replay")) {
            for (int i = 0; i < at(request, "records").size(); i++) {
                JsonNode r = at(at(request, "records"), i);
                replay(new ConfigRecord().setResourceType((byte) at(r, 0).asInt()).setResourceName(at(r, 1).asText())
                    .setName(at(r, 2).asText()).setValue(text(at(r, 3))));
            }
            return null;
        }
        if (what.equals("alter")) {
            return alter(request);
        }
        if (what.equals("topics")) {
            return topics(request);
        }
        if (what.equals("nodes")) {
            return nodes(request);
        }
        throw new IllegalArgumentException("no such request: " + what);
    }

    /** With the cast that Janino needs where a method narrows what its interface returns. */
    static JsonNode at(JsonNode node, String name) {
        return (JsonNode) node.get(name);
    }

    static JsonNode at(JsonNode node, int place) {
        return (JsonNode) node.get(place);
    }

    static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    static ConfigDef definition(String kind) {
        if (kind.equals("topic")) {
            return LogConfig.configDefCopy();
        }
        if (kind.equals("group")) {
            return GroupConfig.CONFIG_DEF;
        }
        if (kind.equals("client-metrics")) {
            return ClientMetricsConfigs.configDef();
        }
        ConfigDef broker = new ConfigDef(AbstractKafkaConfig.CONFIG_DEF);
        for (Iterator k = QuotaConfig.brokerQuotaConfigs().configKeys().values().iterator(); k.hasNext(); ) {
            broker.define((ConfigDef.ConfigKey) k.next());
        }
        return broker;
    }

    static Map definitions(ConfigDef definition) {
        Map keys = new LinkedHashMap();
        for (Iterator k = definition.configKeys().values().iterator(); k.hasNext(); ) {
            ConfigDef.ConfigKey key = (ConfigDef.ConfigKey) k.next();
            keys.put(key.name, Arrays.asList(new Object[] {
                key.type.name(), key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null}));
        }
        return keys;
    }

    static List parse(JsonNode request) {
        String name = at(request, "name").asText();
        ConfigDef alone = new ConfigDef();
        alone.define((ConfigDef.ConfigKey) definition(at(request, "kind").asText()).configKeys().get(name));
        List parsed = new ArrayList();
        for (Iterator v = at(request, "values").elements(); v.hasNext(); ) {
            try {
                Map configs = new HashMap();
                configs.put(name, ((JsonNode) v.next()).asText());
                Object value = alone.parse(configs).get(name);
                boolean isSecret = value instanceof Password;
                parsed.add(value instanceof List ? value : isSecret ? ((Password) value).value() : String.valueOf(value));
            } catch (Exception refused) {
                parsed.add(null);
            }
        }
        return parsed;
    }

    static List nodes(JsonNode request) {
        List problems = new ArrayList();
        for (Iterator f = at(request, "files").elements(); f.hasNext(); ) {
            Map properties = new HashMap();
            properties.put("process.roles", "broker");
            properties.put("node.id", "1");
            properties.put("controller.quorum.voters", "100@127.0.0.1:9093");
            properties.put("controller.listener.names", "CONTROLLER");
            properties.put("listeners", "PLAINTEXT://127.0.0.1:9092");
            properties.put("log.dirs", "/a,/b");
            properties.putAll((Map) Answers.JSON.convertValue((JsonNode) f.next(), Map.class));
            try {
                new KafkaConfig(properties, false);
                problems.add(null);
            } catch (Throwable refused) {
                problems.add(String.valueOf(refused.getMessage()));
            }
        }
        return problems;
    }

    static boolean isPattern(String text) {
        try {
            Pattern.compile(text);
            return true;
        } catch (PatternSyntaxException refused) {
            return false;
        }
    }

    static void start(JsonNode request) throws Exception {
        Map properties = new HashMap();
        properties.put("process.roles", "controller");
        properties.put("node.id", "100");
        properties.put("controller.quorum.voters", "100@127.0.0.1:9093");
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("listeners", "CONTROLLER://127.0.0.1:9093");
        properties.putAll((Map) Answers.JSON.convertValue(at(request, "static"), Map.class));
        KafkaConfig config = new KafkaConfig(properties, false);
        FeatureControlManager.Builder control = new FeatureControlManager.Builder();
        call(control, "setQuorumFeatures", new Object[] {
            new QuorumFeatures(100, QuorumFeatures.defaultSupportedFeatureMap(true), Arrays.asList(new Object[0]))});
        FeatureControlManager features = control.build();
        features.replay(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel((short) 33));
        if (at(request, "elr").asBoolean()) {
            features.replay(
                new FeatureLevelRecord().setName("eligible.leader.replicas.version").setFeatureLevel((short) 1));
        }
        final List topics = (List) Answers.JSON.convertValue(at(request, "topics"), List.class);
        final List brokers = (List) Answers.JSON.convertValue(at(request, "brokers"), List.class);
        Consumer exists = new Consumer() {
            public void accept(Object object) {
                ConfigResource resource = (ConfigResource) object;
                if (resource.type() == ConfigResource.Type.TOPIC && !topics.contains(resource.name())) {
                    throw new UnknownTopicOrPartitionException("no topic " + resource.name());
                }
                if (resource.type() == ConfigResource.Type.BROKER && !resource.name().isEmpty()
                        && !brokers.contains(Integer.valueOf(Integer.parseInt(resource.name())))) {
                    throw new BrokerIdNotRegisteredException("no node " + resource.name());
                }
            }
            public Consumer andThen(Consumer after) {
                throw new UnsupportedOperationException();
            }
        };
        Class builderClass = Class.forName("org.apache.kafka.controller.ConfigurationControlManager$Builder");
        Constructor constructor = builderClass.getDeclaredConstructor(new Class[0]);
        constructor.setAccessible(true);
        Object builder = constructor.newInstance(new Object[0]);
        call(builder, "setKafkaConfigSchema", new Object[] {KafkaRaftServer.configSchema()});
        call(builder, "setExistenceChecker", new Object[] {exists});
        call(builder, "setValidator", new Object[] {new ControllerConfigurationValidator(config)});
        call(builder, "setStaticConfig", new Object[] {config.originals()});
        call(builder, "setNodeId", new Object[] {Integer.valueOf(100)});
        call(builder, "setFeatureControl", new Object[] {features});
        call(builder, "setSupportedConfigChecker", new Object[] {new DefaultSupportedConfigChecker()});
        manager = call(builder, "build", new Object[0]);
    }

    static Object call(Object target, String name, Object[] arguments) throws Exception {
        Method[] methods = target.getClass().getDeclaredMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals(name) && methods[i].getParameterCount() == arguments.length) {
                methods[i].setAccessible(true);
                return methods[i].invoke(target, arguments);
            }
        }
        throw new NoSuchMethodException(name);
    }

    static void replay(ConfigRecord record) {
        ((ConfigurationControlManager) manager).replay(record);
    }

    static Object alter(JsonNode request) throws Exception {
        boolean legacy = at(request, "legacy").asBoolean();
        Map changes = new LinkedHashMap();
        List resources = new ArrayList();
        for (Iterator r = at(request, "resources").elements(); r.hasNext(); ) {
            JsonNode node = (JsonNode) r.next();
            ConfigResource resource = new ConfigResource(
                ConfigResource.Type.forId((byte) at(node, 0).asInt()), at(node, 1).asText());
            Map configs = new LinkedHashMap();
            for (Iterator c = at(node, 2).elements(); c.hasNext(); ) {
                JsonNode config = (JsonNode) c.next();
                String value = text(at(config, 2));
                AlterConfigOp.OpType op = AlterConfigOp.OpType.forId((byte) at(config, 1).asInt());
                configs.put(at(config, 0).asText(), legacy ? (Object) value : new AbstractMap.SimpleEntry(op, value));
            }
            changes.put(resource, configs);
            resources.add(resource);
        }
        Object result = call(manager, legacy ? "legacyAlterConfigs" : "incrementalAlterConfigs", new Object[] {
            changes, Boolean.valueOf(at(request, "created").asBoolean()),
            Boolean.valueOf(at(request, "forwarded").asBoolean())});
        Map errors = (Map) call(result, "response", new Object[0]);
        List codes = new ArrayList();
        for (int i = 0; i < resources.size(); i++) {
            codes.add(Integer.valueOf(((ApiError) errors.get(resources.get(i))).error().code()));
        }
        List records = new ArrayList();
        for (Iterator r = ((List) call(result, "records", new Object[0])).iterator(); r.hasNext(); ) {
            ApiMessageAndVersion record = (ApiMessageAndVersion) r.next();
            if (record.message() instanceof ConfigRecord) {
                replay((ConfigRecord) record.message());
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(bytes));
            records.add(Base64.getEncoder().encodeToString(bytes.array()));
        }
        Map answer = new LinkedHashMap();
        answer.put("errors", codes);
        answer.put("records", records);
        return answer;
    }

    static Object topics(JsonNode request) throws Exception {
        Map answer = new LinkedHashMap();
        for (Iterator n = at(request, "names").elements(); n.hasNext(); ) {
            String name = ((JsonNode) n.next()).asText();
            Object own = call(manager, "currentTopicConfig", new Object[] {name});
            Map values = new LinkedHashMap();
            Map entries = (Map) call(manager, "computeEffectiveTopicConfigs", new Object[] {own});
            for (Iterator e = entries.values().iterator(); e.hasNext(); ) {
                org.apache.kafka.clients.admin.ConfigEntry entry = (org.apache.kafka.clients.admin.ConfigEntry) e.next();
                values.put(entry.name(), entry.value());
            }
            answer.put(name, values);
        }
        return answer;
    }
}
