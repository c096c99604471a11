# frozen_string_literal: true

module Fila
  # Where the broker is: `host:port` as people write it.
  # @api private
  class Address
    DEFAULT_PORT = 5555

    attr_reader :host, :port

    # `localhost:5555`, `broker`, `[::1]:5555`; a leading https:// asks for TLS.
    def self.parse(text)
      raise TypeError, "address must be a String, not #{text.class}" unless text.is_a?(String)

      scheme, rest = text.strip.match(%r{\A(?:(https?)://)?(.*?)/*\z}i).captures
      case rest
      when /\A\[([^\]]+)\](?::(.*))?\z/ then host, port = $1, $2
      when /:.*:/ then raise ArgumentError, "address #{text.inspect}: write an IPv6 address as [#{rest}]:#{DEFAULT_PORT}"
      else host, port = rest.split(":", 2)
      end
      raise ArgumentError, "address #{text.inspect} has no host; write host:port, e.g. localhost:5555" if host.nil? || host.empty?

      new(host, port_of(port, text), tls: scheme&.downcase == "https")
    end

    def self.port_of(port, text)
      return DEFAULT_PORT if port.nil? || port.empty?
      return port.to_i if port.match?(/\A\d{1,5}\z/) && port.to_i.between?(1, 65_535)

      raise ArgumentError, "address #{text.inspect}: #{port.inspect} is not a port from 1 to 65535"
    end
    private_class_method :port_of

    def initialize(host, port, tls: false)
      @host = host
      @port = port
      @tls = tls
    end

    def tls? = @tls

    def to_s = host.include?(":") ? "[#{host}]:#{port}" : "#{host}:#{port}"
  end

  # Validated options of a client, with every default and limit.
  # @api private
  class Options
    DEFAULTS = {
      api_key: nil, tls: false, ca_cert: nil, client_cert: nil, client_key: nil,
      timeout: 30.0, connect_timeout: 10.0,
      batch_mode: :auto, linger: 0.005, batch_messages: 1000, batch_bytes: 1024 * 1024,
      in_flight_bytes: 64 * 1024 * 1024,
      reconnect: true, reconnect_pause_min: 0.05, reconnect_pause_max: 5.0,
      keepalive_interval: 15.0, keepalive_timeout: 10.0,
      logger: nil, on_event: nil, traceparent: nil
    }.freeze
    BATCH_MODES = %i[auto linger disabled].freeze
    POSITIVE = %i[
      connect_timeout linger batch_messages batch_bytes in_flight_bytes
      reconnect_pause_min reconnect_pause_max keepalive_interval keepalive_timeout
    ].freeze
    PREFETCH = 256
    PREFETCH_MAX = 65_535

    DEFAULTS.each_key { |name| attr_reader name }

    def initialize(address, given)
      unknown = given.keys - DEFAULTS.keys
      raise ArgumentError, "unknown option #{unknown.first.inspect}; known are #{DEFAULTS.keys.join(", ")}" if unknown.any?

      DEFAULTS.merge(given).each { |name, value| instance_variable_set("@#{name}", value) }
      @tls ||= address.tls? || !(@ca_cert || @client_cert || @client_key).nil?
      @batch_mode = @batch_mode.to_sym if @batch_mode.is_a?(String)
      validate
      freeze
    end

    # By up to half at random: many clients lose one node at the same moment and must not come back at one moment.
    def self.shortened(seconds) = seconds * (1 - (rand / 2))

    # The pause before an attempt to connect again, without its jitter.
    def pause_after(attempts)
      [reconnect_pause_min * (2**[attempts, 30].min), [reconnect_pause_min, reconnect_pause_max].max].min
    end

    def self.check_timeout(timeout)
      return timeout if timeout.nil? || (timeout.is_a?(Numeric) && timeout.positive?)

      raise ArgumentError, "timeout must be a positive number of seconds or nil, not #{timeout.inspect}"
    end

    def self.check_prefetch(prefetch)
      return prefetch if prefetch.is_a?(Integer) && prefetch.between?(1, PREFETCH_MAX)

      raise ArgumentError, "prefetch must be from 1 to #{PREFETCH_MAX}, not #{prefetch.inspect}"
    end

    private

    def validate
      Wire::Text.checked(api_key, "api_key") unless api_key.nil?
      unless BATCH_MODES.include?(batch_mode)
        raise ArgumentError, "batch_mode must be :auto, :linger or :disabled, not #{batch_mode.inspect}"
      end
      if client_cert.nil? != client_key.nil?
        raise ArgumentError, "client_cert and client_key belong together: give both or neither"
      end

      Options.check_timeout(timeout)
      POSITIVE.each do |name|
        value = public_send(name)
        next if value.is_a?(Numeric) && value.positive?

        raise ArgumentError, "#{name} must be positive, not #{value.inspect}"
      end
      %i[on_event traceparent].each do |name|
        hook = public_send(name)
        raise ArgumentError, "#{name} must respond to call" unless hook.nil? || hook.respond_to?(:call)
      end
    end
  end
end
