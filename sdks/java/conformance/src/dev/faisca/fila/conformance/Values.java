package dev.faisca.fila.conformance;

import dev.faisca.fila.EnqueueMessage;
import dev.faisca.fila.Message;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Values of the protocol to the SDK's, and back. */
final class Values {
    private static final int PAYLOAD_SHOWN_MAX = 4096;

    private Values() {}

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return value == null ? Map.of() : (Map<String, Object>) value;
    }

    static List<String> strings(Object value) {
        List<String> strings = new ArrayList<>();
        if (value != null) {
            ((List<?>) value).forEach(one -> strings.add((String) one));
        }
        return strings;
    }

    static EnqueueMessage message(Map<String, Object> fields) {
        Map<String, String> headers = new LinkedHashMap<>();
        object(fields.get("headers")).forEach((name, text) -> headers.put(name, (String) text));
        EnqueueMessage.Builder builder =
                EnqueueMessage.builder((String) fields.get("queue")).headers(headers).payload(payload(fields.get("payload")));
        if (fields.get("delay_ms") != null) {
            builder.delay(Duration.ofMillis((Long) fields.get("delay_ms")));
        }
        if (fields.get("idempotency_key") != null) {
            builder.idempotencyKey((String) fields.get("idempotency_key"));
        }
        if (fields.get("fairness_key") != null) {
            builder.fairnessKey((String) fields.get("fairness_key"));
        }
        if (fields.get("weight") != null) {
            builder.weight((Long) fields.get("weight"));
        }
        if (fields.get("throttle_keys") != null) {
            builder.throttleKeys(strings(fields.get("throttle_keys")).toArray(new String[0]));
        }
        return builder.build();
    }

    static Map<String, Object> delivered(Message message) {
        byte[] payload = message.payload();
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("id", message.id());
        fields.put("queue", message.queue());
        fields.put("headers", message.headers());
        fields.put("payload", payload.length > PAYLOAD_SHOWN_MAX ? null : Base64.getEncoder().encodeToString(payload));
        fields.put("size", payload.length);
        fields.put("sha256", sha256(payload));
        fields.put("fairness_key", message.fairnessKey());
        fields.put("weight", message.weight());
        fields.put("throttle_keys", message.throttleKeys());
        fields.put("attempt_count", message.attemptCount());
        fields.put("enqueued_at_ms", message.enqueuedAt().toEpochMilli());
        fields.put("leased_at_ms", message.leasedAt().toEpochMilli());
        fields.put("traceparent", message.traceparent().orElse(null));
        return fields;
    }

    private static byte[] payload(Object value) {
        if (value == null) {
            return new byte[0];
        }
        if (value instanceof String text) {
            return Base64.getDecoder().decode(text);
        }
        Map<?, ?> repeated = (Map<?, ?>) value;
        byte[] piece = Base64.getDecoder().decode((String) repeated.get("repeat"));
        int count = ((Long) repeated.get("count")).intValue();
        byte[] payload = new byte[piece.length * count];
        for (int i = 0; i < count; i++) {
            System.arraycopy(piece, 0, payload, i * piece.length, piece.length);
        }
        return payload;
    }

    private static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
