# frozen_string_literal: true

module Fila
  class Client
    # Lease batches: messages leased together under a name, for readers that come again after a crash.
    module Batches
      # How messages are sent: as they are delivered, as an Arrow IPC stream, or not at all.
      FORMS = { messages: 0, arrow: 1, count: 2 }.freeze
      WAIT_MAX = 60 # seconds
      WAIT_MARGIN = 10 # for an answer after the broker's own wait
      private_constant :WAIT_MAX, :WAIT_MARGIN

      # Leases messages under a name. Whoever asks again with the name gets the same messages, until the
      # batch is acknowledged, released or its time is up, also across a restart of the broker. `s/7` is batch
      # number 7 of the stream `s`. It is sent again by itself after a lost connection.
      # @param queue [String]
      # @param name [String]
      # @param max_messages [Integer] 0 returns a batch that is open and never leases one
      # @param max_bytes [Integer] 0 means 8 MiB
      # @param visibility [Numeric, nil] seconds; nil means the queue's
      # @param wait [Numeric] seconds the broker waits for the first message, at most 60
      # @param count_attempt [Boolean] a batch whose time runs out is a failed delivery
      # @param form [Symbol] `:messages`, `:arrow`, or `:count` for one who leases what others read
      # @param timeout [Numeric, nil] seconds; if it is not given, at least ten more than `wait`
      # @return [LeasedBatch]
      def lease_batch(queue:, name:, max_messages: 0, max_bytes: 0, visibility: nil, wait: 0, count_attempt: false,
                      form: :messages, timeout: lease_timeout(wait))
        check_wait(wait)
        fields = { name: name, max_messages: max_messages, max_bytes: max_bytes,
                   visibility_ms: milliseconds(visibility, "visibility"), wait_ms: milliseconds(wait, "wait"),
                   count_attempt: count_attempt, form: form_of(form) }
        found = ask_queue("LeaseBatch", queue, fields, what: "lease batch \"#{name}\" of", timeout: timeout, repeatable: true)
        arrow = found[:form] == FORMS[:arrow]
        LeasedBatch.new(name: name, again: found[:again], message_count: found[:messages],
                        expires_at: time_of(found[:expires_at_ms]),
                        messages: arrow || found[:body].empty? ? [] : leased_messages(found[:body]),
                        arrow: (found[:body] if arrow))
      end

      # Acknowledges a batch, or with `below` every open batch of the stream `name` with a lesser number.
      # @return [BatchCount]
      def ack_batch(queue:, name:, below: nil, timeout: @timeout)
        on_batch("AckBatch", "ack", queue, name, { below: below }, timeout)
      end

      # Lets a batch, or batches, end `visibility` seconds from now; nil means the queue's.
      # @return [BatchCount]
      def extend_batch(queue:, name:, visibility: nil, below: nil, timeout: @timeout)
        fields = { visibility_ms: milliseconds(visibility, "visibility"), below: below }
        on_batch("ExtendBatch", "extend", queue, name, fields, timeout)
      end

      # Hands a batch's messages, or several batches', back to their old places.
      # @return [BatchCount]
      def release_batch(queue:, name:, below: nil, timeout: @timeout)
        on_batch("ReleaseBatch", "release", queue, name, { below: below }, timeout)
      end

      # @param queue [String]
      # @return [Array<OpenBatch>] oldest first
      def list_batches(queue:, timeout: @timeout)
        found = ask_queue("ListBatches", queue, what: "batches of", timeout: timeout, repeatable: true)
        found[:batches].map do |batch|
          OpenBatch.new(name: batch[:name], messages: batch[:messages], leased_at: time_of(batch[:leased_at_ms]),
                        expires_at: time_of(batch[:expires_at_ms]))
        end
      end

      private

      def lease_timeout(wait)
        check_wait(wait)
        wait.zero? || @timeout.nil? ? @timeout : [@timeout, wait + WAIT_MARGIN].max
      end

      def check_wait(wait)
        return if wait.is_a?(Numeric) && wait.between?(0, WAIT_MAX)

        raise ArgumentError, "wait must be a number of seconds from 0 to #{WAIT_MAX}, not #{wait.inspect}"
      end

      # With `below` it may be repeated: what is done already is not found again, and that is fine.
      def on_batch(operation, verb, queue, name, fields, timeout)
        found = ask(operation, { queue: queue, name: name, **fields }, what: "#{verb} batch \"#{name}\" of queue \"#{queue}\"",
                                                                       subject: "batch \"#{name}\"", queue: queue,
                                                                       timeout: timeout, repeatable: !fields[:below].nil?)
        BatchCount.new(batches: found[:batches], messages: found[:messages])
      end

      def leased_messages(body)
        Wire::Hot.deliveries(body, Wire::Names.new, self, nil)
      rescue Wire::InvalidBody => error
        raise InvalidFrameError, "the batch's messages do not parse: #{error.message}"
      end

      def form_of(form, forms = FORMS)
        forms.fetch(form) { raise ArgumentError, "form must be one of #{forms.keys.join(", ")}, not #{form.inspect}" }
      end
    end
  end
end
