# frozen_string_literal: true

# The Ruby adapter of the conformance programme: requests of sdks/conformance/PROTOCOL.md as calls of the
# SDK. Decides nothing, retries nothing, checks nothing.

require "json"
require_relative "../lib/fila"
require_relative "codec"
require_relative "operations"

module Conformance
  # Raised in the thread of a request that is aborted.
  class Aborted < Exception # rubocop:disable Lint/InheritException
  end

  # Clients, consumers and the messages they handed out, by the names the runner gave them.
  class Session
    include CodecOperations
    include Operations

    def initialize(out)
      @out = out
      @writing = Mutex.new
      @clients = {}
      @events = {}
      @logs = {}
      @consumers = {}
      @held = {}
      @running = {}
    end

    def run(input)
      input.each_line do |line|
        request = JSON.parse(line)
        if %w[abort hello].include?(request["op"])
          answer(request)
        else
          start(request)
        end
      end
      ending = Thread.new { @clients.each_value(&:close) }
      ending.join(4)
    end

    def op_hello(_) = { protocol: 1, language: "ruby", version: Fila::VERSION }

    def op_stats(_)
      GC.start
      { rss_bytes: File.read("/proc/self/statm").split[1].to_i * 4096 }
    end

    def op_abort(request)
      @running[request["request"]]&.raise(Aborted)
      {}
    end

    private

    # An abort may come at any moment while the call runs, and not after it.
    def start(request)
      Thread.handle_interrupt(Aborted => :never) do
        @running[request["id"]] = Thread.new { answer(request) }
      end
    end

    def answer(request)
      write(id: request["id"], **respond(request))
    ensure
      @running.delete(request["id"])
    end

    def respond(request)
      method = "op_#{request["op"]}"
      return { error: error("NotImplemented", request["op"]) } unless respond_to?(method, true)

      { ok: Thread.handle_interrupt(Aborted => :immediate) { send(method, request) } }
    rescue Aborted
      { error: error("Cancelled", "the call was interrupted") }
    rescue StandardError => failure
      { error: told(failure) }
    end

    def told(failure)
      case failure
      when Fila::ClosedError then error("ClientClosed", failure.message)
      when Fila::Error then error(failure.name, failure.message, failure.retryable?, failure.metadata)
      when Fila::Wire::InvalidBody then error("InvalidFrame", failure.message)
      when ArgumentError, TypeError then error("InvalidArgument", failure.message)
      else
        warn failure.full_message
        error("Unexpected", "#{failure.class}: #{failure.message}")
      end
    end

    def error(code, message, retryable = false, metadata = {})
      { code: code, message: message, retryable: retryable, metadata: metadata }
    end

    def write(response)
      line = JSON.generate(response)
      @writing.synchronize do
        @out.write(line, "\n")
        @out.flush
      end
    end
  end
end

Thread.report_on_exception = true
$stdin.set_encoding(Encoding::UTF_8)
$stdout.set_encoding(Encoding::UTF_8)
Conformance::Session.new($stdout).run($stdin)
