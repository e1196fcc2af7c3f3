import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.loader.LoaderManifest;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.image.publisher.MetadataPublisher;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.BatchReader;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.fault.FaultHandler;

/**
 * Kafka's own MetadataLoader on the log of benchmarks/loader: one request a line on stdin (fields apart by tabs), one
 * JSON object a line on stdout.
 *
 *   catchup FILE END   from handing over a segment to the first update of a publisher, in nanoseconds
 *   latency COUNT      from handing over one record to the publisher's update, COUNT times, on a small image
 */
public class LoaderBench {
    static class Published implements MetadataPublisher {
        final LinkedBlockingQueue images = new LinkedBlockingQueue();

        public String name() {
            return "published";
        }

        public void onMetadataUpdate(MetadataDelta delta, MetadataImage image, LoaderManifest manifest) {
            images.add(image);
        }

        public void onControllerChange(LeaderAndEpoch leader) {
        }

        public void close() {
        }
    }

    static class Reader implements BatchReader {
        private final RecordsIterator batches;

        Reader(RecordsIterator batches) {
            this.batches = batches;
        }

        public boolean hasNext() {
            return batches.hasNext();
        }

        public Object next() {
            return batches.next();
        }

        public long baseOffset() {
            return 0L;
        }

        public OptionalLong lastOffset() {
            return OptionalLong.empty();
        }

        public void close() {
            batches.close();
        }
    }

    static class One implements BatchReader {
        private Batch batch;

        One(Batch batch) {
            this.batch = batch;
        }

        public boolean hasNext() {
            return batch != null;
        }

        public Object next() {
            Batch next = batch;
            batch = null;
            return next;
        }

        public long baseOffset() {
            return 0L;
        }

        public OptionalLong lastOffset() {
            return OptionalLong.empty();
        }

        public void close() {
        }
    }

    static MetadataLoader loader(final long end) {
        return new MetadataLoader.Builder()
            .setFaultHandler(new FaultHandler() {
                public RuntimeException handleFault(String message, Throwable cause) {
                    cause.printStackTrace();
                    return new RuntimeException(message, cause);
                }
            })
            .setHighWaterMarkAccessor(new Supplier() {
                public Object get() {
                    return OptionalLong.of(end);
                }
            })
            .build();
    }

    static Map catchUp(String file, long end) throws Exception {
        FileRecords records = FileRecords.open(new File(file), false);
        Published published = new Published();
        MetadataLoader loader = loader(end);
        loader.installPublishers(Collections.singletonList(published)).get();
        long start = System.nanoTime();
        loader.handleCommit(new Reader(new RecordsIterator(
            records, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), 8 * 1024 * 1024, true, new LogContext())));
        MetadataImage image = (MetadataImage) published.images.take();
        long taken = System.nanoTime() - start;
        loader.close();
        records.close();
        Map answer = new LinkedHashMap();
        answer.put("ns", Long.valueOf(taken));
        answer.put("topics", Integer.valueOf(image.topics().topicsById().size()));
        return answer;
    }

    static Batch batch(long offset, Object message) {
        List records = new ArrayList();
        records.add(new ApiMessageAndVersion((org.apache.kafka.common.protocol.ApiMessage) message, (short) 0));
        return Batch.data(offset, 1, 1700000000000L, 100, records);
    }

    static Map latency(int count) throws Exception {
        Published published = new Published();
        MetadataLoader loader = loader(1L);
        loader.installPublishers(Collections.singletonList(published)).get();
        loader.handleCommit(new One(batch(0L, new org.apache.kafka.common.metadata.FeatureLevelRecord()
            .setName("metadata.version").setFeatureLevel((short) 25))));
        published.images.take();
        List taken = new ArrayList();
        for (int i = 1; i <= count; i++) {
            Batch next = batch((long) i, new TopicRecord().setName("t" + i).setTopicId(new Uuid(7L, (long) i)));
            long start = System.nanoTime();
            loader.handleCommit(new One(next));
            published.images.take();
            taken.add(Long.valueOf(System.nanoTime() - start));
        }
        loader.close();
        Map answer = new LinkedHashMap();
        answer.put("ns", taken);
        return answer;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        ObjectMapper json = new ObjectMapper();
        String line = in.readLine();
        while (line != null) {
            String[] request = line.split("\t");
            Object answer = request[0].equals("catchup")
                ? (Object) catchUp(request[1], Long.parseLong(request[2]))
                : (Object) latency(Integer.parseInt(request[1]));
            out.println(json.writeValueAsString(answer));
            line = in.readLine();
        }
    }
}
