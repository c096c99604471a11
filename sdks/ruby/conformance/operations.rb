# frozen_string_literal: true

require "digest"
require "logger"
require "stringio"

module Conformance
  # Requests that become calls of the SDK.
  module Operations
    PAYLOAD_SHOWN_MAX = 4096
    FIELDS = %w[queue headers idempotency_key fairness_key weight throttle_keys].freeze
    BATCH_MODES = { "auto" => :auto, "linger" => :linger, "off" => :disabled }.freeze
    PLAIN = { "tls" => :tls, "ca" => :ca_cert, "cert" => :client_cert, "key" => :client_key, "api_key" => :api_key,
              "in_flight_bytes_max" => :in_flight_bytes, "reconnect" => :reconnect }.freeze
    SECONDS = { "timeout_ms" => :timeout, "connect_timeout_ms" => :connect_timeout, "linger_ms" => :linger,
                "reconnect_pause_min_ms" => :reconnect_pause_min, "reconnect_pause_max_ms" => :reconnect_pause_max,
                "keepalive_interval_ms" => :keepalive_interval, "keepalive_timeout_ms" => :keepalive_timeout }.freeze

    # Connections.

    def op_connect(request)
      given = request.fetch("options", {})
      options = PLAIN.filter_map { |name, own| [own, given[name]] if given.key?(name) }.to_h
      SECONDS.each { |name, own| options[own] = given[name] / 1000.0 if given.key?(name) }
      options[:batch_mode] = BATCH_MODES.fetch(given["batch"]) if given["batch"]
      seen = @events[request["client"]] ||= []
      options[:on_event] = ->(event) { seen << event.kind }
      options[:logger] = logger(@logs[request["client"]] ||= [])
      @clients[request["client"]] = Fila::Client.new(request["address"], **options)
      {}
    end

    def op_close(request)
      client(request).close
      {}
    end

    def op_drain(request)
      client(request).drain(**timeout(request))
      {}
    end

    def op_events(request)
      { events: @events.fetch(request["client"]).select { |kind| %i[connected disconnected closed].include?(kind) } }
    end

    def op_logs(request) = { lines: @logs.fetch(request["client"]) }

    # Messages.

    def op_enqueue(request)
      traced(request) { { message_id: client(request).enqueue(**message(request), **timeout(request)) } }
    end

    def op_enqueue_many(request)
      results = traced(request) do
        client(request).enqueue_many(request["messages"].map { |one| message(one) }, **timeout(request))
      end
      { results: results.map { |result| result.ok? ? { message_id: result.message_id } : { error: told(result.error) } } }
    end

    def op_consume(request)
      given = %w[prefetch heartbeat].filter_map { |name| [name.to_sym, request[name]] if request.key?(name) }.to_h
      @consumers[request["consumer"]] = client(request).subscribe(queue: request["queue"], **given)
      @held[request["consumer"]] = {}
      {}
    end

    def op_next(request)
      consumer = @consumers.fetch(request["consumer"])
      held = @held.fetch(request["consumer"])
      deadline = now + (request["timeout_ms"] / 1000.0)
      messages = []
      while messages.size < request["max"]
        begin
          message = consumer.receive(timeout: [deadline - now, 0].max)
        rescue Fila::Error
          raise if messages.empty?

          break
        end
        break if message.nil?

        messages << message
        held[message.id] = message
      end
      { messages: messages.map { |one| shown(one) }, end: consumer.closed? && consumer.error.nil? }
    end

    def op_cancel(request)
      @consumers.fetch(request["consumer"]).close
      {}
    end

    def op_ack(request) = settle(request, :ack)

    def op_nack(request) = settle(request, :nack, request.fetch("error", ""))

    def op_release(request) = settle(request, :release)

    def op_extend(request)
      visibility = request["visibility_ms"].zero? ? nil : request["visibility_ms"] / 1000.0
      ids = request["ids"]
      held = @held[request["consumer"]]
      return { results: settle_held(held.values_at(*ids), :extend_lease, [visibility]) } if held

      fields = { queue: request["queue"], visibility: visibility }
      return { results: settle_many(client(request), :extend, ids, fields) } if ids.size > 1

      { results: [outcome { client(request).extend_lease(id: ids.first, **fields) }] }
    end

    # Administration.

    def op_create_queue(request)
      given = { on_enqueue: request["on_enqueue"], on_failure: request["on_failure"] }
      given[:visibility_timeout] = request["visibility_timeout_ms"] / 1000.0 if request["visibility_timeout_ms"]
      { queue_id: client(request).create_queue(queue: request["queue"], **given) }
    end

    def op_list_queues(request) = { queues: client(request).list_queues.map(&:to_h) }

    def op_get_stats(request)
      stats = client(request).get_stats(queue: request["queue"])
      stats.to_h.merge(fairness_keys: stats.fairness_keys.map(&:to_h), throttle_keys: stats.throttle_keys.map(&:to_h))
    end

    def op_set_config(request) = done(client(request).set_config(key: request["key"], value: request["value"]))

    def op_get_config(request) = { value: client(request).get_config(key: request["key"]) }

    def op_list_config(request) = { entries: client(request).list_config(prefix: request.fetch("prefix", "")) }

    def op_redrive(request)
      { redriven: client(request).redrive(queue: request["queue"], limit: request.fetch("limit", 0)) }
    end

    def op_explain(request)
      { document: client(request).explain(**some(request, "queue", "fairness_key", "message_id")) }
    end

    def op_purge(request) = { purged: client(request).purge(**some(request, "queue", "fairness_key")) }

    # Operations that answer with nothing, by the fields they take.
    {
      delete_queue: %w[queue], pause_queue: %w[queue reason], resume_queue: %w[queue],
      pause_key: %w[queue fairness_key reason], resume_key: %w[queue fairness_key],
      revoke_api_key: %w[key_id], set_acl: %w[key_id permissions]
    }.each do |name, fields|
      define_method("op_#{name}") { |request| done(client(request).public_send(name, **some(request, *fields))) }
    end

    def op_create_api_key(request)
      ends = request.fetch("expires_at_ms", 0)
      made = client(request).create_api_key(name: request["name"], superadmin: request.fetch("is_superadmin", false),
                                            expires_at: (Time.at(ends / 1000r) if ends.positive?))
      made.to_h
    end

    def op_list_api_keys(request)
      { keys: client(request).list_api_keys.map { |key| key.to_h.slice(:key_id, :name, :is_superadmin) } }
    end

    def op_get_acl(request)
      acl = client(request).get_acl(key_id: request["key_id"])
      { permissions: acl.permissions.map(&:to_a), is_superadmin: acl.is_superadmin }
    end

    private

    def client(request) = @clients.fetch(request["client"])

    def traced(request, &call) = Fila::Trace.with(request["traceparent"], &call)

    def logger(lines)
      made = Logger.new(StringIO.new)
      made.formatter = lambda do |severity, _, _, text|
        lines << { level: severity.downcase, text: text }
        ""
      end
      made
    end

    def done(_) = {}

    def some(request, *names)
      names.filter_map { |name| [name.to_sym, request[name]] if request.key?(name) }.to_h
    end

    def timeout(request) = request["timeout_ms"] ? { timeout: request["timeout_ms"] / 1000.0 } : {}

    def message(given)
      made = some(given, *FIELDS)
      made[:delay] = given["delay_ms"] / 1000r if given["delay_ms"]
      made.merge(payload: payload(given.fetch("payload", "")))
    end

    def payload(given)
      return given.unpack1("m0") unless given.is_a?(Hash)

      given["repeat"].unpack1("m0") * given["count"]
    end

    def shown(message)
      payload = message.payload
      {
        id: message.id, queue: message.queue, headers: message.headers,
        payload: ([payload].pack("m0") if payload.bytesize <= PAYLOAD_SHOWN_MAX),
        size: payload.bytesize, sha256: Digest::SHA256.hexdigest(payload), fairness_key: message.fairness_key,
        weight: message.weight, throttle_keys: message.throttle_keys, attempt_count: message.attempt_count,
        enqueued_at_ms: message.enqueued_at_ms, leased_at_ms: message.leased_at_ms, traceparent: message.traceparent
      }
    end

    def settle(request, verb, *error)
      ids = request["ids"]
      return { results: settle_held(@held.fetch(request["consumer"]).values_at(*ids), verb, error) } if request["consumer"]

      fields = { queue: request["queue"], **(error.empty? ? {} : { error: error.first }) }
      if ids.size == 1
        { results: [outcome { client(request).public_send(verb, id: ids.first, **fields) }] }
      else
        { results: settle_many(client(request), verb, ids, fields) }
      end
    end

    def settle_held(messages, verb, error)
      messages.map { |message| Thread.new { outcome { message.public_send(verb, *error) } } }.map(&:value)
    end

    def settle_many(client, verb, ids, fields)
      client.public_send("#{verb}_many", ids: ids, **fields)
      ids.map { {} }
    rescue Fila::BatchError => error
      error.results.map { |result| result ? { error: told(result) } : {} }
    end

    def outcome
      yield
      {}
    rescue Fila::Error => error
      { error: told(error) }
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
