# frozen_string_literal: true

module Fila
  # What a client is inside: its links to nodes, which of them leads which queue, and the one lock that
  # guards them all. Nothing blocks while it holds the lock except on a condition, which gives it up, so
  # reading goes on when writing is stuck. A core belongs to one process; after a fork the client makes
  # another.
  # @api private
  class Core
    # An exception from another thread (Timeout, Thread#raise, Thread#kill) must not leave the state half
    # changed: it waits until the lock is released, or until the caller sleeps.
    NEVER = { Object => :never }.freeze
    IMMEDIATE = { Object => :immediate }.freeze
    GOODBYE = 1.0 # seconds for the broker to close after Disconnect

    attr_reader :client, :options, :address, :seed, :gate, :announcer, :pid, :tls, :orphans

    # @param connection [Connection, nil] the first one; without it the seed opens its own
    def initialize(client, address, options, tls, connection: nil)
      @client = client
      @address = address
      @options = options
      @tls = tls
      @pid = Process.pid
      @mutex = Mutex.new
      @gate = Gate.new(self, options.in_flight_bytes)
      @announcer = Announcer.new(options)
      @calls = {}.compare_by_identity # under way
      @loops = {} # consuming threads, each with how many loops it is in
      @streams = {}.compare_by_identity
      @idle = ConditionVariable.new
      @leaders = {}
      @routes = {}
      @orphans = Thread::Queue.new # streams whose consumer was garbage-collected
      @draining = @closed = false
      @seed = Link.new(self, address, seed: true)
      synchronize { @seed.start(connection) }
    end

    def synchronize(&block)
      Thread.handle_interrupt(NEVER) { @mutex.synchronize(&block) }
    end

    # Sleeps without the lock; false when the deadline has come.
    def sleep_on(condition, deadline)
      seconds = nil
      if deadline
        seconds = deadline - Clock.now
        return false if seconds <= 0
      end
      Thread.handle_interrupt(IMMEDIATE) { condition.wait(@mutex, seconds) }
      true
    end

    # Calls. All of what follows wants the lock, unless it says otherwise.

    # Counts a call in. While the client drains, only settling is allowed.
    def admit(call, fresh: true)
      raise closed_error if @closed || (fresh && @draining)

      @calls[call] = true
    end

    def finished(call)
      @calls.delete(call)
      @idle.broadcast if @draining
    end

    # Waits for a call's results, or gives it up: with its deadline, or because the thread was interrupted.
    def await(call, timeout, deadline)
      until call.done?
        raise too_late(call, timeout) unless sleep_on(call.condition, deadline)
      end
    ensure
      abandon(call) unless call.done?
    end

    # Nobody waits any more: what was not sent yet never will be.
    def abandon(call)
      call.abandon!
      finished(call)
      links.each { |link| link.abandon(call) }
    end

    def too_late(call, timeout, why = "")
      link = route(call.queue)
      TimeoutError.new("#{call.what}: no answer from #{link.address} within #{Clock.show(timeout)}#{why}#{link.condition}")
    end

    # Gives runs to the links of their queues, in order.
    def dispatch(kind, runs, via: nil)
      return submit(via || @seed, kind, runs) if via || @routes.empty?

      runs.chunk_while { |a, b| route(a.queue).equal?(route(b.queue)) }.each do |together|
        submit(route(together.first.queue), kind, together)
      end
    end

    # If the link has ended meanwhile, the runs go to where their queue is led now, or to the seed.
    def submit(link, kind, runs)
      return if link.submit(kind, runs)

      other = route(runs.first.queue)
      return if !other.equal?(link) && other.submit(kind, runs)

      fail_runs(kind, runs, @seed.ended || closed_error) unless @seed.submit(kind, runs)
    end

    def ask(request)
      link = route(request.queue)
      link.ask(request) || @seed.ask(request) || request.settle(@seed.ended || closed_error)
    end

    def subscribe(stream)
      link = route(stream.queue)
      link.subscribe(stream) || @seed.subscribe(stream) || stream.fail(@seed.ended || closed_error)
    end

    def fail_runs(kind, runs, error)
      runs.each { |run| run.fail(error) }
      @gate.leave(runs.sum(&:size)) if kind.enqueues
    end

    # Streams and loops.

    def join(stream)
      raise closed_error if @closed || @draining

      @streams[stream] = true
    end

    def left(stream) = @streams.delete(stream)

    def enter_loop
      @loops[Thread.current] = @loops.fetch(Thread.current, 0) + 1
    end

    def leave_loop
      count = @loops.fetch(Thread.current, 1) - 1
      count.zero? ? @loops.delete(Thread.current) : @loops[Thread.current] = count
      @idle.broadcast if @draining
    end

    # Leaders.

    # The link for a queue.
    def route(queue) = @routes.fetch(queue, @seed)

    # Remembers that another node leads a queue and returns the link to it, nil if there is no sense in
    # following. The new connection has the same TLS settings and key: what was asked to be encrypted
    # stays encrypted.
    def redirect(from, queue, leader)
      address = Address.parse(leader)
      return if @closed || address.to_s == from.address.to_s

      link = address.to_s == @seed.address.to_s ? @seed : leader_link(address)
      if queue && !queue.empty?
        link.equal?(@seed) ? @routes.delete(queue) : @routes[queue] = link
      end
      @announcer.log(:info, "fila: #{address} leads queue #{queue.inspect}, said #{from.address}")
      @announcer.event(:redirected, address)
      link
    rescue ArgumentError
      nil # not an address
    end

    def forget(link)
      @leaders.delete_if { |_, known| known.equal?(link) }
      @routes.delete_if { |_, known| known.equal?(link) }
    end

    def links = [@seed, *@leaders.values]

    # The end. These take the lock themselves.

    def close
      return unless synchronize { !@closed && (@closed = true) }

      all = synchronize do
        @streams.keys.each(&:close)
        @gate.close(closed_error)
        links.each(&:close)
      end
      all.each(&:join)
      @announcer.event(:closed, @address) unless @seed.ended_by_itself?
      @announcer.finish
    end

    # @return [Boolean] whether everything was finished in time
    def drain(timeout)
      deadline = timeout && (Clock.now + timeout)
      finished = synchronize do
        return true if @closed

        @draining = true
        @streams.keys.each(&:close)
        links.each(&:flush)
        wait_idle(deadline)
      end
      close
      finished
    end

    # The seed cannot be reached again, so the client has ended by itself.
    def ended(error)
      @gate.close(error)
      @announcer.log(:error, "fila: the client for #{@address} has ended: #{error.message}")
      @announcer.event(:closed, @address, error: error)
      @leaders.values.each { |link| link.close(error) }
    end

    def closed? = @closed || !@seed.ended.nil?

    # In a child process: lets go of what is the parent's, without a byte on its connections.
    def abandon_in_child
      links.each(&:abandon_in_child)
    end

    def closed_error = ClosedError.new("the client for #{@address} is closed")

    private

    def leader_link(address)
      @leaders[address.to_s] ||= Link.new(self, address, seed: false).tap(&:start)
    end

    # A loop of the thread that drains ends after this; it cannot wait for itself.
    def wait_idle(deadline)
      until @calls.empty? && @loops.keys.all? { |thread| thread == Thread.current || !thread.alive? }
        return false unless sleep_on(@idle, deadline)
      end
      true
    end
  end
end
