import java.io.File;
import java.io.FileOutputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import kafka.cluster.Partition;
import kafka.server.BlockingSend;
import kafka.server.KafkaConfig;
import kafka.server.RemoteLeaderEndPoint;
import kafka.server.ReplicaFetcherManager;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.partition.AlterPartitionManager;
import org.apache.kafka.server.quota.QuotaFactory;
import org.apache.kafka.server.quota.ReplicaQuota;
import org.apache.kafka.server.quota.ReplicationQuotaManager;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's own ReplicaManager, broker 1 of three: one request a line on stdin (fields apart by tabs), one JSON object a
 * line on stdout.
 *
 *   bench PARTITIONS FOLDER    the changes of benchmarks/replica_manager.py: CPU nanoseconds of the calling thread,
 *                              `created`, `full`, `idle`, `led`, `followed`
 *   isr FOLDER EARLY           a leader with a proposed ISR hears of the metadata that it proposed it on, unless EARLY
 *                              is false (see test_kafka_replicas.py)
 *
 * The logs are Kafka's own, in FOLDER. Fetchers have no thread of their own and a leader that answers from memory. The
 * language is what Janino compiles.
 */
public class KafkaReplicas {
    static final Uuid TOPIC = new Uuid(0L, 77777L);
    static final Uuid DIRECTORY = new Uuid(0L, 7777L);
    static final ThreadMXBean CPU = ManagementFactory.getThreadMXBean();

    /** A leader that answers every fetch at once, without a session. */
    static class Leader implements BlockingSend {
        final BrokerEndPoint endPoint;
        byte[] value;

        Leader(BrokerEndPoint endPoint) {
            this.endPoint = endPoint;
        }

        public BrokerEndPoint brokerEndPoint() {
            return endPoint;
        }

        public ClientResponse sendRequest(AbstractRequest.Builder builder) {
            FetchRequest.Builder fetch = (FetchRequest.Builder) builder;
            LinkedHashMap answers = new LinkedHashMap();
            Iterator wanted = fetch.fetchData().entrySet().iterator();
            while (wanted.hasNext()) {
                Map.Entry entry = (Map.Entry) wanted.next();
                TopicPartition name = (TopicPartition) entry.getKey();
                long offset = ((FetchRequest.PartitionData) entry.getValue()).fetchOffset;
                MemoryRecords records = value == null
                    ? MemoryRecords.EMPTY
                    : MemoryRecords.withRecords(offset, Compression.NONE, Integer.valueOf(0),
                        new SimpleRecord[] {new SimpleRecord(1000L, null, value)});
                answers.put(new TopicIdPartition(TOPIC, name), new FetchResponseData.PartitionData()
                    .setPartitionIndex(name.partition()).setHighWatermark(offset).setLogStartOffset(0L)
                    .setRecords(records));
            }
            FetchResponse response = FetchResponse.of(Errors.NONE, 0, 0, answers, Collections.emptyList());
            short version = fetch.latestAllowedVersion();
            return new ClientResponse(new RequestHeader(ApiKeys.FETCH, version, "bench", 1), null, "2", 0L, 0L, false,
                null, null, response);
        }

        public void initiateClose() {
        }

        public void close() {
        }
    }

    /** A fetcher that is turned by hand. */
    static class StillThread extends ReplicaFetcherThread {
        StillThread(String name, RemoteLeaderEndPoint leader, KafkaConfig config, ReplicaFetcherManager fetchers,
                ReplicaManager replicas, ReplicationQuotaManager quota) {
            super(name, leader, config, fetchers.failedPartitions(), replicas, quota, "");
        }

        public void start() {
        }

        public void shutdown() {
        }
    }

    static class Fetchers extends ReplicaFetcherManager {
        final KafkaConfig config;
        final ReplicaManager replicas;
        final ReplicationQuotaManager quota;
        Leader leader;
        StillThread thread;

