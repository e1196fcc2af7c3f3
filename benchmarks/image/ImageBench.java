import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.LocalReplicaChanges;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.image.TopicsDelta;
import org.apache.kafka.image.TopicsImage;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Kafka's own TopicsImage and TopicsDelta on the workloads of benchmarks/image.
 *
 *   compile SOURCE OUT           class files of this program, made by Janino: a Java without a compiler is enough
 *   gen TOPICS CHANGES OUT       the logs that both sides read: snapshot, outage, broker, changes and singles
 *   cold SNAPSHOT.log            loads one snapshot, once, and prints what it holds
 *   memory SNAPSHOT.log          the same, and how many bytes of heap the image takes
 *   serve FOLDER                 the logs of `gen` in memory, then one request a line on stdin, one answer a line:
 *                                  run WORKLOAD LOOPS   one sample: nanoseconds a call, over LOOPS calls
 *                                  check WORKLOAD CALLS what the last of so many calls computes, as numbers to compare
 *
 * The cluster is that of Kafka's own JMH benchmarks: 10 partitions a topic, 3 replicas, 10,000 replicas a broker.
 * The language is what Janino compiles: no lambdas, casts instead of inferred types.
 */
public class ImageBench {
    static final int PARTITIONS = 10;
    static final int RF = 3;
    static final int REPLICAS_PER_BROKER = 10000;
    static final int RECORDS_PER_BATCH = 1024;
    static final int SINGLES = 4096;
    static final long TIME = 1700000000000L;
    static volatile Object sink;

    // the cluster

    static int brokers(int topics) {
        int n = (int) ((long) topics * PARTITIONS * RF / REPLICAS_PER_BROKER);
        return Math.max(3, n - n % 3);
    }

    static Uuid uuid(Random r) {
        return new Uuid(r.nextLong() & 0x7fffffffffff0fffL | 0x4000L, r.nextLong() & 0x3fffffffffffffffL | 0x8000000000000000L);
    }

    static class Data {
        final int topics;
        final int brokers;
        final Uuid[] topicId;
        final Uuid[] brokerDir;

        Data(int topics) {
            this.topics = topics;
            this.brokers = brokers(topics);
            Random r = new Random(7);
            topicId = new Uuid[topics];
            for (int i = 0; i < topics; i++) topicId[i] = uuid(r);
            brokerDir = new Uuid[brokers];
            for (int i = 0; i < brokers; i++) brokerDir[i] = uuid(r);
        }

        int partitions() {
            return topics * PARTITIONS;
        }

        int replica(int row, int k) {
            return (row + k) % brokers;
        }

        List list(int row, int[] ks) {
            ArrayList l = new ArrayList(ks.length);
            for (int i = 0; i < ks.length; i++) l.add(Integer.valueOf(replica(row, ks[i])));
            return l;
        }

        TopicRecord topic(int t) {
            return new TopicRecord().setName("topic" + t).setTopicId(topicId[t]);
        }

        PartitionRecord partition(int row) {
            List d = new ArrayList(RF);
            for (int k = 0; k < RF; k++) d.add(brokerDir[replica(row, k)]);
            return new PartitionRecord()
                .setPartitionId(row % PARTITIONS).setTopicId(topicId[row / PARTITIONS])
                .setReplicas(list(row, new int[] {0, 1, 2})).setIsr(list(row, new int[] {0, 1, 2}))
                .setRemovingReplicas(Collections.emptyList()).setAddingReplicas(Collections.emptyList())
                .setLeader(replica(row, 0)).setLeaderEpoch(0).setPartitionEpoch(0).setDirectories(d);
        }

        PartitionChangeRecord change(int row) {
            return new PartitionChangeRecord().setPartitionId(row % PARTITIONS).setTopicId(topicId[row / PARTITIONS]);
        }

        List snapshot() {
            List out = new ArrayList(topics + partitions());
            for (int t = 0; t < topics; t++) {
                out.add(topic(t));
                for (int p = 0; p < PARTITIONS; p++) out.add(partition(t * PARTITIONS + p));
            }
            return out;
        }

