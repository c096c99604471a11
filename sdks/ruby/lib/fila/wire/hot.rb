# frozen_string_literal: true

module Fila
  module Wire
    # What is done for every message, written for speed: one pack per message out, offsets instead of
    # copies in. The tests hold it against the golden vectors and {Codec}.
    # @api private
    module Hot
      PAYLOAD_BYTES_MAX = 0xFFFF_FFFF
      NO_OPTIONS = ("\x00" * 18).b.freeze
      WEIGHT_MAX = 0xFFFF_FFFF

      module_function

      # An item of Enqueue before its payload. `headers` is a field made by {Text.map}.
      def message_head(queue_field, headers, payload_size)
        raise ArgumentError, "payload has #{payload_size} bytes; at most #{PAYLOAD_BYTES_MAX} can be sent" if payload_size > PAYLOAD_BYTES_MAX

        [queue_field, headers, payload_size].pack("a*a*N")
      end

      # What follows it in EnqueueWith.
      def options(delay_ms, idempotency_key, fairness_key, weight, throttle_keys)
        out = [delay_ms].pack("Q>")
        out << Text.field(idempotency_key, "idempotency_key") << Text.field(fairness_key, "fairness_key")
        out << [weight].pack("N") << Text.count(throttle_keys, "throttle keys")
        throttle_keys.each { |key| out << Text.field(key, "throttle key") }
        out
      end

      # An item of Ack and Release.
      def reference(queue, id) = [queue.bytesize, queue, id.bytesize, id].pack("na*na*")

      # The codes of an AckResult, NackResult or ReleaseResult, a byte each.
      def codes(body, count)
        body.byteslice(4, count_of(body, 1, "results", count))
      end

      # Messages of a Delivery. `names` remembers what repeats: queues and keys are few.
      def deliveries(body, names, client, link)
        count = count_of(body, 46, "messages")
        at = 4
        Array.new(count) do
          message = Message.allocate
          at = message.read(body, at, names, client, link)
          message
        end
      end

      def count_of(body, least, field, expected = nil)
        need(body, 0, 4, field)
        count = body.unpack1("N")
        raise InvalidBody.new(field, "#{count} for #{expected} items") if expected && count != expected
        return count if count * least <= body.bytesize - 4

        raise InvalidBody.new(field, "#{count} entries do not fit the body")
      end

      def need(body, at, size, field)
        raise InvalidBody.new(field, "the body ends before it") if at + size > body.bytesize
      end
    end

    # The items of an EnqueueResult or, with duplicates, an EnqueueWithResult, one after the other.
    # @api private
    class Hot::Results
      # The message's id.
      attr_reader :id
      # Whether it was stored before.
      attr_reader :duplicate

      def initialize(body, count, duplicates:)
        Hot.count_of(body, duplicates ? 4 : 3, "results", count)
        @body = body
        @bytes = body.bytesize
        @duplicates = duplicates
        @tail = duplicates ? 4 : 3
        @at = 4
        @id = nil
        @duplicate = false
      end

      # Goes to the next one and returns its code.
      def advance
        at = @at
        body = @body
        Hot.need(body, at, 3, "results") if at + 3 > @bytes
        size = (body.getbyte(at + 1) << 8) | body.getbyte(at + 2)
        Hot.need(body, at, size + @tail, "results") if at + size + @tail > @bytes
        @id = body.byteslice(at + 3, size).force_encoding(Encoding::UTF_8)
        @duplicate = body.getbyte(at + 3 + size) == 1 if @duplicates
        @at = at + size + @tail
        body.getbyte(at)
      end
    end

    # Strings that repeat, each made once: queues and keys are few.
    # @api private
    class Names
      ENTRIES_MAX = 1024

      # How to unpack a whole message that looks like the last one.
      attr_reader :format
      # Its bytes.
      attr_reader :size
      # Where its headers begin.
      attr_reader :headers_at

      def initialize(queue = "")
        @known = {}
        @last_bytes = @last_text = nil
        @queue = queue.b.freeze
        @queue_text = -queue
        @queue_size = queue.bytesize
        @headers_at = 40 + @queue_size
        @payload_size = nil
        expect(0, 7)
      end

      # The next message is expected to have no headers and these sizes.
      def expect(payload_size, key_size)
        return if payload_size == @payload_size && key_size == @key_size

        @payload_size = payload_size
        @key_size = key_size
        @format = "na36na#{@queue_size}nNx#{payload_size}na#{key_size}NnNQ>Q>"
        @size = @headers_at + 6 + payload_size + 2 + key_size + 26
      end

      # Whether what was unpacked so is a message.
      def alike?(id_size, queue_size, headers, payload_size, key_size, keys)
        id_size == 36 && queue_size == @queue_size && headers.zero? && payload_size == @payload_size &&
          key_size == @key_size && keys.zero?
      end

      # The string for these bytes, frozen and known to be UTF-8.
      def [](bytes)
        return @last_text if bytes == @last_bytes

        @last_text = @known[bytes] || add(bytes)
        @last_bytes = bytes
        @last_text
      end

      # The queue of a message, most often the expected one.
      def queue(bytes)
        bytes == @queue ? @queue_text : self[bytes]
      end

      private

      def add(bytes)
        text = bytes.dup.force_encoding(Encoding::UTF_8)
        raise InvalidBody.new("messages", "a string is not UTF-8") unless text.valid_encoding?

        text = -text
        @known[bytes.freeze] = text if @known.size < ENTRIES_MAX && bytes.bytesize <= 256
        text
      end
    end
  end
end
