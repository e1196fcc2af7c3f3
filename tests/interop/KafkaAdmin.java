import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.admin.UserScramCredentialsDescription;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/**
 * Kafka's Admin client: requests that clients in Python don't have. One a line on stdin, words with tabs between; one
 * JSON object a line on stdout. `-` stands for nothing.
 *
 *   connect BOOTSTRAP
 *   read                              quotas, credentials, features, configs of groups and client metrics
 *   quota   ENTITY KEY VALUE|-        ENTITY is a JSON object, whose null values are defaults
 *   scram   USER MECHANISM ITERATIONS|-
 *   feature NAME LEVEL
 *   config  TYPE NAME KEY VALUE|-
 *   move    TOPIC PARTITION BROKERS   such as 1,2
 *   moving                            the number of partitions that move
 *
 * The language is what Janino compiles.
 */
public class KafkaAdmin {
    static Admin admin;

    static String nothing(String word) {
        return word.equals("-") ? null : word;
    }

    static Object connect(String bootstrap) {
        Properties given = new Properties();
        given.put("bootstrap.servers", bootstrap);
        admin = AdminClient.create(given);
        return Collections.emptyMap();
    }

    static Object read() throws Exception {
        Map answer = new LinkedHashMap();
        List quotas = new ArrayList();
        Map found = (Map) admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get();
        for (Iterator all = found.entrySet().iterator(); all.hasNext();) {
            Map.Entry one = (Map.Entry) all.next();
            Map entity = new TreeMap(((ClientQuotaEntity) one.getKey()).entries());
            quotas.add(Arrays.asList(new Object[] {entity, new TreeMap((Map) one.getValue())}));
        }
        answer.put("quotas", quotas);
        Map users = new TreeMap();
        Map described = (Map) admin.describeUserScramCredentials().all().get();
        for (Iterator all = described.values().iterator(); all.hasNext();) {
            UserScramCredentialsDescription one = (UserScramCredentialsDescription) all.next();
            for (Iterator infos = one.credentialInfos().iterator(); infos.hasNext();) {
                ScramCredentialInfo info = (ScramCredentialInfo) infos.next();
                users.put(one.name() + "/" + info.mechanism().mechanismName(), Integer.valueOf(info.iterations()));
            }
        }
        answer.put("scram", users);
        Map features = new TreeMap();
        Map finalized = finalizedFeatures();
        for (Iterator all = finalized.entrySet().iterator(); all.hasNext();) {
            Map.Entry one = (Map.Entry) all.next();
            features.put(one.getKey(), Short.valueOf(((FinalizedVersionRange) one.getValue()).maxVersionLevel()));
        }
        answer.put("features", features);
        answer.put("configs", configs());
        return answer;
    }

    static Map finalizedFeatures() throws Exception {
        return ((FeatureMetadata) admin.describeFeatures().featureMetadata().get()).finalizedFeatures();
    }

    static Map configs() throws Exception {
        java.util.Set types = new java.util.HashSet();
        types.add(ConfigResource.Type.GROUP);
        types.add(ConfigResource.Type.CLIENT_METRICS);
        Collection resources = (Collection) admin.listConfigResources(types, new ListConfigResourcesOptions()).all().get();
        Map configs = new TreeMap();
        Map described = (Map) admin.describeConfigs(resources).all().get();
        for (Iterator all = described.entrySet().iterator(); all.hasNext();) {
            Map.Entry one = (Map.Entry) all.next();
            ConfigResource resource = (ConfigResource) one.getKey();
            for (Iterator entries = ((Config) one.getValue()).entries().iterator(); entries.hasNext();) {
                ConfigEntry entry = (ConfigEntry) entries.next();
                if (entry.source().name().startsWith("DYNAMIC_")) {
                    configs.put(resource.type() + "/" + resource.name() + "/" + entry.name(), entry.value());
                }
            }
        }
        return configs;
    }

    static Object quota(String entity, String key, String value) throws Exception {
        ClientQuotaEntity of = new ClientQuotaEntity((Map) Answers.JSON.readValue(entity, HashMap.class));
        ClientQuotaAlteration.Op op = new ClientQuotaAlteration.Op(key, value == null ? null : Double.valueOf(value));
        admin.alterClientQuotas(Collections.singletonList(new ClientQuotaAlteration(of, Collections.singletonList(op)))).all().get();
        return Collections.emptyMap();
    }

    static Object scram(String user, String mechanism, String iterations) throws Exception {
        ScramMechanism kind = ScramMechanism.fromMechanismName(mechanism);
        Object change = iterations == null
            ? (Object) new UserScramCredentialDeletion(user, kind)
            : (Object) new UserScramCredentialUpsertion(user, new ScramCredentialInfo(kind, Integer.parseInt(iterations)), "secret");
        admin.alterUserScramCredentials(Collections.singletonList((org.apache.kafka.clients.admin.UserScramCredentialAlteration) change)).all().get();
        return Collections.emptyMap();
    }

    static Object feature(String name, short level) throws Exception {
        Object now = finalizedFeatures().get(name);
        boolean lower = now != null && ((FinalizedVersionRange) now).maxVersionLevel() > level;
        FeatureUpdate.UpgradeType type = lower ? FeatureUpdate.UpgradeType.SAFE_DOWNGRADE : FeatureUpdate.UpgradeType.UPGRADE;
        admin.updateFeatures(Collections.singletonMap(name, new FeatureUpdate(level, type)), new UpdateFeaturesOptions()).all().get();
        return Collections.emptyMap();
    }

    static Object config(String type, String name, String key, String value) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.valueOf(type), name);
        AlterConfigOp.OpType kind = value == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET;
        AlterConfigOp op = new AlterConfigOp(new ConfigEntry(key, value), kind);
        admin.incrementalAlterConfigs(Collections.singletonMap(resource, Collections.singletonList(op))).all().get();
        return Collections.emptyMap();
    }

    static Object move(String topic, String partition, String brokers) throws Exception {
        List targets = new ArrayList();
        for (String broker : brokers.split(",")) {
            targets.add(Integer.valueOf(broker));
        }
        Map moves = new HashMap();
        moves.put(new TopicPartition(topic, Integer.parseInt(partition)), Optional.of(new NewPartitionReassignment(targets)));
        admin.alterPartitionReassignments(moves).all().get();
        return Collections.emptyMap();
    }

    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] words) throws Exception {
                if (words[0].equals("connect")) {
                    return connect(words[1]);
                } else if (words[0].equals("read")) {
                    return read();
                } else if (words[0].equals("quota")) {
                    return quota(words[1], words[2], nothing(words[3]));
                } else if (words[0].equals("scram")) {
                    return scram(words[1], words[2], nothing(words[3]));
                } else if (words[0].equals("feature")) {
                    return feature(words[1], Short.parseShort(words[2]));
                } else if (words[0].equals("config")) {
                    return config(words[1], words[2], words[3], nothing(words[4]));
                } else if (words[0].equals("move")) {
                    return move(words[1], words[2], words[3]);
                }
                int moving = ((Map) admin.listPartitionReassignments().reassignments().get()).size();
                return Collections.singletonMap("moving", Integer.valueOf(moving));
            }
        }.serve();
    }
}