        /** A third of the partitions (those led from the zone of brokers 0, 3, 6, …) change leader and ISR. */
        List zone() {
            List out = new ArrayList(partitions() / 3 + 1);
            for (int row = 0; row < partitions(); row++) {
                if (replica(row, 0) % 3 == 0) out.add(change(row).setIsr(list(row, new int[] {1, 2})).setLeader(replica(row, 1)));
            }
            return out;
        }

        /** Broker 0 is gone from every ISR, and leads nothing; whole records, as Kafka's JMH benchmark has them. */
        List broker() {
            List out = new ArrayList();
            for (int row = 0; row < partitions(); row++) {
                for (int k = 0; k < RF; k++) {
                    if (replica(row, k) == 0) {
                        List isr = list(row, new int[] {0, 1, 2});
                        isr.remove(k);
                        out.add(partition(row).setIsr(isr).setLeader(((Integer) isr.get(0)).intValue()));
                    }
                }
            }
            return out;
        }

        List changes(int n) {
            Random r = new Random(42);
            List out = new ArrayList(n);
            for (int i = 0; i < n; i++) {
                int row = r.nextInt(partitions());
                int kind = r.nextInt(3);
                if (kind == 0) out.add(change(row).setIsr(list(row, new int[] {0, 1})));
                else if (kind == 1) out.add(change(row).setIsr(list(row, new int[] {0, 1, 2})).setLeader(replica(row, r.nextInt(3))));
                else out.add(change(row).setIsr(list(row, new int[] {1, 2})).setLeader(replica(row, 1)));
            }
            return out;
        }

        List singles() {
            Random r = new Random(1);
            List out = new ArrayList(SINGLES);
            for (int i = 0; i < SINGLES; i++) {
                int row = r.nextInt(partitions());
                out.add(change(row).setIsr(list(row, new int[] {0, 1})).setLeader(replica(row, 1)));
            }
            return out;
        }
    }

    // records, bytes and images

    static void replay(TopicsDelta d, ApiMessage m) {
        if (m instanceof PartitionChangeRecord) d.replay((PartitionChangeRecord) m);
        else if (m instanceof PartitionRecord) d.replay((PartitionRecord) m);
        else if (m instanceof TopicRecord) d.replay((TopicRecord) m);
        else throw new IllegalArgumentException(m.toString());
    }

    static TopicsDelta delta(TopicsImage image, List records) {
        TopicsDelta d = new TopicsDelta(image);
        for (int i = 0; i < records.size(); i++) replay(d, (ApiMessage) records.get(i));
        return d;
    }

