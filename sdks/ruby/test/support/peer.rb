# frozen_string_literal: true

require "socket"

# A scripted peer, for faults a real broker does not produce: redirects, silence and garbage. It answers
# handshakes and hands every other message to its script.
class Peer
  # One accepted connection.
  class Caller
    attr_reader :socket

    def initialize(socket)
      @socket = socket
      @lock = Mutex.new
    end

    def send(operation, id, body)
      frame = Fila::Wire::Frames.append("".b, Fila::Wire::NAMES.key(operation), id, Fila::Wire::Codec.encode(operation, body))
      raw(frame)
    end

    def raw(bytes) = @lock.synchronize { @socket.write(bytes) }

    def error(id, type, message = "", metadata = {})
      send("Error", id, code: type::CODE, message: message, metadata: metadata)
    end

    # Accepts all items of an Enqueue, Ack or Consume.
    def accept(name, id, body)
      case name
      when "Enqueue"
        send("EnqueueResult", id, results: body[:messages].map { { code: 0, message_id: "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b" } })
      when "EnqueueWith"
        send("EnqueueWithResult", id, results: body[:messages].map do
          { code: 0, message_id: "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b", duplicate: false }
        end)
      when "Ack" then send("AckResult", id, results: body[:messages].map { { code: 0 } })
      when "Release" then send("ReleaseResult", id, results: body[:messages].map { { code: 0 } })
      when "Consume" then send("ConsumeOk", id, consumer_id: "c")
      when "GetStats"
        send("GetStatsResult", id, code: 0, depth: 7, in_flight: 0, active_fairness_keys: 0, active_consumers: 0,
                                   quantum: 0, leader_node_id: 0, replication_count: 0, fairness_keys: [], throttle_keys: [])
      end
    end

    def close = @socket.to_io.close
  end

  attr_reader :address, :seen, :keys, :first_bytes, :callers

  # @param tls [OpenSSL::SSL::SSLContext, nil]
  # @yieldparam caller [Caller]
  # @yieldparam name [String] of the operation
  # @yieldparam id [Integer]
  # @yieldparam body [Hash]
  def initialize(tls: nil, handshake: true, &script)
    @server = TCPServer.new("127.0.0.1", 0)
    @address = "127.0.0.1:#{@server.addr[1]}"
    @tls = tls
    @handshake = handshake
    @script = script
    @seen = Queue.new # [name, body]
    @keys = Queue.new
    @first_bytes = Queue.new
    @callers = []
    @thread = Thread.new { accept }
    @thread.report_on_exception = false
  end

  def seen_names
    Array.new(@seen.size) { @seen.pop }.map(&:first)
  end

  def hang_up = @callers.each(&:close)

  def close
    @server.close
    hang_up
    @thread.kill
  rescue IOError
    nil
  end

  private

  def accept
    loop do
      socket = @server.accept
      thread = Thread.new { serve(socket) }
      thread.report_on_exception = false
    end
  end

  def serve(socket)
    @first_bytes << socket.recv(1, Socket::MSG_PEEK).getbyte(0)
    if @tls
      socket = OpenSSL::SSL::SSLSocket.new(socket, @tls)
      socket.accept
    end
    @callers << (caller = Caller.new(socket))
    decoder = Fila::Wire::FrameDecoder.new
    loop do
      decoder.feed(socket.readpartial(65_536)) { |opcode, id, body| handle(caller, opcode, id, body) }
    end
  rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
    nil
  end

  def handle(caller, opcode, id, body)
    name = Fila::Wire::NAMES.fetch(opcode)
    body = Fila::Wire::Codec.decode(name, body)
    if name == "Handshake" && @handshake
      @keys << body[:api_key]
      caller.send("HandshakeOk", id, version: 1, node_id: 0, max_frame_size: 16_777_216)
    elsif name == "Disconnect"
      caller.close
    else
      @seen << [name, body]
      @script&.call(caller, name, id, body)
    end
  end
end
