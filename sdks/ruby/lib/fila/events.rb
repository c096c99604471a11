# frozen_string_literal: true

module Fila
  # Something that happened to a client's connections.
  #
  # - `kind`: `:connected`, `:disconnected` (`error` says why), `:reconnecting` (the next attempt comes
  #   after `pause` seconds), `:redirected` (another node, `address`, leads a queue), `:closed` (the
  #   client has ended; `error` is nil if somebody closed it)
  # - `address`: the node concerned, as `host:port`
  Event = Struct.new(:kind, :address, :error, :pause, keyword_init: true)

  # Tells the user's hooks what happened, in order and on a thread of its own: a slow or failing hook
  # delays only what is told after it, and no lock is held while it runs.
  # @api private
  class Announcer
    PATIENCE = 1.0

    def initialize(options)
      @logger = options.logger
      @on_event = options.on_event
      @queue = Thread::Queue.new
      @thread = nil
      @guard = Mutex.new
    end

    def event(kind, address, error: nil, pause: nil)
      tell([:event, Event.new(kind: kind, address: address.to_s, error: error, pause: pause)]) if @on_event
    end

    def log(level, text)
      tell([:log, level, text]) if @logger
    end

    # Waits until what happened so far was told, for a while: a hook may itself be the one who closes.
    def finish
      thread = @guard.synchronize { @thread }
      @queue.close
      thread.join(PATIENCE) unless thread.nil? || thread == Thread.current
    end

    private

    def tell(what)
      @queue << what
      @guard.synchronize { @thread = Thread.new { Thread.handle_interrupt(Core::IMMEDIATE) { run } } unless @thread&.alive? }
    rescue ClosedQueueError
      nil # the client has ended
    end

    def run
      Thread.current.name = "fila events"
      while (kind, first, text = @queue.pop)
        begin
          kind == :event ? @on_event.call(first) : @logger.public_send(first, text)
        rescue StandardError => error
          warn "fila: a hook failed: #{error.full_message(highlight: false, order: :top)}"
        end
      end
    end
  end
end
