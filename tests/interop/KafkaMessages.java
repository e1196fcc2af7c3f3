import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads the bytes of any message by the class that Kafka's generator has made, and answers its JSON and its bytes. */
public final class KafkaMessages extends Answers {
    @Override
    Object answer(String[] fields) throws Exception {
        short version = Short.parseShort(fields[1]);
        byte[] bytes = java.util.Base64.getDecoder().decode(fields[2]);
        Class<?> type = Class.forName(fields[0]);
        Message message = (Message) type.getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        Class<?> converter = Class.forName(fields[0] + "JsonConverter");
        Object json = converter.getMethod("write", type, short.class).invoke(null, message, version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(written), cache, version);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("json", json);
        answer.put("left", buffer.remaining());
        answer.put("bytes", java.util.Base64.getEncoder().encodeToString(written.array()));
        return answer;
    }

    public static void main(String[] arguments) throws Exception {
        new KafkaMessages().serve();
    }
}
