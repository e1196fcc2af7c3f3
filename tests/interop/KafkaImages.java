import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metadata.AbortTransactionRecord;
import org.apache.kafka.common.metadata.BeginTransactionRecord;
import org.apache.kafka.common.metadata.EndTransactionRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.security.token.delegation.TokenInformation;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.controller.metrics.ControllerMetadataMetrics;
import org.apache.kafka.controller.metrics.ControllerMetadataMetricsPublisher;
import org.apache.kafka.image.ClientQuotaImage;
import org.apache.kafka.image.ConfigurationImage;
import org.apache.kafka.image.LocalReplicaChanges;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.image.loader.LogDeltaManifest;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.image.loader.SnapshotManifest;
import org.apache.kafka.image.node.MetadataImageNode;
import org.apache.kafka.image.node.MetadataNode;
import org.apache.kafka.image.node.printer.MetadataNodePrinter;
import org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.ControllerRegistration;
import org.apache.kafka.metadata.DelegationTokenData;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.ScramCredentialData;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotReader;

/**
 * Kafka's own image classes behind a line protocol: one request a line on stdin (fields apart by tabs), one JSON object
 * a line on stdout.
 *
 *   image     AT FILE...            the image at offset AT of a log's segments (its own batch loader, one delta a batch)
 *   snapshot  FOLDER END EPOCH      the image of FOLDER/END-EPOCH.checkpoint, through the broker's snapshot reader
 *   nodes     AT FILE...            the paths of the metadata shell in that image, and what its `cat` prints of each
 *   snapshotNodes FOLDER END EPOCH  the same of the image of a snapshot
 *   local     BROKER FROM TO FILE...   the local changes of one delta over (FROM, TO]
 *   history   BROKERS RANGES FILE      all that a segment says: each image that is published (one delta a batch), with
 *                                      its records and metrics, and the local changes of each range FROM:TO to each
 *                                      of BROKERS (both lists apart by commas)
 *
 * The language used is what Janino compiles (no lambdas, casts instead of inferred types), so that a Java without a
 * compiler runs it: java -cp ... org.codehaus.janino.SimpleCompiler KafkaImages.java KafkaImages
 */
public class KafkaImages {
    private static final int BATCH_SIZE = 8 * 1024 * 1024;
    private static final SupportedConfigChecker SUPPORTED = new DefaultSupportedConfigChecker();

    public static void main(String[] args) throws Exception {
        new Answers() {
            Object answer(String[] fields) throws Exception {
                return KafkaImages.answer(fields);
            }
        }.serve();
    }

    static Object answer(String[] request) throws Exception {
        if (request[0].equals("image")) {
            List files = Arrays.asList(request).subList(2, request.length);
            long at = Long.parseLong(request[1]);
            List batches = read(files);
            return imageJson(imageAt(batches, at), at, epochAt(batches, at));
        }
        if (request[0].equals("nodes")) {
            List files = Arrays.asList(request).subList(2, request.length);
            return nodes(imageAt(read(files), Long.parseLong(request[1])));
        }
        if (request[0].equals("snapshotNodes")) {
            return nodes(snapshotImage(request[1], Long.parseLong(request[2]), Integer.parseInt(request[3])));
        }
        if (request[0].equals("snapshot")) {
            return snapshot(request[1], Long.parseLong(request[2]), Integer.parseInt(request[3]));
        }
        if (request[0].equals("local")) {
            List files = Arrays.asList(request).subList(4, request.length);
            return local(read(files), Integer.parseInt(request[1]), Long.parseLong(request[2]), Long.parseLong(request[3]));
        }
        if (request[0].equals("history")) {
            return history(read(Arrays.asList(request).subList(3, 4)), request[1].split(","), request[2].split(","));
        }
        throw new IllegalArgumentException("no such request: " + request[0]);
    }

