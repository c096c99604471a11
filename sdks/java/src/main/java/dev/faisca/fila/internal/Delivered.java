package dev.faisca.fila.internal;

import dev.faisca.fila.internal.wire.Decoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** One delivered message as a slice of its frame's body; fields are decoded when they are asked for. */
public final class Delivered {
    private static final int SMALLEST = 38;

    private final byte[] body;
    private final int idAt;
    private final int idBytes;
    private final int queueAt;
    private final int queueBytes;
    private final int headersAt;
    private final int payloadAt;
    private final int payloadBytes;
    private final int laneAt; // fairness key, weight, throttle keys
    public final long attemptCount;
    public final long enqueuedAtMs;
    public final long leasedAtMs;

    private Delivered(byte[] body, Decoder from) {
        this.body = body;
        idAt = from.skipString("id");
        idBytes = from.position() - idAt;
        queueAt = from.skipString("queue");
        queueBytes = from.position() - queueAt;
        headersAt = from.position();
        int headers = from.u16("headers");
        for (int i = 0; i < headers; i++) {
            from.skipString("headers");
            from.skipString("headers");
        }
        payloadBytes = from.bytesLength("payload");
        payloadAt = from.position();
        from.skip("payload", payloadBytes);
        laneAt = from.position();
        from.skipString("fairness_key");
        from.u32("weight");
        int throttleKeys = from.u16("throttle_keys");
        for (int i = 0; i < throttleKeys; i++) {
            from.skipString("throttle_keys");
        }
        attemptCount = from.u32("attempt_count");
        enqueuedAtMs = from.u64("enqueued_at_ms");
        leasedAtMs = from.u64("leased_at_ms");
    }

    /** The messages of a Delivery's body. */
    public static List<Delivered> parse(byte[] body) {
        Decoder from = new Decoder(body);
        int count = from.count("messages", from.u32("messages"), SMALLEST);
        List<Delivered> messages = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            messages.add(new Delivered(body, from));
        }
        return messages;
    }

    public String id() {
        return new String(body, idAt, idBytes, StandardCharsets.UTF_8);
    }

    public String queue() {
        return new String(body, queueAt, queueBytes, StandardCharsets.UTF_8);
    }

    public Map<String, String> headers() {
        return new Decoder(body, headersAt).map("headers");
    }

    public byte[] payload() {
        return Arrays.copyOfRange(body, payloadAt, payloadAt + payloadBytes);
    }

    /** The payload in place, not to be written to. */
    public ByteBuffer payloadBuffer() {
        return ByteBuffer.wrap(body, payloadAt, payloadBytes).slice().asReadOnlyBuffer();
    }

    public int payloadBytes() {
        return payloadBytes;
    }

    public String fairnessKey() {
        return new Decoder(body, laneAt).string("fairness_key");
    }

    public long weight() {
        Decoder from = new Decoder(body, laneAt);
        from.skipString("fairness_key");
        return from.u32("weight");
    }

    public List<String> throttleKeys() {
        Decoder from = new Decoder(body, laneAt);
        from.skipString("fairness_key");
        from.u32("weight");
        return from.strings("throttle_keys");
    }
}
