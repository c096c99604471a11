# frozen_string_literal: true

module Fila
  # Holds runs of one kind until they become a frame, and decides when that is.
  #
  # - auto: at once when nothing of this kind is under way or when there is enough for a frame of its
  #   own, else when an answer comes.
  # - linger: when the oldest run has waited long enough or the frame is full.
  # - disabled: one frame for every call.
  #
  # A run is never larger than a frame may be, unless a single message is.
  # @api private
  class Collector
    ENOUGH = 100 # messages need not wait for company

    attr_accessor :frames_under_way, :mode
    attr_reader :runs

    def initialize(mode, linger, count_max, bytes_max)
      @mode = mode
      @linger = linger
      @count_max = count_max
      @bytes_max = bytes_max
      @frames_under_way = 0
      @runs = []
      @count = @bytes = 0
      @due_at = nil
      @left = @left_bytes = 0 # of callers who have gone, at most, see forget
    end

    def add(runs, now)
      @due_at = now + @linger if @runs.empty? && @mode == :linger
      @runs.concat(runs)
      @count += runs.sum(&:count)
      @bytes += runs.sum(&:size)
    end

    # Takes runs that must be sent before the others.
    def put_back(runs)
      @runs.unshift(*runs)
      @count += runs.sum(&:count)
      @bytes += runs.sum(&:size)
    end

    def due?(now)
      return false if @runs.empty?
      return true if @count >= @count_max || @bytes >= @bytes_max

      case @mode
      when :auto then @frames_under_way.zero? || @count >= ENOUGH
      when :linger then @due_at.nil? || now >= @due_at
      else true
      end
    end

    # When lingering runs become due, nil if none linger.
    def due_at = @mode == :linger && !@runs.empty? ? @due_at : nil

    # The next frame's runs.
    def take
      return take_all if @mode != :disabled && @count <= @count_max && @bytes <= @bytes_max

      taken = @runs.shift(frame_size)
      @count -= taken.sum(&:count)
      @bytes -= taken.sum(&:size)
      taken
    end

    def take_all
      runs = @runs
      @runs = []
      @count = @bytes = 0
      runs
    end

    # A caller has gone, and up to so many messages and bytes here are its. They are never sent, but dropped
    # only once they may be an eighth of what waits: thousands of callers can reach their deadline in one
    # moment, and looking for each one's runs would take all of them the square of that. Returns the bytes
    # that were dropped.
    def forget(count, bytes)
      @left += count
      @left_bytes += bytes
      return 0 if 8 * @left < @count && 8 * @left_bytes < @bytes

      @left = @left_bytes = 0
      gone, @runs = @runs.partition { |run| run.call.abandoned? }
      freed = gone.sum(&:size)
      @count -= gone.sum(&:count)
      @bytes -= freed
      freed
    end

    private

    # How many runs.
    def frame_size
      count = bytes = 0
      first = @runs.first.call
      @runs.each_with_index do |run, index|
        count += run.count
        bytes += run.size
        next if index.zero?
        return index if count > @count_max || bytes > @bytes_max
        return index if @mode == :disabled && !run.call.equal?(first)
      end
      @runs.size
    end
  end
end
