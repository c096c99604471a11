# frozen_string_literal: true

module Fila
  # The client's side of one node: the present connection, what waits for it, and what it still owes an
  # answer. The seed link, to the address the user gave, reconnects; a link to a leader hands everything
  # to the seed when it ends. Guarded by the core's lock; its thread takes it.
  # @api private
  class Link
    HOPS_MAX = 8 # how often something is sent on to another node

    # Runs in one frame, sent and not yet answered.
    Batch = Struct.new(:kind, :runs) do
      def size = runs.sum(&:size)

      def count = runs.sum(&:count)
    end

    attr_reader :core, :address, :ended

    def initialize(core, address, seed:)
      @core = core
      @address = address
      @seed = seed
      @options = core.options
      @connection = nil
      @ended = nil # why no call can succeed here any more
      @failure = nil # why there is no connection
      @complaint = nil # an Error that belongs to no request
      @closing = false
      @told = nil # why the link was told to end
      @last_id = 0
      @pending = {}
      @requests = {}.compare_by_identity # waiting for a connection, in order
      @streams = {}.compare_by_identity
      @collectors = Kinds::ALL.map { |kind| collector_for(kind) }
      @out = new_buffer
      @writing = nil
      @written = 0
      @attempts = 0
      init_loop
    end

    # Hands runs in; false if the link has ended.
    def submit(kind, runs)
      return false if @ended

      @collectors[kind.index].add(runs, now = Clock.now)
      push(now)
      true
    end

    def ask(request)
      return false if @ended

      if @connection
        send_request(request)
        push
      else
        @requests[request] = true
      end
      true
    end

    def subscribe(stream)
      return false if @ended
      return true if stream.ended?

      stream.link = self
      @streams[stream] = true
      if @connection
        send_consume(stream)
        push
      end
      true
    end

    # Ends a stream here and hands back what nobody has read.
    def unsubscribe(stream, unread)
      return unless @streams.delete(stream) && stream.request_id && @connection

      id = stream.request_id
      stream.request_id = nil
      send_frame(Wire::Op::CANCEL_CONSUME, id, "")
      @pending[id] = leaving = Leaving.new(stream, id)
      release(leaving, unread)
      push
    end

    def abandon(call)
      if call.is_a?(Request)
        @requests.delete(call)
      else
        freed = @collectors[call.kind.index].forget(call.results.size, call.bytes)
        @core.gate.leave(freed) if call.kind.enqueues
      end
    end

    # Sends what lingers at once, now and later.
    def flush
      @collectors.each { |collector| collector.mode = :auto if collector.mode == :linger }
      push
    end

    # Why a call may have had no answer, for people.
    def condition
      return "" if @connection

      @failure ? "; not connected: #{@failure}" : "; still connecting"
    end

    def ended_by_itself? = !@ended.nil? && !@ended.is_a?(ClosedError)

    # Fails everything, now and later.
    def finish(error)
      @ended ||= error
      runs, requests, streams = take_all
      runs.each { |kind, waiting| @core.fail_runs(kind, waiting, error) }
      requests.each { |request| request.settle(error) }
      streams.each { |stream| stream.fail(error) }
    end

    private

    def collector_for(kind)
      mode = @options.batch_mode
      mode = :auto if mode == :linger && !kind.enqueues # lingering would only keep leases longer than needed
      Collector.new(mode, @options.linger, @options.batch_messages, @options.batch_bytes)
    end

    # Makes this the present connection.
    def attach(connection)
      @connection = connection
      @failure = @complaint = nil
      @out = new_buffer
      @writing = nil
      @streams.each_key { |stream| send_consume(stream) }
      take_requests.each { |request| send_request(request) }
    end

    # Fails what was sent and not answered, keeps what may be sent again.
    def detach(reason)
      lost = lost_by(@told || reason)
      @connection = nil
      @failure = reason.message
      pending = @pending
      @pending = {}
      # The last first: what is sent again is put before the rest, so it keeps its order.
      pending.values.grep(Batch).reverse_each { |batch| lose(batch, lost) }
      pending.values.grep(Request).each do |request|
        request.repeatable && !request.abandoned? ? @requests[request] = true : request.settle(lost)
      end
      @streams.each_key(&:disconnected)
    end

    # What was sent and not answered may have been carried out, whoever ended the connection.
    def lost_by(reason)
      return ClosedError.new(reason.message, maybe_applied: true) if reason.is_a?(ClosedError)

      ConnectionLostError.new("connection to #{@address} lost before the broker answered: #{reason.message}")
    end

    # Settles a frame that will not be answered; messages with an idempotency key are sent again.
    def lose(batch, lost)
      again, gone = batch.runs.partition { |run| run.repeatable? && !run.call.abandoned? && !@closing }
      gone.each { |run| run.fail(lost) }
      landed(batch.kind, gone.sum(&:size))
      @collectors[batch.kind.index].put_back(again) unless again.empty?
    end

    # A frame is no longer under way. Its bytes make room for others.
    def landed(kind, bytes)
      @collectors[kind.index].frames_under_way -= 1
      @core.gate.leave(bytes) if kind.enqueues
    end

    def take_all
      runs = Kinds::ALL.map { |kind| [kind, @collectors[kind.index].take_all] }
      requests = take_requests
      streams = @streams.keys
      @streams.clear
      [runs, requests, streams]
    end

    def take_requests
      waiting = @requests.keys
      @requests = {}.compare_by_identity
      waiting
    end

    def new_buffer = String.new(encoding: Encoding::BINARY)

    def next_id
      # Never an id that is in use: a stream may live for more than 2^32 requests.
      loop do
        @last_id = (@last_id + 1) & 0xFFFF_FFFF
        return @last_id if @last_id.positive? && !@pending.key?(@last_id)
      end
    end
  end
end

require_relative "link/sending"
require_relative "link/receiving"
require_relative "link/refusals"
require_relative "link/loop"
