# frozen_string_literal: true

module Fila
  # One delivered message. Its lease lasts for the queue's visibility timeout: settle it within that
  # time with {#ack}, {#nack} or {#release}, or it is delivered again, perhaps to somebody else.
  #
  # A message keeps the bytes of the delivery it came with; keep its payload rather than the message.
  class Message
    # @return [String] a UUID as text, unique and increasing: a good key for deduplication
    attr_reader :id
    # @return [String]
    attr_reader :queue
    # @return [String] what the queue's `on_enqueue` hook or the producer chose
    attr_reader :fairness_key
    # @return [Integer]
    attr_reader :weight
    # @return [Array<String>]
    attr_reader :throttle_keys
    # @return [Integer] how often the message failed before: 0 at the first delivery
    attr_reader :attempt_count
    # @return [Integer] milliseconds since 1970
    attr_reader :enqueued_at_ms
    # @return [Integer] milliseconds since 1970
    attr_reader :leased_at_ms
    # @api private
    attr_reader :link

    NO_KEYS = [].freeze
    private_constant :NO_KEYS
    private_class_method :new

    # @return [String] the payload's bytes, in binary encoding
    def payload
      @payload ||= @body.byteslice(@payload_at, @payload_size)
    end

    # @return [Integer] bytes of the payload
    def payload_size = @payload_size

    # @return [Hash{String=>String}]
    def headers
      @headers ||= read_headers
    end

    # @return [Time]
    def enqueued_at = Time.at(0, @enqueued_at_ms, :millisecond)

    # @return [Time]
    def leased_at = Time.at(0, @leased_at_ms, :millisecond)

    # @return [String, nil] the message's W3C trace context
    def traceparent = headers[Trace::HEADER]

    # Done and gone.
    # @param timeout [Numeric, nil] seconds; nil waits for ever
    # @return [void]
    # @raise [MessageNotFoundError] if the lease is over
    def ack(timeout: @client.timeout) = settle(:ack, nil, timeout)

    # Gives the message back as failed. The queue's `on_failure` hook sees the error and decides whether
    # and when it is delivered again.
    # @param error [String, Exception]
    # @param timeout [Numeric, nil]
    # @return [void]
    def nack(error = "", timeout: @client.timeout) = settle(:nack, error, timeout)

    # Hands the message back at once, to its old place and without a counted attempt.
    # @param timeout [Numeric, nil]
    # @return [void]
    def release(timeout: @client.timeout) = settle(:release, nil, timeout)

    # Lets the lease end `visibility` seconds from now; nil means the queue's visibility timeout.
    # @param visibility [Numeric, nil]
    # @param timeout [Numeric, nil]
    # @return [void]
    def extend_lease(visibility = nil, timeout: @client.timeout)
      @client.extend_lease(queue: queue, id: id, visibility: visibility, timeout: timeout)
    end

    # @return [Boolean] whether {#ack}, {#nack} or {#release} was called
    def settled? = @settled == true

    # Without payload and header values: messages end up in logs.
    def inspect
      "#<Fila::Message #{id} queue=#{queue.inspect} fairness_key=#{fairness_key.inspect} " \
        "attempt_count=#{attempt_count} payload_size=#{payload_size}>"
    end
    alias to_s inspect

    # Reads one item of a Delivery and returns where the next begins. Headers and payload stay where
    # they are until somebody asks for them.
    # @api private
    def read(body, at, names, client, link)
      @settled = false # first: see the end of this file
      @body = body
      @client = client
      @link = link
      read_alike(body, at, names) || read_odd(at, names)
    end

    # @api private
    def settled! = @settled = true

    private

    def settle(verb, error, timeout)
      settled!
      @client.settle_message(verb, self, error, timeout)
    end

    # One unpack if it looks like the message before it: no headers, no throttle keys, the same sizes.
    def read_alike(body, at, names)
      size = names.size
      return if at + size > body.bytesize

      id_size, id, queue_size, queue, headers, payload_size, key_size, key, weight, keys, @attempt_count,
        @enqueued_at_ms, @leased_at_ms = body.unpack(names.format, offset: at)
      return unless names.alike?(id_size, queue_size, headers, payload_size, key_size, keys)

      @id = id.force_encoding(Encoding::UTF_8)
      @queue = names.queue(queue)
      @headers_at = at + names.headers_at
      @payload_at = @headers_at + 6
      @payload_size = payload_size
      @fairness_key = names[key]
      @weight = weight
      @throttle_keys = NO_KEYS
      at + size
    end

    def read_odd(at, names)
      at = skip(at, size = short(at))
      @id = @body.byteslice(at - size, size).force_encoding(Encoding::UTF_8)
      at = skip(at, size = short(at))
      @queue = names[@body.byteslice(at - size, size)]
      @headers_at = at
      at = read_payload(skip_headers(at))
      at = skip(at, size = short(at))
      @fairness_key = names[@body.byteslice(at - size, size)]
      names.expect(@payload_size, size)
      read_tail(at, names)
    end

    def read_payload(at)
      Wire::Hot.need(@body, at, 4, "messages")
      @payload_size = @body.unpack1("N", offset: at)
      @payload_at = at + 4
      @payload_at + @payload_size
    end

    def read_tail(at, names)
      body = @body
      Wire::Hot.need(body, at, 26, "messages")
      @weight, keys, @attempt_count, @enqueued_at_ms, @leased_at_ms = body.unpack("NnNQ>Q>", offset: at)
      @throttle_keys = NO_KEYS
      return at + 26 if keys.zero?

      at += 6
      @throttle_keys = Array.new(keys) do
        at = skip(at, size = short(at))
        names[body.byteslice(at - size, size)]
      end
      Wire::Hot.need(body, at, 20, "messages")
      @attempt_count, @enqueued_at_ms, @leased_at_ms = body.unpack("NQ>Q>", offset: at)
      at + 20
    end

    def skip_headers(at)
      count = short(at)
      at += 2
      (count * 2).times { at = skip(at, short(at)) }
      at
    end

    def read_headers
      at = @headers_at
      found = {}
      count = short(at)
      at += 2
      count.times do
        at = skip(at, size = short(at))
        key = text(at - size, size)
        at = skip(at, size = short(at))
        found[key] = text(at - size, size)
      end
      found
    end

    def text(at, size)
      found = @body.byteslice(at, size).force_encoding(Encoding::UTF_8)
      return found if found.valid_encoding?

      raise InvalidFrameError, "message #{id} has a header that is not UTF-8"
    end

    # A u16; where the body ends before it, an InvalidBody.
    def short(at)
      high = @body.getbyte(at)
      low = @body.getbyte(at + 1)
      raise Wire::InvalidBody.new("messages", "the body ends before it") if low.nil?

      (high << 8) | low
    end

    def skip(at, size)
      at += 2 + size
      raise Wire::InvalidBody.new("messages", "the body ends before it") if at > @body.bytesize

      at
    end
  end
end

# Ruby makes room for an object's variables as they come, in the order in which the first object of a class had
# them. This one has them all, so that those to come make all the room at once with the last, @settled.
Fila::Message.allocate.instance_eval do
  %i[body client link id queue headers_at payload_at payload_size fairness_key weight throttle_keys attempt_count
     enqueued_at_ms leased_at_ms payload headers settled].each { |name| instance_variable_set("@#{name}", nil) }
end
