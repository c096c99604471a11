# frozen_string_literal: true

module Fila
  # One connection after its handshake: a transport and the frames on it.
  # @api private
  class Connection
    FRAME_BYTES_MIN = 1024 # a broker that announces less could not be talked to
    TLS_ALERT = 0x15

    attr_reader :transport, :frame_bytes_max, :node_id, :opened_at
    attr_accessor :heard_at

    # Connects and shakes hands within the connect timeout.
    # @raise [Error]
    def self.open(address, options, tls, waiter)
      transport = Transport.open(address, tls, waiter)
      begin
        new(transport, address, options).tap { |connection| connection.shake_hands(waiter) }
      rescue Exception
        transport.close
        raise
      end
    rescue ConnectFailedError => error
      raise ConnectFailedError, "cannot connect to #{address}: #{error.message}"
    rescue SystemCallError, SocketError, IOError => error
      raise ConnectFailedError, "cannot connect to #{address}: #{why(error, options)}"
    rescue StandardError => error
      raise unless error.class.name.start_with?("OpenSSL::")

      raise UntrustedError, "cannot connect to #{address}: TLS: #{error.message}"
    end

    def self.why(error, options)
      case error
      when Errno::ECONNREFUSED then "connection refused; is the broker running there?"
      when SocketError then "the host name cannot be resolved (#{error.message})"
      when EOFError
        hint = options.tls ? "" : "; does it speak TLS? then use tls: or ca_cert:"
        "it closed the connection during the handshake#{hint}"
      else error.message
      end
    end
    private_class_method :why

    def initialize(transport, address, options)
      @transport = transport
      @address = address
      @options = options
      @decoder = Wire::FrameDecoder.new
      @frame_bytes_max = Wire::Frames::BYTES_MAX
      @opened_at = @heard_at = Clock.now
      @early = [] # frames that came with the HandshakeOk
    end

    def shake_hands(waiter)
      hello = Wire::Codec.encode("Handshake", { version: Wire::VERSION, api_key: @options.api_key })
      write_all(Wire::Frames.append(String.new(encoding: Encoding::BINARY), Wire::Op::HANDSHAKE, 0, hello), waiter)
      welcomed = false
      until welcomed
        data = @transport.read
        next waiter.wait(@transport, nil) if data.nil?

        tell_tls(data)
        @decoder.feed(data) do |opcode, id, body|
          if welcomed
            @early << [opcode, id, body]
          else
            welcome(opcode, body)
            welcomed = true
          end
        end
      end
      @opened_at = @heard_at = Clock.now
    end

    # Yields what came: opcode, request id and body, or a fault alone.
    def receive(now, &block)
      early = @early
      @early = []
      early.each(&block)
      while (data = @transport.read)
        @heard_at = now
        @decoder.feed(data, &block)
        break unless @transport.read_on?
      end
    end

    def write_all(bytes, waiter)
      at = 0
      while at < bytes.bytesize
        taken = @transport.write(bytes.byteslice(at, Transport::WRITE_BYTES))
        waiter.wait(nil, @transport) if taken.zero?
        at += taken
      end
    end

    # After the goodbye: reads until the broker has closed. Closing with unread bytes could cut it off.
    def part(bytes, seconds)
      waiter = Waiter.new(seconds)
      write_all(bytes, waiter)
      @transport.finish_writing
      loop { waiter.wait(@transport, nil) if @transport.read.nil? }
    rescue Error, SystemCallError, IOError
      nil # gone already, or too slow to be waited for
    rescue StandardError => error
      raise unless error.class.name.start_with?("OpenSSL::")
    ensure
      @transport.close
    end

    private

    def tell_tls(data)
      return unless data.getbyte(0) == TLS_ALERT

      raise ConnectFailedError, "it speaks TLS and this client does not; use tls: or ca_cert:"
    end

    def welcome(opcode, body)
      raise ConnectFailedError, "it does not speak FIBP (#{opcode.message})" if opcode.is_a?(Wire::FrameFault)

      case opcode
      when Wire::Op::HANDSHAKE_OK then take_welcome(Wire::Codec.decode("HandshakeOk", body))
      when Wire::Op::ERROR
        refusal = Wire::Codec.decode("Error", body)
        raise Failure.refusal(refusal[:code], refusal[:message], metadata: refusal[:metadata])
      when Wire::Op::DISCONNECT then raise EOFError
      else
        raise InvalidFrameError, "#{@address} does not speak FIBP: #{Wire::NAMES.fetch(opcode, opcode)} came instead of HandshakeOk"
      end
    rescue Wire::InvalidBody => error
      raise InvalidFrameError, "#{@address} sent a body that does not parse: #{error.message}"
    end

    def take_welcome(welcome)
      if welcome[:max_frame_size] < FRAME_BYTES_MIN
        raise InvalidFrameError, "#{@address} allows frames of #{welcome[:max_frame_size]} bytes only"
      end

      @frame_bytes_max = @decoder.frame_bytes_max = welcome[:max_frame_size]
      @node_id = welcome[:node_id]
    end
  end
end
