import dev.faisca.fila.EnqueueMessage;
import dev.faisca.fila.EnqueueResult;
import dev.faisca.fila.FilaClient;
import dev.faisca.fila.FilaConsumer;
import dev.faisca.fila.Message;
import dev.faisca.fila.QueueAlreadyExistsException;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * The shortest path: create a queue, enqueue, consume, ack.
 *
 * <p>java -cp target/fila-client-0.1.0.jar examples/ProduceConsume.java [ADDRESS]
 */
public class ProduceConsume {
    public static void main(String[] args) {
        try (FilaClient client = FilaClient.connect(args.length > 0 ? args[0] : "localhost:5555")) {
            try {
                client.createQueue("java-hello");
            } catch (QueueAlreadyExistsException e) {
                // An earlier run has made it.
            }

            String id = client.enqueue("java-hello", Map.of("tenant", "acme"), "hello from Java".getBytes());
            System.out.println("stored " + id);

            List<EnqueueMessage> more = Stream.of("one", "two", "three")
                    .map(text -> EnqueueMessage.builder("java-hello").payload(text).build())
                    .toList();
            for (EnqueueResult result : client.enqueueMany(more)) {
                result.messageIdOrThrow();
            }

            int left = 4;
            try (FilaConsumer consumer = client.consume("java-hello")) {
                for (Message message : consumer) {
                    System.out.println("received " + new String(message.payload()));
                    message.ack();
                    if (--left == 0) {
                        break;
                    }
                }
            }
        }
    }
}
