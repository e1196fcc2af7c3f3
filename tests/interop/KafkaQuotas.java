import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.Sanitizer;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientRequestQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * The throttle times that a Kafka node's quota managers give, behind a line protocol: "throttles" and a JSON object,
 * apart by a tab, a line on stdin; one JSON object with "answer" a line on stdout. The object names the `kind` of quota,
 * the `windows` and their `seconds`, and the `steps`: quotas that change, and uses at a time, each with its throttle time
 * in the answer.
 *
 * The language used is what Janino compiles, as in KafkaImages.java.
 */
public class KafkaQuotas {
    static long nowMs;

    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] fields) throws Exception {
                return Collections.singletonMap("answer", KafkaQuotas.throttles(Answers.JSON.readTree(fields[1])));
            }
        }.serve();
    }

    static class StepTime implements Time {
        public long milliseconds() {
            return nowMs;
        }

        public long nanoseconds() {
            return nowMs * 1000000L;
        }

        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        public void waitObject(Object object, java.util.function.Supplier condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    static Object throttles(JsonNode request) throws Exception {
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(
            request.get("windows").asInt(), request.get("seconds").asInt());
        Metrics metrics = new Metrics();
        String kind = request.get("kind").asText();
        ClientQuotaManager manager;
        if (kind.equals("request")) {
            manager = new ClientRequestQuotaManager(config, metrics, new StepTime(), "test", Optional.empty());
        } else if (kind.equals("produce")) {
            manager = new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, new StepTime(), "test");
        } else {
            manager = new ControllerMutationQuotaManager(config, metrics, new StepTime(), "test", Optional.empty());
        }
        List answers = new ArrayList();
        for (Iterator s = request.get("steps").iterator(); s.hasNext(); ) {
            JsonNode step = (JsonNode) s.next();
            if (!step.has("at")) {
                Optional quota = step.get("value").isNull()
                    ? Optional.empty()
                    : Optional.of(new Quota(step.get("value").asDouble(), true));
                manager.updateQuota(entity(step, "user", true), entity(step, "client-id", false), quota);
                continue;
            }
            nowMs = step.get("at").asLong();
            Session session = new Session(
                new KafkaPrincipal("User", step.get("user").asText()), InetAddress.getLoopbackAddress());
            String client = step.get("client-id").asText();
            double value = step.get("use").asDouble();
            if (kind.equals("permissive")) {
                ControllerMutationQuota quota =
                    ((ControllerMutationQuotaManager) manager).newPermissiveQuotaFor(session, client);
                quota.record(value);
                answers.add(Integer.valueOf(quota.throttleTime()));
            } else if (step.has("back") && manager.quotasEnabled()) {
                manager.unrecordQuotaSensor(session, client, value, nowMs);
            } else if (!step.has("back")) {
                answers.add(Integer.valueOf(manager.maybeRecordAndGetThrottleTimeMs(session, client, value, nowMs)));
            }
        }
        manager.initiateShutdown();
        metrics.close();
        return answers;
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
}
