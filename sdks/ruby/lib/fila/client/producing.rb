# frozen_string_literal: true

module Fila
  class Client
    # Enqueuing.
    module Producing
      OPTIONS = %i[delay idempotency_key fairness_key weight throttle_keys].freeze
      FIELDS = (%i[queue payload headers] + OPTIONS).freeze
      CHUNK_BYTES = 1024 * 1024
      SECONDS_MAX = 1_000_000_000_000 # more than any broker accepts, and fits a u64 of milliseconds
      private_constant :OPTIONS, :FIELDS, :CHUNK_BYTES, :SECONDS_MAX

      # Stores a message.
      # @param queue [String]
      # @param payload [String] its bytes are sent as they are
      # @param headers [Hash{String, Symbol=>String}, nil]
      # @param delay [Numeric, nil] seconds until it becomes ready
      # @param idempotency_key [String, nil] a queue that remembers the key stores nothing and answers with
      #   the first message's id. With a key the message is sent again by itself after a lost connection.
      # @param fairness_key [String, nil] these three say where the message stands in a queue without an
      #   `on_enqueue` hook
      # @param weight [Integer, nil]
      # @param throttle_keys [Array<String>, nil]
      # @param timeout [Numeric, nil] seconds; nil waits for ever
      # @return [String] the message's id, when the broker has stored it
      # @raise [QueueNotFoundError, TimeoutError, ConnectionLostError, Error]
      def enqueue(queue:, payload:, headers: nil, delay: nil, idempotency_key: nil, fairness_key: nil,
                  weight: nil, throttle_keys: nil, timeout: @timeout)
        message = { queue: queue, payload: payload, headers: headers, delay: delay, idempotency_key: idempotency_key,
                    fairness_key: fairness_key, weight: weight, throttle_keys: throttle_keys }
        produce([message], timeout).results.first.value!
      end

      # Stores many messages with a result for each, in order. A refused one costs only itself.
      # @param messages [Enumerable<Hash>] each with the keywords of {#enqueue}, without `timeout`
      # @param timeout [Numeric, nil]
      # @return [Array<EnqueueResult>]
      # @raise [TimeoutError] what was sent before may have been stored
      def enqueue_many(messages, timeout: @timeout)
        messages = messages.to_a
        messages.empty? ? [] : produce(messages, timeout).results
      end

      # Stores a message without waiting for the answer; waits only while too much is under way.
      # @return [Receipt] its value is the message's id
      def enqueue_soon(timeout: @timeout, **message)
        receipt_for([message], timeout) { |results| results.first.value! }
      end

      # {#enqueue_many} without waiting for the answers.
      # @return [Receipt] its value is the array of results
      def enqueue_many_soon(messages, timeout: @timeout)
        messages = messages.to_a
        raise ArgumentError, "no messages" if messages.empty?

        receipt_for(messages, timeout) { |results| results }
      end

      private

      def receipt_for(messages, timeout, &answer)
        call = produce(messages, timeout, wait: false)
        Receipt.new(@core, call, timeout, &answer)
      end

      # Encodes everything first: a mistake is told before anything is sent.
      def produce(messages, timeout, wait: true)
        deadline = deadline_for(timeout)
        core = self.core
        kind = messages.any? { |message| options?(message) } ? Kinds::ENQUEUE_WITH : Kinds::ENQUEUE
        call = Call.new(core, "enqueue", kind, messages.size, messages.first[:queue])
        runs = encode(messages, call, kind)
        call.bytes = runs.sum(&:size)
        core.synchronize do
          core.admit(call)
          hand_over(core, call, runs, timeout, deadline)
          core.await(call, timeout, deadline) if wait
        end
        call
      end

      # Gives runs to their links, as the bound on bytes in flight lets them in.
      def hand_over(core, call, runs, timeout, deadline)
        handed = false
        chunks(runs, call.bytes) do |chunk, bytes|
          unless core.gate.enter(bytes, deadline)
            raise core.too_late(call, timeout, "; #{@options.in_flight_bytes} bytes are under way without an answer")
          end

          core.dispatch(call.kind, chunk)
        end
        handed = true
      ensure
        core.abandon(call) unless handed
      end

      # Those that are small go together.
      def chunks(runs, bytes_all)
        return yield(runs, bytes_all) if bytes_all <= run_bytes_max

        from = bytes = 0
        runs.each_with_index do |run, index|
          if bytes.positive? && bytes + run.size > run_bytes_max
            yield runs[from...index], bytes
            from = index
            bytes = 0
          end
          bytes += run.size
        end
        yield runs[from..], bytes
      end

      def run_bytes_max = @run_bytes_max ||= [CHUNK_BYTES, @options.in_flight_bytes, @options.batch_bytes].min

      def options?(message)
        raise TypeError, "each message is a Hash, not #{message.class}" unless message.is_a?(Hash)

        plain = message.key?(:queue) && message.key?(:payload)
        return false if plain && (message.size == 2 || (message.size == 3 && message.key?(:headers)))

        checked_options?(message)
      end

      def checked_options?(message)
        missing = %i[queue payload].find { |name| !message.key?(name) }
        raise ArgumentError, "message without #{missing.inspect}" if missing

        unknown = message.keys - FIELDS
        raise ArgumentError, "unknown #{unknown.first.inspect}; a message has #{FIELDS.join(", ")}" if unknown.any?

        OPTIONS.any? { |name| message[name] }
      end

      def encode(messages, call, kind)
        traceparent = @options.traceparent ? @options.traceparent.call : Trace.current
        runs = runs_for(call)
        name = queue = field = head = headers = payload_size = tail = nil
        again = false
        messages.each do |message|
          unless message[:queue].equal?(name)
            queue = checked_queue(name = message[:queue])
            field = Wire::Text.field(queue, "queue")
            payload_size = nil
          end
          payload = message[:payload]
          raise TypeError, "payload must be a String, not #{payload.class}" unless payload.is_a?(String)

          # Messages that look alike begin alike.
          unless payload_size == payload.bytesize && headers.nil? && message[:headers].nil?
            headers = message[:headers]
            head = Wire::Hot.message_head(field, headers_field(headers, traceparent), payload_size = payload.bytesize)
          end
          if kind.duplicates
            tail = options_field(message)
            again = !message[:idempotency_key].nil?
          end
          runs.add(queue, head, payload, payload_size, tail, nil, again)
        end
        runs.finish
      end

      def runs_for(call) = Runs.new(call, @options.batch_messages, run_bytes_max)

      def checked_queue(name)
        checked = Wire::Text.checked(name, "queue")
        raise ArgumentError, "queue has no name" if checked.empty?

        checked
      end

      def headers_field(headers, traceparent)
        return Wire::Text::EMPTY if headers.nil? && traceparent.nil?

        if traceparent && !(headers && (headers.key?(Trace::HEADER) || headers.key?(Trace::HEADER.to_sym)))
          headers = (headers || {}).merge(Trace::HEADER => traceparent)
        end
        Wire::Text.map(headers, "headers")
      end

      def options_field(message)
        return Wire::Hot::NO_OPTIONS unless OPTIONS.any? { |name| message[name] }

        delay = milliseconds(message[:delay], "delay")
        weight = message[:weight] || 0
        unless weight.is_a?(Integer) && weight.between?(0, Wire::Hot::WEIGHT_MAX)
          raise ArgumentError, "weight must be a whole number that is not negative, not #{weight.inspect}"
        end

        Wire::Hot.options(delay, message[:idempotency_key] || "", message[:fairness_key] || "", weight,
                          Array(message[:throttle_keys]))
      end

      # Rounded up: a message never becomes ready too early.
      def milliseconds(seconds, what)
        return 0 if seconds.nil?
        return (seconds * 1000).ceil if seconds.is_a?(Numeric) && seconds.between?(0, SECONDS_MAX)

        raise ArgumentError, "#{what} must be a number of seconds from 0 to #{SECONDS_MAX}, not #{seconds.inspect}"
      end

      def deadline_for(timeout)
        Options.check_timeout(timeout)
        timeout && (Clock.now + timeout)
      end
    end
  end
end
