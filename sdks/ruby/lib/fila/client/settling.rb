# frozen_string_literal: true

module Fila
  class Client
    # Acknowledging, rejecting and releasing leased messages; {Message} has methods for the same.
    module Settling
      REASON_BYTES = 4096
      EXTEND_IDS = 1_000 # in one request
      private_constant :REASON_BYTES, :EXTEND_IDS

      # Settles a message: done and gone.
      # @param queue [String]
      # @param id [String] the message's
      # @param timeout [Numeric, nil]
      # @return [void]
      # @raise [MessageNotFoundError] if it is not leased
      def ack(queue:, id:, timeout: @timeout) = settle_one(:ack, queue, id, nil, timeout)

      # Gives a message back as failed; the queue's `on_failure` hook sees the error.
      # @param error [String, Exception]
      # @return [void]
      def nack(queue:, id:, error: "", timeout: @timeout) = settle_one(:nack, queue, id, error, timeout)

      # Hands a message back at once, to its old place and without a counted attempt.
      # @return [void]
      def release(queue:, id:, timeout: @timeout) = settle_one(:release, queue, id, nil, timeout)

      # Lets a message's lease end `visibility` seconds from now; nil means the queue's visibility timeout.
      # @param visibility [Numeric, nil]
      # @return [void]
      # @raise [MessageNotFoundError] if it is not leased
      def extend_lease(queue:, id:, visibility: nil, timeout: @timeout)
        raise not_leased(queue, id) unless extend_some(queue, [id], visibility, timeout).empty?
      end

      # Lets the leases of many messages of a queue end later.
      # @param ids [Enumerable<String>]
      # @return [void]
      # @raise [BatchError] if some were not leased; the others are extended
      def extend_many(queue:, ids:, visibility: nil, timeout: @timeout)
        ids = ids.to_a
        missing = ids.each_slice(EXTEND_IDS).flat_map { |some| extend_some(queue, some, visibility, timeout) }
        return if missing.empty?

        raise BatchError.new(ids.map { |id| not_leased(queue, id) if missing.include?(id) })
      end

      # Acknowledges many messages in one round trip.
      # @overload ack_many(messages, timeout: nil)
      #   @param messages [Enumerable<Message>]
      # @overload ack_many(queue:, ids:, timeout: nil)
      #   @param queue [String]
      #   @param ids [Enumerable<String>]
      # @return [void]
      # @raise [BatchError] if some were not leased; the others are settled
      def ack_many(messages = nil, queue: nil, ids: nil, timeout: @timeout)
        settle_many(:ack, messages, queue, ids, nil, timeout)
      end

      # Rejects many messages, as {#ack_many} acknowledges them.
      # @return [void]
      def nack_many(messages = nil, queue: nil, ids: nil, error: "", timeout: @timeout)
        settle_many(:nack, messages, queue, ids, error, timeout)
      end

      # Releases many messages, as {#ack_many} acknowledges them.
      # @return [void]
      def release_many(messages = nil, queue: nil, ids: nil, timeout: @timeout)
        settle_many(:release, messages, queue, ids, nil, timeout)
      end

      # {#ack_many} without waiting for the answers.
      # @param messages [Enumerable<Message>]
      # @return [Receipt] its value is nil, or it raises what {#ack_many} raises
      def ack_many_soon(messages, timeout: @timeout)
        core = self.core
        call, runs = settlement(core, :ack, leases(messages, nil, nil), nil)
        start(core, call, runs)
        Receipt.new(core, call, timeout) { outcome(call) }
      end

      # @api private
      def settle_message(verb, message, error, timeout)
        one(settle(verb, [[message.queue, message.link, [message.id]]], error, timeout))
      end

      # Settles without waiting; the block gets the error if there is one.
      # @api private
      def settle_soon(verb, message, error, &block)
        message.settled!
        core = self.core
        call, runs = settlement(core, verb, [[message.queue, message.link, [message.id]]], error) do |done|
          block.call(done.results.first) if done.failed?
        end
        start(core, call, runs)
      end

      # What a heart-beat asks.
      # @api private
      def extend_held(queue, ids)
        ask("Extend", { queue: queue, message_ids: ids, visibility_ms: 0 },
            what: "extend leases of queue \"#{queue}\"", subject: "queue \"#{queue}\"",
            queue: queue, timeout: @timeout, fresh: false)
      end

      private

      # Those that are not leased.
      def extend_some(queue, ids, visibility, timeout)
        fields = { queue: queue, message_ids: ids, visibility_ms: milliseconds(visibility, "visibility") }
        ask("Extend", fields, what: "extend leases of queue \"#{queue}\"", subject: "queue \"#{queue}\"",
                              queue: queue, timeout: timeout, repeatable: true, fresh: false)[:missing]
      end

      def not_leased(queue, id)
        Failure.settlement(MessageNotFoundError::CODE, queue, id)
      end

      def settle_one(verb, queue, id, error, timeout)
        one(settle(verb, leases(nil, queue, [id]), error, timeout))
      end

      def one(call)
        raise call.results.first.dup if call.failed?
      end

      def settle_many(verb, messages, queue, ids, error, timeout)
        leases = leases(messages, queue, ids)
        outcome(settle(verb, leases, error, timeout)) unless leases.empty?
      end

      # What is settled: queue, link and ids of those that stand together.
      # @return [Array<Array(String, Link, Array<String>)>]
      def leases(messages, queue, ids)
        unless messages.nil? ^ (queue.nil? || ids.nil?)
          raise ArgumentError, "give either messages or queue: and ids:"
        end
        return leases_of(messages) unless ids

        ids = ids.map { |id| Wire::Text.checked(id, "id") }
        ids.empty? ? [] : [[Wire::Text.checked(queue, "queue"), nil, ids]]
      end

      def leases_of(messages)
        found = []
        queue = link = ids = nil
        messages.each do |message|
          message.settled!
          found << [queue = message.queue, link = message.link, ids = []] unless ids && queue.equal?(message.queue) && link.equal?(message.link)
          ids << message.id
        end
        found
      end

      def outcome(call)
        raise BatchError.new(call.results.map { |result| result == :ok ? nil : result }) if call.failed?
      end

      def settle(verb, leases, error, timeout)
        deadline = deadline_for(timeout)
        core = self.core
        call, runs = settlement(core, verb, leases, error)
        start(core, call, runs) { core.await(call, timeout, deadline) }
        call
      end

      def start(core, call, runs)
        core.synchronize do
          core.admit(call, fresh: false) unless call.done? # of nothing
          runs.each { |link, together| core.dispatch(call.kind, together, via: link) }
          yield if block_given?
        end
      end

      # The call, and its runs by the link on which they are leased. That of a parent process is none.
      def settlement(core, verb, leases, error, &on_done)
        kind = Kinds::SETTLING.fetch(verb)
        reason = Wire::Text.field(reason_of(error), "error") if verb == :nack
        call = Call.new(core, verb.to_s, kind, leases.sum { |_, _, ids| ids.size }, leases.first&.first, &on_done)
        first = 0
        runs = leases.map do |queue, link, ids|
          encoded = encode_ids(call, first, queue, ids, reason)
          first += ids.size
          [(link if link&.core.equal?(core)), encoded]
        end
        [call, runs]
      end

      def encode_ids(call, first, queue, ids, reason)
        runs = Runs.new(call, @options.batch_messages, @options.batch_bytes, first)
        head = id_size = nil
        ids.each do |id|
          head = [queue.bytesize, queue, id_size = id.bytesize].pack("na*n") unless id_size == id.bytesize
          runs.add(queue, head, id, id_size, reason, id, false)
        end
        runs.finish
      end

      # Short enough to be read, and to be sent.
      def reason_of(error)
        text = error.is_a?(Exception) ? "#{error.class}: #{error.message}" : error
        return text unless text.is_a?(String)

        text.byteslice(0, REASON_BYTES).scrub("?")
      end
    end
  end
end
