# frozen_string_literal: true

module Fila
  class Link
    # Frames in. Never waits for anybody: what a consumer does not read stands in its stream's buffer.
    # @api private
    module Receiving
      private

      # @return [Error, nil] why the connection must end
      def receive(opcode, id, body)
        return fault(opcode) if opcode.is_a?(Wire::FrameFault)
        return unless Wire::States.following(:open, opcode) # of a later version: not for us

        case opcode
        when Wire::Op::DELIVERY then deliver(id, body)
        when Wire::Op::PING then send_frame(Wire::Op::PONG, id, "")
        when Wire::Op::PONG then nil
        when Wire::Op::DISCONNECT then return ConnectionLostError.new("#{@address} said goodbye")
        when Wire::Op::ERROR
          found = Wire::Codec.decode("Error", body)
          refused(id, Failure.refusal(found[:code], found[:message], metadata: found[:metadata]))
        else reply(opcode, id, body)
        end
        nil
      rescue Wire::InvalidBody => error
        InvalidFrameError.new("#{@address} sent a #{Wire::NAMES[opcode]} that does not parse: #{error.message}")
      end

      def fault(fault)
        error = InvalidFrameError.new("#{@address} sent bytes that are no frame: #{fault.message}")
        return error if fault.fatal

        unreadable(fault.request_id, error)
        nil
      end

      # What a closed consumer is still sent goes back at once.
      def deliver(id, body)
        case waiting = @pending[id]
        when Stream then waiting.push(Wire::Hot.deliveries(body, waiting.names, @core.client, self))
        when Leaving then release(waiting, Wire::Hot.deliveries(body, waiting.stream.names, @core.client, self))
        end
      end

      def reply(opcode, id, body)
        case waiting = @pending[id]
        when Batch
          expect(waiting.kind.opcode, opcode)
          answer(waiting, body)
          @pending.delete(id)
          landed(waiting.kind, waiting.kind.enqueues ? waiting.items.sum(&:size) : 0)
        when Request
          expect(waiting.opcode, opcode)
          waiting.settle(Wire::Codec.decode(Wire::NAMES.fetch(opcode), body))
          @pending.delete(id)
        when Leaving
          # What was delivered before the broker heard of the cancel has come by now.
          @pending.delete(id)
          @pending.delete(waiting.consume_id)
        when Stream
          expect(Wire::Op::CONSUME, opcode)
          waiting.accept
        end
      end

      def expect(asked, answered)
        return if Wire::REPLIES[asked] == answered

        raise Wire::InvalidBody.new("opcode", "#{Wire::NAMES[asked]} is not answered with it")
      end

      # Settles a frame's items with the broker's results.
      def answer(batch, body)
        items = batch.items
        if batch.kind.enqueues
          at = -1
          Wire::Hot.enqueue_results(body, items.size, duplicates: batch.kind.duplicates) do |code, id, duplicate|
            item = items[at += 1]
            code.zero? ? item.settle(EnqueueResult.new(id, duplicate, nil)) : item.fail(refusal(code, item))
          end
        else
          codes = Wire::Hot.codes(body, items.size)
          drop_copies(items, codes)
          items.each_with_index do |item, index|
            code = codes[index]
            code.zero? ? item.settle(:ok) : item.fail(Failure.settlement(code, item.queue, item.id))
          end
        end
      end

      # Before the callers hear that it is settled: then their readers do not meet it again.
      def drop_copies(items, codes)
        streams = @streams.keys.select(&:copies?)
        return if streams.empty?

        items.each_with_index do |item, index|
          next unless codes[index].zero?

          streams.each { |stream| stream.drop_copies(item.id) if stream.queue == item.queue }
        end
      end

      def refusal(code, item) = Failure.refusal(code, subject: "queue \"#{item.queue}\"")
    end

    include Receiving
  end
end
