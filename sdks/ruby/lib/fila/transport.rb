# frozen_string_literal: true

require "socket"

module Fila
  # A socket that never blocks, plain or with TLS. Opening it takes time and is done without any lock.
  # @api private
  class Transport
    READ_BYTES = 64 * 1024
    WRITE_BYTES = 256 * 1024

    # @param waiter [Waiter] waits for the socket, until the connect timeout or the link's end
    def self.open(address, tls, waiter)
      socket = connect(address, waiter)
      return new(socket) unless tls

      begin
        new(tls.handshake(socket, address, waiter), tls: true)
      rescue Exception # also when the thread is killed: nobody else knows the socket
        socket.close
        raise
      end
    end

    def self.connect(address, waiter)
      found = Addrinfo.getaddrinfo(address.host, address.port, nil, :STREAM, timeout: waiter.left)
      found.each_with_index do |info, index|
        return connect_to(info, waiter.share(found.size - index))
      rescue SystemCallError, ConnectFailedError
        raise if index == found.size - 1
      end
    end
    private_class_method :connect

    def self.connect_to(info, waiter)
      socket = Socket.new(info.afamily, Socket::SOCK_STREAM, 0)
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      begin
        while socket.connect_nonblock(info.to_sockaddr, exception: false) == :wait_writable
          waiter.wait(nil, socket)
        end
      rescue Errno::EISCONN
        nil # the second call only asks
      end
      socket
    rescue Exception
      socket&.close
      raise
    end
    private_class_method :connect_to

    def initialize(socket, tls: false)
      @socket = socket
      @tls = tls
      @chunk = String.new(capacity: READ_BYTES, encoding: Encoding::BINARY)
      @reading_wants_write = false
    end

    def to_io = @socket.to_io

    # Bytes, valid until the next call; nil when there are none now.
    # @raise [SystemCallError, IOError, OpenSSL::SSL::SSLError] EOFError at the end
    def read
      found = @socket.read_nonblock(READ_BYTES, @chunk, exception: false)
      @reading_wants_write = found == :wait_writable
      case found
      when String then found
      when nil then raise EOFError, "end of stream"
      end
    end

    # How many of these bytes were taken.
    def write(bytes)
      taken = @socket.write_nonblock(bytes, exception: false)
      taken.is_a?(Integer) ? taken : 0
    end

    # Decrypted bytes may wait where no select sees them.
    def read_on? = @tls

    def reading_wants_write? = @reading_wants_write

    # No more will be written. A TLS session has no such half; its close says goodbye to both.
    def finish_writing
      @socket.shutdown(Socket::SHUT_WR) unless @tls
    end

    def close
      @tls ? abandon : @socket.close
    rescue SystemCallError, IOError
      nil
    end

    # Closes this process's end without a byte to the peer: after a fork the connection is the parent's.
    def abandon
      @socket.to_io.close
    rescue SystemCallError, IOError
      nil
    end
  end

  # Waits for a socket until a deadline, or until the link is closed.
  # @api private
  class Waiter
    attr_reader :deadline

    # @param wake [IO, nil] becomes readable when `closing` may have changed
    def initialize(seconds, wake: nil, deadline: Clock.now + seconds, &closing)
      @seconds = seconds
      @deadline = deadline
      @wake = wake
      @closing = closing
    end

    # A waiter with its part of the time that is left.
    def share(parts)
      Waiter.new(@seconds, wake: @wake, deadline: Clock.now + (left / parts), &@closing)
    end

    def left = @deadline - Clock.now

    def wait(reading, writing)
      loop do
        raise ClosedError, "closed while connecting" if @closing&.call

        seconds = left
        raise ConnectFailedError, "no answer within #{Clock.show(@seconds)}" if seconds <= 0

        ready, writable = IO.select([reading, @wake].compact, [writing].compact, nil, seconds)
        next if ready.nil?
        return if ready.include?(reading) || writable.include?(writing)

        @wake.read_nonblock(4096, exception: false)
      end
    end
  end

  # Time that never jumps.
  # @api private
  module Clock
    module_function

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def show(seconds) = format("%g s", seconds)
  end
end