        Fetchers(KafkaConfig config, ReplicaManager replicas, Metrics metrics, Time time,
                ReplicationQuotaManager quota) {
            super(config, replicas, metrics, time, quota, newest(), epoch());
            this.config = config;
            this.replicas = replicas;
            this.quota = quota;
        }

        public ReplicaFetcherThread createFetcherThread(int id, BrokerEndPoint source) {
            leader = new Leader(source);
            RemoteLeaderEndPoint end = new RemoteLeaderEndPoint("", leader,
                new FetchSessionHandler(new LogContext(), source.id()), config, replicas, quota, newest(), epoch());
            thread = new StillThread("ReplicaFetcherThread-" + id + "-" + source.id(), end, config, this, replicas, quota);
            return thread;
        }
    }

    static class Replicas extends ReplicaManager {
        Fetchers fetchers;

        Replicas(KafkaConfig config, Metrics metrics, Time time, KafkaScheduler scheduler, LogManager logs,
                QuotaFactory.QuotaManagers quotas, KRaftMetadataCache cache, LogDirFailureChannel failures,
                BrokerTopicStats stats, Controller controller) {
            super(config, metrics, time, scheduler, logs, scala.Option.empty(), quotas, cache, failures, controller,
                stats, scala.Option.empty(), scala.Option.empty(), scala.Option.empty(), scala.Option.empty(),
                scala.Option.empty(), scala.Option.empty(), epoch(), scala.Option.empty(), DirectoryEventHandler.NOOP,
                new org.apache.kafka.server.DelayedActionQueue());
        }

        public ReplicaFetcherManager createReplicaFetcherManager(Metrics metrics, Time time,
                ReplicationQuotaManager quota) {
            fetchers = new Fetchers(config(), this, metrics, time, quota);
            return fetchers;
        }
    }

    /** A controller that answers when a step asks it to. */
    static class Controller implements AlterPartitionManager {
        final List proposals = new ArrayList();
        final List answers = new ArrayList();

        public void start() {
        }

        public void shutdown() {
        }

        public CompletableFuture submit(org.apache.kafka.server.common.TopicIdPartition partition, LeaderAndIsr state) {
            CompletableFuture answer = new CompletableFuture();
            proposals.add(state);
            answers.add(answer);
            return answer;
        }

        void accept(int number) {
            LeaderAndIsr asked = (LeaderAndIsr) proposals.get(number);
            ((CompletableFuture) answers.get(number)).complete(new LeaderAndIsr(asked.leader(), asked.leaderEpoch(),
                asked.leaderRecoveryState(), asked.isrWithBrokerEpoch(), asked.partitionEpoch() + 1));
        }
    }

    /** A clock that is turned by hand. */
    static class HandTime implements Time {
        long now = 1000000L;

        public long milliseconds() {
            return now;
        }

        public long nanoseconds() {
            return now * 1000000L;
        }

        public void sleep(long ms) {
            now += ms;
        }
    }

    static final ReplicaQuota NO_QUOTA = new ReplicaQuota() {
        public boolean isThrottled(TopicPartition partition) {
            return false;
        }

        public boolean isQuotaExceeded() {
            return false;
        }

        public void record(long value) {
        }
    };

    static scala.Function0 newest() {
        return new scala.runtime.AbstractFunction0() {
            public Object apply() {
                return MetadataVersion.latestProduction();
            }
        };
    }

    static scala.Function0 epoch() {
        return new scala.runtime.AbstractFunction0() {
            public Object apply() {
                return Long.valueOf(1L);
            }
        };
    }

    final int partitions;
    final KRaftMetadataCache cache;
    final KafkaScheduler scheduler = new KafkaScheduler(1, true);
    final Metrics metrics = new Metrics();
    final LogManager logs;
    final Controller controller = new Controller();
    final Replicas replicas;
    MetadataImage image = MetadataImage.EMPTY;

