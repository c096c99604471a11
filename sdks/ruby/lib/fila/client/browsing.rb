# frozen_string_literal: true

module Fila
  class Client
    # Looking at messages without taking them.
    module Browsing
      # The bits of the states a message may be in.
      STATES = { ready: 1, delayed: 2, leased: 4 }.freeze
      STATE_NAMES = STATES.invert.freeze
      private_constant :STATE_NAMES

      # Yields the messages of a queue as of this moment; without a block, an Enumerator.
      # @param queue [String]
      # @param fairness_key [String, nil] only this key's
      # @param states [Array<Symbol>] some of `:ready`, `:delayed` and `:leased`; all by default
      # @param ttl [Numeric, nil] seconds the snapshot lives; nil means ten minutes
      # @yieldparam message [BrowsedMessage]
      # @return [Enumerator<BrowsedMessage>, nil]
      def browse(queue:, fairness_key: nil, states: STATES.keys, ttl: nil, timeout: @timeout, &block)
        unless block
          return enum_for(:browse, queue: queue, fairness_key: fairness_key, states: states, ttl: ttl, timeout: timeout)
        end

        snapshot = browse_open(queue: queue, fairness_key: fairness_key, ttl: ttl, timeout: timeout)
        begin
          snapshot.ranges.each { |range| browse_range(snapshot.token, range, states, timeout, &block) }
        ensure
          forget_snapshot(snapshot.token)
        end
        nil
      end

      # Takes a snapshot to read in pages, also over other connections; {#browse_close} it when done.
      # @param parts [Integer] about how many ranges of equal size, for parallel readers
      # @return [Snapshot]
      def browse_open(queue:, fairness_key: nil, parts: 1, ttl: nil, timeout: @timeout)
        fields = { fairness_key: fairness_key, parts: parts, ttl_ms: milliseconds(ttl, "ttl") }
        found = ask_queue("Browse", queue, fields, what: "browse", timeout: timeout)
        Snapshot.new(token: found[:snapshot], expires_at: time_of(found[:expires_at_ms]), messages: found[:messages],
                     ranges: found[:ranges].map { |range| BrowseRange.new(**range) })
      end

      # Reads one page.
      # @param token [String] of the {Snapshot}
      # @param range [BrowseRange]
      # @param form [Symbol] `:messages` or `:arrow`
      # @return [Page]
      def browse_page(token:, range:, states: STATES.keys, max_messages: 0, max_bytes: 0, form: :messages, timeout: @timeout)
        bits = states.sum do |state|
          STATES.fetch(state) { raise ArgumentError, "no such state: #{state.inspect}; there are #{STATES.keys.join(", ")}" }
        end
        fields = { snapshot: token, start: range.start, end: range.end, states: bits, max_messages: max_messages,
                   max_bytes: max_bytes, form: form_of(form, Batches::FORMS.except(:count)) }
        found = ask("BrowsePage", fields, what: "read a page", subject: "snapshot", timeout: timeout, repeatable: true)
        arrow = found[:form] == Batches::FORMS[:arrow]
        Page.new(message_count: found[:messages], next_start: (found[:next] unless found[:next].empty?),
                 messages: arrow ? [] : browsed_messages(found[:body]), arrow: (found[:body] if arrow))
      end

      # @param token [String]
      # @return [void]
      def browse_close(token:, timeout: @timeout)
        ask("BrowseClose", { snapshot: token }, what: "close a snapshot", subject: "snapshot", timeout: timeout)
        nil
      end

      private

      def browse_range(token, range, states, timeout, &block)
        loop do
          page = browse_page(token: token, range: range, states: states, timeout: timeout)
          page.messages.each(&block)
          break unless page.next_start

          range = BrowseRange.new(start: page.next_start, end: range.end)
        end
      end

      def forget_snapshot(token)
        browse_close(token: token, timeout: 1)
      rescue Error
        nil # it expires by itself
      end

      def browsed_messages(body)
        return [] if body.empty?

        Wire::Codec.decode("BrowsedMessages", body)[:messages].map do |message|
          BrowsedMessage.new(**message.except(:enqueued_at_ms, :ready_at_ms), state: STATE_NAMES[message[:state]],
                                                                              enqueued_at: time_of(message[:enqueued_at_ms]),
                                                                              ready_at: time_of(message[:ready_at_ms]))
        end
      rescue Wire::InvalidBody => error
        raise InvalidFrameError, "the page's messages do not parse: #{error.message}"
      end
    end
  end
end
