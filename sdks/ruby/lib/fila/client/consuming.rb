# frozen_string_literal: true

module Fila
  class Client
    # Consuming: a block, an Enumerator, a {Consumer} or a {Pool} of threads.
    module Consuming
      # Subscribes and yields messages as they come; settle each with {Message#ack}, {Message#nack} or
      # {Message#release}. The loop ends without an error when the client is closed or drained. Whatever
      # else ends the subscription is raised. Leaving the block ends the subscription and hands back what
      # was fetched and not yielded.
      #
      # Without a block it returns an Enumerator, which subscribes when it is first asked:
      #
      #   client.consume(queue: "mail").lazy.reject { |message| spam?(message) }.first(10)
      #
      # @param queue [String]
      # @param prefetch [Integer] how many messages may be delivered and not settled
      # @param heartbeat [Boolean] extend the leases of what is not settled, however long that takes, and of what
      #   is yielded also while the client drains
      # @yieldparam message [Message]
      # @return [Enumerator<Message>, nil]
      # @raise [QueueNotFoundError, UnauthorizedError, Error]
      def consume(queue:, prefetch: Options::PREFETCH, heartbeat: false, &block)
        Options.check_prefetch(prefetch)
        return enumerator(queue, prefetch, heartbeat) unless block

        subscribe(queue: queue, prefetch: prefetch, heartbeat: heartbeat) do |consumer|
          in_loop { consumer.working { consumer.each(&block) } }
        end
        nil
      end

      # Opens a subscription and waits until the broker has accepted it.
      # @param queue [String]
      # @param prefetch [Integer]
      # @param timeout [Numeric, nil] for being accepted
      # @return [Consumer, Object] with a block its value; the consumer is closed afterwards
      def subscribe(queue:, prefetch: Options::PREFETCH, heartbeat: false, timeout: @timeout)
        consumer = open_consumer(queue, prefetch, timeout, heartbeat)
        return consumer unless block_given?

        begin
          yield consumer
        ensure
          consumer.close
        end
      end

      # Handles messages with several threads. A message is acknowledged when the block returns and rejected
      # with the exception's text when it raises, unless the block has settled it already.
      #
      #   pool = client.pool(queue: "mail", threads: 8) { |message| deliver(message.payload) }
      #   trap("TERM") { Thread.new { pool.stop } }
      #   pool.join
      #
      # @param queue [String]
      # @param threads [Integer]
      # @param prefetch [Integer]
      # @yieldparam message [Message]
      # @return [Pool] running
      def pool(queue:, threads: 5, prefetch: Options::PREFETCH, heartbeat: false, &block)
        raise ArgumentError, "a pool needs a block that handles messages" unless block
        unless threads.is_a?(Integer) && threads.positive?
          raise ArgumentError, "threads must be a positive Integer, not #{threads.inspect}"
        end

        Pool.new(self, open_consumer(queue, prefetch, @timeout, heartbeat), threads, &block)
      end

      # Counts the block as a loop that {Client#drain} waits for.
      # @api private
      def in_loop
        core = self.core
        core.synchronize { core.enter_loop }
        begin
          yield
        ensure
          core.synchronize { core.leave_loop }
        end
      end

      # @api private
      def announce(level, text) = @core.announcer.log(level, text)

      private

      def enumerator(queue, prefetch, heartbeat)
        options = { queue: queue, prefetch: prefetch, heartbeat: heartbeat }
        maker = Fiber.current
        Enumerator.new do |yielder|
          if Fiber.current.equal?(maker)
            consume(**options) { |message| yielder << message }
          else
            # Asked with `next`: between two calls nobody is in a loop that draining could wait for.
            subscribe(**options) { |consumer| consumer.each { |message| yielder << message } }
          end
        end
      end

      def open_consumer(queue, prefetch, timeout, heartbeat)
        Options.check_prefetch(prefetch)
        deadline = deadline_for(timeout)
        core = self.core
        stream = Stream.new(core, Wire::Text.checked(queue, "queue"), prefetch, heartbeat: heartbeat)
        consumer = Consumer.new(stream) # first: if this thread is interrupted, it is found as garbage
        core.synchronize do
          core.join(stream)
          core.subscribe(stream)
          await_accepted(core, stream, timeout, deadline)
        end
        Heartbeat.new(self, stream) if heartbeat
        consumer
      end

      def await_accepted(core, stream, timeout, deadline)
        accepted = stream.await_accepted(deadline)
        raise stream.error.dup if stream.error
        raise core.closed_error if stream.ended?
        return if accepted

        link = core.route(stream.queue)
        raise TimeoutError, "consume queue \"#{stream.queue}\": no answer from #{link.address} " \
                            "within #{Clock.show(timeout)}#{link.condition}"
      ensure
        stream.close unless accepted
      end
    end
  end
end
