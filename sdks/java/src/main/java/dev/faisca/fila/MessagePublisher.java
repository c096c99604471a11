package dev.faisca.fila;

import dev.faisca.fila.internal.Delivered;
import dev.faisca.fila.internal.Stream;
import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Every subscriber has a subscription of its own at the broker, and gets as many messages as it requests. */
final class MessagePublisher implements Flow.Publisher<Message> {
    private final ClientCore core;
    private final String queue;
    private final ConsumeOptions options;

    MessagePublisher(ClientCore core, String queue, ConsumeOptions options) {
        this.core = core;
        this.queue = queue;
        this.options = options;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Message> subscriber) {
        Objects.requireNonNull(subscriber, "subscriber");
        Subscription subscription = new Subscription(subscriber);
        subscriber.onSubscribe(subscription);
        subscription.open();
    }

    /** Signals are given one after the other: by the task on the executor that saw `signals` leave 0. */
    private final class Subscription implements Flow.Subscription, Runnable {
        private final Flow.Subscriber<? super Message> subscriber;
        private final AtomicLong demand = new AtomicLong();
        private final AtomicInteger signals = new AtomicInteger();
        private volatile Stream stream;
        private volatile FilaException refusal;
        private volatile boolean cancelled;
        private volatile boolean wrongRequest;
        private boolean over; // only the signalling task uses it

        Subscription(Flow.Subscriber<? super Message> subscriber) {
            this.subscriber = subscriber;
        }

        void open() {
            if (cancelled) {
                return;
            }
            try {
                stream = core.engine().subscribe(queue, options.prefetch(), options.heartbeat(), this::signal);
                if (cancelled) {
                    stream.close();
                }
            } catch (FilaException e) {
                refusal = e;
            }
            signal();
        }

        @Override
        public void request(long count) {
            if (count <= 0) {
                wrongRequest = true;
            } else {
                demand.accumulateAndGet(count, (had, more) -> had + more < 0 ? Long.MAX_VALUE : had + more);
            }
            signal();
        }

        @Override
        public void cancel() {
            cancelled = true;
            Stream open = stream;
            if (open != null) {
                open.close();
            }
        }

        private void signal() {
            if (signals.getAndIncrement() == 0) {
                try {
                    core.engine().executor().execute(this);
                } catch (RejectedExecutionException e) {
                    giveUp(e);
                }
            }
        }

        /** Without the executor nothing but the end can be signalled, and that by this thread. */
        private void giveUp(RejectedExecutionException e) {
            if (refusal == null) {
                refusal = new ClientClosedException("the executor of the consumer of queue \"" + queue + "\" has ended", e);
            }
            Stream open = stream;
            if (open != null) {
                open.close();
            }
            run();
        }

        @Override
        public void run() {
            int seen = signals.get();
            do {
                try {
                    deliver();
                } catch (RuntimeException e) {
                    over = true; // a subscriber must not throw; it gets nothing more
                    cancel();
                    core.engine().log(System.Logger.Level.ERROR, "a subscriber of queue \"" + queue + "\" failed", e);
                }
                seen = signals.addAndGet(-seen);
            } while (seen != 0);
        }

        private void deliver() {
            if (over || cancelled) {
                return;
            }
            if (wrongRequest) {
                end(new IllegalArgumentException("a subscriber must request a positive number of messages"));
                cancel();
                return;
            }
            if (refusal != null) {
                end(refusal);
                return;
            }
            Stream open = stream;
            if (open == null) {
                return;
            }
            while (demand.get() > 0 && !cancelled) {
                Delivered next = open.poll();
                if (next == null) {
                    break;
                }
                demand.updateAndGet(had -> had == Long.MAX_VALUE ? had : had - 1);
                subscriber.onNext(new Message(core, queue, next));
            }
            if (!cancelled && open.isOver()) {
                end(open.failure());
            }
        }

        private void end(Throwable failure) {
            over = true;
            if (failure == null) {
                subscriber.onComplete();
            } else {
                subscriber.onError(failure);
            }
        }
    }
}
