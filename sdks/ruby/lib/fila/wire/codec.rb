# frozen_string_literal: true

module Fila
  # The protocol: bytes and what they mean. Knows no sockets, threads or clocks.
  # @api private
  module Wire
    # The version of FIBP spoken here.
    VERSION = 1

    # A body does not parse; `field` is the one at fault.
    class InvalidBody < StandardError
      attr_reader :field

      def initialize(field, why)
        @field = field
        super("#{field}: #{why}")
      end
    end

    # Bodies as hashes, to bytes and back, by the layouts of the specification. For all that is not done
    # a hundred thousand times a second; {Hot} has the rest.
    module Codec
      SIZES = { u8: 1, u16: 2, u32: 4, u64: 8, i64: 8, f64: 8, bool: 1 }.freeze
      FORMATS = { u8: "C", u16: "n", u32: "N", u64: "Q>", i64: "q>", f64: "G" }.freeze
      RANGES = {
        u8: 0..0xFF, u16: 0..0xFFFF, u32: 0..0xFFFF_FFFF, u64: 0..0xFFFF_FFFF_FFFF_FFFF,
        i64: -0x8000_0000_0000_0000..0x7FFF_FFFF_FFFF_FFFF
      }.freeze
      # The fewest bytes a value of a type takes, so that a claimed count can be checked.
      LEAST = SIZES.merge(string: 2, bytes: 4, map: 2, strings: 2, maybe_string: 1, optional: 0).freeze

      # The body inside a BrowsePageResult, which has no opcode of its own.
      INNER = {
        "BrowsedMessages" => [[:messages, :list, :u32, "BrowsedItem"].freeze].freeze,
        "BrowsedItem" => [
          *LAYOUTS.fetch("DeliveryItem").reject { |name, _| name == :leased_at_ms },
          %i[ready_at_ms u64].freeze, %i[state u8].freeze
        ].freeze
      }.freeze

      module_function

      def layout(name) = LAYOUTS[name] || INNER.fetch(name)

      # @raise [ArgumentError, TypeError] for what cannot be sent
      def encode(name, body)
        out = String.new(encoding: Encoding::BINARY)
        append(out, name, body)
        out
      end

      # @raise [InvalidBody]
      def decode(name, bytes) = Reader.new(bytes).record(name, "")

      def append(out, name, body)
        layout(name).each do |field, type, inner, item|
          value = body[field]
          case type
          when :optional
            return out if value.nil? # nothing can follow what was left out

            append_value(out, inner, value, field)
          when :list
            out << [value.size].pack(FORMATS.fetch(inner))
            value.each { |record| append(out, item, record) }
          else append_value(out, type, value, field)
          end
        end
        out
      end

      def append_value(out, type, value, field)
        case type
        when :string then out << Text.field(value, field)
        when :bytes then [value.bytesize, value].pack("Na*", buffer: out)
        when :bool then out << (value ? "\x01" : "\x00")
        when :maybe_string then value.nil? ? out << "\x00" : out << "\x01" << Text.field(value, field)
        when :strings then out << Text.count(value, field) << value.map { |text| Text.field(text, field) }.join
        when :map then out << Text.map(value, field)
        when :f64 then [Float(value)].pack("G", buffer: out)
        else append_integer(out, type, value, field)
        end
      end

      def append_integer(out, type, value, field)
        raise TypeError, "#{field} must be an Integer, not #{value.class}" unless value.is_a?(Integer)

        range = RANGES.fetch(type)
        raise ArgumentError, "#{field} must be from #{range.min} to #{range.max}, not #{value}" unless range.cover?(value)

        [value].pack(FORMATS.fetch(type), buffer: out)
      end

      def least(name)
        @least ||= {}
        @least[name] ||= layout(name).sum do |_, type, inner|
          type == :list ? SIZES.fetch(inner) : LEAST.fetch(type)
        end
      end
    end

    # Reads values from a body, and names the field when it cannot.
    class Reader
      def initialize(bytes)
        @bytes = bytes
        @at = 0
        @size = bytes.bytesize
      end

      def record(name, path)
        Codec.layout(name).each_with_object({}) do |(field, type, inner, item), found|
          where = "#{path}#{field}"
          found[field] =
            case type
            when :optional then @at < @size ? value(inner, where) : nil
            when :list then list(inner, item, where)
            else value(type, where)
            end
        end
      end

      private

      def list(count_type, item, where)
        count = counted(count_type, Codec.least(item), where)
        Array.new(count) { |index| record(item, "#{where}[#{index}].") }
      end

      def value(type, where)
        case type
        when :string then text(where)
        when :bytes then take(number(:u32, where), where)
        when :bool then flag(where)
        when :maybe_string then flag(where) ? text(where) : nil
        when :strings then Array.new(counted(:u16, 2, where)) { |index| text("#{where}[#{index}]") }
        when :map
          Array.new(counted(:u16, 4, where)) do |index|
            [text("#{where}[#{index}] key"), text("#{where}[#{index}] value")]
          end.to_h
        else number(type, where)
        end
      end

      def counted(type, least, where)
        count = number(type, where)
        raise InvalidBody.new(where, "#{count} entries do not fit the body") if count * least > @size - @at

        count
      end

      def text(where)
        found = take(number(:u16, where), where).force_encoding(Encoding::UTF_8)
        raise InvalidBody.new(where, "is not UTF-8") unless found.valid_encoding?

        found
      end

      def flag(where)
        byte = number(:u8, where)
        raise InvalidBody.new(where, "#{byte} is neither 0 nor 1") if byte > 1

        byte == 1
      end

      def number(type, where)
        size = Codec::SIZES.fetch(type)
        need(size, where)
        found = @bytes.unpack1(Codec::FORMATS.fetch(type), offset: @at)
        @at += size
        found
      end

      def take(size, where)
        need(size, where)
        found = @bytes.byteslice(@at, size)
        @at += size
        found
      end

      def need(size, where)
        raise InvalidBody.new(where, "the body ends before it") if size > @size - @at
      end
    end

    # Strings as the wire has them.
    module Text
      BYTES_MAX = 65_535
      EMPTY = "\x00\x00".b.freeze

      module_function

      # The string with its length before it. Symbols are taken for their names.
      def field(value, what)
        value = checked(value, what)
        [value.bytesize, value].pack("na*")
      end

      def checked(value, what)
        value = value.name if value.is_a?(Symbol)
        raise TypeError, "#{what} must be a String, not #{value.class}" unless value.is_a?(String)

        value = utf8(value, what) unless value.encoding == Encoding::UTF_8 && value.valid_encoding?
        return value if value.bytesize <= BYTES_MAX

        raise ArgumentError, "#{what} has #{value.bytesize} bytes; at most #{BYTES_MAX} can be sent"
      end

      def utf8(value, what)
        binary = value.encoding == Encoding::BINARY
        value = binary ? value.dup.force_encoding(Encoding::UTF_8) : value.encode(Encoding::UTF_8)
        raise ArgumentError, "#{what} is not valid UTF-8" unless value.valid_encoding?

        value
      rescue EncodingError
        raise ArgumentError, "#{what} cannot be written as UTF-8"
      end

      def count(values, what)
        return [values.size].pack("n") if values.size <= BYTES_MAX

        raise ArgumentError, "#{values.size} #{what} are more than can be sent"
      end

      def map(pairs, what)
        return EMPTY if pairs.nil?
        raise TypeError, "#{what} must be a Hash, not #{pairs.class}" unless pairs.is_a?(Hash)
        return EMPTY if pairs.empty?

        out = count(pairs, what)
        pairs.each { |key, value| out << field(key, "#{what} name") << field(value, "#{what} #{key.inspect}") }
        out
      end
    end
  end
end
