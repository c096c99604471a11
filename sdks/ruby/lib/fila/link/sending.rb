# frozen_string_literal: true

module Fila
  class Link
    # Frames out. Whoever has something to send writes it to the socket itself, as far as the socket takes
    # it; the link's thread sends the rest. So sending costs no hand-over between threads.
    # @api private
    module Sending
      UNSENT_BYTES = 1024 * 1024 # what waits beyond this can still be withdrawn

      private

      # Makes frames of what is due and writes them, many in one write.
      def push(now = Clock.now)
        return unless @connection

        loop do
          composed = false
          composed = true while unsent < UNSENT_BYTES && compose(now)
          write
          break unless composed && unsent.zero?
        end
        nudge if wanted?
      end

      # Whether the thread must be woken: it does not watch the socket for what is left, or sleeps too long.
      def wanted?
        return false if Thread.current == @thread

        @broken || (unsent.positive? && !@watching) || sooner?
      end

      # Adds the frames of one collector; false if none is due.
      def compose(now)
        kind = Kinds::ALL.find { |candidate| @collectors[candidate.index].due?(now) }
        return false unless kind

        runs = wanted(kind, @collectors[kind.index].take)
        send_runs(kind, runs) unless runs.empty?
        true
      end

      # Without what belongs to callers that have gone.
      def wanted(kind, runs)
        return runs if runs.none? { |run| run.call.abandoned? }

        gone, stays = runs.partition { |run| run.call.abandoned? }
        @core.gate.leave(gone.sum(&:size)) if kind.enqueues
        stays
      end

      # One frame.
      def send_runs(kind, runs)
        batch = Batch.new(kind, runs)
        @pending[id = next_id] = batch
        @collectors[kind.index].frames_under_way += 1
        size = batch.size + 4 + Wire::Frames::COUNTED_BYTES
        if size > @connection.frame_bytes_max
          body = [batch.count].pack("N")
          runs.each { |run| run.append_to(body) }
          send_frame(kind.opcode, id, body)
        elsif runs.size == 1 && @writing.nil? && @out.empty?
          @writing = runs.first.frame(kind.opcode, id)
          @written = 0
        else
          [size, kind.opcode, 0, id, batch.count].pack("NCCNN", buffer: @out)
          runs.each { |run| run.append_to(@out) }
        end
      end

      def send_frame(opcode, id, body)
        Wire::Frames.append(@out, opcode, id, body, @connection.frame_bytes_max)
      end

      def send_request(request)
        @pending[id = next_id] = request
        send_frame(request.opcode, id, request.body)
      end

      def send_consume(stream)
        stream.resubscribe_at = nil
        stream.request_id = next_id
        @pending[stream.request_id] = stream
        send_frame(Wire::Op::CONSUME, stream.request_id,
                   Wire::Codec.encode("Consume", { queue: stream.queue, prefetch: stream.prefetch }))
      end

      # Hands back what a closed consumer was sent and nobody read. It is sent also with nothing in it: its
      # answer tells that no delivery is on its way any more.
      def release(leaving, unread)
        @pending[id = next_id] = leaving
        body = [unread.size].pack("N")
        unread.each { |message| body << Wire::Hot.reference(message.queue, message.id) }
        send_frame(Wire::Op::RELEASE, id, body)
      end

      def unsent = @out.bytesize + (@writing ? @writing.bytesize - @written : 0)

      def write
        return if @broken

        loop do
          if @writing.nil?
            return if @out.empty?

            @writing = @out
            @written = 0
            @out = new_buffer
          end
          write_some or return
        end
      rescue SystemCallError, IOError => error
        @broken = "writing to #{@address}: #{error.message}"
      rescue StandardError => error
        raise unless tls_error?(error)

        @broken = "writing to #{@address}: TLS: #{error.message}"
      end

      # False when the socket takes no more now.
      def write_some
        rest = @writing.bytesize - @written
        piece = @written.zero? && rest <= Transport::WRITE_BYTES ? @writing : @writing.byteslice(@written, Transport::WRITE_BYTES)
        taken = @connection.transport.write(piece)
        @written += taken
        @writing = nil if taken == rest
        taken.positive?
      end

      def tls_error?(error) = error.class.name.start_with?("OpenSSL::")
    end

    include Sending
  end
end
