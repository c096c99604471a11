# frozen_string_literal: true

module Fila
  # The root of everything the SDK raises on purpose, except for arguments that cannot be sent: those are
  # a plain ArgumentError or TypeError.
  class Error < StandardError
    # @return [Hash{String=>String}] what the broker added to its text, such as `retry_after_ms`
    attr_reader :metadata

    # @param message [String]
    # @param metadata [Hash{String=>String}]
    def initialize(message = nil, metadata = {})
      super(message)
      @metadata = metadata
    end

    # @return [Integer, nil] the broker's code, nil if the broker did not answer
    def code = nil

    # @return [String] the cause's name in the error catalogue, or the client's own
    def name = self.class.name.delete_prefix("Fila::").delete_suffix("Error")

    # @return [Boolean] whether the same call may succeed later. After a lost connection or a timeout it
    #   may have been carried out already, see {#maybe_applied?}: a repeated enqueue is then stored
    #   twice unless it has an idempotency key.
    def retryable? = false

    # @return [Boolean] whether the broker may have carried the call out although it failed
    def maybe_applied? = false

    # @return [Float, nil] seconds the broker asks to wait before the next attempt
    def retry_after
      milliseconds = metadata["retry_after_ms"]
      Integer(milliseconds, 10) / 1000.0 if milliseconds&.match?(/\A\d{1,9}\z/)
    end

    # @return [String, nil] the node that leads the queue, if a {NotLeaderError} named one
    def leader_address
      address = metadata["leader_addr"]
      address unless address.nil? || address.empty?
    end
  end

  # The broker said no. Its subclasses are the causes of the error catalogue.
  class RefusedError < Error
    # The broker's code.
    CODE = nil
    # The cause's name in the catalogue.
    NAME = "Refused"
    # What it means.
    MEANING = "The broker refused."
    # Whether the same call may succeed later.
    RETRYABLE = false

    # (see Error#code)
    def code = self.class::CODE

    # (see Error#name)
    def name = self.class::NAME

    # (see Error#retryable?)
    def retryable? = self.class::RETRYABLE
  end

  # The connection broke before the answer came: the request may or may not have been carried out.
  class ConnectionLostError < Error
    # (see Error#retryable?)
    def retryable? = true

    # (see Error#maybe_applied?)
    def maybe_applied? = true
  end

  # The broker could not be reached. Nothing was sent.
  class ConnectFailedError < Error
    # (see Error#retryable?)
    def retryable? = true
  end

  # TLS failed: a certificate is wrong, or one side does not speak it. Trying again does not help.
  class UntrustedError < ConnectFailedError
    # (see Error#name)
    def name = "ConnectFailed"

    # (see Error#retryable?)
    def retryable? = false
  end

  # No answer in time: the request may or may not have been carried out.
  class TimeoutError < Error
    # (see Error#retryable?)
    def retryable? = true

    # (see Error#maybe_applied?)
    def maybe_applied? = true
  end

  # The client or consumer was closed or drained, or belongs to the process this one was forked from.
  class ClosedError < Error
    # @param message [String]
    # @param metadata [Hash{String=>String}]
    # @param maybe_applied [Boolean] whether the request had been sent
    def initialize(message = nil, metadata = {}, maybe_applied: false)
      super(message, metadata)
      @maybe_applied = maybe_applied
    end

    # (see Error#maybe_applied?)
    def maybe_applied? = @maybe_applied
  end
end

require_relative "causes"

module Fila
  # Some items of a call failed; the others went through.
  class BatchError < Error
    # @return [Array] one entry for each item, in order: the {Error} it met, or what it got otherwise
    attr_reader :results

    # @param results [Array]
    def initialize(results)
      @results = results
      super("#{errors.size} of #{results.size} items failed; first: #{errors.values.first&.message}")
    end

    # @return [Hash{Integer=>Error}] the failed items' errors by their index
    def errors
      results.each_with_index.filter_map { |result, index| [index, result] if result.is_a?(Error) }.to_h
    end

    # Whether every failed item may succeed later; only those should be sent again.
    def retryable? = errors.values.all?(&:retryable?)

    # (see Error#maybe_applied?)
    def maybe_applied? = errors.values.any?(&:maybe_applied?)
  end

  # How failures become errors with a text a person can act on.
  # @api private
  module Failure
    # Connecting again cannot help.
    PERMANENT = [UnauthorizedError, ForbiddenError, UnsupportedVersionError].freeze
    # The broker may well accept a moment later: no verdict on the request.
    TRANSIENT = [ChannelFullError, NodeNotReadyError].freeze
    # A whole frame refused with these has changed nothing, so its items may be tried apart.
    SEPARABLE = [ForbiddenError, InvalidFrameError].freeze

    module_function

    # The error for a code. Without the broker's own words, subject says what it met.
    def refusal(code, message = nil, subject: nil, metadata: {})
      type = CAUSES.fetch(code, InternalError)
      message = text_for(type, subject) if message.nil? || message.empty?
      type.new(message, metadata)
    end

    def settlement(code, queue, id)
      case code
      when MessageNotFoundError::CODE
        MessageNotFoundError.new("message \"#{id}\" is not leased from queue \"#{queue}\" by this client: " \
                                 "it was settled already, its lease ran out, or it never existed")
      when QueueNotFoundError::CODE then refusal(code, subject: "queue \"#{queue}\"")
      else refusal(code, subject: "message \"#{id}\" of queue \"#{queue}\"")
      end
    end

    def text_for(type, subject)
      return type::MEANING unless subject
      return "#{subject} does not exist" if type == QueueNotFoundError
      return "#{subject} already exists" if type == QueueAlreadyExistsError

      "#{subject}: #{type::MEANING}"
    end

    def permanent?(error) = PERMANENT.include?(error.class)

    def transient?(error) = TRANSIENT.include?(error.class)

    def separable?(error) = SEPARABLE.include?(error.class)
  end
end
