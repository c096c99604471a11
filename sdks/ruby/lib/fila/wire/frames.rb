# frozen_string_literal: true

module Fila
  module Wire
    # Ten bytes before every body: length, opcode, flags, request id.
    module Frames
      BYTES_MAX = 16 * 1024 * 1024
      HEADER_BYTES = 10
      COUNTED_BYTES = 6 # opcode, flags and request id are part of the length
      CONTINUATION = 1

      module_function

      # Appends the body as one frame, or as a run of continued frames when it is larger than a frame.
      def append(out, opcode, id, body, bytes_max = BYTES_MAX)
        piece = bytes_max - COUNTED_BYTES
        at = 0
        while body.bytesize - at > piece
          [bytes_max, opcode, CONTINUATION, id].pack("NCCN", buffer: out)
          out << body.byteslice(at, piece)
          at += piece
        end
        [COUNTED_BYTES + body.bytesize - at, opcode, 0, id].pack("NCCN", buffer: out)
        out << (at.zero? ? body : body.byteslice(at, body.bytesize - at))
      end
    end

    # What a peer sent that cannot be accepted. After a fatal one the connection cannot be trusted.
    FrameFault = Struct.new(:message, :request_id, :fatal)

    # Turns a stream of bytes into whole messages, whatever the pieces they arrive in.
    class FrameDecoder
      STREAMS_MAX = 16
      # A Delivery is a little longer than the Enqueue it came from, so a client must be able to put
      # together more than the broker's own bound of 128 MiB.
      ASSEMBLY_BYTES_MAX = 512 * 1024 * 1024

      attr_accessor :frame_bytes_max

      def initialize(frame_bytes_max: Frames::BYTES_MAX, streams_max: STREAMS_MAX, assembly_bytes_max: ASSEMBLY_BYTES_MAX)
        @frame_bytes_max = frame_bytes_max
        @streams_max = streams_max
        @assembly_bytes_max = assembly_bytes_max
        @buffer = String.new(encoding: Encoding::BINARY)
        @streams = {}
        @assembled = 0
        @refused = {}
        @broken = false
      end

      # Yields opcode, request id and body of every message completed by these bytes, and yields a
      # {FrameFault} alone for what could not be accepted. After a fatal one nothing more comes.
      def feed(data, &block)
        return if @broken

        @buffer << data
        at = 0
        while @buffer.bytesize - at >= Frames::HEADER_BYTES
          length, opcode, flags, id = @buffer.unpack("NCCN", offset: at)
          return broken(length, id, &block) unless length.between?(Frames::COUNTED_BYTES, @frame_bytes_max)
          break if @buffer.bytesize - at < length + 4

          body = @buffer.byteslice(at + Frames::HEADER_BYTES, length - Frames::COUNTED_BYTES)
          at += length + 4
          if flags.zero? && @streams.empty? && @refused.empty?
            yield opcode, id, body
          else
            assemble(opcode, flags, id, body, &block)
          end
          return if @broken
        end
        keep(at, &block)
      end

      private

      def keep(at, &block)
        if at == @buffer.bytesize
          @buffer.clear
        elsif at.positive?
          @buffer = @buffer.byteslice(at, @buffer.bytesize - at)
        end
        return if @buffer.bytesize < 4

        # A length that is too long is judged with the whole header, so that the fault can name its request.
        length = @buffer.unpack1("N")
        broken(length, 0, &block) if length < Frames::COUNTED_BYTES
      end

      def assemble(opcode, flags, id, body, &block)
        key = (opcode << 32) | id
        more = flags & Frames::CONTINUATION != 0
        if @refused.key?(key)
          @refused.delete(key) unless more
        elsif flags > Frames::CONTINUATION
          refuse(key, more, format("flags 0x%02X use bits that are reserved", flags), &block)
        else
          join(key, more, opcode, id, body, &block)
        end
      end

      def join(key, more, opcode, id, body, &block)
        stream = @streams[key]
        if stream.nil?
          return yield(opcode, id, body) unless more

          if @streams.size >= @streams_max
            return refuse(key, more, "more than #{@streams_max} messages are being continued at once", &block)
          end
        end
        if @assembled + body.bytesize > @assembly_bytes_max
          return refuse(key, more, "continued messages exceed #{@assembly_bytes_max} bytes on this connection", &block)
        end

        stream ||= @streams[key] = String.new(encoding: Encoding::BINARY)
        stream << body
        @assembled += body.bytesize
        return if more

        @streams.delete(key)
        @assembled -= stream.bytesize
        yield opcode, id, stream
      end

      def refuse(key, more, message)
        dropped = @streams.delete(key)
        @assembled -= dropped.bytesize if dropped
        @refused[key] = true if more
        fatal = more && @refused.size > @streams_max
        yield FrameFault.new(message, key & 0xFFFF_FFFF, fatal)
        forget if fatal
      end

      def broken(length, id)
        forget
        if length < Frames::COUNTED_BYTES
          yield FrameFault.new("frame length #{length} is shorter than its 6-byte header", 0, true)
        else
          yield FrameFault.new("frame of #{length} bytes exceeds the limit of #{@frame_bytes_max}", id, true)
        end
      end

      def forget
        @broken = true
        @buffer = String.new(encoding: Encoding::BINARY)
        @streams.clear
        @refused.clear
      end
    end

    # What a client may receive in which state.
    module States
      TABLE = {
        opening: { Op::HANDSHAKE_OK => :open, Op::ERROR => :closed, Op::DISCONNECT => :closed },
        open: (FROM_SERVER - [Op::HANDSHAKE_OK]).to_h { |opcode| [opcode, :open] }.merge(Op::DISCONNECT => :closed),
        closed: {}
      }.freeze

      module_function

      # The state that follows, nil if the operation may not come now. Before the handshake and after the
      # end that is fatal; in between it is ignored, so that old clients survive new servers.
      def following(state, opcode) = TABLE.fetch(state)[opcode]

      def fatal?(state) = state != :open
    end
  end
end
