# frozen_string_literal: true

module Fila
  # An operation whose items are collected into frames.
  # @api private
  Kind = Struct.new(:index, :verb, :opcode, :enqueues, :duplicates)

  # The kinds, in the order in which frames are made: settlements free leases and credit.
  # @api private
  module Kinds
    ACK = Kind.new(0, :ack, Wire::Op::ACK, false, false).freeze
    NACK = Kind.new(1, :nack, Wire::Op::NACK, false, false).freeze
    RELEASE = Kind.new(2, :release, Wire::Op::RELEASE, false, false).freeze
    ENQUEUE = Kind.new(3, :enqueue, Wire::Op::ENQUEUE, true, false).freeze
    ENQUEUE_WITH = Kind.new(4, :enqueue, Wire::Op::ENQUEUE_WITH, true, true).freeze
    ALL = [ACK, NACK, RELEASE, ENQUEUE, ENQUEUE_WITH].freeze
    SETTLING = { ack: ACK, nack: NACK, release: RELEASE }.freeze
  end

  # One message or settlement on its way, encoded.
  # @api private
  class Item
    attr_reader :call, :index, :queue, :size, :id
    attr_accessor :hops

    # @param head [String] its bytes, or those before the payload
    # @param id [String, nil] of a settlement
    # @param payload [String, nil] of a message; shares the caller's memory until the caller changes it
    # @param tail [String, nil] the bytes after the payload
    # @param repeatable [Boolean] whether it may be sent again although its answer was lost
    def initialize(call, index, queue, head, id = nil, payload = nil, tail = nil, repeatable = false)
      @call = call
      @index = index
      @queue = queue
      @head = head
      @id = id
      @payload = payload
      @tail = tail
      @repeatable = repeatable
      @hops = 0
      @size = head.bytesize
      @size += payload.bytesize if payload
      @size += tail.bytesize if tail
    end

    def repeatable? = @repeatable

    def append_to(out)
      out << @head
      out << @payload if @payload
      out << @tail if @tail
    end

    def settle(result) = @call.settle(@index, result)

    def fail(error) = settle(@call.kind.enqueues ? EnqueueResult.new(nil, false, error) : error)
  end

  # What one caller waits for: some items of one kind, each with a result. Its items may travel in
  # several frames, together with those of other calls, over several connections. Guarded by the core's
  # lock.
  # @api private
  class Call
    attr_reader :what, :kind, :results, :condition, :queue
    # Bytes of its messages.
    attr_accessor :bytes

    # @param on_done called under the lock when the last result is there; must not block
    def initialize(core, what, kind, size, queue, &on_done)
      @core = core
      @what = what
      @kind = kind
      @queue = queue
      @results = Array.new(size)
      @bytes = 0
      @left = size
      @condition = ConditionVariable.new
      @on_done = on_done
      @abandoned = false
    end

    def done? = @left.zero?

    def abandoned? = @abandoned

    def abandon! = @abandoned = true

    # The first result of an item counts; what comes for a call that was given up is nobody's.
    def settle(index, result)
      return if @abandoned || @results[index]

      @results[index] = result
      @left -= 1
      return unless @left.zero?

      @core.finished(self)
      @condition.broadcast
      @on_done&.call(self)
    end
  end

  # An administrative call: sent when there is a connection, answered by one result.
  # @api private
  class Request
    attr_reader :what, :queue, :opcode, :body, :repeatable, :condition, :answer
    attr_accessor :hops

    def initialize(core, what, queue, opcode, body, repeatable)
      @core = core
      @what = what
      @queue = queue
      @opcode = opcode
      @body = body
      @repeatable = repeatable
      @condition = ConditionVariable.new
      @hops = 0
      @answer = nil
      @abandoned = false
    end

    def done? = !@answer.nil?

    def abandoned? = @abandoned

    def abandon! = @abandoned = true

    # @param answer [Hash, Error]
    def settle(answer)
      return if done?

      @answer = answer
      @core.finished(self)
      @condition.broadcast
    end
  end
end