    KafkaReplicas(int partitions, File folder, Time time) throws Exception {
        this.partitions = partitions;
        File directory = new File(folder, "logs");
        directory.mkdirs();
        FileOutputStream meta = new FileOutputStream(new File(directory, "meta.properties"));
        meta.write(("version=1\nnode.id=1\ncluster.id=bench\ndirectory.id=" + DIRECTORY + "\n").getBytes("UTF-8"));
        meta.close();
        Properties settings = new Properties();
        settings.setProperty("process.roles", "broker");
        settings.setProperty("node.id", "1");
        settings.setProperty("controller.quorum.voters", "9@127.0.0.1:1");
        settings.setProperty("controller.listener.names", "CONTROLLER");
        settings.setProperty("listeners", "PLAINTEXT://127.0.0.1:0");
        settings.setProperty("log.dirs", directory.getPath());
        settings.setProperty("log.index.size.max.bytes", "4096");
        settings.setProperty("broker.rack", "r1");
        settings.setProperty("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector");
        KafkaConfig config = KafkaConfig.fromProps(settings);
        cache = new KRaftMetadataCache(1, new Supplier() {
            public Object get() {
                return KRaftVersion.KRAFT_VERSION_0;
            }
        });
        scheduler.startup();
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        BrokerTopicStats stats = new BrokerTopicStats();
        ConfigRepository configs = new ConfigRepository() {
            public Properties config(ConfigResource resource) {
                return new Properties();
            }
        };
        LogConfig defaults = new LogConfig(config.extractLogConfigMap());
        logs = new LogManager(Collections.singletonList(directory), Collections.emptyList(), configs, defaults,
            new CleanerConfig(false), 1, 1000000L, 1000000L, 1000000L, 1000000L, 900000,
            new ProducerStateManagerConfig(86400000, false), 600000, scheduler, stats, failures, time, false, 1000000L,
            null);
        QuotaFactory.QuotaManagers quotas = QuotaFactory.instantiate(config, metrics, time, "", "1");
        replicas = new Replicas(config, metrics, time, scheduler, logs, quotas, cache, failures, stats, controller);
        List cluster = new ArrayList();
        cluster.add(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel((short) 20));
        for (int id = 1; id <= 3; id++) {
            RegisterBrokerRecord.BrokerEndpointCollection ends = new RegisterBrokerRecord.BrokerEndpointCollection();
            ends.add(new RegisterBrokerRecord.BrokerEndpoint().setName("PLAINTEXT").setHost("h").setPort(9090 + id)
                .setSecurityProtocol((short) 0));
            cluster.add(new RegisterBrokerRecord().setBrokerId(id).setBrokerEpoch(1L)
                .setIncarnationId(new Uuid(0L, 50L + id)).setEndPoints(ends).setFenced(false)
                .setRack("r" + id).setLogDirs(Collections.singletonList(DIRECTORY)));
        }
        delta(cluster);
    }

