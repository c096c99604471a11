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
          landed(waiting.kind, waiting.size)
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

      # Settles a frame's runs with the broker's results.
      def answer(batch, body)
        batch.kind.enqueues ? answer_enqueue(batch, body) : answer_settling(batch, body)
      end

      def answer_enqueue(batch, body)
        results = Wire::Hot::Results.new(body, batch.count, duplicates: batch.kind.duplicates)
        batch.runs.each do |run|
          failed = false
          found = Array.new(run.count) do
            code = results.advance
            next EnqueueResult.new(results.id, results.duplicate, nil) if code.zero?

            failed = true
            EnqueueResult.new(nil, false, Failure.refusal(code, subject: "queue \"#{run.queue}\""))
          end
          run.settle(found, failed)
        end
      end

      def answer_settling(batch, body)
        codes = Wire::Hot.codes(body, batch.count)
        drop_copies(batch.runs, codes)
        at = 0
        batch.runs.each do |run|
          count = run.count
          if codes.byteslice(at, count).count("\0") == count
            run.settle(Array.new(count, :ok))
          else
            found = Array.new(count) { |index| settled(codes.getbyte(at + index), run, index) }
            run.settle(found, true)
          end
          at += count
        end
      end

      def settled(code, run, index) = code.zero? ? :ok : Failure.settlement(code, run.queue, run.ids[index])

      # Before the callers hear that it is settled: then their readers do not meet it again.
      def drop_copies(runs, codes)
        streams = @streams.keys.select(&:copies?)
        return if streams.empty?

        at = -1
        runs.each do |run|
          run.ids.each do |id|
            next unless codes.getbyte(at += 1).zero?

            streams.each { |stream| stream.drop_copies(id) if stream.queue == run.queue }
          end
        end
      end
    end

    include Receiving
  end
end
