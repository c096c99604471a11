# frozen_string_literal: true

module Fila
  # Keeps the leases of what a consumer holds, read or unread, until it is settled: three times within the
  # queue's visibility timeout, which the first question tells. A thread of its own, until the stream ends, or
  # until loops and pools that were at work then have settled what they had.
  # @api private
  class Heartbeat
    BEATS = 3 # within the visibility timeout
    AGAIN = 1.0 # seconds, until the timeout is known
    IDS = 1_000 # in one request
    FOR_GOOD = [InvalidFrameError, ForbiddenError, QueueNotFoundError].freeze

    def initialize(client, stream)
      @client = client
      @stream = stream
      @pause = nil
      @thread = Thread.new { run }
      @thread.name = "fila heart-beat #{stream.queue}"
      @thread.report_on_exception = false
    end

    private

    def run
      core = @stream.core
      while core.synchronize { @stream.alive? }
        beat
        core.synchronize { @stream.rest(Clock.now + (@pause || AGAIN)) }
      end
    end

    def beat
      ids = @stream.core.synchronize { @stream.held }
      return if ids.empty? && @pause

      (ids.empty? ? [[]] : ids.each_slice(IDS)).each { |some| extend_some(some) }
    rescue *FOR_GOOD => e
      @stream.core.synchronize { @stream.doom(e) }
    rescue Error
      nil # the next beat asks again
    end

    def extend_some(ids)
      found = @client.extend_held(@stream.queue, ids)
      @stream.core.synchronize { @stream.forget(found[:missing]) }
      @pause = found[:visibility_ms] / 1000.0 / BEATS
    end
  end
end
