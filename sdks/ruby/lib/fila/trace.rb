# frozen_string_literal: true

module Fila
  # W3C trace context. Messages enqueued inside {.with} carry it in their `traceparent` header, unless
  # they have one already; {Pool} runs its handlers inside that of their message.
  module Trace
    # The header's name.
    HEADER = "traceparent"
    KEY = :__fila_traceparent
    private_constant :KEY

    module_function

    # Runs the block with this trace context, in this fiber.
    # @param traceparent [String, nil]
    # @return the block's value
    def with(traceparent)
      before = Thread.current[KEY]
      Thread.current[KEY] = traceparent
      yield
    ensure
      Thread.current[KEY] = before
    end

    # @return [String, nil] the trace context of this fiber
    def current = Thread.current[KEY]
  end
end
