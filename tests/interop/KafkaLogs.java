import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import java.util.function.Supplier;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's own UnifiedLog: one request a line on stdin (fields apart by tabs), one JSON object a line on stdout.
 *
 *   run FOLDER CONFIGS TOPIC-ID CLEAN RECOVERY-POINT LOG-START STEPS
 *                              opens the partition in FOLDER, takes the STEPS and closes it; answers with what it was
 *                              like before it was closed, and for each step "lead" the offset or the error
 *
 *   manage DIRECTORY CONFIGS TOPIC-ID STEPS
 *                              the same with Kafka's LogManager, which the steps close or kill and open again
 *
 *   compact FOLDER CONFIGS TOPIC-ID END SLOTS
 *                              nanoseconds of cleaning the log once, and what is left, for benchmarks/compaction.py
 *
 *   bench FOLDER TOPIC-ID FILE CHUNK
 *                              nanoseconds by the clock and of CPU, for benchmarks/partition_log.py
 *
 * CONFIGS is a JSON object, STEPS a JSON array of arrays: a name and its arguments. The language is what Janino
 * compiles.
 */
public class KafkaLogs {
    static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);
    static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();

    /** The time of the records, by which no producer expires. */
    static class Still implements Time {
        public long milliseconds() {
            return 2000L;
        }

        public long nanoseconds() {
            return 2000000000L;
        }

        public void sleep(long milliseconds) {
        }

        public void waitObject(Object object, Supplier condition, long deadline) {
        }
    }

    /** A time that stands still. */
    static class At extends Still {
        final long now;

        At(long now) {
            this.now = now;
        }

        public long milliseconds() {
            return this.now;
        }
    }

    static Map answer(String[] fields) throws Exception {
        if (fields[0].equals("bench")) {
            return bench(fields);
        }
        if (fields[0].equals("compact")) {
            return compact(fields);
        }
        if (fields[0].equals("manage")) {
            return manage(fields);
        }
        Map configs = (Map) Answers.JSON.readValue(fields[2], Map.class);
        UnifiedLog log = UnifiedLog.create(new File(fields[1]), new LogConfig(configs), Long.parseLong(fields[6]),
            Long.parseLong(fields[5]), SCHEDULER, new BrokerTopicStats(), new Still(),
            900000, new ProducerStateManagerConfig(2000000000, false), 600000, new LogDirFailureChannel(1),
            Boolean.parseBoolean(fields[4]), Optional.of(Uuid.fromString(fields[3])));
        Iterator steps = ((List) Answers.JSON.readValue(fields[7], List.class)).iterator();
        List answers = new ArrayList();
        while (steps.hasNext()) {
            List step = (List) steps.next();
            if (step.get(0).equals("lead")) {
                answers.add(lead(log, step));
            } else if (step.get(0).equals("clean")) {
                answers.add(clean(log, step));
            } else {
                take(log, step);
            }
        }
        log.updateHighWatermark(log.logEndOffset());
        Map seen = seen(log);
        seen.put("answers", answers);
        log.flush(true);
        settle();
        log.close();
        settle();
        return seen;
    }

    static Map manage(String[] fields) throws Exception {
        Managed managed = new Managed(new File(fields[1]), new LogConfig((Map) Answers.JSON.readValue(fields[2], Map.class)),
            Optional.of(Uuid.fromString(fields[3])));
        Iterator steps = ((List) Answers.JSON.readValue(fields[4], List.class)).iterator();
        List answers = new ArrayList();
        while (steps.hasNext()) {
            List step = (List) steps.next();
            if (step.get(0).equals("clean")) {
                answers.add(clean(managed.log, step));
            } else {
                managed.take(step);
            }
        }
        managed.log.updateHighWatermark(managed.log.logEndOffset());
        Map seen = seen(managed.log);
        seen.put("answers", answers);
        managed.end(true);
        return seen;
    }

    /** A log in a directory of Kafka's LogManager, whose own cleaner has no thread, and whose tasks are far away. */
    static class Managed {
        static final long LATER = 1000000000L;

        final File directory;
        final LogConfig config;
        final Optional topicId;
        final TopicPartition name = new TopicPartition("foo", 0);
        KafkaScheduler scheduler;
        LogManager manager;
        UnifiedLog log;

        Managed(File directory, LogConfig config, Optional topicId) throws Exception {
            this.directory = directory;
            this.config = config;
            this.topicId = topicId;
            open();
        }

        void open() throws Exception {
            scheduler = new KafkaScheduler(1);
            scheduler.startup();
            ConfigRepository none = new ConfigRepository() {
                public Properties config(ConfigResource resource) {
                    return new Properties();
                }
            };
            LogManager.LogCleanerBuilder cleaners = new LogManager.LogCleanerBuilder() {
                public LogCleaner build(CleanerConfig config, List folders, ConcurrentMap logs, LogDirFailureChannel failures,
                    Time time) {
                    return new LogCleaner(config, folders, logs, failures, time);
                }
            };
            manager = new LogManager(Collections.singletonList(directory), Collections.emptyList(), none, config,
                new CleanerConfig(0, 1048576L, 0.9, 65536, 1048576, 1e12, LATER, true), 1, LATER, LATER, LATER, LATER,
                900000, new ProducerStateManagerConfig(2000000000, false), 600000, scheduler, new BrokerTopicStats(),
                new LogDirFailureChannel(1), new Still(), false, LATER, cleaners);
            manager.startup(Collections.singleton("foo"));
            log = manager.getOrCreateLog(name, true, false, topicId);
            Iterator each = log.logSegments().iterator();
            while (each.hasNext()) {
                ((LogSegment) each.next()).largestTimestamp(); // a truncation forgets one that was not asked for before
            }
        }

        void take(List step) throws Exception {
            settle(scheduler); // a flush after a truncation would make the recovery point one beyond the log's end
            if (step.get(0).equals("cut")) {
                manager.truncateTo(Collections.singletonMap(name, Long.valueOf(number(step, 1).longValue())), false);
            } else if (step.get(0).equals("anew")) {
                manager.truncateFullyAndStartAt(name, number(step, 1).longValue(), false, Optional.empty());
            } else if (step.get(0).equals("checkpoint")) {
                manager.checkpointLogRecoveryOffsets();
                manager.checkpointLogStartOffsets();
            } else if (step.get(0).equals("restart")) {
                boolean isClean = ((Boolean) step.get(1)).booleanValue();
                end(isClean);
                open();
                if (!isClean) {
                    log.flush(true); // what our recovery does by itself, so that the next one need not begin as early
                    manager.checkpointLogRecoveryOffsets();
                }
            } else {
                KafkaLogs.take(log, step);
            }
        }

        /** Shuts the manager down, or lets all its files go as the end of the process does. */
        void end(boolean isClean) throws Exception {
            settle(scheduler);
            if (isClean) {
                manager.shutdown(-1L);
            } else {
                manager.cleaner().shutdown();
                log.closeQuietly();
                Iterator locks = manager.dirLocks().iterator();
                while (locks.hasNext()) {
                    ((FileLock) locks.next()).destroy();
                }
            }
            scheduler.shutdown();
        }
    }

    /** Wall and CPU nanoseconds of cleaning a log that was closed in order, and the bytes that are left of it. */
    static Map compact(String[] fields) throws Exception {
        UnifiedLog log = UnifiedLog.create(new File(fields[1]), new LogConfig((Map) Answers.JSON.readValue(fields[2], Map.class)),
            0L, Long.parseLong(fields[4]), SCHEDULER, new BrokerTopicStats(), Time.SYSTEM, 900000,
            new ProducerStateManagerConfig(2000000000, false), 600000, new LogDirFailureChannel(1), true,
            Optional.of(Uuid.fromString(fields[3])));
        List step = new ArrayList();
        step.add("clean");
        step.add(Long.valueOf(Time.SYSTEM.milliseconds()));
        step.add(Integer.valueOf(fields[5]));
        long wall = System.nanoTime();
        long cpu = CPU.getCurrentThreadCpuTime();
        Object cleaned = clean(log, step);
        Map answer = new LinkedHashMap();
        answer.put("took", list(System.nanoTime() - wall, CPU.getCurrentThreadCpuTime() - cpu));
        answer.put("cleaned", cleaned);
        answer.put("left", Long.valueOf(log.size()));
        settle();
        log.close();
        return answer;
    }

    static UnifiedLog open(File folder, String topicId) throws Exception {
        return UnifiedLog.create(folder, new LogConfig(new LinkedHashMap()), 0L, 0L, SCHEDULER, new BrokerTopicStats(),
            Time.SYSTEM, 900000, new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(1),
            false, Optional.of(Uuid.fromString(topicId)));
    }

    /** Wall and CPU nanoseconds of appending a file's batches by chunks of so many bytes, and of recovering the log. */
    static Map bench(String[] fields) throws Exception {
        File folder = new File(fields[1]);
        folder.mkdirs();
        byte[] data = java.nio.file.Files.readAllBytes(new File(fields[3]).toPath());
        int chunk = Integer.parseInt(fields[4]);
        UnifiedLog log = open(folder, fields[2]);
        Map times = new LinkedHashMap();
        long wall = System.nanoTime();
        long cpu = CPU.getCurrentThreadCpuTime();
        for (int from = 0; from < data.length; from += chunk) {
            ByteBuffer fetched = (ByteBuffer) ByteBuffer.wrap(data, from, Math.min(chunk, data.length - from)).slice();
            log.appendAsFollower(MemoryRecords.readableRecords(fetched), 0);
        }
        log.flush(true);
        times.put("append", list(System.nanoTime() - wall, CPU.getCurrentThreadCpuTime() - cpu));
        long end = log.logEndOffset();
        settle();
        log.close();
        File[] snapshots = folder.listFiles();
        for (int at = 0; at < snapshots.length; at++) {
            if (snapshots[at].getName().endsWith(".snapshot")) {
                snapshots[at].delete();
            }
        }
        wall = System.nanoTime();
        cpu = CPU.getCurrentThreadCpuTime();
        log = open(folder, fields[2]);
        times.put("recover", list(System.nanoTime() - wall, CPU.getCurrentThreadCpuTime() - cpu));
        if (log.logEndOffset() != end) {
            throw new IllegalStateException("recovered to " + log.logEndOffset() + ", not to " + end);
        }
        log.close();
        return times;
    }

    /** Waits for what the log has given the scheduler's one thread: flushes, which need it open, and files. */
    static void settle() throws Exception {
        settle(SCHEDULER);
    }

    static void settle(KafkaScheduler scheduler) throws Exception {
        final CountDownLatch done = new CountDownLatch(1);
        scheduler.scheduleOnce("settled", new Runnable() {
            public void run() {
                done.countDown();
            }
        });
        done.await();
    }

    /** Appends a client's batch; returns its offset, or the error's name. */
    static Object lead(UnifiedLog log, List step) throws Exception {
        MemoryRecords data = MemoryRecords.readableRecords(ByteBuffer.wrap(Base64.getDecoder().decode((String) step.get(1))));
        try {
            return Long.valueOf(log.appendAsLeader(data, number(step, 2).intValue()).firstOffset());
        } catch (ApiException error) {
            return error.getClass().getSimpleName();
        }
    }

    /**
     * Cleans the log at a time with an offset map of so many slots, as Kafka's cleaner does if it finds it dirty enough.
     * Returns the offsets from and up to which it could, the clean and the cleanable bytes, and the end of what is clean.
     */
    static Object clean(UnifiedLog log, List step) throws Exception {
        log.updateHighWatermark(log.logEndOffset());
        Time time = new At(number(step, 1).longValue());
        ConcurrentHashMap logs = new ConcurrentHashMap();
        logs.put(log.topicPartition(), log);
        List folders = new ArrayList();
        folders.add(log.parentDirFile());
        LogCleanerManager manager = new LogCleanerManager(folders, logs, new LogDirFailureChannel(1));
        try {
            Optional found = manager.grabFilthiestCompactedLog(time, new PreCleanStats());
            if (!found.isPresent()) {
                return "clean enough";
            }
            LogToClean dirty = (LogToClean) found.get();
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(24 * number(step, 2).intValue()), 65536, 1048576, 0.9,
                new Throttler(1e12, 300L, "cleaner-io", "bytes", time), time, new Consumer() {
                    public void accept(Object partition) {
                    }
                });
            long end = ((Long) ((Map.Entry) cleaner.clean(dirty)).getKey()).longValue();
            manager.doneCleaning(log.topicPartition(), log.parentDirFile(), end);
            List cleaned = list(dirty.firstDirtyOffset(), dirty.firstUncleanableOffset());
            cleaned.addAll(list(dirty.cleanBytes(), dirty.cleanableBytes()));
            cleaned.add(Long.valueOf(end));
            return cleaned;
        } finally {
            manager.removeMetrics();
        }
    }

    static void take(UnifiedLog log, List step) throws Exception {
        String name = (String) step.get(0);
        if (name.equals("append")) {
            byte[] data = Base64.getDecoder().decode((String) step.get(1));
            log.appendAsFollower(MemoryRecords.readableRecords(ByteBuffer.wrap(data)), number(step, 2).intValue());
        } else if (name.equals("elect")) {
            log.assignEpochStartOffset(number(step, 1).intValue(), log.logEndOffset());
        } else if (name.equals("cut")) {
            log.truncateTo(number(step, 1).longValue());
        } else if (name.equals("start")) {
            log.updateHighWatermark(log.logEndOffset());
            log.maybeIncrementLogStartOffset(number(step, 1).longValue(),
                LogStartOffsetIncrementReason.ClientRecordDeletion);
        } else if (name.equals("age")) {
            log.deleteOldSegments();
        } else {
            throw new IllegalArgumentException(name);
        }
    }

    static Number number(List step, int place) {
        return (Number) step.get(place);
    }

    static Map seen(UnifiedLog log) throws Exception {
        Map seen = new LinkedHashMap();
        seen.put("start", Long.valueOf(log.logStartOffset()));
        seen.put("end", Long.valueOf(log.logEndOffset()));
        seen.put("stable", Long.valueOf(log.lastStableOffset()));
        List epochs = new ArrayList();
        Iterator entries = log.leaderEpochCache().epochEntries().iterator();
        while (entries.hasNext()) {
            EpochEntry entry = (EpochEntry) entries.next();
            epochs.add(list(entry.epoch(), entry.startOffset()));
        }
        seen.put("epochs", epochs);
        Map producers = new TreeMap();
        Iterator states = log.producerStateManager().activeProducers().values().iterator();
        while (states.hasNext()) {
            ProducerStateEntry state = (ProducerStateEntry) states.next();
            List said = list(state.producerEpoch(), state.coordinatorEpoch());
            said.add(Long.valueOf(state.lastTimestamp()));
            said.add(Long.valueOf(state.currentTxnFirstOffset().orElse(-1L)));
            Integer sequence = Integer.valueOf(-1);
            Iterator held = state.batchMetadata().iterator();
            while (held.hasNext()) {
                sequence = Integer.valueOf(((BatchMetadata) held.next()).lastSeq());
            }
            said.add(sequence);
            said.add(Long.valueOf(state.lastDataOffset()));
            producers.put(String.valueOf(state.producerId()), said);
        }
        seen.put("producers", producers);
        List segments = new ArrayList();
        Iterator each = log.logSegments().iterator();
        while (each.hasNext()) {
            segments.add(segment((LogSegment) each.next()));
        }
        seen.put("segments", segments);
        return seen;
    }

    static Map segment(LogSegment segment) throws Exception {
        Map seen = new LinkedHashMap();
        seen.put("base", Long.valueOf(segment.baseOffset()));
        List batches = new ArrayList();
        Iterator each = segment.log().batches().iterator();
        while (each.hasNext()) {
            RecordBatch batch = (RecordBatch) each.next();
            batch.ensureValid();
            batches.add(list(batch.baseOffset(), batch.lastOffset()));
        }
        seen.put("batches", batches);
        List offsets = new ArrayList();
        for (int at = 0; at < segment.offsetIndex().entries(); at++) {
            OffsetPosition entry = segment.offsetIndex().entry(at);
            offsets.add(list(entry.offset(), entry.position()));
        }
        seen.put("offsets", offsets);
        List times = new ArrayList();
        for (int at = 0; at < segment.timeIndex().entries(); at++) {
            TimestampOffset entry = segment.timeIndex().entry(at);
            times.add(list(entry.timestamp(), entry.offset()));
        }
        seen.put("times", times);
        return seen;
    }

    static List list(long first, long second) {
        List pair = new ArrayList();
        pair.add(Long.valueOf(first));
        pair.add(Long.valueOf(second));
        return pair;
    }

    public static void main(String[] args) throws Exception {
        SCHEDULER.startup();
        new Answers() {
            Object answer(String[] fields) throws Exception {
                return KafkaLogs.answer(fields);
            }
        }.serve();
    }
}
