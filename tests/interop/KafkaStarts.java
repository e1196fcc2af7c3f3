import java.io.File;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.ExternalKRaftMetrics;
import org.apache.kafka.raft.FileQuorumStateStore;
import org.apache.kafka.raft.MetadataLogConfig;
import org.apache.kafka.raft.VoterSet;
import org.apache.kafka.raft.internals.KRaftControlRecordStateMachine;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.raft.internals.KafkaRaftMetrics;
import org.apache.kafka.server.util.KafkaScheduler;

/**
 * Opens metadata directories as a node that starts does: the log and its snapshots, all of their records' frames and
 * control records, and quorum-state. A line of stdin is a directory; the answer says where the log starts and ends.
 */
public class KafkaStarts implements ExternalKRaftMetrics {
    public void setIgnoredStaticVoters(boolean ignored) {
    }

    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] fields) throws Exception {
                try {
                    return start(new File(fields[0]));
                } catch (Throwable fault) {
                    return Collections.singletonMap("refused", fault.getClass().getSimpleName() + ": " + fault.getMessage());
                }
            }
        }.serve();
    }

    private static Map start(File directory) throws Exception {
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        try {
            KafkaRaftLog log = KafkaRaftLog.createLog(
                new TopicPartition("__cluster_metadata", 0), Uuid.METADATA_TOPIC_ID, directory, Time.SYSTEM, scheduler,
                new MetadataLogConfig(new AbstractConfig(MetadataLogConfig.CONFIG_DEF, new HashMap())), 1
            );
            try {
                new KRaftControlRecordStateMachine(
                    VoterSet.empty(), log, MetadataRecordSerde.INSTANCE, 8388608, new LogContext(),
                    new KafkaRaftMetrics(new Metrics(), "raft"), new KafkaStarts()
                ).updateState();
                new FileQuorumStateStore(new File(directory, "quorum-state")).readElectionState();
                Map offsets = new HashMap();
                offsets.put("start", Long.valueOf(log.startOffset()));
                offsets.put("end", Long.valueOf(log.endOffset().offset()));
                return offsets;
            } finally {
                log.close();
            }
        } finally {
            scheduler.shutdown();
        }
    }
}
