// Package fila is the client of the Fila message broker: fair scheduling and per-key throttling
// over FIBP, one connection for everything.
//
//	client, err := fila.Dial("localhost:5555")
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
//	id, err := client.Enqueue(ctx, "orders", map[string]string{"tenant": "acme"}, []byte("hello"))
//
//	for msg, err := range client.Consume(ctx, "orders") {
//		if err != nil {
//			return err
//		}
//		if err := handle(msg); err != nil {
//			msg.Nack(ctx, err.Error())
//			continue
//		}
//		msg.Ack(ctx)
//	}
//
// # Clients
//
// A [Client] may be shared by goroutines, and sharing one makes batching work best: calls made at the
// same time travel in the same frames ([WithBatchMode]). Every call takes a context; one without a
// deadline gets the client's call timeout ([WithCallTimeout]). Cancelling a call withdraws what has
// not been sent and never harms the calls that share its frame.
//
// # Consuming
//
// [Client.Consume] is an iterator, [Client.ConsumeFunc] runs a handler and settles by what it
// returns, and [Client.Subscribe] gives a [Consumer] with a channel, or messages one at a time and in
// batches. The three differ in form only: each is one subscription with a prefetch.
//
// # Lost connections
//
// The client reconnects by itself, with growing, jittered pauses, and subscribes its consumers again.
// What was not sent yet waits, up to its deadline. What was sent and not answered fails with
// [ErrConnectionLost], because the broker may or may not have carried it out; reads, and enqueues with
// an idempotency key, are sent again by themselves. Messages in your hands when the connection broke
// are delivered again: consumers see every message at least once. The very first connection is not
// retried: [Dial] fails at once.
//
// When another node of a cluster leads a queue, the client follows: what concerns that queue moves to
// a connection to the leader, with the same TLS settings and key.
//
// # Errors
//
// Errors have a cause to ask for with [errors.Is] (ErrQueueNotFound, ErrConnectionLost …) and details
// to ask for with [errors.As]: see [Error] and [BatchError].
package fila

// Version is the version of this module.
const Version = "0.1.0"
