package dev.faisca.fila.internal.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.faisca.fila.internal.Delivered;
import dev.faisca.fila.support.Spec;
import dev.faisca.fila.support.Vectors;
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@DisplayName("The golden vectors")
class VectorsTest {
    @ParameterizedTest
    @ValueSource(strings = {"control", "hot", "bulk", "admin"})
    void everyWholeMessageEncodesAndDecodes(String file) throws Exception {
        for (Map<?, ?> vector : Spec.list("vectors/" + file + ".json", "vectors")) {
            String name = (String) vector.get("name");
            int opcode = ((Long) vector.get("opcode")).intValue();
            int id = ((Long) vector.get("request_id")).intValue();
            byte[] frame = Vectors.bytes(vector.get("bytes"));
            assertEquals(vector.get("operation"), Opcodes.name(opcode), name);
            Body wanted = (Body) Vectors.body((String) vector.get("operation"), (Map<?, ?>) vector.get("body"));
            if (vector.get("decode_only") == null) {
                FrameBuffer out = new FrameBuffer(16);
                out.frame(wanted.opcode(), id, wanted.encoded(), FrameReader.FRAME_BYTES_MAX);
                assertArrayEquals(frame, out.toBytes(), name);
            }
            FrameReader.Frame read = reader(new ByteArrayInputStream(frame)).next();
            assertEquals(opcode, read.opcode(), name);
            assertEquals(id, read.requestId(), name);
            assertEquals(Vectors.dump(wanted), Vectors.dump(Bodies.decode(opcode, read.body())), name);
        }
    }

    @Test
    void everyOperationHasAVector() {
        Set<Object> seen = new HashSet<>();
        for (String file : List.of("control", "hot", "bulk", "admin")) {
            Spec.list("vectors/" + file + ".json", "vectors").forEach(vector -> seen.add(vector.get("operation")));
        }
        for (Map<?, ?> operation : Spec.operations()) {
            assertTrue(operation.get("opcode") == null || seen.contains(operation.get("name")), operation.toString());
        }
    }

    @Test
    void theFastReaderOfDeliveriesReadsWhatTheCodecReads() {
        int looked = 0;
        for (Map<?, ?> vector : Spec.list("vectors/hot.json", "vectors")) {
            if (!vector.get("operation").equals("Delivery")) {
                continue;
            }
            byte[] frame = Vectors.bytes(vector.get("bytes"));
            byte[] body = java.util.Arrays.copyOfRange(frame, 10, frame.length);
            List<Bodies.DeliveryItem> wanted = Bodies.Delivery.decode(new Decoder(body)).messages();
            List<Delivered> got = Delivered.parse(body);
            assertEquals(wanted.size(), got.size());
            for (int i = 0; i < got.size(); i++) {
                assertEquals(wanted.get(i).id(), got.get(i).id());
                assertEquals(wanted.get(i).queue(), got.get(i).queue());
                assertEquals(wanted.get(i).headers(), got.get(i).headers());
                assertArrayEquals(wanted.get(i).payload(), got.get(i).payload());
                assertEquals(wanted.get(i).fairnessKey(), got.get(i).fairnessKey());
                assertEquals(wanted.get(i).weight(), got.get(i).weight());
                assertEquals(wanted.get(i).throttleKeys(), got.get(i).throttleKeys());
                assertEquals(wanted.get(i).attemptCount(), got.get(i).attemptCount);
                assertEquals(wanted.get(i).enqueuedAtMs(), got.get(i).enqueuedAtMs);
                assertEquals(wanted.get(i).leasedAtMs(), got.get(i).leasedAtMs);
                looked++;
            }
        }
        assertTrue(looked > 0);
    }

