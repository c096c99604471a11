# frozen_string_literal: true

module Fila
  class Link
    # What an Error frame does to the request it answers: fail it, cut it up, or send it to the leader.
    # @api private
    module Refusals
      RESUBSCRIBE = 0.5 # seconds after the broker ended a stream for the moment

      private

      def refused(id, error)
        case waiting = @pending.delete(id)
        when nil then @complaint = error if id.zero? # why the connection is about to end
        when Batch then refused_batch(waiting, error)
        when Request then refused_request(waiting, error)
        when Leaving then @pending.delete(waiting.consume_id)
        when Stream then refused_stream(waiting, error)
        end
      end

      # The broker answered, but what it said is lost. That is no refusal: what was asked may have been
      # carried out, and a stream is still open over there.
      def unreadable(id, error)
        lost = ConnectionLostError.new("the answer cannot be read: #{error.message}")
        case waiting = @pending[id]
        when Batch
          @pending.delete(id)
          waiting.runs.each { |run| run.fail(lost) }
          landed(waiting.kind, waiting.size)
        when Request
          @pending.delete(id)
          waiting.settle(lost)
        when Stream
          send_frame(Wire::Op::CANCEL_CONSUME, id, "")
          refused(id, error)
        end
      end

      def refused_batch(batch, error)
        batch.runs = wanted(batch.kind, batch.runs) # what nobody waits for is not sent again
        return landed(batch.kind, 0) if batch.runs.empty?

        first = batch.runs.first
        if batch.count > 1 && separable?(batch, error)
          # The whole frame was refused and nothing of it applied: one caller's mistake must not cost the
          # others who shared it.
          landed(batch.kind, 0)
          split(batch.runs).each { |runs| send_runs(batch.kind, runs) }
        elsif follow?(error, first.hops) && (link = @core.redirect(self, first.queue, error.leader_address))
          landed(batch.kind, 0)
          batch.runs.each { |run| run.hops += 1 }
          @core.submit(link, batch.kind, batch.runs)
        else
          batch.runs.each { |run| run.fail(error) }
          landed(batch.kind, batch.size)
        end
      end

      def separable?(batch, error)
        return true if Failure.separable?(error)

        error.is_a?(NotLeaderError) && batch.runs.any? { |run| run.queue != batch.runs.first.queue }
      end

      # One part for each queue, or halves of a single queue's.
      def split(runs)
        by_queue = runs.group_by(&:queue).values
        return by_queue if by_queue.size > 1
        return runs.first.halves.map { |half| [half] } if runs.size == 1

        runs.each_slice((runs.size + 1) / 2).to_a
      end

      def refused_request(request, error)
        if follow?(error, request.hops) && (link = @core.redirect(self, request.queue, error.leader_address))
          request.hops += 1
          link.ask(request) || @core.seed.ask(request) || request.settle(error)
        else
          request.settle(error)
        end
      end

      def refused_stream(stream, error)
        stream.disconnected
        if follow?(error, 0) && stream.hop && (link = @core.redirect(self, stream.queue, error.leader_address))
          @streams.delete(stream)
          link.subscribe(stream) || @core.seed.subscribe(stream) || stream.fail(error)
        elsif stream.accepted? && Failure.transient?(error)
          stream.resubscribe_at = Clock.now + Options.shortened(RESUBSCRIBE) # no verdict on the consumer
        else
          @streams.delete(stream)
          stream.fail(error)
        end
      end

      def follow?(error, hops) = error.is_a?(NotLeaderError) && error.leader_address && hops < HOPS_MAX

      # A leader's link has ended: what it had goes to the seed, which knows who leads now. A leader that can
      # never be talked to (its certificate is wrong, it refuses the key) fails it all instead.
      def retire(error, was_open)
        @core.forget(self)
        return finish(error) if !was_open && hopeless?(error)

        @ended = error
        runs, requests, streams = take_all
        runs.each { |kind, waiting| @core.submit(@core.seed, kind, waiting) unless waiting.empty? }
        requests.each { |request| @core.seed.ask(request) || request.settle(error) }
        streams.each { |stream| @core.seed.subscribe(stream) || stream.fail(error) }
      end

      def hopeless?(error) = Failure.permanent?(error) || error.is_a?(UntrustedError) || error.is_a?(InvalidFrameError)

      # How often what waits here has been sent on, at most.
      def hops
        runs = @collectors.flat_map(&:runs)
        (runs + @requests.keys + @streams.keys).map(&:hops).max || 0
      end
    end

    include Refusals
  end
end
