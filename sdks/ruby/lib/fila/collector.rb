# frozen_string_literal: true

module Fila
  # Holds items of one kind until they become a frame, and decides when that is.
  #
  # - auto: at once when nothing of this kind is under way or when there is enough for a frame of its
  #   own, else when an answer comes.
  # - linger: when the oldest item has waited long enough or the frame is full.
  # - disabled: one frame for every call.
  # @api private
  class Collector
    ENOUGH = 100 # items need not wait for company

    attr_accessor :frames_under_way, :mode
    attr_reader :items

    def initialize(mode, linger, items_max, bytes_max)
      @mode = mode
      @linger = linger
      @items_max = items_max
      @bytes_max = bytes_max
      @frames_under_way = 0
      @items = []
      @bytes = 0
      @due_at = nil
      @left = @left_bytes = 0 # of callers who have gone, at most, see forget
    end

    def add(items, now)
      @due_at = now + @linger if @items.empty? && @mode == :linger
      @items.concat(items)
      @bytes += items.sum(&:size)
    end

    # Takes items that must be sent before the others.
    def put_back(items)
      @items.unshift(*items)
      @bytes += items.sum(&:size)
    end

    def due?(now)
      return false if @items.empty?
      return true if @items.size >= @items_max || @bytes >= @bytes_max

      case @mode
      when :auto then @frames_under_way.zero? || @items.size >= ENOUGH
      when :linger then @due_at.nil? || now >= @due_at
      else true
      end
    end

    # When lingering items become due, nil if none linger.
    def due_at = @mode == :linger && !@items.empty? ? @due_at : nil

    # The next frame's items.
    def take
      return take_all if @mode != :disabled && @items.size <= @items_max && @bytes <= @bytes_max

      count = frame_size
      taken = @items.shift(count)
      @bytes -= taken.sum(&:size)
      taken
    end

    def take_all
      items = @items
      @items = []
      @bytes = 0
      items
    end

    # A caller has gone, and up to so many items and bytes here are its. They are never sent, but dropped
    # only once they may be an eighth of what waits: thousands of callers can reach their deadline in one
    # moment, and looking for each one's items would take all of them the square of that. Returns the bytes
    # that were dropped.
    def forget(items, bytes)
      @left += items
      @left_bytes += bytes
      return 0 if 8 * @left < @items.size && 8 * @left_bytes < @bytes

      @left = @left_bytes = 0
      gone, @items = @items.partition { |item| item.call.abandoned? }
      freed = gone.sum(&:size)
      @bytes -= freed
      freed
    end

    private

    def frame_size
      bytes = 0
      first = @items.first.call
      count = @items.each_with_index do |item, index|
        bytes += item.size
        next if index.zero?
        break index if index >= @items_max || bytes > @bytes_max
        break index if @mode == :disabled && !item.call.equal?(first)
      end
      count.is_a?(Integer) ? count : @items.size
    end
  end
end