    @Test
    void malformedBodiesAreRefusedWithTheFieldAtFault() {
        for (Map<?, ?> vector : Spec.list("vectors/malformed.json", "vectors")) {
            int opcode = ((Long) vector.get("opcode")).intValue();
            byte[] body = Vectors.bytes(vector.get("body"));
            InvalidBodyException fault = assertThrows(
                    InvalidBodyException.class, () -> Bodies.decode(opcode, body), (String) vector.get("name"));
            assertEquals(vector.get("field"), fault.field(), (String) vector.get("name"));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 7})
    void streamsAreJoinedWhateverThePiecesTheyArriveIn(int chunk) throws IOException {
        for (Map<?, ?> vector : Spec.list("vectors/streams.json", "vectors")) {
            Map<?, ?> limits = (Map<?, ?>) vector.get("limits");
            InputStream in = new Pieces(Vectors.bytes(vector.get("bytes")), chunk);
            FrameReader reader = new FrameReader(
                    in,
                    (Long) limits.get("frame_bytes_max"),
                    ((Long) limits.get("assembly_streams_max")).intValue(),
                    (Long) limits.get("assembly_bytes_max"));
            List<Object> messages = new ArrayList<>();
            List<Object> errors = new ArrayList<>();
            for (boolean going = true; going; ) {
                try {
                    FrameReader.Frame frame = reader.next();
                    messages.add(List.of((long) frame.opcode(), frame.requestId() & 0xFFFF_FFFFL, hex(frame.body())));
                } catch (FrameException e) {
                    errors.add(List.of(e.requestId() & 0xFFFF_FFFFL, e.fatal()));
                    going = !e.fatal();
                } catch (EOFException e) {
                    going = false;
                }
            }
            List<Object> wantedMessages = new ArrayList<>();
            for (Object message : (List<?>) vector.get("messages")) {
                Map<?, ?> map = (Map<?, ?>) message;
                wantedMessages.add(
                        List.of(map.get("opcode"), map.get("request_id"), hex(Vectors.bytes(map.get("body")))));
            }
            List<Object> wantedErrors = new ArrayList<>();
            for (Object error : (List<?>) vector.get("errors")) {
                Map<?, ?> map = (Map<?, ?>) error;
                wantedErrors.add(List.of(map.get("request_id"), map.get("fatal")));
            }
            assertEquals(wantedMessages, messages, (String) vector.get("name"));
            assertEquals(wantedErrors, errors, (String) vector.get("name"));
        }
    }

    @Test
    void theClientsStatesAreTheSpecifications() {
        int looked = 0;
        for (Map<?, ?> row : Spec.list("vectors/states.json", "rows")) {
            if (!row.get("side").equals("client")) {
                continue;
            }
            ClientState state = ClientState.valueOf(((String) row.get("state")).toUpperCase(java.util.Locale.ROOT));
            ClientState.Verdict verdict = state.receives(((Long) row.get("receives")).intValue());
            if (row.get("next") != null) {
                assertEquals(ClientState.valueOf(((String) row.get("next")).toUpperCase(java.util.Locale.ROOT)), verdict.next());
            } else {
                assertTrue(verdict.refused(), row.toString());
                assertEquals(row.get("fatal"), verdict.fatal(), row.toString());
            }
            looked++;
        }
        assertTrue(looked > 100);
    }

    @Test
    void aBodyLargerThanAFrameIsCutAndJoinedAgain() throws Exception {
        byte[] body = new byte[100_000];
        new java.util.Random(7).nextBytes(body);
        FrameBuffer out = new FrameBuffer(16);
        out.begin(Opcodes.ENQUEUE, 9, body.length, 1024);
        out.put(body, 0, 3);
        out.put(body, 3, body.length - 3);
        FrameReader reader = new FrameReader(new ByteArrayInputStream(out.toBytes()), 1024, 16, 1 << 20);
        assertArrayEquals(body, reader.next().body());
    }

    private static FrameReader reader(InputStream in) {
        return new FrameReader(in, FrameReader.FRAME_BYTES_MAX, 16, 128L << 20);
    }

    private static String hex(byte[] bytes) {
        return java.util.HexFormat.of().formatHex(bytes);
    }

    /** A stream that gives so many bytes at a time; 0 gives all. */
    private static final class Pieces extends ByteArrayInputStream {
        private final int most;

        Pieces(byte[] bytes, int most) {
            super(bytes);
            this.most = most;
        }

        @Override
        public synchronized int read(byte[] to, int at, int length) {
            return super.read(to, at, most == 0 ? length : Math.min(most, length));
        }
    }
}
