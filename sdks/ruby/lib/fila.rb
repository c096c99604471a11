# frozen_string_literal: true

# Client of Fila, a message broker with fair scheduling and per-key throttling. Begin with {Fila::Client}.
module Fila
end

require_relative "fila/version"
require_relative "fila/errors"
require_relative "fila/wire/operations"
require_relative "fila/wire/codec"
require_relative "fila/wire/frames"
require_relative "fila/wire/hot"
require_relative "fila/trace"
require_relative "fila/options"
require_relative "fila/events"
require_relative "fila/results"
require_relative "fila/message"
require_relative "fila/transport"
require_relative "fila/tls"
require_relative "fila/connection"
require_relative "fila/call"
require_relative "fila/run"
require_relative "fila/collector"
require_relative "fila/gate"
require_relative "fila/stream"
require_relative "fila/heartbeat"
require_relative "fila/link"
require_relative "fila/core"
require_relative "fila/consumer"
require_relative "fila/pool"
require_relative "fila/client"
