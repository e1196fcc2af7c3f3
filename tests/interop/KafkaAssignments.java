import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Supplier;

import com.yammer.metrics.core.MetricsRegistry;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.AssignReplicasToDirsResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AssignReplicasToDirsRequest;
import org.apache.kafka.common.requests.AssignReplicasToDirsResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.ExponentialBackoff;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.AssignmentsManager;
import org.apache.kafka.server.common.ControllerRequestCompletionHandler;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.common.TopicIdPartition;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;

/**
 * Kafka's own AssignmentsManager, broker 1: one script a line on stdin (a JSON array of steps), one JSON object a line
 * on stdout, with what was seen after each step. The steps are those of test_kafka_assignments.py. The clock goes by
 * the script alone, and the back-off has no jitter. The language is what Janino compiles.
 */
public class KafkaAssignments {
    static final Uuid TOPIC = new Uuid(0L, 77777L);

    /** A clock that only the script moves; who waits on it is woken up by the next event. */
    static class ScriptTime implements Time {
        volatile long nanos = 1000000000L;

        public long milliseconds() {
            return nanos / 1000000L;
        }

        public long nanoseconds() {
            return nanos;
        }

        public long hiResClockMs() {
            return milliseconds();
        }

        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        public void waitObject(Object thing, Supplier condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }

        public org.apache.kafka.common.utils.Timer timer(long timeoutMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** The controller: keeps what it was sent until the script has it answer. */
    static class Channel implements NodeToControllerChannelManager {
        final List sent = Collections.synchronizedList(new ArrayList());
        volatile ControllerRequestCompletionHandler waiting;
        volatile AssignReplicasToDirsRequestData request;

        public void start() {
        }

        public void shutdown() {
        }

        public Optional controllerApiVersions() {
            return Optional.empty();
        }

        public void sendRequest(AbstractRequest.Builder builder, ControllerRequestCompletionHandler handler) {
            request = ((AssignReplicasToDirsRequest) builder.build()).data();
            waiting = handler;
            sent.add(directories(request));
        }

        public long getTimeoutMs() {
            return 0L;
        }
    }

    /** The number of the directory of each partition. */
    static Map directories(AssignReplicasToDirsRequestData request) {
        Map by = new TreeMap();
        for (Iterator d = request.directories().iterator(); d.hasNext();) {
            AssignReplicasToDirsRequestData.DirectoryData directory =
                (AssignReplicasToDirsRequestData.DirectoryData) d.next();
            for (Iterator t = directory.topics().iterator(); t.hasNext();) {
                AssignReplicasToDirsRequestData.TopicData topic = (AssignReplicasToDirsRequestData.TopicData) t.next();
                for (Iterator p = topic.partitions().iterator(); p.hasNext();) {
                    int number = ((AssignReplicasToDirsRequestData.PartitionData) p.next()).partitionIndex();
                    by.put(Integer.valueOf(number), Long.valueOf(directory.id().getLeastSignificantBits()));
                }
            }
        }
        return by;
    }

    final ScriptTime time = new ScriptTime();
    final Channel channel = new Channel();
    final List accepted = Collections.synchronizedList(new ArrayList());
    volatile MetadataImage image = MetadataImage.EMPTY;
    AssignmentsManager manager;

    KafkaAssignments() throws Exception {
        Constructor constructor = AssignmentsManager.class.getDeclaredConstructor(new Class[] {
            ExponentialBackoff.class, Time.class, NodeToControllerChannelManager.class, int.class, Supplier.class,
            Function.class, MetricsRegistry.class});
        constructor.setAccessible(true);
        manager = (AssignmentsManager) constructor.newInstance(new Object[] {
            new ExponentialBackoff(100000000L, 2, 10000000000L, 0.0), time, channel, Integer.valueOf(1),
            new Supplier() {
                public Object get() {
                    return image;
                }
            },
            new Function() {
                public Object apply(Object id) {
                    return String.valueOf(id);
                }
            }, new MetricsRegistry()});
    }

    /** Waits until the manager's thread has done all that is due. */
    void settle() throws Exception {
        Method barrier = AssignmentsManager.class.getDeclaredMethod("previousGlobalFailures", new Class[0]);
        barrier.setAccessible(true);
        for (int i = 0; i < 4; i++) {
            barrier.invoke(manager, new Object[0]);
        }
    }

    /** The partitions by number; whether broker 1 has a replica of each. */
    void become(Map partitions) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY)
            .setSupportedConfigChecker(new DefaultSupportedConfigChecker()).build();
        if (!partitions.isEmpty()) {
            delta.replay(new TopicRecord().setName("foo").setTopicId(TOPIC));
        }
        for (Iterator each = partitions.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            Integer broker = Integer.valueOf(((Boolean) entry.getValue()).booleanValue() ? 1 : 2);
            delta.replay(new PartitionRecord().setTopicId(TOPIC)
                .setPartitionId(Integer.parseInt((String) entry.getKey()))
                .setReplicas(Collections.singletonList(broker)).setIsr(Collections.singletonList(broker))
                .setLeader(broker.intValue()).setLeaderEpoch(0).setPartitionEpoch(0));
        }
        image = delta.apply(new MetadataProvenance(1L, 1, 0L, true));
    }

