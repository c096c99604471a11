# frozen_string_literal: true

module Fila
  # A subscription, made by {Client#subscribe}. It ends when it is closed, when the client is closed or
  # drained, or with an error of the broker's, which the next call raises. After a lost connection it
  # subscribes again by itself. Several threads may receive from one consumer.
  class Consumer
    include Enumerable

    # @api private
    def initialize(stream)
      @stream = stream
      @core = stream.core
      # Nobody can receive any more when the consumer is garbage: its messages must not stay leased.
      ObjectSpace.define_finalizer(self, Consumer.orphan(stream, @core))
    end

    # Finalizers run anywhere, also where the lock is held: the link's thread does the rest.
    # @api private
    def self.orphan(stream, core)
      pid = Process.pid
      lambda do |_|
        next if stream.ended? || pid != Process.pid

        core.orphans << stream
        stream.link&.nudge
      end
    end

    # @return [String]
    def queue = @stream.queue

    # Waits for the next message.
    # @param timeout [Numeric, nil] seconds; nil waits for ever, 0 not at all
    # @return [Message, nil] nil when the time has passed, and after the end, see {#closed?}
    # @raise [Error] what ended the subscription
    def receive(timeout: nil) = take(1, timeout)&.first

    # Waits for a message as {#receive} does and adds what else is here already: the fast form for those
    # who settle in batches.
    # @param limit [Integer]
    # @param timeout [Numeric, nil]
    # @return [Array<Message>] empty when the time has passed, and after the end
    def receive_many(limit, timeout: nil) = take(limit, timeout) || []

    # Yields messages until the consumer is closed.
    # @yieldparam message [Message]
    # @return [self, Enumerator]
    # @raise [Error] what ended the subscription
    def each
      return enum_for(:each) unless block_given?

      while (message = receive)
        yield message
      end
      self
    end

    # @return [Error, nil] why the subscription ended; nil while it lives, and after a close or drain
    def error = @stream.error

    # @return [Boolean] whether the subscription has ended
    def closed? = @stream.ended?

    # Ends the subscription and hands back what was fetched and not received. Messages received before can
    # still be settled. May be called more than once.
    # @return [void]
    def close
      @core.synchronize { @stream.close } if @core.pid == Process.pid
      nil
    end

    # Lets a heart-beat go on after the end for what the block has in hand.
    # @api private
    def working
      @core.synchronize { @stream.working(1) }
      yield
    ensure
      @core.synchronize { @stream.working(-1) }
    end

    private

    def take(limit, timeout)
      raise ArgumentError, "limit must be a positive whole number, not #{limit.inspect}" unless limit.is_a?(Integer) && limit.positive?

      unless timeout.nil? || (timeout.is_a?(Numeric) && !timeout.negative?)
        raise ArgumentError, "timeout must not be negative, not #{timeout.inspect}"
      end
      raise ClosedError, "the consumer of queue \"#{queue}\" belongs to process #{@core.pid}" if @core.pid != Process.pid

      deadline = timeout && (Clock.now + timeout)
      found = @core.synchronize { @stream.take(limit, deadline) }
      raise error.dup if found.nil? && error

      found
    end
  end
end
