import dev.faisca.fila.ConsumeOptions;
import dev.faisca.fila.EnqueueMessage;
import dev.faisca.fila.FilaClient;
import dev.faisca.fila.FilaConsumer;
import dev.faisca.fila.Message;
import dev.faisca.fila.QueueOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Fair scheduling by a hook: a tenant with a thousand messages does not keep one with ten waiting.
 *
 * <p>java -cp target/fila-client-0.1.0.jar examples/Fairness.java [ADDRESS]
 */
public class Fairness {
    private static final String QUEUE = "java-fair";
    private static final String ON_ENQUEUE =
            """
            function on_enqueue(msg)
              return {
                fairness_key = msg.headers["tenant"],
                weight = msg.headers["plan"] == "gold" and 3 or 1,
              }
            end
            """;

    public static void main(String[] args) {
        try (FilaClient client = FilaClient.connect(args.length > 0 ? args[0] : "localhost:5555")) {
            client.createQueue(QUEUE, QueueOptions.defaults().withOnEnqueue(ON_ENQUEUE));

            List<EnqueueMessage> messages = new ArrayList<>();
            add(messages, "big", "basic", 1000);
            add(messages, "small", "basic", 10);
            add(messages, "paying", "gold", 30);
            client.enqueueMany(messages).forEach(result -> result.messageIdOrThrow());

            // The first fifty deliveries: "big" was first in line and has by far the most.
            Map<String, Integer> served = new TreeMap<>();
            int seen = 0;
            try (FilaConsumer consumer = client.consume(QUEUE, ConsumeOptions.defaults().withPrefetch(1))) {
                for (Message message : consumer) {
                    served.merge(message.fairnessKey(), 1, Integer::sum);
                    message.ack();
                    if (++seen == 50) {
                        break;
                    }
                }
            }
            served.forEach((tenant, count) -> System.out.println(tenant + ": " + count));
            client.deleteQueue(QUEUE);
        }
    }

    private static void add(List<EnqueueMessage> messages, String tenant, String plan, int count) {
        for (int n = 0; n < count; n++) {
            messages.add(EnqueueMessage.builder(QUEUE)
                    .headers(Map.of("tenant", tenant, "plan", plan))
                    .payload(tenant + " " + n)
                    .build());
        }
    }
}
