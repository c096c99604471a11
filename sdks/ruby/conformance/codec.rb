# frozen_string_literal: true

module Conformance
  # The golden vectors, through the SDK's own codecs: bodies as the vectors write them, and back.
  module CodecOperations
    Wire = Fila::Wire

    def op_encode(request)
      body = Wire::Codec.encode(request["operation"], to_record(request["operation"], request["body"]))
      frame = Wire::Frames.append("".b, Wire::NAMES.key(request["operation"]), request["request_id"], body)
      { bytes: frame.unpack1("H*") }
    end

    def op_decode(request)
      found = nil
      Wire::FrameDecoder.new.feed([request["bytes"]].pack("H*")) { |*frame| found = frame }
      opcode, id, body = found
      name = Wire::NAMES.fetch(opcode)
      { operation: name, opcode: opcode, request_id: id, body: to_meaning(name, Wire::Codec.decode(name, body)) }
    end

    def op_decode_body(request)
      name = request["operation"]
      { body: to_meaning(name, Wire::Codec.decode(name, [request["body"]].pack("H*"))) }
    end

    def op_decode_stream(request)
      limits = request["limits"]
      decoder = Wire::FrameDecoder.new(frame_bytes_max: limits["frame_bytes_max"], streams_max: limits["assembly_streams_max"],
                                       assembly_bytes_max: limits["assembly_bytes_max"])
      bytes = [request["bytes"]].pack("H*")
      step = request["chunk"].positive? ? request["chunk"] : [bytes.bytesize, 1].max
      messages = []
      errors = []
      0.step(bytes.bytesize - 1, step) do |at|
        decoder.feed(bytes.byteslice(at, step)) do |opcode, id, body|
          if opcode.is_a?(Wire::FrameFault)
            errors << { code: Fila::InvalidFrameError::CODE, request_id: opcode.request_id, fatal: opcode.fatal }
          else
            messages << { opcode: opcode, request_id: id, body: body.unpack1("H*") }
          end
        end
      end
      { messages: messages, errors: errors }
    end

    def op_state(request)
      state = request["state"].to_sym
      following = Wire::States.following(state, request["receives"])
      following ? { next: following } : { refused: Fila::InvalidFrameError::CODE, fatal: Wire::States.fatal?(state) }
    end

    private

    def to_record(name, meaning)
      Wire::Codec.layout(name).to_h do |field, type, inner, item|
        value = meaning[field.to_s]
        type = inner if type == :optional
        [field, type == :list ? value.map { |one| to_record(item, one) } : to_value(type, value)]
      end
    end

    def to_value(type, value)
      return value if value.nil?

      case type
      when :u64, :i64 then Integer(value)
      when :bytes then [value].pack("H*")
      when :map then value.to_h
      else value
      end
    end

    def to_meaning(name, record)
      Wire::Codec.layout(name).to_h do |field, type, inner, item|
        value = record[field]
        type = inner if type == :optional
        [field, type == :list ? value.map { |one| to_meaning(item, one) } : from_value(type, value)]
      end
    end

    def from_value(type, value)
      return value if value.nil?

      case type
      when :u64, :i64 then value.to_s
      when :bytes then value.unpack1("H*")
      when :map then value.to_a
      else value
      end
    end
  end
end
