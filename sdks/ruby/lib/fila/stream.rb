# frozen_string_literal: true

module Fila
  # A subscription: what was delivered and not yet read. It outlives connections: a link subscribes it
  # again after a reconnect, and another link takes it when another node leads. Guarded by the core's
  # lock.
  # @api private
  class Stream
    attr_reader :core, :queue, :prefetch, :error, :names, :hops
    attr_accessor :link, :request_id, :resubscribe_at

    def initialize(core, queue, prefetch, heartbeat: false)
      # With a heart-beat, what is not settled: ids, each with the beat before its delivery.
      @held = heartbeat ? {} : nil
      @beats = 0
      @at_work = 0 # loops and threads that finish what they have when the subscription ends
      @over = ConditionVariable.new
      @core = core
      @queue = queue
      @prefetch = prefetch
      @buffer = []
      @again = Hash.new(0) # how often each message that was delivered before is in the buffer, by id
      @readable = ConditionVariable.new
      @accepted = false
      @ended = false
      @error = nil
      @hops = 0
      @names = Wire::Names.new(queue)
      @link = @request_id = @resubscribe_at = nil
    end

    def accepted? = @accepted

    def ended? = @ended

    # The broker accepted the Consume.
    def accept
      @hops = 0
      @accepted = true
      @readable.broadcast
    end

    # Waits until the broker has accepted it, or refused.
    def await_accepted(deadline)
      until @accepted || @ended
        return false unless @core.sleep_on(@readable, deadline)
      end
      true
    end

    # Waits for messages and takes up to `limit`. nil when the deadline came first, or after the end.
    def take(limit, deadline)
      while @buffer.empty?
        return if @ended || !@core.sleep_on(@readable, deadline)
      end
      shift(limit)
    ensure
      # For another reader: also when this one was interrupted as it was told.
      @readable.signal unless @buffer.empty?
    end

    def push(messages)
      @buffer.concat(messages)
      messages.each { |message| @held[message.id] = @beats } if @held
      messages.each { |message| @again[message.id] += 1 if message.attempt_count.positive? }
      # The broker sends more than the credit only when leases ran out, and the oldest unread messages
      # are those: they belong to somebody else by now.
      beyond = @buffer.size - @prefetch
      shift(beyond) if beyond.positive?
      @readable.signal
    end

    # Whether it wants to know what is settled: messages that were delivered before are here unread, or
    # there is a heart-beat.
    def copies? = !@again.empty? || !@held.nil?

    # The broker has settled a message. If its lease had run out before, it may have been delivered a second
    # time and be here unread: that copy is nobody's now.
    def drop_copies(id)
      @held&.delete(id)
      @buffer.reject! { |message| message.id == id } if @again.delete(id)
    end

    # What was delivered over the old connection cannot be settled over a new one that consumes the same
    # queue, so it waits for its redelivery.
    def disconnected
      @buffer.clear
      @again.clear
      @held&.clear
      @request_id = @resubscribe_at = nil
    end

    # Whether a heart-beat has something to extend, now or later.
    def alive? = !@ended || (@at_work.positive? && !@held.empty?)

    # A loop or a thread of a pool begins, or ends, with what it is handed.
    def working(change)
      @at_work += change
      @over.broadcast if @ended
    end

    # Begins a beat.
    # @return [Array<String>] ids of what is not settled, read or not
    def held
      @beats += 1
      @held.keys
    end

    # These were not leased here when this beat was answered. What was delivered since is.
    def forget(ids)
      ids.each { |id| @held.delete(id) if @held.fetch(id, @beats) < @beats }
    end

    # Waits until the deadline, or until a heart-beat has nothing to do any more.
    def rest(deadline)
      nil while alive? && @core.sleep_on(@over, deadline)
    end

    # Ends it with an error its reader sees, and hands back what nobody has read.
    def doom(error)
      unread = finish(error)
      @link&.unsubscribe(self, unread) if unread
    end

    def hop
      @hops += 1
      @hops <= Link::HOPS_MAX
    end

    # Ends it with an error its reader sees. The client's own end is not one.
    def fail(error)
      finish(error.is_a?(ClosedError) ? nil : error)
    end

    # Ends the subscription and hands back what nobody has read.
    def close
      unread = finish(nil)
      @link&.unsubscribe(self, unread) if unread
    end

    private

    def shift(count)
      taken = @buffer.shift(count)
      return taken if @again.empty?

      taken.each do |message|
        next unless message.attempt_count.positive?

        (@again[message.id] -= 1).positive? || @again.delete(message.id)
      end
    end

    def finish(error)
      return if @ended

      @ended = true
      @error = error
      @core.left(self)
      unread = @buffer
      @buffer = []
      @again.clear
      unread.each { |message| @held.delete(message.id) } if @held
      @readable.broadcast
      @over.broadcast
      unread
    end
  end

  # A stream that was closed while deliveries may be on their way to it.
  # @api private
  Leaving = Struct.new(:stream, :consume_id)
end