    static byte[] encode(ApiMessage m) {
        ApiMessageAndVersion v = new ApiMessageAndVersion(m, m.highestSupportedVersion());
        ObjectSerializationCache c = new ObjectSerializationCache();
        ByteBuffer b = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(v, c));
        MetadataRecordSerde.INSTANCE.write(v, c, new ByteBufferAccessor(b));
        return b.array();
    }

    static void put(OutputStream out, ByteBuffer bytes) throws Exception {
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        out.write(copy);
    }

    static void writeLog(String folder, String name, List records) throws Exception {
        OutputStream out = new BufferedOutputStream(new FileOutputStream(new File(folder, name + ".log")), 1 << 20);
        long offset = 1;
        if (name.equals("snapshot")) {
            SnapshotHeaderRecord header = new SnapshotHeaderRecord().setVersion((short) 0).setLastContainedLogTimestamp(TIME);
            put(out, MemoryRecords.withSnapshotHeaderRecord(0L, TIME, 1, ByteBuffer.allocate(256), header).buffer());
        } else {
            LeaderChangeMessage change = new LeaderChangeMessage().setLeaderId(3000);
            put(out, MemoryRecords.withLeaderChangeMessage(0L, TIME, 1, ByteBuffer.allocate(256), change).buffer());
        }
        for (int i = 0; i < records.size(); i += RECORDS_PER_BATCH) {
            int n = Math.min(RECORDS_PER_BATCH, records.size() - i);
            SimpleRecord[] rs = new SimpleRecord[n];
            for (int k = 0; k < n; k++) rs[k] = new SimpleRecord(TIME, null, encode((ApiMessage) records.get(i + k)));
            put(out, MemoryRecords.withRecords(offset, Compression.NONE, 1, rs).buffer());
            offset += n;
        }
        out.close();
    }

    static RecordsIterator iterator(Records records) {
        return new RecordsIterator(
            records, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), 8 * 1024 * 1024, true, new LogContext());
    }

    /** A delta over `base` of a log's bytes, CRCs checked. */
    static TopicsDelta read(Records records, TopicsImage base) {
        TopicsDelta d = new TopicsDelta(base);
        RecordsIterator it = iterator(records);
        while (it.hasNext()) {
            List messages = ((Batch) it.next()).records();
            for (int i = 0; i < messages.size(); i++) replay(d, ((ApiMessageAndVersion) messages.get(i)).message());
        }
        it.close();
        return d;
    }

    static TopicsImage load(byte[] raw, TopicsImage base) {
        return read(MemoryRecords.readableRecords(ByteBuffer.wrap(raw)), base).apply();
    }

    static TopicsImage loadFile(String file) throws Exception {
        FileRecords f = FileRecords.open(new File(file), false);
        TopicsImage image = read(f, TopicsImage.EMPTY).apply();
        f.close();
        return image;
    }

    static List decode(byte[] raw) {
        List out = new ArrayList();
        RecordsIterator it = iterator(MemoryRecords.readableRecords(ByteBuffer.wrap(raw)));
        while (it.hasNext()) {
            List messages = ((Batch) it.next()).records();
            for (int i = 0; i < messages.size(); i++) out.add(((ApiMessageAndVersion) messages.get(i)).message());
        }
        it.close();
        return out;
    }

    // what both sides must agree on

    static long sum(PartitionRegistration p) {
        long sum = 31L * p.leader + 7L * p.leaderEpoch + p.partitionEpoch + 3L * p.isr.length;
        for (int i = 0; i < p.replicas.length; i++) {
            sum += 5L * (i + 1) * p.replicas[i] + (i + 1) * (p.directories[i].getLeastSignificantBits() & 0xffffL);
        }
        return sum;
    }

    static Map numbers(TopicsImage image) {
        long partitions = 0;
        long sum = 0;
        for (Iterator t = image.topicsById().values().iterator(); t.hasNext(); ) {
            TopicImage topic = (TopicImage) t.next();
            long low = topic.id().getLeastSignificantBits() & 0xffffL;
            if (image.getTopic(topic.name()) != topic) throw new IllegalStateException(topic.name());
            for (Iterator p = topic.partitions().entrySet().iterator(); p.hasNext(); ) {
                Map.Entry e = (Map.Entry) p.next();
                partitions++;
                sum += sum((PartitionRegistration) e.getValue()) + low * (((Integer) e.getKey()).intValue() + 1);
            }
        }
        Map m = new LinkedHashMap();
        m.put("topics", Integer.valueOf(image.topicsById().size()));
        m.put("partitions", Long.valueOf(partitions));
        m.put("sum", Long.valueOf(sum));
        return m;
    }

    static Map numbers(LocalReplicaChanges c) {
        Map m = new LinkedHashMap();
        m.put("deletes", Integer.valueOf(c.deletes().size()));
        m.put("electedLeaders", Integer.valueOf(c.electedLeaders().size()));
        m.put("leaders", Integer.valueOf(c.leaders().size()));
        m.put("followers", Integer.valueOf(c.followers().size()));
        m.put("topicIds", Integer.valueOf(c.topicIds().size()));
        m.put("directoryIds", Integer.valueOf(c.directoryIds().size()));
        long sum = 0;
        for (Iterator i = c.leaders().values().iterator(); i.hasNext(); ) sum += sum(((LocalReplicaChanges.PartitionInfo) i.next()).partition());
        for (Iterator i = c.followers().values().iterator(); i.hasNext(); ) sum -= sum(((LocalReplicaChanges.PartitionInfo) i.next()).partition());
        for (Iterator i = c.directoryIds().values().iterator(); i.hasNext(); ) sum += ((Uuid) i.next()).getLeastSignificantBits() & 0xffffL;
        m.put("sum", Long.valueOf(sum));
        return m;
    }

    static Map numbers(Object result) {
        if (result instanceof TopicsImage) return numbers((TopicsImage) result);
        if (result instanceof LocalReplicaChanges) return numbers((LocalReplicaChanges) result);
        Map m = new LinkedHashMap();
        m.put("sum", Long.valueOf(((Number) result).longValue()));
        return m;
    }

    // the workloads

    abstract static class Workload {
        abstract Object run() throws Exception;
    }

    static Map workloads(String folder) throws Exception {
        final byte[] snapshotLog = Files.readAllBytes(Paths.get(folder, new String[] {"snapshot.log"}));
        final byte[] outageLog = Files.readAllBytes(Paths.get(folder, new String[] {"outage.log"}));
        final byte[] changesLog = Files.readAllBytes(Paths.get(folder, new String[] {"changes.log"}));
        final List snapshot = decode(snapshotLog);
        final List outage = decode(outageLog);
        final List singles = decode(Files.readAllBytes(Paths.get(folder, new String[] {"singles.log"})));
        final TopicsImage base = load(snapshotLog, TopicsImage.EMPTY);
        final int topics = base.topicsById().size();
        final int brokers = brokers(topics);
        final TopicsDelta broker = delta(base, decode(Files.readAllBytes(Paths.get(folder, new String[] {"broker.log"}))));
        final TopicsDelta bulk = delta(base, outage);
        final TopicsDelta whole = delta(TopicsImage.EMPTY, snapshot);
        final TopicsImage changed = delta(base, singles.subList(0, 1)).apply();
        final TopicsImage shared = delta(base, snapshot.subList(snapshot.size() - 1, snapshot.size())).apply();
        final String[] names = new String[SINGLES];
        for (int i = 0; i < SINGLES; i++) names[i] = "topic" + (int) ((i * 7919L) % topics);
        Map w = new HashMap();
        w.put("load_wire", new Workload() {
            Object run() { return load(snapshotLog, TopicsImage.EMPTY); }
        });
        w.put("load_records", new Workload() {
            Object run() { return delta(TopicsImage.EMPTY, snapshot).apply(); }
        });
        w.put("outage_wire", new Workload() {
            Object run() { return load(outageLog, base); }
        });
        w.put("broker_apply", new Workload() {
            Object run() { return broker.apply(); }
        });
        w.put("bulk_local_changes", new Workload() {
            int next = 0;
            Object run() { return bulk.localChanges(1 + 3 * (next++ % (brokers / 3))); }
        });
        w.put("load_local_changes", new Workload() {
            int next = 0;
            Object run() { return whole.localChanges(next++ % brokers); }
        });
        w.put("changes_wire", new Workload() {
            Object run() { return load(changesLog, base); }
        });
        w.put("one_change", new Workload() {
            int next = 0;
            TopicsImage image = base;
            Object run() {
                TopicsDelta x = new TopicsDelta(image);
                x.replay((PartitionChangeRecord) singles.get(next++ & (SINGLES - 1)));
                image = x.apply();
                return image;
            }
        });
        w.put("one_change_local_changes", new Workload() {
            int next = 0;
            TopicsImage image = base;
            Object run() {
                PartitionChangeRecord change = (PartitionChangeRecord) singles.get(next++ & (SINGLES - 1));
                TopicsDelta x = new TopicsDelta(image);
                x.replay(change);
                image = x.apply();
                return x.localChanges(change.leader());
            }
        });
        w.put("lookup", new Workload() {
            int next = 0;
            Object run() {
                int i = next++ & (SINGLES - 1);
                return Integer.valueOf(((PartitionRegistration) base.getTopic(names[i]).partitions().get(Integer.valueOf(i % PARTITIONS))).leader);
            }
        });
        w.put("iterate_topic", new Workload() {
            int next = 0;
            Object run() {
                int sum = 0;
                Iterator p = base.getTopic(names[next++ & (SINGLES - 1)]).partitions().values().iterator();
                while (p.hasNext()) sum += ((PartitionRegistration) p.next()).leader;
                return Integer.valueOf(sum);
            }
        });
        w.put("diff", new Workload() {
            Object run() {
                List diff = new ArrayList();
                for (Iterator i = changed.topicsById().entrySet().iterator(); i.hasNext(); ) {
                    Map.Entry e = (Map.Entry) i.next();
                    TopicImage after = (TopicImage) e.getValue();
                    TopicImage before = base.getTopic((Uuid) e.getKey());
                    if (before == after) continue;
                    for (Iterator p = after.partitions().entrySet().iterator(); p.hasNext(); ) {
                        Map.Entry pe = (Map.Entry) p.next();
                        if (!pe.getValue().equals(before.partitions().get(pe.getKey()))) diff.add(pe.getValue());
                    }
                }
                return Integer.valueOf(diff.size());
            }
        });
        w.put("equality", new Workload() {
            Object run() { return Integer.valueOf(base.equals(shared) ? 1 : 0); }
        });
        return w;
    }

    static void serve(String folder) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        Map workloads = workloads(folder);
        out.println("{\"ready\": 1}");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            Workload workload = (Workload) workloads.get(words[1]);
            int loops = Integer.parseInt(words[2]);
            if (words[0].equals("check")) {
                for (int i = 1; i < loops; i++) workload.run();
                out.println(json(numbers(workload.run())));
                continue;
            }
            com.sun.management.OperatingSystemMXBean os =
                (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            long cpu = os.getProcessCpuTime();
            long start = System.nanoTime();
            for (int i = 0; i < loops; i++) sink = workload.run();
            long end = System.nanoTime();
            cpu = os.getProcessCpuTime() - cpu;
            sink = null;
            out.println("{\"ns\": " + (end - start) / (double) loops + ", \"cpu_ns\": " + cpu / (double) loops + "}");
        }
    }

    static String json(Map m) {
        StringBuilder b = new StringBuilder("{");
        for (Iterator i = m.entrySet().iterator(); i.hasNext(); ) {
            Map.Entry e = (Map.Entry) i.next();
            b.append(b.length() > 1 ? ", \"" : "\"").append(e.getKey()).append("\": ").append(e.getValue());
        }
        return b.append("}").toString();
    }

    static long used() throws Exception {
        for (int i = 0; i < 4; i++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    public static void main(String[] a) throws Exception {
        if (a[0].equals("compile")) {
            org.codehaus.janino.SimpleCompiler compiler = new org.codehaus.janino.SimpleCompiler();
            compiler.cookFile(new File(a[1]));
            for (Iterator i = compiler.getBytecodes().entrySet().iterator(); i.hasNext(); ) {
                Map.Entry e = (Map.Entry) i.next();
                FileOutputStream out = new FileOutputStream(new File(a[2], e.getKey() + ".class"));
                out.write((byte[]) e.getValue());
                out.close();
            }
        } else if (a[0].equals("gen")) {
            Data d = new Data(Integer.parseInt(a[1]));
            writeLog(a[3], "snapshot", d.snapshot());
            writeLog(a[3], "outage", d.zone());
            writeLog(a[3], "broker", d.broker());
            writeLog(a[3], "changes", d.changes(Integer.parseInt(a[2])));
            writeLog(a[3], "singles", d.singles());
        } else if (a[0].equals("cold")) {
            long start = System.nanoTime();
            TopicsImage image = loadFile(a[1]);
            long end = System.nanoTime();
            System.out.println("{\"topics\": " + image.topicsById().size() + ", \"load_ns\": " + (end - start) + "}");
        } else if (a[0].equals("memory")) {
            loadFile(a[1]);
            long before = used();
            TopicsImage image = loadFile(a[1]);
            long bytes = used() - before;
            System.out.println("{\"topics\": " + image.topicsById().size() + ", \"bytes\": " + bytes + "}");
        } else if (a[0].equals("serve")) {
            serve(a[1]);
        } else {
            throw new IllegalArgumentException(a[0]);
        }
    }
}
