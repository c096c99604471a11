# frozen_string_literal: true

module Fila
  # Bounds the bytes under way without an answer. Who comes first is let in first; what is larger than
  # the bound is let in alone. Guarded by the core's lock.
  # @api private
  class Gate
    Place = Struct.new(:bytes, :condition, :admitted, :error)

    def initialize(core, limit)
      @core = core
      @limit = limit
      @used = 0
      @waiting = []
    end

    # @return [Boolean] false when the deadline came first
    def enter(bytes, deadline)
      return @used += bytes if @waiting.empty? && fits?(bytes)

      place = Place.new(bytes, ConditionVariable.new, false, nil)
      @waiting << place
      entered = false
      begin
        until place.admitted
          raise place.error.dup if place.error
          return false unless @core.sleep_on(place.condition, deadline)
        end
        entered = true
      ensure
        withdraw(place) unless entered
      end
    end

    def leave(bytes)
      return if bytes.zero?

      @used -= bytes
      admit
    end

    # Nobody will ever be let in again.
    def close(error)
      @waiting.each do |place|
        place.error = error
        place.condition.signal
      end
    end

    private

    def withdraw(place)
      place.admitted ? @used -= place.bytes : @waiting.delete_if { |other| other.equal?(place) }
      admit
    end

    def admit
      while (first = @waiting.first) && fits?(first.bytes)
        @waiting.shift
        @used += first.bytes
        first.admitted = true
        first.condition.signal
      end
    end

    def fits?(bytes) = @used.zero? || @used + bytes <= @limit
  end
end
