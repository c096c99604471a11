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

  # What one caller waits for: some messages or settlements of one kind, each with a result. They travel
  # in {Run}s, perhaps in several frames, together with those of other calls, over several connections.
  # Guarded by the core's lock.
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
      @abandoned = @failed = false
    end

    def done? = @left.zero?

    def abandoned? = @abandoned

    def abandon! = @abandoned = true

    # Whether a result is an error.
    def failed? = @failed

    # The results of a run. The first ones count; what comes for a call that was given up is nobody's.
    def settle(first, results, failed)
      return if @abandoned || @results[first]

      count = results.size
      count == @results.size ? @results = results : @results[first, count] = results
      @failed ||= failed
      @left -= count
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
