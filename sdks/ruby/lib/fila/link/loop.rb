# frozen_string_literal: true

module Fila
  class Link
    # The link's thread: connects, reads, sends what callers could not, and keeps time.
    # @api private
    module Loop
      STABLE_AFTER = 1.0 # a connection that lived this long resets the pause
      private_constant :STABLE_AFTER

      # @param connection [Connection, nil] the first one
      def start(connection = nil)
        attach(connection) if connection
        @core.announcer.event(:connected, @address) if connection
        # A new thread inherits what its maker does not want to be interrupted by.
        @thread = Thread.new { Thread.handle_interrupt(Core::IMMEDIATE) { run(connection) } }
        @thread.name = "fila #{@address}"
        @thread.report_on_exception = false # its end is told to everybody who waits
      end

      # Says goodbye, which hands leased messages back; {#join} waits for it.
      # What is left open fails with the reason.
      def close(reason = @core.closed_error)
        return if @closing

        @told = reason
        @closing = true
        if @connection
          send_frame(Wire::Op::DISCONNECT, 0, "")
          push
        end
        nudge
      end

      def join
        @thread.join((2 * Core::GOODBYE) + 1) unless @thread == Thread.current
      end

      # Wakes the thread. Safe anywhere, also in a finalizer.
      def nudge
        @waker.write_nonblock("\0", exception: false)
      rescue IOError, SystemCallError
        nil # the thread has ended
      end

      def abandon_in_child
        @connection&.transport&.abandon
        @wake.close
        @waker.close
      end

      private

      def init_loop
        @wake, @waker = IO.pipe
        @thread = nil
        @wakes_at = nil
        @watching = false # the socket, for what is left to write
        @pinged_at = nil
        @pinged_unsent = 0
        @broken = nil # why the present connection cannot be written to
      end

      def run(connection)
        loop do
          was_open = false
          begin
            connection ||= connect
            was_open = true
            reason = serve(connection)
            @attempts = 0 if Clock.now - connection.opened_at >= STABLE_AFTER
          rescue Error => error
            raise if was_open

            reason = error
            log(:warn, "cannot connect: #{error.message}") unless @closing
          end
          connection = nil
          return unless go_on?(reason, was_open)
        end
      rescue StandardError => error # a fault of ours
        crashed("#{error.class}: #{error.message}", error.full_message(highlight: false, order: :top))
      ensure
        crashed("it was killed") unless @ended # nobody must wait for a thread that is gone
        @wake.close
        @waker.close
      end

      def connect
        waiter = Waiter.new(@options.connect_timeout, wake: @wake) { @closing }
        connection = Connection.open(@address, @options, @core.tls, waiter)
        attached = @core.synchronize { @closing ? false : attach(connection) || true }
        unless attached
          connection.transport.close
          raise @told
        end
        @core.announcer.event(:connected, @address)
        connection
      end

      # Runs one connection to its end and says why it ended.
      def serve(connection)
        log(:info, "connected, node #{connection.node_id}")
        reason = nil
        until reason || @closing
          seconds, writing = @core.synchronize { prepare }
          readable, = IO.select([@wake, connection.transport], writing ? [connection.transport] : nil, nil, seconds)
          @wake.read_nonblock(4096, exception: false) if readable&.include?(@wake)
          reason = @core.synchronize { turn(connection) }
        end
        rest = @core.synchronize { end_connection(reason ||= @told) }
        @closing ? connection.part(rest, Core::GOODBYE) : connection.transport.close
        log(:warn, "connection lost: #{reason.message}") unless @closing
        @core.announcer.event(:disconnected, @address, error: @closing ? nil : reason)
        reason
      end

      # How long to sleep, and whether for the socket to take more. Not before it has sent what is due.
      def prepare
        push
        @wakes_at = next_deadline
        @watching = unsent.positive? || @connection.transport.reading_wants_write?
        [[@wakes_at - Clock.now, 0].max, @watching]
      end

      def turn(connection)
        now = Clock.now
        reason = nil
        connection.receive(now) { |opcode, id, body| reason ||= receive(opcode, id, body) }
        @core.orphans.pop(true).close until @core.orphans.empty?
        reason || tick(connection, now) || (@broken && lost(@broken))
      rescue EOFError
        reason || lost("#{@address} closed the connection")
      rescue SystemCallError, IOError => error
        lost("reading from #{@address}: #{error.message}")
      rescue StandardError => error
        raise unless tls_error?(error)

        lost("reading from #{@address}: TLS: #{error.message}")
      end

      def lost(text) = @complaint || ConnectionLostError.new(text)

      # Time has passed: keep the connection alive, subscribe again.
      def tick(connection, now)
        @streams.each_key do |stream|
          send_consume(stream) if stream.resubscribe_at && now >= stream.resubscribe_at
        end
        return @pinged_at = nil if now < connection.heard_at + @options.keepalive_interval

        if @pinged_at.nil?
          ping(now)
          send_frame(Wire::Op::PING, next_id, "")
        elsif unsent.positive? && unsent < @pinged_unsent
          ping(now) # a large message on a slow line: our Ping stands behind it, but bytes are moving
        elsif now >= @pinged_at + @options.keepalive_timeout
          return lost(format("%s was silent for %.1f s", @address, now - connection.heard_at))
        end
        nil
      end

      def ping(now)
        @pinged_at = now
        @pinged_unsent = unsent
      end

      def next_deadline
        alive = @pinged_at ? @pinged_at + @options.keepalive_timeout : @connection.heard_at + @options.keepalive_interval
        [alive, *@collectors.filter_map(&:due_at), *@streams.keys.filter_map(&:resubscribe_at)].min
      end

      # Whether something is due before the thread would wake by itself.
      def sooner?
        due = @collectors.filter_map(&:due_at).min
        !due.nil? && (@wakes_at.nil? || due < @wakes_at)
      end

      # Fails what was under way and returns what was not written yet.
      def end_connection(reason)
        rest = @writing ? @writing.byteslice(@written, @writing.bytesize) + @out : @out
        rest = "" if @broken
        detach(reason)
        @broken = @pinged_at = @writing = nil
        @out = new_buffer
        finish(@told) if @closing
        rest
      end

      # What follows a connection that ended or was not opened; pauses before the next attempt.
      def go_on?(reason, was_open)
        if @closing
          @core.synchronize { finish(@told) }
          return false
        end
        return false unless @seed ? try_again?(reason) : leave_to_seed(reason, was_open)

        true
      end

      def try_again?(reason)
        if Failure.permanent?(reason) || !@options.reconnect
          @core.synchronize do
            finish(reason)
            @core.ended(reason)
          end
          return false
        end
        pause = Options.shortened(@options.pause_after(@attempts))
        @attempts += 1
        @core.synchronize { @failure = reason.message }
        @core.announcer.event(:reconnecting, @address, error: reason, pause: pause)
        rest(pause)
      end

      def leave_to_seed(reason, was_open)
        # The seed may go on naming a node that is gone until another is elected.
        rest(Options.shortened(@options.pause_after(@core.synchronize { hops }))) unless was_open || hopeless?(reason)
        @core.synchronize { @closing ? finish(@told) : retire(reason, was_open) }
        false
      end

      # Sleeps unless the link is closed; true if it goes on.
      def rest(seconds)
        wake_at = Clock.now + seconds
        until @closing || (left = wake_at - Clock.now) <= 0
          @wake.read_nonblock(4096, exception: false) if IO.select([@wake], nil, nil, left)
        end
        @core.synchronize { finish(@told) } if @closing
        !@closing
      end

      def crashed(why, details = why)
        log(:error, "the connection's thread failed: #{details}")
        reason = ConnectionLostError.new("the connection's thread failed: #{why}")
        @core.synchronize do
          @connection&.transport&.close
          end_connection(reason) if @connection
          finish(reason)
          @core.ended(reason) if @seed
        end
      end

      def log(level, text) = @core.announcer.log(level, "fila: #{@address}: #{text}")
    end

    include Loop
  end
end
