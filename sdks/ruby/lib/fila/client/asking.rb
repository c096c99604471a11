# frozen_string_literal: true

module Fila
  class Client
    # How administrative calls are made. What is sent, what comes back and what it means when it fails is
    # told by the caller; the layouts know the bytes.
    # @api private
    module Asking
      private

      # @return [Hash] the result's fields
      # @raise [Error] with the broker's text
      def ask(operation, fields, what:, timeout:, subject: nil, queue: nil, repeatable: false, fresh: true)
        deadline = deadline_for(timeout)
        opcode = Wire::NAMES.key(operation)
        core = self.core
        request = Request.new(core, what, queue, opcode, Wire::Codec.encode(operation, fields), repeatable)
        core.synchronize do
          core.admit(request, fresh: fresh)
          core.ask(request)
          core.await(request, timeout, deadline)
        end
        check(request.answer, subject)
      end

      def check(answer, subject)
        raise answer.dup if answer.is_a?(Error)
        raise Failure.refusal(answer[:code], answer[:message], subject: subject) unless answer[:code].zero?

        answer
      end

      # A call about one queue.
      def ask_queue(operation, queue, fields = {}, what:, timeout:, repeatable: false)
        ask(operation, { queue: queue, **fields }, what: "#{what} queue \"#{queue}\"", subject: "queue \"#{queue}\"",
                                                   queue: queue, timeout: timeout, repeatable: repeatable)
      end

      def time_of(milliseconds) = Time.at(0, milliseconds, :millisecond)
    end
  end
end
