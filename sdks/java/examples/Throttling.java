import dev.faisca.fila.EnqueueMessage;
import dev.faisca.fila.FilaClient;
import dev.faisca.fila.FilaConsumer;
import dev.faisca.fila.Message;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Rate limits by key: calls to one provider are held to five per second, others are not.
 *
 * <p>java -cp target/fila-client-0.1.0.jar examples/Throttling.java [ADDRESS]
 */
public class Throttling {
    private static final String QUEUE = "java-throttled";

    public static void main(String[] args) {
        try (FilaClient client = FilaClient.connect(args.length > 0 ? args[0] : "localhost:5555")) {
            client.createQueue(QUEUE);
            client.setConfig("throttle.java:slow", "5,1"); // rate per second, burst

            for (int n = 0; n < 12; n++) {
                String provider = n < 6 ? "slow" : "fast";
                client.enqueue(EnqueueMessage.builder(QUEUE)
                        .payload(provider)
                        .fairnessKey(provider)
                        .throttleKeys("java:" + provider)
                        .build());
            }

            List<String> order = new ArrayList<>();
            long began = System.nanoTime();
            try (FilaConsumer consumer = client.consume(QUEUE)) {
                for (Message message : consumer) {
                    order.add(new String(message.payload()));
                    message.ack();
                    if (order.size() == 12) {
                        break;
                    }
                }
            }
            Duration took = Duration.ofNanos(System.nanoTime() - began);
            System.out.println("the first is " + order.get(0) + ", the last is " + order.get(11));
            System.out.println("six slow ones took " + (took.toMillis() >= 800 ? "about a second" : "no time at all"));

            client.setConfig("throttle.java:slow", "");
            client.deleteQueue(QUEUE);
        }
    }
}
