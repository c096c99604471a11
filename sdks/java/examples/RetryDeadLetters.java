import dev.faisca.fila.BrowsedMessage;
import dev.faisca.fila.ConsumeOptions;
import dev.faisca.fila.ConsumerHandle;
import dev.faisca.fila.EnqueueMessage;
import dev.faisca.fila.FilaClient;
import dev.faisca.fila.QueueOptions;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;

/**
 * Failures: a hook retries with a pause and gives up after three attempts; dead letters are looked at and moved
 * back when the cause is mended.
 *
 * <p>java -cp target/fila-client-0.1.0.jar examples/RetryDeadLetters.java [ADDRESS]
 */
public class RetryDeadLetters {
    private static final String QUEUE = "java-retried";
    private static final String ON_FAILURE =
            """
            function on_failure(msg)
              if msg.attempts >= 3 then
                return { action = "dlq" }
              end
              return { action = "retry", delay_ms = 50 * msg.attempts }
            end
            """;

    public static void main(String[] args) throws Exception {
        try (FilaClient client = FilaClient.connect(args.length > 0 ? args[0] : "localhost:5555")) {
            client.createQueue(QUEUE, QueueOptions.defaults().withOnFailure(ON_FAILURE));
            client.enqueue(EnqueueMessage.builder(QUEUE).payload("order 7").idempotencyKey("order-7").build());

            AtomicBoolean mended = new AtomicBoolean();
            CountDownLatch failures = new CountDownLatch(3);
            CountDownLatch done = new CountDownLatch(1);
            ConsumerHandle handle = client.consume(QUEUE, ConsumeOptions.defaults().withAutoAck(true), message -> {
                if (!mended.get()) {
                    System.out.println("attempt " + (message.attemptCount() + 1) + " failed");
                    failures.countDown();
                    throw new IllegalStateException("the printer is out of paper"); // rejects the message
                }
                System.out.println("printed " + new String(message.payload()));
                done.countDown();
            });

            failures.await();
            while (client.getStats(QUEUE + ".dlq").depth() == 0) {
                Thread.sleep(20);
            }
            try (Stream<BrowsedMessage> letters = client.browse(QUEUE + ".dlq")) {
                letters.forEach(letter -> System.out.println("dead letter: " + new String(letter.payload())));
            }

            mended.set(true);
            long redriven = client.redrive(QUEUE + ".dlq", 0);
            done.await();
            System.out.println("redriven " + redriven);

            handle.cancel();
            handle.done().join();
            client.deleteQueue(QUEUE);
        }
    }
}
