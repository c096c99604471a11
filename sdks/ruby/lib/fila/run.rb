# frozen_string_literal: true

module Fila
  # Messages or settlements of one call that stand together, encoded: of one queue, in their order. What is
  # done once for a run is not done for each of its messages.
  # @api private
  class Run
    ROOM = ("\0" * 14).b.freeze # a frame's header and count fit before the bytes
    PART = "a*" # bytes as they are, whatever their encoding
    private_constant :ROOM, :PART

    attr_reader :call, :first, :count, :queue, :size, :ids
    attr_accessor :hops

    # @param first [Integer] which of the call's messages is its first
    # @param parts [Array<String>] the bytes, in pieces
    # @param sizes [Array<Integer>] bytes of each message
    # @param ids [Array<String>] of settlements
    # @param repeatable [Boolean] whether it may be sent again although its answer was lost
    def initialize(call, first, queue, parts, sizes, ids: [], repeatable: false)
      @call = call
      @first = first
      @count = sizes.size
      @queue = queue
      @sizes = sizes
      @size = sizes.sum
      @ids = ids
      @repeatable = repeatable
      @hops = 0
      @bytes = parts.pack(PART * parts.size, buffer: String.new(ROOM, capacity: @size + ROOM.bytesize))
      # Or everything that follows on the connection would be read wrongly.
      raise ArgumentError, "a payload was changed while it was enqueued" if @bytes.bytesize != @size + ROOM.bytesize
    end

    def repeatable? = @repeatable

    # The whole frame in memory of its own, when nothing else is in it: nothing is copied.
    def frame(opcode, id)
      @bytes[0, ROOM.bytesize] = [@size + 4 + Wire::Frames::COUNTED_BYTES, opcode, 0, id, @count].pack("NCCNN")
      @bytes
    end

    def append_to(out) = out << @bytes.byteslice(ROOM.bytesize, @size)

    # Two runs that make up this one.
    def halves
      at = ROOM.bytesize
      parts = @sizes.map { |size| @bytes.byteslice((at += size) - size, size) }
      middle = (@count + 1) / 2
      [0...middle, middle...@count].map do |range|
        half = Run.new(@call, @first + range.begin, @queue, parts[range], @sizes[range], ids: @ids[range] || [],
                                                                                         repeatable: @repeatable)
        half.hops = @hops
        half
      end
    end

    # Each has its result.
    # @param failed [Boolean] whether an error is among them
    def settle(results, failed = false) = @call.settle(@first, results, failed)

    # All have this one.
    def fail(error)
      @call.settle(@first, Array.new(@count, @call.kind.enqueues ? EnqueueResult.new(nil, false, error) : error), true)
    end
  end

  # Makes runs of a call's messages or settlements. A run ends where the queue changes, where a frame would be
  # full, and between what may be sent again and what may not.
  # @api private
  class Runs
    # @param first [Integer] which of the call's is the first
    def initialize(call, count_max, bytes_max, first = 0)
      @call = call
      @count_max = count_max
      @bytes_max = bytes_max
      @runs = []
      @first = first
      @queue = nil
      @repeatable = false
      clear
    end

    # @param head [String] the bytes before the content
    # @param content [String] payload or id; its bytes are copied when the run ends
    # @param tail [String, nil] the bytes after it
    # @param id [String, nil] of a settlement
    def add(queue, head, content, content_size, tail, id, repeatable)
      size = head.bytesize + content_size
      size += tail.bytesize if tail
      full = @bytes + size > @bytes_max || @sizes.size == @count_max || !queue.equal?(@queue) || repeatable != @repeatable
      if full
        close unless @sizes.empty?
        @queue = queue
        @repeatable = repeatable
      end
      @bytes += size
      @sizes << size
      @parts << head << content
      @parts << tail if tail
      @ids << id if id
    end

    # @return [Array<Run>]
    def finish
      close unless @sizes.empty?
      @runs
    end

    private

    def close
      @runs << Run.new(@call, @first, @queue, @parts, @sizes, ids: @ids, repeatable: @repeatable)
      @first += @sizes.size
      clear
    end

    def clear
      @parts = []
      @sizes = []
      @ids = []
      @bytes = 0
    end
  end
end
