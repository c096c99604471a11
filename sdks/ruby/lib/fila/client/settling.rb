# frozen_string_literal: true

module Fila
  class Client
    # Acknowledging, rejecting and releasing leased messages; {Message} has methods for the same.
    module Settling
      REASON_BYTES = 4096
      private_constant :REASON_BYTES

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
        call, runs = settlement(core, :ack, references(messages, nil, nil), nil)
        start(core, call, runs)
        Receipt.new(core, call, timeout) { |results| outcome(results) }
      end

      # @api private
      def settle_message(verb, message, error, timeout)
        results = settle(verb, [[message.queue, message.id, message.link]], error, timeout)
        raise results.first.dup if results.first.is_a?(Error)
      end

      # Settles without waiting; the block gets the error if there is one.
      # @api private
      def settle_soon(verb, message, error, &block)
        message.settled!
        core = self.core
        call, runs = settlement(core, verb, [[message.queue, message.id, message.link]], error) do |done|
          block.call(done.results.first) if done.results.first.is_a?(Error)
        end
        start(core, call, runs)
      end

      private

      def settle_one(verb, queue, id, error, timeout)
        results = settle(verb, [[queue, id, nil]], error, timeout)
        raise results.first.dup if results.first.is_a?(Error)
      end

      def settle_many(verb, messages, queue, ids, error, timeout)
        references = references(messages, queue, ids)
        outcome(settle(verb, references, error, timeout)) unless references.empty?
      end

      def references(messages, queue, ids)
        unless messages.nil? ^ (queue.nil? || ids.nil?)
          raise ArgumentError, "give either messages or queue: and ids:"
        end
        return ids.map { |id| [queue, id, nil] } if ids

        messages.map do |message|
          message.settled!
          [message.queue, message.id, message.link]
        end
      end

      def outcome(results)
        raise BatchError.new(results.map { |result| result == :ok ? nil : result }) if results.any?(Error)
      end

      def settle(verb, references, error, timeout)
        deadline = deadline_for(timeout)
        core = self.core
        call, runs = settlement(core, verb, references, error)
        start(core, call, runs) { core.await(call, timeout, deadline) }
        call.results
      end

      def start(core, call, runs)
        core.synchronize do
          core.admit(call, fresh: false)
          runs.each { |link, items| core.dispatch(call.kind, items, via: link) }
          yield if block_given?
        end
      end

      # The call, and its items by the link on which they are leased. That of a parent process is none.
      # @param references [Array<Array(String, String, Link)>]
      def settlement(core, verb, references, error, &on_done)
        kind = Kinds::SETTLING.fetch(verb)
        reason = Wire::Text.field(reason_of(error), "error") if verb == :nack
        call = Call.new(core, verb.to_s, kind, references.size, references.first&.first, &on_done)
        runs = []
        before = run = name = checked = nil
        references.each_with_index do |(queue, id, link), index|
          checked = Wire::Text.checked(name = queue, "queue") unless queue.equal?(name)
          id = Wire::Text.checked(id, "id")
          if run.nil? || !link.equal?(before)
            runs << [(link if link&.core.equal?(core)), run = []]
            before = link
          end
          run << Item.new(call, index, checked, Wire::Hot.reference(checked, id, reason), id)
        end
        [call, runs]
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