    /** All batches of the segments; Kafka checks each CRC. */
    static List read(List files) throws Exception {
        List batches = new ArrayList();
        for (Iterator f = files.iterator(); f.hasNext(); ) {
            FileRecords records = FileRecords.open(new File((String) f.next()), false);
            RecordsIterator it = new RecordsIterator(
                records, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), BATCH_SIZE, true, new LogContext());
            while (it.hasNext()) {
                batches.add(it.next());
            }
            it.close();
            records.close();
        }
        return batches;
    }

    /** The part of a batch up to offset `at`, null when all of it lies beyond. */
    static Batch upTo(Batch batch, long at) {
        if (batch.baseOffset() > at) {
            return null;
        }
        if (batch.lastOffset() <= at || batch.records().isEmpty()) {
            return batch;
        }
        List records = batch.records().subList(0, (int) (at - batch.baseOffset() + 1));
        return Batch.data(batch.baseOffset(), batch.epoch(), batch.appendTimestamp(), batch.sizeInBytes(), records);
    }

    static int epochAt(List batches, long at) {
        int epoch = -1;
        for (Iterator b = batches.iterator(); b.hasNext(); ) {
            Batch batch = (Batch) b.next();
            if (batch.baseOffset() <= at) {
                epoch = batch.epoch();
            }
        }
        return epoch;
    }

    static class Thrower implements FaultHandler {
        public RuntimeException handleFault(String message, Throwable cause) {
            throw new RuntimeException(message, cause);
        }
    }

    static MetadataImage imageAt(List batches, long at) {
        final MetadataImage[] last = new MetadataImage[] {MetadataImage.EMPTY};
        publish(batches, at, new MetadataBatchLoader.MetadataUpdater() {
            public void update(MetadataDelta delta, MetadataImage image, LogDeltaManifest manifest) {
                last[0] = image;
            }
        });
        return last[0];
    }

    /** Kafka's own loader, which publishes after each batch, but nothing of a transaction before its end. */
    static void publish(List batches, long at, MetadataBatchLoader.MetadataUpdater updater) {
        MetadataBatchLoader loader = new MetadataBatchLoader(
            new LogContext(), Time.SYSTEM, new Thrower(), updater, SUPPORTED);
        loader.resetToImage(MetadataImage.EMPTY);
        for (Iterator b = batches.iterator(); b.hasNext(); ) {
            Batch batch = upTo((Batch) b.next(), at);
            if (batch != null) {
                loader.loadBatch(batch, LeaderAndEpoch.UNKNOWN);
                loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
            }
        }
    }

    static Object history(List batches, String[] brokers, String[] ranges) {
        final Map oneByOne = oneByOne(batches);
        final List published = new ArrayList();
        publish(batches, Long.MAX_VALUE, new MetadataBatchLoader.MetadataUpdater() {
            public void update(MetadataDelta delta, MetadataImage image, LogDeltaManifest manifest) {
                MetadataProvenance provenance = image.provenance();
                MetadataImage reference = (MetadataImage) oneByOne.get(Long.valueOf(provenance.lastContainedOffset()));
                Map json = new LinkedHashMap();
                json.put("timestamp", Long.valueOf(provenance.lastContainedLogTimeMs()));
                json.put("batchAligned", Boolean.valueOf(provenance.isOffsetBatchAligned()));
                json.put("image", imageJson(image, provenance.lastContainedOffset(), provenance.lastContainedEpoch()));
                json.put("configs", configs(reference));
                json.put("scram", scram(reference));
                json.put("written", written(reference));
                json.put("metrics", metrics(image));
                published.add(json);
            }
        });
        List local = new ArrayList();
        for (int r = 0; r < ranges.length; r++) {
            long from = Long.parseLong(ranges[r].split(":")[0]);
            long to = Long.parseLong(ranges[r].split(":")[1]);
            MetadataDelta delta = deltaOver(batches, from, to);
            for (int b = 0; b < brokers.length; b++) {
                local.add(localJson(delta, Integer.parseInt(brokers[b]), from, to));
            }
        }
        Map json = new LinkedHashMap();
        json.put("published", published);
        json.put("local", local);
        return json;
    }

    /** Gets each record when it takes effect at an offset, and each offset once it is passed. */
    interface Replay {
        void take(long offset, ApiMessage message);
        void passed(long offset);
    }

    /** Report the records up to an offset in the order in which they take effect: a transaction's at its end. */
    static void inEffect(List batches, long to, Replay replay) {
        List pending = null;
        for (Iterator b = batches.iterator(); b.hasNext(); ) {
            Batch batch = upTo((Batch) b.next(), to);
            if (batch == null) {
                continue;
            }
            long offset = batch.baseOffset();
            replay.passed(offset);
            for (Iterator r = batch.records().iterator(); r.hasNext(); offset++) {
                ApiMessage message = ((ApiMessageAndVersion) r.next()).message();
                if (message instanceof BeginTransactionRecord) {
                    pending = new ArrayList();
                } else if (message instanceof AbortTransactionRecord) {
                    pending = null;
                } else if (message instanceof EndTransactionRecord) {
                    for (Iterator p = pending.iterator(); p.hasNext(); ) {
                        replay.take(offset, (ApiMessage) p.next());
                    }
                    pending = null;
                } else if (pending != null) {
                    pending.add(message);
                } else {
                    replay.take(offset, message);
                }
                replay.passed(offset);
            }
            replay.passed(batch.lastOffset());
        }
    }

    /** The image after each offset, from one delta a record. */
    static Map oneByOne(List batches) {
        final Map images = new HashMap();
        final MetadataImage[] image = {MetadataImage.EMPTY};
        inEffect(batches, Long.MAX_VALUE, new Replay() {
            public void take(long offset, ApiMessage message) {
                image[0] = after(image[0], message);
            }

            public void passed(long offset) {
                images.put(Long.valueOf(offset), image[0]);
            }
        });
        return images;
    }

    static MetadataImage after(MetadataImage image, ApiMessage message) {
        MetadataDelta delta = delta(image);
        delta.replay(message);
        return delta.apply(image.provenance());
    }

    /** What image.write makes, each record as base64 of its bytes; null where there is no metadata.version. */
    static List written(MetadataImage image) {
        if (!image.features().metadataVersion().isPresent()) {
            return null;
        }
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        writer.close(true);
        List json = new ArrayList();
        for (Iterator r = writer.records().iterator(); r.hasNext(); ) {
            ApiMessageAndVersion record = (ApiMessageAndVersion) r.next();
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(bytes));
            json.add(Base64.getEncoder().encodeToString(bytes.array()));
        }
        return json;
    }

    /** The controller's metrics, as it counts them when it loads an image whole. */
    static Map metrics(MetadataImage image) {
        ControllerMetadataMetrics metrics = new ControllerMetadataMetrics(Optional.empty());
        new ControllerMetadataMetricsPublisher(metrics, new Thrower())
            .onMetadataUpdate(null, image, new SnapshotManifest(image.provenance(), 0L));
        Map json = new LinkedHashMap();
        json.put("ActiveBrokerCount", Integer.valueOf(metrics.activeBrokerCount()));
        json.put("FencedBrokerCount", Integer.valueOf(metrics.fencedBrokerCount()));
        json.put("ControlledShutdownBrokerCount", Integer.valueOf(metrics.controlledShutdownBrokerCount()));
        json.put("GlobalTopicCount", Integer.valueOf(metrics.globalTopicCount()));
        json.put("GlobalPartitionCount", Integer.valueOf(metrics.globalPartitionCount()));
        json.put("OfflinePartitionsCount", Integer.valueOf(metrics.offlinePartitionCount()));
        json.put("PreferredReplicaImbalanceCount", Integer.valueOf(metrics.preferredReplicaImbalanceCount()));
        return json;
    }

    static Object snapshot(String folder, long end, int epoch) throws Exception {
        MetadataImage image = snapshotImage(folder, end, epoch);
        MetadataProvenance provenance = image.provenance();
        Map answer = imageJson(image, provenance.lastContainedOffset(), provenance.lastContainedEpoch());
        answer.put("lastContainedLogTimestamp", Long.valueOf(provenance.lastContainedLogTimeMs()));
        return answer;
    }

    static MetadataImage snapshotImage(String folder, long end, int epoch) throws Exception {
        FileRawSnapshotReader raw = FileRawSnapshotReader.open(Paths.get(folder, new String[0]), new OffsetAndEpoch(end, epoch));
        RecordsSnapshotReader reader = RecordsSnapshotReader.of(
            raw, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), BATCH_SIZE, true, new LogContext());
        MetadataDelta delta = delta(MetadataImage.EMPTY);
        while (reader.hasNext()) {
            Batch batch = (Batch) reader.next();
            for (Iterator r = batch.records().iterator(); r.hasNext(); ) {
                delta.replay(((ApiMessageAndVersion) r.next()).message());
            }
        }
        delta.finishSnapshot();
        MetadataProvenance provenance = new MetadataProvenance(
            reader.lastContainedLogOffset(), reader.lastContainedLogEpoch(), reader.lastContainedLogTimestamp(), true);
        reader.close();
        return delta.apply(provenance);
    }

    /** What the metadata shell's printer keeps: the text of a leaf, with secrets. */
    static class LeafText implements MetadataNodePrinter {
        String text;

        public MetadataNodeRedactionCriteria redactionCriteria() {
            return MetadataNodeRedactionCriteria.Disabled.INSTANCE;
        }

        public void enterNode(String name) {
        }

        public void leaveNode() {
        }

        public void output(String output) {
            text = output;
        }

        public void close() {
        }
    }

    static Map nodes(MetadataImage image) {
        Map found = new LinkedHashMap();
        find("/image", new MetadataImageNode(image), found);
        return found;
    }

    /** Path to text, null for a directory; where the shell's `find` dies of a name without a node, an empty list. */
    static void find(String path, MetadataNode node, Map found) {
        if (!node.isDirectory()) {
            LeafText printer = new LeafText();
            node.print(printer);
            found.put(path, printer.text);
            return;
        }
        found.put(path, null);
        for (Iterator names = node.childNames().iterator(); names.hasNext(); ) {
            String name = (String) names.next();
            MetadataNode child = node.child(name);
            if (child == null) {
                found.put(path + "/" + name, Collections.emptyList());
            } else {
                find(path + "/" + name, child, found);
            }
        }
    }

    static MetadataDelta delta(MetadataImage image) {
        return new MetadataDelta.Builder().setImage(image).setSupportedConfigChecker(SUPPORTED).build();
    }

    static Object local(List batches, int broker, long from, long to) {
        return localJson(deltaOver(batches, from, to), broker, from, to);
    }

    static MetadataDelta deltaOver(List batches, final long from, long to) {
        final MetadataDelta delta = delta(imageAt(batches, from));
        inEffect(batches, to, new Replay() {
            public void take(long offset, ApiMessage message) {
                if (offset > from) {
                    delta.replay(message);
                }
            }

            public void passed(long offset) {
            }
        });
        return delta;
    }

    static Map localJson(MetadataDelta delta, int broker, long from, long to) {
        Map json = new LinkedHashMap();
        json.put("broker", Integer.valueOf(broker));
        json.put("from", Long.valueOf(from));
        json.put("to", Long.valueOf(to));
        json.put("hasTopicsDelta", Boolean.valueOf(delta.topicsDelta() != null));
        List deletes = new ArrayList();
        Map elected = new LinkedHashMap();
        Map leaders = new LinkedHashMap();
        Map followers = new LinkedHashMap();
        Map topicIds = new LinkedHashMap();
        Map directoryIds = new LinkedHashMap();
        if (delta.topicsDelta() != null) {
            LocalReplicaChanges changes = delta.topicsDelta().localChanges(broker);
            for (Iterator i = changes.deletes().iterator(); i.hasNext(); ) {
                deletes.add(i.next().toString());
            }
            Collections.sort(deletes);
            partitionInfos(changes.electedLeaders(), elected);
            partitionInfos(changes.leaders(), leaders);
            partitionInfos(changes.followers(), followers);
            for (Iterator i = changes.topicIds().entrySet().iterator(); i.hasNext(); ) {
                Map.Entry e = (Map.Entry) i.next();
                topicIds.put(e.getKey(), e.getValue().toString());
            }
            for (Iterator i = changes.directoryIds().entrySet().iterator(); i.hasNext(); ) {
                Map.Entry e = (Map.Entry) i.next();
                directoryIds.put(((TopicIdPartition) e.getKey()).toString(), e.getValue().toString());
            }
        }
        json.put("deletes", deletes);
        json.put("electedLeaders", elected);
        json.put("leaders", leaders);
        json.put("followers", followers);
        json.put("topicIds", topicIds);
        json.put("directoryIds", directoryIds);
        return json;
    }

    static void partitionInfos(Map from, Map into) {
        for (Iterator i = from.entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            LocalReplicaChanges.PartitionInfo info = (LocalReplicaChanges.PartitionInfo) e.getValue();
            Map json = new LinkedHashMap();
            json.put("topicId", info.topicId().toString());
            json.put("partition", partition(info.partition()));
            into.put(((TopicPartition) e.getKey()).toString(), json);
        }
    }

    static Map imageJson(MetadataImage image, long offset, int epoch) {
        Map json = new LinkedHashMap();
        json.put("offset", Long.valueOf(offset));
        json.put("epoch", Integer.valueOf(epoch));
        json.put("metadataVersion", null);
        if (image.features().metadataVersion().isPresent()) {
            MetadataVersion version = (MetadataVersion) image.features().metadataVersion().get();
            Map v = new LinkedHashMap();
            v.put("level", Integer.valueOf(version.featureLevel()));
            v.put("name", version.toString());
            json.put("metadataVersion", v);
        }
        Map features = new LinkedHashMap(image.features().finalizedVersions());
        features.remove("metadata.version");
        json.put("features", features);
        json.put("elrEnabled", Boolean.valueOf(image.features().isElrEnabled()));
        json.put("brokers", brokers(image));
        json.put("controllers", controllers(image));
        json.put("topics", topics(image));
        json.put("configs", configs(image));
        json.put("clientQuotas", quotas(image));
        json.put("nextProducerId", Long.valueOf(image.producerIds().nextProducerId()));
        json.put("acls", acls(image));
        json.put("scram", scram(image));
        json.put("delegationTokens", tokens(image));
        return json;
    }

    static Map brokers(MetadataImage image) {
        Map json = new LinkedHashMap();
        for (Iterator i = image.cluster().brokers().values().iterator(); i.hasNext(); ) {
            BrokerRegistration broker = (BrokerRegistration) i.next();
            Map b = new LinkedHashMap();
            b.put("epoch", Long.valueOf(broker.epoch()));
            b.put("incarnationId", broker.incarnationId().toString());
            b.put("listeners", listeners(broker.listeners()));
            b.put("features", ranges(broker.supportedFeatures()));
            b.put("rack", broker.rack().orElse(null));
            b.put("fenced", Boolean.valueOf(broker.fenced()));
            b.put("inControlledShutdown", Boolean.valueOf(broker.inControlledShutdown()));
            b.put("directories", strings(broker.directories()));
            b.put("cordonedDirectories", broker.cordonedDirectories() == null ? null : strings(broker.cordonedDirectories()));
            json.put(String.valueOf(broker.id()), b);
        }
        return json;
    }

    static Map controllers(MetadataImage image) {
        Map json = new LinkedHashMap();
        for (Iterator i = image.cluster().controllers().values().iterator(); i.hasNext(); ) {
            ControllerRegistration controller = (ControllerRegistration) i.next();
            Map c = new LinkedHashMap();
            c.put("incarnationId", controller.incarnationId().toString());
            c.put("zkMigrationReady", Boolean.valueOf(controller.zkMigrationReady()));
            c.put("listeners", listeners(controller.listeners()));
            c.put("features", ranges(controller.supportedFeatures()));
            json.put(String.valueOf(controller.id()), c);
        }
        return json;
    }

    static Map listeners(Map listeners) {
        Map json = new LinkedHashMap();
        for (Iterator i = listeners.entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            Endpoint endpoint = (Endpoint) e.getValue();
            Map l = new LinkedHashMap();
            l.put("host", endpoint.host());
            l.put("port", Integer.valueOf(endpoint.port()));
            l.put("securityProtocol", Integer.valueOf(endpoint.securityProtocol().id));
            json.put(e.getKey(), l);
        }
        return json;
    }

    static Map ranges(Map features) {
        Map json = new LinkedHashMap();
        for (Iterator i = features.entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            VersionRange range = (VersionRange) e.getValue();
            json.put(e.getKey(), new int[] {range.min(), range.max()});
        }
        return json;
    }

    static Map topics(MetadataImage image) {
        Map json = new LinkedHashMap();
        Collection topics = ((Map) image.topics().topicIdToNameView()).keySet();
        for (Iterator i = topics.iterator(); i.hasNext(); ) {
            TopicImage topic = image.topics().getTopic((Uuid) i.next());
            Map partitions = new LinkedHashMap();
            for (Iterator p = topic.partitions().entrySet().iterator(); p.hasNext(); ) {
                Map.Entry e = (Map.Entry) p.next();
                partitions.put(e.getKey().toString(), partition((PartitionRegistration) e.getValue()));
            }
            Map t = new LinkedHashMap();
            t.put("id", topic.id().toString());
            t.put("partitions", partitions);
            json.put(topic.name(), t);
        }
        return json;
    }

    static Map partition(PartitionRegistration partition) {
        Map p = new LinkedHashMap();
        p.put("replicas", partition.replicas);
        p.put("isr", partition.isr);
        p.put("elr", partition.elr);
        p.put("lastKnownElr", partition.lastKnownElr);
        p.put("removingReplicas", partition.removingReplicas);
        p.put("addingReplicas", partition.addingReplicas);
        p.put("leader", Integer.valueOf(partition.leader));
        p.put("leaderEpoch", Integer.valueOf(partition.leaderEpoch));
        p.put("partitionEpoch", Integer.valueOf(partition.partitionEpoch));
        p.put("leaderRecoveryState", Integer.valueOf(partition.leaderRecoveryState.value()));
        p.put("directories", strings(Arrays.asList(partition.directories)));
        return p;
    }

    static List strings(Collection values) {
        List json = new ArrayList();
        for (Iterator i = values.iterator(); i.hasNext(); ) {
            json.add(i.next().toString());
        }
        return json;
    }

    static Map configs(MetadataImage image) {
        Map json = new LinkedHashMap();
        for (Iterator i = image.configs().resourceData().entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            ConfigResource resource = (ConfigResource) e.getKey();
            String type = resource.type().name();
            if (!json.containsKey(type)) {
                json.put(type, new LinkedHashMap());
            }
            ((Map) json.get(type)).put(resource.name(), ((ConfigurationImage) e.getValue()).data());
        }
        return json;
    }

    static List quotas(MetadataImage image) {
        List json = new ArrayList();
        for (Iterator i = image.clientQuotas().entities().entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            Map q = new LinkedHashMap();
            q.put("entity", ((ClientQuotaEntity) e.getKey()).entries());
            q.put("quotas", ((ClientQuotaImage) e.getValue()).quotas());
            json.add(q);
        }
        return json;
    }

    static Map acls(MetadataImage image) {
        Map json = new LinkedHashMap();
        for (Iterator i = image.acls().acls().entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            StandardAcl acl = (StandardAcl) e.getValue();
            Map a = new LinkedHashMap();
            a.put("resourceType", Integer.valueOf(acl.resourceType().code()));
            a.put("resourceName", acl.resourceName());
            a.put("patternType", Integer.valueOf(acl.patternType().code()));
            a.put("principal", acl.principal());
            a.put("host", acl.host());
            a.put("operation", Integer.valueOf(acl.operation().code()));
            a.put("permissionType", Integer.valueOf(acl.permissionType().code()));
            json.put(e.getKey().toString(), a);
        }
        return json;
    }

    static Map scram(MetadataImage image) {
        Map json = new LinkedHashMap();
        for (Iterator i = image.scram().mechanisms().entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            Map users = new LinkedHashMap();
            for (Iterator u = ((Map) e.getValue()).entrySet().iterator(); u.hasNext(); ) {
                Map.Entry user = (Map.Entry) u.next();
                ScramCredentialData data = (ScramCredentialData) user.getValue();
                Map c = new LinkedHashMap();
                c.put("salt", hex(data.salt()));
                c.put("storedKey", hex(data.storedKey()));
                c.put("serverKey", hex(data.serverKey()));
                c.put("iterations", Integer.valueOf(data.iterations()));
                users.put(user.getKey(), c);
            }
            json.put(((ScramMechanism) e.getKey()).mechanismName(), users);
        }
        return json;
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < bytes.length; i++) {
            text.append(Character.forDigit((bytes[i] >> 4) & 15, 16)).append(Character.forDigit(bytes[i] & 15, 16));
        }
        return text.toString();
    }

    static Map tokens(MetadataImage image) {
        Map json = new LinkedHashMap();
        for (Iterator i = image.delegationTokens().tokens().entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            TokenInformation token = ((DelegationTokenData) e.getValue()).tokenInformation();
            Map t = new LinkedHashMap();
            t.put("tokenId", token.tokenId());
            t.put("owner", token.ownerAsString());
            t.put("requester", token.tokenRequesterAsString());
            t.put("renewers", new ArrayList(token.renewersAsString()));
            t.put("issueTimestamp", Long.valueOf(token.issueTimestamp()));
            t.put("maxTimestamp", Long.valueOf(token.maxTimestamp()));
            t.put("expiryTimestamp", Long.valueOf(token.expiryTimestamp()));
            json.put(e.getKey(), t);
        }
        return json;
    }
}
