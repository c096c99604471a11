package dev.faisca.fila.conformance;

import dev.faisca.fila.internal.wire.Bodies;
import dev.faisca.fila.internal.wire.Body;
import dev.faisca.fila.internal.wire.ClientState;
import dev.faisca.fila.internal.wire.FrameBuffer;
import dev.faisca.fila.internal.wire.FrameException;
import dev.faisca.fila.internal.wire.FrameReader;
import dev.faisca.fila.internal.wire.Opcodes;
import dev.faisca.fila.support.Vectors;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The golden vectors through the SDK's codecs. */
final class Codec {
    private static final int INVALID_FRAME = 14;

    private Codec() {}

    static Map<String, Object> encode(Map<String, Object> request) {
        Body body = (Body) Vectors.body((String) request.get("operation"), (Map<?, ?>) request.get("body"));
        FrameBuffer out = new FrameBuffer(64);
        out.frame(body.opcode(), ((Long) request.get("request_id")).intValue(), body.encoded(), FrameReader.FRAME_BYTES_MAX);
        return Map.of("bytes", hex(out.toBytes()));
    }

    static Map<String, Object> decode(Map<String, Object> request) throws IOException, FrameException {
        ByteArrayInputStream in = new ByteArrayInputStream(Vectors.bytes(request.get("bytes")));
        FrameReader.Frame frame = new FrameReader(in, FrameReader.FRAME_BYTES_MAX, 16, 128L << 20).next();
        return Map.of(
                "operation", Opcodes.name(frame.opcode()),
                "opcode", frame.opcode(),
                "request_id", frame.requestId() & 0xFFFF_FFFFL,
                "body", Vectors.dump(Bodies.decode(frame.opcode(), frame.body())));
    }

    static Map<String, Object> decodeBody(Map<String, Object> request) {
        byte[] body = Vectors.bytes(request.get("body"));
        for (int opcode = 0; opcode < 256; opcode++) {
            if (Opcodes.name(opcode).equals(request.get("operation"))) {
                return Map.of("body", Vectors.dump(Bodies.decode(opcode, body)));
            }
        }
        throw new IllegalArgumentException("no operation is called " + request.get("operation"));
    }

    static Map<String, Object> decodeStream(Map<String, Object> request) throws IOException {
        Map<?, ?> limits = (Map<?, ?>) request.get("limits");
        int chunk = ((Long) request.get("chunk")).intValue();
        ByteArrayInputStream in = new ByteArrayInputStream(Vectors.bytes(request.get("bytes"))) {
            @Override
            public synchronized int read(byte[] to, int at, int length) {
                return super.read(to, at, chunk == 0 ? length : Math.min(chunk, length));
            }
        };
        FrameReader reader = new FrameReader(
                in,
                (Long) limits.get("frame_bytes_max"),
                ((Long) limits.get("assembly_streams_max")).intValue(),
                (Long) limits.get("assembly_bytes_max"));
        List<Object> messages = new ArrayList<>();
        List<Object> errors = new ArrayList<>();
        while (true) {
            try {
                FrameReader.Frame frame = reader.next();
                messages.add(Map.of(
                        "opcode", frame.opcode(),
                        "request_id", frame.requestId() & 0xFFFF_FFFFL,
                        "body", hex(frame.body())));
            } catch (FrameException e) {
                errors.add(Map.of(
                        "code", INVALID_FRAME, "request_id", e.requestId() & 0xFFFF_FFFFL, "fatal", e.fatal()));
                if (e.fatal()) {
                    break;
                }
            } catch (EOFException e) {
                break;
            }
        }
        return Map.of("messages", messages, "errors", errors);
    }

    static Map<String, Object> state(Map<String, Object> request) {
        ClientState state = ClientState.valueOf(((String) request.get("state")).toUpperCase(Locale.ROOT));
        ClientState.Verdict verdict = state.receives(((Long) request.get("receives")).intValue());
        return verdict.refused()
                ? Map.of("refused", INVALID_FRAME, "fatal", verdict.fatal())
                : Map.of("next", verdict.next().name().toLowerCase(Locale.ROOT));
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