    MetadataDelta delta(List records) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image)
            .setSupportedConfigChecker(new DefaultSupportedConfigChecker()).build();
        Iterator each = records.iterator();
        while (each.hasNext()) {
            delta.replay((ApiMessage) each.next());
        }
        image = delta.apply(new MetadataProvenance(image.offset() + 1, 1, 0L, true));
        cache.setImage(image);
        return delta;
    }

    static List list(int a, int b, int c) {
        List made = new ArrayList();
        made.add(Integer.valueOf(a));
        made.add(Integer.valueOf(b));
        made.add(Integer.valueOf(c));
        return made;
    }

    long apply(List records) {
        MetadataDelta delta = delta(records);
        long start = CPU.getCurrentThreadCpuTime();
        replicas.applyDelta(delta.topicsDelta(), image);
        return CPU.getCurrentThreadCpuTime() - start;
    }

    List creation() {
        List records = new ArrayList();
        records.add(new TopicRecord().setName("foo").setTopicId(TOPIC));
        for (int number = 0; number < partitions; number++) {
            records.add(new PartitionRecord().setPartitionId(number).setTopicId(TOPIC).setReplicas(list(2, 1, 3))
                .setIsr(list(2, 1, 3)).setLeader(2).setLeaderEpoch(0).setPartitionEpoch(0)
                .setDirectories(directories()));
        }
        return records;
    }

    static List directories() {
        List made = new ArrayList();
        made.add(DIRECTORY);
        made.add(DIRECTORY);
        made.add(DIRECTORY);
        return made;
    }

    static List pair(int a, int b) {
        List made = new ArrayList();
        made.add(Integer.valueOf(a));
        made.add(Integer.valueOf(b));
        return made;
    }

    List election(int leader) {
        List records = new ArrayList();
        for (int number = 0; number < partitions; number++) {
            records.add(new PartitionChangeRecord().setPartitionId(number).setTopicId(TOPIC).setLeader(leader));
        }
        return records;
    }

    long round() {
        long start = CPU.getCurrentThreadCpuTime();
        replicas.fetchers.thread.doWork();
        return CPU.getCurrentThreadCpuTime() - start;
    }

    Map run() throws Exception {
        Map answer = new LinkedHashMap();
        answer.put("created", Long.valueOf(apply(creation())));
        Leader leader = replicas.fetchers.leader;
        round();
        leader.value = new byte[100];
        answer.put("full", Long.valueOf(round()));
        leader.value = null;
        round();
        answer.put("idle", Long.valueOf(round()));
        answer.put("end", Long.valueOf(replicas.localLogOrException(new TopicPartition("foo", 0)).logEndOffset()));
        answer.put("led", Long.valueOf(apply(election(1))));
        answer.put("leads", Boolean.valueOf(replicas.getPartitionOrException(new TopicPartition("foo", partitions - 1)).isLeader()));
        answer.put("followed", Long.valueOf(apply(election(3))));
        answer.put("fetched", Integer.valueOf(replicas.fetchers.thread.partitionCount()));
        return answer;
    }

    /** What a leader takes for in sync, and for committed, in the end. */
    Map isr(HandTime time, boolean early) throws Exception {
        List created = new ArrayList();
        created.add(new TopicRecord().setName("foo").setTopicId(TOPIC));
        created.add(new PartitionRecord().setPartitionId(0).setTopicId(TOPIC).setReplicas(list(1, 2, 3))
            .setIsr(Collections.singletonList(Integer.valueOf(1))).setLeader(1).setLeaderEpoch(0).setPartitionEpoch(0)
            .setDirectories(directories()));
        apply(created);
        Partition partition = replicas.getPartitionOrException(new TopicPartition("foo", 0));
        append(partition);
        fetched(partition, 2, time);
        controller.accept(0);
        fetched(partition, 3, time);
        if (early) {
            List heard = new ArrayList();
            heard.add(new PartitionChangeRecord().setPartitionId(0).setTopicId(TOPIC).setIsr(pair(1, 2)));
            apply(heard);
        }
        controller.accept(1);
        time.sleep(60000L);
        append(partition);
        fetched(partition, 2, time);
        Map answer = new LinkedHashMap();
        answer.put("proposals", Integer.valueOf(controller.proposals.size()));
        List inSync = new ArrayList();
        for (int id = 1; id <= 3; id++) {
            if (partition.inSyncReplicaIds().contains(Integer.valueOf(id))) {
                inSync.add(Integer.valueOf(id));
            }
        }
        answer.put("isr", inSync);
        answer.put("end", Long.valueOf(partition.localLogOrException().logEndOffset()));
        answer.put("highWatermark", Long.valueOf(partition.localLogOrException().highWatermark()));
        return answer;
    }

    static void append(Partition partition) {
        MemoryRecords records = MemoryRecords.withRecords(0L, Compression.NONE, Integer.valueOf(0),
            new SimpleRecord[] {new SimpleRecord(1000L, null, new byte[10])});
        partition.appendRecordsToLeader(records, AppendOrigin.CLIENT, 1, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, (short) 0);
    }

    /** A follower asks for what comes after all that the leader has. */
    static void fetched(Partition partition, int id, Time time) {
        long end = partition.localLogOrException().logEndOffset();
        partition.updateFollowerFetchState((Replica) partition.getReplica(id).get(), new LogOffsetMetadata(end), 0L,
            time.milliseconds(), end, 1L);
    }

    /** A leader with followers 2 (in sync) and 3 (not), each in a rack of its own, asked one thing after the other. */
    List serve(HandTime time, List script) throws Exception {
        List created = new ArrayList();
        created.add(new TopicRecord().setName("foo").setTopicId(TOPIC));
        created.add(new PartitionRecord().setPartitionId(0).setTopicId(TOPIC).setReplicas(list(1, 2, 3))
            .setIsr(pair(1, 2)).setLeader(1).setLeaderEpoch(0).setPartitionEpoch(0).setDirectories(directories()));
        apply(created);
        List answers = new ArrayList();
        Iterator each = script.iterator();
        while (each.hasNext()) {
            try {
                answers.add(step(time, (List) each.next()));
            } catch (Throwable fault) {
                answers.add(error(Errors.forException(fault)));
            }
        }
        return answers;
    }

    static Map error(Errors error) {
        return Collections.singletonMap("error", Integer.valueOf(error.code()));
    }

    static int number(List step, int place) {
        return ((Number) step.get(place)).intValue();
    }

    Object step(HandTime time, List step) throws Exception {
        Partition partition = replicas.getPartitionOrException(new TopicPartition("foo", 0));
        String what = (String) step.get(0);
        if (what.equals("append")) {
            SimpleRecord[] values = new SimpleRecord[number(step, 4)];
            for (int place = 0; place < values.length; place++) {
                values[place] = new SimpleRecord(1000L, new byte[1], new byte[10]);
            }
            long producer = number(step, 1);
            short epoch = (short) number(step, 2);
            MemoryRecords records = ((Boolean) step.get(5)).booleanValue()
                ? MemoryRecords.withTransactionalRecords(Compression.NONE, producer, epoch, number(step, 3), values)
                : MemoryRecords.withIdempotentRecords(Compression.NONE, producer, epoch, number(step, 3), values);
            return placed(partition, records, AppendOrigin.CLIENT);
        }
        if (what.equals("end")) {
            MemoryRecords marker = MemoryRecords.withEndTransactionMarker(0L, 1000L, 0, (long) number(step, 1),
                (short) number(step, 2), new EndTransactionMarker(ControlRecordType.COMMIT, number(step, 3)));
            return placed(partition, marker, AppendOrigin.COORDINATOR);
        }
        if (what.equals("fetched")) {
            long end = partition.localLogOrException().logEndOffset();
            long at = ((Boolean) step.get(2)).booleanValue() ? end : partition.localLogOrException().highWatermark();
            partition.updateFollowerFetchState((Replica) partition.getReplica(number(step, 1)).get(),
                new LogOffsetMetadata(at), 0L, time.milliseconds(), end, 1L);
            return Long.valueOf(partition.localLogOrException().highWatermark());
        }
        if (what.equals("elect")) {
            apply(election(1));
            return null;
        }
        if (what.equals("expire")) {
            partition.localLogOrException().removeExpiredProducers(1000L + 86400000L);
            return null;
        }
        if (what.equals("policy")) {
            Properties settings = new Properties();
            settings.setProperty("cleanup.policy", (String) step.get(1));
            partition.localLogOrException().updateConfig(new LogConfig(settings));
            return null;
        }
        if (what.equals("delete")) {
            partition.deleteRecordsOnLeader((long) number(step, 1));
            return Long.valueOf(partition.localLogOrException().logStartOffset());
        }
        return what.equals("offset") ? offset(partition, (long) number(step, 1)) : fetch(step);
    }

    static Object placed(Partition partition, MemoryRecords records, AppendOrigin origin) {
        LogAppendInfo info = partition.appendRecordsToLeader(records, origin, 1, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, (short) 0);
        List offsets = new ArrayList();
        offsets.add(Long.valueOf(info.firstOffset()));
        offsets.add(Long.valueOf(info.lastOffset()));
        return offsets;
    }

    /** As ReplicaManager.fetchOffset takes what the partition answers; -1 for no offset. */
    static Object offset(Partition partition, long timestamp) {
        OffsetResultHolder held = partition.fetchOffsetForTimestamp(timestamp,
            new scala.Some(IsolationLevel.READ_UNCOMMITTED), Optional.empty(), true, scala.Option.empty());
        if (held.timestampAndOffsetOpt().isPresent()) {
            long found = ((FileRecords.TimestampAndOffset) held.timestampAndOffsetOpt().get()).offset;
            if (!held.lastFetchableOffset().isPresent() || found < ((Long) held.lastFetchableOffset().get()).longValue()) {
                return Long.valueOf(found);
            }
        }
        if (held.maybeOffsetsError().isPresent()) {
            return error(Errors.forException((Throwable) held.maybeOffsetsError().get()));
        }
        return Long.valueOf(-1L);
    }

    /** A consumer's fetch: what it is answered, "waits" where it is not yet. */
    Object fetch(List step) throws Exception {
        Optional client = Optional.empty();
        if (step.get(2) != null) {
            client = Optional.of(new ClientMetadata.DefaultClientMetadata((String) step.get(2), "client",
                java.net.InetAddress.getLoopbackAddress(), KafkaPrincipal.ANONYMOUS, "PLAINTEXT"));
        }
        Optional epoch = step.get(3) == null ? Optional.empty() : Optional.of(Integer.valueOf(number(step, 3)));
        FetchParams params = new FetchParams(-1, -1L, 60000L, 1, 1000000, FetchIsolation.HIGH_WATERMARK, client);
        List wanted = new ArrayList();
        wanted.add(new scala.Tuple2(new TopicIdPartition(TOPIC, 0, "foo"), new FetchRequest.PartitionData(TOPIC,
            (long) number(step, 1), -1L, 1000000, epoch, Optional.empty())));
        final List got = new ArrayList();
        replicas.fetchMessages(params, scala.jdk.javaapi.CollectionConverters.asScala(wanted).toSeq(),
            NO_QUOTA, new scala.runtime.AbstractFunction1() {
                public Object apply(Object answer) {
                    got.add(((scala.Tuple2) ((scala.collection.Seq) answer).head())._2());
                    return null;
                }
            });
        if (got.isEmpty()) {
            return "waits";
        }
        FetchPartitionData data = (FetchPartitionData) got.get(0);
        if (data.error != Errors.NONE) {
            return error(data.error);
        }
        Map answer = new LinkedHashMap();
        answer.put("near", data.preferredReadReplica.isPresent()
            ? Integer.valueOf(data.preferredReadReplica.getAsInt()) : null);
        answer.put("highWatermark", Long.valueOf(data.highWatermark));
        answer.put("empty", Boolean.valueOf(data.records.sizeInBytes() == 0));
        return answer;
    }

    void close() throws Exception {
        replicas.shutdown(false);
        logs.shutdown(-1L);
        scheduler.shutdown();
        metrics.close();
    }

    static Map answer(String[] request) throws Exception {
        if (request[0].equals("bench")) {
            KafkaReplicas made = new KafkaReplicas(Integer.parseInt(request[1]), new File(request[2]), Time.SYSTEM);
            Map answer = made.run();
            made.close();
            return answer;
        }
        HandTime time = new HandTime();
        KafkaReplicas made = new KafkaReplicas(1, new File(request[1]), time);
        if (request[0].equals("serve")) {
            List script = (List) Answers.JSON.readValue(request[2], List.class);
            Map answer = Collections.singletonMap("answers", made.serve(time, script));
            made.close();
            return answer;
        }
        Map answer = made.isr(time, Boolean.parseBoolean(request[2]));
        made.close();
        return answer;
    }

    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] fields) throws Exception {
                return KafkaReplicas.answer(fields);
            }
        }.serve();
    }
}
