# frozen_string_literal: true

module Fila
  # Threads that handle a queue's messages, made by {Client#pool}.
  class Pool
    # @api private
    def initialize(client, consumer, threads, &handler)
      @client = client
      @consumer = consumer
      @handler = handler
      @fault = nil
      @threads = Array.new(threads) do |number|
        Thread.new { work }.tap do |thread|
          thread.name = "fila pool #{consumer.queue} #{number}"
          thread.report_on_exception = false # {#join} raises it
        end
      end
    end

    # @return [String]
    def queue = @consumer.queue

    # @return [Boolean] whether its threads are at work
    def running? = @threads.any?(&:alive?)

    # Waits until the pool has ended: because it was stopped, or the client closed or drained, or with the
    # error that ended the subscription.
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil when the time has passed
    # @raise [Error] what ended the subscription, or an exception no handler should raise, such as SystemExit
    def join(timeout: nil)
      deadline = timeout && (Clock.now + timeout)
      others = @threads.reject { |thread| thread == Thread.current }
      return unless others.all? { |thread| thread.join(deadline && [deadline - Clock.now, 0].max) }
      raise @fault if @fault
      raise @consumer.error.dup if @consumer.error

      self
    end

    # Takes no more messages, hands back what was fetched, and waits until the handlers have returned.
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil when the time has passed
    def stop(timeout: nil)
      @consumer.close
      join(timeout: timeout)
    end

    private

    def work
      @client.in_loop do
        @consumer.working do
          while (message = @consumer.receive)
            handle(message)
          end
        end
      end
    rescue Error => error
      @fault ||= error unless error.is_a?(ClosedError)
    rescue Exception => error # not a verdict on a message: the whole pool ends
      @fault ||= error
      @consumer.close
    end

    def handle(message)
      verdict = [:release, nil] # unless the handler comes to an end
      Trace.with(message.traceparent) { @handler.call(message) }
      verdict = [:ack, nil]
    rescue StandardError => error
      @client.announce(:warn, "fila: the handler of queue \"#{queue}\" failed: #{error.class}: #{error.message}")
      verdict = [:nack, error]
    ensure
      settle(message, *verdict) unless message.settled?
    end

    # Does not wait for the answer: credit and leases bound how many are under way.
    def settle(message, verb, error)
      @client.settle_soon(verb, message, error) do |refusal|
        @client.announce(:warn, "fila: #{verb} of a handled message failed and it comes again: #{refusal.message}")
      end
    rescue ClosedError
      nil # the goodbye has handed it back
    end
  end
end
