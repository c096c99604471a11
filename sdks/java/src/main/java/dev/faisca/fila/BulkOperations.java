package dev.faisca.fila;

import dev.faisca.fila.internal.BulkQueries;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Lease batches and snapshots: leases without a consumer, and reading without taking. */
public abstract sealed class BulkOperations extends AdminOperations permits FilaClient {
    BulkOperations(ClientCore core) {
        super(core);
    }

    /**
     * Acknowledges a lease batch.
     *
     * @param queue the queue
     * @param name the batch's exact name
     * @return what was acted on
     * @throws BatchNotFoundException if it is not open
     */
    public BatchCount ackBatch(String queue, String name) {
        return ask(BulkQueries.ackBatch(queue, name, null));
    }

    /**
     * Acknowledges every open lease batch of a stream with a smaller number; none is no error.
     *
     * @param queue the queue
     * @param stream what stands before the first stroke of the names
     * @param below batches with a smaller number
     * @return what was acted on
     */
    public BatchCount ackBatchesBelow(String queue, String stream, long below) {
        return ask(BulkQueries.ackBatch(queue, stream, below));
    }

    /**
     * Lets a lease batch end later.
     *
     * @param queue the queue
     * @param name the batch's exact name
     * @param visibility from now; zero for the queue's visibility timeout
     * @return what was acted on
     * @throws BatchNotFoundException if it is not open
     */
    public BatchCount extendBatch(String queue, String name, Duration visibility) {
        return ask(BulkQueries.extendBatch(queue, name, visibility, null));
    }

    /**
     * Lets every open lease batch of a stream with a smaller number end later.
     *
     * @param queue the queue
     * @param stream what stands before the first stroke of the names
     * @param visibility from now; zero for the queue's visibility timeout
     * @param below batches with a smaller number
     * @return what was acted on
     */
    public BatchCount extendBatchesBelow(String queue, String stream, Duration visibility, long below) {
        return ask(BulkQueries.extendBatch(queue, stream, visibility, below));
    }

    /**
     * Lets a message's lease end later, or sooner.
     *
     * @param queue the queue it was delivered from
     * @param messageId the message
     * @param visibility from now; zero for the queue's visibility timeout
     * @throws MessageNotFoundException if it is not leased here
     */
    public void extend(String queue, String messageId, Duration visibility) {
        SettleResult result = extendMany(queue, List.of(messageId), visibility).get(0);
        if (result.exception() != null) {
            throw result.exception();
        }
    }

    /**
     * Lets the leases of many messages end later, or sooner.
     *
     * @param queue the queue they were delivered from
     * @param messageIds the messages
     * @param visibility from now; zero for the queue's visibility timeout
     * @return one result for each, in order
     */
    public List<SettleResult> extendMany(String queue, List<String> messageIds, Duration visibility) {
        List<SettleResult> results = new ArrayList<>(messageIds.size());
        for (int at = 0; at < messageIds.size(); at += BulkQueries.EXTEND_IDS) {
            List<String> some = messageIds.subList(at, Math.min(messageIds.size(), at + BulkQueries.EXTEND_IDS));
            results.addAll(ask(BulkQueries.extend(queue, List.copyOf(some), visibility)));
        }
        return results;
    }

    /**
     * Hands the messages of a lease batch back, without a counted attempt.
     *
     * @param queue the queue
     * @param name the batch's exact name
     * @return what was acted on
     * @throws BatchNotFoundException if it is not open
     */
    public BatchCount releaseBatch(String queue, String name) {
        return ask(BulkQueries.releaseBatch(queue, name, null));
    }

    /**
     * Hands back the messages of every open lease batch of a stream with a smaller number.
     *
     * @param queue the queue
     * @param stream what stands before the first stroke of the names
     * @param below batches with a smaller number
     * @return what was acted on
     */
    public BatchCount releaseBatchesBelow(String queue, String stream, long below) {
        return ask(BulkQueries.releaseBatch(queue, stream, below));
    }

    /**
     * Lists the open lease batches of a queue, oldest first.
     *
     * @param queue the queue
     * @return the batches
     */
    public List<OpenBatch> listBatches(String queue) {
        return ask(BulkQueries.listBatches(queue));
    }

    /**
     * Takes a snapshot of a queue, to be read in ranges by parallel readers for ten minutes.
     *
     * @param queue the queue
     * @param parts about how many ranges; from 1 to 1,024
     * @return the snapshot; close it when done
     * @throws ChannelFullException if the broker has too many
     */
    public Snapshot browseOpen(String queue, int parts) {
        return browseOpen(queue, BrowseOptions.defaults().withParts(parts));
    }

    /**
     * Takes a snapshot of a queue, or of one fairness key in it, to be read in ranges by parallel readers.
     *
     * @param queue the queue
     * @param options which messages, how many ranges, for how long
     * @return the snapshot; close it when done
     * @throws ChannelFullException if the broker has too many
     */
    public Snapshot browseOpen(String queue, BrowseOptions options) {
        return ask(BulkQueries.browse(queue, options));
    }

    /**
     * Reads a page of a snapshot.
     *
     * @param queue the queue
     * @param snapshot the snapshot's token
     * @param start where to begin: a range's start, or the last page's next
     * @param end the range's end
     * @param states what to look at
     * @return the page
     * @throws SnapshotExpiredException if its time is up
     */
    public BrowsePage browsePage(String queue, String snapshot, byte[] start, byte[] end, Set<BrowsedMessage.State> states) {
        return ask(BulkQueries.browsePage(queue, snapshot, start, end, states));
    }

    /**
     * Gives a snapshot up.
     *
     * @param queue the queue
     * @param snapshot the snapshot's token
     */
    public void browseClose(String queue, String snapshot) {
        ask(BulkQueries.browseClose(queue, snapshot));
    }
}