    void answer(Map step) {
        ControllerRequestCompletionHandler handler = channel.waiting;
        if (handler == null) {
            return;
        }
        channel.waiting = null;
        int error = ((Integer) step.get("error")).intValue();
        if (error < 0) {
            handler.onTimeout();
            return;
        }
        Map errors = (Map) step.get("errors");
        List unnamed = (List) step.get("unnamed");
        AssignReplicasToDirsResponseData data = new AssignReplicasToDirsResponseData().setErrorCode((short) error);
        for (Iterator d = channel.request.directories().iterator(); error == 0 && d.hasNext();) {
            AssignReplicasToDirsRequestData.DirectoryData asked =
                (AssignReplicasToDirsRequestData.DirectoryData) d.next();
            AssignReplicasToDirsResponseData.DirectoryData directory =
                new AssignReplicasToDirsResponseData.DirectoryData().setId(asked.id());
            AssignReplicasToDirsResponseData.TopicData topic =
                new AssignReplicasToDirsResponseData.TopicData().setTopicId(TOPIC);
            directory.topics().add(topic);
            data.directories().add(directory);
            AssignReplicasToDirsRequestData.TopicData one =
                (AssignReplicasToDirsRequestData.TopicData) asked.topics().get(0);
            for (Iterator p = one.partitions().iterator(); p.hasNext();) {
                int number = ((AssignReplicasToDirsRequestData.PartitionData) p.next()).partitionIndex();
                Object code = errors.get(String.valueOf(number));
                if (!unnamed.contains(Integer.valueOf(number))) {
                    topic.partitions().add(new AssignReplicasToDirsResponseData.PartitionData()
                        .setPartitionIndex(number)
                        .setErrorCode(code == null ? (short) 0 : ((Integer) code).shortValue()));
                }
            }
        }
        handler.onComplete(new ClientResponse(null, null, "1", 0L, 0L, false, null, null,
            new AssignReplicasToDirsResponse(data)));
    }

    Map step(Map step) throws Exception {
        String what = (String) step.get("what");
        if (what.equals("image")) {
            become((Map) step.get("partitions"));
        } else if (what.equals("advance")) {
            time.nanos += ((Integer) step.get("ms")).longValue() * 1000000L;
        } else if (what.equals("answer")) {
            answer(step);
        } else {
            List partitions = (List) step.get("partitions");
            for (Iterator each = partitions.iterator(); each.hasNext();) {
                final Integer number = (Integer) each.next();
                final Object id = step.get("id");
                manager.onAssignment(new TopicIdPartition(TOPIC, number.intValue()),
                    new Uuid(0L, ((Integer) step.get("directory")).longValue()), "test", new Runnable() {
                        public void run() {
                            accepted.add(id + "/" + number);
                        }
                    });
            }
        }
        settle();
        Map seen = new LinkedHashMap();
        seen.put("waiting", Integer.valueOf(manager.numPending()));
        seen.put("sent", new ArrayList(channel.sent));
        Collections.sort(accepted);
        seen.put("accepted", new ArrayList(accepted));
        channel.sent.clear();
        accepted.clear();
        return seen;
    }

    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] fields) throws Exception {
                KafkaAssignments made = new KafkaAssignments();
                List seen = new ArrayList();
                for (Iterator each = ((List) Answers.JSON.readValue(fields[0], List.class)).iterator(); each.hasNext();) {
                    seen.add(made.step((Map) each.next()));
                }
                made.manager.close();
                return Collections.singletonMap("seen", seen);
            }
        }.serve();
    }
}
