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

      # An item of Ack and Release; of Nack with the reason's field behind it.
      def reference(queue, id, reason = nil)
        return [queue.bytesize, queue, id.bytesize, id].pack("na*na*") unless reason

        [queue.bytesize, queue, id.bytesize, id, reason].pack("na*na*a*")
      end

      # Yields code, message id and whether it was stored before, for every item of an EnqueueResult or,
      # with duplicates, an EnqueueWithResult.
      def enqueue_results(body, items, duplicates:)
        count_of(body, duplicates ? 4 : 3, "results", items)
        at = 4
        tail = duplicates ? 4 : 3
        bytes = body.bytesize
        items.times do
          need(body, at, 3, "results") if at + 3 > bytes
          size = (body.getbyte(at + 1) << 8) | body.getbyte(at + 2)
          need(body, at, size + tail, "results") if at + size + tail > bytes
          id = body.byteslice(at + 3, size).force_encoding(Encoding::UTF_8)
          code = body.getbyte(at)
          at += size + 3
          if duplicates
            yield code, id, body.getbyte(at) == 1
            at += 1
          else
            yield code, id, false
          end
        end
      end

      # The codes of an AckResult, NackResult or ReleaseResult.
      def codes(body, items)
        body.byteslice(4, count_of(body, 1, "results", items)).bytes
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

    # Strings that repeat, each made once: queues and keys are few.
    # @api private
    class Names
      ENTRIES_MAX = 1024

      # The beginning of a delivered message, if its id has 36 bytes and its queue is the expected one: id,
      # queue, count of headers and, if there are none, the payload's size.
      attr_reader :head_format
      # Bytes of that beginning.
      attr_reader :head_size
      # Bytes of the expected queue's name.
      attr_reader :queue_size

      def initialize(queue = "")
        @known = {}
        @last_bytes = @last_text = nil
        @queue = queue.b.freeze
        @queue_text = -queue
        @queue_size = queue.bytesize
        @head_format = "na36na#{@queue_size}nN"
        @head_size = 46 + @queue_size
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
