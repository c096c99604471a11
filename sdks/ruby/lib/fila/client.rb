# frozen_string_literal: true

require_relative "client/producing"
require_relative "client/settling"
require_relative "client/consuming"
require_relative "client/asking"
require_relative "client/administration"
require_relative "client/versions"
require_relative "client/access"
require_relative "client/batches"
require_relative "client/browsing"

module Fila
  # A client of a broker: one connection, shared by all threads. It may be used in a forked process: the
  # child opens a connection of its own at its first call.
  #
  #   Fila::Client.open("localhost:5555") do |client|
  #     client.create_queue(queue: "mail")
  #     client.enqueue(queue: "mail", payload: "hello", headers: { tenant: "acme" })
  #     client.consume(queue: "mail") do |message|
  #       puts message.payload
  #       message.ack
  #     end
  #   end
  #
  # Times and timeouts are in seconds. Calls fail with an {Error} that says what happened.
  #
  # Its methods lock, so they cannot be called inside a signal handler: start a thread there,
  # `trap("TERM") { Thread.new { client.drain } }`.
  class Client
    include Producing
    include Settling
    include Consuming
    include Administration
    include Versions
    include Access
    include Batches
    include Browsing
    include Asking

    # @return [Numeric, nil] the default deadline of every call
    attr_reader :timeout

    @open = {}.compare_by_identity
    @guard = Mutex.new

    class << self
      # With a block, yields the client and closes it afterwards; else the same as {#initialize}.
      # @return [Client, Object] the client, or the block's value
      def open(address = "localhost:5555", **options)
        client = new(address, **options)
        return client unless block_given?

        begin
          yield client
        ensure
          client.close
        end
      end

      # @api private
      def opened(client)
        @guard.synchronize do
          # At the process's end leased messages go back at once, not when their leases run out.
          @at_exit ||= at_exit { close_all } || true
          @open[client] = true
        end
      end

      # @api private
      def closed(client) = @guard.synchronize { @open.delete(client) }

      private

      def close_all
        clients = @guard.synchronize { @open.keys }
        clients.map { |client| Thread.new { client.close } }.each(&:join)
      end
    end

    # Connects. It fails at once if the broker cannot be reached, does not speak the protocol or refuses
    # the key; only later connections are retried.
    #
    # @param address [String] `host:port`, `host` (port 5555) or `[ipv6]:port`; a leading `https://`
    #   switches TLS on
    # @option options [String] :api_key
    # @option options [Boolean] :tls encrypts, and trusts the system's certificates
    # @option options [String] :ca_cert PEM text or the path of a file: trusts these certificates alone
    # @option options [String] :client_cert PEM text or path of a certificate to show
    # @option options [String] :client_key PEM text or path of its key
    # @option options [Numeric, nil] :timeout (30) deadline of every call; nil waits for ever
    # @option options [Numeric] :connect_timeout (10) for opening a connection, handshake included
    # @option options [Symbol] :batch_mode (:auto) how calls made at the same time share frames. `:auto`:
    #   a lone call is sent at once; while an answer is on its way further calls are collected and leave
    #   together. `:linger`: enqueues are collected for `linger`. `:disabled`: one frame for every call.
    # @option options [Numeric] :linger (0.005)
    # @option options [Integer] :batch_messages (1000) messages in one frame at most
    # @option options [Integer] :batch_bytes (1 MiB) bytes in one frame at most; a larger message goes alone
    # @option options [Integer] :in_flight_bytes (64 MiB) enqueues wait while so much is under way
    # @option options [Boolean] :reconnect (true)
    # @option options [Numeric] :reconnect_pause_min (0.05) pauses double from here
    # @option options [Numeric] :reconnect_pause_max (5) to here, each shortened at random by up to half
    # @option options [Numeric] :keepalive_interval (15) a Ping after so much silence
    # @option options [Numeric] :keepalive_timeout (10) the connection is given up when nothing comes back
    # @option options [Logger] :logger is told what happens to connections; never payloads or keys
    # @option options [#call] :on_event is called with every {Event}, one after the other
    # @option options [#call] :traceparent gives the trace context for messages enqueued now, instead of
    #   {Trace.current}
    # @raise [ConnectFailedError, UnauthorizedError, ArgumentError]
    def initialize(address = "localhost:5555", **options)
      @address = Address.parse(address)
      @options = Options.new(@address, options)
      @timeout = @options.timeout
      @tls = TLS.new(@options) if @options.tls
      connection = Connection.open(@address, @options, @tls, Waiter.new(@options.connect_timeout))
      @reviving = Mutex.new
      @core = Core.new(self, @address, @options, @tls, connection: connection)
      @shut = false
      Client.opened(self)
    end

    # Ends the client at once: it says goodbye, which hands every leased message back without a counted
    # attempt, and fails what is under way with {ClosedError}. Consumers end without an error. See {#drain}
    # for an end that loses nothing. May be called more than once.
    # @return [void]
    def close
      @shut = true
      Client.closed(self)
      @core.close if @core.pid == Process.pid # else it is the parent's
      nil
    end

    # Ends the client in order: consumers stop and hand back what nobody has read, loops and handlers finish
    # the message they are at, calls under way get their answers; then it closes. New calls other than
    # settling are refused with {ClosedError}. A message that was taken out of an external enumerator is
    # not waited for.
    # @param timeout [Numeric, nil] seconds; nil waits for ever
    # @return [void]
    # @raise [TimeoutError] if not everything was finished in time; the client is closed all the same
    def drain(timeout: @timeout)
      Options.check_timeout(timeout)
      return close if @core.pid != Process.pid

      finished = @core.drain(timeout)
      close
      return if finished

      raise TimeoutError, "drain: not everything was finished within #{Clock.show(timeout)}"
    end

    # @return [Boolean] whether the client was closed, or has ended because it was refused
    def closed? = @shut || (@core.pid == Process.pid && @core.closed?)

    # @return [String] the broker's address
    def address = @address.to_s

    # Without the key: clients end up in logs.
    def inspect = "#<Fila::Client #{address}#{" tls" if @tls}#{" closed" if closed?}>"

    private

    # The core of this process. After a fork the child makes one of its own.
    def core
      core = @core
      return core if core.pid == Process.pid

      @reviving.synchronize do
        if @core.pid != Process.pid
          raise ClosedError, "the client for #{@address} is closed" if @shut

          @core.abandon_in_child
          @core = Core.new(self, @address, @options, @tls)
        end
        @core
      end
    end
  end
end
